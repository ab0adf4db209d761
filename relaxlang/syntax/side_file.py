"""The file beside a text that holds its large constants: `model.rlx` and `model.weights.npz`.

The text names an array by the digest of its elements (`I.array("sha256:…", …)`), so that a wrong or damaged file is
found out, and the order and names inside the file mean nothing.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from relaxlang.base.config import config, usable_processors

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    import numpy as np

SUFFIX = ".weights.npz"
_ENTRY = ".npy"
_LENGTHS = 26
"""Where a member of an archive says how long its name and its extra field are, which its content follows."""
LARGE = 4 << 20
"""Bytes of a file from which on it is read ahead."""
AHEAD = 4
"""Arrays that are read ahead at most."""


def side_file(path: str) -> str:
    """The name of the side file of a text."""
    return os.path.splitext(path)[0] + SUFFIX


class SideFile(Mapping[str, Any]):
    """The arrays beside the text at `path`, by digest, in read-only memory. The file is opened when an array is first
    asked for; a missing or damaged one has no arrays.

    Texts ask for arrays in the order of the file, so while one is used a thread reads the next ones, if they are large
    and there is a processor for it. `digests` are those of what was read: the reader of a text compares them.
    """

    def __init__(self, path: str) -> None:
        self.path = side_file(path)
        self.digests: dict[str, str] = {}
        self._archive: zipfile.ZipFile | None = None
        self._order: list[str] = []
        self._pool: ThreadPoolExecutor | None = None
        self._ahead: dict[str, Future[np.ndarray[Any, Any]]] = {}

    def _entries(self) -> dict[str, zipfile.ZipInfo]:
        """What the archive has, by name (`sha256:….npy`)."""
        if self._archive is None:
            try:
                self._archive = zipfile.ZipFile(self.path)
            except (OSError, ValueError, EOFError, zipfile.BadZipFile):
                return {}
            self._order = list(self._archive.NameToInfo)
            large = sum(entry.file_size for entry in self._archive.filelist) > LARGE
            if large and min(config.num_threads, usable_processors()) > 1:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(1, "relaxlang-weights")
        return self._archive.NameToInfo

    def __getitem__(self, digest: str) -> np.ndarray[Any, Any]:
        entry = self._entries()[digest + _ENTRY]
        try:
            if self._pool is None:
                return self._read(entry)
            return self._begun(self._pool, entry).result()
        except (OSError, ValueError, EOFError, struct.error, zipfile.BadZipFile) as fault:
            raise KeyError(digest) from fault

    def _begun(self, pool: ThreadPoolExecutor, entry: zipfile.ZipInfo) -> Future[np.ndarray[Any, Any]]:
        """The reading of an entry, after which that of the next ones is begun."""
        here = self._ahead.pop(entry.filename, None) or pool.submit(self._read, entry)
        place = self._order.index(entry.filename)
        for name in self._order[place + 1 : place + 1 + AHEAD]:
            if name not in self._ahead and name.removesuffix(_ENTRY) not in self.digests:
                self._ahead[name] = pool.submit(self._read, self._entries()[name])
        return here

    def __del__(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _read(self, entry: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
        from relaxlang.syntax.scalars import array_digest

        found = self._array(entry)
        found.flags.writeable = False
        self.digests[entry.filename.removesuffix(_ENTRY)] = array_digest(found)
        return found

    def _array(self, entry: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
        from numpy.lib.format import read_array

        assert self._archive is not None
        if entry.compress_type != zipfile.ZIP_STORED:
            with self._archive.open(entry) as stream:
                return read_array(stream, allow_pickle=False)
        # Straight into the array's memory, and without the archive's checksum: the digest tells more.
        with open(self.path, "rb") as file:
            file.seek(entry.header_offset + _LENGTHS)
            file.seek(sum(struct.unpack("<HH", file.read(4))), os.SEEK_CUR)
            return read_array(file, allow_pickle=False)

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
