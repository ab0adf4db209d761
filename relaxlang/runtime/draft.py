"""Memory that is a file already: constants are made where the cache of builds will keep them.

Every page that is touched for the first time costs more than reading it later a hundred times, so a constant that is
made in memory of its own and then written to a file is paid for twice. A `Draft` is a file without a name in the folder
of a `Store`, of which `take` gives pieces; `publish` gives it a name. A process that ends before leaves nothing behind,
and nobody else sees a draft. Room on the disk is claimed before a piece is given away, so that touching it never fails.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from functools import cache
from threading import RLock, Thread
from typing import Any

import numpy as np

from relaxlang.base.store import Stamp, Store

_ALIGN = 64
_FIRST_STEPS, _STEP = 64 << 10, 2 << 20
"""Bytes by which a draft grows: a few while it is smaller than a huge page, then as many as that has."""
_POPULATE_WRITE = 23
"""Linux's `MADV_POPULATE_WRITE`: a page is had for less when it is asked for together with its neighbours."""


class _Piece(np.ndarray[Any, Any]):
    """Bytes of a draft, which get them back when nothing refers to them."""

    __slots__ = ("_draft", "_at")
    _draft: Draft
    _at: int

    def __del__(self) -> None:
        draft = getattr(self, "_draft", None)  # a slice has the class and owns nothing
        if draft is not None:
            draft._give_back(self._at, self.nbytes)


class Draft:
    """The big data of an entry of a store, in the making."""

    def __init__(self, handle: int, capacity: int) -> None:
        self._close = weakref.finalize(self, os.close, handle)
        self._handle = handle
        os.ftruncate(handle, capacity)  # Python maps no more than there is; what is not claimed is never touched
        self._memory = mmap.mmap(handle, capacity)
        os.ftruncate(handle, 0)
        self._view = memoryview(self._memory)
        self._address = int(np.frombuffer(self._view, np.uint8, 1).__array_interface__["data"][0])
        self._capacity = capacity
        self._claimed = self._end = 0
        self._holes: dict[int, int] = {}  # where one begins and ends
        self._is_open = True
        self._preparing: Thread | None = None
        self._lock = RLock()  # the garbage collector may give back in the middle of everything

    @staticmethod
    def begin(store: Store) -> Draft | None:
        """A draft in the folder of a store; None where there can be none."""
        if sys.platform != "linux":
            return None
        opened = store.open_unnamed()
        if opened is None:
            return None
        handle, capacity = opened
        try:
            return Draft(handle, capacity - capacity % _STEP)
        except (OSError, ValueError, OverflowError):  # too much for this process's limits
            return None

    @property
    def size(self) -> int:
        """The bytes up to the end of the last piece that is in use."""
        return self._end

    def take(self, nbytes: int) -> np.ndarray[Any, Any] | None:
        """A piece of at least `nbytes` bytes with undefined content, aligned to 64; None when the disk has no more."""
        size = nbytes + -nbytes % _ALIGN
        with self._lock:
            claimed = self._claimed
            at = self._find(size) if self._is_open else None
            if at is None:
                return None
            piece = np.ndarray.__new__(_Piece, size, np.uint8, self._view, at)
            piece._draft, piece._at = self, at
            fresh = claimed, self._claimed
        self._populate(*fresh)
        return piece

    def prepare(self, nbytes: int) -> None:
        """Let a thread have the first `nbytes` bytes ready before they are asked for."""
        arguments = weakref.ref(self), min(nbytes, self._capacity)
        self._preparing = Thread(target=_prepare, args=arguments, name="relaxlang-memory", daemon=True)
        self._preparing.start()

    def offset(self, array: np.ndarray[Any, Any]) -> int | None:
        """Where in the file an array lies; None when it is elsewhere."""
        at = int(array.__array_interface__["data"][0]) - self._address
        return at if 0 <= at < self._end and array.flags.c_contiguous and at % _ALIGN == 0 else None

    def publish(self, store: Store, key: str) -> tuple[str, Stamp] | None:
        """Make the file that of an entry; its name and its stamp, None when that is impossible. Nobody can write to it
        any more."""
        with self._lock:
            self._is_open = False
        if self._preparing is not None:
            self._preparing.join()
        # Nobody writes to this memory any more, by whatever mistake: other processes read it too.
        _call("mprotect", self._address, self._capacity, mmap.PROT_READ)
        try:
            os.ftruncate(self._handle, self._end)
            return store.name_data(key, self._handle)
        except OSError:
            return None
        finally:
            self._close()

    def _find(self, size: int) -> int | None:
        """The place of so many free bytes: the smallest hole that is large enough, else the end."""
        fitting = [(end - at, at) for at, end in self._holes.items() if end - at >= size]
        if fitting:
            room, at = min(fitting)
            del self._holes[at]
            if room > size:
                self._holes[at + size] = at + room
            return at
        at = self._end
        if not self._claim(at + size):
            return None
        self._end = at + size
        return at

    def _claim(self, end: int) -> bool:
        """Whether everything up to `end` has room on the disk, now at the latest."""
        if end <= self._claimed:
            return True
        wanted = end + -end % (_STEP if end > _STEP else _FIRST_STEPS)
        if wanted > self._capacity:
            return False
        try:
            os.posix_fallocate(self._handle, self._claimed, wanted - self._claimed)
        except OSError:
            return False
        self._claimed = wanted
        return True

    def _populate(self, start: int, end: int) -> None:
        """Have the pages of what was claimed. Older kernels know nothing of it, and give them one by one."""
        if start < end:
            if end > _STEP:
                _call("madvise", self._address, self._capacity, mmap.MADV_HUGEPAGE)
            _call("madvise", self._address + start, end - start, _POPULATE_WRITE)

    def _give_back(self, at: int, size: int) -> None:
        """Take bytes back: one hole with those that it touches, or a nearer end."""
        with self._lock:
            if not self._is_open:
                return
            end = self._holes.pop(at + size, at + size)
            before = next((start for start, stop in self._holes.items() if stop == at), None)
            if before is not None:
                del self._holes[before]
                at = before
            if end == self._end:
                self._end = at
            else:
                self._holes[at] = end


def _prepare(known: weakref.ref[Draft], end: int) -> None:
    """Claim and populate a draft step by step, as long as somebody needs it."""
    while (draft := known()) is not None:
        with draft._lock:
            start = draft._claimed
            if start >= end or not draft._is_open or not draft._claim(start + _STEP):
                return
            stop = draft._claimed
        draft._populate(start, stop)
        del draft


def _call(name: str, address: int, size: int, what: int) -> None:
    """One of Linux's calls on pages, during which other threads go on. Nothing depends on its success."""
    function = _libc()[name]
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    function(address, size, what)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
