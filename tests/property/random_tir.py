"""Random TensorIR: kernels over two inputs and two outputs, with loops, blocks, conditions, lets and local memory.

Everything is drawn from a hypothesis strategy, so that a failing kernel shrinks. Kernels are well-formed; with
`in_bounds` every access is within its buffer, and with `exact` every operation is one whose result does not depend on
how it is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from relaxlang.base.dtype import DType, dtype
from relaxlang.ir import prim, tir
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import BOOL, INT64, IntImm, PrimExpr

Draw = Callable[[st.SearchStrategy[Any]], Any]
TYPES = [dtype(name) for name in ("float32", "int32", "int8", "uint8", "int64", "float64", "float16")]
KINDS: tuple[tir.ForKind, ...] = ("serial", "serial", "unroll", "vectorized", "parallel")
IN_ORDER = KINDS[:-1]  # without a promise that iterations don't meet
TRUE = IntImm(BOOL, 1)


def index(value: int) -> IntImm:
    """A constant of type int64."""
    return IntImm(INT64, value)


class Maker:
    """Draws one kernel."""

    def __init__(self, draw: Draw, in_bounds: bool, exact: bool, kinds: tuple[tir.ForKind, ...]) -> None:
        self.draw = draw
        self.in_bounds = in_bounds
        self.exact = exact
        self.kinds = kinds
        self.names = 0
        self.inputs = [self.buffer(f"A{i}", 0) for i in range(2)]
        self.outputs = [self.buffer(f"B{i}", 1) for i in range(2)]

    # --- drawing ------------------------------------------------------------------------------------------------------
    def pick(self, options: Any) -> Any:
        """One of some options; the first is the simplest."""
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        """An integer from `low` to `high`."""
        return int(self.draw(st.integers(low, high)))

    def chance(self) -> bool:
        """True or false."""
        return bool(self.draw(st.booleans()))

    def var(self, hint: str, of: DType = INT64) -> prim.Var:
        """A fresh variable."""
        self.names += 1
        return prim.Var(f"{hint}{self.names}", of)

    def buffer(self, name: str, smallest: int) -> tir.Buffer:
        """A buffer of one or two dimensions."""
        shape = tuple(index(self.number(smallest, 9)) for _ in range(self.number(1, 2)))
        return tir.Buffer(name, shape, self.pick(TYPES), prim.Var(name, prim.HANDLE))

    # --- expressions --------------------------------------------------------------------------------------------------
    def offset(self, scope: list[prim.Var], depth: int = 2) -> PrimExpr:
        """An integer expression over loop variables, of small values."""
        if depth == 0 or self.chance():
            return self.pick(scope) if scope and self.chance() else index(self.number(-2, 9))
        a, b = self.offset(scope, depth - 1), self.offset(scope, depth - 1)
        constant = index(self.number(1, 4))
        return self.pick([a + b, a - b, a * constant, a // constant, a % constant, prim.Min(a, b), prim.Max(a, b)])

    def places(self, buffer: tir.Buffer, scope: list[prim.Var]) -> tuple[PrimExpr, ...]:
        """Indices of a buffer; inside it when the kernel is to be."""
        drawn = [self.offset(scope) for _ in buffer.shape]
        if self.in_bounds or self.number(0, 5):
            return tuple(prim.FloorMod(e, n) for e, n in zip(drawn, buffer.shape))
        return tuple(drawn)

    def load(self, scope: list[prim.Var], sources: list[tir.Buffer]) -> PrimExpr:
        """A load, sometimes guarded by a condition; a constant when the buffer is empty."""
        buffer = self.pick(sources)
        if any(isinstance(n, IntImm) and n.value == 0 for n in buffer.shape):
            return prim.const(1, buffer.dtype)
        if self.chance():
            return prim.BufferLoad(buffer, self.places(buffer, scope))
        indices = tuple(self.offset(scope) for _ in buffer.shape)
        inside = prim.all_of(*(c for i, n in zip(indices, buffer.shape) for c in (prim.GE(i, index(0)), prim.LT(i, n))))
        args = (inside, prim.BufferLoad(buffer, indices), prim.const(self.number(0, 3), buffer.dtype))
        return prim.Call(buffer.dtype, "if_then_else", args)

    def condition(self, scope: list[prim.Var], sources: list[tir.Buffer]) -> PrimExpr:
        """A truth value."""
        a, b = self.offset(scope), self.offset(scope)
        kind = self.pick([prim.LT, prim.LE, prim.EQ, prim.NE, prim.GE])
        simple: PrimExpr = kind(a, b)
        if self.chance():
            return simple
        loaded = self.load(scope, sources)
        other = self.pick([prim.LT, prim.GT])(loaded, prim.const(1, loaded.dtype))
        return self.pick([prim.And(simple, other), prim.Or(simple, other), prim.Not(other)])

    def value(self, of: DType, scope: list[prim.Var], sources: list[tir.Buffer], depth: int = 3) -> PrimExpr:
        """An expression of a type."""
        if depth == 0 or self.number(0, 3) == 0:
            leaf = self.load(scope, sources) if self.chance() else self.offset(scope)
            return leaf if leaf.dtype is of else prim.Cast(of, leaf)
        a, b = (self.value(of, scope, sources, depth - 1) for _ in range(2))
        kinds: list[Any] = [prim.Add, prim.Sub, prim.Mul, prim.Min, prim.Max]
        if not of.is_float:
            kinds += [prim.FloorDiv, prim.FloorMod, prim.Div, prim.Mod, "bitwise_xor", "shift_left", "shift_right"]
        if of.is_float and not self.exact:
            kinds += ["exp", "tanh", "sqrt", "sigmoid"]
        kind = self.pick([*kinds, "select", "choose", "let"])
        if kind == "select":
            return prim.Select(self.condition(scope, sources), a, b)
        if kind == "choose":
            return prim.Call(of, "if_then_else", (self.condition(scope, sources), a, b))
        if kind == "let":
            var = self.var("t", of)
            return prim.Let(var, a, prim.Add(var, prim.Mul(var, b)))
        if isinstance(kind, str):
            if kind.startswith("shift") and self.in_bounds:  # a constant amount must be less than the width
                b = prim.Call(of, "bitwise_and", (b, prim.const(of.bits - 1, of)))
            return prim.Call(of, kind, (a,) if of.is_float else (a, b))
        made: PrimExpr = kind(a, b)
        return made

    # --- statements ---------------------------------------------------------------------------------------------------
    def loop(self, var: prim.Var, first: PrimExpr, extent: PrimExpr, body: tir.Stmt) -> tir.For:
        """A loop of some kind."""
        return tir.For(var, first, extent, self.pick(self.kinds), body)

    def nest(self) -> tir.Stmt:
        """Loops over one block, some of whose axes may be reduced over."""
        target = self.pick(self.outputs)
        extents = [n.value for n in target.shape] + [self.number(0, 5) for _ in range(self.number(0, 1))]
        axes = [
            tir.IterVar(self.var("v"), tir.Range(index(0), index(n)), "spatial" if k < target.ndim else "reduce")
            for k, n in enumerate(extents)
        ]
        loops, values, predicate = self.bindings(extents)
        scope = [axis.var for axis in axes]
        at = tuple(scope[: target.ndim])
        sources = [*self.inputs, *(b for b in self.outputs if b is not target)]
        value = self.value(target.dtype, scope, sources)
        init = None
        if len(axes) > target.ndim:
            value = self.pick([prim.Add, prim.Max, prim.Sub])(prim.BufferLoad(target, at), value)
            init = tir.BufferStore(target, prim.const(self.number(0, 2), target.dtype), at)
        block = tir.Block(tuple(axes), None, None, "b", tir.BufferStore(target, value, at), init)
        body: tir.Stmt = tir.BlockRealize(tuple(values), predicate, block)
        for var, extent in self.shuffled(loops):
            body = self.loop(var, index(0), index(extent), body)
        return body

    def bindings(self, extents: list[int]) -> tuple[list[tuple[prim.Var, int]], list[PrimExpr], PrimExpr]:
        """Loops, the axes' values in their variables (some axes are split), and what keeps to the extents."""
        loops: list[tuple[prim.Var, int]] = []
        values: list[PrimExpr] = []
        conditions: list[PrimExpr] = []
        for n in extents:
            factor = self.number(1, 4)
            if factor == 1:
                loops.append((self.var("i"), n))
                values.append(loops[-1][0])
                continue
            outer, inner = self.var("o"), self.var("i")
            loops += [(outer, -(-n // factor)), (inner, factor)]
            values.append(outer * index(factor) + inner)
            if n % factor:
                conditions.append(prim.LT(values[-1], index(n)))
        return loops, values, prim.all_of(*conditions)

    def shuffled(self, items: list[Any]) -> list[Any]:
        """The items in some order."""
        return list(self.draw(st.permutations(items)))

    def plain(self, scope: list[prim.Var], depth: int) -> tir.Stmt:
        """Statements without blocks."""
        kind = self.pick(["store", "loop", "loop", "if", "let", "seq", "local"] if depth else ["store"])
        buffers = [*self.inputs, *self.outputs]
        if kind == "loop":
            var = self.var("i")
            first = self.offset(scope, 1) if self.number(0, 3) == 0 else index(0)
            extent = self.offset(scope, 1) if self.number(0, 3) == 0 else index(self.number(0, 9))
            return self.loop(var, first, extent, self.plain([*scope, var], depth - 1))
        if kind == "if":
            otherwise = self.plain(scope, depth - 1) if self.chance() else None
            return tir.IfThenElse(self.condition(scope, buffers), self.plain(scope, depth - 1), otherwise)
        if kind == "let":
            var = self.var("x")
            return tir.LetStmt(var, self.offset(scope), self.plain([*scope, var], depth - 1))
        if kind == "seq":
            return tir.seq(self.plain(scope, depth - 1), self.plain(scope, depth - 1))
        if kind == "local":
            return self.local(scope, depth)
        target = self.pick(self.outputs)
        return tir.BufferStore(target, self.value(target.dtype, scope, buffers, 2), self.places(target, scope))

    def local(self, scope: list[prim.Var], depth: int) -> tir.Stmt:
        """A block with a buffer of its own, filled before it is used."""
        self.names += 1
        name = f"L{self.names}"
        mine = tir.Buffer(name, (index(self.number(1, 5)),), self.pick(TYPES), prim.Var(name, prim.HANDLE))
        var = self.var("i")
        fill = tir.For(
            var, index(0), mine.shape[0], "serial", tir.BufferStore(mine, prim.Cast(mine.dtype, var), (var,))
        )
        target = self.pick(self.outputs)
        use = tir.BufferStore(
            target,
            prim.Cast(target.dtype, prim.BufferLoad(mine, self.places_in(mine, scope))),
            self.places(target, scope),
        )
        body = tir.seq(fill, self.plain(scope, depth - 1), use)
        return tir.BlockRealize((), TRUE, tir.Block((), None, None, name, body, alloc_buffers=(mine,)))

    def places_in(self, buffer: tir.Buffer, scope: list[prim.Var]) -> tuple[PrimExpr, ...]:
        """Indices that are inside the buffer."""
        return tuple(prim.FloorMod(self.offset(scope), n) for n in buffer.shape)

    def module(self) -> IRModule:
        """A module with the kernel as `f`."""
        parts = [self.nest() if self.chance() else self.plain([], 3) for _ in range(self.number(1, 3))]
        buffers = [*self.inputs, *self.outputs]
        params = tuple(prim.Var(b.name.lower(), prim.HANDLE) for b in buffers)
        root = tir.BlockRealize((), TRUE, tir.Block((), (), (), "root", tir.seq(*parts)))
        return IRModule(
            {"f": tir.PrimFunc(params, root, dict(zip(params, buffers)), None, Attrs({"global_symbol": "f"}))}
        )


@st.composite
def kernels(
    draw: Draw, in_bounds: bool = True, exact: bool = True, kinds: tuple[tir.ForKind, ...] = IN_ORDER
) -> IRModule:
    """Modules with a PrimFunc `f` of four buffers."""
    return Maker(draw, in_bounds, exact, kinds).module()


def arguments(mod: IRModule, seed: int) -> list[np.ndarray[Any, Any]]:
    """Arrays for the parameters of `f`."""
    function = mod["f"]
    assert isinstance(function, tir.PrimFunc)
    random = np.random.default_rng(seed)
    made = []
    for param in function.params:
        buffer = function.buffer_map[param]
        shape = tuple(n.value for n in buffer.shape if isinstance(n, IntImm))
        numbers = random.integers(-5, 6, shape) if not buffer.dtype.is_uint else random.integers(0, 11, shape)
        made.append((numbers / 2 if buffer.dtype.is_float else numbers).astype(buffer.dtype.numpy))
    return made
