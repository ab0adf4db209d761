"""relaxc and the programs on disk: the second run needs no passes, and nobody can tell by what it says."""

from pathlib import Path

import pytest

from relaxlang.base import fingerprint
from relaxlang.codegen import build_cache


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("RELAXLANG_CACHE", raising=False)
    monkeypatch.setattr(build_cache, "WORTHWHILE", 0.0)
    monkeypatch.setattr(fingerprint, "_additions", set())
    return tmp_path / "cache"


def kept(folder: Path) -> int:
    return len(list((folder / "builds").rglob("*.entry")))


def forbid_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every pass fail that is run from now on."""

    def apply(context, step, mod):
        raise AssertionError(f"{step} runs")

    monkeypatch.setattr("relaxlang.passes.base.PassContext.apply", apply)


RUN = ["mlp.rlx", "--run", "--random=1", "--dim", "n=3"]


def test_the_second_run_needs_no_passes(run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(*RUN)
    assert first.code == 0 and kept(folder) == 1
    with monkeypatch.context() as patch:
        forbid_passes(patch)
        assert run(*RUN) == first
        assert run("mlp.rlx", "-o", "again.rlxe").code == 0
    monkeypatch.setenv("RELAXLANG_CACHE", "0")
    assert run("mlp.rlx", "-o", "fresh.rlxe").code == 0
    assert Path("again.rlxe").read_bytes() == Path("fresh.rlxe").read_bytes()


@pytest.mark.parametrize(
    "option",
    ["--timing", "--stats", "--print-ir-after=fuse-ops", "--verify-each", "--trace=-", "-O1", "--skip=fuse-ops",
     "--bisect-limit=100", "--pipeline=default"],
)  # fmt: skip
def test_who_wants_to_see_passes_sees_them(run, folder: Path, option: str) -> None:
    run(*RUN)
    count = kept(folder)
    done = run(*RUN, option)
    assert done.code == 0 and kept(folder) == count == 1
    if option in ("--timing", "--stats"):
        assert "fuse-ops" in done.err
    if option.startswith("--print-ir"):
        assert "# after fuse-ops" in done.err or "fuse-ops" in done.err


def test_what_is_compiled_for_counts(run, folder: Path) -> None:
    assert run(*RUN).out.split()[0] == run(*RUN, "--target=llvm -mcpu=x86-64").out.split()[0]
    assert run(*RUN, "--mod-name=other").code == 0
    assert kept(folder) == 3


def test_faults_are_told_every_time(run, folder: Path) -> None:
    Path("bad.rlx").write_text("@R.function\ndef main(x: R.Tensor((2, 3), 'float32')):\n    return R.matmul(x, x)\n")
    first = run("bad.rlx")
    assert first.code == 1 and "error[RLX" in first.err
    assert run("bad.rlx") == first and kept(folder) == 0


def test_the_cache_can_be_cleared(run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(*RUN)
    done = run("--clear-cache")
    assert done.code == 0 and done.out.endswith(f"removed from {folder}\n") and kept(folder) == 0
    assert run("--clear-cache").out.startswith("0 ")
    monkeypatch.setenv("RELAXLANG_CACHE", "0")
    assert run("--clear-cache").out == "the cache is off\n"
