"""TensorIR: buffers, statements, blocks and PrimFuncs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from relaxlang.base.dtype import DType
from relaxlang.base.node import Node, node
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.prim import INT32, Call, IntImm, PrimExpr, Var
from relaxlang.ir.printing import Printable

ForKind = Literal["serial", "parallel", "vectorized", "unroll", "thread_binding"]
IterKind = Literal["spatial", "reduce", "scan", "opaque", "thread"]


# --- buffers ----------------------------------------------------------------------------------------------------------
@node
class Buffer(Node):
    """A typed, shaped view of memory; it has an identity of its own.

    `data` is the pointer; `strides` (in elements) is empty for row-major; `elem_offset` the first element, or None for
    0; `align` the alignment of `data` in bytes (-1: unknown), `offset_factor` a divisor of `elem_offset`; `layout` what
    the language of GPU kernels says of where elements lie, which is carried as it is written (several fields, as
    `allocated_addr=`, as a call `carried.fields`).
    """

    name: str
    shape: tuple[PrimExpr, ...]
    dtype: DType
    data: Var
    strides: tuple[PrimExpr, ...] = ()
    elem_offset: PrimExpr | None = None
    scope: str = "global"
    align: int = -1
    offset_factor: int = 0
    layout: PrimExpr | None = None

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __str__(self) -> str:
        return self.name


@node
class Range(Node):
    """`extent` integers from `min`."""

    min: PrimExpr
    extent: PrimExpr


@node
class BufferRegion(Node):
    """A box of a buffer."""

    buffer: Buffer
    region: tuple[Range, ...]


@node
class MatchBufferRegion(Node):
    """`buffer` is declared to be the memory of `source`."""

    buffer: Buffer
    source: BufferRegion


@node
class IterVar(Node):
    """A block axis, or the axis of a reduction: its variable, its domain, its kind."""

    var: Var
    dom: Range
    kind: IterKind
    thread_tag: str = ""


# --- statements -------------------------------------------------------------------------------------------------------
class Stmt(Node):
    """A statement."""

    __slots__ = ()

    def __str__(self) -> str:
        from relaxlang.ir.printing import script

        return script(self)


@node
class BufferStore(Stmt):
    """`buffer[indices] = value`."""

    buffer: Buffer
    value: PrimExpr
    indices: tuple[PrimExpr, ...]
    predicate: PrimExpr | None = None


@node
class For(Stmt):
    """A loop of `extent` iterations, `loop_var` from `min` by `step`."""

    loop_var: Var
    min: PrimExpr
    extent: PrimExpr
    kind: ForKind
    body: Stmt
    annotations: Mapping[str, object] = EMPTY
    thread_binding: IterVar | None = None
    step: PrimExpr = IntImm(INT32, 1)


@node
class While(Stmt):
    """Repeat while `condition` holds."""

    condition: PrimExpr
    body: Stmt


@node
class IfThenElse(Stmt):
    """`then_case` when `condition` holds, else `else_case`."""

    condition: PrimExpr
    then_case: Stmt
    else_case: Stmt | None = None


@node
class Break(Stmt):
    """Leave the innermost loop."""


@node
class Continue(Stmt):
    """Go on with the next iteration of the innermost loop."""


@node
class SeqStmt(Stmt):
    """Statements one after the other; never nested, never of length one when made by `seq`."""

    seq: tuple[Stmt, ...]


@node
class Evaluate(Stmt):
    """Evaluate an expression for its effect; `Evaluate(0)` does nothing."""

    value: PrimExpr


@node
class LetStmt(Stmt):
    """`body` with `var` bound to `value`."""

    var: Var
    value: PrimExpr
    body: Stmt


@node
class AttrStmt(Stmt):
    """`body` under the attribute `key` of `node`."""

    node: object
    key: str
    value: PrimExpr
    body: Stmt


@node
class AssertStmt(Stmt):
    """Go on with `body` when `condition` holds; else the function fails with `message`."""

    condition: PrimExpr
    message: str
    body: Stmt


@node
class Allocate(Stmt):
    """`body` with memory for `extents` elements at `buffer_var`."""

    buffer_var: Var
    dtype: DType
    extents: tuple[PrimExpr, ...]
    condition: PrimExpr
    body: Stmt
    annotations: Mapping[str, object] = EMPTY

    @property
    def name(self) -> str:
        """What a program calls the memory: the buffer that is declared over it, else the pointer."""
        if isinstance(self.body, DeclBuffer) and self.body.buffer.data is self.buffer_var:
            return self.body.buffer.name
        return self.buffer_var.name


@node
class AllocConst(Stmt):
    """`body` with constant data (a numpy array) at `buffer_var`."""

    buffer_var: Var
    dtype: DType
    extents: tuple[PrimExpr, ...]
    data: object
    body: Stmt
    annotations: Mapping[str, object] = EMPTY


@node
class DeclBuffer(Stmt):
    """`body` with `buffer` declared as a view of existing memory."""

    buffer: Buffer
    body: Stmt


@node
class BufferRealize(Stmt):
    """`body` with `buffer` existing within `bounds` (old TVMScript)."""

    buffer: Buffer
    bounds: tuple[Range, ...]
    condition: PrimExpr
    body: Stmt


@node
class Block(Stmt):
    """A unit of computation over `iter_vars`, with what it reads and writes.

    `init` runs when every reduction axis is at its first value; `alloc_buffers` live as long as the block runs.
    `reads`/`writes` of None mean: not stated (analysis fills them in).
    """

    iter_vars: tuple[IterVar, ...]
    reads: tuple[BufferRegion, ...] | None
    writes: tuple[BufferRegion, ...] | None
    name_hint: str
    body: Stmt
    init: Stmt | None = None
    alloc_buffers: tuple[Buffer, ...] = ()
    match_buffers: tuple[MatchBufferRegion, ...] = ()
    annotations: Mapping[str, object] = EMPTY


@node
class BlockRealize(Stmt):
    """Run `block` with its axes at `iter_values`, when `predicate` holds."""

    iter_values: tuple[PrimExpr, ...]
    predicate: PrimExpr
    block: Block


# --- functions --------------------------------------------------------------------------------------------------------
SCHEDULABLE = "s_tir"
"""The attribute, True, of a PrimFunc that TVM 0.26 and later shall treat as one to be scheduled, where its body does
not say so by itself (`is_schedulable`)."""


@node
class PrimFunc(Node, Printable):
    """A function over buffers and scalars. `buffer_map` gives the buffer of each handle parameter.

    `ret_type` is None for functions that return nothing.
    """

    params: tuple[Var, ...]
    body: Stmt
    buffer_map: Mapping[Var, Buffer]
    ret_type: DType | None = None
    attrs: Attrs = EMPTY

    @property
    def is_private(self) -> bool:
        """Whether the function has no global symbol."""
        return "global_symbol" not in self.attrs

    def __str__(self) -> str:
        from relaxlang.ir.printing import script

        return script(self)


def is_schedulable(body: Stmt, buffers: Iterable[Buffer] = ()) -> bool:
    """Whether a body, with the buffers of the parameters, has what TVM 0.26 and later read rightly only under
    `s_tir=True`: blocks, and memory, which without it has a layout, and of which one element is a variable. Memory of a
    GPU kernel is meant to have one."""
    from relaxlang.ir.visit import walk

    memory, on_gpu = False, any(_is_gpu_memory(buffer) for buffer in buffers)
    for part in walk(body):
        if isinstance(part, Block):
            return True
        on_gpu = on_gpu or (isinstance(part, DeclBuffer) and _is_gpu_memory(part.buffer))
        on_gpu = on_gpu or (isinstance(part, Call) and part.op == "device_entry")
        memory = memory or isinstance(part, (Allocate, AllocConst, DeclBuffer, BufferRealize))
    return memory and not on_gpu


def _is_gpu_memory(buffer: Buffer) -> bool:
    return buffer.layout is not None or buffer.scope.startswith("trn.")


def seq(*stmts: Stmt | None) -> Stmt:
    """The statements in order, flattened; None and `Evaluate(0)` are dropped."""
    flat: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, SeqStmt):
            flat.extend(stmt.seq)
        elif stmt is not None and not (isinstance(stmt, Evaluate) and isinstance(stmt.value, IntImm)):
            flat.append(stmt)
    if not flat:
        return Evaluate(IntImm(INT32, 0))
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))
