"""`attn = I.include("attn.rlx", HEADS=8)`: modules made of files.

A path is relative to the file that includes it. Only files below a root can be included: the folder of the file that is
being compiled, and the folders that the caller names. Symbolic links are followed before that is checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaxlang.base.diagnostics import Label
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import suggestion
from relaxlang.ir.module import IRModule
from relaxlang.syntax.comptime import error
from relaxlang.syntax.decode import decode_source
from relaxlang.syntax.inputs import Inputs

MAX_DEPTH = 50

Read = Callable[[Source, Mapping[str, Any], "Includer"], IRModule]


class Includer:
    """Finds and reads the files that a module includes. `read` elaborates one; `files` are those being read; `inputs`
    is told of all."""

    def __init__(
        self,
        roots: Sequence[str],
        read: Read,
        inputs: Inputs,
        files: tuple[str, ...] = (),
        spans: tuple[Span, ...] = (),
    ) -> None:
        try:
            self.roots = tuple(os.path.realpath(root) for root in roots)
        except ValueError as fault:  # a name that no folder can have
            raise error("RLX0150", f"a folder of included files can't be read: {fault}", None) from None
        self.read = read
        self.inputs = inputs
        self.files = files
        self.spans = spans

    @staticmethod
    def for_file(name: str, roots: Sequence[str], read: Read, inputs: Inputs) -> Includer:
        """The includer of a file that is being compiled; a text that is no file has no folder of its own."""
        if not os.path.isfile(name):
            return Includer(roots, read, inputs)
        return Includer((os.path.dirname(os.path.realpath(name)), *roots), read, inputs, (os.path.realpath(name),))

    def include(self, path: str, values: Mapping[str, Any], span: Span) -> IRModule:
        """The module in the file at `path`, with values for its parameters."""
        asked, found = self._find(path, span)
        if found in self.files:
            at = self.files.index(found)
            labels = [Label(s, "includes the next file") for s in self.spans[at:]]
            raise error("RLX0151", f"`{path}` includes itself", span, label="the circle closes here",
                        notes=[f"{label.span}: {label.text}" for label in labels])  # fmt: skip
        if len(self.files) >= MAX_DEPTH:
            raise error("RLX0151", f"files include each other more than {MAX_DEPTH} deep", span)
        inner = Includer(self.roots, self.read, self.inputs, (*self.files, found), (*self.spans, span))
        try:
            with open(found, "rb") as file:
                content = file.read()
            self.inputs.note_file(asked, content)
            source = decode_source(os.path.relpath(found), content)
        except OSError as fault:
            raise error("RLX0150", f"`{path}` can't be read: {fault.strerror or fault}", span) from None
        return self.read(source, values, inner)

    def _find(self, path: str, span: Span) -> tuple[str, str]:
        """The path and the real path of an included file, which lies below a root."""
        if not self.roots:
            raise error("RLX0150", f"`{path}` cannot be found: this text is in no file", span,
                        help="pass the folders to look in: `parse(text, roots=[…])`, `relaxc -I DIR`")  # fmt: skip
        near = os.path.dirname(self.files[-1]) if self.files else None
        asked = [os.path.join(folder, path) for folder in (near, *self.roots) if folder is not None]
        places: dict[str, str] = {}
        for place in asked:
            places.setdefault(os.path.realpath(place), place)
        inside = [place for place in places if any(_is_below(place, root) for root in self.roots)]
        if not inside:
            raise error("RLX0150", f"`{path}` is outside of the folders that may be included from", span,
                        help="`relaxc -I DIR` allows a folder")  # fmt: skip
        for place in inside:
            if os.path.isfile(place):
                return places[place], place
            self.inputs.note_file(places[place], None)
        folder = os.path.dirname(inside[0])
        found = os.listdir(folder) if os.path.isdir(folder) else []
        stems = [n[:-4] for n in found if n.endswith(".rlx") and os.path.join(folder, n) not in self.files]
        hint = suggestion(os.path.splitext(os.path.basename(path))[0], stems, span)
        raise error("RLX0150", f"there is no file `{path}`", span, **hint)


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
