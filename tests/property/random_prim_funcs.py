"""Random TensorIR functions: every statement, blocks, buffers with all that a buffer can have, annotations."""

from __future__ import annotations

import numpy as np

from relaxlang.base.dtype import DType, dtype
from relaxlang.ir import prim, tir
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.prim import BOOL, HANDLE, INT32, INT64, IntImm, PointerType, PrimExpr
from relaxlang.ir.visit import walk
from tests.property import random_values as values
from tests.property.choices import Choices
from tests.property.random_prim_exprs import Expressions, Scope

KINDS: tuple[tir.ForKind, ...] = ("serial", "parallel", "vectorized", "unroll", "thread_binding")
AXES: tuple[tir.IterKind, ...] = ("spatial", "reduce", "scan", "opaque")
SCOPES = ("global", "shared", "local", "shared.dyn", "wmma.matrix_a", "global.texture")
THREADS = ("threadIdx.x", "blockIdx.y", "vthread.x")
ELEMENTS = [*values.FLOATS, *values.INTS, BOOL, *values.SMALL_FLOATS, dtype("float32x4"), dtype("int8x4")]
TRUE = IntImm(BOOL, 1)


class PrimFuncs(Expressions):
    """Makes functions; `callees` are the names and result types of others in the module."""

    def __init__(self, c: Choices, callees: tuple[tuple[str, DType | None], ...] = ()) -> None:
        super().__init__(c)
        self.callees = callees
        self.loops = 0

    def function(self, attrs: Attrs) -> tir.PrimFunc:
        """A function with those attributes."""
        c = self.c
        params: list[prim.Var] = []
        buffers: dict[prim.Var, tir.Buffer] = {}
        scope = Scope()
        scope.callees = self.callees
        for _ in range(c.number(0, 4)):
            param = self.parameter()
            params.append(param)
            if param.dtype.is_handle and param.pointer is None and c.chance(4) is False:
                buffer = buffers[param] = self.param_buffer(scope)
                free = (
                    *buffer.shape,
                    *buffer.strides,
                    *((buffer.elem_offset,) if buffer.elem_offset is not None else ()),
                )
                scope = scope.plus(buffer, *(d for d in free if isinstance(d, prim.Var) and d not in scope.variables))
            else:
                scope = scope.plus(param)
        body = self.body(scope)
        returns = c.pick((None, None, INT32, INT64, dtype("float32"), BOOL, HANDLE))
        return tir.PrimFunc(tuple(params), body, buffers, returns, attrs)

    def parameter(self) -> prim.Var:
        """A handle mostly; a scalar or a typed pointer now and then."""
        c = self.c
        kind = c.number(0, 6)
        if kind == 4:
            return prim.Var(values.name(c), c.pick([INT32, INT64, *values.FLOATS, BOOL]))
        if kind == 5:
            return prim.SizeVar(values.name(c), c.pick((INT32, INT64)))
        pointer = PointerType(c.pick(ELEMENTS), c.pick(SCOPES)) if kind == 6 else None
        return prim.Var(values.name(c), HANDLE, pointer)

    def body(self, scope: Scope) -> tir.Stmt:
        """Statements; in a root block, as it must be where there are blocks, or not."""
        bare = self.statement(scope, 3) if self.c.chance() else None
        if bare is not None and not any(isinstance(n, tir.BlockRealize) for n in walk(bare)):
            return bare
        own = self.c.some(lambda: self.own_buffer(scope), 0, 2)
        inner = self.statement(scope.plus(*own), 3)
        return tir.BlockRealize((), TRUE, tir.Block((), (), (), "root", inner, alloc_buffers=own))

    # --- buffers ------------------------------------------------------------------------------------------------------
    def param_buffer(self, scope: Scope) -> tir.Buffer:
        """The buffer of a parameter: it may define the dimensions, strides and offset that it mentions."""
        c = self.c
        of, where = c.pick(ELEMENTS), "global" if c.chance() else c.pick(SCOPES)
        known = [v for v in scope.variables if v.dtype in (INT32, INT64)]

        def dim() -> PrimExpr:
            if c.chance(3):
                return prim.Var(values.name(c), c.pick((INT64, INT64, INT32)))
            if known and c.chance():
                return c.pick(known)
            return IntImm(c.pick((INT32, INT64)), c.number(0, 16))

        shape = c.some(dim, 0, 3)
        data = prim.Var(values.name(c), HANDLE, PointerType(of, where))
        if c.chance():
            return tir.Buffer(values.name(c), shape, of, data, scope=where)
        strides = tuple([dim() for _ in shape]) if c.chance() else ()
        offset = prim.Var(values.name(c), INT32) if c.chance() else None
        return tir.Buffer(
            values.name(c), shape, of, data, strides, offset, where, c.pick((-1, 64, 16)), c.pick((0, 1, 8))
        )

    def own_buffer(self, scope: Scope, data: prim.Var | None = None) -> tir.Buffer:
        """A buffer that mentions only what is in scope, with memory of its own or in `data`."""
        c = self.c
        of = data.pointer.element if data is not None and data.pointer is not None and c.chance() else c.pick(ELEMENTS)
        where = c.pick(SCOPES)
        if data is not None:
            where = data.pointer.scope if data.pointer is not None else "global"
        pointer = prim.Var(values.name(c), HANDLE, PointerType(of, where)) if data is None else data
        sizes = [v for v in scope.variables if v.dtype in (INT32, INT64)]

        def dim() -> PrimExpr:
            if sizes and c.chance():
                return c.pick(sizes)
            if c.chance(4):
                return prim.Mul(self.expr(INT32, Scope(scope.variables), 1), IntImm(INT32, 2))
            return IntImm(c.pick((INT32, INT64)), c.number(0, 16))

        shape = c.some(dim, 0, 3)
        strides = tuple([dim() for _ in shape]) if c.chance(4) else ()
        offset = dim() if c.chance(4) else None
        align, factor = (c.pick((64, 16)), c.pick((1, 8))) if c.chance(4) else (-1, 0)
        return tir.Buffer(values.name(c), shape, of, pointer, strides, offset, where, align, factor)

    # --- statements ---------------------------------------------------------------------------------------------------
    def statement(self, scope: Scope, depth: int) -> tir.Stmt:
        """One statement, or several."""
        simple = [self.store, self.evaluate, self.leave]
        if depth == 0 or not self.c.spend(2):
            return self.c.pick(simple)(scope)
        nested = [
            self.loop, self.sequence, self.conditional, self.block, self.let_stmt, self.grid, self.repeat,
            self.attribute, self.assertion, self.allocate, self.constant_data, self.declare, self.realize, self.launch,
        ]  # fmt: skip
        if self.c.chance(5):
            return self.c.pick(simple)(scope)
        return self.c.pick(nested)(scope, depth - 1)

    def store(self, scope: Scope) -> tir.Stmt:
        """A store, of a vector now and then."""
        c = self.c
        if not scope.buffers:
            return self.evaluate(scope)
        buffer = c.pick(scope.buffers)
        indices = self.indices(buffer, scope)
        if indices and buffer.dtype.lanes == 1 and c.chance(4):
            wide = prim.Ramp(indices[-1], prim.const(1, indices[-1].dtype), 4)
            indices = (*indices[:-1], wide)
            predicate = self.expr(dtype("boolx4"), scope, 1) if c.chance() else None
            return tir.BufferStore(buffer, self.expr(buffer.dtype.with_lanes(4), scope, 2), indices, predicate)
        return tir.BufferStore(buffer, self.expr(buffer.dtype, scope), indices)

    def evaluate(self, scope: Scope) -> tir.Stmt:
        """An expression for its effect, or nothing."""
        c = self.c
        kind = c.number(0, 6)
        if kind == 0:
            return tir.Evaluate(IntImm(INT32, 0))
        if kind == 1:
            return tir.Evaluate(self.expr(c.pick(ELEMENTS), scope, 2))
        if kind == 2:
            return tir.Evaluate(prim.Call(INT32, "ret", (self.expr(INT32, scope, 1),)))
        if kind == 3:
            return tir.Evaluate(prim.Call(BOOL, "assume", (self.expr(BOOL, scope, 2),)))
        if kind == 4:
            return tir.Evaluate(prim.Call(INT32, "tvm_storage_sync", (prim.StringImm("shared"),)))
        if kind == 5:
            return tir.Evaluate(prim.Call(prim.VOID, "call_extern", (prim.StringImm("f"), self.expr(HANDLE, scope, 1))))
        return tir.Evaluate(self.call(INT32, scope, 1))

    def leave(self, scope: Scope) -> tir.Stmt:
        """`break` or `continue`, inside a loop."""
        if not self.loops:
            return self.store(scope)
        return tir.Break() if self.c.chance() else tir.Continue()

    def sequence(self, scope: Scope, depth: int) -> tir.Stmt:
        """Two or three statements."""
        parts: list[tir.Stmt] = []
        for _ in range(self.c.number(2, 3)):
            made = self.statement(scope, depth)
            parts += made.seq if isinstance(made, tir.SeqStmt) else [made]
        return tir.SeqStmt(tuple(parts))

    def inside(self, scope: Scope, depth: int) -> tir.Stmt:
        """The body of a loop."""
        self.loops += 1
        made = self.statement(scope, depth)
        self.loops -= 1
        return made

    def loop(self, scope: Scope, depth: int) -> tir.Stmt:
        """A loop of any kind, with bounds, a step, annotations."""
        c = self.c
        of = c.pick((INT32, INT64, INT32, dtype("uint8")))
        kind = c.pick(KINDS)
        var = prim.Var(values.name(c), of)
        low: PrimExpr = IntImm(of, 0) if c.chance() else self.expr(of, scope, 1)
        extent = self.extent(of, scope)
        step: PrimExpr = IntImm(of, c.pick((2, 3))) if kind == "serial" and c.chance(3) else IntImm(INT32, 1)
        notes = Attrs(values.attributes(c)) if c.chance(3) else EMPTY
        thread = None
        if kind == "thread_binding":
            tag = c.pick(THREADS)
            thread = tir.IterVar(prim.Var(tag, of), tir.Range(low, extent), "thread", tag)
        body = self.inside(scope.plus(var), depth)
        return tir.For(var, low, extent, kind, body, notes or EMPTY, thread, step)

    def extent(self, of: DType, scope: Scope) -> PrimExpr:
        """A number of iterations; a constant is none below zero."""
        made = self.expr(of, scope, 2) if self.c.chance() else IntImm(of, self.c.number(0, 16))
        return IntImm(of, 1) if isinstance(made, IntImm) and not 0 <= made.value < 128 else made

    def grid(self, scope: Scope, depth: int) -> tir.Stmt:
        """A nest of plain loops around a block."""
        c = self.c
        loops = c.some(lambda: (prim.Var(values.name(c), INT32), IntImm(INT32, c.number(1, 8))), 1, 3)
        stmt = self.block(scope.plus(*(v for v, _ in loops)), depth, loops)
        for var, extent in reversed(loops):
            stmt = tir.For(var, IntImm(INT32, 0), extent, "serial", stmt)
        return stmt

    def block(self, scope: Scope, depth: int, loops: tuple[tuple[prim.Var, PrimExpr], ...] = ()) -> tir.Stmt:
        """A block with all that a block can have; over loop variables when `loops` are given."""
        c = self.c
        axes, bound, inner = [], [], scope
        for var, extent in loops:
            axis = prim.Var(values.name(c), INT32)
            axes.append(tir.IterVar(axis, tir.Range(IntImm(INT32, 0), extent), c.pick(AXES[:2])))
            bound.append(var if c.chance(4) is False else self.expr(INT32, scope, 1))
        for _ in range(0 if loops else c.number(0, 2)):
            of = c.pick((INT32, INT64))
            dom = tir.Range(self.expr(of, scope, 1), IntImm(of, c.number(1, 9)))
            axes.append(tir.IterVar(prim.Var(values.name(c), of), dom, c.pick(AXES)))
            bound.append(self.expr(of, scope, 2))
        inner = scope.plus(*(a.var for a in axes))
        own = c.some(lambda: self.own_buffer(inner), 0, 1)
        matched = c.some(lambda: self.matched(inner), 0, 1) if scope.buffers else ()
        reads = c.some(lambda: self.region(inner), 0, 2) if c.chance() and inner.buffers else c.pick((None, ()))
        writes = c.some(lambda: self.region(inner), 0, 2) if c.chance() and inner.buffers else c.pick((None, ()))
        inner = inner.plus(*own, *(m.buffer for m in matched))
        notes = Attrs(values.attributes(c)) if c.chance(3) else EMPTY
        init = self.statement(inner, 0) if any(a.kind == "reduce" for a in axes) and c.chance() else None
        loops_outside, self.loops = self.loops, 0
        body = self.statement(inner, depth)
        self.loops = loops_outside
        made = tir.Block(
            tuple(axes), reads, writes, c.pick(("b", "root", "update", *values.TEXTS)), body, init, own, matched,
            notes or EMPTY,
        )  # fmt: skip
        where = self.expr(BOOL, scope, 2) if c.chance(3) else TRUE
        return tir.BlockRealize(tuple(bound), where, made)

    def region(self, scope: Scope) -> tir.BufferRegion:
        """A box of a buffer."""
        buffer = self.c.pick(scope.buffers)
        lows = self.indices(buffer, scope)
        return tir.BufferRegion(buffer, tuple([tir.Range(low, self.extent(low.dtype, scope)) for low in lows]))

    def matched(self, scope: Scope) -> tir.MatchBufferRegion:
        """A buffer that stands for a box of another."""
        source = self.region(scope)
        where = source.buffer.scope
        of = source.buffer.dtype
        data = prim.Var(values.name(self.c), HANDLE, PointerType(of, where))
        shape = tuple(r.extent for r in source.region)
        strides = tuple([prim.Var(values.name(self.c), INT32) for _ in shape]) if self.c.chance(3) else ()
        offset = prim.Var(values.name(self.c), INT32) if self.c.chance(3) else None
        return tir.MatchBufferRegion(tir.Buffer(values.name(self.c), shape, of, data, strides, offset, where), source)

    def conditional(self, scope: Scope, depth: int) -> tir.Stmt:
        """`if`, with an `else` or without."""
        otherwise = self.statement(scope, depth) if self.c.chance() else None
        return tir.IfThenElse(self.expr(BOOL, scope, 2), self.statement(scope, depth), otherwise)

    def repeat(self, scope: Scope, depth: int) -> tir.Stmt:
        """`while`."""
        return tir.While(self.expr(BOOL, scope, 2), self.inside(scope, depth))

    def let_stmt(self, scope: Scope, depth: int) -> tir.Stmt:
        """A name for a value or a pointer."""
        c = self.c
        of = c.pick([INT32, INT64, *values.FLOATS, BOOL, HANDLE, dtype("int32x4")])
        pointer = PointerType(c.pick(ELEMENTS), c.pick(SCOPES)) if of.is_handle else None
        var = (prim.SizeVar if of in (INT32, INT64) and c.chance(4) else prim.Var)(values.name(c), of, pointer)
        return tir.LetStmt(var, self.expr(of, scope, 2), self.statement(scope.plus(var), depth))

    def attribute(self, scope: Scope, depth: int) -> tir.Stmt:
        """An attribute of something."""
        c = self.c
        inner = (*scope.variables[-2:], *scope.buffers[-2:], *(b.data for b in scope.buffers[-1:]))
        on: object = c.pick((IntImm(INT32, 0), c.pick(values.TEXTS), *inner))
        value = self.expr(INT32, scope, 1) if c.chance() else prim.StringImm(c.pick(values.TEXTS))
        return tir.AttrStmt(
            on, c.pick(("pragma_x", "storage_scope", *values.KEYS)), value, self.statement(scope, depth)
        )

    def launch(self, scope: Scope, depth: int) -> tir.Stmt:
        """A thread index."""
        c = self.c
        tag = c.pick(THREADS)
        extent = IntImm(INT32, c.number(1, 64))
        axis = tir.IterVar(prim.Var(values.name(c), INT32), tir.Range(IntImm(INT32, 0), extent), "thread", tag)
        key = "virtual_thread" if tag.startswith("vthread") else "thread_extent"
        return tir.AttrStmt(axis, key, extent, self.statement(scope.plus(axis.var), depth))

    def assertion(self, scope: Scope, depth: int) -> tir.Stmt:
        """An assertion and what follows it."""
        message = self.c.pick(values.TEXTS)
        return tir.AssertStmt(self.expr(BOOL, scope, 2), message, self.statement(scope, depth))

    def allocate(self, scope: Scope, depth: int) -> tir.Stmt:
        """Memory, mostly with a buffer in it."""
        c = self.c
        of, where = c.pick(ELEMENTS), c.pick(SCOPES)
        var = prim.Var(values.name(c), HANDLE, PointerType(of, where))
        when = TRUE if c.chance(4) is False else self.expr(BOOL, scope, 1)
        notes = Attrs(values.attributes(c)) if c.chance(3) else EMPTY
        extents = c.some(lambda: IntImm(INT32, c.number(0, 64)), 1, 2)
        return tir.Allocate(var, of, extents, when, self.in_memory(var, scope, depth), notes or EMPTY)

    def constant_data(self, scope: Scope, depth: int) -> tir.Stmt:
        """Constant data, mostly with a buffer in it."""
        data = values.array(self.c)
        of = dtype(data.dtype.name)
        var = prim.Var(values.name(self.c), HANDLE, PointerType(of))
        extents = tuple([IntImm(INT32, n) for n in np.shape(data)])
        return tir.AllocConst(var, of, extents, data, self.in_memory(var, scope, depth))

    def in_memory(self, var: prim.Var, scope: Scope, depth: int) -> tir.Stmt:
        """A statement with a buffer in the memory at `var`: declared, used without declaration, or none."""
        buffer = self.own_buffer(scope, var)
        kind = self.c.number(0, 2)
        if kind == 0:
            return self.statement(scope.plus(var), depth)
        body = self.statement(scope.plus(var, buffer), depth)
        return tir.DeclBuffer(buffer, body) if kind == 1 else body

    def declare(self, scope: Scope, depth: int) -> tir.Stmt:
        """A view of memory that exists."""
        pointers = [v for v in scope.variables if v.pointer is not None] + [b.data for b in scope.buffers]
        if not pointers:
            return self.allocate(scope, depth)
        buffer = self.own_buffer(scope, self.c.pick(pointers))
        return tir.DeclBuffer(buffer, self.statement(scope.plus(buffer), depth))

    def realize(self, scope: Scope, depth: int) -> tir.Stmt:
        """A buffer that exists within bounds, in the manner of old scripts."""
        c = self.c
        buffer = self.own_buffer(scope)
        bounds = tuple([tir.Range(IntImm(INT32, 0), self.expr(INT32, scope, 1)) for _ in buffer.shape])
        when = TRUE if c.chance() else self.expr(BOOL, scope, 1)
        made = tir.BufferRealize(buffer, bounds, when, self.statement(scope.plus(buffer), depth))
        if c.chance():
            return made
        return tir.AttrStmt(buffer, "realize_scope", prim.StringImm(c.pick(SCOPES)), made)
