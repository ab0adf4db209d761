"""The statements of a TensorIR function: from the surface tree to `ir.tir`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.relax import GlobalVar
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import POISON, Builtin, Evaluator, Scope, Value, assign, describe, error, silent
from relaxlang.syntax.elaborate.buffers import range_of
from relaxlang.syntax.elaborate.scalars import Fresh, call_function, scalar, vector_indices
from relaxlang.syntax.elaborate.tir_names import METHODS, Meta, fresh, let_of, loop_over
from relaxlang.syntax.elaborate.tir_values import (
    NOTHING,
    TRUE,
    BlockHead,
    BlockState,
    InitHead,
    Item,
    Loop,
    Pending,
    Wrapper,
    close,
)
from relaxlang.syntax.elaborate.unit import Unit, poison


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
        self.loop_depth = 0
        self.in_regions = False
        self.macro_depth = 0
        self.here: Scope | None = None

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
        if param in self.buffer_map:
            raise error("RLX0305", f"`{param.name}` has a buffer already", span)
        self.buffer_map[param] = buffer
        return buffer

    def stride(self, value: Any, span: Span | None) -> PrimExpr:
        """A stride; a string names a variable, new ones are int32."""
        if isinstance(value, str):
            made = self.signature_vars.get(value)
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
            made = self.flat_buffers[pointer] = tir.Buffer(pointer.name, shape, element, pointer, scope=scope, span=span)
        return made

    # --- evaluation ---------------------------------------------------------------------------------------------------
    def call_node(self, node: tree.Call, scope: Scope) -> Any:
        func = node.func
        if func.__class__ is not tree.Attribute or func.attr not in ("reads", "writes"):  # type: ignore[attr-defined]
            return super().call_node(node, scope)
        before, self.in_regions = self.in_regions, True
        try:
            return super().call_node(node, scope)
        finally:
            self.in_regions = before

    def construct(self, of: DType, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        made = fresh(of, args, kwargs, node)
        if made is not None:
            return made
        if len(args) == 1 and isinstance(args[0], tir.BufferRegion):
            args = [scalar(args[0], node.span)]
        return super().construct(of, args, kwargs, node)

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if isinstance(function, GlobalVar):
            declared = self.unit.functions.get(function.name)
            made = declared.function if declared is not None else None
            result = made.ret_type if isinstance(made, tir.PrimFunc) else None
            return call_function(function, result, args, node.span)
        return super().call(function, args, kwargs, node)

    def item(self, value: Any, index: Any, span: Span | None) -> Any:
        if isinstance(value, prim.Var) and value.dtype.is_handle:
            if value.pointer is None and value not in self.flat_shapes:
                raise error("RLX0305", f"`{value.name}` is a handle: nothing says what it points to", span,
                            help="declare its buffer with `T.match_buffer`")  # fmt: skip
            value = self.flat_buffer(value, prim.FLOAT32, span)
        return super().item(value, index, span)

    def attribute(self, value: Any, name: str, span: Span | None) -> Any:
        if isinstance(value, tir.Buffer) and name in METHODS:
            method = METHODS[name]
            return Builtin(name, lambda ev, args, kwargs, node: method(ev, node, value, args, kwargs))
        return super().attribute(value, name, span)

    def binary(self, op: str, a: Any, b: Any, span: Span | None) -> Any:
        if isinstance(a, (tir.BufferRegion, tir.IterVar)):
            a = scalar(a, span)
        if isinstance(b, (tir.BufferRegion, tir.IterVar)):
            b = scalar(b, span)
        return super().binary(op, a, b, span)

    def buffer_item(self, buffer: tir.Buffer, index: tuple[Any, ...], span: Span | None) -> Any:
        if len(index) != len(buffer.shape):
            raise _wrong_count(buffer, len(index), span)
        indices: list[PrimExpr] = []
        for at, extent in zip(index, buffer.shape):
            if at.__class__ is slice:
                return self.region(buffer, index, span)
            if not isinstance(at, PrimExpr):
                at = scalar(at, span)
            if isinstance(at, prim.IntImm):
                if not self.in_regions:
                    check_index(buffer, at.value, extent, span)
            elif not (at.dtype.is_integer or at.dtype.is_bool):
                raise error("RLX0302", f"an index of `{buffer.name}` must be an integer, not `{at.dtype}`", span)
            indices.append(at)
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
        for stmt in stmts:
            self.here = scope
            try:
                STATEMENTS[stmt.__class__](self, stmt, scope)
            except DiagnosticError as fault:
                self.unit.report(fault)
                if isinstance(stmt, tree.Assign):
                    poison(stmt.targets, scope)
                elif isinstance(stmt, tree.AnnAssign):
                    poison((stmt.target,), scope)

    def bind(self, target: tree.Expr, value: Any, scope: Scope) -> None:
        """`target = value`: declarations get their name, scalars become lets, other values are compile-time."""
        if isinstance(target, tree.Subscript):
            self.store(target, value, scope)
        elif isinstance(target, tree.Name):
            if isinstance(value, Pending) and value.kind in ("buffer", "axis") and target.id in scope.names:
                raise error("RLX0324", f"`{target.id}` is defined already in this scope", target.span)
            scope.names[target.id] = self.named(target.id, value, target.span)
        elif isinstance(target, (tree.TupleExpr, tree.ListExpr)) and not any(isinstance(t, tree.Starred) for t in target.elements):
            values = self.iterate(value, target.span)
            if len(values) != len(target.elements):
                raise error("RLX0127", f"{len(target.elements)} names for {len(values)} values", target.span)
            for part, element in zip(target.elements, values):
                self.bind(part, element, scope)
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

    def store(self, target: tree.Subscript, value: Any, scope: Scope) -> None:
        """`A[i, j] = value`."""
        place = self.expr(target, scope)
        if isinstance(place, tir.BufferRegion):
            buffer, indices = place.buffer, vector_indices(place, target.span)
        elif isinstance(place, prim.BufferLoad):
            buffer, indices = place.buffer, place.indices
        else:
            raise error("RLX0305", f"only buffers can be stored to, not {describe(place)}", target.span)
        of = prim._load_type(buffer.dtype, indices)
        stored = _as_stored(scalar(value, target.span, of.scalar), of, buffer, target.span)
        self.items.append(tir.BufferStore(buffer, stored, indices, span=target.span))


def _wrong_count(buffer: tir.Buffer, given: int, span: Span | None) -> DiagnosticError:
    return error("RLX0301", f"`{buffer.name}` has {buffer.ndim} dimensions, {given} indices were given", span)


def check_index(buffer: tir.Buffer, at: int, extent: PrimExpr, span: Span | None) -> None:
    """A constant index must lie inside the buffer."""
    if isinstance(extent, prim.IntImm) and not 0 <= at < extent.value and not buffer.strides and extent.value > 0:
        raise error("RLX0313", f"index {at} is out of range for `{buffer.name}`, whose dimension here is {extent.value}", span,
                    help="indices count from 0; negative ones do not count from the end")  # fmt: skip


def _as_stored(value: PrimExpr, of: DType, buffer: tir.Buffer, span: Span | None) -> PrimExpr:
    """The value in the buffer's type. Conversions that keep numbers what they are happen by themselves."""
    if value.dtype is of:
        return value
    if value.dtype.lanes != of.lanes:
        if value.dtype.lanes != 1:
            raise error("RLX0314", f"a vector of {value.dtype.lanes} is stored to {of.lanes} elements of `{buffer.name}`", span)
        value = prim.Broadcast(value, of.lanes)
    given, wanted = value.dtype.scalar, of.scalar
    if given is wanted:
        return value
    if given.is_handle or wanted.is_handle or (given.is_float and not wanted.is_float):
        raise error("RLX0314", f"a `{given}` value is stored to `{buffer.name}`, which holds `{wanted}`", span,
                    label=f"`{given}` here", help=f'convert it: `T.Cast("{wanted}", …)`')  # fmt: skip
    return prim.cast(value, of)


