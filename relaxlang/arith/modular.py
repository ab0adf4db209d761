"""Modular sets: what is known of an integer modulo some number."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from relaxlang.arith.classify import INDEX, RING, is_integer
from relaxlang.arith.facts import Residue
from relaxlang.arith.linear import Linear
from relaxlang.ir.prim import Call, FloorDiv, FloorMod, IntImm, Max, Min, Mul, PrimExpr, Select

if TYPE_CHECKING:
    from relaxlang.arith.simplify import Simplifier

UNKNOWN = Residue(1, 0)


def reduced(modulus: int, remainder: int) -> Residue:
    """The residue in normal form: 0 <= remainder < modulus, unless modulus is 0."""
    return Residue(modulus, remainder % modulus if modulus else remainder)


def join(a: Residue, b: Residue) -> Residue:
    """The smallest residue class that holds both."""
    return reduced(gcd(a.modulus, b.modulus, a.remainder - b.remainder), a.remainder)


def add(a: Residue, b: Residue) -> Residue:
    """The residue of a sum."""
    return reduced(gcd(a.modulus, b.modulus), a.remainder + b.remainder)


def multiply(a: Residue, b: Residue) -> Residue:
    """The residue of a product: (m*i + r) * (n*j + q) is r*q modulo gcd(m*n, m*q, n*r)."""
    modulus = gcd(a.modulus * b.modulus, a.modulus * b.remainder, b.modulus * a.remainder)
    return reduced(modulus, a.remainder * b.remainder)


def residue_of_linear(s: Simplifier, linear: Linear) -> Residue:
    """The residue of a linear form."""
    total = Residue(0, linear.const)
    for atom, coefficient in linear.terms.items():
        modulus, remainder = s.residue(atom)
        total = add(total, Residue(abs(coefficient) * modulus, coefficient * remainder))
        if total.modulus == 1:
            break
    return total


def residue_of(s: Simplifier, expr: PrimExpr) -> Residue:
    """The residue of an expression whose operands are simplified."""
    if isinstance(expr, IntImm):
        return Residue(0, expr.value)
    if not is_integer(expr.dtype):
        return UNKNOWN
    told = s.facts.residues.get(expr)
    if told is not None:
        return told
    cls = expr.__class__
    if cls in RING:
        return _ring(s, expr)
    if cls in (Min, Max):
        return join(s.residue(expr.a), s.residue(expr.b))  # type: ignore[attr-defined]
    if isinstance(expr, Select):
        return join(s.residue(expr.true_value), s.residue(expr.false_value))
    if isinstance(expr, Call) and expr.op == "if_then_else":
        return join(s.residue(expr.args[1]), s.residue(expr.args[2]))
    if isinstance(expr, FloorMod) and isinstance(expr.b, IntImm) and expr.b.value:
        modulus, remainder = s.residue(expr.a)
        return reduced(gcd(modulus, expr.b.value), remainder)
    if isinstance(expr, FloorDiv) and isinstance(expr.b, IntImm) and expr.b.value > 0:
        modulus, remainder = s.residue(expr.a)
        if modulus % expr.b.value == 0:
            return reduced(modulus // expr.b.value, remainder // expr.b.value)
    return UNKNOWN


def _ring(s: Simplifier, expr: PrimExpr) -> Residue:
    linear = s.ring(expr)
    if isinstance(expr, Mul) and linear.terms.keys() == {expr}:
        found = Residue(0, 1)
        for factor in s.factors[expr]:
            found = multiply(found, s.residue(factor))
    else:
        found = residue_of_linear(s, linear)
    if s.taint(expr) != INDEX:  # modulo 2**bits, only powers of two survive the wrap
        found = reduced(gcd(found.modulus, 1 << expr.dtype.bits), found.remainder)
    return found
