"""Pipelines as text: `legalize-ops{skip=matmul, limits=[1, 2]}, normalize` (the grammar is `grammar/pipeline.lark`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias, Union

from relaxlang.base.diagnostics import Diagnostic, Diagnostics
from relaxlang.base.source import Source, Span
from relaxlang.syntax import literals
from relaxlang.syntax.lalr import Parser
from relaxlang.syntax.lexer import Lexer, Token, Vocabulary
from relaxlang.syntax.messages import explain
from relaxlang.syntax.tables import PIPELINE, Tables, load_tables

OptionValue: TypeAlias = Union[int, float, bool, str, "list[OptionValue]", None]

_WORDS: dict[str, bool | None] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "none": None,
    "None": None,
}


class PassSpec(NamedTuple):
    """One pass of a pipeline, as written: its name, its options, and where it and each option stand."""

    name: str
    options: dict[str, OptionValue]
    span: Span
    option_spans: dict[str, Span]


def parse_pipeline(source: Source, diagnostics: Diagnostics) -> list[PassSpec]:
    """The passes of a pipeline text, in order; empty after a reported error, and for an empty text.

    A value is a number, a string in quotes, `true`, `false`, `none`, a bare word (a string), or a list in brackets.
    An option without a value is true. Whether passes and options exist is not checked here.
    """
    tables, vocabulary = _language()
    lexer = Lexer(vocabulary, source, diagnostics.report, nested=True)
    passes: list[PassSpec] | None = Parser(
        tables, "pipeline", lexer, _Actions(source, diagnostics.report), explain
    ).run()
    return passes or []


@cache
def _language() -> tuple[Tables, Vocabulary]:
    tables = load_tables(*PIPELINE)
    return tables, Vocabulary(tables)


class _Actions:
    """Callbacks of `pipeline.lark`."""

    def __init__(self, source: Source, report: Callable[[Diagnostic], None]) -> None:
        self.source = source
        self.report = report

    def pipeline(self, span: Span, *passes: PassSpec) -> list[PassSpec]:
        return list(passes)

    def pass_(self, span: Span, name: Token, options: tuple[tuple[Token, OptionValue, Span], ...] | None) -> PassSpec:
        spec = PassSpec(name.text, {}, span, {})
        for option, value, place in options or ():
            if option.text in spec.options:
                self.report(Diagnostic("RLX0015", f"option `{option.text}` is given twice", place))
            spec.options[option.text] = value
            spec.option_spans[option.text] = place
        return spec

    def options(
        self, span: Span, *items: tuple[Token, OptionValue, Span]
    ) -> tuple[tuple[Token, OptionValue, Span], ...]:
        return items

    def option(self, span: Span, name: Token, *value: OptionValue) -> tuple[Token, OptionValue, Span]:
        return name, value[0] if value else True, span

    def integer(self, span: Span, token: Token) -> OptionValue:
        return literals.integer(token.text, span, self.report)

    def real(self, span: Span, token: Token) -> OptionValue:
        return float(token.text)

    def string(self, span: Span, token: Token) -> OptionValue:
        return literals.string(token.text, self.source, token.start, self.report)

    def word(self, span: Span, token: Token) -> OptionValue:
        return _WORDS.get(token.text, token.text)

    def list_(self, span: Span, *values: OptionValue) -> OptionValue:
        return list(values)
