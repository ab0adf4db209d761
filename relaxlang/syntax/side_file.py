"""The file beside a text that holds its large constants: `model.rlx` and `model.weights.npz`.

The text names an array by the digest of its elements (`I.array("sha256:…", …)`), so that a wrong or damaged file is
found out, and the order and names inside the file mean nothing.
"""

from __future__ import annotations

import io
import os
import struct
import sys
import weakref
import zipfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from relaxlang.base.config import config, usable_processors
from relaxlang.syntax.side_array import OpenFile, SideArray

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    import numpy as np

SUFFIX = ".weights.npz"
_ENTRY = ".npy"
_LENGTHS = 26
"""Where a member of an archive says how long its name and its extra field are, which its content follows."""
_HEAD = 1 << 12
"""Bytes in which a member's head and that of the array in it are looked for."""
LARGE = 4 << 20
"""Bytes of a file from which on a thread of its own computes the digests."""
UNREAD = 1 << 16
"""Bytes of an array from which on it stays in the file until it is needed."""


def side_file(path: str) -> str:
    """The name of the side file of a text."""
    return os.path.splitext(path)[0] + SUFFIX


class SideFile(Mapping[str, Any]):
    """The arrays beside the text at `path`, by digest: small ones in read-only memory, large ones as `SideArray`s. The
    file is opened when an array is first asked for; a missing or damaged one has no arrays.

    `true_digest` tells whether a large one that was asked for is what its name says. A thread finds out before, where
    there is a processor for it.
    """

    def __init__(self, path: str) -> None:
        self.path = side_file(path)
        self.fault = ""  # what is wrong with the whole file
        self._archive: zipfile.ZipFile | None = None
        self._file: OpenFile | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._found: dict[str, Any] = {}
        self._digests: dict[str, Future[str | None]] = {}

    def _entries(self) -> dict[str, zipfile.ZipInfo]:
        """What the archive has, by name (`sha256:….npy`)."""
        if self._archive is None:
            try:
                stream = open(self.path, "rb")
                self._file = OpenFile(self.path, stream)
                self._archive = zipfile.ZipFile(stream)
            except FileNotFoundError:
                self.fault = "which is not there"
                return {}
            except (OSError, ValueError, EOFError, zipfile.BadZipFile):
                self.fault = "which cannot be read, or is damaged or cut off"
                return {}
            large = sum(entry.file_size for entry in self._archive.filelist) > LARGE
            if large and min(config.num_threads, usable_processors()) > 1:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(1, "relaxlang-weights")
                weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)
        return self._archive.NameToInfo

    def __getitem__(self, digest: str) -> Any:
        found = self._found.get(digest)
        if found is None:
            entry = self._entries()[digest + _ENTRY]
            try:
                found = self._found[digest] = self._read(entry, digest)
            except (OSError, ValueError, EOFError, struct.error, zipfile.BadZipFile) as fault:
                raise KeyError(digest) from fault
            if self._pool is not None and isinstance(found, SideArray):
                self._digests[digest] = self._pool.submit(found.true_digest)
        return found

    def true_digest(self, digest: str) -> str | None:
        """The digest of the content that the large array of that name has; None when it cannot be read."""
        array: SideArray = self._found[digest]
        known = self._digests.get(digest)
        # What the thread has not begun with is done here: nobody waits while there is something to do.
        return array.true_digest() if known is None or known.cancel() else known.result()

    def unread_bytes(self) -> int:
        """The bytes of the large arrays that were asked for."""
        return sum(array.nbytes for array in self._found.values() if isinstance(array, SideArray))

    def _read(self, entry: zipfile.ZipInfo, digest: str) -> Any:
        """A large array as it lies in the file, others in memory."""
        found = self._in_place(entry, digest)
        if found is not None:
            # Without the archive's checksum: the digest tells more.
            return found if found.nbytes >= UNREAD else found.content()
        from numpy.lib.format import read_array

        assert self._archive is not None
        with self._archive.open(entry) as stream:
            array = read_array(stream, allow_pickle=False)
        array.flags.writeable = False
        return array

    def _in_place(self, entry: zipfile.ZipInfo, digest: str) -> SideArray | None:
        """An array that lies in the file as it would in memory; None for others."""
        from numpy.lib import format as npy

        assert self._file is not None
        plain = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
        if not plain or not hasattr(os, "preadv") or sys.byteorder != "little":
            return None
        head = io.BytesIO(os.pread(self._file.handle, _HEAD, entry.header_offset))
        head.seek(_LENGTHS)
        start = sum(struct.unpack("<HH", head.read(4))) + _LENGTHS + 4
        head.seek(start)
        if npy.read_magic(head) != (1, 0):
            return None
        shape, by_columns, dtype = npy.read_array_header_1_0(head)
        if by_columns or dtype.hasobject or not dtype.isnative:
            return None
        made = SideArray(self._file, entry.header_offset + head.tell(), digest, shape, dtype)
        if head.tell() - start + made.nbytes > entry.file_size:
            raise EOFError("the array is cut off")
        return made

    def __contains__(self, digest: object) -> bool:
        return f"{digest}{_ENTRY}" in self._entries()

    def __iter__(self) -> Iterator[str]:
        return (name.removesuffix(_ENTRY) for name in self._entries())

    def __len__(self) -> int:
        return len(self._entries())


def side_file_bytes(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """The content of a side file."""
    import numpy as np

    from relaxlang.syntax.scalars import array_bytes

    stream = io.BytesIO()
    # Elements as plain bytes: numpy's format has no name for bfloat16 and its like, and the text says what they are.
    plain: dict[str, Any] = {digest: np.frombuffer(array_bytes(a), np.uint8) for digest, a in arrays.items()}
    np.savez(stream, **plain)
    return stream.getvalue()
