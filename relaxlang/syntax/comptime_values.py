"""The values of compile-time evaluation: scopes, namespaces, builtins, lambdas, and what can be done with plain
values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Fix
from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.base.suggest import place_of, suggestion
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax import tree

if TYPE_CHECKING:
    from relaxlang.syntax.comptime import Evaluator

MAX_STEPS = 2_000_000
MAX_SIZE = 1_000_000
MAX_BITS = 100_000


def error(
    code: str,
    message: str,
    span: Span | None,
    *,
    label: str = "",
    notes: Iterable[str] = (),
    help: str = "",
    fixes: Iterable[Fix] = (),
) -> DiagnosticError:
    """One diagnostic as an exception, to be raised."""
    return DiagnosticError([Diagnostic(code, message, span, label=label, notes=notes, help=help, fixes=fixes)])


class Scope:
    """Names and their values; what is not here is looked up in `parent`."""

    __slots__ = ("names", "parent")

    def __init__(self, names: Mapping[str, Any] | None = None, parent: Scope | None = None) -> None:
        self.names: dict[str, Any] = dict(names or {})
        self.parent = parent

    def find(self, name: str) -> Scope | None:
        """The innermost scope that has the name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope
            scope = scope.parent
        return None

    def all_names(self) -> set[str]:
        """Every visible name."""
        names, scope = set(self.names), self.parent
        while scope is not None:
            names |= set(scope.names)
            scope = scope.parent
        return names

    def suggestions(self) -> set[str]:
        """The visible names that a misspelt one may stand for: old names of namespaces (`tir`, `ty`) are none."""
        found: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            found |= {n for n, v in scope.names.items() if not isinstance(v, Value) or v.is_suggested(n)}
            scope = scope.parent
        return found


class Value:
    """A value with behaviour of its own. What a class does not implement is a diagnostic at `span`."""

    kind = "value"

    def is_suggested(self, name: str) -> bool:
        """Whether `name`, which means this, is offered in place of a misspelt one."""
        return True

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        """`self.name`."""
        raise error("RLX0102", f"a {self.kind} has no attribute `{name}`", span)

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        """`self[index]`."""
        raise error("RLX0110", f"a {self.kind} cannot be indexed", span)

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        """`self(*args, **kwargs)`; `node` gives the places of the arguments."""
        raise error("RLX0111", f"a {self.kind} cannot be called", node.span)

    def binary(self, ev: Evaluator, op: str, other: Any, reflected: bool, span: Span | None) -> Any:
        """`self op other`, or `other op self` when `reflected`; comparisons too."""
        raise error("RLX0112", f"`{op}` is not defined for a {self.kind}", span)

    def unary(self, ev: Evaluator, op: str, span: Span | None) -> Any:
        """`op self`."""
        raise error("RLX0112", f"`{op}` is not defined for a {self.kind}", span)


class Poison(Value):
    """Stands for what could not be elaborated. Every use of it fails without a message: the cause was reported."""

    kind = "faulty value"


POISON = Poison()


def silent() -> DiagnosticError:
    """The exception that ends the elaboration of something whose fault was reported elsewhere."""
    return DiagnosticError(())


class Namespace(Value):
    """A prefix such as `T` or `R.nn`: attributes are looked up in a table."""

    def __init__(self, path: str, lookup: Callable[[str], Any], names: Callable[[], Iterable[str]]) -> None:
        self.path = path
        self.lookup = lookup
        self.names = names
        self.kind = f"namespace `{path}`"

    def is_suggested(self, name: str) -> bool:
        return name in ("T", "R", "I")

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        found = self.lookup(name)
        if found is None:
            hint = suggestion(name, self.names(), span, f"{self.path}.")
            raise error("RLX0102", f"`{self.path}` has no `{name}`", span, **hint)
        return found


class Builtin(Value):
    """A function of the compile-time language, implemented here: `function(ev, args, kwargs, node)`."""

    def __init__(self, name: str, function: Callable[[Evaluator, list[Any], dict[str, Any], tree.Call], Any]) -> None:
        self.name = name
        self.function = function
        self.kind = f"function `{name}`"

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        return self.function(ev, args, kwargs, node)


class Closure(Value):
    """A lambda with the scope it was made in."""

    kind = "lambda"

    def __init__(self, node: tree.Lambda, scope: Scope) -> None:
        self.node = node
        self.scope = scope

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        scope = Scope(
            bind_parameters(ev, self.node.params, args, kwargs, node.span, "the lambda", self.scope), self.scope
        )
        return ev.expr(self.node.body, scope)


