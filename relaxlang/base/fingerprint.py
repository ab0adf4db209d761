"""What every result of the compiler depends on besides its input: relaxlang itself and what it stands on.

A program can add to the compiler while it runs: passes, target tags, tensor intrinsics. No key on disk can name such
code, so once there is any (`note_addition`), whole results are not kept any more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from relaxlang.base.resources import resource_dir
from relaxlang.base.store import key_of
from relaxlang.base.version import __version__

_PACKAGES = ("numpy", "llvmlite", "ml_dtypes")
_additions: set[str] = set()


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """A digest of Python's version, the packages' places and times, and size and time of every file of relaxlang."""
    parts = [__version__, sys.version]
    for name in _PACKAGES:
        spec = find_spec(name)  # which does not import it
        if spec is not None and spec.origin is not None:
            parts += (spec.origin, str(os.stat(spec.origin).st_mtime_ns))
    package = Path(__file__).resolve().parent.parent
    for folder in dict.fromkeys((package, resource_dir("grammar"), resource_dir("stdlib"))):
        parts += _files(str(folder))
    return key_of(*parts)


def note_addition(name: str) -> None:
    """Remember that the program has added `name` to the compiler."""
    _additions.add(name)


def has_additions() -> bool:
    """Whether the program has added anything to the compiler."""
    return bool(_additions)


def _files(folder: str) -> Iterator[str]:
    """Name, size and time of the files below a folder, in a fixed order."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files(entry.path)
        else:
            status = entry.stat()
            yield f"{entry.name} {status.st_size} {status.st_mtime_ns}"
