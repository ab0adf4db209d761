"""The statements of a TensorIR function: from the surface tree to `ir.tir`."""

from __future__ import annotations

from typing import Any

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError
from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.intrinsics import COORDINATES, is_view
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.relax import GlobalVar
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Builtin, Evaluator, Scope, assign, describe, error
from relaxlang.syntax.elaborate.buffers import range_of
from relaxlang.syntax.elaborate.carried import VIEWS, is_carried, part_of, view_of
from relaxlang.syntax.elaborate.dims import quoted_tree
from relaxlang.syntax.elaborate.scalars import Fresh, call_function, scalar, vector_indices
from relaxlang.syntax.elaborate.tir_access import METHODS, wrong_count
from relaxlang.syntax.elaborate.tir_names import Meta, fresh, let_of
from relaxlang.syntax.elaborate.tir_statements import STATEMENTS
from relaxlang.syntax.elaborate.tir_values import BlockState, Item, Pending, Wrapper, close
from relaxlang.syntax.elaborate.unit import Unit, poison
from relaxlang.syntax.elaborate.variables import last_assignments, scalar_variable


class BodyElaborator(Evaluator):
    """Elaborates the body of one PrimFunc.

    `items` are the statements of the innermost body so far; a wrapper among them takes what follows as its body.
    """

    def __init__(self, unit: Unit) -> None:
        super().__init__()
        self.unit = unit
        self.items: list[Item] = []
        self.root = BlockState("root", root=True)
        self.block = self.root
        self.attrs: dict[str, Any] = {}
        self.params: tuple[prim.Var, ...] = ()
        self.buffer_map: dict[prim.Var, tir.Buffer] = {}
        self.signature_vars: dict[str, prim.Var] = {}
        self.loop_domains: dict[prim.Var, tir.Range] = {}
        self.thread_tags: dict[prim.Var, str] = {}
        self.flat_shapes: dict[prim.Var, tuple[PrimExpr, ...]] = {}
        self.flat_buffers: dict[prim.Var, tir.Buffer] = {}
        self.has_block = False
        self.suffix = ""
        self.allocates_here = False
        self.variables: set[tir.Buffer] = set()
        self.loop_depth = 0
        self.in_regions = self.in_tiles = False
        self.macro_depth = self.macro_calls = 0
        self.here: Scope | None = None
        self.following: tuple[tuple[tree.Stmt, ...], int] = ((), 0)
        self.assigned: dict[int, dict[str, int]] = {}

    # --- what builtins call -------------------------------------------------------------------------------------------
    def wrap(self, wrapper: Wrapper) -> None:
        """Everything that follows in this body becomes the body of a statement."""
        self.items.append(wrapper)

    def open_block(self, span: Span | None) -> BlockState:
        """The block whose body is being read; an error outside of blocks."""
        if self.block.root:
            raise error("RLX0311", "this stands only inside a block", span, help='open one: `with T.block("name"):`')
        return self.block

    def add_axis(
        self, name: str, of: DType, dom: tir.Range, kind: tir.IterKind, value: PrimExpr | None, span: Span | None
    ) -> prim.Var:
        """A new axis of the innermost block; `value` None: bound later, or to a loop made for it."""
        block = self.open_block(span)
        if not of.is_integer or not dom.extent.dtype.is_integer:
            raise error("RLX0309", f"an axis is an integer, and its domain is `{dom.extent.dtype}`", span)
        var = prim.Var(name, of, span=span)
        block.iter_vars.append(tir.IterVar(var, dom, kind, span=span))
        block.iter_values.append(value)
        return var

    def bind_axis(self, axis: Any, value: PrimExpr, span: Span | None) -> None:
        """Give the value of an axis of an old-style block."""
        block = self.open_block(span)
        for k, iter_var in enumerate(block.iter_vars):
            if iter_var.var is axis:
                block.iter_values[k] = value
                return
        raise error("RLX0310", f"{describe(axis)} is no axis of this block", span)

    def map_param(self, param: prim.Var, buffer: tir.Buffer, span: Span | None) -> tir.Buffer:
        """Declare the buffer of a handle parameter."""
        if param not in self.params:
            raise error("RLX0305", f"`{param.name}` is no parameter of the function", span)
        self.buffer_map[param] = buffer
        return buffer

    def stride(self, value: Any, span: Span | None, *, own: bool = False) -> PrimExpr:
        """A stride; a string names a variable, new ones are int32; with `own` it always is a new one."""
        if isinstance(value, str):
            made = None if own else self.signature_vars.get(value)
            if made is None:
                made = self.signature_vars[value] = prim.Var(value, prim.INT32, span=span)
            return made
        return scalar(value, span)

    def flat_buffer(self, pointer: Any, of: DType, span: Span | None) -> tir.Buffer:
        """The buffer behind a pointer that is used with indices, as scripts up to TVM 0.11 do."""
        if isinstance(pointer, tir.Buffer):
            return pointer
        if not isinstance(pointer, prim.Var) or not pointer.dtype.is_handle:
            raise error("RLX0305", f"a buffer is expected, not {describe(pointer)}", span)
        made = self.flat_buffers.get(pointer)
        if made is None:
            shape = self.flat_shapes.get(pointer, (prim.const(0, "int32"),))
            element = pointer.pointer.element if pointer.pointer else of
            scope = pointer.pointer.scope if pointer.pointer else "global"
            made = self.flat_buffers[pointer] = tir.Buffer(
                pointer.name, shape, element, pointer, scope=scope, span=span
            )
        return made

    # --- evaluation ---------------------------------------------------------------------------------------------------
    def call_node(self, node: tree.Call, scope: Scope) -> Any:
        func = node.func
        if func.__class__ is not tree.Attribute:
            return super().call_node(node, scope)
        regions, tiles = func.attr in ("reads", "writes"), isinstance(func.value, tree.Name) and func.value.id == "Tx"
        if not regions and not tiles:
            return super().call_node(node, scope)
        before = self.in_regions, self.in_tiles
        self.in_regions, self.in_tiles = before[0] or regions, before[1] or tiles
        try:
            return super().call_node(node, scope)
        finally:
            self.in_regions, self.in_tiles = before

    def construct(self, of: DType, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        made = fresh(of, args, kwargs, node)
        if made is not None:
            return made
        if len(args) == 1 and isinstance(args[0], tir.BufferRegion):
            args = [scalar(args[0], node.span)]
        return super().construct(of, args, kwargs, node)

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if isinstance(function, GlobalVar):
            return call_function(function, self._result_of(function), args, node.span)
        return super().call(function, args, kwargs, node)

    def _result_of(self, function: GlobalVar) -> DType | None:
        """What a kernel of the module returns, as its header says; it may stand further down."""
        declared = self.unit.functions.get(function.name)
        if declared is None or declared.node is None or declared.node.returns is None or not declared.is_prim:
            return None
        of = self.expr(declared.node.returns, self.here or Scope())
        return of if isinstance(of, DType) and of is not prim.VOID else None

    def item(self, value: Any, index: Any, span: Span | None) -> Any:
        if isinstance(value, prim.Call) and value.op in COORDINATES and isinstance(index, int):
            return part_of(value, index, span)
        if isinstance(value, prim.Var) and value.dtype.is_handle:
            if value.pointer is None and value not in self.flat_shapes:
                raise error("RLX0305", f"`{value.name}` is a handle: nothing says what it points to", span,
                            help="declare its buffer with `T.match_buffer`")  # fmt: skip
            value = self.flat_buffer(value, prim.FLOAT32, span)
        return super().item(value, index, span)

    def quoted(self, text: str, place: tree.Expr) -> Any:
        """The value of a dimension in a string."""
        return self.expr(quoted_tree(self.unit, text, _literal_in(place, text)), self.here or Scope())

    def attribute(self, value: Any, name: str, span: Span | None) -> Any:
        if isinstance(value, tir.Buffer) and name in METHODS:
            method = METHODS[name]
            return Builtin(name, lambda ev, args, kwargs, node: method(ev, node, value, args, kwargs))
        if isinstance(value, tir.Buffer) and name in VIEWS:
            return view_of(value, span).attribute(self, name, span)
        return super().attribute(value, name, span)

    def binary(self, op: str, a: Any, b: Any, span: Span | None) -> Any:
        if isinstance(a, (tir.BufferRegion, tir.IterVar)):
            a = scalar(a, span)
        if isinstance(b, (tir.BufferRegion, tir.IterVar)):
            b = scalar(b, span)
        return super().binary(op, a, b, span)

    def buffer_item(self, buffer: tir.Buffer, index: tuple[Any, ...], span: Span | None) -> Any:
        if is_view(buffer.layout):
            sliced = any(isinstance(at, slice) for at in index)
            whole = view_of(buffer, span).item(self, index, span) if sliced else None
            return whole or prim.BufferLoad(buffer, tuple(scalar(at, span) for at in index), span=span)
        if len(index) != len(buffer.shape):
            if self.in_tiles and len(index) < len(buffer.shape):
                return view_of(buffer, span).item(self, index, span)
            raise wrong_count(buffer, len(index), span)
        indices: list[PrimExpr] = []
        for at, extent in zip(index, buffer.shape):
            if at.__class__ is slice:
                return self.region(buffer, index, span)
            if not isinstance(at, PrimExpr):
                at = scalar(at, span)
            if isinstance(at, prim.IntImm):
                if not self.in_regions:
                    check_index(self.unit, buffer, at.value, extent, span)
            elif not (at.dtype.is_integer or at.dtype.is_bool):
                raise error("RLX0302", f"an index of `{buffer.name}` must be an integer, not `{at.dtype}`", span)
            indices.append(at)
        if buffer.dtype.is_handle and indices and indices[-1].dtype.lanes != 1:
            raise error("RLX0303", f"`{buffer.name}` holds pointers, of which there are no vectors", span)
        return prim.BufferLoad(buffer, tuple(indices), span=span)

    def region(self, buffer: tir.Buffer, index: tuple[Any, ...], span: Span | None) -> Any:
        """`A[i, 0:16]`; a slice with a step is a vector at once."""
        whole = []
        for at, extent in zip(index, buffer.shape):
            if isinstance(at, slice):
                low = prim.const(0, extent.dtype) if at.start is None else at.start
                at = slice(low, extent if at.stop is None else at.stop, at.step)
            whole.append(at)
        if not any(isinstance(at, slice) and at.step is not None for at in whole):
            return tir.BufferRegion(buffer, tuple(range_of(at, span) for at in whole), span=span)
        indices: list[PrimExpr] = []
        for at in whole:
            if isinstance(at, slice):
                low, step = prim.match(at.start, 1 if at.step is None else at.step)
                dom = range_of(slice(at.start, at.stop), span)
                if not isinstance(dom.extent, prim.IntImm) or not isinstance(step, prim.IntImm):
                    raise error("RLX0303", "a slice with a step needs a length known while compiling", span)
                indices.append(prim.Ramp(low, step, -(-dom.extent.value // step.value), span=span))
            else:
                indices.append(scalar(at, span))
        return prim.BufferLoad(buffer, tuple(indices), span=span)

    # --- statements ---------------------------------------------------------------------------------------------------
    def body(self, stmts: tuple[tree.Stmt, ...], scope: Scope) -> tir.Stmt:
        """A body of its own: its statements as one."""
        before, self.items = self.items, []
        try:
            self.run(stmts, scope)
            return close(self.items)
        finally:
            self.items = before

    def run(self, stmts: tuple[tree.Stmt, ...], scope: Scope) -> None:
        """Elaborate statements into the current body. A faulty one is reported and left out."""
        for at, stmt in enumerate(stmts):
            self.here, self.following = scope, (stmts, at)
            try:
                STATEMENTS[stmt.__class__](self, stmt, scope)
            except DiagnosticError as fault:
                self.unit.report(fault)
                if isinstance(stmt, tree.Assign):
                    poison(stmt.targets, scope)
                elif isinstance(stmt, tree.AnnAssign):
                    poison((stmt.target,), scope)

    def bind(self, target: tree.Expr, value: Any, scope: Scope, at: Span | None = None) -> None:
        """`target = value`: declarations get their name, scalars become lets, other values are compile-time. The value
        stands at `at`."""
        if isinstance(target, tree.Subscript):
            self.store(target, value, scope, at)
        elif isinstance(target, tree.Name) and not isinstance(value, Pending) and self.is_variable(target.id, scope):
            self.store(target, value, scope, at)
        elif isinstance(target, tree.Name) and self.is_one_element(target.id, value, scope):
            self.store(tree.Subscript(target, tree.Constant(0, "0"), span=target.span), value, scope, at)
        elif isinstance(target, tree.Name):
            if isinstance(value, Pending) and value.kind in ("buffer", "axis") and target.id in scope.names:
                raise error("RLX0324", f"`{target.id}` is defined already in this scope", target.span)
            of = self.variable_type(target.id, value, at)
            if of is not None:
                scope.names[target.id] = scalar_variable(self, target.id, of, target.span)
                self.store(target, value, scope, at)
            else:
                scope.names[target.id] = self.named(target.id, value, target.span)
        elif isinstance(target, (tree.TupleExpr, tree.ListExpr)) and not any(
            isinstance(t, tree.Starred) for t in target.elements
        ):
            if isinstance(value, prim.Call) and value.op in COORDINATES:
                count = len(target.elements)
                value = [value if count == 1 else part_of(value, k, target.span) for k in range(count)]
            values = self.iterate(value, target.span)
            if len(values) != len(target.elements):
                raise error("RLX0127", f"{len(target.elements)} names for {len(values)} values", target.span)
            for part, element in zip(target.elements, values):
                self.bind(part, element, scope, at)
        else:
            assign(self, target, value, scope)

    def named(self, name: str, value: Any, span: Span | None) -> Any:
        """What `name = value` makes `name` mean."""
        if isinstance(value, Pending):
            return value.declare(self, name, span)
        if isinstance(value, Fresh):
            known = self.signature_vars.pop(name, None)
            return value.make(name, span) if known is None else known
        if isinstance(value, (PrimExpr, bool, int, float, tir.BufferRegion)) and not isinstance(value, prim.StringImm):
            return let_of(scalar(value, span), None, span).declare(self, name, span)
        return value.value if isinstance(value, Meta) else value

    def variable_type(self, name: str, value: Any, at: Span | None = None) -> DType | None:
        """The type of the variable that `name = value` makes; None when it makes none: the name is not bound again, or
        no number is bound to it."""
        if not isinstance(value, (PrimExpr, bool, int, float)) or isinstance(value, prim.StringImm):
            return None
        if isinstance(value, prim.Call) and value.op in (*COORDINATES, "carried.item"):
            return None
        stmts, place = self.following
        if id(stmts) not in self.assigned:
            self.assigned[id(stmts)] = last_assignments(stmts)
        of = scalar(value, at).dtype
        changes = self.assigned[id(stmts)].get(name, 0) > place
        return of if changes and of.lanes == 1 and not of.is_handle and of is not prim.VOID else None

    def is_variable(self, name: str, scope: Scope) -> bool:
        """Whether a name stands for a variable, which `name = value` changes."""
        place = scope.find(name) if self.variables else None
        known = place.names[name] if place is not None else None
        return isinstance(known, prim.BufferLoad) and known.buffer in self.variables

    def is_one_element(self, name: str, value: Any, scope: Scope) -> bool:
        """Whether a number is assigned to the name of memory of one element, which TVM 0.27 stores there."""
        place = scope.find(name) if isinstance(value, (PrimExpr, bool, int, float)) else None
        known = place.names[name] if place is not None else None
        return isinstance(known, tir.Buffer) and known.shape == (prim.const(1, prim.INT32),)

    def store(self, target: tree.Expr, value: Any, scope: Scope, at: Span | None = None) -> None:
        """`A[i, j] = value`; the value stands at `at`."""
        place = self.expr(target, scope)
        if isinstance(place, tir.BufferRegion):
            buffer, indices = place.buffer, vector_indices(place, target.span)
        elif isinstance(place, prim.BufferLoad):
            buffer, indices = place.buffer, place.indices
        else:
            raise error("RLX0305", f"only buffers can be stored to, not {describe(place)}", target.span)
        of = prim._load_type(buffer.dtype, indices)
        stored = self.as_stored(scalar(value, at or target.span, of.scalar), of, buffer, target.span)
        self.items.append(tir.BufferStore(buffer, stored, indices, span=target.span))

    def as_stored(self, value: PrimExpr, of: DType, buffer: tir.Buffer, span: Span | None) -> PrimExpr:
        """The value in the buffer's type. Conversions that keep numbers what they are happen by themselves; from floats
        to integers with a warning, as numpy does for the elements of an array, and not for a variable."""
        if value.dtype is of or is_carried(value):
            return value
        if value.dtype.lanes != of.lanes:
            if value.dtype.lanes != 1:
                lanes = value.dtype.lanes
                raise error("RLX0314", f"a vector of {lanes} is stored to {of.lanes} elements of `{buffer.name}`", span)
            value = prim.Broadcast(value, of.lanes)
        given, wanted = value.dtype.scalar, of.scalar
        if given is wanted:
            return value
        truncates = given.is_float and not wanted.is_float
        if given.is_handle or wanted.is_handle or truncates:
            fatal = not truncates or wanted.is_handle or buffer in self.variables
            found = Diagnostic(
                "RLX0314", f"a `{given}` value is stored to `{buffer.name}`, which holds `{wanted}`", span,
                level="error" if fatal else "warning", label=f"`{given}` here",
                help=f'convert it: `T.Cast("{wanted}", …)`',
            )  # fmt: skip
            if fatal:
                raise DiagnosticError([found])
            self.unit.complain(found)
        if isinstance(value, prim.FloatImm) and of.is_float:
            return prim.FloatImm(of, value.value, span=span)
        return prim.cast(value, of)


def _literal_in(node: tree.Expr, text: str) -> tree.Expr:
    """The string literal `text` among the dimensions of `T.Buffer(…)`, or the call itself."""
    first = node.args[0] if isinstance(node, tree.Call) and node.args else node
    parts = first.elements if isinstance(first, (tree.TupleExpr, tree.ListExpr)) else ()
    return next((p for p in parts if isinstance(p, tree.Constant) and p.value == text), node)


def check_index(unit: Unit, buffer: tir.Buffer, at: int, extent: PrimExpr, span: Span | None) -> None:
    """A constant index should lie inside the buffer."""
    if isinstance(extent, prim.IntImm) and not 0 <= at < extent.value and not buffer.strides and extent.value > 0:
        what = f"index {at} is out of range for `{buffer.name}`, whose dimension here is {extent.value}"
        help = "indices count from 0; negative ones do not count from the end"
        unit.complain(Diagnostic("RLX0313", what, span, level="warning", help=help))
