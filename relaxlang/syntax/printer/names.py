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

    `enter` and `leave` bracket a scope: what was defined in it loses its name, and the name is free again. A name that
    is made for a declaration at a function's head lasts until the function's own scope is left.
    """

    def __init__(self, module: str = "Module", functions: Iterable[str] = ()) -> None:
        self._taken: set[str] = {*RESERVED, module}
        self._meanings: set[str] = {*BUILTINS, *functions}
        self._names: dict[Node, str] = {}
        self._scopes: list[list[tuple[Node, bool]]] = [[]]
        self._functions: list[int] = [0]

    def get(self, node: Node) -> str | None:
        """The name of a node that is defined, else None."""
        return self._names.get(node)

    def define(self, node: Node, hint: str, *, lasting: bool = False) -> str:
        """A new name for a node, `hint` if that is free; the one it has, if it is defined."""
        name = self._names.get(node)
        if name is None:
            name = self.unique(hint, scalar=isinstance(node, prim.Var))
            self._taken.add(name)
            self._put(node, name, True, lasting)
        return name

    def bind(self, node: Node, text: str, *, lasting: bool = False) -> None:
        """Let a node be written as `text` (`A.data`, the name of another node), which takes no name."""
        self._put(node, text, False, lasting)

    def _put(self, node: Node, text: str, owns: bool, lasting: bool) -> None:
        self._names[node] = text
        self._scopes[self._functions[-1] if lasting else -1].append((node, owns))

    def unique(self, hint: str, *, scalar: bool = False) -> str:
        """A name like `hint` that is legal and free here. The names of functions are not free to scalars: a dimension
        `max` would read as the function."""
        base = hint if hint.isidentifier() else legal(hint)
        name, n = base, 0
        while name in self._taken or (scalar and name in self._meanings):
            n += 1
            name = f"_{n}" if base == "_" else f"{base}_{n}"
        return name

    def enter(self, *, function: bool = False) -> None:
        """The beginning of a scope, or of a whole function."""
        self._scopes.append([])
        if function:
            self._functions.append(len(self._scopes) - 1)

    def leave(self) -> None:
        """The end of the innermost scope."""
        if self._functions[-1] == len(self._scopes) - 1:
            self._functions.pop()
        for node, owns in self._scopes.pop():
            name = self._names.pop(node, None)
            if owns and name is not None:
                self._taken.discard(name)


def is_attribute(name: str) -> bool:
    """Whether `cls.name` can be written."""
    return name.isidentifier() and not keyword.iskeyword(name)


def member_names(functions: Iterable[str], module: str) -> dict[str, str]:
    """What follows `def` for each function of a module: its own name, or one made from it where its own is no
    identifier or would hide a name of the language or the module's."""
    wanted = list(functions)
    made = {name: name for name in wanted if name.isidentifier() and name not in RESERVED and name != module}
    taken = {*made, *RESERVED, module}
    for name in wanted:
        if name not in made:
            base, n = legal(name), 0
            text = base
            while text in taken:
                n += 1
                text = f"{base}_{n}"
            taken.add(text)
            made[name] = text
    return made


def legal(hint: str) -> str:
    """`hint` with everything replaced that cannot stand in a name."""
    name = _OTHER.sub("_", hint) or "v"
    return name if name.isidentifier() else f"_{name}"
