"""Scalar expressions: integers of shapes and indices, and the arithmetic of TensorIR.

`==` is structural equality (variables compare by identity) and the hash is computed at construction, so expressions are
dictionary keys. The node for the comparison is `EQ`. `a + b` and the other Python operators build nodes, convert plain
numbers to the other side's type, and fold constants; the classes themselves never fold.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from relaxlang.base.dtype import DType, dtype
from relaxlang.base.node import Node, node, same_fields

if TYPE_CHECKING:
    from relaxlang.ir.relax import GlobalVar
    from relaxlang.ir.tir import Buffer, IterVar

BOOL, INT32, INT64, FLOAT32, HANDLE, VOID = map(dtype, ("bool", "int32", "int64", "float32", "handle", "void"))


def _truth(of: DType) -> DType:
    return BOOL if of.lanes == 1 else BOOL.with_lanes(of.lanes)


class PrimExpr(Node):
    """A scalar (or vector) expression. `dtype` is its type, known at construction."""

    __slots__ = ("dtype", "_hash")
    HASHED = True
    if TYPE_CHECKING:
        dtype: DType
        _hash: int

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, PrimExpr) and self._hash == other._hash and same_fields(self, other)

    def __str__(self) -> str:
        from relaxlang.ir.printing import script

        return script(self)

    def __bool__(self) -> bool:
        if isinstance(self, IntImm):
            return self.value != 0
        raise TypeError(f"the value of `{self}` is not known while compiling")

    def __add__(self, other: PrimLike) -> PrimExpr:
        return fold(Add, *match(self, other))

    def __radd__(self, other: PrimLike) -> PrimExpr:
        return fold(Add, *match(other, self))

    def __sub__(self, other: PrimLike) -> PrimExpr:
        return fold(Sub, *match(self, other))

    def __rsub__(self, other: PrimLike) -> PrimExpr:
        return fold(Sub, *match(other, self))

    def __mul__(self, other: PrimLike) -> PrimExpr:
        return fold(Mul, *match(self, other))

    def __rmul__(self, other: PrimLike) -> PrimExpr:
        return fold(Mul, *match(other, self))

    def __truediv__(self, other: PrimLike) -> PrimExpr:
        return fold(Div, *match(self, other))

    def __rtruediv__(self, other: PrimLike) -> PrimExpr:
        return fold(Div, *match(other, self))

    def __floordiv__(self, other: PrimLike) -> PrimExpr:
        return fold(FloorDiv, *match(self, other))

    def __rfloordiv__(self, other: PrimLike) -> PrimExpr:
        return fold(FloorDiv, *match(other, self))

    def __mod__(self, other: PrimLike) -> PrimExpr:
        return fold(FloorMod, *match(self, other))

    def __rmod__(self, other: PrimLike) -> PrimExpr:
        return fold(FloorMod, *match(other, self))

    def __neg__(self) -> PrimExpr:
        return fold(Sub, const(0, self.dtype), self)

    def __lt__(self, other: PrimLike) -> PrimExpr:
        return fold(LT, *match(self, other))

    def __le__(self, other: PrimLike) -> PrimExpr:
        return fold(LE, *match(self, other))

    def __gt__(self, other: PrimLike) -> PrimExpr:
        return fold(GT, *match(self, other))

    def __ge__(self, other: PrimLike) -> PrimExpr:
        return fold(GE, *match(self, other))


PrimLike: TypeAlias = "PrimExpr | int | float | bool"


# --- leaves -----------------------------------------------------------------------------------------------------------
@node
class PointerType(Node):
    """The type of a data pointer: what it points to, and in which memory."""

    element: DType
    scope: str = "global"


@node
class Var(PrimExpr):
    """A variable, with an identity of its own: two variables of one name differ."""

    name: str
    of: DType = INT32
    pointer: PointerType | None = None
    HASHED: ClassVar[bool] = False
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "of", "_hash": "object.__hash__(self)"}
    __hash__, __eq__ = object.__hash__, object.__eq__  # by identity, at the speed of dictionaries


@node
class SizeVar(Var):
    """A variable that is known to be >= 0."""

    def __hash__(self) -> int:
        return object.__hash__(self)


@node
class IntImm(PrimExpr):
    """An integer or bool constant."""

    of: DType
    value: int
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "of"}
    ground: ClassVar[bool] = True


@node
class FloatImm(PrimExpr):
    """A floating-point constant; NaNs are equal when their bits are, and 0.0 differs from -0.0."""

    of: DType
    value: float
    HASHED: ClassVar[bool] = False
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "of", "_hash": "hash((of, _bits(value)))"}

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FloatImm) and self.of is other.of and _bits(self.value) == _bits(other.value)


def _bits(value: float) -> bytes:
    return struct.pack("<d", value)


@node
class StringImm(PrimExpr):
    """A string constant, as an argument of calls."""

    value: str
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "HANDLE"}


# --- arithmetic -------------------------------------------------------------------------------------------------------
@node
class Cast(PrimExpr):
    """`value` converted to `of`."""

    of: DType
    value: PrimExpr
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "of"}


@node
class BinaryOp(PrimExpr):
    """An operation on two operands of one type."""

    a: PrimExpr
    b: PrimExpr
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "a.dtype"}


@node
class Add(BinaryOp):
    """`a + b`."""


@node
class Sub(BinaryOp):
    """`a - b`."""


@node
class Mul(BinaryOp):
    """`a * b`."""


@node
class Div(BinaryOp):
    """`a / b`; integers truncate towards zero."""


@node
class Mod(BinaryOp):
    """The remainder of `Div`; its sign is the dividend's."""


