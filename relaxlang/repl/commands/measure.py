"""What a function costs, before it runs: its graph, its arithmetic, its memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from relaxlang.analysis.flops import work_of
from relaxlang.analysis.memory import timeline
from relaxlang.analysis.memory_report import memory_text
from relaxlang.arith import Analyzer
from relaxlang.base.diagnostics import fail
from relaxlang.base.source import Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.debug.inputs import DEFAULT_DIM
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import IntImm, PrimExpr, Var
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import free_vars, substitute, walk
from relaxlang.repl.command import Answer, Command, at_most, function_name, words
from relaxlang.repl.commands.look import function_choices, relax_function
from relaxlang.repl.drawing import drawn
from relaxlang.repl.invocation import sizes_of
from relaxlang.repl.reasons import plain, symbols_of

if TYPE_CHECKING:
    from relaxlang.repl.session import Session


def graph(session: Session, argument: Span) -> Answer:
    """Draw a function."""
    given = at_most(argument, 1, ":graph [FN]")
    function = session.module.functions[relax_function(session, given[0] if given else None)]
    assert isinstance(function, relax.Function)  # `relax_function` sees to it
    return Answer(drawn(function, session.width))


# --- arithmetic -------------------------------------------------------------------------------------------------------
class _Cost(NamedTuple):
    """What one call of a kernel does: floating-point and other operations, and the bytes of its buffers."""

    kernel: str
    flops: PrimExpr
    nbytes: PrimExpr


def flops(session: Session, argument: Span) -> Answer:
    """The arithmetic of a function, kernel by kernel."""
    word, sizes = _function_and_sizes(argument, ":flops [FN] [N=SIZE …]")
    if word is not None and isinstance(session.module.functions[function_name(session, word)], PrimFunc):
        kernel = session.module.functions[word.text]
        assert isinstance(kernel, PrimFunc)
        work = work_of(kernel)
        costs = [_Cost(word.text, work.flops, work.nbytes)]
    else:
        name = relax_function(session, word)
        costs = list(_costs(session.stages(name).fused, name))
    costs = _at_sizes(costs, {n: size for n, (size, _) in sizes.items()}, sizes)
    if not costs:
        return Answer("no kernels")
    rows = [("kernel", "operations", "bytes", "operations/byte"), *(_row(cost) for cost in costs)]
    if len(costs) > 1:
        rows.append(_row(_Cost("total", _sum([c.flops for c in costs]), _sum([c.nbytes for c in costs]))))
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    lines = ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]) for row in rows]
    return Answer("\n".join(line.rstrip() for line in lines))


def _row(cost: _Cost) -> tuple[str, str, str, str]:
    a, b = cost.flops, cost.nbytes
    ratio = f"{a.value / b.value:.3g}" if isinstance(a, IntImm) and isinstance(b, IntImm) and b.value else ""
    return cost.kernel, _number(a), _number(b), ratio


def _number(expr: PrimExpr) -> str:
    return f"{expr.value:,}" if isinstance(expr, IntImm) else plain(expr)


def _sum(parts: list[PrimExpr]) -> PrimExpr:
    total: PrimExpr = IntImm(prim.INT64, 0)
    for part in parts:
        total = total + part
    return Analyzer().simplify(total)


def _at_sizes(costs: list[_Cost], sizes: Mapping[str, int], given: Mapping[str, tuple[int, Span]]) -> list[_Cost]:
    """The costs with sizes in the places of symbolic dimensions. RLX7005 for a dimension that none of them has."""
    variables = {v for cost in costs for v in (*free_vars(cost.flops), *free_vars(cost.nbytes))}
    names = {v.name for v in variables}
    for name, (_, span) in given.items():
        if name not in names:
            near = did_you_mean(name, names)
            listed = "there are " + ", ".join(f"`{n}`" for n in sorted(names)) if names else "all sizes are known"
            help = f"did you mean `{near}`?" if near else listed
            fail("RLX7005", f"there is no dimension `{name}`", span, help=help)
    values: dict[Var, PrimExpr] = {v: IntImm(v.dtype, sizes[v.name]) for v in variables if v.name in sizes}
    analyzer = Analyzer()
    return [_Cost(c.kernel, *(analyzer.simplify(substitute(e, values)) for e in (c.flops, c.nbytes))) for c in costs]


def _costs(module: IRModule, name: str) -> Iterator[_Cost]:
    """What each call of a kernel in a function does, in the caller's dimensions."""
    for node in walk(module.functions[name]):
        if not isinstance(node, relax.Call) or not str(node.op).startswith("R.call_tir"):
            continue
        callee = node.args[0]
        kernel = module.functions.get(callee.name) if isinstance(callee, relax.GlobalVar) else None
        if not isinstance(kernel, PrimFunc) or not isinstance(callee, relax.GlobalVar):
            continue
        work = work_of(kernel)
        values = dict(_bound(kernel, node))
        yield _Cost(callee.name, *(substitute(e, values) for e in (work.flops, work.nbytes)))


