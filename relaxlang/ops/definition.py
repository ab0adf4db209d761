"""An operator's definition, read off its `@R.op` function: parameters, result, body, documentation."""

from __future__ import annotations

from typing import Literal

from relaxlang.base.node import Node, node
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Scope, error

# Kinds of parameters that are arguments of the call (values of Relax) …
ArgKind = Literal["tensor", "tensors", "shape", "scalar", "object"]
ARG_KINDS = frozenset({"tensor", "tensors", "shape", "scalar", "object"})
# … and of those that are its attributes (compile-time values).
ATTR_KINDS = frozenset({"int", "float", "bool", "str", "dtype", "tuple", "index_map"})


@node
class OpParam(Node):
    """A parameter: its name, the kinds of value it takes, the pattern that its annotation states, its default (None: it
    is required)."""

    name: str
    kinds: tuple[str, ...]
    pattern: tree.Expr
    default: tree.Expr | None
    variadic: bool = False

    @property
    def is_arg(self) -> bool:
        """Whether the parameter is a value of Relax, an argument of the call."""
        return self.kinds[0] in ARG_KINDS


@node
class OpDef(Node):
    """An operator.

    `name` is what stands after `R.` (`nn.relu`); `scope` holds the names of the file it stands in; `view` says that the
    result has the elements of the first argument, in the same row-major order. The span is that of its name in the
    file.
    """

    name: str
    params: tuple[OpParam, ...]
    returns: tree.Expr
    body: tuple[tree.Stmt, ...]
    doc: str
    pure: bool
    scope: Scope
    view: bool = False

    @property
    def arg_params(self) -> tuple[OpParam, ...]:
        """The parameters that are arguments of the call, in order."""
        return tuple(p for p in self.params if p.is_arg)

    def slots(self, count: int) -> tuple[OpParam, ...]:
        """The parameter of each of `count` arguments of a call: a variadic one, always the last, takes any number."""
        params = self.arg_params
        if params and params[-1].variadic:
            return params[:-1][:count] + (params[-1],) * max(0, count - len(params) + 1)
        return params[:count]

    @property
    def attr_params(self) -> tuple[OpParam, ...]:
        """The parameters that are attributes, in order."""
        return tuple(p for p in self.params if not p.is_arg)


def is_operator(stmt: tree.Stmt) -> bool:
    """Whether a statement is a function under `@R.op` or `@R.op(…)`."""
    return isinstance(stmt, tree.FunctionDef) and any(_is_op_decorator(d) for d in stmt.decorators)


def _is_op_decorator(decorator: tree.Expr) -> bool:
    target = decorator.func if isinstance(decorator, tree.Call) else decorator
    return (
        isinstance(target, tree.Attribute)
        and target.attr == "op"
        and isinstance(target.value, tree.Name)
        and target.value.id == "R"
    )


def read_definition(function: tree.FunctionDef, scope: Scope) -> OpDef:
    """The definition that an `@R.op` function states. Raises DiagnosticError for one that is not well made."""
    name, options = function.name, {"pure": True, "view": False}
    for decorator in function.decorators:
        if isinstance(decorator, tree.Call) and _is_op_decorator(decorator):
            for arg in decorator.args:
                if not isinstance(arg, tree.Constant) or not isinstance(arg.value, str):
                    raise error("RLX0130", "the name in `@R.op` must be a string", arg.span)
                name = arg.value
            for keyword in decorator.keywords:
                if keyword.name == "sugar":  # the symbol that stands for it, which the library's index reads
                    continue
                if keyword.name not in options or not isinstance(keyword.value, tree.Constant):
                    raise error(
                        "RLX0130",
                        f"`@R.op` has no option `{keyword.name}`",
                        keyword.span,
                        help="options are `pure=False`, `view=True` and `sugar`",
                    )
                options[keyword.name] = bool(keyword.value.value)
    if function.returns is None:
        raise error(
            "RLX0131", f"the operator `{name}` does not state its result", function.span, help="add `-> R.Tensor(…)`"
        )
    params = tuple(_read_param(p) for p in function.params)
    kinds = [p.is_arg for p in params]
    if sorted(kinds, reverse=True) != kinds:
        raise error(
            "RLX0132",
            f"in the operator `{name}` tensors, shapes and scalars must come before attributes",
            function.span,
        )
    body, doc = function.body, ""
    if (
        body
        and isinstance(body[0], tree.ExprStmt)
        and isinstance(body[0].value, tree.Constant)
        and isinstance(body[0].value.value, str)
    ):
        doc, body = body[0].value.value, body[1:]
    return OpDef(name, params, function.returns, body, doc, options["pure"], scope, options["view"], span=function.span)


def _read_param(param: tree.Parameter) -> OpParam:
    if param.annotation is None:
        raise error("RLX0133", f"the parameter `{param.name}` of an operator needs a pattern or a kind", param.span)
    kinds = tuple(_kind(part, param) for part in _alternatives(param.annotation))
    return OpParam(param.name, kinds, param.annotation, param.default, param.kind == "*", span=param.span)


def _alternatives(annotation: tree.Expr) -> list[tree.Expr]:
    """`int | tuple` as a list."""
    if isinstance(annotation, tree.BinOp) and annotation.op == "|":
        return [*_alternatives(annotation.left), *_alternatives(annotation.right)]
    return [annotation]


_R_KINDS = {"Tensor": "tensor", "Shape": "shape", "Tuple": "tensors", "Prim": "scalar", "Object": "object"}


def _kind(annotation: tree.Expr, param: tree.Parameter) -> str:
    target = annotation.func if isinstance(annotation, tree.Call) else annotation
    if (
        isinstance(target, tree.Attribute)
        and isinstance(target.value, tree.Name)
        and target.value.id == "R"
        and target.attr in _R_KINDS
    ):
        return _R_KINDS[target.attr]
    if isinstance(annotation, tree.Name) and annotation.id in ATTR_KINDS:
        return annotation.id
    raise error(
        "RLX0133",
        f"the annotation of `{param.name}` is no pattern and no kind",
        annotation.span,
        help="patterns: `R.Tensor(S, D)`, `R.Shape(N)`, `R.Tuple`, `R.Prim`, `R.Object`; kinds: "
        + ", ".join(sorted(ATTR_KINDS)),
    )
