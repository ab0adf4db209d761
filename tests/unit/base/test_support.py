"""Codes, suggestions, colours, settings and atomic files."""

import io
import os
import stat
from pathlib import Path

import pytest

from relaxlang.base import files
from relaxlang.base.codes import CODES, explain
from relaxlang.base.colors import paint, wants_color
from relaxlang.base.config import Config
from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.base.files import write_atomically
from relaxlang.base.suggest import did_you_mean


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("spelling", ["RLX0203", "rlx203", " 203 "])
def test_explain(spelling: str) -> None:
    text = explain(spelling)
    assert text.startswith("RLX0203: ") and "Wrong:\n\n    " in text and "Right:\n\n    " in text


def test_explain_unknown_code() -> None:
    with pytest.raises(RelaxlangError, match=r"there is no diagnostic code `RLX9991`; did you mean `RLX90"):
        explain("RLX9991")


def test_codes_have_title_and_explanation() -> None:
    for code, info in CODES.items():
        assert len(code) == 7 and code.startswith("RLX") and code[3:].isdecimal()
        assert info.title and not info.title.endswith(".") and len(info.explanation) > 20, code
        assert bool(info.wrong) == bool(info.right) or info.wrong, code


@pytest.mark.parametrize(
    ("word", "expected"),
    [("reluu", "nn.relu"), ("relu", "nn.relu"), ("Matmul", "matmul"), ("fuse_ops", "fuse-ops"), ("mtmul", "matmul"),
     ("qqqqq", None), ("", None), ("matmul", None)],
)  # fmt: skip
def test_did_you_mean(word: str, expected: str | None) -> None:
    assert did_you_mean(word, ["nn.relu", "matmul", "fuse-ops"]) == expected


def test_colors_obey_choice_then_environment_then_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert wants_color(Terminal()) and not wants_color(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_color(Terminal())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert wants_color(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color(Terminal()) and wants_color(Terminal(), "always")
    monkeypatch.delenv("NO_COLOR")
    assert not wants_color(Terminal(), "never")
    assert paint("x", "bold red") == "\033[1;31mx\033[0m" and paint("x", "") == "x" and paint("", "red") == ""


def test_settings() -> None:
    home = Path("ann").absolute()
    default = Config({"HOME": str(home), "XDG_CACHE_HOME": "relative/is/ignored"})
    assert not default.check and default.num_threads >= 1
    assert default.cache_dir is not None and default.cache_dir.is_relative_to(home)
    assert default.state_dir is not None and default.state_dir.is_relative_to(home)
    assert default.cache_dir != default.state_dir and default.cache_dir.name == "relaxlang"
    off = Config({"RELAXLANG_CACHE": "0", "RELAXLANG_CHECK": "1", "RELAXLANG_NUM_THREADS": " 3 "})
    assert (off.cache_dir, off.check, off.num_threads) == (None, True, 3)
    assert Config({"RELAXLANG_CACHE_DIR": "c"}).cache_dir == Path("c")
    assert Config({"RELAXLANG_CACHE_DIR": ""}).cache_dir is None


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_wrong_number_of_threads(value: str) -> None:
    with pytest.raises(RelaxlangError, match=f"RELAXLANG_NUM_THREADS must be a whole number from 1, not `{value}`"):
        Config({"RELAXLANG_NUM_THREADS": value}).num_threads  # noqa: B018 - reading is what raises


def test_write_replaces_keeps_mode_and_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    write_atomically(target, "ä\r\n")
    assert target.read_bytes() == "ä\r\n".encode()
    target.chmod(0o750)
    write_atomically(str(target), b"\x00\xff")
    assert target.read_bytes() == b"\x00\xff" and stat.S_IMODE(target.stat().st_mode) == 0o750
    assert os.listdir(tmp_path) == ["a.txt"]


def test_write_follows_links_and_devices(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"
    write_atomically(os.devnull, "gone")
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)


def test_new_files_obey_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [("", "x", "is a directory"), ("no/such/a", "x", "no such file"), ("a\0b", "x", "null"), ("a", "\ud800", "UTF-8"),
     ("n" * 300, "x", "too long")],
)  # fmt: skip
def test_impossible_writes(tmp_path: Path, name: str, data: str, message: str) -> None:
    with pytest.raises(RelaxlangError, match=message):
        write_atomically(os.path.join(tmp_path, name), data)
    assert os.listdir(tmp_path) == []


def test_a_failure_half_way_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a"
    target.write_text("old")

    def no_space(old: str, new: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", no_space)
    with pytest.raises(RelaxlangError, match=r"cannot write .*: no space left on device"):
        write_atomically(target, "new")
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["a"]


def test_read_only_target_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)  # root may write anything
    with pytest.raises(RelaxlangError, match="read-only"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