def bind_parameters(
    ev: Evaluator,
    params: tuple[tree.Parameter, ...],
    args: list[Any],
    kwargs: dict[str, Any],
    span: Span | None,
    what: str,
    scope: Scope,
) -> dict[str, Any]:
    """Parameter names to values, as Python binds them: `*rest` may stand before further names (`lambda *b, i, j:`,
    where the last two arguments are `i` and `j`)."""
    if not kwargs and len(args) == len(params) and not any(p.kind for p in params):
        return {p.name: a for p, a in zip(params, args)}
    star = next((k for k, p in enumerate(params) if p.kind == "*"), None)
    names = [p.name for p in params if p.kind == ""]
    bound: dict[str, Any] = {}
    if star is None:
        if len(args) > len(names):
            raise error("RLX0113", f"{what} takes {len(names)} arguments, {len(args)} were given", span)
        bound.update(zip((p.name for p in params), args))
    else:
        after = sum(1 for p in params[star + 1 :] if p.kind == "" and p.name not in kwargs)
        middle = len(args) - star - after
        if middle < 0:
            raise error("RLX0113", f"{what} takes at least {star + after} arguments, {len(args)} were given", span)
        bound.update(zip((p.name for p in params[:star]), args[:star]))
        bound[params[star].name] = tuple(args[star : star + middle])
        bound.update(
            zip((p.name for p in params[star + 1 :] if p.kind == "" and p.name not in kwargs), args[star + middle :])
        )
    for name, value in kwargs.items():
        if name not in names:
            unknown = f"{what} has no parameter `{name}`"
            raise error("RLX0114", unknown, place_of(name, span), **suggestion(name, names, span))
        if name in bound:
            raise error("RLX0113", f"{what} got `{name}` twice", span)
        bound[name] = value
    for param in params:
        if param.name not in bound and param.kind == "":
            if param.default is None:
                raise error("RLX0113", f"{what} lacks its argument `{param.name}`", span)
            bound[param.name] = ev.expr(param.default, scope)
    return bound


def negate(a: PrimExpr, span: Span | None) -> PrimExpr:
    """`-a` as it is written: a constant changes sign, anything signed is a * -1 (0 - a would be wrong for 0.0)."""
    if isinstance(a, prim.IntImm):
        return prim.IntImm(a.dtype, prim.wrap(-a.value, a.dtype), span=span)
    if isinstance(a, prim.FloatImm):
        return prim.FloatImm(a.dtype, -a.value, span=span)
    if a.dtype.is_int or a.dtype.is_float:
        return prim.Mul(a, prim.const(-1, a.dtype), span=span)
    return prim.Sub(prim.const(0, a.dtype), a, span=span)


def converted(of: DType, value: PrimExpr, span: Span | None) -> PrimExpr:
    """`T.cast(value, of)`: a constant is converted at once. (`T.Cast(of, value)` is a node in any case.)"""
    if of.lanes != 1 or value.dtype is of:
        return value if value.dtype is of else prim.Cast(of, value, span=span)
    if isinstance(value, prim.IntImm):
        return prim.const(value.value, of)
    if isinstance(value, prim.FloatImm) and of.is_float:
        return prim.FloatImm(of, value.value, span=span)
    return prim.Cast(of, value, span=span)


def check_fits(value: int, of: DType, span: Span | None) -> None:
    """A written integer must lie in the range of its type."""
    if of.is_integer:
        low, high = (-(1 << (of.bits - 1)), (1 << (of.bits - 1)) - 1) if of.is_int else (0, (1 << of.bits) - 1)
        if not low <= value <= high:
            raise error("RLX0129", f"`{value}` is out of range for `{of}` ({low} to {high})", span)


def check_shift(of: DType, amount: PrimExpr, span: Span | None) -> None:
    """A constant shift must be smaller than the width of what is shifted."""
    if isinstance(amount, prim.IntImm) and not 0 <= amount.value < of.bits:
        raise error(
            "RLX0308",
            f"a shift of `{of}` by {amount.value} is not defined: the amount must be 0 to {of.bits - 1}",
            span,
        )