@node
class FloorDiv(BinaryOp):
    """`a // b`, rounded towards minus infinity."""


@node
class FloorMod(BinaryOp):
    """`a % b`; its sign is the divisor's."""


@node
class Min(BinaryOp):
    """The smaller; a NaN wins."""


@node
class Max(BinaryOp):
    """The larger; a NaN wins."""


@node
class CmpOp(PrimExpr):
    """A comparison of two operands of one type; the result is bool."""

    a: PrimExpr
    b: PrimExpr
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "_truth(a.dtype)"}


@node
class EQ(CmpOp):
    """`a == b`."""


@node
class NE(CmpOp):
    """`a != b`."""


@node
class LT(CmpOp):
    """`a < b`."""


@node
class LE(CmpOp):
    """`a <= b`."""


@node
class GT(CmpOp):
    """`a > b`."""


@node
class GE(CmpOp):
    """`a >= b`."""


@node
class And(CmpOp):
    """Both hold; `b` is evaluated only when `a` holds."""


@node
class Or(CmpOp):
    """Either holds; `b` is evaluated only when `a` does not hold."""


@node
class Not(PrimExpr):
    """`a` does not hold."""

    a: PrimExpr
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "a.dtype"}


@node
class Select(PrimExpr):
    """`true_value` where `condition` holds, else `false_value`; both are evaluated."""

    condition: PrimExpr
    true_value: PrimExpr
    false_value: PrimExpr
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "true_value.dtype"}


# --- memory, vectors, calls -------------------------------------------------------------------------------------------
@node
class BufferLoad(PrimExpr):
    """`buffer[indices]`; with a `Ramp` as last index, a vector."""

    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    predicate: PrimExpr | None = None
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "_load_type(buffer.dtype, indices)"}


def _load_type(of: DType, indices: tuple[PrimExpr, ...]) -> DType:
    lanes = indices[-1].dtype.lanes if indices else 1
    return of if lanes == 1 else of.with_lanes(lanes * of.lanes)


@node
class Ramp(PrimExpr):
    """The vector base, base + stride, … of `lanes` elements."""

    base: PrimExpr
    stride: PrimExpr
    lanes: int
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "base.dtype.with_lanes(lanes * base.dtype.lanes)"}


@node
class Broadcast(PrimExpr):
    """`value` repeated `lanes` times."""

    value: PrimExpr
    lanes: int
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "value.dtype.with_lanes(lanes * value.dtype.lanes)"}


@node
class Shuffle(PrimExpr):
    """The elements `indices` of the concatenation of `vectors`."""

    vectors: tuple[PrimExpr, ...]
    indices: tuple[PrimExpr, ...]
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "vectors[0].dtype.scalar.with_lanes(len(indices))"}


@node
class Let(PrimExpr):
    """`body` with `var` bound to `value`."""

    var: Var
    value: PrimExpr
    body: PrimExpr
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "body.dtype"}


@node
class Call(PrimExpr):
    """A call of an intrinsic (`op` is its name in `ir.intrinsics.INTRINSICS`) or of another function of the module."""

    of: DType
    op: str | GlobalVar
    args: tuple[PrimExpr, ...]
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "of"}


@node
class CommReducer(Node):
    """A commutative, associative combination: `lhs` op `rhs` gives `result`, elementwise; `identity` is neutral."""

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[PrimExpr, ...]
    identity: tuple[PrimExpr, ...]


@node
class Reduce(PrimExpr):
    """The combination of `source` over `axis`, where `condition` holds; lives only inside tensor computations (TE)."""

    combiner: CommReducer
    source: tuple[PrimExpr, ...]
    axis: tuple[IterVar, ...]
    condition: PrimExpr | None = None
    init: tuple[PrimExpr, ...] = ()
    value_index: int = 0
    DERIVED: ClassVar[dict[str, str]] = {"dtype": "source[value_index].dtype"}


