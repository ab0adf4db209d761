"""LowerMatchBuffer: names for parts of a buffer give way to the buffer itself."""

from __future__ import annotations

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import BufferLoad, PrimExpr, Var
from relaxlang.ir.tir import Block, Buffer, BufferRegion, BufferStore, MatchBufferRegion, PrimFunc, Range
from relaxlang.ir.visit import Substitute, on
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.passes.tir.layout import element_offset, strides_of
from relaxlang.schedule.stmts import walk_stmts


@record
class LowerMatchBuffer(PrimFuncPass):
    """`T.match_buffer` inside blocks is replaced: accesses go to the source, at indices moved by the region's start;
    variables in the declared shape, strides and offset get the source's values.

    Before:

        @T.prim_func
        def f(A: T.Buffer((16, 16), "float32")):
            for i in range(4):
                with T.block(""):
                    row = T.match_buffer(A[i * 4, 0:16], (16,), "float32")
                    row[3] = T.float32(0)

    After:

        @T.prim_func
        def f(A: T.Buffer((16, 16), "float32")):
            for i in range(4):
                with T.block(""):
                    A[i * 4, 3] = T.float32(0.0)
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return lower_match_buffer(func)


def lower_match_buffer(func: PrimFunc) -> PrimFunc:
    """The function without match buffers in blocks."""
    if not any(isinstance(stmt, Block) and stmt.match_buffers for stmt in walk_stmts(func.body)):
        return func
    return func.replace(body=_Lower()(func.body))


class _Lower(Substitute):
    """`views` maps a declared buffer to the region that it names, in terms of other buffers (views resolved)."""

    def __init__(self) -> None:
        super().__init__({})
        self.mapping: dict[Var, PrimExpr] = {}
        self.views: dict[Buffer, BufferRegion] = {}

    @on(Block)
    def block(self, node: Block) -> Block:
        """A block: its views become known, and go."""
        for match in node.match_buffers:
            self._declare(match)
        return self.below(node.replace(match_buffers=()))

    def _declare(self, match: MatchBufferRegion) -> None:
        region = self.visit(match.source)
        view, source = match.buffer, region.buffer
        if len(view.shape) > len(region.region) or view.dtype is not source.dtype:
            fail(
                "RLX3120",
                f"`{view.name}` cannot be a view of a region of `{source.name}`: rank or dtype differ",
                match.span,
                node=match,
            )
        self.views[view] = region
        self._bind(view.data, source.data)
        kept = region.region[len(region.region) - len(view.shape) :]
        for dim, known in zip(view.shape, kept):
            self._bind(dim, known.extent)
        strides = strides_of(source)
        for stride, of in zip(view.strides, strides[len(strides) - len(view.shape) :]):
            self._bind(stride, of)
        if view.elem_offset is not None:
            self._bind(view.elem_offset, element_offset(source, tuple(r.min for r in region.region)))

    def _bind(self, declared: PrimExpr, value: PrimExpr) -> None:
        if isinstance(declared, Var) and declared not in self.mapping:
            self.mapping[declared] = value if declared.dtype.is_handle else prim.cast(value, declared.dtype)

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> BufferLoad:
        """A load of a view is a load of its source."""
        made = self.below(node)
        region = self.views.get(node.buffer)
        return made if region is None else made.replace(buffer=region.buffer, indices=_inside(region, made.indices))

    @on(BufferStore)
    def store(self, node: BufferStore) -> BufferStore:
        """A store to a view is a store to its source."""
        made = self.below(node)
        region = self.views.get(node.buffer)
        return made if region is None else made.replace(buffer=region.buffer, indices=_inside(region, made.indices))

    @on(BufferRegion)
    def region(self, node: BufferRegion) -> BufferRegion:
        """A region of a view is a region of its source."""
        made = self.below(node)
        view = self.views.get(node.buffer)
        if view is None:
            return made
        lows = _inside(view, tuple(r.min for r in made.region))
        lead = len(lows) - len(made.region)
        extents = (*(prim.const(1, low.dtype) for low in lows[:lead]), *(r.extent for r in made.region))
        return BufferRegion(view.buffer, tuple(map(Range, lows, extents)), span=node.span)


def _inside(region: BufferRegion, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
    """Indices of a view as indices of its source."""
    lead = len(region.region) - len(indices)
    lows = [r.min for r in region.region]
    return (*lows[:lead], *(low + index for low, index in zip(lows[lead:], indices)))
