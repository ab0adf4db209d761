"""Whether a TensorIR function keeps the rules: variables are defined once and before they are used, types agree.

Text can't break these rules, so that reading a module does not look here; passes and schedules can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from relaxlang.base.diagnostics import Diagnostic
from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.visit import Visitor, free_vars, on


def well_formed_prim_func(name: str, function: tir.PrimFunc) -> list[Diagnostic]:
    """Every breach of a rule, in the order of the statements."""
    checker = _Checker(name)
    checker.function(function)
    return checker.found


class _Checker(Visitor):
    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[Diagnostic] = []
        self.scope: set[prim.Var] = set()
        self.ever: set[prim.Var] = set()
        self.buffers: set[tir.Buffer] = set()
        self.loops = 0

    def report(self, code: str, message: str, span: Span | None) -> None:
        """Keep a breach."""
        notes = [] if span is not None else [f"in the function `{self.name}`"]
        self.found.append(Diagnostic(code, message, span, notes=notes))

    @contextmanager
    def defining(self, variables: Iterable[prim.Var], span: Span | None) -> Iterator[None]:
        """Within it the variables are in scope."""
        made = list(variables)
        for var in made:
            if var in self.ever:
                self.report("RLX0436", f"`{var.name}` is defined twice", span)
            self.ever.add(var)
        self.scope.update(made)
        yield
        self.scope.difference_update(made)

    def function(self, node: tir.PrimFunc) -> None:
        """Parameters define themselves, the pointers of their buffers, and what stands alone in the buffers' shapes."""
        own: dict[prim.Var, None] = dict.fromkeys(node.params)
        for buffer in node.buffer_map.values():
            own[buffer.data] = None
            own.update(
                (d, None) for d in (*buffer.shape, *buffer.strides, buffer.elem_offset) if isinstance(d, prim.Var)
            )
        with self.defining(own, node.span):
            for buffer in node.buffer_map.values():
                self.declare(buffer)
            self(node.body)

    def declare(self, buffer: tir.Buffer) -> None:
        """A buffer comes into being; what it mentions must be in scope."""
        self.buffers.add(buffer)
        for dim in (*buffer.shape, *buffer.strides, *((buffer.elem_offset,) if buffer.elem_offset is not None else ())):
            self(dim)

    # --- expressions --------------------------------------------------------------------------------------------------
    @on(prim.Var, prim.SizeVar)
    def var(self, node: prim.Var) -> None:
        """A use of a variable."""
        if node not in self.scope:
            self.report("RLX0438", f"`{node.name}` is used where it is not defined", node.span)
            self.scope.add(node)  # once is enough

    @on(prim.Let)
    def let(self, node: prim.Let) -> None:
        """`body` with a variable bound."""
        self(node.value)
        with self.defining((node.var,), node.span):
            self(node.body)

    @on(prim.BufferLoad)
    def load(self, node: prim.BufferLoad) -> None:
        """An element of a buffer."""
        self.access(node.buffer, node.indices, node.span)
        self.below(node)

    def access(self, buffer: tir.Buffer, indices: tuple[prim.PrimExpr, ...], span: Span | None) -> None:
        """An element of a buffer: one integer index for each dimension."""
        if buffer not in self.buffers and buffer.data not in self.scope:
            self.report("RLX0438", f"the buffer `{buffer.name}` is used where it is not defined", span)
            self.buffers.add(buffer)
        if len(indices) != len(buffer.shape):
            self.report(
                "RLX0301", f"`{buffer.name}` has {buffer.ndim} dimensions, {len(indices)} indices were given", span
            )
        for index in indices:
            if not (index.dtype.is_integer or index.dtype.is_bool):
                self.report("RLX0302", f"an index of `{buffer.name}` is `{index.dtype}`", span)

    @on(prim.Add, prim.Sub, prim.Mul, prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod, prim.Min, prim.Max, prim.EQ,
        prim.NE, prim.LT, prim.LE, prim.GT, prim.GE)  # fmt: skip
    def binary(self, node: prim.BinaryOp | prim.CmpOp) -> None:
        """Two operands of one type."""
        if node.a.dtype is not node.b.dtype:
            kind = node.__class__.__name__
            self.report("RLX0325", f"the operands of `{kind}` are `{node.a.dtype}` and `{node.b.dtype}`", node.span)
        self.below(node)

    # --- statements ---------------------------------------------------------------------------------------------------
    @on(tir.BufferStore)
    def store(self, node: tir.BufferStore) -> None:
        """A store of the buffer's own type."""
        self.access(node.buffer, node.indices, node.span)
        if node.value.dtype.scalar is not node.buffer.dtype.scalar:
            self.report("RLX0314", f"a `{node.value.dtype}` value is stored to `{node.buffer.name}`", node.span)
        self.below(node)

    @on(tir.For)
    def loop(self, node: tir.For) -> None:
        """A loop defines its variable, and that of its thread."""
        for bound in (node.min, node.extent, node.step):
            self(bound)
        own = [node.loop_var]
        if node.thread_binding is not None and node.thread_binding.var not in self.scope:
            own.append(node.thread_binding.var)
        with self.defining(own, node.span):
            self.loops += 1
            self(node.body)
            self.loops -= 1

    @on(tir.While)
    def repeat(self, node: tir.While) -> None:
        """A loop without a variable."""
        self(node.condition)
        self.loops += 1
        self(node.body)
        self.loops -= 1

    @on(tir.Break, tir.Continue)
    def leave(self, node: tir.Stmt) -> None:
        """Only in a loop."""
        if self.loops == 0:
            self.report("RLX0319", f"`{node.__class__.__name__.lower()}` outside of a loop", node.span)

    @on(tir.LetStmt)
    def let_stmt(self, node: tir.LetStmt) -> None:
        """A let for statements."""
        self(node.value)
        with self.defining((node.var,), node.span):
            self(node.body)

    @on(tir.Allocate, tir.AllocConst)
    def allocate(self, node: tir.Allocate | tir.AllocConst) -> None:
        """Memory defines its pointer."""
        for extent in node.extents:
            self(extent)
        with self.defining((node.buffer_var,), node.span):
            self(node.body)

    @on(tir.DeclBuffer)
    def decl_buffer(self, node: tir.DeclBuffer) -> None:
        """A view of memory, which may define its own offset and strides."""
        self.declare(node.buffer)
        self(node.body)

    @on(tir.BufferRealize)
    def realize(self, node: tir.BufferRealize) -> None:
        """A buffer that exists within a statement."""
        with self.defining(() if node.buffer.data in self.scope else (node.buffer.data,), node.span):
            self.declare(node.buffer)
            self(node.body)

    @on(tir.AttrStmt)
    def attr(self, node: tir.AttrStmt) -> None:
        """Launching a thread defines its variable."""
        self(node.value)
        subject = node.node
        own = (subject.var,) if isinstance(subject, tir.IterVar) and subject.var not in self.scope else ()
        with self.defining(own, node.span):
            self(node.body)

    @on(tir.BlockRealize)
    def block_realize(self, node: tir.BlockRealize) -> None:
        """A block with a value for each axis."""
        if len(node.iter_values) != len(node.block.iter_vars):
            count = len(node.block.iter_vars)
            self.report("RLX0310", f"the block has {count} axes and {len(node.iter_values)} values", node.span)
        for value in node.iter_values:
            self(value)
        self(node.predicate)
        self(node.block)

    @on(tir.Block)
    def block(self, node: tir.Block) -> None:
        """A block sees variables from outside only in its axes' values: its own are its axes."""
        for axis in node.iter_vars:
            self(axis.dom.min)
            self(axis.dom.extent)
        own = [axis.var for axis in node.iter_vars]
        own += [b.data for b in node.alloc_buffers if b.data not in self.scope]
        with self.defining(own, node.span):
            for buffer in node.alloc_buffers:
                self.declare(buffer)
            self._matched(node)

    def _matched(self, node: tir.Block) -> None:
        own: dict[prim.Var, None] = {}
        for match in node.match_buffers:
            self(match.source)
            own[match.buffer.data] = None
            parts = (
                *match.buffer.strides,
                *((match.buffer.elem_offset,) if match.buffer.elem_offset is not None else ()),
            )
            own.update((v, None) for v in free_vars(parts) if v not in self.scope)
        with self.defining([v for v in own if v not in self.scope], node.span):
            for match in node.match_buffers:
                self.declare(match.buffer)
            for region in (*(node.reads or ()), *(node.writes or ())):
                self(region)
            if node.init is not None:
                self(node.init)
            self(node.body)
