"""From the stages of an operator's body to a PrimFunc of blocks."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.base.node import Node, node
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.struct_info import StructInfo, TupleStructInfo, tensor_info
from relaxlang.ir.visit import Substitute, free_vars, substitute, walk
from relaxlang.ops.body import Computed, OpEvaluator, Stage
from relaxlang.ops.nested import TirStage
from relaxlang.ops.values import TensorValue, as_dim


@node
class Kernel(Node):
    """A PrimFunc for one operator call.

    `args` are its arguments (tensors, then scalars known only at run time), `tir_vars` the symbolic values that no
    buffer's shape gives, `out` what it computes. `casts` are arguments whose dimensions are not known yet, with the
    struct info (of new variables) that they must be cast to before the call.

    `finish` is what makes the operator's result of what the kernel computes, None when that is the result: a packed
    call, in which the variables `handed` stand for the kernel's outputs.
    """

    func: tir.PrimFunc
    args: tuple[relax.Expr, ...]
    tir_vars: tuple[PrimExpr, ...]
    out: StructInfo
    casts: tuple[tuple[relax.Expr, StructInfo], ...] = ()
    handed: tuple[relax.Var, ...] = ()
    finish: relax.Expr | None = None


def build_kernel(ev: OpEvaluator, inputs: list[TensorValue], results: list[TensorValue], is_tuple: bool) -> Kernel:
    """The kernel that computes `results` from `inputs` (tensors of the call, in order)."""
    outputs = [_own_output(ev, results, k) for k in range(len(results))]
    stages = _needed_stages(ev, outputs)
    loaded = {buffer for s in stages for buffer in s.reads()}
    used = [t for t in inputs if t.buffer in loaded]
    made_by = [t for s in stages for t in s.outputs]
    result_buffers = {t.buffer for t in outputs}
    allocated = tuple(t.buffer for t in made_by if t.buffer not in result_buffers)
    names = _Names()
    body = tir.seq(*(_loop_nest(stage, names) for stage in stages))
    for condition, message in reversed(ev.requirements):
        body = tir.AssertStmt(condition, _with_values(message, condition), body)
    root = tir.BlockRealize((), prim.IntImm(prim.BOOL, 1), tir.Block((), (), (), "root", body, alloc_buffers=allocated))
    buffers = [t.buffer for t in (*used, *outputs)]
    outer = _outer_variables(ev, stages, buffers)
    scalars = [v for v in outer if v in ev.scalars]
    inner = {v: prim.Var(v.name, v.dtype) for v in outer}
    replace = Substitute(inner)
    params = [(prim.Var(b.name, prim.HANDLE), replace(b)) for b in buffers]
    bound = {d for _, b in params for d in b.shape if isinstance(d, prim.Var)}
    explicit = [v for v in outer if inner[v] not in bound and v not in ev.scalars]
    handles = [var for var, _ in params]
    everything = [
        *handles[: len(used)],
        *(inner[v] for v in scalars),
        *handles[len(used) :],
        *(inner[v] for v in explicit),
    ]
    func = tir.PrimFunc(tuple(everything), replace(root), dict(params), None, Attrs({"tir.noalias": True}))
    args = [t.expr for t in used if t.expr is not None] + [ev.scalars[v] for v in scalars]
    infos = tuple(tensor_info(t.buffer.shape, t.buffer.dtype) for t in outputs)
    out: StructInfo = TupleStructInfo(infos) if is_tuple else infos[0]
    return Kernel(func, tuple(args), tuple(explicit), out, span=ev.call_span)


def _own_output(ev: OpEvaluator, results: list[TensorValue], k: int) -> Computed:
    """Result `k` as a computed tensor of its own: an input, or a tensor that is an earlier result too, is copied."""
    result = results[k]
    if isinstance(result, Computed) and all(result is not r for r in results[:k]):
        return result
    axes = tuple((f"i{n}", prim.Var(f"v_i{n}", INT64), as_dim(d)) for n, d in enumerate(result.buffer.shape))
    load = prim.BufferLoad(result.buffer, tuple(v for _, v, _ in axes))
    copy = Computed(f"{result.name}_copy", tuple(result.buffer.shape), result.buffer.dtype)
    copy.stage = Stage(axes, (load,), (copy,))
    ev.computed.append(copy)
    return copy


def _needed_stages(ev: OpEvaluator, outputs: Iterable[Computed]) -> list[Stage]:
    """The stages that the outputs need, in the order in which they were made."""
    by_buffer = {t.buffer: t for t in ev.computed}
    needed: dict[int, Stage] = {}
    work = list(outputs)
    while work:
        stage = work.pop().stage
        if id(stage) in needed:
            continue
        needed[id(stage)] = stage
        work.extend(by_buffer[buffer] for buffer in stage.reads() if buffer in by_buffer)
    order: dict[int, Stage] = {id(t.stage): t.stage for t in ev.computed if id(t.stage) in needed}
    return list(order.values())


class _Names:
    """Unique block names."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def unique(self, hint: str) -> str:
        """`hint`, or `hint_1`, …"""
        name, n = hint, 0
        while name in self.taken:
            n += 1
            name = f"{hint}_{n}"
        self.taken.add(name)
        return name


