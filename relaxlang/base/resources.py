"""Where things are on disk: the grammar and the operator library that ship with the package, and the user's cache.

`grammar/` and `stdlib/` stand beside the package in a checkout and inside it in a wheel. What is made of their files,
such as parser tables, is kept like Python's bytecode, or comes with the wheel. The cache is a directory of small files
that can be remade at any time; a missing, read-only or damaged cache costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Literal

from relaxlang.base.config import config
from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.base.files import write_atomically


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


def read_made(origin: Path, key: str) -> bytes | None:
    """What `keep_made` stored for the shipped file `origin` under the same `key`, a text of everything that it depends
    on; None when there is nothing, or when it is damaged."""
    for place in (shipped_place(origin), *_places(origin, key)):
        try:
            stored = place.read_bytes()
        except OSError:
            continue
        digest, data = stored[:_DIGEST], stored[_DIGEST:]
        if _digest(key, data) == digest:
            return data
    return None


def keep_made(origin: Path, key: str, data: bytes) -> None:
    """Store what was made of a shipped file, whole or not at all, whatever other processes do at the same time.

    It is kept as Python keeps bytecode: in `__pycache__` beside its origin or below `sys.pycache_prefix`, else, where
    that cannot or shall not be written, in the user's cache. Where nothing can be written it is made again next time.
    """
    for place in _places(origin, key):
        if place.parent != cache_dir() and sys.dont_write_bytecode:
            continue
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(place, made_content(key, data))
        except (OSError, RelaxlangError):
            continue
        return


def shipped_place(origin: Path) -> Path:
    """Where a wheel has what is made of the shipped file `origin`, so that nobody need make it; see `made_content`."""
    return origin.with_name(f"{origin.name}.json")


def made_content(key: str, data: bytes) -> bytes:
    """What a file holds that keeps `data` for `read_made`, which takes no notice of it once `key` is another."""
    return _digest(key, data) + data


_DIGEST = 32


def _digest(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + data).digest()


def _places(origin: Path, key: str) -> Iterator[Path]:
    """Where what is made of `origin` may be: beside it, where the newest replaces the last; in the user's cache, where
    that of several installations may be."""
    if sys.implementation.cache_tag is not None:
        yield Path(cache_from_source(str(origin))).parent / f"{origin.name}.json"
    directory = cache_dir()
    if directory is not None:
        yield directory / f"{origin.stem}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
