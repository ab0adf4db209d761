"""The caching allocator under every tensor: 64-byte aligned blocks that go back to a pool when nothing refers to them.

A fresh large array costs one page fault per 4 KiB the first time it is written, which is several times the cost of most
kernels; a block from the pool has its pages already. Large blocks are in huge pages where Linux has them: reading from
those is up to twice as fast, because few entries of the translation buffers suffice.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import RLock
from typing import Any, NoReturn, TypeAlias

import numpy as np

from relaxlang.base.diagnostics import fail

ALIGNMENT = 64
CHECKED = 64 << 20
"""Requests from this size on are compared with the memory that the system has left."""
HUGE_PAGE = 2 << 20
LARGE = 2 * HUGE_PAGE
"""Blocks of this size and more begin where a huge page does, in pages that `malloc` has not used before."""
_MOST = (1 << 63) - 1
_Take: TypeAlias = "Callable[[int], np.ndarray[Any, Any] | None]"
_lasting: ContextVar[_Take | None] = ContextVar("relaxlang_lasting", default=None)


class Storage(np.ndarray[Any, Any]):
    """A run of bytes from a `Pool`: a 1-D uint8 array whose data is 64-byte aligned at `_address`.

    Tensors are made on it as on any buffer. When the last of them is gone, the block returns to its pool.
    """

    __slots__ = ("_address", "_pool", "_block")
    _address: int
    _pool: Pool
    _block: _Block

    def __del__(self) -> None:
        # A slice or a copy made by numpy has the class but owns no block.
        block = getattr(self, "_block", None)
        if block is not None:
            self._pool.give_back(block)


class _Block:
    """Raw memory: `view[offset:]` starts at the aligned `address` and has at least `size` bytes."""

    __slots__ = ("view", "offset", "address", "size")

    def __init__(self, size: int) -> None:
        in_pages = size >= LARGE and sys.platform == "linux"
        alignment = HUGE_PAGE if in_pages else ALIGNMENT
        raw = _pages(size + alignment) if in_pages else np.empty(size + alignment, np.uint8)
        start = int(raw.__array_interface__["data"][0])
        self.offset = -start % alignment
        self.address = start + self.offset
        self.size = size
        # The memoryview and not the array: numpy shortens chains of arrays of one class, which would skip the Storage.
        self.view = raw.data


def _pages(size: int) -> np.ndarray[Any, Any]:
    """Fresh pages of this process, huge ones where there are any (Linux); MemoryError when they cannot be had."""
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        raise MemoryError from None
    with suppress(OSError):  # a kernel without huge pages
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)


class Pool:
    """Blocks by size class, at most `limit` bytes of them idle."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.idle = 0
        self._free: dict[int, list[_Block]] = {}
        # Reentrant, because the garbage collector may run `Storage.__del__` in the middle of either method.
        self._lock = RLock()
        self._others: list[Callable[[], None]] = []

    def share(self, clear: Callable[[], None]) -> None:
        """Let `clear` give back what another allocator of this process has idle whenever this pool gives back."""
        self._others.append(clear)

    def take(self, nbytes: int) -> Storage:
        """A storage of at least `nbytes` bytes with undefined content; RLX6006 when the system cannot give so much."""
        size = _size_class(nbytes)
        with self._lock:
            blocks = self._free.get(size)
            block = blocks.pop() if blocks else None
            if block is not None:
                self.idle -= size
        if block is None:
            block = self.fresh(nbytes, size)
        storage = np.ndarray.__new__(Storage, nbytes, np.uint8, block.view, block.offset)
        storage._address = block.address
        storage._pool = self
        storage._block = block
        return storage

    def give_back(self, block: _Block) -> None:
        """Keep a block that nobody uses any more, or free it when enough lie idle."""
        with self._lock:
            if self.idle + block.size <= self.limit:
                self.idle += block.size
                self._free.setdefault(block.size, []).append(block)

    def clear(self) -> None:
        """Free every idle block."""
        with self._lock:
            self._free.clear()
            self.idle = 0
        for clear in self._others:
            clear()

    def fresh(self, nbytes: int, size: int) -> _Block:
        """A block of `size` bytes from the system for a request of `nbytes`; RLX6006 when it cannot be had."""
        if size >= CHECKED:
            self.check_available(nbytes)
        try:
            return _Block(size)
        except (MemoryError, ValueError, OverflowError):
            self.clear()
        try:
            return _Block(size)
        except (MemoryError, ValueError, OverflowError):
            refuse(nbytes)

    def check_available(self, nbytes: int) -> None:
        """RLX6006 unless the system has so many bytes left, if need be when idle memory is given back."""
        left = available_bytes()
        if left is not None and nbytes > left:
            self.clear()
            left = available_bytes()
        if left is not None and nbytes > left:
            refuse(nbytes, f"{format_bytes(left)} are available")


