"""Functions of Python in a module: carried as text, never read."""

from __future__ import annotations

import pytest

import relaxlang
from relaxlang.base.source import Source
from relaxlang.syntax.format import format_source

TEXT = '''@I.ir_module
class Module(BasePyModule):
    @I.pyfunc
    @other
    def host(self, x):
        """several
  lines
        """
        try:
            y = f"{x!r}" if (z := x) else b"no"
        except Exception:  # a comment
            return {"a": (1,
    2)}
        # the last words

    @I.pyfunc
    async def short(self): return "it"

    @R.function
    def main(x: R.Object) -> R.Object:
        return x
'''


def test_the_text_comes_back_as_it_was() -> None:
    mod = relaxlang.parse(TEXT)
    assert list(mod.python) == ["host", "short"] and list(mod.functions) == ["main"]
    assert mod.script() == TEXT
    again = relaxlang.parse(mod.script())
    relaxlang.assert_structural_equal(again, mod)
    assert not relaxlang.structural_equal(relaxlang.parse(TEXT.replace('"it"', '"is"')), mod)


def test_it_survives_passes_and_formatting() -> None:
    mod = relaxlang.parse(TEXT)
    assert relaxlang.transform.Normalize()(mod).python == mod.python
    assert format_source(Source("m.rlx", TEXT)) == TEXT


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("@I.ir_module\nclass M:\n    @I.pyfunc\n    x = 3\n", "RLX0011"),
        ("@I.pyfunc\ndef f(): pass\n@I.pyfunc\ndef f(): pass\n", "RLX0145"),
        ("@R.function\ndef f(x: R.Object):\n    @I.pyfunc\n    def g(): yield 1\n    return x\n", "RLX0320"),
    ],
)
def test_faults(text: str, code: str) -> None:
    with pytest.raises(relaxlang.DiagnosticError) as caught:
        relaxlang.parse(text)
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_an_open_bracket_ends_with_the_next_function() -> None:
    text = "@I.pyfunc\ndef f():\n    x = ((\n\n\n@R.function\ndef g(x: R.Object) -> R.Object:\n    return x\n"
    mod = relaxlang.parse(text)
    assert list(mod.python) == ["f"] and list(mod.functions) == ["g"]
