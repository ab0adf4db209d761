"""The file beside a text that holds its large constants: `model.rlx` and `model.weights.npz`.

The text names an array by the digest of its elements (`I.array("sha256:…", …)`), so that a wrong or damaged file is
found out, and the order and names inside the file mean nothing.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

SUFFIX = ".weights.npz"


def side_file(path: str) -> str:
    """The name of the side file of a text."""
    return os.path.splitext(path)[0] + SUFFIX


class SideFile(Mapping[str, Any]):
    """The arrays beside the text at `path`, by digest. The file is opened when an array is first asked for; a missing
    or damaged one has no arrays."""

    def __init__(self, path: str) -> None:
        self.path = side_file(path)
        self._found: Mapping[str, Any] | None = None

    def _arrays(self) -> Mapping[str, Any]:
        if self._found is None:
            import numpy as np

            try:
                self._found = np.load(self.path, allow_pickle=False)
            except (OSError, ValueError, EOFError, zipfile.BadZipFile):
                self._found = {}
        return self._found if isinstance(self._found, Mapping) else {}

    def __getitem__(self, digest: str) -> np.ndarray[Any, Any]:
        try:
            found: np.ndarray[Any, Any] = self._arrays()[digest]
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as fault:
            raise KeyError(digest) from fault
        return found

    def __contains__(self, digest: object) -> bool:
        return digest in self._arrays()

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays())

    def __len__(self) -> int:
        return len(self._arrays())


def side_file_bytes(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """The content of a side file."""
    import numpy as np

    from relaxlang.syntax.scalars import array_bytes

    stream = io.BytesIO()
    # Elements as plain bytes: numpy's format has no name for bfloat16 and its like, and the text says what they are.
    plain: dict[str, Any] = {digest: np.frombuffer(array_bytes(a), np.uint8) for digest, a in arrays.items()}
    np.savez(stream, **plain)
    return stream.getvalue()
