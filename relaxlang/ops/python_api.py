"""Operators as Python functions: `op.nn.softmax(x, axis=-1)` is the call, with the struct info of its result.

    from relaxlang import op

    call = op.add(x, op.nn.relu(y))

Names, parameters, defaults and documentation come from the definitions in `stdlib/`; nothing is loaded before it is
used. The module itself is the outermost namespace.
"""

from __future__ import annotations

import inspect as _inspect  # `inspect` is a namespace of operators
from typing import TYPE_CHECKING, Any

from relaxlang.base.dtype import DType
from relaxlang.ir import relax
from relaxlang.ops.definition import OpDef, OpParam, Precision
from relaxlang.ops.functions import CompileTimeFunction
from relaxlang.ops.signature import signature_text
from relaxlang.ops.table import Operators, default_operators
from relaxlang.syntax import tree


class Namespace:
    """The operators whose names begin with `prefix`: attributes are operators, and further namespaces (`nn`)."""

    def __init__(self, prefix: str, operators: Operators) -> None:
        self._prefix = prefix
        self._operators = operators

    def __getattr__(self, name: str) -> Any:
        full = self._prefix + name
        if name.startswith("__") or not self._operators.has(full):
            raise AttributeError(f"there is no operator `{full}`")
        found: Any = OperatorFunction(full, self._operators)
        if self._operators.find(full) is None:
            found = Namespace(full + ".", self._operators)
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        names = [n[len(self._prefix) :] for n in self._operators.names() if n.startswith(self._prefix)]
        return sorted({n.split(".", 1)[0] for n in names})

    def __repr__(self) -> str:
        return f"<operators `{self._prefix}…`>" if self._prefix else "<operators>"


class OperatorFunction:
    """One operator, callable with expressions of Relax, numpy arrays (constants), numbers and attributes."""

    def __init__(self, name: str, operators: Operators) -> None:
        self.__name__ = name.rsplit(".", 1)[-1]
        self.__qualname__ = name
        self._operators = operators

    def __call__(self, *args: Any, **kwargs: Any) -> relax.Call:
        """The call, with inferred struct info. Raises DiagnosticError for arguments that do not fit."""
        named = {k: _as_expr(v) for k, v in kwargs.items()}
        call = self._operators.make_call(self.__qualname__, [_as_expr(a) for a in args], named, None)
        return call.replace(struct_info=self._operators.infer(call))

    if TYPE_CHECKING:  # to a reader of types a namespace is an operator that has operators: `op.nn.relu`

        def __getattr__(self, name: str) -> OperatorFunction:
            """An operator of a namespace."""

    @property
    def definition(self) -> OpDef:
        """What the standard library says about it."""
        return self._operators.get(self.__qualname__)

    @property
    def precision(self) -> Precision:
        """Whether it is computed in half precision: "always", "follow" (when its tensors are there in it), "never"."""
        return self.definition.precision

    @property
    def layout_rule(self) -> CompileTimeFunction | None:
        """What says in which layouts it takes tensors; None when it takes plain ones only."""
        return self.definition.layout_rule

    @property
    def gradient(self) -> CompileTimeFunction | None:
        """What says how a result depends on the arguments; None when there is no such rule."""
        return self.definition.gradient

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return f"{signature_text(self.definition)}\n\n{_inspect.cleandoc(self.definition.doc)}"

    @property
    def __signature__(self) -> _inspect.Signature:
        made: list[_inspect.Parameter] = []
        for param in self.definition.params:
            after = bool(made) and made[-1].kind in (_inspect.Parameter.VAR_POSITIONAL, _inspect.Parameter.KEYWORD_ONLY)
            made.append(_parameter(param, by_name=after))
        return _inspect.Signature(made)

    def __repr__(self) -> str:
        return f"<operator {signature_text(self.definition)}>"


def _parameter(param: OpParam, by_name: bool) -> _inspect.Parameter:
    kinds = _inspect.Parameter
    kind = kinds.VAR_POSITIONAL if param.variadic else kinds.KEYWORD_ONLY if by_name else kinds.POSITIONAL_OR_KEYWORD
    if param.variadic or param.default is None:
        return _inspect.Parameter(param.name, kind)
    return _inspect.Parameter(param.name, kind, default=_default(param.default))


def _default(node: tree.Expr) -> Any:
    """A default as a Python value; one that names another parameter as that parameter's default in text."""
    if isinstance(node, tree.Constant):
        return node.value
    if isinstance(node, tree.TupleExpr):
        return tuple(_default(e) for e in node.elements)
    if isinstance(node, tree.UnaryOp) and isinstance(node.operand, tree.Constant):
        value: Any = node.operand.value
        return -value
    return node.id if isinstance(node, tree.Name) else ...


def _as_expr(value: Any) -> Any:
    """numpy arrays as constants; tuples and lists element by element; the rest as it is."""
    if isinstance(value, (tuple, list)):
        return tuple(_as_expr(v) for v in value)
    if hasattr(value, "__array__") and not isinstance(value, (relax.Expr, DType)):
        import numpy as np

        return relax.Constant(np.array(value))
    return value


_ALL = Namespace("", default_operators())


def __getattr__(name: str) -> OperatorFunction:
    found: OperatorFunction = getattr(_ALL, name)
    return found


def __dir__() -> list[str]:
    return dir(_ALL)