# --- making -----------------------------------------------------------------------------------------------------------
def const(value: int | float | bool, of: DType | str) -> PrimExpr:
    """A constant of that type (vectors: a broadcast); integers wrap to the type's width."""
    of = dtype(of)
    if of.lanes != 1:
        return Broadcast(const(value, of.scalar), of.lanes)
    if of.is_float:
        return FloatImm(of, float(value))
    return IntImm(of, wrap(int(value), of))


def wrap(value: int, of: DType) -> int:
    """`value` reduced to the range of an integer or bool type, as two's complement does."""
    kind, bits = of.kind, of.bits
    if kind == "bool":
        return int(value != 0)
    if kind == "handle":
        return value
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if kind == "int" and low >> (bits - 1) else low


def as_prim(value: PrimLike, like: DType | None = None) -> PrimExpr:
    """A number as a constant: of type `like` when given, else bool, int32 (int64 when it is wide) or float32."""
    if isinstance(value, PrimExpr):
        return value
    if like is not None and isinstance(value, int):
        return const(value, like)
    if isinstance(value, int):
        of = BOOL if isinstance(value, bool) else INT32 if -(1 << 31) <= value < 1 << 31 else INT64
        return IntImm(of, int(value))
    if isinstance(value, float):
        return FloatImm(FLOAT32 if like is None or not like.is_float else like.scalar, value)
    if not hasattr(value, "item"):
        raise TypeError(f"`{type(value).__name__}` is no scalar expression")
    return as_prim(value.item(), like)  # a scalar of numpy


def match(a: PrimLike, b: PrimLike) -> tuple[PrimExpr, PrimExpr]:
    """Both operands in one type: a plain number takes the other's, a scalar becomes a vector, the wider wins."""
    if not isinstance(a, PrimExpr):
        a = as_prim(a, b.dtype if isinstance(b, PrimExpr) else None)
    if not isinstance(b, PrimExpr):
        b = as_prim(b, a.dtype)
    if a.dtype is b.dtype:
        return a, b
    if a.dtype.lanes != b.dtype.lanes:
        if a.dtype.lanes == 1:
            a = Broadcast(a, b.dtype.lanes)
        elif b.dtype.lanes == 1:
            b = Broadcast(b, a.dtype.lanes)
    to = _wider(a.dtype, b.dtype)
    return cast(a, to), cast(b, to)


def _wider(a: DType, b: DType) -> DType:
    rank = {"bool": 0, "uint": 1, "int": 2, "bfloat": 3, "float": 3}
    left, right = (rank.get(a.kind, 3), a.bits), (rank.get(b.kind, 3), b.bits)
    if left[0] >= 3 or right[0] >= 3 or left[0] == 0 or right[0] == 0:
        return a if left >= right else b
    return a if (left[1], left[0]) >= (right[1], right[0]) else b


def cast(value: PrimExpr, to: DType | str) -> PrimExpr:
    """`value` as type `to`; itself when it has that type. Integer constants are converted at once."""
    to = dtype(to)
    if value.dtype is to:
        return value
    if isinstance(value, IntImm) and to.lanes == 1:
        return const(value.value, to)
    return Cast(to, value)


def all_of(*conditions: PrimExpr) -> PrimExpr:
    """The conjunction; true when there are none."""
    kept = [c for c in conditions if not (isinstance(c, IntImm) and c.value)]
    return reduce(And, kept) if kept else IntImm(BOOL, 1)


_INT: dict[type, Callable[[int, int], int]] = {
    Add: lambda a, b: a + b, Sub: lambda a, b: a - b, Mul: lambda a, b: a * b, Min: min, Max: max,
    FloorDiv: lambda a, b: a // b, FloorMod: lambda a, b: a % b,
    Div: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    Mod: lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    EQ: lambda a, b: a == b, NE: lambda a, b: a != b, LT: lambda a, b: a < b, LE: lambda a, b: a <= b,
    GT: lambda a, b: a > b, GE: lambda a, b: a >= b, And: lambda a, b: bool(a and b), Or: lambda a, b: bool(a or b),
}  # fmt: skip


def fold(kind: type[BinaryOp] | type[CmpOp], a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """`kind(a, b)`, evaluated when both are integer constants, and without a neutral operand (x + 0, x * 1, x // 1)."""
    if isinstance(b, IntImm):
        if isinstance(a, IntImm) and not (b.value == 0 and kind in (Div, Mod, FloorDiv, FloorMod)):
            value = _INT[kind](a.value, b.value)
            return IntImm(BOOL, int(value)) if issubclass(kind, CmpOp) else IntImm(a.of, wrap(value, a.of))
        if (b.value == 0 and kind in (Add, Sub)) or (b.value == 1 and kind in (Mul, Div, FloorDiv)):
            return a
        if b.value == 0 and kind is Mul:
            return b
    neutral = isinstance(a, IntImm) and ((a.value == 0 and kind is Add) or (a.value == 1 and kind is Mul))
    return b if neutral else kind(a, b)
