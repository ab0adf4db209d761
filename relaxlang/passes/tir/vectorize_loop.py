"""VectorizeLoop: vectorized loops become vector expressions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from relaxlang.arith.analyzer import Analyzer
from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import BOOL, BufferLoad, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Buffer, BufferStore, For, IfThenElse, LetStmt, PrimFunc, Range, SeqStmt, Stmt
from relaxlang.ir.visit import Rewriter, Visitor, conjuncts, free_vars, on, substitute, walk
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.schedule.stmts import walk_stmts

MOST_LANES = 64


@record
class VectorizeLoop(PrimFuncPass):
    """`for i in T.vectorized(8): C[i] = A[i] + 1` becomes `C[0:8] = A[0:8] + 1` on vectors of 8 lanes.

    A condition that differs between lanes becomes the predicate of the loads and stores under it; a store to memory of
    scope `local` keeps the old value of the other lanes instead, so that it can live in registers. What has no vector
    form (a call, an inner loop whose bounds differ, more than 64 lanes, an extent that is not constant) stays a loop.
    Runs on flat buffers.

    Before:

        @T.prim_func
        def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
            for i in range(8):
                for j in T.vectorized(8):
                    B[i * 8 + j] = A[i * 8 + j] + T.float32(1)

    After:

        @T.prim_func
        def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
            for i in range(8):
                B[T.Ramp(i * 8, 1, 8)] = A[T.Ramp(i * 8, 1, 8)] + T.Broadcast(T.float32(1.0), 8)
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return vectorize_loop(func)


def vectorize_loop(func: PrimFunc) -> PrimFunc:
    """The function with its vectorized loops, innermost first, in vector form."""
    return func.replace(body=_Loops()(func.body))


class _NoVectorForm(Exception):
    """A loop has a part that cannot be put in vector form; which, in words."""


class _Loops(Rewriter):
    """`around` are the loops around the statement at hand."""

    def __init__(self) -> None:
        self.around: list[For] = []

    @on(For)
    def loop(self, node: For) -> Stmt:
        """A loop; a vectorized one is replaced by its body on vectors."""
        self.around.append(node)
        made = self.below(node)
        self.around.pop()
        if made.kind != "vectorized" or not isinstance(made.extent, IntImm):
            return made
        try:
            return _widened(made, self.around)
        except _NoVectorForm:
            return made


def why_no_vector_form(loop: For) -> str:
    """Why a loop over flat buffers cannot become vector expressions, in words; empty when it can."""
    try:
        _widened(loop, ())
    except _NoVectorForm as reason:
        return str(reason)
    return ""


def _widened(loop: For, around: Sequence[For]) -> Stmt:
    """The body of a loop, which stands in those `around`, for all iterations at once. Raises _NoVectorForm."""
    if not isinstance(loop.extent, IntImm):
        raise _NoVectorForm(f"its number of iterations, {loop.extent}, is not known while compiling")
    lanes = loop.extent.value
    if not 1 < lanes <= MOST_LANES:
        raise _NoVectorForm(f"it has {lanes} iterations; vectors have from 2 to {MOST_LANES} lanes")
    if not isinstance(loop.step, IntImm) or loop.step.value != 1:
        raise _NoVectorForm("its step is not 1")
    found = _Accesses()
    found(loop.body)
    if _exchange(found.loads, found.stores):
        raise _NoVectorForm("it stores to memory that it uses at another place, so that iterations might meet")
    of = loop.loop_var.dtype
    loaded = {load.buffer.data for load in found.loads}
    ramp = prim.Ramp(prim.cast(loop.min, of), IntImm(of, 1), lanes)
    vector: Stmt = _Widen(loop, ramp, loaded, around)(loop.body)
    return vector


