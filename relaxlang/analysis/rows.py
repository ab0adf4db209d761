"""Which leading axes a kernel goes through row by row: an element of a row needs nothing of other rows."""

from __future__ import annotations

from relaxlang.analysis.stages import Stage, stages_of
from relaxlang.base.record import record
from relaxlang.ir.prim import IntImm, PrimExpr, Var
from relaxlang.ir.tir import PrimFunc
from relaxlang.syntax.struct_info import same_dim


@record
class Rows:
    """`dims` are the leading dimensions that all stages of a kernel share, outermost first; buffers between the stages
    are read in the same row only. `aligned`: along how many of them each parameter is read in the same row."""

    dims: tuple[PrimExpr, ...]
    aligned: dict[Var, int]


NO_ROWS = Rows((), {})


def rows_of(func: PrimFunc) -> Rows:
    """The rows of a kernel; none when its loops are not plain."""
    found = stages_of(func)
    if found is None:
        return NO_ROWS
    leading = [_leading(stage) for stage in found.stages]
    dims: list[PrimExpr] = []
    for column in zip(*leading):
        if not all(same_dim(column[0][1], dim) for _, dim in column[1:]):
            break
        dims.append(column[0][1])
    depth = len(dims)
    between = set(found.buffers)
    aligned = {p: depth for p in func.params if p in func.buffer_map}
    of_buffer = {b: p for p, b in func.buffer_map.items()}
    for stage, axes in zip(found.stages, leading):
        own = {s.buffer for s in stage.stores}
        for load in stage.loads():
            if load.buffer in own:
                continue
            same = 0
            while same < min(depth, len(load.indices)) and load.indices[same] is axes[same][0]:
                same += 1
            if load.buffer in between:
                depth = min(depth, same)
            elif load.buffer in of_buffer:
                param = of_buffer[load.buffer]
                aligned[param] = min(aligned[param], same)
    return Rows(tuple(dims[:depth]), {p: min(n, depth) for p, n in aligned.items()})


def _leading(stage: Stage) -> list[tuple[Var, PrimExpr]]:
    """The spatial axes that are the first indices of all stores of a stage, with their extents."""
    domains = {a.var: a.dom for a in stage.block.iter_vars if a.kind == "spatial"}
    found: list[tuple[Var, PrimExpr]] = []
    for column in zip(*(s.indices for s in stage.stores)):
        axis = column[0]
        if not isinstance(axis, Var) or axis not in domains or any(other is not axis for other in column[1:]):
            break
        low = domains[axis].min
        if not isinstance(low, IntImm) or low.value != 0:
            break
        found.append((axis, domains[axis].extent))
    return found
