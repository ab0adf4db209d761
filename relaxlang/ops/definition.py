"""An operator's definition, read off its `@R.op` function (parameters, result, body, documentation), and the rules that
stand beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from relaxlang.base.node import Node, node
from relaxlang.ops.functions import CompileTimeFunction
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Scope, error

# Kinds of parameters that are arguments of the call (values of Relax) …
ArgKind = Literal["tensor", "tensors", "shape", "scalar", "object"]
ARG_KINDS = frozenset({"tensor", "tensors", "shape", "scalar", "object"})
# … and of those that are its attributes (compile-time values).
ATTR_KINDS = frozenset({"int", "float", "bool", "str", "dtype", "ints", "floats", "tuple", "index_map"})

Precision = Literal["always", "follow", "never"]
PRECISIONS = ("always", "follow", "never")


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

    Rules: `precision` says whether it is computed in half precision always, when its arguments are there in it, or
    never; `layout_rule` in which layouts it takes tensors, `gradient` what its derivatives are (see `ops.rules`).
    """

    name: str
    params: tuple[OpParam, ...]
    returns: tree.Expr
    body: tuple[tree.Stmt, ...]
    doc: str
    pure: bool
    scope: Scope
    view: bool = False
    precision: Precision = "never"
    layout_rule: CompileTimeFunction | None = None
    gradient: CompileTimeFunction | None = None

    @property
    def arg_params(self) -> tuple[OpParam, ...]:
        """The parameters that are arguments of the call, in order."""
        return tuple(p for p in self.params if p.is_arg)

    @property
    def takes_scalars(self) -> bool:
        """Whether a scalar of Relax may be either operand: of an operator of two tensors and nothing else."""
        return not self.view and len(self.params) == 2 and all(p.kinds[0] == "tensor" for p in self.params)

    def slots(self, count: int) -> tuple[OpParam, ...]:
        """The parameter of each of `count` arguments of a call: a variadic one, always the last, takes any number."""
        params = self.arg_params
        if params and params[-1].variadic:
            return params[:-1][:count] + (params[-1],) * max(0, count - len(params) + 1)
        return params[:count]

    def rules(self) -> dict[str, str]:
        """The rules that it has, in words: precision, and the functions that say layouts and gradient."""
        found = {"layout": self.layout_rule, "gradient": self.gradient}
        said = {
            kind: f"{rule.function.name} ({rule.function.span})" for kind, rule in found.items() if rule is not None
        }
        return {"precision": self.precision, **said}

    @property
    def attr_params(self) -> tuple[OpParam, ...]:
        """The parameters that are attributes, in order."""
        return tuple(p for p in self.params if not p.is_arg)


def is_operator(stmt: tree.Stmt) -> bool:
    """Whether a statement is a function under `@R.op` or `@R.op(…)`."""
    return isinstance(stmt, tree.FunctionDef) and any(_is_decorator(d, "op") for d in stmt.decorators)


def _is_decorator(decorator: tree.Expr, name: str) -> bool:
    target = decorator.func if isinstance(decorator, tree.Call) else decorator
    return (
        isinstance(target, tree.Attribute)
        and target.attr == name
        and isinstance(target.value, tree.Name)
        and target.value.id == "R"
    )


def gradient_rules(body: Iterable[tree.Stmt], scope: Scope) -> dict[str, CompileTimeFunction]:
    """The functions under `@R.grad("operator", …)` among statements, by operator. Raises DiagnosticError."""
    found: dict[str, CompileTimeFunction] = {}
    for stmt in body:
        for decorator in stmt.decorators if isinstance(stmt, tree.FunctionDef) else ():
            if not _is_decorator(decorator, "grad"):
                continue
            args = decorator.args if isinstance(decorator, tree.Call) else ()
            names = [a.value for a in args if isinstance(a, tree.Constant) and isinstance(a.value, str)]
            if not names or len(names) != len(args):
                wrong = "`@R.grad` needs names of operators"
                raise error("RLX0130", wrong, decorator.span, help='write `@R.grad("nn.relu")`')
            assert isinstance(stmt, tree.FunctionDef)
            found |= dict.fromkeys(names, CompileTimeFunction.of(stmt, scope))
    return found


class Defines(NamedTuple):
    """What a statement of a file defines: a compile-time `function`, or an `operator` or the `gradient` of some, which
    are named beside it; the `kind` of other statements is empty."""

    kind: str
    name: str = ""
    operators: Sequence[str] = ()


def defines(stmt: tree.Stmt) -> Defines:
    """What a statement defines. Raises DiagnosticError for names of operators that are none."""
    if not isinstance(stmt, tree.FunctionDef):
        return Defines("")
    if not stmt.decorators:
        return Defines("function", stmt.name)
    if is_operator(stmt):
        return Defines("operator", stmt.name, (operator_name(stmt),))
    return Defines("gradient", stmt.name, tuple(gradient_rules([stmt], Scope())))


def _options(decorator: tree.Call, scope: Scope) -> dict[str, Any]:
    """The options of `@R.op(…)`, by the name of the field that they fill."""
    found: dict[str, Any] = {}
    for keyword in decorator.keywords:
        value = keyword.value.value if isinstance(keyword.value, tree.Constant) else None
        if keyword.name == "sugar":  # the symbol that stands for it, which the library's index reads
            continue
        if keyword.name in ("pure", "view") and isinstance(value, bool):
            found[keyword.name] = value
        elif keyword.name == "precision" and value in PRECISIONS:
            found["precision"] = value
        elif keyword.name == "layout":
            found["layout_rule"] = _rule(keyword.value, scope)
        else:
            raise error(
                "RLX0130",
                f"`@R.op` has no option `{keyword.name}={keyword.value.span.text if keyword.value.span else '…'}`",
                keyword.span,
                help='options are `pure=False`, `view=True`, `precision="always"` or `"follow"`, `layout=` a function, '
                "and `sugar`",
            )
    return found


def _rule(name: tree.Expr, scope: Scope) -> CompileTimeFunction:
    place = scope.find(name.id) if isinstance(name, tree.Name) else None
    found = place.names[name.id] if place is not None and isinstance(name, tree.Name) else None
    if not isinstance(found, CompileTimeFunction):
        raise error("RLX0130", "a rule must be the name of a compile-time function", name.span)
    return found


def operator_name(function: tree.FunctionDef) -> str:
    """The name of the operator that an `@R.op` function defines: its own, or the one that is given."""
    name = function.name
    for decorator in function.decorators:
        if isinstance(decorator, tree.Call) and _is_decorator(decorator, "op"):
            for arg in decorator.args:
                if not isinstance(arg, tree.Constant) or not isinstance(arg.value, str):
                    raise error("RLX0130", "the name in `@R.op` must be a string", arg.span)
                name = arg.value
    return name


def read_definition(function: tree.FunctionDef, scope: Scope) -> OpDef:
    """The definition that an `@R.op` function states. Raises DiagnosticError for one that is not well made."""
    name, options = operator_name(function), dict[str, Any]()
    for decorator in function.decorators:
        if isinstance(decorator, tree.Call) and _is_decorator(decorator, "op"):
            options.update(_options(decorator, scope))
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
    pure = options.pop("pure", True)
    return OpDef(name, params, function.returns, body, doc, pure, scope, **options, span=function.span)


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
