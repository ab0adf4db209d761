"""Where things are on disk: the grammar and the operator library that ship with the package, and the user's cache.

`grammar/` and `stdlib/` stand beside the package in a checkout and inside it in a wheel. The cache is a directory of
small files that can be remade at any time; a missing, read-only or damaged cache costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Literal

from relaxlang.base.config import config
from relaxlang.base.diagnostics import RelaxlangError


@cache
def resource_dir(name: Literal["grammar", "stdlib"]) -> Path:
    """The directory `grammar` or `stdlib`; raises `RelaxlangError` when the installation lacks it."""
    package = Path(__file__).resolve().parent.parent
    for place in (package / name, package.parent / name):
        if place.is_dir():
            return place
    raise RelaxlangError(f"this installation of relaxlang has no `{name}` directory; install it again")


def grammar_text(name: str) -> str:
    """The text of `grammar/<name>.lark`."""
    return (resource_dir("grammar") / f"{name}.lark").read_text(encoding="utf-8")


def cache_dir() -> Path | None:
    """The user's cache directory (see `base.config`), which may not exist yet; None when caching is off."""
    return config.cache_dir


def cache_read(name: str) -> bytes | None:
    """The bytes that `cache_write` stored under `name`; None when there are none, or when they are damaged."""
    directory = cache_dir()
    if directory is None:
        return None
    try:
        stored = (directory / name).read_bytes()
    except OSError:
        return None
    digest, data = stored[:32], stored[32:]
    return data if hashlib.sha256(data).digest() == digest else None


def cache_write(name: str, data: bytes) -> None:
    """Store `data` under `name`, whole or not at all, whatever other processes do at the same time.

    A cache that cannot be written (read-only home, full disk) is no error: the data is made again next time.
    """
    directory = cache_dir()
    if directory is None:
        return
    temporary = None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(temporary, directory / name)
    except OSError:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
