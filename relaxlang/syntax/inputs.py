"""What a text was made of besides itself: files that it includes, and the side file with its large constants."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from relaxlang.base.store import Stamp


class Inputs:
    """The other files that reading a text took.

    `files` are texts in the order in which they were looked for: as what path, where that led, and the SHA-256 of what
    was there, empty when nothing was. `side_files` are large, so their stamps stand for them; `settled` is false when
    one was changed too recently for that. `large` are the bytes of the arrays in side files that were not read yet.
    """

    def __init__(self) -> None:
        self.files: list[tuple[str, str, str]] = []
        self.side_files: list[tuple[str, Stamp]] = []
        self.settled = True
        self.large = 0

    def note_file(self, asked: str, content: bytes | None) -> None:
        """Remember that `asked` was looked for, and the content that was read there, if any."""
        digest = "" if content is None else hashlib.sha256(content).hexdigest()
        self.files.append((os.path.abspath(asked), os.path.realpath(asked), digest))

    def note_side_file(self, path: str) -> None:
        """Remember a side file, before it is read. What is not there is no input: a text without fault needs none."""
        try:
            stamp = Stamp.of(os.stat(path))
        except (OSError, ValueError):
            return
        self.settled = self.settled and stamp.is_settled()
        self.side_files.append((os.path.abspath(path), stamp))

    def are_unchanged(self) -> bool:
        """Whether reading the text again would find the same."""
        return all(_is_as_it_was(*file) for file in self.files) and all(
            _stamp(path) == stamp for path, stamp in self.side_files
        )

    def to_json(self) -> bytes:
        """The inputs as text, for `from_json`."""
        return json.dumps([self.files, self.side_files]).encode()

    @staticmethod
    def from_json(text: bytes) -> Inputs:
        """The inputs that `to_json` wrote. ValueError or TypeError for another text."""
        files, side_files = json.loads(text)
        made = Inputs()
        made.files = [(str(asked), str(found), str(digest)) for asked, found, digest in files]
        made.side_files = [(str(path), Stamp(*stamp)) for path, stamp in side_files]
        return made


def _is_as_it_was(asked: str, found: str, digest: str) -> bool:
    if os.path.realpath(asked) != found or os.path.isfile(found) != bool(digest):
        return False
    if not digest:
        return True
    try:
        with open(found, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() == digest
    except OSError:
        return False


def _stamp(path: str) -> Any:
    try:
        return Stamp.of(os.stat(path))
    except OSError:
        return None
