"""How hard LLVM tries with a text."""

import pytest

from relaxlang.codegen import compile
from relaxlang.codegen.context import VECTORS
from relaxlang.codegen.target import Target

VECTOR = "  store <4 x float> zeroinitializer, ptr %p, align 4\n"
SCALAR = "  store float 0.0, ptr %p, align 4\n"


@pytest.mark.parametrize(
    ("head", "stores", "tidied"),
    [
        ("", SCALAR * 5, False),
        (VECTORS, SCALAR * 5, True),
        ("", VECTOR * 5, False),
        ("", VECTOR * 2000 + SCALAR * 100, True),
        ("", VECTOR * 1000 + SCALAR * 1000, False),
    ],
    ids=["short", "vectors alone", "short vectors", "long", "long scalars"],
)
def test_long_texts_of_vectors_are_only_tidied(
    head: str, stores: str, tidied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    tidy = compile._tidy
    monkeypatch.setattr(compile, "_tidy", lambda machine, module: (seen.append(module), tidy(machine, module)))
    text = f"{head}define void @f(ptr %p) {{\n{stores}  ret void\n}}\n"
    compile.optimized(text, Target())
    assert bool(seen) is tidied


def test_what_is_written_by_hand_stays_as_it_is() -> None:
    text = "define i32 @f(i32 %x) {\n  %y = add i32 %x, 0\n  ret i32 %y\n}\n"
    assert compile.assembled(text, Target())
    assert "add i32" in str(compile.parsed(text)) and "add i32" not in str(compile.optimized(text, Target()))
