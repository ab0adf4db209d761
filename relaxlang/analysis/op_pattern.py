"""What kind of computation a kernel is, as far as fusion is concerned: read off its TensorIR, whatever it is called."""

from __future__ import annotations

from enum import IntEnum

from relaxlang.analysis.reshape_pattern import covers
from relaxlang.analysis.stages import Stage, stages_of
from relaxlang.ir import prim
from relaxlang.ir.prim import IntImm, PrimExpr, Var
from relaxlang.ir.tir import Buffer, PrimFunc
from relaxlang.ir.visit import free_vars, walk


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
    kind = max(kinds)
    if kind is OpPattern.OPAQUE or kind is OpPattern.OUT_EWISE_FUSABLE or len(kinds) == 1:
        return kind
    # Several stages: the buffers between them hide which element of an input an element of the output needs.
    return OpPattern.COMM_REDUCE if kind is OpPattern.COMM_REDUCE else OpPattern.INJECTIVE


def stage_pattern(stage: Stage) -> OpPattern:
    """The kind of one stage."""
    if stage.is_reduction:
        return _reduction_pattern(stage)
    store = stage.stores[0]
    if not all(covers(s, stage.block) for s in stage.stores) or not _is_true(stage.realize.predicate):
        return OpPattern.OPAQUE
    if len(stage.stores) > 1 and any(s.buffer is load.buffer for s in stage.stores for load in stage.loads()):
        return OpPattern.OPAQUE
    kinds = {_access_pattern(load.indices, store.indices) for load in stage.loads()}
    if not kinds or kinds == {OpPattern.ELEMWISE, OpPattern.BROADCAST}:
        return OpPattern.ELEMWISE
    return max(kinds)


def _is_true(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


def _access_pattern(load: tuple[PrimExpr, ...], store: tuple[PrimExpr, ...]) -> OpPattern:
    """How the index of a load relates to that of the store."""
    if load == store:
        return OpPattern.ELEMWISE
    left = list(store)
    for index in load:
        if isinstance(index, IntImm) and index.value == 0:
            continue
        if not isinstance(index, Var) or index not in left:
            return OpPattern.INJECTIVE
        del left[: left.index(index) + 1]
    return OpPattern.BROADCAST


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


def argument_patterns(func: PrimFunc) -> dict[Var, OpPattern]:
    """How a kernel reads each of its buffer parameters that it reads: by one stage, how that stage accesses it; by
    several, or by a reduction, as the kernel's kind says."""
    found = stages_of(func)
    if found is None:
        return {p: OpPattern.OPAQUE for p in func.params if p in func.buffer_map}
    whole = op_pattern(func)
    result: dict[Var, OpPattern] = {}
    for param in func.params:
        buffer = func.buffer_map.get(param)
        readers = [(s, load) for s in found.stages for load in s.loads() if load.buffer is buffer]
        if buffer is None or not readers:
            continue
        if len(found.stages) > 1 or found.stages[0].is_reduction or whole is OpPattern.OPAQUE:
            result[param] = whole
        else:
            result[param] = max(_access_pattern(load.indices, s.stores[0].indices) for s, load in readers)
    return result
