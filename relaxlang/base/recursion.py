"""Room for recursion: passes walk trees by calling themselves, and a user's tree may be thousands of levels deep."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

DEEP = 60_000


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Within it Python functions may nest `DEEP` calls (since Python 3.11 such calls take no C stack)."""
    before = sys.getrecursionlimit()
    if before < DEEP:
        sys.setrecursionlimit(DEEP)
    try:
        yield
    finally:
        if before < DEEP:
            sys.setrecursionlimit(before)
