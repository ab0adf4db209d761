"""Statements: from flat TensorIR to basic blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaxlang.base.record import record
from relaxlang.codegen.access import store
from relaxlang.codegen.algebra import Num
from relaxlang.codegen.context import KernelContext
from relaxlang.codegen.expr import ExprEmitter
from relaxlang.codegen.invariants import invariant_loads
from relaxlang.codegen.lltypes import constant, value_type
from relaxlang.codegen.text import FunctionText
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr, Var
from relaxlang.ir.tir import Stmt
from relaxlang.ir.visit import free_vars, walk
from relaxlang.schedule.state import APART, STREAMING
from relaxlang.schedule.stmts import walk_stmts

MOST_COPIES = 512
"""How often a statement may stand in the code for loops that are written out."""


@record(frozen=False)
class Loop:
    """A loop that is being written: its variable (None: a `while`), where `continue` and `break` go, and how many heap
    allocations were live outside of it."""

    var: Var | None
    next: str
    exit: str
    live: int


class StmtEmitter(ExprEmitter):
    """Writes statements into a function. `parallel`: the function is the body of a parallel loop."""

    def __init__(self, context: KernelContext, at: FunctionText, env: dict[Var, str]) -> None:
        super().__init__(context, at, env)
        self.loops: list[Loop] = []
        self.parallel = False
        self.copies = 1  # how often the statement at hand stands in the code

    def settled(self, e: PrimExpr) -> bool:
        """Whether an expression is the same in all iterations of the innermost loop, which there is."""
        return bool(self.loops) and self.loops[-1].var not in free_vars(e)

    def stmt(self, s: Stmt) -> None:
        """Write a statement."""
        emit = _TABLE.get(s.__class__)
        if emit is None:
            self.fail("RLX9001", f"a {type(s).__name__} is left after lowering", s)
        self.begin(s)
        emit(self, s)

    def counted(
        self,
        var: Var,
        first: str,
        end: str,
        body: Callable[[str], None],
        *,
        runs: bool,
        breakable: bool = True,
    ) -> None:
        """A loop of `var` from `first` while less than `end`; `runs` when at least one iteration is certain."""
        at, kind = self.at, value_type(var.dtype)
        head, latch, done, before = at.label("loop"), at.label("next"), at.label("done"), at.label("enter")
        at.start(before)
        at.open_loop()
        less = f"icmp {'slt' if var.dtype.is_int else 'ult'} {kind}"
        if runs:
            at.branch(head)
        else:
            at.branch_if(at.value(f"{less} {first}, {end}"), head, done)
        at.start(head)
        step = f"%{head}.next"
        now = at.value(f"phi {kind} [ {first}, %{before} ], [ {step}, %{latch} ]")
        self.env[var] = now
        self.loops.append(Loop(var, latch, done if breakable else "", len(self.heap)))
        body(now)
        self.loops.pop()
        at.start(latch)
        at.define(step, f"add {'nsw' if var.dtype.is_int else 'nuw'} {kind} {now}, 1")
        at.branch_if(at.value(f"{less} {step}, {end}"), head, done)
        at.close_loop()
        at.start(done)


# --- the table --------------------------------------------------------------------------------------------------------
def _store(em: StmtEmitter, s: tir.BufferStore) -> None:
    if s.value.dtype.scalar is not s.buffer.dtype.scalar:
        em.fail("RLX5016", f"a {s.value.dtype} is stored to `{s.buffer.name}`, which holds {s.buffer.dtype}", s)
    store(em, s, _accumulation(em, s) or em.expr(s.value))


def _accumulation(em: StmtEmitter, s: tir.BufferStore) -> str:
    """The new value when the store adds to (or multiplies) a float that an enclosing loop accumulates: marked so that
    LLVM may keep partial results; empty otherwise."""
    value = s.value
    if isinstance(value, prim.Select) and isinstance(value.false_value, prim.BufferLoad):
        # An update of some lanes: what the others keep is what is updated.
        kept = value.false_value
        if kept.buffer is s.buffer and kept.indices == s.indices:
            made = _accumulation(em, s.replace(value=value.true_value))
            return made and em.num(value.condition).where(em.value(made, value.dtype), em.num(kept)).ref
    if not isinstance(value, (prim.Add, prim.Mul)) or not value.dtype.is_float or value.dtype.bits < 32:
        return ""
    index, mine = s.indices[0], None
    for old, new in ((value.a, value.b), (value.b, value.a)):
        if isinstance(old, prim.BufferLoad) and old.buffer is s.buffer and old.indices == s.indices:
            mine = (old, new)
            break
    if mine is None:
        return ""
    used = {n for n in walk(index) if isinstance(n, Var)}
    if all(loop.var in used for loop in em.loops):
        return ""
    old_ref = em.expr(mine[0])
    kind = value_type(value.dtype)
    if isinstance(value, prim.Mul):
        return em.at.value(f"fmul reassoc {kind} {old_ref}, {em.expr(mine[1])}")
    if isinstance(mine[1], prim.Mul):
        product = f"fmul contract {kind} {em.expr(mine[1].a)}, {em.expr(mine[1].b)}"
        return em.at.value(f"fadd reassoc contract {kind} {old_ref}, {em.at.value(product)}")
    return em.at.value(f"fadd reassoc contract {kind} {old_ref}, {em.expr(mine[1])}")


def _for(em: StmtEmitter, s: tir.For) -> None:
    if s.kind == "thread_binding" or s.thread_binding is not None:
        em.fail("RLX5012", "a loop bound to GPU threads cannot run on a processor", s, help="use `T.parallel`")
    if STREAMING in s.annotations:
        from relaxlang.codegen.streaming import emit_streaming

        emit_streaming(em, s)
        return
    if s.kind == "parallel" and not em.parallel and em.context.threads:
        from relaxlang.codegen.parallel import emit_parallel

        emit_parallel(em, s)
        return
    shared = em.context.shared
    is_apart = APART in s.annotations if shared is None else APART in s.annotations or shared.of(s) is not None
    if is_apart and s.kind != "unroll" and isinstance(s.extent, prim.IntImm) and s.extent.value > 0:
        from relaxlang.codegen.parallel import emit_apart

        emit_apart(em, s)
        return
    _serial(em, s)


def _serial(em: StmtEmitter, s: tir.For) -> None:
    fixed = s.extent.value if isinstance(s.extent, prim.IntImm) else None
    if fixed is not None and fixed <= 0:
        return
    if s.kind == "unroll" and fixed is not None:
        from relaxlang.codegen.transpose import emit_transposed

        if emit_transposed(em, s) or _unrolled(em, s, fixed):
            return
    from relaxlang.codegen.horizontal import emit_combined

    if emit_combined(em, s):
        return
    em.context.scalar_loops = em.context.scalar_loops or _has_scalars(s.body)
    first, extent = em.num(s.min), em.num(s.extent)
    runs, breakable = fixed is not None, s.kind != "parallel"
    outer = em.settled_loads
    em.settled_loads = {**outer, **{e: em.expr(e) for e in invariant_loads(s.body, em.own)}}
    _turns(em, s, first, extent, runs=runs, breakable=breakable)
    em.settled_loads = outer


def _turns(em: StmtEmitter, s: tir.For, first: Num, extent: Num, *, runs: bool, breakable: bool) -> None:
    """The iterations of a loop; `runs` when at least one is certain."""
    var = s.loop_var
    if isinstance(s.step, prim.IntImm) and s.step.value == 1:
        end = extent if first.ref == "0" else first + extent
        em.counted(var, first.ref, end.ref, lambda _: em.stmt(s.body), runs=runs, breakable=breakable)
        return
    step, turn = em.num(s.step), Var("turn", var.dtype)

    def body(now: str) -> None:
        em.env[var] = (first + em.value(now, var.dtype) * step).ref
        em.loops[-1].var = var
        em.stmt(s.body)

    em.counted(turn, "0", extent.ref, body, runs=runs, breakable=breakable)


def _has_scalars(body: Stmt) -> bool:
    """Whether the body of an innermost loop stores single values."""
    found = False
    for stmt in walk_stmts(body):
        if isinstance(stmt, (tir.For, tir.While)) and getattr(stmt, "kind", "") != "unroll":
            return False
        found = found or (isinstance(stmt, tir.BufferStore) and stmt.value.dtype.lanes == 1)
    return found


def _unrolled(em: StmtEmitter, s: tir.For, count: int) -> bool:
    """Write an unrolled loop out, unless that makes more than `MOST_COPIES` in all or the loop is jumped out of;
    whether it was."""
    if count * em.copies > MOST_COPIES or not isinstance(s.min, prim.IntImm) or not isinstance(s.step, prim.IntImm):
        return False
    if any(isinstance(n, (tir.Break, tir.Continue)) for n in walk(s.body)):
        return False
    em.copies *= count
    for k in range(count):
        em.env[s.loop_var] = constant(s.min.value + k * s.step.value, s.loop_var.dtype)
        em.stmt(s.body)
    em.copies //= count
    return True


def _while(em: StmtEmitter, s: tir.While) -> None:
    head, body, done = em.at.label("while"), em.at.label("body"), em.at.label("done")
    em.at.start(head)
    em.at.branch_if(em.expr(s.condition), body, done)
    em.at.start(body)
    em.loops.append(Loop(None, head, done, len(em.heap)))
    em.stmt(s.body)
    em.loops.pop()
    em.at.branch(head)
    em.at.start(done)


def _break(em: StmtEmitter, s: tir.Break) -> None:
    _jump(em, s, "break", lambda loop: loop.exit)


def _continue(em: StmtEmitter, s: tir.Continue) -> None:
    _jump(em, s, "continue", lambda loop: loop.next)


def _jump(em: StmtEmitter, s: Stmt, word: str, target: Callable[[Loop], str]) -> None:
    if not em.loops or not target(em.loops[-1]):
        em.fail("RLX5012", f"`{word}` has no serial loop to act on", s)
    em.free(em.loops[-1].live)
    em.at.branch(target(em.loops[-1]))


def _if(em: StmtEmitter, s: tir.IfThenElse) -> None:
    condition = em.expr(s.condition)
    if condition in ("true", "false"):
        chosen = s.then_case if condition == "true" else s.else_case
        if chosen is not None:
            em.stmt(chosen)
        return
    then, done = em.at.label("then"), em.at.label("endif")
    other = done if s.else_case is None else em.at.label("else")
    em.at.branch_if(condition, then, other)
    em.at.start(then)
    em.stmt(s.then_case)
    em.at.branch(done)
    if s.else_case is not None:
        em.at.start(other)
        em.stmt(s.else_case)
    em.at.start(done)


def _seq(em: StmtEmitter, s: tir.SeqStmt) -> None:
    for one in s.seq:
        em.stmt(one)


def _evaluate(em: StmtEmitter, s: tir.Evaluate) -> None:
    value = s.value
    if isinstance(value, prim.Call) and value.op == "ret":
        em.context.emit_return(em, value)
        em.at.start(em.at.label("after"))
    else:
        em.expr(value)


def _let(em: StmtEmitter, s: tir.LetStmt) -> None:
    em.env[s.var] = em.expr(s.value)
    if s.var.dtype.is_handle:
        em.context.derived.add(s.var)
    em.stmt(s.body)


def _attr(em: StmtEmitter, s: tir.AttrStmt) -> None:
    if s.key in ("thread_extent", "virtual_thread"):
        em.fail("RLX5012", f"`{s.key}` binds GPU threads, which a processor does not have", s)
    em.stmt(s.body)


def _assert(em: StmtEmitter, s: tir.AssertStmt) -> None:
    em.require(em.expr(s.condition), em.context.status(s.message))
    em.stmt(s.body)


def _decl(em: StmtEmitter, s: tir.DeclBuffer) -> None:
    em.stmt(s.body)


def _allocate(em: StmtEmitter, s: tir.Allocate | tir.AllocConst) -> None:
    from relaxlang.codegen.memory import emit_allocate, emit_constant

    if isinstance(s, tir.AllocConst):
        emit_constant(em, s)
    else:
        emit_allocate(em, s)


_TABLE: dict[type, Callable[[Any, Any], None]] = {
    tir.BufferStore: _store, tir.For: _for, tir.While: _while, tir.Break: _break, tir.Continue: _continue,
    tir.IfThenElse: _if, tir.SeqStmt: _seq, tir.Evaluate: _evaluate, tir.LetStmt: _let, tir.AttrStmt: _attr,
    tir.AssertStmt: _assert, tir.DeclBuffer: _decl, tir.Allocate: _allocate, tir.AllocConst: _allocate,
}  # fmt: skip
