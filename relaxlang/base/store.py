"""Bounded folders of the on-disk cache: entries that can be made again at any time, named by what determines them.

An entry is a file `<key>.entry` that begins with the SHA-256 of the rest, so that a damaged one is a miss. Big data of
an entry stands beside it in a file of its own, `<key>.<random>.data`, that is mapped and not read: the entry knows its
`Stamp`, and data that anybody touched since is a miss too. Files are written beside and renamed, so that processes may
share the folder. When it grows beyond its limit, the entries that were used least recently go. A folder that cannot be
written to costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from relaxlang.base.config import config
from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.base.files import write_atomically

_DIGEST = 32
_EVERY = 64
_SLICE = 1 << 20
_HUGE_PAGE = 2 << 20
"""The page cache keeps what is written in runs of this size in huge pages, and maps them as such, where the file system
can: reading is faster from them."""
_HUGE_FROM = 128 << 20
"""Bytes of data from which on that is worth the memory of what nobody reads but shares a page with what is read."""
_SETTLED, _SETTLED_COARSE = 100_000_000, 3_000_000_000
"""Nanoseconds after which a file that is written to again has another time: on file systems that count finely, and on
those that count seconds."""
ENTRY, DATA = ".entry", ".data"


class Stamp(NamedTuple):
    """What a file system tells of a file: as long as all of it is the same, so is the content. The time of change
    counts because nobody can set it."""

    size: int
    modified: int
    changed: int
    device: int
    node: int

    @staticmethod
    def of(status: os.stat_result) -> Stamp:
        """The stamp of a file, from what `stat` says."""
        return Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_dev, status.st_ino)

    def is_settled(self) -> bool:
        """Whether the file was changed so long ago that it gets another stamp when it is changed now."""
        newest = max(self.modified, self.changed)
        wait = _SETTLED if newest % 1_000_000_000 else _SETTLED_COARSE
        return time.time_ns() - newest > wait


class Store:
    """A folder of the cache: `limit` bytes of entries of one kind, by keys of `key_of`."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit

    @property
    def folder(self) -> str | None:
        """The folder, which may not exist yet; None when the cache is off."""
        root = config.cache_dir
        return None if root is None else os.path.join(root, self.name)

    def has(self, key: str) -> bool:
        """Whether there is an entry (it may turn out to be damaged all the same)."""
        path = self._path(key)
        return path is not None and os.path.exists(path)

    def read(self, key: str) -> bytes | None:
        """The content of an entry; None when there is none, or when it is damaged."""
        path = self._path(key)
        if path is None:
            return None
        try:
            with open(path, "rb") as stream:
                found = stream.read()
            if hashlib.sha256(memoryview(found)[_DIGEST:]).digest() != found[:_DIGEST]:
                return None
            os.utime(path)
        except OSError:
            return None
        return found[_DIGEST:]

    def write(self, key: str, content: bytes, added: int = 0) -> None:
        """Store an entry, for which `added` bytes of data were written already."""
        path = self._path(key)
        if path is None:
            return
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_atomically(path, hashlib.sha256(content).digest() + content)
        except (OSError, RelaxlangError):
            return
        if added * _EVERY > self.limit or int.from_bytes(os.urandom(2)) % _EVERY == 0:
            self.trim()

    def write_data(self, key: str, pieces: Iterable[bytes | memoryview], size: int) -> tuple[str, Stamp] | None:
        """Write the big data of an entry, `size` bytes in all; the name of its file, and its stamp. None where that is
        impossible, or where it would take a quarter of what the folder or the disk may still hold."""
        path = self._path(key)
        if path is None:
            return None
        folder, name = os.path.dirname(path), f"{key}.{os.urandom(6).hex()}{DATA}"
        made = os.path.join(folder, name)
        try:
            os.makedirs(folder, exist_ok=True)
            if size > self._most(folder):
                return None
            with open(made, "xb", buffering=0) as stream:
                for run in _runs(pieces) if size >= _HUGE_FROM else _slices(pieces):
                    _write_all(stream.write, run)
                stamp = Stamp.of(os.fstat(stream.fileno()))
        except OSError:
            _remove(made)
            return None
        _remove_siblings(folder, key, name)
        return name, stamp

    def open_unnamed(self) -> tuple[int, int] | None:
        """A new file without a name, to become the big data of an entry, and the bytes it may grow to. The handle is
        the caller's. None where there can be none."""
        folder = self.folder
        if folder is None or not hasattr(os, "O_TMPFILE"):
            return None
        try:
            os.makedirs(folder, exist_ok=True)
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666), self._most(folder)
        except OSError:
            return None

    def name_data(self, key: str, handle: int) -> tuple[str, Stamp] | None:
        """Make a file of `open_unnamed` the big data of an entry, with the content that it has; its name and its stamp.
        None where that is impossible."""
        path = self._path(key)
        if path is None:
            return None
        folder, name = os.path.dirname(path), f"{key}.{os.urandom(6).hex()}{DATA}"
        try:
            os.makedirs(folder, exist_ok=True)
            root = os.open(folder, os.O_RDONLY)
            try:  # with a folder, `link` follows the symbolic link that stands for the file
                os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=root, dst_dir_fd=root)
            finally:
                os.close(root)
            stamp = Stamp.of(os.fstat(handle))
        except OSError:
            return None
        _remove_siblings(folder, key, name)
        return name, stamp

    def map_data(self, key: str, name: str, stamp: Stamp) -> memoryview | None:
        """The big data of an entry, mapped; None when it is gone or not as it was written."""
        path = self._path(key)
        if path is None or name not in _siblings(os.path.dirname(path), key):
            return None
        try:
            with open(os.path.join(os.path.dirname(path), name), "rb") as stream:
                if Stamp.of(os.fstat(stream.fileno())) != stamp:
                    return None
                mapped = mmap.mmap(stream.fileno(), stamp.size, access=mmap.ACCESS_READ)
            if stamp.size >= _HUGE_FROM and hasattr(mmap, "MADV_HUGEPAGE"):
                with suppress(OSError):  # a kernel without huge pages
                    mapped.madvise(mmap.MADV_HUGEPAGE)  # data that has to be read from the disk first
            return memoryview(mapped)
        except (OSError, ValueError):
            return None

    def sync_data(self, key: str, name: str) -> bool:
        """See to it that the big data of an entry is on the disk; whether it is."""
        path = self._path(key)
        try:
            with open(os.path.join(os.path.dirname(path or ""), name), "rb") as stream:
                os.fsync(stream.fileno())
        except OSError:
            return False
        return True

    def trim(self) -> None:
        """Remove the entries used least recently until at most `limit` bytes are left."""
        if self.folder is not None:
            trim(self.folder, self.limit)

    def _most(self, folder: str) -> int:
        """The bytes that the data of one entry may have."""
        return min(self.limit, shutil.disk_usage(folder).free) // 4

    def _path(self, key: str) -> str | None:
        folder = self.folder
        return None if folder is None else os.path.join(folder, key[:2], key + ENTRY)


