"""Systems of linear inequalities over the integers: Fourier-Motzkin elimination, kept small."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.arith.linear import Linear
from relaxlang.ir.prim import PrimExpr

_MAX_ROWS = 160  # beyond that elimination gives up


def tightened(form: Linear) -> Linear:
    """The inequality `form` >= 0 with its common divisor taken out; over the integers the constant rounds down."""
    g = form.content()
    if g <= 1:
        return form
    return Linear({atom: c // g for atom, c in form.terms.items()}, form.const // g)


def contradictory(rows: Iterable[Linear]) -> bool:
    """Whether no integers satisfy all of `rows` >= 0. False also when elimination became too large to tell."""
    system = _strongest(rows)
    while system is not None:
        if not system:
            return False
        atom = _cheapest(system)
        system = _eliminated(system, atom)
    return True


def _strongest(rows: Iterable[Linear]) -> list[Linear] | None:
    """The rows, each left side once with its smallest constant; None when one of them is false by itself."""
    kept: dict[frozenset[tuple[PrimExpr, int]], Linear] = {}
    for row in rows:
        row = tightened(row)
        if not row.terms:
            if row.const < 0:
                return None
            continue
        key = frozenset(row.terms.items())
        other = kept.get(key)
        if other is None or row.const < other.const:
            kept[key] = row
    for row in kept.values():
        opposite = kept.get(frozenset((atom, -c) for atom, c in row.terms.items()))
        if opposite is not None and opposite.const + row.const < 0:
            return None
    return list(kept.values())


def _cheapest(system: list[Linear]) -> PrimExpr:
    """The atom whose elimination makes the fewest rows."""
    above: dict[PrimExpr, int] = {}
    below: dict[PrimExpr, int] = {}
    for row in system:
        for atom, c in row.terms.items():
            side = above if c > 0 else below
            side[atom] = side.get(atom, 0) + 1
    return min({**above, **below}, key=lambda atom: above.get(atom, 0) * below.get(atom, 0))


def eliminated(system: list[Linear], atom: PrimExpr) -> list[Linear]:
    """What the rows say about the other atoms: every lower bound of `atom` is at most every upper bound."""
    rows = [row for row in system if atom not in row.terms]
    lower = [row for row in system if row.terms.get(atom, 0) > 0]
    upper = [row for row in system if row.terms.get(atom, 0) < 0]
    for low in lower:
        for high in upper:
            rows.append(low.times(-high.terms[atom]).plus(high, low.terms[atom]))
    return rows


def _eliminated(system: list[Linear], atom: PrimExpr) -> list[Linear] | None:
    """As `eliminated`; None when that is contradictory, an empty system when it became too large."""
    rows = _strongest(eliminated(system, atom))
    return [] if rows is not None and len(rows) > _MAX_ROWS else rows
