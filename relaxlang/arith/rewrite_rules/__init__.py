"""The rule tables of the simplifier, and the dispatch to them.

Reading order: `min_max`, `comparison`, `logic`, `select`, `division`, `bits`, `floats`. A table is a list of
equations (see `arith/rule.py`) with the types that they hold for. Rules are compiled when a node is simplified whose
class and operands' classes are theirs.
"""

from __future__ import annotations

from typing import Any, Literal

from relaxlang.arith.rewrite_rules import bits, comparison, division, floats, logic, min_max, select
from relaxlang.arith.rule import Rewrite, Rule, Variant, compiled, root_of, variants
from relaxlang.base.dtype import DType
from relaxlang.ir.prim import CmpOp, PrimExpr

Domain = Literal["int", "bool", "float", "vector"]

# Each table with the types that its rules hold for: the type of the operands, for a comparison.
TABLES: tuple[tuple[tuple[Domain, ...], list[Rule]], ...] = (
    (("int",), min_max.RULES),
    (("int",), comparison.RULES),
    (("bool",), logic.RULES),
    (("int", "bool", "float", "vector"), select.RULES),
    (("int",), division.RULES),
    (("int",), bits.RULES),
    (("float",), floats.RULES),
)

_Key = tuple[str, str]
_Heads = tuple[type, ...]


class _Table:
    """The rules of one class and domain, found by the classes of the operands."""

    def __init__(self, rules: list[Rule]) -> None:
        self.variants = [variant for one in rules for variant in variants(one)]
        self.compiled: dict[Variant, Rewrite] = {}
        self.by_heads: dict[_Heads, list[Rewrite]] = {}

    def select(self, heads: _Heads) -> list[Rewrite]:
        """The rules that a node with such operands may match."""
        names = [head.__name__ for head in heads]
        found = [
            variant
            for variant in self.variants
            if len(variant.heads) != len(names) or all(w is None or w == n for w, n in zip(variant.heads, names))
        ]
        new = [variant for variant in found if variant not in self.compiled]
        self.compiled.update(zip(new, compiled(new)))
        self.by_heads[heads] = [self.compiled[variant] for variant in found]
        return self.by_heads[heads]


_tables: dict[tuple[type, Domain], _Table | None] = {}


def domain(of: DType) -> Domain:
    """The kind of arithmetic that a type has."""
    if of.lanes != 1:
        return "vector"
    if of.kind in ("int", "uint"):
        return "int"
    return "bool" if of.kind == "bool" else "float"


def rewrite(node: Any, s: Any) -> PrimExpr | None:
    """The node rewritten by the first rule that matches; None when none does. Operands must be simplified."""
    cls = node.__class__
    key = cls, domain(node.a.dtype if issubclass(cls, CmpOp) else node.dtype)
    if key not in _tables:
        rules = [one for domains, table in TABLES if key[1] in domains for one in table if root_of(one) == cls.__name__]
        _tables[key] = _Table(rules) if rules else None
    found = _tables[key]
    if found is None:
        return None
    heads = _heads(node)
    candidates = found.by_heads.get(heads)
    for candidate in found.select(heads) if candidates is None else candidates:
        made = candidate(node, s)
        if made is not None:
            return made
    return None


def _heads(node: Any) -> _Heads:
    if hasattr(node, "b"):
        return node.a.__class__, node.b.__class__
    return ()