def _loop_nest(stage: Stage, names: _Names) -> tir.Stmt:
    if isinstance(stage, TirStage):
        return stage.nest(names.unique(stage.outputs[0].name))
    reduce = next((b for b in stage.bodies if isinstance(b, prim.Reduce)), None)
    iters = [tir.IterVar(var, tir.Range(prim.IntImm(INT64, 0), extent), "spatial") for _, var, extent in stage.axes]
    loops = [prim.Var(hint, INT64) for hint, _, _ in stage.axes]
    if reduce is not None:
        iters += reduce.axis
        loops += [prim.Var(axis.var.name.removeprefix("v_"), INT64) for axis in reduce.axis]
    at = tuple(var for _, var, _ in stage.axes)
    if reduce is None:
        body = tir.seq(*(tir.BufferStore(t.buffer, b, at) for t, b in zip(stage.outputs, stage.bodies)))
        init = None
    else:
        body, init = _reduction(stage, reduce, at)
    reads, writes = _regions(stage, reduce, at)
    block = tir.Block(tuple(iters), reads, writes, names.unique(stage.outputs[0].name), body, init)
    nest: tir.Stmt = tir.BlockRealize(tuple(loops), prim.IntImm(prim.BOOL, 1), block)
    for loop, axis in zip(reversed(loops), reversed(iters)):
        nest = tir.For(loop, axis.dom.min, axis.dom.extent, "serial", nest)
    return nest


def _reduction(stage: Stage, reduce: prim.Reduce, at: tuple[PrimExpr, ...]) -> tuple[tir.Stmt, tir.Stmt]:
    """The update and the init of a reduction block."""
    combiner = reduce.combiner
    buffers = [t.buffer for t in stage.outputs]
    init = tir.seq(*(tir.BufferStore(b, neutral, at) for b, neutral in zip(buffers, combiner.identity)))
    values: dict[prim.Var, PrimExpr] = {v: prim.BufferLoad(b, at) for v, b in zip(combiner.lhs, buffers)}
    values.update(zip(combiner.rhs, reduce.source))
    combined = [substitute(r, values) for r in combiner.result]
    if len(buffers) == 1:
        return tir.BufferStore(buffers[0], combined[0], at), init
    # Several values are combined together: all are computed before the first is stored.
    held = [prim.Var(f"{b.name}_next", b.dtype) for b in buffers]
    body = tir.seq(*(tir.BufferStore(b, v, at) for b, v in zip(buffers, held)))
    for var, value in zip(reversed(held), reversed(combined)):
        body = tir.LetStmt(var, value, body)
    return body, init


def _regions(
    stage: Stage, reduce: prim.Reduce | None, at: tuple[PrimExpr, ...]
) -> tuple[tuple[tir.BufferRegion, ...], tuple[tir.BufferRegion, ...]]:
    """What a block reads and writes: the element of each access; the whole buffer where accesses differ or the index is
    itself data."""
    seen: dict[tir.Buffer, tuple[PrimExpr, ...] | None] = {}
    sources = stage.bodies if reduce is None else reduce.source
    for load in (n for b in sources for n in walk(b) if isinstance(n, prim.BufferLoad)):
        gathers = any(isinstance(n, prim.BufferLoad) for i in load.indices for n in walk(i))
        indices = None if gathers else load.indices
        seen[load.buffer] = indices if seen.get(load.buffer, indices) == indices else None
    reads = tuple(_region(b, indices) for b, indices in seen.items())
    return reads, tuple(_region(t.buffer, at) for t in stage.outputs)


def _region(buffer: tir.Buffer, indices: tuple[PrimExpr, ...] | None) -> tir.BufferRegion:
    if indices is None:
        return tir.BufferRegion(buffer, tuple(tir.Range(prim.IntImm(INT64, 0), d) for d in buffer.shape))
    return tir.BufferRegion(buffer, tuple(tir.Range(i, prim.IntImm(INT64, 1)) for i in indices))


def _outer_variables(ev: OpEvaluator, stages: list[Stage], buffers: list[tir.Buffer]) -> list[prim.Var]:
    """The variables of the caller that the kernel needs, in order of first use."""
    inner = set(ev.extents)
    found: dict[prim.Var, None] = {}
    for buffer in [*buffers, *(t.buffer for s in stages for t in s.outputs)]:
        found.update(dict.fromkeys(v for d in buffer.shape for v in free_vars(d)))
    for condition, _ in ev.requirements:
        found.update(dict.fromkeys(free_vars(condition)))
    for stage in stages:
        inner.update(stage.bound())
        for group in stage.expressions():
            found.update(dict.fromkeys(v for v in free_vars(group) if not v.dtype.is_handle))
    return [v for v in found if v not in inner]


def _with_values(message: str, condition: PrimExpr) -> str:
    """The message, ending in the values of the variables concerned (`{n}` is filled in when it is raised)."""
    names = dict.fromkeys(v.name for v in free_vars(condition))
    return message + (f" ({', '.join(f'{n} = {{{n}}}' for n in names)})" if names else "")