# --- one function per statement ---------------------------------------------------------------------------------------
def _expr_stmt(ev: BodyElaborator, node: tree.ExprStmt, scope: Scope) -> None:
    if isinstance(node.value, tree.Constant):
        if isinstance(node.value.value, str) or node.value.value is ...:
            return
    value = ev.expr(node.value, scope)
    if value is None:
        return
    if isinstance(value, tir.Stmt):
        ev.items.append(value)
    elif isinstance(value, Pending):
        value.declare(ev, "v", node.span)
    elif isinstance(value, PrimExpr):
        ev.items.append(tir.Evaluate(value, span=node.span))
    else:
        raise error("RLX0315", f"{describe(value)} alone is no statement", node.span)


def _assign(ev: BodyElaborator, node: tree.Assign, scope: Scope) -> None:
    value = ev.expr(node.value, scope)
    for target in node.targets:
        ev.bind(target, value, scope)


def _ann_assign(ev: BodyElaborator, node: tree.AnnAssign, scope: Scope) -> None:
    of = ev.expr(node.annotation, scope)
    if isinstance(of, Fresh):
        pointer: prim.PointerType | None = of.pointer
        of = of.of
    else:
        pointer = None
    if node.value is None or not isinstance(node.target, tree.Name):
        raise error("RLX0315", "a declaration needs a name and a value", node.span)
    value = ev.expr(node.value, scope)
    if isinstance(value, (Pending, Fresh)) or not isinstance(of, DType):
        ev.bind(node.target, value, scope)
        return
    name, made = node.target.id, scalar(value, node.value.span, of if not of.is_handle else None)
    var = prim.Var(name, of, pointer, span=node.target.span)
    scope.names[name] = let_of(made, of, node.span, var).declare(ev, name, node.target.span)


