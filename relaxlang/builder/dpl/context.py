"""Patterns over the bindings of a block: several values at once, and who uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import Token
from typing import NamedTuple

from relaxlang.base.diagnostics import fail
from relaxlang.builder.dpl.patterns import (
    CURRENT,
    CallPattern,
    FunctionPattern,
    Pattern,
    TupleGetItemPattern,
    TuplePattern,
)
from relaxlang.builder.dpl.state import State, Values
from relaxlang.builder.operands import operands
from relaxlang.ir import relax
from relaxlang.ir.visit import walk


class Edge(NamedTuple):
    """What `producer` matches is an operand of what `consumer` matches: number `argument` (-1: any), and of nothing
    else when `only`."""

    producer: Pattern
    consumer: Pattern
    argument: int
    only: bool


def current_context() -> PatternContext:
    """The context that is open. RLX0450 without one."""
    context = CURRENT.get()
    if context is None:
        fail("RLX0450", "`used_by` and `only_used_by` need an open pattern context",
             help="write `with PatternContext() as context:` around them")  # fmt: skip
    return context


class PatternContext:
    """Patterns that are matched together, each against a binding of one block.

        with PatternContext() as context:
            product = is_op("matmul")(wildcard(), wildcard())
            product >> is_op("nn.relu")(wildcard())
        found = context.match_dfb(block)

    Matched are the calls, tuples and fields made while the context was open, and the ends of `^` and `>>`.
    """

    def __init__(self) -> None:
        self.patterns: dict[Pattern, None] = {}
        self.edges: list[Edge] = []
        self._token: Token[PatternContext | None] | None = None

    def __enter__(self) -> PatternContext:
        self._token = CURRENT.set(self)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._token is not None:
            CURRENT.reset(self._token)
            self._token = None

    def add(self, pattern: Pattern) -> None:
        """Take in a pattern; calls, tuples and fields are matched against bindings."""
        if isinstance(pattern, (CallPattern, TuplePattern, TupleGetItemPattern, FunctionPattern)):
            self.patterns[pattern] = None

    def connect(self, producer: Pattern, consumer: Pattern, index: int = -1, only: bool = False) -> None:
        """State an edge."""
        self.patterns.update({producer: None, consumer: None})
        self.edges.append(Edge(producer, consumer, index, only))

    def match_dfb(self, block: relax.BindingBlock, values: Values | None = None) -> dict[Pattern, relax.Var] | None:
        """The variables that the patterns match in a block, None when they do not. Patterns inside others, wildcards
        too, are in the result where they matched a variable. `values` are those of variables bound outside."""
        found = next(self.matches(block, values or {}), None)
        return None if found is None else {p: v for p, v in found.found.items() if isinstance(v, relax.Var)}

    def matches(self, block: relax.BindingBlock, values: Values) -> Iterator[State]:
        """Every way in which the patterns match."""
        inside = {b.var: b.value for b in block.bindings}
        uses = users(block)
        yield from self._assign(list(self._targets()), State({**values, **inside}), inside, uses)

    def _targets(self) -> Iterator[Pattern]:
        """The patterns to look for, consumers first: what they match says what their operands match."""
        yield from reversed(self.patterns)

    def _assign(
        self, targets: list[Pattern], state: State, inside: Values, uses: Mapping[relax.Var, list[relax.Var]]
    ) -> Iterator[State]:
        waiting = [p for p in targets if p not in state.found]
        if not waiting:
            matched = [state.found[p] for p in targets]
            distinct = {v for v in matched if isinstance(v, relax.Var)}
            constraints = [c for p in state.found for c in p.constraints]
            if len(distinct) == len(matched) and all(c.holds(state) for c in constraints):
                yield state
            return
        pattern = waiting[0]
        for var in inside:
            for made in pattern.at(var, state):
                if self._edges_hold(made, inside, uses):
                    yield from self._assign(targets, made, inside, uses)

    def _edges_hold(self, state: State, inside: Values, uses: Mapping[relax.Var, list[relax.Var]]) -> bool:
        """Whether the edges hold whose ends have both matched."""
        for edge in self.edges:
            producer, consumer = state.found.get(edge.producer), state.found.get(edge.consumer)
            if producer is None or consumer is None:
                continue
            if not isinstance(producer, relax.Var) or not isinstance(consumer, relax.Var) or consumer not in inside:
                return False
            given = operands(inside[consumer])
            if producer not in (given if edge.argument < 0 else given[edge.argument : edge.argument + 1]):
                return False
            if edge.only and (uses.get(producer) != [consumer] or not isinstance(producer, relax.DataflowVar)):
                return False
        return True


def users(block: relax.BindingBlock) -> dict[relax.Var, list[relax.Var]]:
    """For each variable the variables of the block whose values mention it, each once."""
    found: dict[relax.Var, list[relax.Var]] = {}
    for binding in block.bindings:
        for var in {n: None for n in walk(binding.value) if isinstance(n, relax.Var)}:
            found.setdefault(var, []).append(binding.var)
    return found
