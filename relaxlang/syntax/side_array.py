"""Large arrays in a side file, which are read when somebody looks at them.

Nobody but a build looks at the weights of a model, and it looks at each one once: to lay it out in another way, or to
put it into the program. So a module holds where its arrays are, and `read` fetches one into memory that its user names
(`lasting_memory`). Nothing is mapped: a file may be written to, and what is not there any more would end the process.
Who reads is told when the file has changed since.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from threading import Lock
from typing import IO, TYPE_CHECKING, Any

from relaxlang.base.diagnostics import fail
from relaxlang.base.store import Stamp
from relaxlang.base.stored_array import StoredArray
from relaxlang.syntax.scalars import array_digest

if TYPE_CHECKING:
    import numpy as np

_SLICE = 1 << 20
"""Bytes that are read at a time for a digest: the processor has them near when it comes to them."""


class OpenFile:
    """A file as it was when it was opened, closed when nothing of it is needed any more."""

    def __init__(self, path: str, stream: IO[bytes]) -> None:
        weakref.finalize(self, stream.close)
        self.path = path
        self.handle = stream.fileno()
        self._stamp = Stamp.of(os.fstat(self.handle))
        self._settled = self._stamp.is_settled()

    def read_into(self, view: memoryview, at: int) -> None:
        """Fill a buffer with what is at an offset; EOFError when there is less."""
        while view:
            count = os.preadv(self.handle, [view], at)
            if not count:
                raise EOFError(f"`{self.path}` is cut off")
            view, at = view[count:], at + count

    def is_unchanged(self) -> bool:
        """Whether what was read just now surely is what was there at the beginning."""
        return self._settled and Stamp.of(os.fstat(self.handle)) == self._stamp


class SideArray(StoredArray):
    """An array that lies in a file as it would in memory, at `offset`; `digest` names its content."""

    __slots__ = ("digest", "_file", "_offset", "_read", "_kept", "_lock", "_seen")

    def __init__(self, file: OpenFile, offset: int, digest: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        super().__init__(shape, dtype)
        self.digest = digest
        self._file = file
        self._offset = offset
        self._read: weakref.ref[np.ndarray[Any, Any]] | None = None
        self._kept: np.ndarray[Any, Any] | None = None
        self._lock = Lock()
        self._seen: dict[tuple[np.dtype[Any], tuple[int, ...]], SideArray] = {}

    def seen_as(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> SideArray:
        """The same bytes as other elements: one object for all who see them so."""
        found = self._seen.get((dtype, shape))
        if found is None:
            found = self._seen[dtype, shape] = SideArray(self._file, self._offset, self.digest, shape, dtype)
        return found

    def read(self) -> np.ndarray[Any, Any]:
        """The array; as long as somebody has it, it is the same one. Who comes back for it finds it kept."""
        with self._lock:
            if self._kept is not None:
                return self._kept
            found = None if self._read is None else self._read()
            if found is None:
                found = self._fetch()
                if self._read is not None:
                    self._kept = found
                self._read = weakref.ref(found)
            return found

    def __deepcopy__(self, memo: object) -> SideArray:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes and later ones get the array itself."""
        return _constant, (self.read(),)

    def true_digest(self) -> str | None:
        """The digest of what is in the file; None when it cannot be read."""
        found, chunk, at, end = hashlib.sha256(), bytearray(_SLICE), self._offset, self._offset + self.nbytes
        try:
            while at < end:
                piece = memoryview(chunk)[: end - at]
                self._file.read_into(piece, at)
                found.update(piece)
                at += len(piece)
        except (OSError, EOFError):
            return None
        return f"sha256:{found.hexdigest()}"

    def content(self) -> np.ndarray[Any, Any]:
        """What is in the file, right or wrong. OSError, EOFError when it cannot be read."""
        import numpy as np

        from relaxlang.runtime.memory import allocate_lasting, read_only

        made = allocate_lasting(self.shape, self.dtype)
        self._file.read_into(made.reshape(-1).view(np.uint8).data, self._offset)
        return read_only(made)

    def _fetch(self) -> np.ndarray[Any, Any]:
        try:
            made = self.content()
            if self._file.is_unchanged() or array_digest(made) == self.digest:
                return made
        except (OSError, EOFError):  # it has become shorter
            pass
        path = self._file.path
        fail("RLX0128", f"the constants in `{path}` have changed since they were loaded", help="load the text again")


def _constant(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array