def _aug_assign(ev: BodyElaborator, node: tree.AugAssign, scope: Scope) -> None:
    if not isinstance(node.target, tree.Subscript):
        raise error("RLX0316", "a scalar variable cannot be changed", node.span, help="store to a buffer, or bind a new name")
    place = ev.expr(node.target, scope)
    ev.store(node.target, ev.binary(node.op, scalar(place, node.span), ev.expr(node.value, scope), node.span), scope)


def _if(ev: BodyElaborator, node: tree.If, scope: Scope) -> None:
    condition = ev.expr(node.test, scope)
    if isinstance(condition, (bool, int, str, type(None), list, tuple, dict)):
        ev.run(node.body if ev.truth(condition, node.test.span) else node.orelse, scope)
        return
    test = scalar(condition, node.test.span)
    then = ev.body(node.body, Scope({}, scope))
    orelse = ev.body(node.orelse, Scope({}, scope)) if node.orelse else None
    ev.items.append(tir.IfThenElse(test, then, orelse, span=node.span))


def _while(ev: BodyElaborator, node: tree.While, scope: Scope) -> None:
    condition = scalar(ev.expr(node.test, scope), node.test.span, prim.BOOL)
    ev.loop_depth += 1
    try:
        body = ev.body(node.body, Scope({}, scope))
    finally:
        ev.loop_depth -= 1
    ev.items.append(tir.While(condition, body, span=node.span))


def _loop_of(ev: BodyElaborator, node: tree.Expr, scope: Scope) -> Any:
    """The value of a `for`'s iterable; `range` with run-time bounds is a serial loop here."""
    if isinstance(node, tree.Call) and isinstance(node.func, tree.Name) and node.func.id == "range" and scope.find("range") is None:
        return loop_over("serial", tuple(ev.expr(a, scope) for a in node.args), node)
    return ev.expr(node, scope)