def key_of(*parts: str | bytes) -> str:
    """The key of an entry that is determined by these parts, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def this_boot() -> str:
    """What is the same until this machine is started again, and never after; empty where nothing tells."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def trim(folder: str, limit: int) -> None:
    """Remove the entries of a folder that were used least recently, until at most `limit` bytes are left."""
    entries: dict[str, list[tuple[str, os.stat_result]]] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            try:
                entries.setdefault(os.path.join(place, name.split(".")[0]), []).append((path, os.stat(path)))
            except OSError:  # another process removed it
                continue
    total = sum(status.st_size for files in entries.values() for _, status in files)
    for files in sorted(entries.values(), key=_last_use):
        if total <= limit:
            return
        for path, status in files:
            if _remove(path):
                total -= status.st_size


def clear() -> int:
    """Remove everything that `Store`s hold in the user's cache; the bytes that were given back."""
    given = 0
    for store in STORES:
        folder = store.folder
        for place, _, names in os.walk(folder) if folder is not None else ():
            for name in names:
                path = os.path.join(place, name)
                size = os.path.getsize(path) if os.path.exists(path) else 0
                given += size if _remove(path) else 0
    return given


def _last_use(files: list[tuple[str, os.stat_result]]) -> float:
    """When an entry was last used: that of its file, and of data that has no entry (any more) its own time."""
    return max((s.st_mtime for path, s in files if not path.endswith(DATA)), default=files[0][1].st_mtime)


def _siblings(folder: str, key: str) -> list[str]:
    """The names of the files with the big data of an entry."""
    try:
        return [n for n in os.listdir(folder) if n.startswith(key + ".") and n.endswith(DATA)]
    except OSError:
        return []


def _remove_siblings(folder: str, key: str, name: str) -> None:
    """Remove the big data of an entry that `name` takes the place of."""
    for other in _siblings(folder, key):
        if other != name:
            _remove(os.path.join(folder, other))


def _slices(pieces: Iterable[bytes | memoryview]) -> Iterator[memoryview]:
    """The bytes of all pieces, in shorter slices than what would be kept in huge pages."""
    for piece in pieces:
        view = memoryview(piece).cast("B")
        for at in range(0, len(view), _SLICE):
            yield view[at : at + _SLICE]


def _runs(pieces: Iterable[bytes | memoryview]) -> Iterator[memoryview]:
    """The bytes of all pieces in runs of `_HUGE_PAGE`; a run is gone when the next one is asked for."""
    run, used = memoryview(bytearray(_HUGE_PAGE)), 0
    for piece in pieces:
        view = memoryview(piece).cast("B")
        while view:
            taken = view[: _HUGE_PAGE - used]
            run[used : used + len(taken)] = taken
            view, used = view[len(taken) :], used + len(taken)
            if used == _HUGE_PAGE:
                yield run
                used = 0
    if used:
        yield run[:used]


def _write_all(write: Callable[[memoryview], int | None], view: memoryview) -> None:
    while view:
        view = view[write(view) or 0 :]


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


KERNELS = Store("kernels", 512 << 20)
"""Object code, by the text that it was made of."""
BUILDS = Store("builds", 4 << 30)
"""Whole programs with their constants, by all that they were made of."""
TEXTS = Store("texts", 16 << 20)
"""Texts that are without fault, with what they were made of."""
STORES = (KERNELS, BUILDS, TEXTS)
