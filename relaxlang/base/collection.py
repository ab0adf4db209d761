"""Python's search for cycles of garbage, less often while compiling: that makes many objects that live long, and few
cycles, so that looking through all of them again and again takes a tenth of the time and finds nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

RARE = 1_000_000
"""New objects, some 100 bytes each, between two searches; Python's own choice is some hundreds."""

_lock = Lock()
_before: list[int] = []
"""What the outermost of all contexts that are open, in whatever thread, found; one entry for each context."""
_unsearched = 0
"""New objects of contexts that are over, since the last search through all objects."""


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Within it Python searches for garbage once in `RARE` new objects, unless it does so less often or never anyway.

    The setting is the whole process's, so it is put back when the last thread leaves.
    """
    with _lock:
        _before.append(_before[0] if _before else gc.get_threshold()[0])
        if 0 < gc.get_threshold()[0] < RARE:
            gc.set_threshold(RARE)
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            due = not _before and before > 0 and not _put_off()
            if not _before:
                gc.set_threshold(before)
        if due:
            gc.collect()


def _put_off() -> bool:
    """Hand all objects on to the oldest generation without looking at them, where there is no need yet: else the next
    new object would have Python search all those that were made within the context."""
    global _unsearched
    _unsearched += gc.get_count()[0]
    if not gc.isenabled() or gc.get_freeze_count():  # objects that somebody else froze stay frozen
        return True
    if _unsearched > RARE:
        _unsearched = 0
        return False
    gc.freeze()
    gc.unfreeze()
    return True
