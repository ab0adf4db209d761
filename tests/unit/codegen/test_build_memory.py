"""Constants of programs on disk: made where they will be kept, and what becomes of them."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import relaxlang
import relaxlang.driver
from relaxlang.base import fingerprint, store
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen import build_cache
from relaxlang.syntax.side_file import side_file_bytes

MATMUL = """
@R.function
def main(x: R.Tensor((3, 64, 256), "float32")) -> R.Tensor((3, 64, 256), "float32"):
    w = R.const(I.array("{digest}", "float32", (256, 256)))
    with R.dataflow():
        y = R.matmul(x, w)
        R.output(y)
    return y
"""
WIDE = np.random.default_rng(2).standard_normal((256, 256), dtype="float32")
ROWS = np.random.default_rng(3).standard_normal((3, 64, 256), dtype="float32")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder; everything is worth keeping, and nothing has been added to the compiler."""
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("RELAXLANG_CACHE", "RELAXLANG_CHECK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(build_cache, "WORTHWHILE", 0.0)
    monkeypatch.setattr(fingerprint, "_additions", set())
    return tmp_path / "cache" / "builds"


@pytest.fixture
def packed(tmp_path: Path) -> str:
    """A file with a constant that stays in the side file until a build lays it out in another way."""
    from relaxlang.syntax.scalars import array_digest

    path, digest = tmp_path / "packed.rlx", array_digest(WIDE)
    path.write_text(MATMUL.format(digest=digest))
    side = path.with_suffix(".weights.npz")
    side.write_bytes(side_file_bytes({digest: WIDE}))
    while time.time_ns() - side.stat().st_ctime_ns < 150_000_000:  # until a change of the file shows in its times
        time.sleep(0.01)
    return str(path)


def build(path: str):
    return relaxlang.build(relaxlang.load(path))


def entries(folder: Path) -> list[Path]:
    return list(folder.rglob("*.entry"))


def data_files(folder: Path) -> list[Path]:
    return list(folder.rglob("*.data"))


def is_kept(path: str) -> bool:
    """Whether the program comes from the cache, right in any case."""
    mod = relaxlang.load(path)
    check(relaxlang.build(mod))
    return not mod.is_read


def check(built) -> None:
    np.testing.assert_allclose(built["main"](ROWS), ROWS @ WIDE, atol=1e-4)


def large_constants(built) -> list[np.ndarray]:
    return [c for c in built.executable.constants if isinstance(c, np.ndarray) and c.nbytes >= WIDE.nbytes]


@pytest.mark.skipif(sys.platform != "linux", reason="no files without names")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_constants_are_made_in_the_file_that_keeps_them(
    packed: str, folder: Path, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setattr(build_cache, "MANY", 0)
    monkeypatch.setattr(build_cache, "usable_processors", lambda: 2)
    monkeypatch.setenv("RELAXLANG_NUM_THREADS", threads)
    first = build(packed)
    (constant,) = large_constants(first)
    (data,) = data_files(folder)
    assert data.stat().st_size == constant.nbytes
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if f" {data.stat().st_ino} " in line]
    (place,) = (line.split()[0] for line in mapped)
    begin, end = (int(part, 16) for part in place.split("-"))
    assert begin <= constant.ctypes.data < end and "r--s" in mapped[0]
    with pytest.raises(ValueError):
        constant.flags.writeable = True
    check(first)
    second = build(packed)
    assert second.executable == first.executable
    check(second)


def test_programs_outlive_their_weights_and_the_cache(packed: str, folder: Path) -> None:
    mod = relaxlang.load(packed)
    built = relaxlang.build(mod)
    side = Path(packed).with_suffix(".weights.npz")
    with side.open("r+b") as stream:  # as `numpy.savez` does
        stream.truncate(0)
    store.clear()
    check(built)
    with pytest.raises(DiagnosticError, match="have changed since they were loaded"):
        relaxlang.interpret(mod, "main", ROWS)


@pytest.mark.parametrize("trouble", ["posix_fallocate", "link", "O_TMPFILE"])
def test_builds_go_on_without_room_or_a_name(
    packed: str, folder: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    if not hasattr(os, trouble):
        pytest.skip("not of this system")

    def refuse(*args: object, **more: object) -> None:
        raise OSError(28, "no space left on device")

    if trouble == "O_TMPFILE":
        monkeypatch.delattr(os, trouble)
    else:
        monkeypatch.setattr(os, trouble, refuse)
    check(build(packed))
    assert len(entries(folder)) == len(data_files(folder)) == 1  # written as a whole
    assert is_kept(packed)


def test_the_cache_may_be_cleared_during_a_build(packed: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate = relaxlang.driver.generate

    def clear_and_generate(*args):
        store.clear()
        return generate(*args)

    monkeypatch.setattr("relaxlang.driver.generate", clear_and_generate)
    check(build(packed))
    assert is_kept(packed)


def test_a_failing_build_leaves_nothing(packed: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise DiagnosticError([])

    monkeypatch.setattr("relaxlang.driver.generate", fail)
    with pytest.raises(DiagnosticError):
        build(packed)
    assert not data_files(folder.parent)


@pytest.mark.skipif(not store.this_boot(), reason="nothing tells when this machine was started")
def test_data_that_may_not_be_on_the_disk_is_good_until_the_machine_is_started_again(
    packed: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(packed)
    assert is_kept(packed)
    monkeypatch.setattr(build_cache, "this_boot", lambda: "the next one")
    assert not is_kept(packed) and is_kept(packed)
    monkeypatch.setattr(build_cache, "WRITTEN", -1)
    assert is_kept(packed)  # and written to the disk from now on
    monkeypatch.setattr(build_cache, "this_boot", lambda: "the one after that")
    assert is_kept(packed) and len(data_files(folder)) == 1
