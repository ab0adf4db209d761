"""Solving for variables: coefficients of linear expressions, equations, bounds from conditions."""

from __future__ import annotations

from collections.abc import Sequence

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.intervals import EVERYTHING, Domain, IntSet, int_set, intersect
from relaxlang.arith.solve import eliminated
from relaxlang.ir.prim import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    Add,
    Cast,
    CmpOp,
    FloorDiv,
    IntImm,
    Mul,
    PrimExpr,
    Sub,
    Var,
    as_prim,
    cast,
    const,
)
from relaxlang.ir.visit import conjuncts, free_vars

_MAX_NESTING = 200


def detect_linear_equation(
    expr: PrimExpr, variables: Sequence[Var], analyzer: Analyzer | None = None
) -> list[PrimExpr] | None:
    """The coefficients c of `expr` = c[0] * variables[0] + … + c[n], the last one the rest; none mentions a variable of
    `variables`. None when `expr` is not linear in them, or nested more than 200 deep."""
    analyzer = analyzer or Analyzer()
    found = _coefficients(analyzer.simplify(expr), frozenset(variables), 0)
    if found is None:
        return None
    zero = const(0, expr.dtype)
    return [analyzer.simplify(found.get(var, zero)) for var in (*variables, None)]


def _coefficients(expr: PrimExpr, variables: frozenset[Var], depth: int) -> dict[Var | None, PrimExpr] | None:
    if depth > _MAX_NESTING:
        return None
    if isinstance(expr, Var) and expr in variables:
        return {expr: const(1, expr.dtype)}
    if not any(var in variables for var in free_vars(expr)):
        return {None: expr}
    if isinstance(expr, Cast):
        inner = _coefficients(expr.value, variables, depth + 1)
        return None if inner is None else {var: cast(c, expr.of) for var, c in inner.items()}
    if not isinstance(expr, Add | Sub | Mul):
        return None
    a, b = _coefficients(expr.a, variables, depth + 1), _coefficients(expr.b, variables, depth + 1)
    if a is None or b is None:
        return None
    if isinstance(expr, Mul):
        if b.keys() != {None}:
            a, b = b, a
        return {var: c * b[None] for var, c in a.items()} if b.keys() == {None} else None
    for var, c in b.items():
        old = a.get(var, const(0, expr.dtype))
        a[var] = old + c if isinstance(expr, Add) else old - c
    return a


def solve_equation(var: Var, left: PrimExpr, right: PrimExpr, analyzer: Analyzer | None = None) -> PrimExpr | None:
    """The value of `var` for which `left` == `right`, when there is one and it is provably an integer; else None."""
    analyzer = analyzer or Analyzer()
    found = detect_linear_equation(left - right, [var], analyzer)
    if found is None:
        return None
    factor, rest = found
    if not (analyzer.can_prove(factor > 0) or analyzer.can_prove(factor < 0)):
        return None
    if not analyzer.can_prove_equal(rest % factor, 0):
        return None
    return analyzer.simplify(cast((0 - rest) // factor, var.dtype))


def deduce_bound(
    var: Var,
    condition: PrimExpr,
    hints: Domain | None = None,
    relax: Domain | None = None,
    analyzer: Analyzer | None = None,
) -> IntSet:
    """An interval of `var` in which `condition` holds, whatever the variables of `relax` are within their sets.

    Every value in the interval satisfies the condition; with an empty `relax` and a linear condition, no other value
    does. `hints` bound the variables that stay symbols. EVERYTHING when the condition says nothing about `var`; a
    `ValueError` when it cannot be solved for `var`.
    """
    analyzer = analyzer or Analyzer()
    with analyzer.assuming():
        for name, dom in (hints or {}).items():
            if isinstance(dom, IntSet):
                for end, kind in ((dom.min, GE), (dom.max, LE)):
                    if end is not None:
                        analyzer.assume(kind(name, end))
            else:
                analyzer.bind(name, dom)
        parts = [_deduced(var, part, relax or {}, analyzer) for part in conjuncts(condition)]
    return intersect(parts, analyzer)


def _deduced(var: Var, condition: PrimExpr, relax: Domain, analyzer: Analyzer) -> IntSet:
    if var not in free_vars(condition):
        return EVERYTHING
    if not isinstance(condition, CmpOp) or type(condition) not in (LT, LE, GT, GE, EQ):
        raise ValueError(f"{type(condition).__name__} is no inequality")
    a, b = condition.a, condition.b
    forms = {LT: [b - a - 1], LE: [b - a], GT: [a - b - 1], GE: [a - b], EQ: [a - b, b - a]}[type(condition)]
    return intersect([_where_nonnegative(var, form, relax, analyzer) for form in forms], analyzer)


def _where_nonnegative(var: Var, form: PrimExpr, relax: Domain, analyzer: Analyzer) -> IntSet:
    """factor * var + rest >= 0: var >= ceil(-rest / factor) if factor > 0, else var <= floor(rest / -factor)."""
    found = detect_linear_equation(form, [var], analyzer)
    if found is None:
        raise ValueError("the condition is not linear in the variable")
    factor, rest = found
    least = int_set(rest, relax, analyzer).min
    if least is None or any(name in relax for name in free_vars(factor)):
        raise ValueError("the condition has no bound that holds for all values of the relaxed variables")
    if analyzer.can_prove(factor > 0):
        return IntSet(analyzer.simplify(cast(0 - FloorDiv(least, factor), var.dtype)), None)
    if analyzer.can_prove(factor < 0):
        return IntSet(None, analyzer.simplify(cast(FloorDiv(least, analyzer.simplify(0 - factor)), var.dtype)))
    raise ValueError("the sign of the variable's factor is not known")


def solve_linear_inequalities(
    variables: Sequence[Var], conditions: Sequence[PrimExpr], analyzer: Analyzer | None = None
) -> dict[Var, IntSet]:
    """Bounds of `variables`, each in terms of those after it, by Fourier-Motzkin elimination.

    Together they contain every solution of the conditions. Conditions that are not linear, and variables without a
    bound, constrain nothing.
    """
    analyzer = analyzer or Analyzer()
    rows = [row for condition in conditions for row in analyzer.inequalities(condition)]
    result = {}
    for var in variables:
        lows: list[IntSet] = []
        for row in rows:
            factor = row.terms.get(var, 0)
            rest = analyzer.expression(row.with_term(var, 0), var.dtype) if factor else None
            if rest is None or var in free_vars(rest):
                continue
            by = as_prim(abs(factor), var.dtype)
            if factor > 0:
                lows.append(IntSet(analyzer.simplify(0 - FloorDiv(rest, by)), None))
            else:
                lows.append(IntSet(None, analyzer.simplify(FloorDiv(rest, by))))
        result[var] = intersect(lows, analyzer) if lows else EVERYTHING
        rows = eliminated(rows, var)
    return result


def detect_clip_bound(
    condition: PrimExpr, variables: Sequence[Var], analyzer: Analyzer | None = None
) -> dict[Var, IntSet] | None:
    """The interval of each variable that a conjunction of comparisons with one variable each gives it, free of the
    others; None when a comparison is of another kind."""
    analyzer = analyzer or Analyzer()
    result = dict.fromkeys(variables, EVERYTHING)
    for part in conjuncts(analyzer.simplify(condition)):
        if isinstance(part, IntImm) and part.value:
            continue
        mentioned = [var for var in free_vars(part) if var in result]
        if len(mentioned) != 1:
            return None
        (var,) = mentioned
        try:
            found = _deduced(var, part, {}, analyzer)
        except ValueError:
            return None
        result[var] = intersect([result[var], found], analyzer)
    return result
