"""Integer and floating-point operations with numpy's meaning, defined for every input.

Integers wrap; a division by zero gives 0, and the lowest number divided by -1 gives itself. Float minimum and maximum
give NaN when an operand is NaN.
"""

from __future__ import annotations

from relaxlang.base.dtype import DType
from relaxlang.codegen.algebra import Num, inline_call
from relaxlang.codegen.text import mangled


def divide(a: Num, b: Num, of: DType, divisor: int | None, *, floor: bool, remainder: bool) -> Num:
    """Integer quotient or remainder; `floor` rounds towards minus infinity, else towards zero. `divisor` is the value
    of `b` when it is constant."""
    if of.is_bool:
        return a & 0 if remainder else a & b
    signed = of.is_int
    if divisor is not None and divisor > 0:
        if divisor & (divisor - 1) == 0 and (floor or not signed):
            shift = divisor.bit_length() - 1
            op = "ashr" if signed else "lshr"
            return a & (divisor - 1) if remainder else a.op(f"{op} {a.type} {a.ref}, {a.num(shift).ref}")
        return _divide(a, b, signed, floor, remainder)
    name = f"rlx.{'floor' if floor else 'trunc'}{'mod' if remainder else 'div'}.{of.scalar.name}"
    return inline_call(a.at, name, lambda x, y: _guarded(x, y, signed, floor, remainder), a, b)


def _guarded(a: Num, b: Num, signed: bool, floor: bool, remainder: bool) -> Num:
    zero = b.equals(0)
    unsafe = zero | b.equals(-1) if signed else zero
    made = _divide(a, unsafe.where(1, b), signed, floor, remainder)
    if signed and not remainder:
        made = b.equals(-1).where(0 - a, made)
    return zero.where(0, made)


def _divide(a: Num, b: Num, signed: bool, floor: bool, remainder: bool) -> Num:
    if not signed:
        return a.op(f"{'urem' if remainder else 'udiv'} {a.type} {a.ref}, {b.ref}")
    if not floor:
        return a.op(f"{'srem' if remainder else 'sdiv'} {a.type} {a.ref}, {b.ref}")
    rest = a.op(f"srem {a.type} {a.ref}, {b.ref}")
    # The remainder has the dividend's sign; when that differs from the divisor's, one step down.
    differs = rest.differs(0) & ((rest ^ b) < 0)
    if remainder:
        return differs.where(rest + b, rest)
    quotient = a.op(f"sdiv {a.type} {a.ref}, {b.ref}")
    return quotient + differs.convert("sext", a.scalar)


def float_mod(a: Num, b: Num) -> Num:
    """numpy.fmod: the remainder with the dividend's sign."""
    return a.op(f"frem {a.type} {a.ref}, {b.ref}")


def float_floor_mod(a: Num, b: Num) -> Num:
    """numpy.mod: the remainder with the divisor's sign, a zero as well."""
    rest = float_mod(a, b)
    differs = (rest < 0) ^ (b < 0)
    return rest.equals(0).where(rest.num(0).copysign(b), (differs & rest.equals(rest)).where(rest + b, rest))


def float_floor_div(a: Num, b: Num) -> Num:
    """numpy.floor_divide: the quotient that goes with `float_floor_mod`."""
    rest = float_mod(a, b)
    differs = rest.differs(0) & ((rest < 0) ^ (b < 0))
    quotient = (a - rest) / b
    quotient = differs.where(quotient - 1.0, quotient)
    floor = quotient.call("llvm.floor")
    # Division rounds: an exact quotient may come out a little below the whole number.
    floor = (quotient - floor > 0.5).where(floor + 1.0, floor)
    plain = a / b
    whole = quotient.equals(0).where(quotient.num(0).copysign(plain), floor)
    return b.equals(0).where(plain, whole)


def shift(a: Num, by: Num, of: DType, left: bool) -> Num:
    """A shift; by less than 0 or by the width and more gives 0, to the right of a negative number -1, as numpy does."""
    fits = by.compare("ult", of.bits)
    op = "shl" if left else "ashr" if of.is_int else "lshr"
    amount = fits.where(by, by.num(0) if left or not of.is_int else by.num(of.bits - 1))
    made = a.op(f"{op} {a.type} {a.ref}, {amount.ref}")
    return made if op == "ashr" else fits.where(made, 0)


def extremum(a: Num, b: Num, of: DType, largest: bool) -> Num:
    """The smaller or the larger of two."""
    if of.is_bool:
        return a | b if largest else a & b
    if not of.is_float:
        return a.call(f"llvm.{'s' if of.is_int else 'u'}{'max' if largest else 'min'}", b)
    name = "llvm.maximum" if largest else "llvm.minimum"
    function = a.at.module.declare(f"{name}.{mangled(a.type)}", a.type, [a.type, a.type])
    # nsz: numpy does not say which of 0.0 and -0.0 is the larger, and ordering them costs as much as the comparison.
    return Num(a.at, a.at.call(a.type, function, (a.type, a.ref), (b.type, b.ref), flags="nsz "), a.type)


def int_power(a: Num, b: Num, signed: bool) -> Num:
    """a ** b of scalar integers by repeated squaring, wrapping; a negative exponent gives 1 / a ** -b, truncated."""
    at, kind = a.at, a.type
    head, body, done = at.label("head"), at.label("turn"), at.label("done")
    before = at.block
    at.start(head)
    n = Num(at, at.value(f"phi {kind} [ {b.ref}, %{before} ], [ %n.next, %{body} ]"), kind)
    base = Num(at, at.value(f"phi {kind} [ {a.ref}, %{before} ], [ %base.next, %{body} ]"), kind)
    total = Num(at, at.value(f"phi {kind} [ 1, %{before} ], [ %total.next, %{body} ]"), kind)
    at.branch_if((n.compare("sle", 0) if signed else n.equals(0)).ref, done, body)
    at.start(body)
    factor = (n & 1).equals(1).where(base, 1)
    at.effect(f"%total.next = mul {kind} {total.ref}, {factor.ref}")
    at.effect(f"%base.next = mul {kind} {base.ref}, {base.ref}")
    at.effect(f"%n.next = lshr {kind} {n.ref}, 1")
    at.branch(head)
    at.start(done)
    if not signed:
        return total
    unit = (b & 1).equals(1).where(a, 1)
    inverse = (a.equals(1) | a.equals(-1)).where(unit, 0)
    return (b < 0).where(inverse, total)
