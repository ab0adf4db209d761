"""Writing LLVM IR as text: modules and functions.

Text is 22 to 60 times faster to make than llvmlite's builder objects, and it is what `--emit=llvm` shows. A value is
named by its operand text (`%12`, `7`, `0x3FF0000000000000`); its type is known to whoever made it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_PURE = frozenset(
    "add sub mul and or xor shl lshr ashr icmp fcmp fadd fsub fmul fdiv fneg select getelementptr insertelement "
    "extractelement shufflevector sext zext trunc bitcast sitofp uitofp fpext fptrunc".split()
)
_PURE_CALLS = tuple(
    f"call {of} @llvm.{name}."
    for of, names in (("i64", "smax smin"), ("i32", "smax smin"), ("float", "sqrt"), ("double", "sqrt"))
    for name in names.split()
)
_NAME = re.compile(r"%[\w.]+")
_PLAIN = re.compile(r"[A-Za-z_$.][\w$.]*\Z")


def symbol(name: str) -> str:
    """A global name as LLVM spells it, quoted where it must be."""
    if _PLAIN.match(name):
        return "@" + name
    escaped = "".join(c if c.isalnum() and c.isascii() else "".join(f"\\{b:02X}" for b in c.encode()) for c in name)
    return f'@"{escaped}"'


class ModuleText:
    """The text of one LLVM module: declarations, constants, helper functions and functions, each once.

    `externals` are the functions that must be found when the code is loaded, `helpers` the result types of the helper
    functions that it has. `fused`: the processor multiplies and adds in one instruction, with one rounding; `scales`:
    it multiplies by powers of two in one; `dots`: it adds up products of four bytes each in one.
    """

    fused = False
    scales = False
    dots = False

    def __init__(self) -> None:
        self._declarations: dict[str, str] = {}
        self._constants: dict[bytes, str] = {}
        self._definitions: list[str] = []
        self.helpers: dict[str, str] = {}
        self._functions: list[str] = []
        self._names: set[str] = set()
        self.externals: set[str] = set()

    def declare(self, name: str, result: str, args: Iterable[str], attributes: str = "") -> str:
        """Declare a function that stands elsewhere; returns its symbol."""
        spelled = symbol(name)
        self._declarations[name] = f"declare {result} {spelled}({', '.join(args)}){attributes and ' ' + attributes}"
        return spelled

    def external(self, name: str, result: str, args: Iterable[str], attributes: str = "") -> str:
        """Declare a function that must be found when the code is loaded; returns its symbol."""
        self.externals.add(name)
        return self.declare(name, result, args, attributes)

    def intrinsic(self, base: str, of: str, args: Iterable[str] = ()) -> str:
        """Declare the LLVM intrinsic `base` overloaded for the type `of` (`llvm.sqrt`, `float`); returns its symbol."""
        return self.declare(f"{base}.{mangled(of)}", of, args or (of,))

    def data(self, content: bytes, align: int = 64) -> str:
        """A constant of these bytes; returns its symbol."""
        found = self._constants.get(content)
        if found is None:
            found = self._constants[content] = f"@data{len(self._constants)}"
            text = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in content)
            self._definitions.append(f'{found} = private constant [{len(content)} x i8] c"{text}", align {align}')
        return found

    def add_helper(self, name: str, text: str, result: str) -> None:
        """Add an internal function that gives values of the type `result`."""
        self.helpers[name] = result
        self._definitions.append(text)

    def add(self, text: str) -> None:
        """Add a function's text."""
        self._functions.append(text)

    def fresh(self, name: str) -> str:
        """A global name derived from `name` that was not handed out before."""
        made, n = name, 0
        while made in self._names:
            n += 1
            made = f"{name}.{n}"
        self._names.add(made)
        return made

    def text(self, triple: str, data_layout: str) -> str:
        """The whole module."""
        head = f'target datalayout = "{data_layout}"\ntarget triple = "{triple}"\n'
        parts = [head, *self._functions, *self._definitions, *self._declarations.values()]
        return "\n".join(parts) + "\n"


def mangled(of: str) -> str:
    """A type as it stands in the name of an overloaded intrinsic: `v4f32`, `i64`, `p0`."""
    if of.startswith("<"):
        lanes, scalar = of[1:-1].split(" x ")
        return f"v{lanes}{mangled(scalar)}"
    return {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "ptr": "p0"}.get(of, of)


def _is_pure(text: str) -> bool:
    """Whether an instruction computes its value from its operands alone, and may run where nobody wants it."""
    return text[: text.index(" ")] in _PURE or text.startswith(_PURE_CALLS)


