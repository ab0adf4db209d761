"""Names in the printed text: unique where they are seen, kept where possible, escaped where Python demands it."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

from relaxlang.base.node import Node
from relaxlang.ir import prim
from relaxlang.syntax.comptime_builtins import BUILTINS

RESERVED = frozenset({*keyword.kwlist, "R", "T", "I", "cls", "range", "float"})
_OTHER = re.compile(r"\W")


class Names:
    """The names of variables and buffers, by identity.

    `mark` and `release` bracket a scope: what was defined in it loses its name, and the name is free again.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken: set[str] = {*RESERVED, *reserved}
        self._names: dict[Node, str] = {}
        self._defined: list[tuple[Node, bool]] = []

    def get(self, node: Node) -> str | None:
        """The name of a node that is defined, else None."""
        return self._names.get(node)

    def define(self, node: Node, hint: str, *, lasting: bool = False) -> str:
        """A new name for a node, `hint` if that is free; the one it has, if it is defined. A lasting name outlives the
        scope."""
        name = self._names.get(node)
        if name is None:
            name = self.unique(hint, scalar=isinstance(node, prim.Var))
            self._names[node] = name
            self._taken.add(name)
            if not lasting:
                self._defined.append((node, True))
        return name

    def bind(self, node: Node, text: str, *, lasting: bool = False) -> None:
        """Let a node be written as `text` (`A.data`, the name of another node), which takes no name."""
        self._names[node] = text
        if not lasting:
            self._defined.append((node, False))

    def unique(self, hint: str, *, scalar: bool = False) -> str:
        """A name like `hint` that is legal and free here. The names of builtin functions are not free to scalars: a
        dimension `max` would read as the function."""
        base = hint if hint.isidentifier() else legal(hint)
        name, n = base, 0
        while name in self._taken or (scalar and name in BUILTINS):
            n += 1
            name = f"_{n}" if base == "_" else f"{base}_{n}"
        return name

    def mark(self) -> int:
        """The beginning of a scope."""
        return len(self._defined)

    def release(self, mark: int) -> None:
        """The end of the scope that began at `mark`."""
        for node, owns in self._defined[mark:]:
            name = self._names.pop(node, None)
            if owns and name is not None:
                self._taken.discard(name)
        del self._defined[mark:]


def legal(hint: str) -> str:
    """`hint` with everything replaced that cannot stand in a name."""
    name = _OTHER.sub("_", hint) or "v"
    return name if name.isidentifier() else f"_{name}"
