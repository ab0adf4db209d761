"""The examples of the table of codes do what they say: `wrong` is reported under its code alone, `right` is not."""

from textwrap import dedent

import pytest

import relaxlang
from relaxlang.base.codes import CODES, explain
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Diagnostics
from relaxlang.base.source import Source
from relaxlang.syntax.parser import parse_surface


def reported(code: str, text: str) -> set[str]:
    """The codes under which a text is reported.

    A syntax example is a statement and no module, so it is only parsed; an example of what the compiler finds is built.
    """
    text = dedent(text)
    if code < "RLX0100":
        found = Diagnostics()
        parse_surface(Source("example.rlx", text), found)
        return {d.code for d in found.items}
    warned: list[Diagnostic] = []
    try:
        module = relaxlang.parse(text, warnings=warned.append)
        if code >= "RLX1000":
            relaxlang.build(module)
    except DiagnosticError as error:
        return {d.code for d in error.diagnostics}
    return {d.code for d in warned}


@pytest.mark.parametrize("code", [code for code, info in CODES.items() if info.wrong])
def test_examples(code: str) -> None:
    assert reported(code, CODES[code].wrong) == {code}
    assert reported(code, CODES[code].right) == set()


@pytest.mark.parametrize("code", CODES)
def test_explanations(code: str) -> None:
    info, text = CODES[code], explain(code)
    assert text.startswith(f"{code}: {info.title}\n\n{info.explanation.strip()}")
    assert bool(info.wrong) == bool(info.right) == ("\nWrong:\n" in text) == ("\nRight:\n" in text)
    assert explain(code.removeprefix("RLX").lower()) == text
