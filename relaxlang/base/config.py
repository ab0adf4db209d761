"""The environment variables that relaxlang reads, in one place.

| variable | meaning | default |
|---|---|---|
| `RELAXLANG_CACHE_DIR` | directory of compiled kernels and programs | `relaxlang` in the user's cache directory |
| `RELAXLANG_CACHE` | `0` turns the on-disk cache off | `1` |
| `RELAXLANG_STATE_DIR` | directory of the REPL's history | `relaxlang` in the user's state directory |
| `RELAXLANG_NUM_THREADS` | threads of parallel loops | the processors that this process may use |
| `RELAXLANG_BLAS` | path of the BLAS library that programs call | a wheel's, else the system's |
| `RELAXLANG_CHECK` | `1`: verify the module after every pass, freeze IR nodes | `0` |
| `RELAXLANG_TRACEBACK` | `1`: show Python's traceback of an internal error | `0` |

`relaxc` also reads settings of its options, such as `RELAXLANG_TARGET` (`cli/configuration.py`).
The REPL also reads what other programs read: `VISUAL` and `EDITOR`, `PAGER`, `TERM`.
A directory set to nothing turns off what it is for; a switch is off when it is empty, `0`, `false`, `no` or `off`.
NO_COLOR and FORCE_COLOR are `base.colors`' business.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from relaxlang.base.diagnostics import RelaxlangError


class Config:
    """The settings of one environment; each is read when it is asked for, so a changed variable counts at once."""

    __slots__ = ("_environ",)

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    @property
    def cache_dir(self) -> Path | None:
        """The directory of the on-disk cache, which may not exist yet; None when it is off or there is no home."""
        if not self._switch("RELAXLANG_CACHE", default=True):
            return None
        return self._directory("RELAXLANG_CACHE_DIR", "XDG_CACHE_HOME", ".cache", "Library/Caches")

    @property
    def state_dir(self) -> Path | None:
        """The directory of the REPL's history, which may not exist yet; None when it is off or there is no home."""
        return self._directory("RELAXLANG_STATE_DIR", "XDG_STATE_HOME", ".local/state", "Library/Application Support")

    @property
    def num_threads(self) -> int:
        """How many threads a parallel loop uses, at least 1; `RelaxlangError` when the variable is no such number."""
        text = self._environ.get("RELAXLANG_NUM_THREADS", "").strip()
        if not text:
            return usable_processors()
        if not text.isdecimal() or int(text) < 1:
            raise RelaxlangError(f"RELAXLANG_NUM_THREADS must be a whole number from 1, not `{text}`")
        return int(text)

    @property
    def blas(self) -> str:
        """The path of the BLAS library to use, empty where nothing is said."""
        return self._environ.get("RELAXLANG_BLAS", "").strip()

    @property
    def check(self) -> bool:
        """Whether nodes are frozen at run time and every pass's result is verified."""
        return self._switch("RELAXLANG_CHECK", default=False)

    @property
    def traceback(self) -> bool:
        """Whether an internal error shows where in relaxlang's code it happened."""
        return self._switch("RELAXLANG_TRACEBACK", default=False)

    def option(self, name: str) -> str:
        """The value that the environment gives an option of `relaxc`; empty when it gives none."""
        return self._environ.get("RELAXLANG_" + name.upper().replace("-", "_"), "").strip()

    @property
    def editor(self) -> str:
        """The command line of the user's text editor; empty when none is named."""
        return self._environ.get("VISUAL") or self._environ.get("EDITOR") or ""

    @property
    def pager(self) -> str:
        """The command line of the user's pager; empty when none is named."""
        return self._environ.get("PAGER", "")

    @property
    def dumb_terminal(self) -> bool:
        """Whether the terminal can only print lines."""
        return self._environ.get("TERM", "") in ("dumb", "unknown")

    def _switch(self, name: str, default: bool) -> bool:
        text = self._environ.get(name)
        return default if text is None else text.strip().lower() not in ("", "0", "false", "no", "off")

    def _directory(self, name: str, xdg: str, unix: str, mac: str) -> Path | None:
        given = self._environ.get(name)
        if given is not None:
            return Path(os.path.expanduser(given)) if given else None
        base = self._environ.get(xdg, "")
        if not os.path.isabs(base):  # the XDG specification: relative paths are invalid and to be ignored
            home = self._environ.get("HOME") or os.path.expanduser("~")
            if sys.platform == "win32":
                base = self._environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
            else:
                base = os.path.join(home, mac if sys.platform == "darwin" else unix)
        return Path(base) / "relaxlang" if os.path.isabs(base) else None


def usable_processors() -> int:
    """The processors that this process may run on, at least 1 (an affinity mask counts where the system has one)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


config = Config()