def as_dtype(value: Any, span: Span | None) -> DType:
    """A dtype from a dtype or its name."""
    from relaxlang.base.dtype import dtype

    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        try:
            return dtype(value)
        except ValueError:
            place, hint = place_of(value, span), suggestion(value, _DTYPE_NAMES, span)
            raise error("RLX0205", f"`{value}` is not a dtype", place, **hint) from None
    raise error("RLX0205", f"a dtype is expected, not {describe(value)}", span)


_DTYPE_NAMES = (
    "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool handle"
).split()


def as_key(value: Any, span: Span | None) -> Any:
    """A value that can be the key of a dict."""
    try:
        hash(value)
    except TypeError:
        raise error("RLX0112", f"{describe(value)} cannot be the key of a dict", span) from None
    return value


def describe(value: Any) -> str:
    """A few words for a value in a message."""
    if isinstance(value, Value):
        return f"a {value.kind}"
    if isinstance(value, PrimExpr):
        return f"the {value.dtype} expression `{value}`"
    if isinstance(value, relax.Expr):
        return f"`{value.name}`, a value of Relax" if isinstance(value, relax.Var) else "a value of Relax"
    if isinstance(value, tir.Buffer):
        return f"the buffer `{value.name}`"
    if isinstance(value, DType):
        return f"the dtype `{value}`"
    if isinstance(value, str):
        return f"the string {value!r}"
    if value is None or isinstance(value, (bool, int, float)):
        return f"`{value}`"
    return f"a {type(value).__name__}"


# --- operations on plain values ---------------------------------------------------------------------------------------
def join_text(separator: str, parts: list[Any], span: Span | None) -> str:
    """The texts of the parts, with `separator` between them."""
    made = separator.join(str(p) for p in parts)
    if len(made) > MAX_SIZE:
        raise error("RLX0120", f"a text of more than {MAX_SIZE:,} characters", span)
    return made


def format_text(template: str, values: list[Any], span: Span | None) -> str:
    """`template` with each `{}` replaced by the text of a value, in order; other fields are not part of the
    language."""
    parts = template.split("{}")
    if len(parts) != len(values) + 1:
        raise error("RLX0113", f"the text has {len(parts) - 1} places for {len(values)} values", span)
    return "".join(p + str(v) for p, v in zip(parts, [*values, ""]))


_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "**": lambda a, b: a**b, "&": lambda a, b: a & b,
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "is": lambda a, b: a is b or (a == b and type(a) is type(b)),
    "is not": lambda a, b: not (a is b or (a == b and type(a) is type(b))), "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}  # fmt: skip


_GROWING = frozenset({"+", "*", "**", "<<", "%"})
"""The operators whose results may be larger than their operands, or (`%`) texts."""


def plain_binary(op: str, a: Any, b: Any, span: Span | None) -> Any:
    """`a op b` for Python's own values, refusing results too large to be meant."""
    if op in _GROWING:
        _check_growth(op, a, b, span)
    try:
        return _PLAIN[op](a, b)
    except ZeroDivisionError:
        raise error("RLX0125", "division by zero while compiling", span) from None
    except (TypeError, KeyError, ValueError, OverflowError):
        raise error("RLX0112", f"`{op}` is not defined for {describe(a)} and {describe(b)}", span) from None


def _check_growth(op: str, a: Any, b: Any, span: Span | None) -> None:
    """Refuse results too large to be meant: huge powers, shifts and repetitions, and text formatting."""
    if op == "%" and isinstance(a, str):
        raise error("RLX0112", "`%` does not format text here", span)
    if op == "*" and type(a) is int and type(b) is int and a.bit_length() + b.bit_length() > MAX_BITS:
        raise error("RLX0120", "the product is too large", span)
    if op == "**" and isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() * b > 10_000:
        raise error("RLX0120", "the power is too large", span)
    if op == "<<" and isinstance(a, int) and isinstance(b, int) and b > 10_000:
        raise error("RLX0120", "the shift is too large", span)
    for seq, times in ((a, b), (b, a)):
        if op == "*" and isinstance(seq, (str, tuple, list)) and isinstance(times, int) and len(seq) * times > MAX_SIZE:
            raise error("RLX0120", f"a sequence of more than {MAX_SIZE:,} elements", span)
    if (
        op == "+"
        and isinstance(a, (str, tuple, list))
        and isinstance(b, (str, tuple, list))
        and len(a) + len(b) > MAX_SIZE
    ):
        raise error("RLX0120", f"a sequence of more than {MAX_SIZE:,} elements", span)
