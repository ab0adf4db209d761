"""transform_layout: a buffer's elements in another order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.index_map import IndexMap
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import DType
from relaxlang.ir.prim import BufferLoad, FloorDiv, FloorMod, IntImm, PrimExpr, Var, as_prim
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferStore, Range
from relaxlang.ir.visit import Rewriter, on, walk
from relaxlang.schedule.access import regions
from relaxlang.schedule.primitives.cache import buffer_of, new_buffer
from relaxlang.schedule.state import State


def transform_layout(
    state: State, name: str, kind: str, index: int | str, index_map: IndexMap, injective: bool
) -> State:
    """A buffer that the function allocates has its elements where `index_map` sends their indices; all accesses follow.

    RLX1012: the buffer is a parameter, or the map is not one to one; with `injective` the latter is taken on trust.
    """
    old = buffer_of(state, name, index, kind)
    realize = state.blocks[name]
    home = next((b for b in state.blocks.values() if old in b.block.alloc_buffers), None)
    if home is None:
        message = f"`transform_layout`: `{old.name}` is a parameter, whose layout the caller knows"
        state.fail("RLX1012", message, realize, help="`cache_read` or `cache_write` makes a buffer of its own")
    shape = _shape(state, realize, old, index_map, injective)
    made = new_buffer(old.name, old, shape, old.scope)
    moved = _Remap(old, made, index_map, state.analyzer())(home.block.body)
    kept = tuple(made if b is old else b for b in home.block.alloc_buffers)
    return state.replace({home.block: home.block.replace(body=moved, alloc_buffers=kept)})


def _shape(
    state: State, realize: BlockRealize, old: Buffer, index_map: IndexMap, injective: bool
) -> tuple[PrimExpr, ...]:
    known = rearranged(old, index_map)
    if known is not None:
        return known
    analyzer = state.analyzer()
    try:
        shape = index_map.map_shape(old.shape, analyzer)
        if not injective:
            index_map.non_surjective_inverse(old.shape, analyzer)
    except DiagnosticError as reason:
        fault = reason.diagnostics[0]
        message = f"`transform_layout` of `{old.name}`: {fault.message}"
        state.fail("RLX1012", ": ".join([message, *fault.notes[:1]]), realize)
    return shape


def rearranged(old: Buffer, index_map: IndexMap) -> tuple[PrimExpr, ...] | None:
    """The new shape for a map that puts the dimensions into another order, and perhaps takes multiples of a number
    apart into a quotient and a remainder: it is one to one. None for other maps."""
    if len(index_map.initial_indices) != old.ndim:
        return None
    dims = dict(zip(index_map.initial_indices, old.shape))
    shape: list[PrimExpr] = []
    uses: dict[Var, list[tuple[type, int]]] = {v: [] for v in dims}
    for index in index_map.final_indices:
        var, by = (index.a, index.b) if isinstance(index, (FloorDiv, FloorMod)) else (index, None)
        dim = dims.get(var) if isinstance(var, Var) else None
        if not isinstance(var, Var) or dim is None or dim.dtype is not var.dtype:
            return None
        if by is None and isinstance(dim, (IntImm, Var)):
            uses[var].append((Var, 1))
            shape.append(dim)
        elif isinstance(by, IntImm) and isinstance(dim, IntImm) and by.value > 0 and dim.value % by.value == 0:
            uses[var].append((type(index), by.value))
            shape.append(by if isinstance(index, FloorMod) else IntImm(dim.dtype, dim.value // by.value))
        else:
            return None
    complete = all(
        of == [(Var, 1)] or (len(of) == 2 and {*of} == {(FloorDiv, of[0][1]), (FloorMod, of[0][1])})
        for of in uses.values()
    )  # fmt: skip
    return tuple(shape) if complete else None


class _Remap(Rewriter):
    def __init__(self, old: Buffer, new: Buffer, index_map: IndexMap, analyzer: Analyzer) -> None:
        self.old = old
        self.new = new
        self.map = index_map
        self.analyzer = analyzer

    @on(BufferLoad, BufferStore)
    def access(self, node: BufferLoad | BufferStore) -> BufferLoad | BufferStore:
        """A load or store."""
        made = self.below(node)
        if made.buffer is not self.old:
            return made
        return made.replace(buffer=self.new, indices=self.map.map_indices(made.indices, self.analyzer))

    @on(Block)
    def block(self, node: Block) -> Block:
        """A block: its regions are found anew when they mention the buffer."""
        if not any(n is self.old for n in walk(node)):
            return node
        with self.analyzer.assuming():
            for axis in node.iter_vars:
                self.analyzer.bind(axis.var, Range(axis.dom.min, axis.dom.extent))
            made = node.replace(body=self(node.body), init=None if node.init is None else self(node.init))
        if any(r.buffer is self.old for r in (*(node.reads or ()), *(node.writes or ()))):
            reads, writes = regions(made)
            made = made.replace(reads=reads, writes=writes)
        return made


def traced(function: IndexMap | Callable[..., Any], of: DType) -> IndexMap:
    """The index map that a function of indices of type `of` states; one that is a map already is returned."""
    if isinstance(function, IndexMap):
        return function
    names = getattr(function, "names", None) or function.__code__.co_varnames[: function.__code__.co_argcount]
    variables = tuple(Var(n, of) for n in names)
    made = function(*variables)
    indices = made if isinstance(made, (tuple, list)) else (made,)
    return IndexMap(variables, tuple(as_prim(i, of) for i in indices))
