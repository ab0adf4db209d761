"""What an expression is worth for many assignments at once, in the fixed width of its types; the tests' reference."""

from __future__ import annotations

import numpy as np

from relaxlang.arith.classify import type_range
from relaxlang.ir import prim
from relaxlang.ir.prim import PrimExpr

_ARITHMETIC = {
    prim.Add: np.add, prim.Sub: np.subtract, prim.Mul: np.multiply, prim.Min: np.minimum, prim.Max: np.maximum,
    prim.EQ: np.equal, prim.NE: np.not_equal, prim.LT: np.less, prim.LE: np.less_equal, prim.GT: np.greater,
    prim.GE: np.greater_equal,
}  # fmt: skip


class Values:
    """`value` of an expression per assignment, wrapped to its type.

    Where the program fails (a division by 0, a shift out of range) `defined` is false, and where something wrapped
    around on the way `exact` is false.
    """

    def __init__(self, value: np.ndarray, defined: np.ndarray, exact: np.ndarray) -> None:
        self.value, self.defined, self.exact = value, defined, exact


def evaluate(expr: PrimExpr, env: dict[prim.Var, np.ndarray]) -> Values:
    """The values of an integer or bool expression of at most 16 bits; `env` gives equally long int64 arrays."""
    made: dict[int, Values] = {}
    work = [(expr, False)]
    size = len(next(iter(env.values())))
    while work:
        node, ready = work.pop()
        if id(node) in made:
            continue
        if ready:
            made[id(node)] = _node(node, [made[id(operand)] for operand in _operands(node)], env, size)
        else:
            work.append((node, True))
            work.extend((operand, False) for operand in _operands(node))
    return made[id(expr)]


def _operands(node: PrimExpr) -> list[PrimExpr]:
    if isinstance(node, prim.Call):
        return list(node.args)
    return [v for v in (getattr(node, name) for name in node.FIELDS) if isinstance(v, PrimExpr)]


def _node(node: PrimExpr, of: list[Values], env: dict[prim.Var, np.ndarray], size: int) -> Values:
    yes = np.ones(size, bool)
    if isinstance(node, prim.Var):
        return Values(env[node], yes, yes)
    if isinstance(node, prim.IntImm):
        return Values(np.full(size, node.value, np.int64), yes, yes)
    defined = np.logical_and.reduce([v.defined for v in of])
    exact = np.logical_and.reduce([v.exact for v in of])
    x = [v.value for v in of]
    if isinstance(node, prim.And | prim.Or):
        skip = (x[0] == 0) if isinstance(node, prim.And) else (x[0] != 0)
        raw = (x[0] & x[1]) if isinstance(node, prim.And) else (x[0] | x[1])
        return Values(raw, of[0].defined & (skip | of[1].defined), of[0].exact & (skip | of[1].exact))
    if isinstance(node, prim.Call) and node.op == "if_then_else":
        yes = x[0] != 0
        pick = [np.where(yes, getattr(of[1], n), getattr(of[2], n)) for n in ("value", "defined", "exact")]
        return Values(pick[0], of[0].defined & pick[1], of[0].exact & pick[2])
    raw, fine = _raw(node, x)
    if node.dtype.is_bool:
        return Values(raw.astype(np.int64), defined & fine, exact)
    low, high = type_range(node.dtype)
    wrapped = (raw - low) % (high - low + 1) + low
    return Values(wrapped, defined & fine, exact & (wrapped == raw))


def _raw(node: PrimExpr, x: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The mathematical value of one operation, and where it has one."""
    yes = np.ones(len(x[0]), bool)
    if type(node) in _ARITHMETIC:
        return _ARITHMETIC[type(node)](*x), yes
    if isinstance(node, prim.Not):
        return x[0] == 0, yes
    if isinstance(node, prim.Select):
        return np.where(x[0] != 0, x[1], x[2]), yes
    if isinstance(node, prim.Cast):
        return x[0], yes
    if isinstance(node, prim.FloorDiv | prim.FloorMod | prim.Div | prim.Mod):
        by = np.where(x[1] == 0, 1, x[1])
        quotient = x[0] // by
        if isinstance(node, prim.Div | prim.Mod):
            quotient = np.where(x[0] - quotient * by != 0, quotient + (quotient < 0), quotient)
        division = isinstance(node, prim.FloorDiv | prim.Div)
        return quotient if division else x[0] - quotient * by, x[1] != 0
    assert isinstance(node, prim.Call)
    if node.op in ("shift_left", "shift_right"):
        amount = np.clip(x[1], 0, node.dtype.bits - 1)
        raw = x[0] << amount if node.op == "shift_left" else x[0] >> amount
        return raw, (x[1] >= 0) & (x[1] < node.dtype.bits)
    operations = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
    if node.op in operations:
        return operations[node.op](*x), yes
    if node.op == "bitwise_not":
        return ~x[0], yes
    assert node.op == "likely", node.op
    return x[0], yes


def every(variables: list[prim.Var], ranges: list[range]) -> dict[prim.Var, np.ndarray]:
    """All combinations of values."""
    grids = np.meshgrid(*(np.array(r, np.int64) for r in ranges), indexing="ij")
    return {v: g.ravel() for v, g in zip(variables, grids)}
