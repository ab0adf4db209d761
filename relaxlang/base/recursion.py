"""Room for recursion: passes walk trees by calling themselves, and a user's tree may be thousands of levels deep."""

from __future__ import annotations

import sys
from threading import Lock

DEEP = 60_000

_lock = Lock()
_before: list[int] = []
"""The limit that the outermost of all contexts that are open, in whatever thread, found; one entry for each context."""


class deep_recursion:
    """Within it Python functions may nest `DEEP` calls (since Python 3.11 such calls take no C stack).

    The limit is the whole process's, so it is put back when the last thread leaves.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        with _lock:
            limit = sys.getrecursionlimit()
            _before.append(_before[0] if _before else limit)
            if limit < DEEP:
                sys.setrecursionlimit(DEEP)

    def __exit__(self, *exc: object) -> None:
        with _lock:
            before = _before.pop()
            if not _before:
                sys.setrecursionlimit(before)
