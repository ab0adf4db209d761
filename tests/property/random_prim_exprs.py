"""Random scalar and vector expressions of a wanted type, of every node and intrinsic there is."""

from __future__ import annotations

from collections.abc import Callable

from relaxlang.base.dtype import DType, dtype
from relaxlang.ir import prim, tir
from relaxlang.ir.intrinsics import INTRINSICS
from relaxlang.ir.prim import BOOL, HANDLE, INT32, INT64, PrimExpr
from relaxlang.ir.relax import GlobalVar
from tests.property import random_values as values
from tests.property.choices import Choices

ARITHMETIC = (prim.Add, prim.Sub, prim.Mul, prim.Min, prim.Max, prim.FloorDiv, prim.FloorMod, prim.Div, prim.Mod)
COMPARISONS = (prim.LT, prim.EQ, prim.NE, prim.LE, prim.GT, prim.GE)
CARRIED = ("ptx_commit_group", "tvm_mma_sync", "texture2d_load", "ptx.mma", "cuda.cta_sync", "thread_return")
EXTERNS = ("call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin")
DISCRETE = [dtype(name) for name in ("int32", "int64", "uint8", "int8", "uint32", "uint64", "int16")]


class Scope:
    """What an expression may use: variables, buffers, functions of the module that it may call."""

    def __init__(self, variables: tuple[prim.Var, ...] = (), buffers: tuple[tir.Buffer, ...] = ()) -> None:
        self.variables = variables
        self.buffers = buffers
        self.callees: tuple[tuple[str, DType | None], ...] = ()

    def plus(self, *more: prim.Var | tir.Buffer) -> Scope:
        """This scope and what is defined further in."""
        made = Scope(
            (*self.variables, *(v for v in more if isinstance(v, prim.Var))),
            (*self.buffers, *(b for b in more if isinstance(b, tir.Buffer))),
        )
        made.callees = self.callees
        return made