class _Widen(Rewriter):
    """Rewrites a loop body for all iterations at once. An expression that does not depend on the loop variable stays a
    scalar until it meets one that does. `mask` is the condition under which lanes are active; None: all are."""

    def __init__(self, widened: For, ramp: prim.Ramp, loaded: set[Var], around: Sequence[For]) -> None:
        self.lanes = ramp.lanes
        self.loaded = loaded
        self.widened, self.around = widened, around
        self.vectors: dict[Var, PrimExpr] = {widened.loop_var: ramp}
        self.mask: PrimExpr | None = None
        self.first = {widened.loop_var: ramp.base}

    @cached_property
    def analyzer(self) -> Analyzer:
        """What is known of the loops around, and of those inside that certainly run."""
        made = Analyzer()
        inside = [s for s in walk_stmts(self.widened.body) if isinstance(s, For) and _runs(s)]
        for loop in (*self.around, self.widened, *inside):
            if isinstance(loop.step, IntImm) and loop.step.value == 1:
                made.bind(loop.loop_var, Range(loop.min, loop.extent))
        return made

    def wide(self, e: PrimExpr) -> PrimExpr:
        """An expression as a vector."""
        return e if e.dtype.lanes > 1 else prim.Broadcast(e, self.lanes)

    @on(prim.Var, prim.SizeVar)
    def var(self, node: Var) -> PrimExpr:
        """A variable; the loop's and those computed from it are vectors."""
        return self.vectors.get(node, node)

    @on(prim.Add, prim.Sub)
    def sum(self, node: Any) -> PrimExpr:
        """A sum; a ramp plus a scalar is a ramp."""
        a, b = self.visit(node.a), self.visit(node.b)
        if isinstance(a, prim.Ramp) and b.dtype.lanes == 1:
            return prim.Ramp(node.__class__(a.base, b), a.stride, a.lanes)
        if isinstance(b, prim.Ramp) and a.dtype.lanes == 1 and isinstance(node, prim.Add):
            return prim.Ramp(a + b.base, b.stride, b.lanes)
        return self._both(node, a, b)

    @on(prim.Mul)
    def product(self, node: prim.Mul) -> PrimExpr:
        """A product; a ramp times a scalar is a ramp."""
        a, b = self.visit(node.a), self.visit(node.b)
        for ramp, factor in ((a, b), (b, a)):
            if isinstance(ramp, prim.Ramp) and factor.dtype.lanes == 1:
                return prim.Ramp(ramp.base * factor, ramp.stride * factor, ramp.lanes)
        return self._both(node, a, b)

    @on(prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod, prim.Min, prim.Max, prim.EQ, prim.NE, prim.LT, prim.LE,
        prim.GT, prim.GE, prim.And, prim.Or)  # fmt: skip
    def binary(self, node: Any) -> PrimExpr:
        """Two operands of one type."""
        return self._both(node, self.visit(node.a), self.visit(node.b))

    def _both(self, node: Any, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        if a is node.a and b is node.b:
            return node  # type: ignore[no-any-return]
        if isinstance(node, (prim.And, prim.Or)) and _load(b):
            # The second operand may be evaluated only where the first allows it.
            raise _NoVectorForm("the second operand of a condition loads what only the first allows it to")
        divides = isinstance(node, (prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod)) and not node.dtype.is_float
        if divides and self.mask is not None and not isinstance(b, IntImm):
            raise _NoVectorForm("lanes that a condition leaves out might divide by zero")
        return node.__class__(self.wide(a), self.wide(b))  # type: ignore[no-any-return]

    @on(prim.Cast)
    def cast(self, node: prim.Cast) -> PrimExpr:
        """A conversion; a ramp of indices stays a ramp."""
        value = self.visit(node.value)
        if value is node.value:
            return node
        if isinstance(value, prim.Ramp) and node.of.is_int and value.dtype.is_int and node.of.bits >= value.dtype.bits:
            return prim.Ramp(prim.cast(value.base, node.of), prim.cast(value.stride, node.of), value.lanes)
        return prim.Cast(node.of.with_lanes(self.lanes), value)

    @on(prim.Select)
    def select(self, node: prim.Select) -> PrimExpr:
        """A choice."""
        parts = self.visit(node.condition), self.visit(node.true_value), self.visit(node.false_value)
        if parts == (node.condition, node.true_value, node.false_value):
            return node
        return prim.Select(*(self.wide(p) for p in parts))

    @on(prim.Call)
    def call(self, node: prim.Call) -> PrimExpr:
        """An intrinsic, lane by lane; other calls have no vector form."""
        if node.op == "if_then_else" and self.visit(node.args[0]).dtype.lanes > 1:
            return self._choice(node)
        args = tuple([self.visit(a) for a in node.args])
        if all(a is b for a, b in zip(args, node.args)):
            if isinstance(node.op, str) and _pure(node.op):
                return node
            raise _NoVectorForm(f"it calls `{_callee(node)}`")
        if not isinstance(node.op, str) or not _pure(node.op) or (node.op == "if_then_else" and _load(*args[1:])):
            raise _NoVectorForm(f"it calls `{_callee(node)}`, which has no vector form")
        return prim.Call(node.of.with_lanes(self.lanes), node.op, tuple(self.wide(a) for a in args))

    def _choice(self, node: prim.Call) -> PrimExpr:
        """A conditional expression whose condition differs between lanes: each arm is loaded where it is wanted."""
        condition, outer = self.visit(node.args[0]), self.mask
        arms = []
        for arm, active in ((node.args[1], condition), (node.args[2], prim.Not(condition))):
            if _load(arm):
                self._require_lane_loads(arm)
                self.mask = active if outer is None else prim.And(outer, active)
            arms.append(self.wide(self.visit(arm)))
            self.mask = outer
        return prim.Select(condition, arms[0], arms[1])

    def _require_lane_loads(self, node: Any) -> None:
        """Loads that are the same in all lanes would run even when no lane is active."""
        lanes = set(self.vectors)
        for one in walk(node):
            if isinstance(one, BufferLoad) and not lanes & set(free_vars(one.indices)):
                raise _NoVectorForm(f"`{one.buffer.name}` is read at one place under a condition that differs by lane")

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> PrimExpr:
        """A load at a vector of indices; of the active lanes, unless all elements exist."""
        indices = tuple([self.visit(i) for i in node.indices])
        if all(a is b for a, b in zip(indices, node.indices)):
            return node
        if node.predicate is not None or node.buffer.dtype.lanes > 1:
            raise _NoVectorForm(f"the elements of `{node.buffer.name}` are vectors already, or read under a predicate")
        if self.mask is None or self._exists(node.buffer, indices):
            return node.replace(indices=indices)
        return node.replace(indices=indices, predicate=self.mask)

    def _exists(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> bool:
        """Whether the memory is the function's own and has an element for every lane."""
        index = indices[0] if len(indices) == 1 else None
        if buffer.scope != "local" or not isinstance(index, prim.Ramp) or not isinstance(index.stride, IntImm):
            return False
        last = index.base + index.stride * (index.lanes - 1)
        size = prim.cast(buffer.shape[0], last.dtype)
        return self.analyzer.can_prove(index.base >= 0) and self.analyzer.can_prove(last < size)

    @on(prim.Let)
    def let_value(self, node: prim.Let) -> PrimExpr:
        """A named value; of vector type when it is a vector."""
        value = self.visit(node.value)
        if value is node.value:
            body = self.visit(node.body)
            return node if body is node.body else prim.Let(node.var, value, body, span=node.span)
        var = Var(node.var.name, value.dtype)
        self.vectors[node.var] = var
        return prim.Let(var, value, self.wide(self.visit(node.body)), span=node.span)

    @on(prim.Ramp, prim.Broadcast, prim.Shuffle)
    def vector(self, node: Any) -> PrimExpr:
        """What makes vectors itself stands as it is, or not at all."""
        made = self.below(node)
        if made is not node:
            raise _NoVectorForm("it makes vectors itself")
        return node  # type: ignore[no-any-return]

    @on(BufferStore)
    def store(self, node: BufferStore) -> Stmt:
        """A store at a vector of indices; one at the same place in every lane has no vector form."""
        value, indices = self.visit(node.value), tuple([self.visit(i) for i in node.indices])
        same = all(a is b for a, b in zip(indices, node.indices))
        if same:
            raise _NoVectorForm(f"every iteration stores to the same element of `{node.buffer.name}`")
        if node.predicate is not None or node.buffer.dtype.lanes > 1:
            raise _NoVectorForm(f"the elements of `{node.buffer.name}` are vectors, or stored under a predicate")
        if node.buffer.data in self.loaded and not _distinct(indices):
            # Lanes that meet would not see each other's updates.
            raise _NoVectorForm(f"iterations may update the same element of `{node.buffer.name}`")
        if self.mask is None:
            return node.replace(value=self.wide(value), indices=indices)
        if self._exists(node.buffer, indices):
            old = BufferLoad(node.buffer, indices)
            return node.replace(value=prim.Select(self.mask, self.wide(value), old), indices=indices)
        return node.replace(value=self.wide(value), indices=indices, predicate=self.mask)

    @on(LetStmt)
    def let(self, node: LetStmt) -> Stmt:
        """A variable; of vector type when its value is."""
        value = self.visit(node.value)
        if value is node.value:
            return node.replace(body=self.visit(node.body))
        var = Var(node.var.name, value.dtype)
        self.vectors[node.var] = var
        return LetStmt(var, value, self.visit(node.body), span=node.span)

    @on(IfThenElse)
    def condition(self, node: IfThenElse) -> Stmt:
        """A condition that all lanes share; one that differs becomes a mask."""
        condition = self.visit(node.condition)
        if condition.dtype is not BOOL:
            return self._masked(node)
        other = None if node.else_case is None else self.visit(node.else_case)
        return node.replace(condition=condition, then_case=self.visit(node.then_case), else_case=other)

    def _masked(self, node: IfThenElse) -> Stmt:
        if node.else_case is not None or _load(node.condition):
            raise _NoVectorForm("it has a condition that differs by lane and has an `else`, or loads")
        shared: list[tuple[PrimExpr, PrimExpr]] = []
        lanes: list[tuple[PrimExpr, PrimExpr]] = []
        for part in conjuncts(node.condition):
            made = self.visit(part)
            (shared if made.dtype is BOOL else lanes).append((part, made))
        outer = self.mask
        for _, made in lanes:
            self.mask = made if self.mask is None else prim.And(self.mask, made)
        body: Stmt = self.visit(node.then_case)
        self.mask = outer
        # What is the same in all lanes may run only when some lane is active: the first one is, where any is.
        for part, made in lanes:
            some = self._first_lane(part, made)
            if some is None:
                self._require_lane_loads(node.then_case)
            elif not self.analyzer.can_prove(some):
                shared.append((some, some))
        condition = prim.all_of(*(made for _, made in shared))
        return body if isinstance(condition, IntImm) else IfThenElse(condition, body, span=node.span)

    def _first_lane(self, part: PrimExpr, made: PrimExpr) -> PrimExpr | None:
        """An upper bound of the lanes at the first lane, which is active where any is; None for other conditions."""
        if any(v in self.vectors and v not in self.first for v in free_vars(part)):
            return None
        small, large = (made.a, made.b) if isinstance(made, (prim.LT, prim.LE)) else (made.b, made.a) if isinstance(
            made, (prim.GT, prim.GE)) else (made, made)  # fmt: skip
        rising = isinstance(small, prim.Ramp) and isinstance(small.stride, IntImm) and small.stride.value > 0
        return substitute(part, self.first) if rising and isinstance(large, prim.Broadcast) else None

    @on(For)
    def loop(self, node: For) -> Stmt:
        """A loop that all lanes run alike."""
        if (
            self.visit(node.min) is not node.min
            or self.visit(node.extent) is not node.extent
            or node.kind == "parallel"
        ):
            raise _NoVectorForm(f"the loop `{node.loop_var.name}` in it runs differently in each lane, or in parallel")
        return node.replace(body=self.visit(node.body))

    @on(SeqStmt)
    def sequence(self, node: SeqStmt) -> Stmt:
        """Statements one after the other: each for all lanes before the next."""
        return node.replace(seq=tuple([self.visit(s) for s in node.seq]))

    def below(self, node: Any) -> Any:
        """Statements without a rule here have no vector form."""
        if isinstance(node, Stmt):
            raise _NoVectorForm(f"a statement in it has no vector form ({type(node).__name__})")
        return super().below(node)


def _callee(node: prim.Call) -> str:
    return node.op if isinstance(node.op, str) else str(getattr(node.op, "name", node.op))


def _distinct(indices: tuple[PrimExpr, ...]) -> bool:
    """Whether the lanes are known to be at different places."""
    return any(isinstance(i, prim.Ramp) and isinstance(i.stride, IntImm) and i.stride.value != 0 for i in indices)


def _pure(name: str) -> bool:
    from relaxlang.ir.intrinsics import INTRINSICS

    found = INTRINSICS.get(name)
    return (
        found is not None
        and found.pure
        and found.name not in ("call_pure_extern", "call_llvm_pure_intrin", "address_of")
    )


def _load(*exprs: PrimExpr) -> bool:
    """Whether expressions load from memory."""
    return any(isinstance(node, BufferLoad) for expr in exprs for node in walk(expr))


def _runs(loop: For) -> bool:
    return isinstance(loop.extent, IntImm) and loop.extent.value > 0


class _Accesses(Visitor):
    """Collects loads and stores."""

    def __init__(self) -> None:
        self.loads: list[BufferLoad] = []
        self.stores: list[BufferStore] = []

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> None:
        """A load."""
        self.loads.append(node)
        self.below(node)

    @on(BufferStore)
    def store(self, node: BufferStore) -> None:
        """A store."""
        self.stores.append(node)
        self.below(node)


def _exchange(loads: Sequence[BufferLoad], stores: Sequence[BufferStore]) -> bool:
    """Whether memory is stored to and used at different places, so that lanes might meet."""
    places: dict[Var, set[tuple[PrimExpr, ...]]] = {}
    for store in stores:
        places.setdefault(store.buffer.data, set()).add(store.indices)
    for load in loads:
        if load.buffer.data in places and places[load.buffer.data] != {load.indices}:
            return True
    return any(len(different) > 1 for different in places.values())
