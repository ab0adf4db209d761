"""The text of one C function while it is written: indented lines, names in scope, and what the file must provide."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from relaxlang.base.dtype import DType
from relaxlang.codegen.c.helpers import Helper, helper
from relaxlang.codegen.c.types import identifier

NOINLINE, ALIGN = "RL_NOINLINE", "RL_ALIGN"
"""Macros that a file defines where they are used: an attribute of functions, one of data with the bytes it wants."""

# Levels of binding, loosest first.
TERNARY, OR, AND, EQUAL, ORDER, SUM, PRODUCT, UNARY, PRIMARY = range(9)


# Functions of the headers that a file may include.
DECLARED = frozenset(
    f"{name}{suffix}" for suffix in ("", "f") for name in
    "exp exp2 expm1 log log2 log10 log1p sinh cosh tanh asinh acosh atanh asin acos atan sin cos tan atan2 hypot erf "
    "erfc sqrt cbrt floor ceil trunc round rint nearbyint fmod remainder copysign pow fabs fma ldexp nextafter fmin "
    "fmax fdim lgamma tgamma logb".split()
) | {"printf", "malloc", "free", "memcpy", "memset", "memmove", "abs", "labs"}  # fmt: skip


class C(NamedTuple):
    """An expression in C and how tightly its outermost operator binds."""

    text: str
    level: int = PRIMARY

    def at(self, level: int) -> str:
        """The text as an operand that must bind at least so tightly."""
        return self.text if self.level >= level else f"({self.text})"


def infix(a: C, op: str, b: C, level: int) -> C:
    """`a op b`, associating to the left."""
    return C(f"{a.at(level)} {op} {b.at(level + 1)}", level)


def call(name: str, *args: C) -> C:
    """`name(a, b, …)`."""
    return C(f"{name}({', '.join(a.text for a in args)})")


def cast(to: str, value: C) -> C:
    """`(to)value`."""
    return C(f"({to}){value.at(UNARY)}", UNARY)


class FileNeeds:
    """What the functions of a file have in common: helpers, constants, messages, names that are taken."""

    def __init__(self) -> None:
        self.helpers: dict[str, Helper] = {}
        self.constants: list[str] = []
        self.externals: dict[str, str] = {}
        self.messages: list[str] = []
        self.taken: set[str] = set()
        self.uses_heap = False
        self.uses_print = False

    def helper(self, kind: str, of: DType) -> str:
        """The name of a helper function, which the file will contain."""
        made = helper(kind, of)
        self._add(made)
        return made.name

    def _add(self, made: Helper) -> None:
        for need in made.needs:
            self._add(need)
        self.helpers.setdefault(made.name, made)

    def status(self, message: str) -> int:
        """The status that stands for a message; the same one for the same text."""
        if message not in self.messages:
            self.messages.append(message)
        return self.messages.index(message) + 1

    def declare(self, name: str, result: str, kinds: list[str]) -> None:
        """Declare a function that the program is linked with; those of the C headers that the file includes are."""
        if name not in DECLARED:
            self.externals[name] = f"extern {result} {name}({', '.join(kinds) or 'void'});"

    def fresh(self, hint: str) -> str:
        """A name at file level that nothing else has."""
        made = _free(identifier(hint), self.taken)
        self.taken.add(made)
        return made


class Lines:
    """Lines of a function body at the current depth, and the names in scope."""

    def __init__(self, needs: FileNeeds) -> None:
        self.needs = needs
        self.lines: list[str] = []
        self.depth = 1
        self.names: set[str] = set()

    def add(self, line: str) -> None:
        """One line at the current depth."""
        self.lines.append("  " * self.depth + line)

    @contextmanager
    def braces(self, head: str, tail: str = "}") -> Iterator[None]:
        """The lines of a block in braces; names declared inside end with it."""
        self.add(f"{head} {{")
        self.depth += 1
        outer = set(self.names)
        yield
        self.names = outer
        self.depth -= 1
        self.add(tail)

    def name(self, hint: str) -> str:
        """A name for a variable that no other in scope, and nothing at file level, has."""
        made = _free(identifier(hint), self.names | self.needs.taken)
        self.names.add(made)
        return made


def _free(hint: str, taken: set[str]) -> str:
    made, n = hint, 0
    while made in taken:
        n += 1
        made = f"{hint}_{n}"
    return made
