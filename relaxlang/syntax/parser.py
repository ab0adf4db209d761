"""The parser: bytes to text, text to surface tree, with every syntax error reported.

    source = decode_source("model.rlx", data)
    module = parse_surface(source, diagnostics)
    diagnostics.check()

A tree that comes back beside errors lacks the statements that could not be read, so later phases wait for `check`.
Depth: brackets and prefix operators nest at most 200 levels and blocks at most 100 (RLX0009), but a chain such as
`a + a + …` or `x[0][0]…` is as deep as it is long, since it leans left.
"""

from __future__ import annotations

from functools import cache

from relaxlang.base.diagnostics import Diagnostic, Diagnostics
from relaxlang.base.source import Source, Span
from relaxlang.syntax import tree
from relaxlang.syntax.actions import Actions
from relaxlang.syntax.decode import not_text
from relaxlang.syntax.lalr import Parser
from relaxlang.syntax.lexer import Lexer, Vocabulary
from relaxlang.syntax.literals import string_content
from relaxlang.syntax.messages import explain
from relaxlang.syntax.tables import LANGUAGE, Tables, load_tables


@cache
def language() -> tuple[Tables, Vocabulary]:
    """The grammar's tables and its words."""
    tables = load_tables(*LANGUAGE)
    return tables, Vocabulary(tables)


def parse_surface(source: Source, diagnostics: Diagnostics, part: tuple[int, int] | None = None) -> tree.Module:
    """The surface tree of a whole file. Syntax errors go to `diagnostics`; bad text never raises.

    `part` restricts it to some lines of the text, offsets from the start of one to the end of another: statements that
    may be indented, as inside a Python function.
    """
    whole = Span(source, 0, len(source.text))
    nul = source.text.find("\0")
    if nul >= 0:
        diagnostics.report(not_text(source, nul))
        return tree.Module((), span=whole)
    tables, vocabulary = language()
    start, end = part or (0, len(source.text))
    lexer = Lexer(vocabulary, source, diagnostics.report, start, end)
    lexer.indents = [lexer.indentation(start)]
    module = Parser(tables, "module", lexer, Actions(source, diagnostics.report), explain).run()
    comments = tuple(tree.Comment(span.text, span=span) for span in lexer.comments)
    return tree.Module(module.body if module is not None else (), comments, span=whole)


def parse_expression(
    source: Source, diagnostics: Diagnostics, start: int = 0, end: int | None = None
) -> tree.Expr | None:
    """The expression that is `source.text[start:end]`, with spans in `source`; None after a reported error.

    Line breaks count as blanks, as they do inside brackets.
    """
    tables, vocabulary = language()
    lexer = Lexer(vocabulary, source, diagnostics.report, start, end, nested=True)
    value: tree.Expr | None = Parser(tables, "expression", lexer, Actions(source, diagnostics.report), explain).run()
    return value


def parse_quoted(literal: tree.Constant, diagnostics: Diagnostics) -> tree.Expr | None:
    """The expression inside a string literal, such as the shape `"n * 2"`; its spans point into the literal.

    None after a reported error: no expression, or a literal whose characters do not stand for themselves.
    """
    span = literal.span
    if span is None or not isinstance(literal.value, str):
        raise ValueError("a string literal from a source text is needed")
    _, begin, end = string_content(literal.text)
    if literal.text[begin:end] != literal.value:
        message = "an expression in a string must be one plain literal, without escape sequences"
        diagnostics.report(Diagnostic("RLX0013", message, span))
        return None
    return parse_expression(span.source, diagnostics, span.start + begin, span.start + end)
