"""Native programs and this machine's description, from the cache."""

from pathlib import Path

import numpy as np
import pytest
from native_programs import PROGRAMS

import relaxlang
from relaxlang.base.store import KERNELS
from relaxlang.codegen import target
from relaxlang.codegen.native import stored
from relaxlang.codegen.native.table import FIXED, MAKERS
from relaxlang.runtime.executable import Executable


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("RELAXLANG_CACHE", raising=False)
    monkeypatch.delenv("RELAXLANG_CHECK", raising=False)
    return tmp_path / "kernels"


def executable(name: str) -> Executable:
    return relaxlang.build(relaxlang.parse(PROGRAMS[name].text)).executable


def refuse(executable: Executable, observed: bool):
    raise AssertionError("the program is written again")


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("name", ["mlp", "closures", "tuples", "data-dependent", "effects", "views", "scalars"])
def test_a_program_is_written_once(name: str, observed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ex = executable(name)
    code, entries = stored.program(ex, observed)
    monkeypatch.setattr(stored, "_write", refuse)
    again, found = stored.program(ex, observed)
    assert again == code and [(e.key, e.word) for e in found] == [(e.key, e.word) for e in entries]
    with pytest.raises(AssertionError):
        stored.program(ex, not observed)


def test_what_a_program_depends_on() -> None:
    text = "@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    return R.add(x, R.const([{}, 1], 'float32'))\n"
    first, second = (relaxlang.build(relaxlang.parse(text.format(k))) for k in (1, 2))
    for built, k in ((first, 1), (second, 2), (first, 1)):
        np.testing.assert_array_equal(built["main"](np.zeros(2, "float32")), [k, 1])


def test_damage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ex = executable("closures")
    before = set(folder.rglob("*.entry"))
    code, _ = stored.program(ex, False)
    made = [p for p in folder.rglob("*.entry") if p not in before]
    for path in made:
        path.write_bytes(path.read_bytes()[:-5])
    assert stored.program(ex, False)[0] == code
    for content in (b"", b"(", b"\x00" * 40):
        for path in made:
            KERNELS.write(path.name.removesuffix(".entry"), content)
        monkeypatch.setattr("relaxlang.codegen.native.writing.cache.fetch", lambda text, target, compile: code)
        assert stored.program(ex, False)[0] == code


def test_every_entry_has_a_name() -> None:
    assert len(set(MAKERS)) == len(MAKERS) and len(set(map(id, FIXED))) == len(FIXED)


def test_the_processor_is_what_llvm_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = target._ask_llvm()
    described = iter(["one", "one", "another", "one", ""])
    monkeypatch.setattr(target, "_processor", lambda: next(described))
    asked = []
    monkeypatch.setattr(target, "_ask_llvm", lambda: asked.append(1) or real)
    for times in (1, 1, 2):
        target.probe.cache_clear()
        assert target.probe() == real and len(asked) == times
    for path in folder.rglob("*.entry"):
        path.write_bytes(path.read_bytes()[:-1])
    for times in (3, 4):
        target.probe.cache_clear()
        assert target.probe() == real and len(asked) == times


def test_what_changes_while_a_processor_runs_does_not_count() -> None:
    said = target._processor()
    assert "MHz" not in said and said == target._processor()
