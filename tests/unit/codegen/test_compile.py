"""How hard LLVM tries with a text."""

import pytest

from relaxlang.codegen import compile
from relaxlang.codegen.context import VECTORS
from relaxlang.codegen.target import Target

TEXT = "define void @f(ptr %p) {\n  store float 0.0, ptr %p, align 4\n  ret void\n}\n"


@pytest.mark.parametrize(("head", "tidied"), [("", False), (VECTORS, True)])
def test_texts_in_vector_form_are_only_tidied(head: str, tidied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    tidy = compile._tidy
    monkeypatch.setattr(compile, "_tidy", lambda machine, module: (seen.append(module), tidy(machine, module)))
    compile.optimized(head + TEXT, Target())
    assert bool(seen) is tidied


def test_what_is_written_by_hand_stays_as_it_is() -> None:
    text = "define i32 @f(i32 %x) {\n  %y = add i32 %x, 0\n  ret i32 %y\n}\n"
    assert compile.assembled(text, Target())
    assert "add i32" in str(compile.parsed(text)) and "add i32" not in str(compile.optimized(text, Target()))
