"""Parallel loops: the body becomes a function of a range of iterations, which the pool runs in chunks."""

from __future__ import annotations

from contextlib import ExitStack

from relaxlang.codegen.context import KernelContext
from relaxlang.codegen.function import KernelText
from relaxlang.codegen.lltypes import value_type
from relaxlang.codegen.memory import allocated
from relaxlang.codegen.pool import LAUNCH
from relaxlang.codegen.shared_bodies import SharedBody, Surroundings, used_in
from relaxlang.codegen.stmt import StmtEmitter
from relaxlang.codegen.streaming import end_streaming
from relaxlang.codegen.text import symbol
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import INT64, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Stmt
from relaxlang.ir.visit import children, free_vars, walk

CHUNK = 40_000
"""The least work of a chunk, in units of `work`: about 10 µs, of which a launch costs up to one."""
_UNKNOWN = 16
_CALL = 8


def emit_parallel(em: StmtEmitter, s: tir.For) -> None:
    """A loop whose iterations threads share."""
    captured = _captured(em, s)
    name = em.module.fresh("rlx.parallel")
    body = _body_function(em, s, name, captured)
    _thunk(em, s, name, body, captured)
    kinds = [value_type(v.dtype) for v in captured]
    frame = f"{{ {', '.join(['i32', *kinds])} }}"
    context = em.at.alloca(f"alloca {frame}, align 16")
    em.at.effect(f"store i32 0, ptr {context}")
    for i, (var, kind) in enumerate(zip(captured, kinds)):
        place = em.at.value(f"getelementptr inbounds {frame}, ptr {context}, i32 0, i32 {i + 1}")
        em.at.effect(f"store {kind} {em.env[var]}, ptr {place}")
    extent = em.num(prim.cast(s.extent, INT64))
    each = em.num(work(s.body, set(em.env)))
    grain = em.value(em.at.value(f"udiv i64 {CHUNK}, {(each.call('llvm.smax', 1)).ref}"), INT64).call("llvm.smax", 1)
    launch = em.module.external(LAUNCH, "void", ["ptr", "ptr", "i64", "i64"])
    em.at.call("void", launch, ("ptr", symbol(name)), ("ptr", context), ("i64", extent.ref), ("i64", grain.ref))
    em.assume_zero(em.at.value(f"load i32, ptr {context}"))


def emit_apart(em: StmtEmitter, s: tir.For) -> None:
    """A loop in a function of its own, which is not inlined: LLVM would keep the constants of what it computes in
    registers all the time, and what is accumulated in the loops around it in memory."""
    captured = _captured(em, s)
    body = _body_function(em, s, em.module.fresh("rlx.apart"), captured, em.parallel)
    extent = em.num(prim.cast(s.extent, INT64))
    args = [("i64", "0"), ("i64", extent.ref), *((value_type(v.dtype), em.env[v]) for v in captured)]
    em.assume_zero(em.at.call("i32", symbol(body), *args))


def _captured(em: StmtEmitter, s: tir.For) -> list[Var]:
    """The variables that the body of a loop is given: all that it uses but constants and its own."""
    return [v for v in used_in(s.body)[0] if v is not s.loop_var and em.env.get(v, "").startswith("%")]


def _body_function(em: StmtEmitter, s: tir.For, name: str, captured: list[Var], parallel: bool | None = None) -> str:
    """The function `i32 body(i64 begin, i64 end, captured…)`; returns its name. `parallel`: whether the loops around it
    are shared, None when the loop itself is; the function is not inlined then."""
    context = em.context
    found = None if context.shared is None else context.shared.of(s)
    if found is not None:
        shared, used = found
        operands = tuple(["" if v in captured else em.env.get(v, "") for v in used])
        overlaps, streaming = (tuple([v in some for v in used]) for some in (context.derived, em.streaming))
        around = Surroundings(context.target, operands, overlaps, parallel, streaming)
        if around not in shared.made:
            shared.made[around] = _written_apart(em, s, shared, captured, around)
        body = shared.made[around]
        if body is not None:
            context.bodies[body.symbol] = body
            types = ["i64", "i64", *(value_type(v.dtype) for v in captured)]
            context.module.declare(body.symbol, "hidden i32", types, "nounwind")
            return body.symbol
    full = context.module.fresh(f"{name}.body")
    _write_body(context, em, s, full, captured, parallel, "internal")
    return full


def _written_apart(
    em: StmtEmitter, s: tir.For, shared: SharedBody, captured: list[Var], around: Surroundings
) -> KernelText | None:
    """The function of a loop's body in a module of its own. None when it is part of a kernel's: it can fail with one of
    its messages, or uses its data."""
    if any(operand.startswith("@") for operand in around.operands):
        return None
    name = shared.name + (f".{len(shared.made)}" if shared.made else "")
    apart = KernelContext(em.context.target, em.context.functions, em.context.threads)
    apart.derived = set(em.context.derived)
    _write_body(apart, em, s, name, captured, around.parallel, "hidden")
    return None if apart.messages else KernelText(name, apart)


