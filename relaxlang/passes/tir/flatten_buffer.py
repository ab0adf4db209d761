"""FlattenBuffer: every access gets one index, counted in elements from where the memory begins."""

from __future__ import annotations

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.ir.intrinsics import is_view
from relaxlang.ir.prim import BufferLoad, PrimExpr
from relaxlang.ir.tir import Allocate, AllocConst, Block, Buffer, BufferStore, DeclBuffer, PrimFunc, Stmt
from relaxlang.ir.visit import Rewriter, on
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.passes.tir.layout import Places, size_of


@record
class FlattenBuffer(PrimFuncPass):
    """Buffers of any rank become buffers of one dimension over the same memory, without strides or offset; indices are
    combined. Parameters keep their shapes in the signature. RLX3121 for a function with blocks that has buffers to
    flatten: the regions of a block have the rank of their buffers.

    Before:

        @T.prim_func
        def f(A: T.Buffer((8, 16), "float32")):
            for i, j in T.grid(8, 16):
                A[i, j] = A[i, 15 - j]

    After:

        @T.prim_func
        def f(A: T.Buffer((8, 16), "float32")):
            A_1 = T.decl_buffer((128,), "float32", data=A.data)
            for i, j in T.grid(8, 16):
                A_1[i * 16 + j] = A_1[i * 16 + (15 - j)]
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return flatten_buffer(func)


def flatten_buffer(func: PrimFunc) -> PrimFunc:
    """The function with flat accesses only."""
    flatten = _Flatten()
    body: Stmt = flatten(func.body)
    if flatten.block is not None and any(flat is not buffer for buffer, flat in flatten.made.items()):
        block = flatten.block
        fail("RLX3121", f"buffers can't be flattened in the block `{block.name_hint}`", block.span, node=block,
             help="run the pass `lower-opaque-block` before")  # fmt: skip
    if body is func.body and not flatten.made:
        return func
    for buffer in reversed(list(func.buffer_map.values())):
        flat = flatten.made.get(buffer)
        if flat is not None and flat is not buffer:
            body = DeclBuffer(flat, body)
    return func.replace(body=body)


def is_flat(buffer: Buffer) -> bool:
    """Whether a buffer has one dimension and begins where its memory does."""
    return len(buffer.shape) == 1 and not buffer.strides and buffer.elem_offset is None


class _Flatten(Rewriter):
    """`made` maps buffers to their flat forms."""

    def __init__(self) -> None:
        self.made: dict[Buffer, Buffer] = {}
        self.places: dict[Buffer, Places] = {}
        self.block: Block | None = None

    def flat(self, buffer: Buffer) -> Buffer:
        """The flat form of a buffer; itself when it is flat."""
        found = self.made.get(buffer)
        if found is None:
            found = buffer
            if not is_flat(buffer):
                found = buffer.replace(shape=(size_of(buffer),), strides=(), elem_offset=None, offset_factor=0)
            self.made[buffer] = found
        return found

    def index(self, node: BufferLoad | BufferStore) -> tuple[PrimExpr, ...]:
        """The one index of an access."""
        buffer = node.buffer
        if len(node.indices) != buffer.ndim:
            message = f"`{buffer.name}` has {buffer.ndim} dimensions and is accessed with {len(node.indices)} indices"
            if is_view(buffer.layout):
                message = f"`{buffer.name}` is a view of the language of GPU kernels, which has no code here"
            fail("RLX3122", message, node.span, node=node)
        indices = tuple([self.visit(i) for i in node.indices])
        if is_flat(buffer):
            return indices
        places = self.places.get(buffer)
        if places is None:
            places = self.places[buffer] = Places(buffer)
        return (places.offset(indices),)

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> BufferLoad:
        """A load with one index."""
        predicate = None if node.predicate is None else self.visit(node.predicate)
        return node.replace(
            buffer=self.flat(node.buffer), indices=_same(node.indices, self.index(node)), predicate=predicate
        )

    @on(BufferStore)
    def store(self, node: BufferStore) -> BufferStore:
        """A store with one index."""
        predicate = None if node.predicate is None else self.visit(node.predicate)
        indices = _same(node.indices, self.index(node))
        return node.replace(
            buffer=self.flat(node.buffer), value=self.visit(node.value), indices=indices, predicate=predicate
        )

    @on(Block)
    def enter(self, node: Block) -> Block:
        """A block: it is remembered, and its buffers are looked at."""
        made: Block = self.below(node)
        for buffer in (*node.alloc_buffers, *(r.buffer for r in (*(node.reads or ()), *(node.writes or ())))):
            self.flat(buffer)
        self.block = self.block or node
        return made

    @on(DeclBuffer)
    def declare(self, node: DeclBuffer) -> DeclBuffer:
        """The declaration of the flat buffer."""
        return node.replace(buffer=self.flat(node.buffer), body=self.visit(node.body))

    @on(Allocate, AllocConst)
    def allocate(self, node: Allocate | AllocConst) -> Stmt:
        """Memory keeps its extents: their product is computed with care where it is allocated."""
        return node.replace(body=self.visit(node.body))


def _same(old: tuple[PrimExpr, ...], new: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
    return old if len(old) == len(new) and all(a is b for a, b in zip(old, new)) else new
