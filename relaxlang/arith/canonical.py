"""The canonical form of sums: expression to linear form and back.

`ring` reads a tree of + - * as a linear form modulo 2**bits, which always holds. `Simplifier.linear` gives the form
that also holds over the integers: the same one, unless data may wrap around; then the tree is one opaque atom. `emit`
writes a form as an expression; forms that are equal are written the same way within one simplifier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from relaxlang.arith.classify import RING, preserves_value, type_range
from relaxlang.arith.linear import Linear
from relaxlang.arith.monomials import multiply
from relaxlang.arith.splits import merge_splits
from relaxlang.base.dtype import DType
from relaxlang.ir.prim import Add, Cast, FloorDiv, FloorMod, IntImm, Mul, PrimExpr, Sub, Var, cast, const, fold

if TYPE_CHECKING:
    from relaxlang.arith.simplify import Simplifier

Prepare = Callable[[PrimExpr], PrimExpr]
DIVISION = 8  # additions that a division is worth
_MAX_DEGREE = 16  # a product of more factors is left as it is
_MAX_EXPANSION = 24  # a product of sums is multiplied out up to this many terms


def is_multiple(expr: Any) -> bool:
    """Whether an expression is a product with a constant."""
    return expr.__class__ is Mul and (expr.b.__class__ is IntImm or expr.a.__class__ is IntImm)


def ring_parts(root: PrimExpr) -> list[PrimExpr]:
    """The nodes of the tree of sums and multiples at `root` and its leaves, operands before users, each node once."""
    done: list[PrimExpr] = []
    seen: set[int] = set()
    work: list[tuple[Any, bool]] = [(root, False)]
    while work:
        node, ready = work.pop()
        if ready:
            done.append(node)
            continue
        key = id(node)
        if key in seen:
            continue
        seen.add(key)
        cls = node.__class__
        if cls is Add or cls is Sub:
            work += ((node, True), (node.b, False), (node.a, False))
        elif cls is Mul and node.b.__class__ is IntImm:
            work += ((node, True), (node.a, False))
        elif cls is Mul and node.a.__class__ is IntImm:
            work += ((node, True), (node.b, False))
        else:
            done.append(node)
    return done


def ring_leaves(root: PrimExpr) -> tuple[list[tuple[Any, int]], int]:
    """The leaves of the tree of sums and multiples at `root`, left to right, each with its coefficient, and how many
    operations the tree takes as it stands; a division counts as several."""
    leaves: list[tuple[Any, int]] = []
    price = 0
    seen: set[int] = set()
    work: list[tuple[Any, int]] = [(root, 1)]
    while work:
        node, share = work.pop()
        cls = node.__class__
        if cls is Add or cls is Sub:
            work += ((node.a, share), (node.b, share if cls is Add else -share))
        elif cls is Mul and node.b.__class__ is IntImm:
            work.append((node.a, share * node.b.value))
        elif cls is Mul and node.a.__class__ is IntImm:
            work.append((node.b, share * node.a.value))
        else:
            leaves.append((node, share))
            if cls is not Mul:
                if cls is not Var and id(node) not in seen:
                    seen.add(id(node))
                    price += _division(node)
                continue
        if id(node) in seen:
            # A part that stands at several places: such trees can have very many paths.
            parts = ring_parts(root)
            return _shares(parts), sum(1 if part.__class__ in RING else _division(part) for part in parts)
        seen.add(id(node))
        price += 1
    leaves.reverse()
    return leaves, price


def _shares(parts: list[Any]) -> list[tuple[PrimExpr, int]]:
    """The leaves of a tree of sums (its `ring_parts`), left to right, each with its coefficient."""
    shares = {id(parts[-1]): 1}
    leaves = []
    for node in reversed(parts):
        share = shares[id(node)]
        cls = node.__class__
        if cls is Add or cls is Sub:
            left, right = id(node.a), id(node.b)
            shares[left] = shares.get(left, 0) + share
            shares[right] = shares.get(right, 0) + (share if cls is Add else -share)
        elif is_multiple(node):
            factor, of = node.b, node.a
            if factor.__class__ is not IntImm:
                factor, of = of, factor
            shares[id(of)] = shares.get(id(of), 0) + share * factor.value
        else:
            leaves.append((node, share))
    leaves.reverse()
    return leaves


def ring_of(s: Simplifier, expr: PrimExpr) -> Linear:
    """The linear form of an integer expression over simplified leaves, modulo 2**bits."""
    return _form_of(s, ring_leaves(expr)[0], _as_it_is) if expr.__class__ in RING else leaf_form(s, expr)


def _as_it_is(expr: PrimExpr) -> PrimExpr:
    return expr


def _form_of(s: Simplifier, leaves: list[tuple[Any, int]], prepare: Prepare) -> Linear:
    """The form of a tree of sums (its `ring_leaves`), each leaf first prepared: simplified, or taken as it is."""
    terms: dict[PrimExpr, int] = {}
    total = 0
    for leaf, share in leaves:
        if leaf.__class__ is IntImm:
            total += leaf.value * share
            continue
        if leaf.__class__ is Mul:
            form = product(s, leaf, prepare)
        else:
            simple = prepare(leaf)
            if simple.__class__ is Var:
                terms[simple] = terms.get(simple, 0) + share
                continue
            form = leaf_form(s, simple)
        total += form.const * share
        for atom, coefficient in form.terms.items():
            terms[atom] = terms.get(atom, 0) + coefficient * share
    return merge_splits(s, Linear({atom: c for atom, c in terms.items() if c}, total))


def leaf_form(s: Simplifier, leaf: PrimExpr) -> Linear:
    """The form of a simplified expression that is used as a term; casts that keep the value are looked through."""
    if isinstance(leaf, IntImm):
        return Linear({}, leaf.value)
    if leaf.__class__ in RING:
        return s.ring(leaf)
    if isinstance(leaf, Cast) and preserves_value(leaf):
        return s.linear(leaf.value)
    return Linear({leaf: 1})


def product(s: Simplifier, expr: PrimExpr, prepare: Prepare) -> Linear:
    """The form of a product of two expressions that are no constants: sums of monomials, or one opaque monomial."""
    factors: list[PrimExpr] = []
    work = [expr]
    while work:
        node = work.pop()
        if isinstance(node, Mul):
            work += (node.b, node.a)
        else:
            factors.append(node)
        if len(factors) + len(work) > _MAX_DEGREE:
            return _opaque(s, expr, prepare)
    result = Linear({}, 1)
    for factor in factors:
        form = leaf_form(s, prepare(factor))
        if (len(result.terms) + 1) * (len(form.terms) + 1) > _MAX_EXPANSION:
            return _opaque(s, expr, prepare)
        result = multiply(s, result, form, expr.dtype)
    return result


def _opaque(s: Simplifier, expr: PrimExpr, prepare: Prepare) -> Linear:
    assert isinstance(expr, Mul)
    a, b = prepare(expr.a), prepare(expr.b)
    made = expr if a is expr.a and b is expr.b else fold(Mul, a, b)
    if isinstance(made, Mul) and not is_multiple(made):
        s.factors.setdefault(made, (a, b))
        return Linear({made: 1})
    return s.ring(made)


# --- and back ---------------------------------------------------------------------------------------------------------
def simplify_ring(s: Simplifier, expr: PrimExpr) -> PrimExpr:
    """An integer sum or product in its canonical form, or as it stands where that takes fewer operations."""
    leaves, price_as_it_is = ring_leaves(expr)
    linear = s.ring.table.get(expr)
    if linear is None:
        linear = s.ring.table[expr] = _form_of(s, leaves, s.simplify)
    if not linear.terms:
        return const(linear.const, expr.dtype)
    key = (linear.key(), expr.dtype)
    known = s.written.get(key)
    price = cost(linear, expr.dtype) if known is None else known[1]
    if price > price_as_it_is:
        kept = _rebuilt(s, ring_parts(expr))
        known = kept if kept[1] < price else known
    if known is None:
        made = emit(linear, expr.dtype)
        known = expr if made == expr else made, price
    written = known[0]
    if written is None:
        known = written, _ = _rebuilt(s, ring_parts(expr))
    s.written[key] = known
    if written.__class__ in RING and written not in linear.terms:
        s.ring.table[written] = linear
    return written


def _rebuilt(s: Simplifier, parts: list[Any]) -> tuple[PrimExpr, int]:
    """The tree of sums with those parts over simplified leaves, and how many operations it takes."""
    made: dict[int, PrimExpr] = {}
    price = 0
    for node in parts:
        cls = node.__class__
        if cls is Mul and not is_multiple(node):
            a, b = s.simplify(node.a), s.simplify(node.b)
            made[id(node)] = node if a is node.a and b is node.b else fold(Mul, a, b)
            price += 1 + _operations(a) + _operations(b)
        elif cls in RING:
            a = made.get(id(node.a), node.a)
            b = made.get(id(node.b), node.b)
            made[id(node)] = node if a is node.a and b is node.b else fold(cls, a, b)
            price += 1
        else:
            made[id(node)] = leaf = s.simplify(node)
            price += _operations(leaf)
    return made[id(parts[-1])], price


def _operations(expr: Any) -> int:
    """How many additions, multiplications and casts an operand of a sum takes itself; a division counts as several."""
    if expr.__class__ is Cast:
        return 1 + _operations(expr.value)
    if expr.__class__ not in RING:
        return _division(expr)
    return sum(1 if part.__class__ in RING else _division(part) for part in ring_parts(expr))


def _division(expr: Any) -> int:
    return DIVISION if expr.__class__ is FloorDiv or expr.__class__ is FloorMod else 0


def cost(linear: Linear, dtype: DType) -> int:
    """How many additions, multiplications and casts `emit` writes; a division counts as several."""
    price = len(linear.terms) - 1 + (linear.const != 0)
    for atom, coefficient in linear.terms.items():
        price += (coefficient != 1 and coefficient != -1) + (atom.dtype is not dtype)
        if atom.__class__ is not Var:
            price += 1 if atom.__class__ is Mul else _division(atom)
    return price + (linear.const <= 0 and all(c < 0 for c in linear.terms.values()))


def emit(linear: Linear, dtype: DType) -> PrimExpr | None:
    """The form as an expression: a positive term first, the constant last. None when a number does not fit the type."""
    low, high = type_range(dtype)
    numbers = (linear.const, *linear.terms.values())
    if min(numbers) <= low or max(numbers) > high:
        return None
    terms, rest = list(linear.terms.items()), linear.const
    head = next((i for i, (_, c) in enumerate(terms) if c > 0), None)
    if head is not None:
        atom, coefficient = terms.pop(head)
        result = _scaled(atom, coefficient, dtype)
    elif rest > 0 or not terms:
        result, rest = IntImm(dtype, rest), 0
    else:
        atom, coefficient = terms.pop(0)
        if dtype.kind == "uint":
            return None
        result = _scaled(atom, coefficient, dtype)
    for atom, coefficient in terms:
        kind = Add if coefficient > 0 else Sub
        result = kind(result, _scaled(atom, abs(coefficient), dtype))
    if rest:
        result = (Add if rest > 0 else Sub)(result, IntImm(dtype, abs(rest)))
    return result


def _scaled(atom: PrimExpr, coefficient: int, dtype: DType) -> PrimExpr:
    term = atom if atom.dtype is dtype else cast(atom, dtype)
    return term if coefficient == 1 else Mul(term, IntImm(dtype, coefficient))


def fits(s: Simplifier, part: Linear, dtype: DType, whole: Linear | None = None) -> bool:
    """Whether a form that becomes the operand of something other than a sum keeps its mathematical value.

    `whole` is a form that is known to fit, of which `part` is what remains when some terms are taken out. Without
    `strict`, only data can fail: index expressions are mathematical there.
    """
    if part.const == 0 and len(part.terms) == 1:
        ((atom, coefficient),) = part.terms.items()
        if coefficient == 1 and atom not in s.factors:
            return True
    if not s.strict and not any(s.taint(atom) for atom in part.terms):
        return True
    low, high = type_range(dtype)
    least, most = _machine_bound(s, part)
    if whole is not None:
        taken_least, taken_most = _machine_bound(s, whole.minus(part))
        least, most = max(least, low - taken_most), min(most, high - taken_least)
    return low <= least and most <= high


def _machine_bound(s: Simplifier, linear: Linear) -> tuple[float, float]:
    """The bounds of a form whose atoms are in the range of their types; multiplied-out products may not be."""
    low: float = linear.const
    high: float = linear.const
    for atom, c in linear.terms.items():
        least, most = s.bound(atom)
        if atom not in s.factors:
            bottom, top = type_range(atom.dtype)
            least, most = max(least, bottom), min(most, top)
        low += c * (least if c > 0 else most)
        high += c * (most if c > 0 else least)
    return low, high
