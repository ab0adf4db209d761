"""The parser: text in, surface tree out, every syntax error reported.

    source = decode_source("model.rlx", data, diagnostics)
    module = parse_surface(source, diagnostics)
    diagnostics.check()

The tree that comes back beside errors lacks the statements that could not be read; later phases wait for `check`.
"""

from __future__ import annotations

from functools import cache

from relaxlang.base.diagnostics import Diagnostic, Diagnostics
from relaxlang.base.source import Source, Span
from relaxlang.syntax import literals, tree
from relaxlang.syntax.actions import Actions
from relaxlang.syntax.lalr import Parser
from relaxlang.syntax.lexer import Lexer, Vocabulary
from relaxlang.syntax.messages import explain
from relaxlang.syntax.tables import Tables, load_tables


@cache
def language() -> tuple[Tables, Vocabulary]:
    """The tables of the language, and its words."""
    tables = load_tables(("rlx", "expr", "lexical"), ("module", "expression"))
    return tables, Vocabulary(tables)


def parse_surface(source: Source, diagnostics: Diagnostics) -> tree.Module:
    """The surface tree of a whole file. Syntax errors go to `diagnostics`; this never raises for bad text."""
    tables, vocabulary = language()
    report = diagnostics.report
    lexer = Lexer(vocabulary, source, report)
    module = Parser(tables, "module", lexer, Actions(source, report), explain).run()
    comments = tuple(tree.Comment(span.text, span=span) for span in lexer.comments)
    body = module.body if module is not None else ()
    return tree.Module(body, comments, span=Span(source, 0, len(source.text)))