def _for(ev: BodyElaborator, node: tree.For, scope: Scope) -> None:
    inner = Scope({}, scope)
    try:
        loop = _loop_of(ev, node.iterable, scope)
    except DiagnosticError as fault:
        ev.unit.report(fault)
        poison((node.target,), inner)
        ev.body(node.body, inner)
        raise silent() from None
    if not isinstance(loop, Loop):
        for value in ev.iterate(loop, node.iterable.span):
            once = Scope({}, scope)
            assign(ev, node.target, value, once)
            ev.run(node.body, once)
        return
    made = _loop_vars(ev, node.target, loop.domains, inner)
    ev.loop_depth += 1
    try:
        body = ev.body(node.body, inner)
    finally:
        ev.loop_depth -= 1
    for var, dom in zip(reversed(made), reversed(loop.domains)):
        body = _one_loop(loop, var, dom, body, node.span)
    ev.items.append(body)


def _loop_vars(ev: BodyElaborator, target: tree.Expr, domains: list[tir.Range], scope: Scope) -> list[prim.Var]:
    """A variable for each loop, bound in `scope`; one starred name takes the loops that the others leave, as a tuple."""
    targets = list(target.elements) if isinstance(target, (tree.TupleExpr, tree.ListExpr)) else [target]
    star = next((k for k, t in enumerate(targets) if isinstance(t, tree.Starred)), None)
    rest = len(domains) - len(targets) + 1
    if (star is None and rest != 1) or rest < 0:
        raise error("RLX0127", f"{len(targets)} loop variables for {len(domains)} loops", target.span)
    made: list[prim.Var] = []
    for k, part in enumerate(targets):
        name = part.value if isinstance(part, tree.Starred) and k == star else part
        if not isinstance(name, tree.Name):
            raise error("RLX0126", "a loop variable is a name", part.span)
        hints = [name.id] if name is part else [f"{name.id}{n}" for n in range(rest)]
        new = [prim.Var(h, d.extent.dtype, span=part.span) for h, d in zip(hints, domains[len(made) :])]
        ev.loop_domains.update(zip(new, domains[len(made) :]))
        scope.names[name.id] = new[0] if name is part else tuple(new)
        made += new
    return made


def _one_loop(loop: Loop, var: prim.Var, dom: tir.Range, body: tir.Stmt, span: Span | None) -> tir.For:
    binding = None
    if loop.thread is not None:
        binding = tir.IterVar(prim.Var(loop.thread, var.dtype), dom, "thread", loop.thread)
    made: tir.For = tir.For(var, dom.min, dom.extent, loop.of, body, loop.annotations, binding, span=span)
    return made if loop.step is None else made.replace(step=loop.step)


def _with(ev: BodyElaborator, node: tree.With, scope: Scope) -> None:
    _with_item(ev, node, 0, Scope({}, scope))


def _with_item(ev: BodyElaborator, node: tree.With, at: int, scope: Scope) -> None:
    if at == len(node.items):
        ev.run(node.body, scope)
        return
    item = node.items[at]
    head = ev.expr(item.context, scope)
    before = ev.items
    if isinstance(head, BlockHead):
        _block(ev, head, node, at, scope)
        return
    ev.items = []
    try:
        if isinstance(head, Pending):
            name = item.target.id if isinstance(item.target, tree.Name) else "v"
            value = head.declare(ev, name, item.target.span if item.target else item.context.span)
            if isinstance(item.target, tree.Name):
                scope.names[name] = value
        elif not isinstance(head, InitHead):
            raise error("RLX0317", f"`with` does not take {describe(head)}", item.context.span)
        _with_item(ev, node, at + 1, scope)
        stmt = close(ev.items)
    finally:
        ev.items = before
    if isinstance(head, InitHead):
        block = ev.open_block(node.span)
        if block.init is not None:
            raise error("RLX0318", "the block has an init already", node.span)
        block.init = stmt
    else:
        ev.items.append(stmt)


