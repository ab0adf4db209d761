"""Traces: the instructions that made a schedule, as data and as text.

    b0 = sch.get_block("matmul")
    l1, l2, l3 = sch.get_loops(b0)
    l4, l5 = sch.split(l1, factors=[None, 8])

Blocks are b0, b1, …, loops l0, l1, …, sampled numbers v0, v1, …; the text is what a person would write in Python, and
`parse_trace` reads it back. It stands in a program as the function attribute `schedule`, a list of such lines, which
the pass `schedule-cpu` replays instead of choosing a schedule of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relaxlang.arith.index_map import IndexMap
from relaxlang.base.diagnostics import Diagnostics, fail
from relaxlang.base.record import record
from relaxlang.base.source import Source
from relaxlang.ir.prim import Add, BinaryOp, FloorDiv, FloorMod, IntImm, Mul, PrimExpr, Sub, Var
from relaxlang.ir.printing import script
from relaxlang.syntax import tree

if TYPE_CHECKING:
    from relaxlang.schedule.schedule import Schedule


class RV:
    """What an instruction gives: a random variable, as TVM says. It stands for a block, a loop or a number."""

    letter = "v"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class BlockRV(RV):
    """A block."""

    letter = "b"


class LoopRV(RV):
    """A loop."""

    letter = "l"


class ExprRV(RV):
    """A number that was sampled: `value`."""

    def __init__(self, value: int) -> None:
        self.value = value


@record
class Instruction:
    """A call of a schedule's method: positional and named arguments, and what it gave; `listed` when that is a list."""

    method: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: tuple[RV, ...]
    listed: bool = False


class Trace:
    """Instructions in order. Immutable."""

    def __init__(self, instructions: Sequence[Instruction] = ()) -> None:
        self.instructions = tuple(instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    def __add__(self, one: Instruction) -> Trace:
        return Trace((*self.instructions, one))

    def lines(self, schedule: str = "sch") -> tuple[str, ...]:
        """The text, a line for each instruction."""
        names: dict[RV, str] = {}
        return tuple(_line(one, names, schedule) for one in self.instructions)

    def as_python(self) -> str:
        """The text as the body of a function of a schedule `sch`."""
        lines = self.lines() or ("pass",)
        return "def apply_schedule(sch):\n" + "".join(f"    {line}\n" for line in lines)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def apply_to_schedule(self, sch: Schedule) -> dict[RV, RV]:
        """Run the instructions on another schedule, with the decisions that sampling took here."""
        values: dict[RV, RV] = {}
        for one in self.instructions:
            args = [_mapped(a, values) for a in one.args]
            made = getattr(sch, one.method)(*args, **{k: _mapped(v, values) for k, v in one.kwargs.items()})
            for old, new in zip(one.results, made if one.listed else [made]):
                values[old] = new
        return values

    def simplified(self) -> Trace:
        """Without instructions that only look something up that nobody uses."""
        used: set[RV] = set()
        kept: list[Instruction] = []
        for one in reversed(self.instructions):
            if one.method.startswith("get_") and not used & set(one.results):
                continue
            used |= set(_rvs((*one.args, *one.kwargs.values())))
            kept.append(one)
        return Trace(kept[::-1])


def _rvs(values: Iterable[Any]) -> Iterable[RV]:
    for value in values:
        if isinstance(value, RV):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _rvs(value)


def _mapped(value: Any, values: Mapping[RV, RV]) -> Any:
    if isinstance(value, RV):
        return values.get(value, value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(v, values) for v in value)
    return value


# --- writing ----------------------------------------------------------------------------------------------------------
def _line(one: Instruction, names: dict[RV, str], schedule: str) -> str:
    args = [_text(a, names) for a in one.args] + [f"{k}={_text(v, names)}" for k, v in one.kwargs.items()]
    for result in one.results:
        names[result] = f"{result.letter}{len(names)}"
    left = ", ".join(names[r] for r in one.results) + ("," if one.listed and len(one.results) == 1 else "")
    return (f"{left} = " if left else "") + f"{schedule}.{one.method}({', '.join(args)})"


def _text(value: Any, names: Mapping[RV, str]) -> str:
    if isinstance(value, RV):
        return names.get(value, "_")
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_text(v, names) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, IntImm):
        return str(value.value)
    if isinstance(value, PrimExpr):
        return script(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, IndexMap):
        indices = ", ".join(_plain(i) for i in value.final_indices)
        return f"lambda {', '.join(v.name for v in value.initial_indices)}: ({indices},)"
    return repr(value)


def _plain(e: PrimExpr) -> str:
    """An index expression without the types of its constants."""
    if isinstance(e, Var):
        return e.name
    if isinstance(e, IntImm):
        return str(e.value)
    if isinstance(e, BinaryOp) and type(e) in _SIGNS:
        return f"({_plain(e.a)} {_SIGNS[type(e)]} {_plain(e.b)})"
    return script(e)


