"""Arithmetic on LLVM values with Python operators, for the functions that code generation writes itself.

A `Num` is an operand with its type, scalar or vector; `x * y + 1.0` appends the instructions to the function at hand.
Floating-point operations carry `contract`, so that they fuse where the processor can: algorithms here may not rely on a
product being rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

from relaxlang.codegen.lltypes import float_literal
from relaxlang.codegen.text import FunctionText, ModuleText, mangled, symbol

Like = Union["Num", int, float]


class Num:
    """An operand: the function it stands in, its text, its LLVM type."""

    __slots__ = ("at", "ref", "type")

    def __init__(self, at: FunctionText, ref: str, type: str) -> None:
        self.at = at
        self.ref = ref
        self.type = type

    @property
    def scalar(self) -> str:
        """The type of one lane."""
        return self.type[1:-1].split(" x ")[1] if self.type[0] == "<" else self.type

    @property
    def is_float(self) -> bool:
        """Whether it is a float or double."""
        return self.scalar in ("float", "double")

    def like(self, scalar: str) -> str:
        """The type `scalar` with this value's number of lanes."""
        return f"{self.type[: self.type.index('x')]}x {scalar}>" if self.type[0] == "<" else scalar

    def num(self, value: Like) -> Num:
        """A constant of this value's type; a `Num` is returned as it is."""
        if isinstance(value, Num):
            return value
        of = self.scalar
        text = float_literal(float(value), of == "double") if self.is_float else str(int(value))
        if of == "i1":
            text = "true" if value else "false"
        return Num(self.at, text if self.type[0] != "<" else f"splat ({of} {text})", self.type)

    def op(self, text: str, type: str = "") -> Num:
        """The value of an instruction, of this value's type unless another is given."""
        return Num(self.at, self.at.value(text), type or self.type)

    def _binary(self, integer: str, floating: str, other: Like, swap: bool = False) -> Num:
        a, b = self.ref, self.num(other).ref
        op = floating + " contract" if self.is_float else integer
        return self.op(f"{op} {self.type} {b}, {a}" if swap else f"{op} {self.type} {a}, {b}")

    def __add__(self, other: Like) -> Num:
        return self._binary("add", "fadd", other)

    __radd__ = __add__

    def __sub__(self, other: Like) -> Num:
        return self._binary("sub", "fsub", other)

    def __rsub__(self, other: Like) -> Num:
        return self._binary("sub", "fsub", other, swap=True)

    def __mul__(self, other: Like) -> Num:
        return self._binary("mul", "fmul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Like) -> Num:
        return self._binary("sdiv", "fdiv", other)

    def __rtruediv__(self, other: Like) -> Num:
        return self._binary("sdiv", "fdiv", other, swap=True)

    def __neg__(self) -> Num:
        return self.op(f"fneg {self.type} {self.ref}") if self.is_float else 0 - self

    def __and__(self, other: Like) -> Num:
        return self.op(f"and {self.type} {self.ref}, {self.num(other).ref}")

    def __or__(self, other: Like) -> Num:
        return self.op(f"or {self.type} {self.ref}, {self.num(other).ref}")

    def __xor__(self, other: Like) -> Num:
        return self.op(f"xor {self.type} {self.ref}, {self.num(other).ref}")

    def __lshift__(self, by: Like) -> Num:
        return self.op(f"shl {self.type} {self.ref}, {self.num(by).ref}")

    def __rshift__(self, by: Like) -> Num:
        """Logical shift to the right."""
        return self.op(f"lshr {self.type} {self.ref}, {self.num(by).ref}")

    def compare(self, predicate: str, other: Like) -> Num:
        """A comparison by LLVM's predicate: `olt`, `une`, … for floats, `slt`, `eq`, … for integers."""
        kind = "fcmp" if self.is_float else "icmp"
        return self.op(f"{kind} {predicate} {self.type} {self.ref}, {self.num(other).ref}", self.like("i1"))

    def __lt__(self, other: Like) -> Num:
        return self.compare("olt" if self.is_float else "slt", other)

    def __gt__(self, other: Like) -> Num:
        return self.compare("ogt" if self.is_float else "sgt", other)

    def __le__(self, other: Like) -> Num:
        return self.compare("ole" if self.is_float else "sle", other)

    def __ge__(self, other: Like) -> Num:
        return self.compare("oge" if self.is_float else "sge", other)

    def equals(self, other: Like) -> Num:
        """Equality; false for NaN."""
        return self.compare("oeq" if self.is_float else "eq", other)

    def differs(self, other: Like) -> Num:
        """Inequality; true for NaN."""
        return self.compare("une" if self.is_float else "ne", other)

    def is_nan(self) -> Num:
        """Whether it is a NaN."""
        return self.compare("uno", self)

    def where(self, yes: Like, no: Like) -> Num:
        """For a condition: `yes` where it holds, else `no`; at least one of them a `Num`."""
        model = yes if isinstance(yes, Num) else no
        assert isinstance(model, Num)
        a, b = model.num(yes), model.num(no)
        return self.op(f"select {self.type} {self.ref}, {a.type} {a.ref}, {b.type} {b.ref}", a.type)

    def bits(self, scalar: str) -> Num:
        """The same bits as another type of the same width."""
        return self.op(f"bitcast {self.type} {self.ref} to {self.like(scalar)}", self.like(scalar))

    def convert(self, op: str, scalar: str) -> Num:
        """An LLVM conversion (`fpext`, `sitofp`, `trunc`, …) to lanes of type `scalar`."""
        return self.op(f"{op} {self.type} {self.ref} to {self.like(scalar)}", self.like(scalar))

    def call(self, base: str, *others: Like) -> Num:
        """The LLVM intrinsic `base` with this value first and others of the same type."""
        args = [self, *(self.num(o) for o in others)]
        function = self.at.module.intrinsic(base, self.type, [a.type for a in args])
        return Num(self.at, self.at.call(self.type, function, *((a.type, a.ref) for a in args)), self.type)

    def abs(self) -> Num:
        """The absolute value of a float."""
        return self.call("llvm.fabs")

    def copysign(self, sign: Like) -> Num:
        """Its magnitude with the sign of another."""
        return self.call("llvm.copysign", sign)

    def rint(self) -> Num:
        """The nearest integer, half to even."""
        return self.call("llvm.rint")

    def ldexp(self, power: Num) -> Num:
        """Itself times two to the power of an integer of 32 bits, rounded once."""
        name = f"llvm.ldexp.{mangled(self.type)}.{mangled(power.type)}"
        function = self.at.module.declare(name, self.type, [self.type, power.type])
        made = self.at.call(self.type, function, (self.type, self.ref), (power.type, power.ref))
        return Num(self.at, made, self.type)

    def lost(self, factor: Num, product: Num) -> Num:
        """What the rounded `product` of this value and a factor lacks, exactly; 0 on processors that can't tell."""
        return self.call("llvm.fma", factor, -product) if self.at.module.fused else self.num(0.0)

    def polynomial(self, coefficients: Sequence[float]) -> Num:
        """c0 + c1 x + c2 x² + … by Horner's rule."""
        total: Num = self.num(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = total * self + c
        return total


Function = Callable[..., Num]


def inline_call(at: FunctionText, name: str, function: Function, *args: Num) -> Num:
    """Call `function` through an internal, always inlined LLVM function of its own for the types of `args`."""
    types = [a.type for a in args]
    full, module = ".".join([name, *map(mangled, types)]), at.module
    result = module.helpers.get(full)
    if result is None:
        text, result = define(module, full, function, types)
        module.add_helper(full, text, result)
    return Num(at, at.call(result, symbol(full), *((a.type, a.ref) for a in args)), result)


def define(module: ModuleText, name: str, function: Function, types: Sequence[str]) -> tuple[str, str]:
    """The text of the LLVM function `name` that computes `function`, and its result type."""
    body = FunctionText(module)
    made = function(*(Num(body, f"%a{i}", t) for i, t in enumerate(types)))
    body.finish(f"ret {made.type} {made.ref}")
    params = ", ".join(f"{t} %a{i}" for i, t in enumerate(types))
    head = f"define internal {made.type} {symbol(name)}({params}) alwaysinline nounwind memory(none)"
    return body.text(head), made.type