def _block(ev: BodyElaborator, head: BlockHead, node: tree.With, at: int, scope: Scope) -> None:
    outer, before = ev.block, ev.items
    ev.block, ev.items, ev.has_block = BlockState(head.name, realized=not head.no_realize), [], True
    block, target = ev.block, node.items[at].target
    try:
        targets = target.elements if isinstance(target, (tree.TupleExpr, tree.ListExpr)) else (target,) if target else ()
        if head.domains and len(targets) != len(head.domains):
            raise error("RLX0127", f"{len(targets)} names for {len(head.domains)} axes", node.span)
        for name, (kind, dom) in zip(targets, head.domains):
            if isinstance(name, tree.Name):
                scope.names[name.id] = ev.add_axis(name.id, dom.extent.dtype, dom, kind, None, name.span)
        _with_item(ev, node, at + 1, scope)
        made = block.block(close(ev.items), node.span)
    finally:
        ev.block, ev.items = outer, before
    ev.items.append(made if head.no_realize else _realize(block, made, node.span))


def _realize(block: BlockState, made: tir.Block, span: Span | None) -> tir.Stmt:
    """The block at its axes' values; axes without one run over loops made here."""
    loops: list[tuple[prim.Var, tir.Range]] = []
    values: list[PrimExpr] = []
    for iter_var, value in zip(block.iter_vars, block.iter_values):
        if value is None:
            value = prim.Var(f"i{len(values)}", iter_var.var.dtype)
            loops.append((value, iter_var.dom))
        values.append(value)
    stmt: tir.Stmt = tir.BlockRealize(tuple(values), TRUE if block.predicate is None else block.predicate, made, span=span)
    for var, dom in reversed(loops):
        stmt = tir.For(var, dom.min, dom.extent, "serial", stmt, span=span)
    return stmt


def _assert(ev: BodyElaborator, node: tree.Assert, scope: Scope) -> None:
    condition = scalar(ev.expr(node.test, scope), node.test.span, prim.BOOL)
    message = "" if node.message is None else ev.expr(node.message, scope)
    if isinstance(message, (tuple, list)):
        message = " ".join(str(m) for m in message)
    ev.wrap(lambda rest: tir.AssertStmt(condition, str(message), rest, span=node.span))


def _return(ev: BodyElaborator, node: tree.Return, scope: Scope) -> None:
    if node.value is None:
        return
    value = ev.expr(node.value, scope)
    if value is not None:
        ev.items.append(tir.Evaluate(prim.Call(prim.INT32, "ret", (scalar(value, node.span),), span=node.span), span=node.span))


def _leave(kind: type[tir.Stmt], word: str) -> Callable[[BodyElaborator, tree.Stmt, Scope], None]:
    def make(ev: BodyElaborator, node: tree.Stmt, scope: Scope) -> None:
        if ev.loop_depth == 0:
            raise error("RLX0319", f"`{word}` stands only inside a loop", node.span)
        ev.items.append(kind(span=node.span))

    return make


def _function(ev: BodyElaborator, node: tree.FunctionDef, scope: Scope) -> None:
    """A definition inside a function is a macro, which sees what is around it."""
    from relaxlang.syntax.elaborate.macros import define_macro

    scope.names[node.name] = define_macro(ev, node, scope)


def _refuse(ev: BodyElaborator, node: tree.Stmt, scope: Scope) -> None:
    raise error("RLX0320", "this statement has no place in a TensorIR function", node.span)


def _nothing(ev: BodyElaborator, node: tree.Stmt, scope: Scope) -> None:
    """`pass` and import lines say nothing."""


STATEMENTS: dict[type, Callable[[BodyElaborator, Any, Scope], None]] = {
    tree.ExprStmt: _expr_stmt, tree.Assign: _assign, tree.AnnAssign: _ann_assign, tree.AugAssign: _aug_assign,
    tree.If: _if, tree.While: _while, tree.For: _for, tree.With: _with, tree.Assert: _assert, tree.Return: _return,
    tree.Break: _leave(tir.Break, "break"), tree.Continue: _leave(tir.Continue, "continue"), tree.Pass: _nothing,
    tree.Import: _nothing, tree.FunctionDef: _function, tree.ClassDef: _refuse,
}  # fmt: skip

__all__ = ["NOTHING", "POISON", "BodyElaborator", "Value"]
