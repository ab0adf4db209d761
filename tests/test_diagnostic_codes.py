"""The examples of the table of codes do what they say: `wrong` is reported under its code alone, `right` is not."""

import pytest

import relaxlang
from relaxlang.base.codes import CODES
from relaxlang.base.diagnostics import DiagnosticError, Diagnostics
from relaxlang.base.source import Source
from relaxlang.syntax.parser import parse_surface


def reported(code: str, text: str) -> set[str]:
    """The codes under which a text is reported; a syntax example is a statement and no module, so it is only parsed."""
    if code < "RLX0100":
        found = Diagnostics()
        parse_surface(Source("example.rlx", text), found)
        return {d.code for d in found.items}
    try:
        relaxlang.parse(text)
    except DiagnosticError as error:
        return {d.code for d in error.diagnostics}
    return set()


@pytest.mark.parametrize("code", [code for code, info in CODES.items() if info.wrong])
def test_examples(code: str) -> None:
    assert reported(code, CODES[code].wrong) == {code}
    assert reported(code, CODES[code].right) == set()
