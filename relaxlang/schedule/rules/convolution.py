"""Convolutions, found by what a block computes: a window of two reduction axes slides over two axes of the data."""

from __future__ import annotations

from collections.abc import Mapping

from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import INT64, BufferLoad, PrimExpr, Var
from relaxlang.ir.tir import BlockRealize, Buffer, BufferStore
from relaxlang.schedule.access import linear_form
from relaxlang.schedule.rules.analysis import constant, update_of


@record
class Convolution:
    """A two-dimensional convolution of stride 1, not dilated, without groups: `out[b, k, h, w] += data[b, c, h + r,
    w + s] * weight[k, c, r, s]`, the dimensions of each buffer in any order.

    `of_data`, `of_weight` and `of_out` name the dimension of each index by the axis: `batch` ones as their variables
    in `batch`; `extents` holds the length of every axis, in int64.
    """

    data: Buffer
    weight: Buffer
    out: Buffer
    of_data: tuple[Var, ...]
    of_weight: tuple[Var, ...]
    of_out: tuple[Var, ...]
    batch: tuple[Var, ...]
    channel: Var
    filter: Var
    spatial: tuple[Var, Var]
    window: tuple[Var, Var]
    extents: Mapping[Var, PrimExpr]

    def data_length(self, axis: Var) -> PrimExpr:
        """The extent of the dimension of the data in which a window slides along a spatial axis."""
        return prim.cast(self.data.shape[self.of_data.index(axis)], INT64)

    def load_data(self, at: Mapping[Var, PrimExpr]) -> BufferLoad:
        """An element of the data; `at` gives places by axis, spatial ones with the place in the window."""
        return BufferLoad(self.data, tuple(at[a] for a in self.of_data))

    def load_weight(self, at: Mapping[Var, PrimExpr]) -> BufferLoad:
        """A weight."""
        return BufferLoad(self.weight, tuple(at[a] for a in self.of_weight))

    def indices_of_result(self, at: Mapping[Var, PrimExpr]) -> tuple[PrimExpr, ...]:
        """Where a result lies."""
        return tuple(at[a] for a in self.of_out)


def find_convolution(realize: BlockRealize) -> Convolution | None:
    """The convolution that a reduction block is; None when it is none, or of narrow floats."""
    update = update_of(realize)
    if update is None or update.kind is not prim.Add or not isinstance(update.value, prim.Mul):
        return None
    a, b = update.value.a, update.value.b
    if not isinstance(a, BufferLoad) or not isinstance(b, BufferLoad):
        return None
    of = update.store.buffer.dtype
    if not of.is_float or of.bits < 32 or of.lanes != 1 or a.buffer.dtype is not of or b.buffer.dtype is not of:
        return None
    if any(one.buffer.strides for one in (a, b, update.store)):
        return None
    return _with_roles(realize, update.store, a, b) or _with_roles(realize, update.store, b, a)


def _with_roles(realize: BlockRealize, store: BufferStore, data: BufferLoad, weight: BufferLoad) -> Convolution | None:
    """The convolution of `data` by `weight`; None when these are not what they are taken for."""
    axes = {a.var: a for a in realize.block.iter_vars}
    kept = {v for v, a in axes.items() if a.kind == "spatial"}
    summed = {v for v, a in axes.items() if a.kind == "reduce"}
    if any(constant(a.dom.min) != 0 for a in axes.values()) or not _are_axes(weight.indices, set(axes)):
        return None
    if not _are_axes(store.indices, kept) or set(store.indices) != kept:
        return None
    of_data: list[Var] = []
    windows: dict[Var, Var] = {}
    for index in data.indices:
        form = linear_form(index)
        if form is None or form[1] != 0 or any(f != 1 for f in form[0].values()):
            return None
        spatial, reduced = [v for v in form[0] if v in kept], [v for v in form[0] if v in summed]
        if len(spatial) == 1 and len(reduced) == 1 and len(form[0]) == 2:
            windows[spatial[0]] = reduced[0]
            of_data.append(spatial[0])
        elif len(form[0]) == 1 and len(spatial) + len(reduced) == 1:
            of_data.append((spatial or reduced)[0])
        else:
            return None
    batch = tuple(v for v in of_data if v in kept and v not in windows)
    filters = [v for v in weight.indices if isinstance(v, Var) and v in kept]
    channels = [v for v in of_data if v in summed]
    if len(windows) != 2 or len(filters) != 1 or len(channels) != 1 or len(set(of_data)) != len(of_data):
        return None
    if {*batch, *windows, *filters} != kept or {*windows.values(), *channels} != summed or filters[0] in of_data:
        return None
    if set(weight.indices) != {*filters, *summed}:
        return None
    of_out, of_weight = (tuple(v for v in one.indices if isinstance(v, Var)) for one in (store, weight))
    h, w = (v for v in of_out if v in windows)
    return Convolution(
        data.buffer, weight.buffer, store.buffer, tuple(of_data), of_weight, of_out, batch, channels[0], filters[0],
        (h, w), (windows[h], windows[w]), {v: prim.cast(a.dom.extent, INT64) for v, a in axes.items()},
    )  # fmt: skip


def _are_axes(indices: tuple[PrimExpr, ...], axes: set[Var]) -> bool:
    """Whether all indices are different axes."""
    return all(isinstance(i, Var) and i in axes for i in indices) and len(set(indices)) == len(indices)