def _bound(kernel: PrimFunc, call: relax.Call) -> Iterator[tuple[Var, PrimExpr]]:
    """The kernel's symbolic dimensions, each with what it is for this call."""
    args = call.args[1].fields if isinstance(call.args[1], relax.Tuple) else ()
    infos = [*(a.struct_info for a in args), *_fields(call.sinfo_args[0])]
    buffers = [kernel.buffer_map.get(p) for p in kernel.params]
    for buffer, info in zip(buffers, infos):
        if buffer is not None and isinstance(info, TensorStructInfo) and info.dims is not None:
            for dim, size in zip(buffer.shape, info.dims):
                if isinstance(dim, Var):
                    yield dim, prim.cast(size, dim.dtype)


def _fields(info: StructInfo) -> tuple[StructInfo, ...]:
    return info.fields if isinstance(info, TupleStructInfo) else (info,)


def _function_and_sizes(argument: Span, usage: str) -> tuple[Span | None, dict[str, tuple[int, Span]]]:
    given = words(argument)
    named = [w for w in given if "=" not in w.text]
    if len(named) > 1:
        fail("RLX7102", "one function is looked at at a time", named[1], help=f"usage: `{usage}`")
    return named[0] if named else None, sizes_of([w for w in given if "=" in w.text])


# --- memory -----------------------------------------------------------------------------------------------------------
def memory(session: Session, argument: Span) -> Answer:
    """The memory of a function over time."""
    word, sizes = _function_and_sizes(argument, ":mem [FN] [N=SIZE …]")
    name = relax_function(session, word)
    function = session.module.functions[name]
    assert isinstance(function, relax.Function)  # `relax_function` sees to it
    dims = {v.name: DEFAULT_DIM for v in symbols_of(function)}
    for size_name, (_, span) in sizes.items():
        if size_name not in dims:
            listed = "there are " + ", ".join(f"`{n}`" for n in dims) if dims else "all sizes are known"
            fail("RLX7005", f"there is no dimension `{size_name}`", span, help=listed)
    assumed = ", ".join(f"{n} = {size}" for n, size in dims.items() if n not in sizes)
    dims.update({n: size for n, (size, _) in sizes.items()})
    planned = session.stages(name).planned
    text = memory_text([timeline(planned, name, dims)]).rstrip("\n")
    return Answer(text + (f"\nwith {assumed}" if assumed else ""))


COMMANDS: tuple[Command, ...] = (
    Command("graph", ":graph [FN]", "draw what a function computes from what", graph, function_choices),
    Command(
        "flops",
        ":flops [FN] [N=SIZE …]",
        "the arithmetic and the bytes of each kernel of a function\nN=SIZE gives a symbolic dimension a size.",
        flops,
        function_choices,
    ),
    Command(
        "mem",
        ":mem [FN] [N=SIZE …]",
        "when a function needs which memory, after planning\nN=SIZE gives a symbolic dimension a size.",
        memory,
        function_choices,
    ),
)