def _write_body(
    context: KernelContext,
    em: StmtEmitter,
    s: tir.For,
    full: str,
    captured: list[Var],
    parallel: bool | None,
    linkage: str,
) -> None:
    """Write the function of a loop's body into the module of a context; `em` is where the loop stands."""
    at = context.function(full, s)
    inner = StmtEmitter(context, at, {v: r for v, r in em.env.items() if not r.startswith("%")})
    inner.parallel = parallel is None or parallel
    inner.streaming = em.streaming
    # Pointers that were computed from others may overlap with them.
    alias = "" if context.derived & set(captured) else " noalias"
    head = ["i64 %begin", "i64 %end"]
    for i, var in enumerate(captured):
        inner.env[var] = f"%c{i}"
        head.append(f"{value_type(var.dtype)}{alias if var.dtype.is_handle else ''} %c{i}")
    stack, context.stack = context.stack, 0
    turn = Var("turn", INT64)
    memory, content = _shared_memory(s)

    def one(now: str) -> None:
        of = s.loop_var.dtype
        counter = prim.cast(turn, of) * s.step if not _one(s.step) else prim.cast(turn, of)
        inner.env[s.loop_var] = inner.expr(s.min + counter)
        inner.stmt(content)

    inner.begin(s)
    with ExitStack() as held:
        for one_of_them in memory:
            held.enter_context(allocated(inner, one_of_them))
        inner.counted(turn, "%begin", "%end", one, runs=True, breakable=False)
    if inner.streaming:
        end_streaming(inner)
    inner.leave("0")
    context.stack = stack
    attributes = "nounwind" if parallel is None else "nounwind noinline"
    attributes += context.width_attribute + context.attribute(at)
    context.module.add(at.text(f"define {linkage} i32 {symbol(full)}({', '.join(head)}) {attributes}"))


def _shared_memory(s: tir.For) -> tuple[list[tir.Allocate], Stmt]:
    """The memory that one iteration after the other may use, as its size is the same in all, and the body without it:
    allocated once in a call of the function."""
    memory: list[tir.Allocate] = []
    body = s.body
    while isinstance(body, (tir.Allocate, tir.DeclBuffer)):
        if isinstance(body, tir.Allocate):
            loads = [n for extent in body.extents for n in walk(extent) if isinstance(n, prim.BufferLoad)]
            if loads or s.loop_var in free_vars(body.extents):
                break
            memory.append(body)
        elif s.loop_var in free_vars((body.buffer.shape, body.buffer.strides, body.buffer.elem_offset)):
            break
        body = body.body
    return memory, body


def _one(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


def _thunk(em: StmtEmitter, s: tir.For, name: str, body: str, captured: list[Var]) -> None:
    """The function that the pool calls: the captured values are in the frame, and a failure's status goes there."""
    at = em.context.function(name, s)
    kinds = [value_type(v.dtype) for v in captured]
    frame = f"{{ {', '.join(['i32', *kinds])} }}"
    args = [("i64", "%begin"), ("i64", "%end")]
    for i, kind in enumerate(kinds):
        place = at.value(f"getelementptr inbounds {frame}, ptr %frame, i32 0, i32 {i + 1}")
        args.append((kind, at.value(f"load {kind}, ptr {place}")))
    status = at.call("i32", symbol(body), *args)
    at.branch_if(at.value(f"icmp eq i32 {status}, 0"), "fine", "failed")
    at.start("failed")
    at.value(f"atomicrmw umax ptr %frame, i32 {status} monotonic")
    at.start("fine")
    at.finish("ret void")
    head = f"define internal void {symbol(name)}(ptr %frame, i64 %begin, i64 %end) nounwind"
    em.module.add(at.text(head + em.context.attribute(at)))


def work(s: Stmt, known: set[Var]) -> PrimExpr:
    """An estimate of a statement's work, in operations of about a quarter of a nanosecond. Loops count by their extents
    where these depend on `known` variables alone."""
    if isinstance(s, tir.For):
        inside = work(s.body, known)
        extent = prim.cast(s.extent, INT64)
        if not set(free_vars(extent)) <= known or any(isinstance(n, prim.BufferLoad) for n in walk(extent)):
            extent = IntImm(INT64, _UNKNOWN)
        return extent * inside
    if isinstance(s, tir.SeqStmt):
        total: PrimExpr = IntImm(INT64, 0)
        for one in s.seq:
            total = total + work(one, known)
        return total
    own, nested = 0, []
    for child in children(s):
        if isinstance(child, Stmt):
            nested.append(child)
        elif isinstance(child, PrimExpr):
            own += _operations(child)
    total = IntImm(INT64, own + 1)
    for child in nested:
        total = total + work(child, known)
    return total


def _operations(e: PrimExpr) -> int:
    return sum(_CALL if isinstance(n, prim.Call) else 0 if isinstance(n, (Var, IntImm)) else 1 for n in walk(e))
