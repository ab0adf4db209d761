"""Relax functions: parameters, statements, result."""

from __future__ import annotations

from typing import Any

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.source import Span
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    StructInfo,
)
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import POISON, Scope, error, silent
from relaxlang.syntax.elaborate.annotations import ANNOTATIONS, struct_info
from relaxlang.syntax.elaborate.dims import declarations, define_dimensions
from relaxlang.syntax.elaborate.places import head
from relaxlang.syntax.elaborate.relax_body import RelaxElaborator
from relaxlang.syntax.elaborate.relax_statements import Body
from relaxlang.syntax.elaborate.unit import Unit
from relaxlang.syntax.struct_info import bound_vars, erase


class FunctionElaborator:
    """One Relax function: first its header, when somebody asks for it, then its body, once."""

    def __init__(
        self,
        unit: Unit,
        node: tree.FunctionDef,
        scope: Scope,
        options: dict[str, Any],
        name: str | None,
        inside: set[prim.Var] | None = None,
    ) -> None:
        self.unit = unit
        self.node = node
        self.options = options
        self.name = name
        self.outer = scope
        self.inside = inside or set()
        self.ev = RelaxElaborator(unit)
        self.params: tuple[relax.Var, ...] | None = None
        self.declared: StructInfo | None = None
        self.faulty = False
        self.returned: Span | None = None

    def option(self, name: str, default: bool) -> bool:
        """An option of the decorator: `@R.function(pure=False)`."""
        return self.ev.truth(self.options.get(name, default), head(self.node))

    def header(self) -> Scope:
        """Elaborate the parameters and the declared result, once; the scope of the body."""
        if self.params is not None:
            return self.ev.scope
        node, ev = self.node, self.ev
        ev.scope = Scope({}, self.outer)
        for name in node.type_params:
            ev.signature_vars[name] = ev.scope.names[name] = prim.Var(name, prim.INT64, span=head(node))
        annotations = [*(p.annotation for p in node.params), node.returns]
        ev.signature_vars.update(
            define_dimensions(annotations, declarations(node.body), ev.scope, alone=annotations[:-1])
        )
        params: list[relax.Var] = []
        self.params = ()
        values: dict[str, Any] = {}
        for param in node.params:
            try:
                params.append(self._parameter(param))
                values[param.name] = params[-1]
                ev.scope.names.setdefault(param.name, params[-1])  # for `R.Tensor(s, "float32")` of a later one
            except DiagnosticError as fault:
                self.unit.report(fault)
                values[param.name], self.faulty = POISON, True
        self.params = tuple(params)
        ev.scope.names.update(values)
        if node.returns is not None:
            try:
                value = ev.expr(node.returns, ev.scope)
                if value is not ANNOTATIONS["Tuple"]:  # `-> R.Tuple` leaves open what the tuple holds
                    self.declared = struct_info(value, node.returns.span)
            except DiagnosticError as fault:
                self.unit.report(fault)
                self.faulty = True
        return ev.scope

    def _parameter(self, param: tree.Parameter) -> relax.Var:
        if param.default is not None:
            raise error("RLX0141", "a parameter of a Relax function has no default", param.default.span,
                        help="every argument is passed at run time; bind a constant in the body instead")  # fmt: skip
        if param.kind:
            raise error("RLX0141", "a Relax function takes a fixed number of parameters", param.span)
        if param.annotation is None:
            raise error("RLX0141", f"the parameter `{param.name}` needs struct info", param.span,
                        help='write `x: R.Tensor((n, 4), "float32")`, or `x: R.Object`')  # fmt: skip
        info = struct_info(self.ev.expr(param.annotation, self.ev.scope), param.annotation.span)
        size = self.ev.signature_vars.get(param.name)
        if isinstance(info, PrimStructInfo) and info.value is None and size is not None and size.dtype is info.dtype:
            info = PrimStructInfo(info.dtype, size)  # `n: R.Prim("int64"), x: R.Tensor([n])`: one and the same number
        made: relax.Var = relax.Var(param.name, info, span=param.span)
        return made

    def signature(self) -> StructInfo | None:
        """The function's struct info, when the header states its result."""
        self.header()
        if self.faulty or self.declared is None or self.params is None:
            return None
        pure = self.option("pure", self.name not in self.unit.impure)
        return FuncStructInfo(tuple(p.struct_info for p in self.params), self.declared, pure)

    def run(self) -> relax.Function:
        """The function. Raises a silent DiagnosticError when any part was faulty."""
        before, unit = len(self.unit.diagnostics.items), self.unit
        scope = self.header()
        assert self.params is not None
        body = Body(self.ev, self).function_body(scope)
        if self.faulty or body is None or (len(unit.diagnostics.items) != before and unit.diagnostics.has_errors()):
            raise silent()
        attrs = dict(self.ev.attrs)
        if self.name is not None and self.option("private", False) and "global_symbol" in attrs:
            raise error("RLX0149", f"`{self.name}` is private and has a global symbol", head(self.node))
        if self.name is not None and not self.option("private", False) and "global_symbol" not in attrs:
            attrs = {"global_symbol": self.name, **attrs}
        result = self._result(body)
        pure = self.option("pure", self.name not in unit.impure)
        return relax.Function(self.params, body, result, pure, Attrs(attrs), span=head(self.node))

    def _result(self, body: relax.SeqExpr) -> StructInfo | None:
        """The result's struct info: as declared, or inferred, in terms of what the parameters define."""
        inferred = body.struct_info
        if not self.ev.check or inferred is None:
            return self.declared
        assert self.params is not None
        if self.declared is None and self.name in self.unit.recursive:
            raise error("RLX0433", f"`{self.name}` calls itself and does not declare its result", head(self.node),
                        help="add `-> R.Tensor(…)`")  # fmt: skip
        if self.declared is None:
            known = {*bound_vars(tuple(p.struct_info for p in self.params)), *self.inside, *_outer_vars(self.outer)}
            return erase(inferred, known, set(self.params))
        return self.declared


def _outer_vars(scope: Scope) -> set[prim.Var]:
    found: set[prim.Var] = set()
    inner: Scope | None = scope
    while inner is not None:
        found |= {v for v in inner.names.values() if isinstance(v, prim.Var)}
        inner = inner.parent
    return found
