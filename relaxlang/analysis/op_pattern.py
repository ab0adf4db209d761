"""What kind of computation a kernel is, as far as fusion is concerned: read off its TensorIR, whatever it is called."""

from __future__ import annotations

from enum import IntEnum

from relaxlang.analysis.reshape_pattern import covers
from relaxlang.analysis.stages import Stage, stages_of
from relaxlang.ir import prim
from relaxlang.ir.prim import IntImm, PrimExpr, Var
from relaxlang.ir.tir import Buffer, BufferStore, PrimFunc
from relaxlang.ir.visit import free_vars, walk
from relaxlang.syntax.struct_info import same_dim


class OpPattern(IntEnum):
    """The kinds, with the numbers of the attribute `op_pattern`.

    `ELEMWISE`: each output element needs the elements at the same index (others may be broadcast). `BROADCAST`: the
    elements at some of the indices, in order. `INJECTIVE`: elements at places computed from the index.
    `COMM_REDUCE`: elements are combined along axes; what follows them in the same kernel goes along (mean, softmax).
    `OUT_EWISE_FUSABLE`: a contraction such as a matrix product or a convolution. `OPAQUE`: nothing is known.
    """

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_EWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


def op_pattern(func: PrimFunc) -> OpPattern:
    """The kind of a kernel."""
    found = stages_of(func)
    if found is None:
        return OpPattern.OPAQUE
    kinds = [stage_pattern(stage) for stage in found.stages]
    if max(kinds) > OpPattern.INJECTIVE or len(kinds) == 1:
        return max(kinds)
    # Several stages: what counts is how the outputs depend on the inputs, through the buffers between.
    return _combined(set(argument_patterns(func).values()))


def _combined(kinds: set[OpPattern]) -> OpPattern:
    """The kind of a computation that reads its inputs in these ways."""
    if not kinds or kinds == {OpPattern.ELEMWISE, OpPattern.BROADCAST}:
        return OpPattern.ELEMWISE
    return max(kinds)


def argument_patterns(func: PrimFunc) -> dict[Var, OpPattern]:
    """How the outputs of a kernel depend on each of its buffer parameters that it reads, through all its stages."""
    found = stages_of(func)
    if found is None:
        return {p: OpPattern.OPAQUE for p in func.params if p in func.buffer_map}
    reads: dict[Buffer, OpPattern] = {}
    for stage in reversed(found.stages):
        kind = stage_pattern(stage)
        after = max(reads.get(s.buffer, OpPattern.ELEMWISE) for s in stage.stores)
        own = {s.buffer for s in stage.stores}
        for load in stage.loads():
            if load.buffer not in own:
                here = kind if kind > OpPattern.INJECTIVE else _access_pattern(load, stage.stores[0])
                reads[load.buffer] = max(reads.get(load.buffer, OpPattern.ELEMWISE), here, after)
    return {p: reads[b] for p in func.params if (b := func.buffer_map.get(p)) in reads and b is not None}


def stage_pattern(stage: Stage) -> OpPattern:
    """The kind of one stage."""
    if stage.is_reduction:
        return _reduction_pattern(stage)
    store = stage.stores[0]
    if not all(covers(s, stage.block) for s in stage.stores) or not _is_true(stage.realize.predicate):
        return OpPattern.OPAQUE
    if len(stage.stores) > 1 and any(s.buffer is load.buffer for s in stage.stores for load in stage.loads()):
        return OpPattern.OPAQUE
    return _combined({_access_pattern(load, store) for load in stage.loads()})


def _is_true(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


def _access_pattern(load: prim.BufferLoad, store: BufferStore) -> OpPattern:
    """How a load relates to the store of the same block: at the same index of an equally large buffer, at some of the
    indices in order, or anywhere."""
    left = list(zip(store.indices, store.buffer.shape))
    if _same_shape(load.buffer, store.buffer) and all(map(_same_index, load.indices, store.indices, load.buffer.shape)):
        return OpPattern.ELEMWISE
    for index, dim in zip(load.indices, load.buffer.shape):
        if isinstance(index, IntImm) and index.value == 0:
            continue
        at = next((k for k, (i, _) in enumerate(left) if i is index), None)
        if at is None or not same_dim(dim, left[at][1]):
            return OpPattern.INJECTIVE
        del left[: at + 1]
    return OpPattern.BROADCAST


def _same_shape(a: Buffer, b: Buffer) -> bool:
    return a.ndim == b.ndim and all(map(same_dim, a.shape, b.shape))


def _same_index(a: PrimExpr, b: PrimExpr, dim: PrimExpr) -> bool:
    """Whether an access goes to the same place of a dimension; one of extent 1 has a single one."""
    return a is b or a == b or (isinstance(dim, IntImm) and dim.value == 1)


def _reduction_pattern(stage: Stage) -> OpPattern:
    """A contraction multiplies what depends on different output axes; any other reduction combines elements."""
    block = stage.block
    if block.init is None or any(axis.kind not in ("spatial", "reduce") for axis in block.iter_vars):
        return OpPattern.OPAQUE
    spatial = {a.var for a in block.iter_vars if a.kind == "spatial"}
    if any(not set(free_vars(s.indices)) <= spatial for s in stage.stores):
        return OpPattern.OPAQUE
    own = {s.buffer for s in stage.stores}
    for product in (n for n in walk(block.body) if isinstance(n, prim.Mul)):
        a, b = _axes_read(product.a, own) & spatial, _axes_read(product.b, own) & spatial
        reads = _buffers(product.a, own) and _buffers(product.b, own)
        if reads and (a - b or b - a):
            return OpPattern.OUT_EWISE_FUSABLE
    return OpPattern.COMM_REDUCE


def _buffers(e: PrimExpr, own: set[Buffer]) -> set[Buffer]:
    return {n.buffer for n in walk(e) if isinstance(n, prim.BufferLoad)} - own


def _axes_read(e: PrimExpr, own: set[Buffer]) -> set[Var]:
    """The variables in the indices of the loads of an expression."""
    loads = [n for n in walk(e) if isinstance(n, prim.BufferLoad) and n.buffer not in own]
    return {v for load in loads for v in free_vars(load.indices)}