def allocate(nbytes: int) -> Storage:
    """A storage of `nbytes` bytes from the process's pool; RLX6006 when the size is negative or more than there is."""
    if not 0 <= nbytes <= _MOST:
        fail("RLX6006", f"cannot allocate {nbytes} bytes: the size is {'negative' if nbytes < 0 else 'too large'}")
    return POOL.take(nbytes)


def allocate_lasting(shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An aligned array with undefined content for values that last: a piece of what `lasting_memory` names, or memory
    that goes back to the system and not to the pool. RLX6006 when there is not so much."""
    nbytes = math.prod(shape) * dtype.itemsize
    take = _lasting.get()
    piece = None if take is None else take(nbytes)
    if piece is not None:
        return np.ndarray(shape, dtype, piece)
    block = POOL.fresh(nbytes, nbytes)
    return np.ndarray(shape, dtype, block.view, block.offset)


@contextmanager
def lasting_memory(take: _Take) -> Iterator[None]:
    """Within it `allocate_lasting` gets its memory from `take`, which is asked for a number of bytes and may have
    none."""
    token = _lasting.set(take)
    try:
        yield
    finally:
        _lasting.reset(token)


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A contiguous array's memory as one that nobody can make writeable again."""
    content = array.reshape(-1).view(np.uint8).data.toreadonly()
    return np.frombuffer(content, array.dtype).reshape(array.shape)


def refuse(nbytes: int, why: str = "the system refused the request") -> NoReturn:
    """Raise RLX6006 for memory that cannot be had."""
    fail("RLX6006", f"cannot allocate {format_bytes(nbytes)} of memory: {why}")


def _size_class(nbytes: int) -> int:
    """`nbytes` rounded up so that at most a quarter is wasted and few different sizes exist."""
    if nbytes <= 1024:
        return max(ALIGNMENT, (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT)
    step = 1 << ((nbytes - 1).bit_length() - 3)
    return (nbytes + step - 1) // step * step


def format_bytes(count: int) -> str:
    """A byte count for people: `640 bytes`, `1.5 GiB`."""
    if count < 1024:
        return f"{count} bytes"
    power = min((count.bit_length() - 1) // 10, 6)
    return f"{count / (1 << 10 * power):.1f} {'KMGTPE'[power - 1]}iB"


def available_bytes() -> int | None:
    """The memory that this process can still get (free and reclaimable, within its control group), None if unknown."""
    counts = [_meminfo(), _cgroup_left()]
    known = [c for c in counts if c is not None]
    return min(known) if known else None


def _meminfo() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None


def _cgroup_left() -> int | None:
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit:
            most = limit.read().strip()
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as current:
            used = int(current.read())
    except OSError:
        return None
    return max(0, int(most) - used) if most.isdecimal() else None


def _physical_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no sysconf (Windows), or it does not know
        return 4 << 30


POOL = Pool(limit=min(1 << 30, _physical_bytes() // 8))
