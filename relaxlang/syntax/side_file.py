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

if TYPE_CHECKING:
    import numpy as np

SUFFIX = ".weights.npz"
_ENTRY = ".npy"
_LENGTHS = 26
"""Where a member of an archive says how long its name and its extra field are, which its content follows."""


def side_file(path: str) -> str:
    """The name of the side file of a text."""
    return os.path.splitext(path)[0] + SUFFIX


class SideFile(Mapping[str, Any]):
    """The arrays beside the text at `path`, by digest. The file is opened when an array is first asked for; a missing
    or damaged one has no arrays."""

    def __init__(self, path: str) -> None:
        self.path = side_file(path)
        self._archive: zipfile.ZipFile | None = None

    def _entries(self) -> dict[str, zipfile.ZipInfo]:
        """What the archive has, by name (`sha256:….npy`)."""
        if self._archive is None:
            try:
                self._archive = zipfile.ZipFile(self.path)
            except (OSError, ValueError, EOFError, zipfile.BadZipFile):
                return {}
        return self._archive.NameToInfo

    def __getitem__(self, digest: str) -> np.ndarray[Any, Any]:
        try:
            found: np.ndarray[Any, Any] = self._read(self._entries()[digest + _ENTRY])
        except (OSError, ValueError, EOFError, struct.error, zipfile.BadZipFile) as fault:
            raise KeyError(digest) from fault
        return found

    def _read(self, entry: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
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
