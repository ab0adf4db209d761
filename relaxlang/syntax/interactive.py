"""What an editor asks of the grammar while a text is typed: is it complete, which colours has it, what may follow."""

from __future__ import annotations

from typing import Literal, NamedTuple

from relaxlang.base.diagnostics import Diagnostics
from relaxlang.base.source import Source
from relaxlang.syntax.actions import Actions
from relaxlang.syntax.lalr import Parser
from relaxlang.syntax.lexer import Lexer, Token
from relaxlang.syntax.messages import explain
from relaxlang.syntax.parser import language

TokenClass = Literal["keyword", "constant", "name", "number", "string", "comment", "operator", "bracket", "error"]

_CLASSES: dict[str, TokenClass] = {
    "NAME": "name",
    "INT": "number",
    "FLOAT": "number",
    "STRING": "string",
    "COMMENT": "comment",
    "RESERVED": "error",
    "TRUE": "constant",
    "FALSE": "constant",
    "NONE": "constant",
}


class Highlight(NamedTuple):
    """A range of a text, `start` to `end`, and its class for colouring."""

    kind: TokenClass
    start: int
    end: int


def is_complete(text: str) -> Literal["complete", "incomplete", "invalid"]:
    """Whether `text` is whole statements, the beginning of some, or has an error that more text cannot mend.

    An indented block goes on until an empty line, as in Python's own prompt.
    """
    lexer, parser, diagnostics = _parser(text)
    failed = parser.drive(lexer.tokens())
    if failed is not None:
        more = lexer.unfinished or failed.type in ("_DEDENT", "$END")
        return "incomplete" if more else "invalid"
    if diagnostics.items:
        return "invalid"
    last = text[text.rfind("\n") + 1 :]
    return "incomplete" if last.strip() and last[0] in " \t" else "complete"


def tokens(text: str) -> list[Highlight]:
    """The coloured parts of any text, well-formed or not; blanks and line breaks are left out."""
    _, vocabulary = language()
    made: list[Highlight] = []
    at = 0
    while True:
        found = vocabulary.match(text, at)
        if found is None:
            blank = vocabulary.blank.match(text, at)
            start = at if blank is None else blank.end()
            if start >= len(text):
                return made
            made.append(_unreadable(text, start))
            at = made[-1].end
            continue
        group = found.lastindex or 0
        kind = vocabulary.kinds[group]
        start, at = found.span(group)
        if kind == "NAME":
            terminal = vocabulary.names.get(text[start:at], "NAME")
            made.append(Highlight(_CLASSES.get(terminal, "keyword"), start, at))
        elif kind != "NEWLINE":
            mark: TokenClass = "bracket" if text[start] in "()[]{}" else "operator"
            made.append(Highlight(_CLASSES.get(kind, mark), start, at))


def _unreadable(text: str, start: int) -> Highlight:
    """A string that is still open, to the end of its line or of the text, or a character that begins nothing."""
    if text.startswith(('"""', "'''"), start):
        return Highlight("string", start, len(text))
    if text[start] in "\"'":
        stop = text.find("\n", start)
        return Highlight("string", start, len(text) if stop < 0 else stop)
    return Highlight("error", start, start + 1)


def accepts(text: str) -> frozenset[str]:
    """What the grammar accepts after `text`: keywords and punctuation as written, and `NAME`, `INT`, `FLOAT`, `STRING`.

    Empty when the text has an error already.
    """
    lexer, parser, _ = _parser(text)
    read = list(lexer.tokens())
    edges: list[Token] = []  # the lexer closes the line and the blocks, but more text could still belong to them
    while read and read[-1].type in ("$END", "_DEDENT", "UNREADABLE", "_NEWLINE"):
        if read[-1].type == "_NEWLINE" and "\n" in text[read[-1].end :]:
            break
        edges.append(read.pop())
    if parser.drive(iter(read)) is not None:
        return frozenset()
    kinds = set(parser.expected())
    for edge in edges:
        if edge.type == "_DEDENT" and parser.drive(iter((edge,))) is None:
            kinds.update(parser.expected())
    written = {name: word for word, name in parser.tables.words.items()}
    return frozenset(written.get(kind, kind) for kind in kinds if kind in written or kind in _CLASSES)


def _parser(text: str) -> tuple[Lexer, Parser, Diagnostics]:
    tables, vocabulary = language()
    source, diagnostics = Source("<input>", text), Diagnostics()
    lexer = Lexer(vocabulary, source, diagnostics.report)
    actions = Actions(source, diagnostics.report)
    return lexer, Parser(tables, "module", lexer, actions, explain), diagnostics
