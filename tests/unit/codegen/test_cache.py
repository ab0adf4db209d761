"""The cache of object code, and compilation from many threads."""

import threading
from pathlib import Path

import numpy as np
import pytest
from compiled import compiled, prim_func

from relaxlang.base.store import trim
from relaxlang.codegen import cache
from relaxlang.codegen.target import Target


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("RELAXLANG_CACHE", raising=False)
    return tmp_path / "kernels"


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.entry"))


def compile_nothing(calls: list[str]):
    def compile(text: str, target: Target) -> bytes:
        calls.append(text)
        return b"object of " + text.encode()

    return compile


def test_the_same_text_is_compiled_once(folder: Path) -> None:
    calls: list[str] = []
    for text in ("a", "b", "a"):
        assert cache.fetch(text, Target(), compile_nothing(calls)) == b"object of " + text.encode()
    assert cache.fetch("a", Target("llvm -mcpu=x86-64"), compile_nothing(calls)) == b"object of a"
    assert calls == ["a", "b", "a"] and len(entries(folder)) == 3


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-1], lambda data: data[:40] + b"x" + data[41:]]
)
def test_a_damaged_entry_is_compiled_again(folder: Path, damage) -> None:
    calls: list[str] = []
    cache.fetch("some text", Target(), compile_nothing(calls))
    (entry,) = entries(folder)
    entry.write_bytes(damage(entry.read_bytes()))
    assert cache.fetch("some text", Target(), compile_nothing(calls)) == b"object of some text"
    assert len(calls) == 2
    cache.fetch("some text", Target(), compile_nothing(calls))
    assert len(calls) == 2


def test_a_directory_that_cannot_be_used_means_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path / "file"))
    assert cache.fetch("a", Target(), compile_nothing([])) == b"object of a"
    monkeypatch.setenv("RELAXLANG_CACHE", "0")
    assert cache.fetch("a", Target(), compile_nothing([])) == b"object of a"


def test_entries_used_least_recently_go_first(folder: Path) -> None:
    import os

    for k, text in enumerate("abcd"):
        cache.fetch(text, Target(), lambda text, target: b"x" * 1000)
        newest = max(entries(folder), key=lambda p: p.stat().st_mtime)
        os.utime(newest, (k, k))
    trim(str(folder), 2500)
    assert len(entries(folder)) == 2
    assert sorted(p.stat().st_mtime for p in entries(folder)) == [2, 3]


def test_kernels_compiled_by_many_threads(folder: Path) -> None:
    wrong: list[int] = []

    def run(k: int) -> None:
        for turn in range(3):
            mod = prim_func(
                'A: T.Buffer((9,), "float32")', f"for i in range(9):\n    A[i] = A[i] * T.float32({k * 3 + turn})"
            )
            a = np.ones(9, "float32")
            compiled(mod)(a)
            if not (a == k * 3 + turn).all():
                wrong.append(k)

    workers = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong and len(entries(folder)) == 24