class FunctionText:
    """The body of one LLVM function while it is written: a current basic block, fresh names, entry allocations.

    A pure instruction is written once in a basic block, and so is a load from memory that is not stored to in between;
    a pure one whose operands are the same in all iterations of the loops around goes before them.
    """

    def __init__(self, module: ModuleText) -> None:
        self.module = module
        self.lines: list[str | list[str]] = []
        self.entry: list[str] = []
        self.block = "entry"
        self.open = True
        self._known: dict[str, str] = {}
        self._loaded: dict[object, dict[str, str]] = {}  # what was loaded in the basic block, by memory
        self._loops: list[tuple[list[str], dict[str, str]]] = []  # what stands before each loop around
        self._depth: dict[str, int] = {}  # how many loops are around where a value is computed
        self._values = 0
        self._labels = 0
        self.scope: int | None = None  # the function's number in the debug information, where there is one
        self.location = ""  # what an instruction ends with then

    def value(self, text: str) -> str:
        """Append an instruction that makes a value, unless the basic block has the same pure one; returns its name."""
        self._reopen()
        into: list[Any] = self.lines
        level = len(self._loops)
        if _is_pure(text):
            known = self._known
            needed = max([self._depth.get(n, 0) for n in _NAME.findall(text)], default=0) if level else 0
            if needed < level:
                level = needed
                into, known = self._loops[needed]
            if text in known:
                return known[text]
            known[text] = f"%v{self._values}"
        name = f"%v{self._values}"
        self._values += 1
        self._depth[name] = level
        into.append(f"  {name} = {text}{self.location}")
        return name

    def load(self, text: str, memory: object) -> str:
        """Append a load, unless the basic block has it and nothing was stored to `memory` since then; returns its name.
        `memory` is one object for all places that may be the same; None for what may be anywhere."""
        if memory is None or not self.open:
            return self.value(text)
        known = self._loaded.setdefault(memory, {})
        if text not in known:
            known[text] = self.value(text)
        return known[text]

    def define(self, name: str, text: str) -> None:
        """Append an instruction whose value has a given name."""
        self._depth[name] = len(self._loops)
        self.effect(f"{name} = {text}")

    def open_loop(self) -> None:
        """A loop begins after the basic block at hand."""
        self._reopen()
        before: list[str] = []
        self.lines.append(before)
        self._loops.append((before, {}))

    def close_loop(self) -> None:
        """The innermost loop is complete."""
        self._loops.pop()

    def effect(self, text: str, memory: object = None) -> None:
        """Append an instruction that makes no value; what it changes is in `memory`, or anywhere."""
        self._reopen()
        if memory is None:
            self._loaded = {}
        else:
            self._loaded.pop(memory, None)
        self.lines.append("  " + text + self.location)

    def _reopen(self) -> None:
        if not self.open:  # code that cannot be reached still needs a block to stand in
            self.start(self.label("dead"))

    def alloca(self, text: str) -> str:
        """Append an `alloca` to the entry block; returns its name."""
        name = f"%v{self._values}"
        self._values += 1
        self.entry.append(f"  {name} = {text}")
        return name

    def label(self, hint: str) -> str:
        """A fresh label."""
        self._labels += 1
        return f"{hint}{self._labels}"

    def start(self, label: str) -> None:
        """Begin the basic block `label`; an open one falls through to it."""
        if self.open:
            self.branch(label)
        self.lines.append(f"{label}:")
        self.block = label
        self._known, self._loaded = {}, {}
        self.open = True

    def branch(self, label: str) -> None:
        """End the block with a jump."""
        self.finish(f"br label %{label}")

    def branch_if(self, condition: str, then: str, other: str, weights: str = "") -> None:
        """End the block with a conditional jump."""
        self.finish(f"br i1 {condition}, label %{then}, label %{other}{weights}")

    def finish(self, text: str) -> None:
        """End the block with `text`; ignored when the block has ended (code that cannot be reached)."""
        if self.open:
            self.lines.append("  " + text + self.location)
        self.open = False

    def call(self, result: str, function: str, *args: tuple[str, str], flags: str = "") -> str:
        """Append a call; `args` are (type, operand) pairs. Returns the result's name, empty for void."""
        text = f"call {flags}{result} {function}({', '.join(f'{t} {v}' for t, v in args)})"
        if result.startswith("void"):
            self.effect(text)
            return ""
        if not function.startswith("@llvm."):  # which may change what was loaded
            self._loaded = {}
        return self.value(text)

    def text(self, head: str) -> str:
        """The whole function: `head` is `define … @name(…) …`."""
        lines = [one for line in self.lines for one in ([line] if isinstance(line, str) else line)]
        return "\n".join([head + " {", "entry:", *self.entry, *lines, "}", ""])
