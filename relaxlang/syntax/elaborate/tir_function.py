"""TensorIR functions: parameters, body, the implicit root block."""

from __future__ import annotations

from typing import Any

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import DType
from relaxlang.ir import prim, tir
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.tir import SCHEDULABLE, is_schedulable
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import POISON, Scope, describe, error, silent
from relaxlang.syntax.elaborate.buffers import BufferMaker, BufferSpec
from relaxlang.syntax.elaborate.dims import declarations, define_dimensions
from relaxlang.syntax.elaborate.places import head
from relaxlang.syntax.elaborate.scalars import Fresh
from relaxlang.syntax.elaborate.tir_body import BodyElaborator
from relaxlang.syntax.elaborate.tir_values import TRUE, Pending
from relaxlang.syntax.elaborate.unit import Unit


def elaborate_prim_func(
    unit: Unit, node: tree.FunctionDef, scope: Scope, options: dict[str, Any], name: str
) -> tir.PrimFunc:
    """The PrimFunc of a `@T.prim_func` definition. Raises a silent DiagnosticError when any part of it was faulty."""
    before = len(unit.diagnostics.items)
    ev, inner = BodyElaborator(unit), Scope({}, scope)
    # Only TVM 0.26 and later write these; and where there are no blocks, memory is allocated by a statement.
    ev.allocates_here = SCHEDULABLE in options or _is_gpu_kernel(node) or not _has_block(node.body)
    for name in node.type_params:
        ev.signature_vars[name] = inner.names[name] = prim.Var(name, prim.INT64, span=head(node))
    ev.here = inner
    _parameters(ev, node, inner)
    body = ev.body(node.body, inner)
    if (ev.has_block or ev.root.alloc_buffers) and not _is_root(ev, body):
        root = tir.Block((), (), (), "root", body, None, tuple(ev.root.alloc_buffers), span=head(node))
        body = tir.BlockRealize((), TRUE, root, span=head(node))
    if len(unit.diagnostics.items) != before and unit.diagnostics.has_errors():
        raise silent()
    attrs = dict(ev.attrs)
    asked = ev.truth(options.get(SCHEDULABLE, attrs.get(SCHEDULABLE, False)), node.span)
    if asked and not is_schedulable(body, ev.buffer_map.values()):
        attrs[SCHEDULABLE] = True
    else:
        attrs.pop(SCHEDULABLE, None)
    if not ev.truth(options.get("private", False), node.span) and "global_symbol" not in attrs:
        attrs = {"global_symbol": name, **attrs}
    return tir.PrimFunc(ev.params, body, ev.buffer_map, _result(ev, node, inner), Attrs(attrs), span=head(node))


def _is_gpu_kernel(node: tree.FunctionDef) -> bool:
    """Whether a function says `T.device_entry()`."""
    calls = [s.value.func for s in node.body if isinstance(s, tree.ExprStmt) and isinstance(s.value, tree.Call)]
    return any(isinstance(func, tree.Attribute) and func.attr == "device_entry" for func in calls)


def _has_block(body: tuple[tree.Stmt, ...]) -> bool:
    """Whether there is a `with T.block(…)` among statements, or a macro that may have one."""
    stack = list(body)
    while stack:
        one = stack.pop()
        if isinstance(one, tree.With):
            calls = [item.context.func for item in one.items if isinstance(item.context, tree.Call)]
            if any(isinstance(func, tree.Attribute) and func.attr in ("block", "sblock") for func in calls):
                return True
        if isinstance(one, (tree.With, tree.For, tree.While, tree.FunctionDef)):
            stack += one.body
        elif isinstance(one, tree.If):
            stack += [*one.body, *one.orelse]
        elif (
            isinstance(one, tree.ExprStmt)
            and isinstance(one.value, tree.Call)
            and isinstance(one.value.func, tree.Name)
        ):
            return True
    return False


def _is_root(ev: BodyElaborator, body: tir.Stmt) -> bool:
    """Whether the body is a root block that was written out."""
    return isinstance(body, tir.BlockRealize) and not body.block.iter_vars and not ev.root.alloc_buffers


def _result(ev: BodyElaborator, node: tree.FunctionDef, scope: Scope) -> DType | None:
    if node.returns is None:
        return None
    of = ev.expr(node.returns, scope)
    if of is None:
        return None
    if not isinstance(of, DType):
        raise error(
            "RLX0222", f"the result of a TensorIR function is a scalar or None, not {describe(of)}", node.returns.span
        )
    return None if of.kind == "void" else of


def _parameters(ev: BodyElaborator, node: tree.FunctionDef, scope: Scope) -> None:
    """The parameters: scalars first, as dimensions of buffers may name them, whatever their order."""
    for param in node.params:
        if param.default is not None:
            raise error("RLX0141", "a parameter of a TensorIR function has no default", param.default.span,
                        help="every argument is passed by the caller")  # fmt: skip
        if param.annotation is None:
            raise error(
                "RLX0141",
                f"the parameter `{param.name}` needs a type",
                param.span,
                help='write `A: T.Buffer((16,), "float32")`',
            )
    made: dict[str, prim.Var] = {}
    buffers: list[tree.Parameter] = []
    for param in node.params:
        assert param.annotation is not None
        if _is_buffer(param.annotation):
            buffers.append(param)
        else:
            made[param.name] = scope.names[param.name] = _scalar_parameter(ev, param, scope)
    ev.signature_vars.update(define_dimensions([p.annotation for p in buffers], declarations(node.body), scope))
    for param in buffers:
        assert param.annotation is not None
        try:
            of = ev.expr(param.annotation, scope)
            if not isinstance(of, Pending):
                raise error("RLX0222", f"{describe(of)} is no type of a parameter", param.annotation.span)
            spec = getattr(of, "spec", None)
            if isinstance(spec, BufferSpec):
                spec.matches = True
            buffer = of.declare(ev, param.name, param.span)
        except DiagnosticError as fault:
            ev.unit.report(fault)
            scope.names[param.name] = POISON
            continue
        scope.names[param.name] = buffer
        var = made[param.name] = prim.Var(f"{param.name}_handle", prim.HANDLE, span=param.span)
        ev.buffer_map[var] = buffer
    ev.params = tuple(made[p.name] for p in node.params if p.name in made)


def _is_buffer(annotation: tree.Expr) -> bool:
    head = (
        annotation.func
        if isinstance(annotation, tree.Call)
        else annotation.value
        if isinstance(annotation, tree.Subscript)
        else None
    )
    name = head.attr if isinstance(head, tree.Attribute) else head.id if isinstance(head, tree.Name) else ""
    return name in ("Buffer", "buffer", "match_buffer")


def _scalar_parameter(ev: BodyElaborator, param: tree.Parameter, scope: Scope) -> prim.Var:
    assert param.annotation is not None
    of = ev.expr(param.annotation, scope)
    if isinstance(of, Fresh):
        return of.make(param.name, param.span)
    if isinstance(of, BufferMaker):
        raise error(
            "RLX0222",
            "a buffer parameter needs its shape",
            param.annotation.span,
            help='write `T.Buffer((n,), "float32")`',
        )
    if not isinstance(of, DType):
        raise error("RLX0222", f"{describe(of)} is no type of a parameter", param.annotation.span)
    made: prim.Var = prim.Var(param.name, of, span=param.span)
    return made
