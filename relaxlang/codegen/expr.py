"""Expressions: from PrimExpr to LLVM operands."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType
from relaxlang.base.node import Node
from relaxlang.codegen import arithmetic
from relaxlang.codegen.algebra import Num, inline_call
from relaxlang.codegen.casts import convert
from relaxlang.codegen.context import KernelContext
from relaxlang.codegen.lltypes import constant, is_narrow, memory_type, value_type
from relaxlang.codegen.narrow import load_bits, rounded, store_bits
from relaxlang.codegen.text import FunctionText
from relaxlang.ir import prim
from relaxlang.ir.prim import PrimExpr, Var
from relaxlang.ir.tir import Buffer
from relaxlang.ir.visit import LEAVES, children, walk

MOST_LANES = 1024
_PREDICATES = {
    prim.EQ: ("oeq", "eq", "eq"), prim.NE: ("une", "ne", "ne"), prim.LT: ("olt", "slt", "ult"),
    prim.LE: ("ole", "sle", "ule"), prim.GT: ("ogt", "sgt", "ugt"), prim.GE: ("oge", "sge", "uge"),
}  # fmt: skip
_PLAIN = {prim.Add: ("fadd", "add"), prim.Sub: ("fsub", "sub"), prim.Mul: ("fmul", "mul")}


class ExprEmitter:
    """Writes expressions into a function that returns an i32 status.

    `env` gives the operand of each variable in scope, `heap` the memory to give back before the function returns.
    """

    def __init__(self, context: KernelContext, at: FunctionText, env: dict[Var, str]) -> None:
        self.context = context
        self.module = context.module
        self.at = at
        self.env = env
        self.heap: list[str] = []
        self.place: Node | None = None
        self.own: set[Var] = set()  # memory of constant size that the function allocated on the stack
        self.streaming: frozenset[Var] = frozenset()  # memory to which lines are stored past the caches
        self.settled_loads: dict[PrimExpr, str] = {}  # the operands of loads that stand before the loops at hand
        self._memo: dict[int, tuple[str, PrimExpr]] = {}
        self._harmless: dict[int, tuple[bool, PrimExpr]] = {}

    def fail(self, code: str, message: str, node: Node | None = None, *, help: str = "") -> NoReturn:
        """Raise a diagnostic at the node, or at the statement that is being written."""
        span = getattr(node, "span", None) or getattr(self.place, "span", None)
        fail(code, message, span, help=help, node=self.place if node is None else node)

    def begin(self, place: Node) -> None:
        """Start a statement: what earlier ones computed is not reused."""
        self.place = place
        if self.at.scope is not None and self.context.debug is not None:
            self.at.location = self.context.debug.location(self.at.scope, place)
        self._memo = {}

    def expr(self, e: PrimExpr) -> str:
        """The operand of an expression; shared subexpressions are computed once."""
        if e.__class__ is prim.IntImm or e.__class__ is prim.FloatImm:
            return constant(e.value, e.of)
        known = self._memo.get(id(e))
        if known is not None:
            return known[0]
        emit = _TABLE.get(e.__class__)
        if emit is None:
            self.fail("RLX5013", f"a {type(e).__name__} cannot stand in code", e)
        if e.dtype.lanes > MOST_LANES:
            self.fail("RLX5016", f"a vector of {e.dtype.lanes} lanes is too long: at most {MOST_LANES}", e)
        made = emit(self, e)
        self._memo[id(e)] = (made, e)
        return made

    def num(self, e: PrimExpr) -> Num:
        """The operand of an expression, with its type."""
        return Num(self.at, self.expr(e), value_type(e.dtype))

    def value(self, ref: str, of: DType) -> Num:
        """An operand of a dtype as a `Num`."""
        return Num(self.at, ref, value_type(of))

    # --- leaving ------------------------------------------------------------------------------------------------------
    def free(self, keep: int) -> None:
        """Give back the heap memory allocated after the first `keep` allocations."""
        for pointer in reversed(self.heap[keep:]):
            self.at.call("void", self.module.external("free", "void", ["ptr"]), ("ptr", pointer))

    def leave(self, status: str) -> None:
        """Return from the function."""
        self.free(0)
        self.at.finish(f"ret i32 {status}")

    def require(self, condition: str, status: str) -> None:
        """Go on when the i1 `condition` holds; else return the status."""
        failed, passed = self.at.label("failed"), self.at.label("passed")
        self.at.branch_if(condition, passed, failed, self.context.likely)
        self.at.start(failed)
        self.leave(status)
        self.at.start(passed)

    def assume_zero(self, status: str) -> None:
        """Go on when the status of something that was called is 0; else return it."""
        self.require(self.at.value(f"icmp eq i32 {status}, 0"), status)

    # --- memory -------------------------------------------------------------------------------------------------------
    def pointer(self, var: Var) -> str:
        """The operand of a data pointer."""
        made = self.env.get(var)
        if made is None:
            self.fail("RLX5015", f"the memory of `{var.name}` is not defined here")
        return made

    def address(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> str:
        """The pointer to an element of a flat buffer; a vector of pointers at a vector index."""
        index, base = self.flat_index(buffer, indices), self.pointer(buffer.data)
        lanes = index.dtype.lanes
        scalar = memory_type(buffer.dtype.scalar)
        operand = self.expr(index)
        if buffer.dtype.lanes > 1:
            operand = (self.value(operand, index.dtype) * buffer.dtype.lanes).ref
        if lanes == 1 and operand == "0":
            return base
        kind = value_type(index.dtype)
        if index.dtype.is_uint and index.dtype.bits < 64:  # LLVM takes indices as signed
            wide = self.value(operand, index.dtype).convert("zext", "i64")
            operand, kind = wide.ref, wide.type
        return self.at.value(f"getelementptr inbounds {scalar}, ptr {base}, {kind} {operand}")

    def flat_index(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
        """The only index of an access to a flat buffer."""
        if len(indices) != 1:
            self.fail("RLX9001", f"`{buffer.name}` is accessed with {len(indices)} indices after flattening")
        return indices[0]

    def from_memory(self, ref: str, of: DType) -> str:
        """A value as it was in memory, as it is in registers."""
        stored = Num(self.at, ref, memory_type(of))
        if is_narrow(of):
            return load_bits(stored, of).ref
        return stored.convert("trunc", value_type(of.scalar)).ref if stored.type != value_type(of) else ref

    def to_memory(self, ref: str, of: DType) -> str:
        """A value as it is in registers, as it goes to memory."""
        value = self.value(ref, of)
        if is_narrow(of):
            return store_bits(value, of).ref
        op = "sext" if of.is_int else "zext"
        return value.convert(op, memory_type(of.scalar)).ref if value.type != memory_type(of) else ref

    def speculable(self, e: PrimExpr) -> bool:
        """Whether evaluating it where it is not wanted does no harm: it neither loads nor has effects."""
        known = self._harmless.get(id(e))
        if known is None:
            found = not isinstance(e, prim.BufferLoad) and not (isinstance(e, prim.Call) and _impure(e))
            for child in children(e) if e.__class__ not in LEAVES else ():
                found = found and (not isinstance(child, PrimExpr) or self.speculable(child))
            known = self._harmless[id(e)] = (found, e)
        return known[0]

    def settled(self, e: PrimExpr) -> bool:
        """Whether an expression is the same in all iterations of the innermost loop, which there is."""
        return False

    def conditional(self, condition: str, yes: Callable[[], str], no: Callable[[], str], of: str) -> str:
        """`yes()` or `no()`, of LLVM type `of`, each evaluated only when it is wanted."""
        at, outer = self.at, self._memo
        then, other, done = at.label("then"), at.label("else"), at.label("joined")
        at.branch_if(condition, then, other)
        arms = []
        for label, arm in ((then, yes), (other, no)):
            at.start(label)
            self._memo = dict(outer)
            arms.append(f"[ {arm()}, %{at.block} ]")
            at.branch(done)
        self._memo = outer
        at.start(done)
        return at.value(f"phi {of} {', '.join(arms)}")


def _impure(call: prim.Call) -> bool:
    from relaxlang.ir.intrinsics import INTRINSICS

    found = INTRINSICS.get(call.op) if isinstance(call.op, str) else None
    return found is None or not found.pure or found.name in ("call_pure_extern", "call_llvm_pure_intrin")


# --- the table --------------------------------------------------------------------------------------------------------
def _var(em: ExprEmitter, e: Var) -> str:
    made = em.env.get(e)
    if made is None:
        em.fail("RLX5015", f"`{e.name}` has no value here", e, help="a kernel gets it from a parameter or a shape")
    return made


def _arith(em: ExprEmitter, e: prim.BinaryOp) -> str:
    if e.__class__ is prim.Add and isinstance(e.b, prim.Call) and e.b.op == "dp4a" and _is_zero(e.b.args[2]):
        return _call(em, e.b.replace(args=(*e.b.args[:2], e.a)))  # one instruction
    floating, integer = _PLAIN[type(e)]
    a, b, of = em.expr(e.a), em.expr(e.b), e.dtype
    if of.is_float:
        return rounded(em.value(em.at.value(f"{floating} {value_type(of)} {a}, {b}"), of), of).ref
    if of.is_handle:
        em.fail("RLX5016", f"`{integer}` of handles is not defined", e, help="use `T.address_of(buffer[index])`")
    if of.is_bool and integer == "add":
        integer = "or"
    return _folded(integer, a, b, of) or em.at.value(f"{integer} {value_type(of)} {a}, {b}")


_FOLD: dict[str, Callable[[int, int], int]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
_HOLDS: dict[type, Callable[[int, int], bool]] = {
    prim.EQ: operator.eq, prim.NE: operator.ne, prim.LT: operator.lt, prim.LE: operator.le, prim.GT: operator.gt,
    prim.GE: operator.ge,
}  # fmt: skip


def _number(ref: str) -> int | None:
    """The value of an operand that is an integer constant."""
    return int(ref) if ref.lstrip("-").isdecimal() else None


def _folded(op: str, a: str, b: str, of: DType) -> str:
    """The operand of `a op b` where it is one of them or a constant, as it is in loops that are written out: the places
    of register tiles are constant then, which lets LLVM keep them in registers. Empty for other operations."""
    if of.lanes > 1 or not of.is_int or op not in _FOLD:
        return ""
    x, y = _number(a), _number(b)
    if x is not None and y is not None:
        made = _FOLD[op](x, y)
        return str(made) if -(1 << of.bits - 1) <= made < 1 << of.bits - 1 else ""
    if y == (1 if op == "mul" else 0):
        return a
    return b if x is not None and x == {"add": 0, "mul": 1}.get(op) else ""


def _divide(em: ExprEmitter, e: prim.BinaryOp) -> str:
    a, b, of = em.num(e.a), em.num(e.b), e.dtype
    floor, remainder = isinstance(e, (prim.FloorDiv, prim.FloorMod)), isinstance(e, (prim.Mod, prim.FloorMod))
    if of.is_float:
        if isinstance(e, prim.Div):
            return rounded(Num(em.at, em.at.value(f"fdiv {a.type} {a.ref}, {b.ref}"), a.type), of).ref
        if isinstance(e, prim.Mod):
            return rounded(arithmetic.float_mod(a, b), of).ref
        function = arithmetic.float_floor_mod if remainder else arithmetic.float_floor_div
        return rounded(inline_call(em.at, f"rlx.{function.__name__}", function, a, b), of).ref
    value = e.b.value if isinstance(e.b, prim.Broadcast) else e.b
    divisor = value.value if isinstance(value, prim.IntImm) else None
    return arithmetic.divide(a, b, of, divisor, floor=floor, remainder=remainder).ref


def _extremum(em: ExprEmitter, e: prim.BinaryOp) -> str:
    return arithmetic.extremum(em.num(e.a), em.num(e.b), e.dtype, isinstance(e, prim.Max)).ref


def _compare(em: ExprEmitter, e: prim.CmpOp) -> str:
    of = e.a.dtype
    if of.is_integer and of.lanes == 1:
        x, y = _number(em.expr(e.a)), _number(em.expr(e.b))
        if x is not None and y is not None:
            return "true" if _HOLDS[type(e)](x, y) else "false"
    elif type(e) is prim.LT and isinstance(e.a, prim.Ramp) and isinstance(e.b, prim.Broadcast):
        made = _first_lanes(em, e.a, e.b)
        if made:
            return made
    predicate = _PREDICATES[type(e)][0 if of.is_float else 1 if of.is_int else 2]
    return em.num(e.a).compare(predicate, em.num(e.b)).ref


def _first_lanes(em: ExprEmitter, run: prim.Ramp, end: prim.Broadcast) -> str:
    """The mask of the lanes of a run of indices below an end, from the number of such lanes: half as wide a comparison
    as one of 64-bit indices. Empty for other comparisons."""
    of = run.base.dtype
    unit = isinstance(run.stride, prim.IntImm) and run.stride.value == 1
    if not unit or of.lanes > 1 or end.value.dtype.lanes > 1 or not of.is_int or of.bits < 32:
        return ""
    from relaxlang.codegen.access import splat

    left = em.num(prim.fold(prim.Sub, end.value, run.base))
    left = left.call("llvm.smax", 0).call("llvm.smin", run.lanes)
    few = left.convert("trunc", "i32") if of.bits > 32 else left
    wide = Num(em.at, splat(em, few.ref, "i32", run.lanes), f"<{run.lanes} x i32>")
    counts = f"<{', '.join(f'i32 {i}' for i in range(run.lanes))}>"
    return Num(em.at, counts, wide.type).compare("slt", wide).ref


def _logic(em: ExprEmitter, e: prim.CmpOp) -> str:
    both = isinstance(e, prim.And)
    if e.dtype.lanes == 1:
        first = em.expr(e.a)
        if first in ("true", "false"):  # decided, as conditions are in loops that are written out
            return em.expr(e.b) if (first == "true") == both else first
    if e.dtype.lanes > 1 or em.speculable(e.b) or _loads_nothing_new(e.a, e.b):
        return em.at.value(f"{'and' if both else 'or'} {value_type(e.dtype)} {em.expr(e.a)}, {em.expr(e.b)}")
    if both:
        return em.conditional(em.expr(e.a), lambda: em.expr(e.b), lambda: "false", "i1")
    return em.conditional(em.expr(e.a), lambda: "true", lambda: em.expr(e.b), "i1")


def _loads_nothing_new(first: PrimExpr, second: PrimExpr) -> bool:
    """Whether evaluating `second` after `first` does no harm: it loads what that has loaded at any rate."""
    loaded: set[PrimExpr] = set()
    work = [first]
    while work:
        node = work.pop()
        if isinstance(node, (prim.And, prim.Or)):
            work.append(node.a)
        elif not any(isinstance(n, (prim.Call, prim.And, prim.Or)) for n in walk(node)):
            loaded.update(n for n in walk(node) if isinstance(n, prim.BufferLoad))
    nodes = list(walk(second))
    new = [n for n in nodes if isinstance(n, prim.BufferLoad) and n not in loaded]
    return not new and not any(isinstance(n, prim.Call) and _impure(n) for n in nodes)


def _not(em: ExprEmitter, e: prim.Not) -> str:
    if not e.dtype.is_bool:
        em.fail("RLX5016", f"`not` of {e.dtype} is not defined", e, help="compare with 0 first")
    decided = {"true": "false", "false": "true"}.get(em.expr(e.a))
    return decided or (em.num(e.a) ^ 1).ref


def _cast(em: ExprEmitter, e: prim.Cast) -> str:
    source = e.value.dtype
    if (
        "void" in (source.name, e.of.name)
        or (source.is_handle and e.of.is_float)
        or (source.is_float and e.of.is_handle)
    ):
        em.fail("RLX5016", f"a {source} cannot be converted to {e.of}", e)
    return convert(em.num(e.value), e.value.dtype, e.of).ref


def _select(em: ExprEmitter, e: prim.Select) -> str:
    if isinstance(e.true_value, prim.BufferLoad) and e.true_value.predicate is e.condition and _is_zero(e.false_value):
        return em.expr(e.true_value)  # lanes that are not loaded are 0
    if isinstance(e.true_value, prim.BufferLoad) and e.true_value.predicate is e.condition and e.dtype.lanes > 1:
        from relaxlang.codegen.strided import load_alternate

        made = load_alternate(em, e.true_value, e.false_value)
        if made:
            return made
    return _chosen(em, e)


def _chosen(em: ExprEmitter, e: prim.Select) -> str:
    condition, yes, no = em.num(e.condition), em.num(e.true_value), em.num(e.false_value)
    return condition.where(yes, no).ref


def _is_zero(e: PrimExpr) -> bool:
    value = e.value if isinstance(e, prim.Broadcast) else e
    if isinstance(value, prim.FloatImm):
        return value.value == 0 and math.copysign(1, value.value) == 1
    return isinstance(value, prim.IntImm) and value.value == 0


def _let(em: ExprEmitter, e: prim.Let) -> str:
    em.env[e.var] = em.expr(e.value)
    return em.expr(e.body)


def _call(em: ExprEmitter, e: prim.Call) -> str:
    from relaxlang.codegen.intrinsics import emit_call

    return emit_call(em, e)


def _string(em: ExprEmitter, e: prim.StringImm) -> str:
    return em.module.data(e.value.encode() + b"\0", align=1)


def _load(em: ExprEmitter, e: prim.BufferLoad) -> str:
    from relaxlang.codegen.access import load

    return em.settled_loads.get(e) or load(em, e)


def _vector(em: ExprEmitter, e: Any) -> str:
    from relaxlang.codegen.access import vector

    return vector(em, e)


_TABLE: dict[type, Callable[[Any, Any], str]] = {
    prim.Var: _var, prim.SizeVar: _var, prim.StringImm: _string,
    prim.Add: _arith, prim.Sub: _arith, prim.Mul: _arith,
    prim.Div: _divide, prim.Mod: _divide, prim.FloorDiv: _divide, prim.FloorMod: _divide,
    prim.Min: _extremum, prim.Max: _extremum,
    **dict.fromkeys(_PREDICATES, _compare),
    prim.And: _logic, prim.Or: _logic, prim.Not: _not, prim.Cast: _cast, prim.Select: _select, prim.Let: _let,
    prim.Call: _call, prim.BufferLoad: _load, prim.Ramp: _vector, prim.Broadcast: _vector, prim.Shuffle: _vector,
}  # fmt: skip
