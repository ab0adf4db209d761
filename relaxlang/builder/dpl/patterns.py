"""Patterns over expressions of Relax, and the functions that make them.

A pattern object that occurs twice must match one value both times. Where a pattern looks for structure (a call, a
tuple) variables are looked through to what they are bound to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar

from relaxlang.base.arguments import checked
from relaxlang.base.dtype import DType, dtype
from relaxlang.builder.dpl.state import State, Values
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import freeze
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.struct_info import OBJECT, StructInfo, TensorStructInfo
from relaxlang.ir.structural import structural_equal
from relaxlang.ir.visit import substitute
from relaxlang.syntax.struct_info import BaseCheck, base_check, dims_of, replaced, same_dim, unify

if TYPE_CHECKING:
    from relaxlang.builder.dpl.context import PatternContext

CURRENT: ContextVar[PatternContext | None] = ContextVar("relaxlang_pattern_context", default=None)
"""The context that patterns made now belong to."""


class Pattern:
    """A pattern. `p(x, y)` is a call of what it matches, `p[0]` a field; `|`, `&`, `~` combine; `p ^ q` says that what
    `p` matches is used by what `q` matches, `p >> q` that nothing else uses it."""

    __iter__: ClassVar[None] = None  # `p[0]`, `p[1]`, … has no end

    def __init__(self) -> None:
        self.constraints: list[SameShapeConstraint] = []
        context = CURRENT.get()
        if context is not None:
            context.add(self)

    # --- matching -----------------------------------------------------------------------------------------------------
    @checked
    def match(self, expr: relax.Expr, values: Values | None = None) -> bool:
        """Whether an expression fits; `values` says what its variables are bound to."""
        return self.extract_matched_expr(expr, values) is not None

    @checked
    def extract_matched_expr(self, expr: relax.Expr, values: Values | None = None) -> dict[Pattern, relax.Expr] | None:
        """What the pattern and each of its parts matched; None when the expression does not fit."""
        found = next(self.search(expr, State(values or {})), None)
        return None if found is None else dict(found.found)

    def search(self, expr: relax.Expr, state: State) -> Iterator[State]:
        """Every way in which the pattern matches, its constraints included."""
        for made in self.at(expr, state):
            if all(c.holds(made) for pattern in made.found for c in pattern.constraints):
                yield made

    def at(self, expr: relax.Expr, state: State) -> Iterator[State]:
        """Every way in which an expression fits, given what was found before."""
        known = state.found.get(self)
        if known is not None:
            if state.same(known, expr):
                yield state
            return
        for made in self.fits(expr, state):
            yield made.bind(self, expr)

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        """What this kind of pattern asks for."""
        raise TypeError(f"{type(self).__name__} does not say what it matches")

    # --- making others ------------------------------------------------------------------------------------------------
    @checked
    def __call__(self, *args: Pattern, varg_default_wildcard: bool = False) -> CallPattern:
        return CallPattern(self, None if varg_default_wildcard else args)

    @checked
    def __getitem__(self, index: int) -> TupleGetItemPattern:
        return TupleGetItemPattern(self, index)

    def __or__(self, other: Pattern) -> OrPattern:
        return OrPattern(self, other)

    def __and__(self, other: Pattern) -> AndPattern:
        return AndPattern(self, other)

    def __invert__(self) -> NotPattern:
        return NotPattern(self)

    def __xor__(self, other: Pattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: Pattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)

    @checked
    def used_by(self, other: Pattern | PatternSeq, index: int = -1) -> PatternSeq:
        """State in the open context that what this matches is an operand of what `other` matches (argument `index`)."""
        return PatternSeq((self,)).used_by(other, index)

    @checked
    def only_used_by(self, other: Pattern | PatternSeq, index: int = -1) -> PatternSeq:
        """As `used_by`, and nothing else uses it."""
        return PatternSeq((self,)).only_used_by(other, index)

    @checked
    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """With these attributes (of a call or a function)."""
        return AttrPattern(self, attrs)

    @checked
    def has_dtype(self, of: DType | str) -> DataTypePattern:
        """A tensor of this element type."""
        return DataTypePattern(self, dtype(of))

    @checked
    def has_shape(self, shape: Sequence[int | PrimExpr]) -> ShapePattern:
        """A tensor or shape whose dimensions are provably these."""
        return ShapePattern(self, shape)

    @checked
    def has_struct_info(self, info: StructInfo) -> StructInfoPattern:
        """With struct info that implies this one; symbolic dimensions of `info` stand for what they meet first."""
        return StructInfoPattern(self, info)

    has_type = has_struct_info

    @checked
    def same_shape_as(self, *others: Pattern) -> Pattern:
        """State that the shapes of what this and `others` match are provably equal."""
        SameShapeConstraint(self, *others)
        return self


class ExprPattern(Pattern):
    """An expression that is structurally equal to a given one."""

    @checked
    def __init__(self, expr: relax.Expr) -> None:
        super().__init__()
        self.expr = expr

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        found = expr if isinstance(self.expr, relax.Var) else state.value(expr)
        if isinstance(self.expr, (relax.Op, relax.GlobalVar)):
            same = self.expr == found
        else:
            same = self.expr is found or structural_equal(self.expr, found)
        if same:
            yield state


class _Named(Pattern):
    """Something of one class, of a name ("": of any)."""

    kind: type[relax.Expr] = relax.Expr

    @checked
    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.name = name

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        if isinstance(expr, self.kind) and self.name in ("", getattr(expr, "name", "")):
            yield state


class VarPattern(_Named):
    """A variable, of a name ("": of any)."""

    kind = relax.Var


class DataflowVarPattern(_Named):
    """A variable that ends with its dataflow block."""

    kind = relax.DataflowVar


class GlobalVarPattern(_Named):
    """A function of the module."""

    kind = relax.GlobalVar


class ExternFuncPattern(_Named):
    """A packed function."""

    kind = relax.ExternFunc


class ConstantPattern(Pattern):
    """A tensor constant."""

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        if isinstance(state.value(expr), relax.Constant):
            yield state


class WildcardPattern(Pattern):
    """Anything."""

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        yield state


class CallPattern(Pattern):
    """A call: the callee fits `op`, the arguments fit `args` one by one (None: whatever they are)."""

    @checked
    def __init__(self, op: Pattern, args: Sequence[Pattern] | None) -> None:
        super().__init__()
        self.op = op
        self.args = None if args is None else tuple(args)

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        call = state.value(expr)
        if isinstance(call, relax.Call) and (self.args is None or len(self.args) == len(call.args)):
            yield from _in_turn([(self.op, call.op), *zip(self.args or (), call.args)], state)


class FunctionPattern(Pattern):
    """A function (as a value) whose parameters and result fit."""

    @checked
    def __init__(self, params: Sequence[Pattern], body: Pattern) -> None:
        super().__init__()
        self.params = tuple(params)
        self.body = body

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        func = state.value(expr)
        if not isinstance(func, relax.Function) or len(func.params) != len(self.params):
            return
        inside = {b.var: b.value for block in func.body.blocks for b in block.bindings}
        inner = state._replace(values={**state.values, **inside})
        yield from _in_turn([*zip(self.params, func.params), (self.body, func.body.body)], inner)


class TuplePattern(Pattern):
    """A tuple that is written out, field by field."""

    @checked
    def __init__(self, fields: Sequence[Pattern]) -> None:
        super().__init__()
        self.fields = tuple(fields)

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        made = state.value(expr)
        if isinstance(made, relax.Tuple) and len(made.fields) == len(self.fields):
            yield from _in_turn(list(zip(self.fields, made.fields)), state)


class UnorderedTuplePattern(TuplePattern):
    """A tuple that is written out, with the fields in any order."""

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        made = state.value(expr)
        if isinstance(made, relax.Tuple) and len(made.fields) == len(self.fields):
            for order in permutations(made.fields):
                yield from _in_turn(list(zip(self.fields, order)), state)


class TupleGetItemPattern(Pattern):
    """A field of a tuple (None: any field)."""

    @checked
    def __init__(self, tuple_value: Pattern, index: int | None = None) -> None:
        super().__init__()
        self.tuple_value = tuple_value
        self.index = index

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        item = state.value(expr)
        if isinstance(item, relax.TupleGetItem) and self.index in (None, item.index):
            yield from self.tuple_value.at(item.tuple_value, state)


class OrPattern(Pattern):
    """Either."""

    @checked
    def __init__(self, left: Pattern, right: Pattern) -> None:
        super().__init__()
        self.left, self.right = left, right

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        yield from self.left.at(expr, state)
        yield from self.right.at(expr, state)


class AndPattern(Pattern):
    """Both."""

    @checked
    def __init__(self, left: Pattern, right: Pattern) -> None:
        super().__init__()
        self.left, self.right = left, right

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        for made in self.left.at(expr, state):
            yield from self.right.at(expr, made)


class NotPattern(Pattern):
    """Not that; it finds nothing inside."""

    @checked
    def __init__(self, pattern: Pattern) -> None:
        super().__init__()
        self.pattern = pattern

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        if next(self.pattern.at(expr, state), None) is None:
            yield state


# --- patterns with a condition ----------------------------------------------------------------------------------------
class _Conditional(Pattern):
    """What fits `pattern`, under a condition."""

    @checked
    def __init__(self, pattern: Pattern) -> None:
        super().__init__()
        self.pattern = pattern

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        for made in self.pattern.at(expr, state):
            held = self.condition(expr, made)
            if held is not None:
                yield held

    def condition(self, expr: relax.Expr, state: State) -> State | None:
        """The state after the condition, None when it does not hold."""
        raise TypeError(f"{type(self).__name__} does not say what it asks for")


class StructInfoPattern(_Conditional):
    """Struct info that implies a given one."""

    @checked
    def __init__(self, pattern: Pattern, info: StructInfo) -> None:
        super().__init__(pattern)
        self.info = info

    def condition(self, expr: relax.Expr, state: State) -> State | None:
        given = expr.struct_info or OBJECT
        dims = dict(state.dims)
        unify(self.info, given, dims)
        return state._replace(dims=dims) if base_check(replaced(self.info, dims), given) is BaseCheck.HOLDS else None


class DataTypePattern(_Conditional):
    """A tensor of an element type."""

    @checked
    def __init__(self, pattern: Pattern, of: DType) -> None:
        super().__init__(pattern)
        self.dtype = of

    def condition(self, expr: relax.Expr, state: State) -> State | None:
        info = expr.struct_info
        return state if isinstance(info, TensorStructInfo) and info.dtype is self.dtype else None


class ShapePattern(_Conditional):
    """A tensor or shape with given dimensions."""

    @checked
    def __init__(self, pattern: Pattern, shape: Sequence[int | PrimExpr]) -> None:
        super().__init__(pattern)
        self.shape = _dims(shape)

    def condition(self, expr: relax.Expr, state: State) -> State | None:
        return state if _same_dims(self.shape, dims_of(expr.struct_info), state) else None


class AttrPattern(_Conditional):
    """A call or function that has given attributes, whatever others it has."""

    @checked
    def __init__(self, pattern: Pattern, attrs: Mapping[str, Any]) -> None:
        super().__init__(pattern)
        self.attrs = {k: freeze(v) for k, v in attrs.items()}

    def condition(self, expr: relax.Expr, state: State) -> State | None:
        made = state.value(expr)
        held = made.attrs if isinstance(made, (relax.Call, relax.Function)) else {}
        same = all(k in held and _plain(held[k]) == _plain(v) for k, v in self.attrs.items())
        return state if same else None


class PrimArrPattern(Pattern):
    """A shape value with given dimensions."""

    @checked
    def __init__(self, values: Sequence[int | PrimExpr]) -> None:
        super().__init__()
        self.values = _dims(values)

    def fits(self, expr: relax.Expr, state: State) -> Iterator[State]:
        made = state.value(expr)
        if isinstance(made, relax.ShapeExpr) and _same_dims(self.values, made.values, state):
            yield state


class SameShapeConstraint:
    """The shapes of what several patterns match are provably equal. It counts once all of them have matched."""

    @checked
    def __init__(self, *patterns: Pattern) -> None:
        self.patterns = patterns
        for pattern in patterns:
            pattern.constraints.append(self)

    def holds(self, state: State) -> bool:
        """Whether it holds, as far as its patterns have matched."""
        shapes = [dims_of(state.found[p].struct_info) for p in self.patterns if p in state.found]
        return all(s is not None and _same_dims(s, shapes[0], state) for s in shapes)


def _dims(shape: Sequence[int | PrimExpr]) -> tuple[PrimExpr, ...]:
    return tuple(prim.cast(prim.as_prim(d, INT64), INT64) for d in shape)


def _same_dims(wanted: tuple[PrimExpr, ...], given: tuple[PrimExpr, ...] | None, state: State) -> bool:
    if given is None or len(wanted) != len(given):
        return False
    return all(same_dim(substitute(a, state.dims), b) for a, b in zip(wanted, given))


def _plain(value: Any) -> Any:
    return value.name if isinstance(value, DType) else value


def _in_turn(pairs: list[tuple[Pattern, relax.Expr]], state: State) -> Iterator[State]:
    """Every way in which all patterns match, each its expression."""
    if not pairs:
        yield state
        return
    (pattern, expr), rest = pairs[0], pairs[1:]
    for made in pattern.at(expr, state):
        yield from _in_turn(rest, made)


# --- sequences --------------------------------------------------------------------------------------------------------
class PatternSeq:
    """Patterns of which each is used by the next: what `^` and `>>` make."""

    @checked
    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.patterns = tuple(patterns)

    def __xor__(self, other: Pattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: Pattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)

    def __getitem__(self, index: int) -> Pattern:
        return self.patterns[index]

    @checked
    def used_by(self, other: Pattern | PatternSeq, index: int = -1) -> PatternSeq:
        """What the last one matches is an operand of what the first of `other` matches."""
        return self._joined(other, index, False)

    @checked
    def only_used_by(self, other: Pattern | PatternSeq, index: int = -1) -> PatternSeq:
        """As `used_by`, and nothing else uses it."""
        return self._joined(other, index, True)

    def _joined(self, other: Pattern | PatternSeq, index: int, only: bool) -> PatternSeq:
        from relaxlang.builder.dpl.context import current_context

        following = other if isinstance(other, PatternSeq) else PatternSeq((other,))
        current_context().connect(self.patterns[-1], following.patterns[0], index, only)
        return PatternSeq((*self.patterns, *following.patterns))