class Expressions:
    """Makes expressions. `plain`: only those that a shape may consist of."""

    def __init__(self, c: Choices, plain: bool = False) -> None:
        self.c = c
        self.plain = plain

    def expr(self, of: DType, scope: Scope, depth: int = 3) -> PrimExpr:
        """An expression of that type."""
        c = self.c
        if depth == 0 or not c.spend() or c.chance(3):
            return self.leaf(of, scope)
        if of.is_handle:
            return self.pointer(scope, depth - 1)
        options = [self.binary, self.select] if not of.is_bool else [self.comparison, self.logic]
        if self.plain:
            return c.pick(options)(of, scope, depth - 1)
        options += [self.cast, self.let, self.intrinsic, self.call]
        if of.lanes > 1:
            options += [self.vector, self.vector]
        else:
            options.append(self.reduction)
        return c.pick(options)(of, scope, depth - 1)

    def leaf(self, of: DType, scope: Scope) -> PrimExpr:
        """A constant, a variable, an element of a buffer."""
        c = self.c
        known: list[PrimExpr] = [v for v in scope.variables if v.dtype is of]
        if known and c.chance():
            return c.pick(known)
        buffers = [b for b in scope.buffers if b.dtype is of] if not self.plain else []
        if buffers and c.chance():
            return self.load(c.pick(buffers), scope)
        if of.is_handle:
            return prim.Call(HANDLE, "call_extern", (prim.StringImm(c.pick(values.TEXTS)),))
        return values.constant(c, of)

    def load(self, buffer: tir.Buffer, scope: Scope) -> PrimExpr:
        """`A[i, j]`, guarded by a predicate now and then (then a vector is loaded in fact)."""
        return prim.BufferLoad(buffer, self.indices(buffer, scope))

    def indices(self, buffer: tir.Buffer, scope: Scope) -> tuple[PrimExpr, ...]:
        """An index for each dimension, of some integer type; inside the buffer when both are constants."""
        made = []
        for n in buffer.shape:
            index = self.expr(self.c.pick((INT32, INT64)), scope, 1)
            out = isinstance(index, prim.IntImm) and (index.value < 0 or isinstance(n, prim.IntImm))
            made.append(prim.IntImm(index.dtype, 0) if out else index)
        return tuple(made)

    # --- operators ----------------------------------------------------------------------------------------------------
    def binary(self, of: DType, scope: Scope, depth: int) -> PrimExpr:
        """Arithmetic; a division by a constant zero is none."""
        kind = self.c.pick(ARITHMETIC)
        a, b = self.expr(of, scope, depth), self.expr(of, scope, depth)
        if kind in (prim.FloorDiv, prim.FloorMod, prim.Div, prim.Mod) and isinstance(b, prim.IntImm) and not b.value:
            b = prim.IntImm(b.of, 1)
        return kind(a, b)

    def comparison(self, of: DType, scope: Scope, depth: int) -> PrimExpr:
        """A comparison of two values of some type, with as many lanes."""
        sides = self.c.pick([INT64, *DISCRETE, *values.FLOATS] if not self.plain else [INT64]).with_lanes(of.lanes)
        return self.c.pick(COMPARISONS)(self.expr(sides, scope, depth), self.expr(sides, scope, depth))

    def logic(self, of: DType, scope: Scope, depth: int) -> PrimExpr:
        """And, or, not."""
        a = self.expr(of, scope, depth)
        kind = self.c.number(0, 2)
        if kind == 0:
            return prim.Not(a)
        return (prim.And if kind == 1 else prim.Or)(a, self.expr(of, scope, depth))

    def select(self, of: DType, scope: Scope, depth: int) -> PrimExpr:
        """A choice between two values, eager or lazy."""
        condition = self.expr(BOOL, scope, depth)
        a, b = self.expr(of, scope, depth), self.expr(of, scope, depth)
        if self.c.chance():
            return prim.Call(of, "if_then_else", (condition, a, b))
        return prim.Select(condition, a, b) if not self.plain else prim.Max(a, b)

    def cast(self, of: DType, scope: Scope, depth: int) -> PrimExpr:
        """A conversion, also to the type that the value has."""
        source = self.c.pick([*values.INTS, *values.FLOATS, BOOL, *values.SMALL_FLOATS[:2]]).with_lanes(of.lanes)
        return prim.Cast(of, self.expr(source, scope, depth))

    def let(self, of: DType, scope: Scope, depth: int) -> PrimExpr:
        """A value with a name."""
        var = prim.Var(values.name(self.c), self.c.pick((of, INT32, INT64)))
        return prim.Let(var, self.expr(var.dtype, scope, depth), self.expr(of, scope.plus(var), depth))

    def vector(self, of: DType, scope: Scope, depth: int) -> PrimExpr:
        """A vector made of scalars."""
        c, one = self.c, of.scalar
        kind = c.number(0, 2)
        if kind == 0 and of.is_integer:
            return prim.Ramp(self.expr(one, scope, depth), self.expr(one, scope, depth), of.lanes)
        if kind == 1:
            whole = self.expr(of, scope, depth)
            return prim.Shuffle((whole, self.expr(of, scope, depth)), tuple([prim.IntImm(INT32, 1)] * of.lanes))
        return prim.Broadcast(self.expr(one, scope, depth), of.lanes)

    # --- calls --------------------------------------------------------------------------------------------------------
    def intrinsic(self, of: DType, scope: Scope, depth: int) -> PrimExpr:
        """An intrinsic whose result has the type of its arguments, or is what is wanted anyhow."""
        kind = "float" if of.is_float else "integer" if of.is_integer else ""
        fits = [
            row for row in INTRINSICS.values()
            if row.result == "same" and row.arity > 0 and row.accepts in ("any", "number" if kind else "", kind)
        ]  # fmt: skip
        row = self.c.pick(fits)
        if row.name.startswith("shift"):
            return prim.Call(of, row.name, (self.expr(of, scope, depth), values.prim.const(0, of)))
        if row.name.startswith("bitwise") and of.is_float:
            return self.binary(of, scope, depth)
        return prim.Call(of, row.name, tuple([self.expr(of, scope, depth) for _ in range(row.arity)]))

    def call(self, of: DType, scope: Scope, depth: int) -> PrimExpr:
        """A call that states its type, or one of the few with a type of their own."""
        c = self.c
        numeric = c.pick([*values.FLOATS, *values.INTS])
        if of is BOOL and c.chance():
            return prim.Call(
                of, c.pick(("isnan", "isinf", "isfinite")), (self.expr(c.pick(values.FLOATS), scope, depth),)
            )
        if of is BOOL and c.chance(3):
            return prim.Call(of, "isnullptr", (self.expr(HANDLE, scope, depth),))
        if of is INT32 and c.chance():
            made: Callable[[], PrimExpr] = c.pick((
                lambda: prim.Call(of, "vscale", ()),
                lambda: prim.Call(of, "clz", (self.expr(INT64, scope, depth),)),
                lambda: prim.Call(of, "call_packed", (prim.StringImm("a.b"), self.expr(HANDLE, scope, 1))),
                lambda: prim.Call(of, "call_cpacked", (prim.StringImm("f"), self.expr(numeric, scope, depth))),
                lambda: prim.Call(of, "q_multiply_shift", tuple([self.expr(of, scope, depth) for _ in range(4)])),
            ))  # fmt: skip
            return made()
        callees = [name for name, result in scope.callees if result is of]
        if callees and c.chance():
            return prim.Call(of, GlobalVar(c.pick(callees)), c.some(lambda: self.expr(HANDLE, scope, 0), 0, 2))
        if c.chance(4):
            return prim.Call(of, c.pick(CARRIED), c.some(lambda: self.expr(INT32, scope, depth), 0, 3))
        if c.chance(3):
            return prim.Call(of, "reinterpret", (self.expr(of, scope, depth),))
        if not of.is_bool and of.lanes == 1 and c.chance(3):
            return prim.Call(of, c.pick(("min_value", "max_value", "infinity") if of.is_float else ("max_value",)), ())
        name = prim.StringImm(c.pick(values.TEXTS))
        return prim.Call(of, c.pick(EXTERNS), (name, *c.some(lambda: self.expr(numeric, scope, depth), 0, 2)))

    def pointer(self, scope: Scope, depth: int) -> PrimExpr:
        """An address."""
        c = self.c
        if scope.buffers and c.chance():
            buffer = c.pick(scope.buffers)
            if c.chance():
                return buffer.data
            return prim.Call(HANDLE, "address_of", (prim.BufferLoad(buffer, self.indices(buffer, scope)),))
        return prim.Call(HANDLE, c.pick(CARRIED), c.some(lambda: self.expr(INT32, scope, depth), 0, 2))

    def reduction(self, of: DType, scope: Scope, depth: int) -> PrimExpr:
        """A reduction in the manner of TE."""
        if depth == 0 or not self.c.chance(4):
            return self.binary(of, scope, depth) if not of.is_bool else self.logic(of, scope, depth)
        a, b = prim.Var(values.name(self.c), of), prim.Var(values.name(self.c), of)
        combined = self.expr(of, Scope((a, b)), 1)
        reducer = prim.CommReducer((a,), (b,), (combined,), (values.constant(self.c, of),))
        var = prim.Var(values.name(self.c), INT32)
        axis = tir.IterVar(var, tir.Range(prim.IntImm(INT32, 0), prim.IntImm(INT32, 8)), "reduce")
        inner = scope.plus(var)
        when = self.expr(BOOL, inner, 1) if self.c.chance() else None
        return prim.Reduce(reducer, (self.expr(of, inner, depth),), (axis,), when)