_SIGNS: dict[type, str] = {Add: "+", Sub: "-", Mul: "*", FloorDiv: "//", FloorMod: "%"}


# --- reading ----------------------------------------------------------------------------------------------------------
def run_lines(sch: Schedule, lines: Sequence[str], name: str = "<schedule>") -> None:
    """Replay a trace's text on a schedule. RLX1014: a line that is no instruction; and what primitives report."""
    from relaxlang.syntax.parser import parse_surface

    source = Source(name, "\n".join(lines) + "\n")
    diagnostics = Diagnostics()
    module = parse_surface(source, diagnostics)
    diagnostics.check()
    names: dict[str, Any] = {}
    for stmt in module.body:
        _run(sch, stmt, names)


def _run(sch: Schedule, stmt: tree.Stmt, names: dict[str, Any]) -> None:
    call = stmt.value if isinstance(stmt, (tree.Assign, tree.ExprStmt)) else None
    if not isinstance(call, tree.Call) or not isinstance(call.func, tree.Attribute):
        fail("RLX1014", "a line of a schedule is a call such as `l1, l2 = sch.split(l0, factors=[None, 8])`", stmt.span)
    method = getattr(sch, call.func.attr, None)
    if call.func.attr not in sch.INSTRUCTIONS or method is None:
        fail("RLX1014", f"a schedule has no instruction `{call.func.attr}`", call.func.span)
    args = [argument(a, names) for a in call.args]
    kwargs = {k.name: argument(k.value, names) for k in call.keywords if k.name is not None}
    try:
        made = method(*args, **kwargs)
    except TypeError as reason:
        fail("RLX1014", f"`{call.func.attr}` does not take these arguments: {reason}", call.span)
    if isinstance(stmt, tree.Assign):
        target = stmt.targets[0]
        left = list(target.elements) if isinstance(target, (tree.TupleExpr, tree.ListExpr)) else [target]
        right = made if isinstance(made, list) and isinstance(target, (tree.TupleExpr, tree.ListExpr)) else [made]
        if len(left) != len(right):
            fail("RLX1014", f"`{call.func.attr}` gives {len(right)} values, not {len(left)}", stmt.span)
        for one, value in zip(left, right):
            if not isinstance(one, tree.Name):
                fail("RLX1014", "the results of an instruction go to names", one.span)
            names[one.id] = value


def argument(e: tree.Expr, names: Mapping[str, Any]) -> Any:
    """An argument of an instruction: a constant, a name of a result, a list or tuple of such, or an index map.
    RLX1014 for anything else."""
    if isinstance(e, tree.Constant):
        return e.value
    if isinstance(e, tree.Name):
        if e.id not in names:
            fail("RLX1014", f"nothing before this line is called `{e.id}`", e.span)
        return names[e.id]
    if isinstance(e, tree.UnaryOp) and e.op == "-":
        inner = argument(e.operand, names)
        return -inner
    if isinstance(e, tree.ListExpr):
        return [argument(x, names) for x in e.elements]
    if isinstance(e, tree.TupleExpr):
        return tuple(argument(x, names) for x in e.elements)
    if isinstance(e, tree.Lambda):
        return _lambda(e)
    fail("RLX1014", "an argument of an instruction is a number, a string, a name, or a list of such", e.span)


def _lambda(e: tree.Lambda) -> ParsedMap:
    """A function of indices, such as `lambda i, j: (i // 16, j, i % 16)`."""
    body = e.body.elements if isinstance(e.body, (tree.TupleExpr, tree.ListExpr)) else (e.body,)
    return ParsedMap(tuple(p.name for p in e.params), body)


class ParsedMap:
    """A lambda of a trace's text: it takes variables and gives expressions over them, as a Python function does."""

    def __init__(self, names: tuple[str, ...], body: tuple[tree.Expr, ...]) -> None:
        self.names = names
        self.body = body

    def __call__(self, *variables: Var) -> tuple[PrimExpr, ...]:
        known = dict(zip(self.names, variables))
        return tuple(_index(e, known) for e in self.body)


def _index(e: tree.Expr, params: Mapping[str, Var]) -> PrimExpr:
    if isinstance(e, tree.Constant) and type(e.value) is int:
        return IntImm(next(iter(params.values())).dtype, e.value)
    if isinstance(e, tree.Name) and e.id in params:
        return params[e.id]
    if isinstance(e, tree.BinOp) and e.op in _OPERATORS:
        made: PrimExpr = _OPERATORS[e.op](_index(e.left, params), _index(e.right, params))
        return made
    fail("RLX1014", "an index map consists of its parameters, integers, `+ - * // %`", e.span)


_OPERATORS: dict[str, Any] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b,
}  # fmt: skip
