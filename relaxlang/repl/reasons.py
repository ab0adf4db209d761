"""Reasons that no pass states by itself: why dimensions are not proved equal, and why a loop is not vectorised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, product
from math import inf

from relaxlang.analysis.flops import work_of
from relaxlang.analysis.sizes import UPPER_BOUND
from relaxlang.arith import Analyzer, Bound
from relaxlang.base.diagnostics import DiagnosticError, fail
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import INT64, IntImm, PrimExpr, Var
from relaxlang.ir.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo
from relaxlang.ir.tir import BufferStore, For, PrimFunc
from relaxlang.ir.visit import free_vars, substitute, walk
from relaxlang.passes.base import PassContext
from relaxlang.passes.tir.lowering import LOWERING
from relaxlang.passes.tir.schedule_cpu import LEAST
from relaxlang.passes.tir.vectorize_loop import VectorizeLoop, why_no_vector_form
from relaxlang.repl.primitives import loop_result
from relaxlang.schedule import LoopRV, Schedule

TRIED = (0, 1, 2, 3, 4, 5, 7, 8, 16, 63, 64)
"""Sizes with which two dimensions are compared."""
MOST_TRIES = 2000
_NAME = re.compile(r"[A-Za-z_]\w*")


# --- dimensions -------------------------------------------------------------------------------------------------------
def dimensions(module: IRModule, text: str) -> tuple[relax.Function, dict[str, Var]]:
    """The Relax function whose symbolic dimensions a text names, and these by name; the first one that has them all."""
    wanted = set(_NAME.findall(text))
    known: set[str] = set()
    for _, function in module.relax_functions():
        names = {v.name: v for v in symbols_of(function)}
        if wanted <= set(names):
            return function, names
        known |= set(names)
    unknown = sorted(wanted - known)
    if not unknown:
        fail(
            "RLX7103", "no function has all these dimensions", help="dimensions of different functions are not compared"
        )
    near = did_you_mean(unknown[0], known)
    listed = "there are " + ", ".join(f"`{n}`" for n in sorted(known)[:12]) if known else "the module has none"
    fail(
        "RLX7103", f"there is no symbolic dimension `{unknown[0]}`", help=f"did you mean `{near}`?" if near else listed
    )


def symbols_of(function: relax.Function) -> list[Var]:
    """The symbolic dimensions of a function, in the order in which they occur."""
    infos = [p.struct_info for p in function.params]
    infos += [n.var.struct_info for n in walk(function) if isinstance(n, relax.Binding)]
    return list(dict.fromkeys(v for info in infos if info is not None for v in free_vars(info)))


def compare_dimensions(function: relax.Function, a: object, b: object, at: Span) -> str:
    """What is known of whether two dimensions of a function are equal, in words."""
    if not isinstance(a, (int, PrimExpr)) or not isinstance(b, (int, PrimExpr)) or isinstance(a, bool):
        fail("RLX7102", "dimensions are integers over symbolic dimensions", at, help="`:why-not equal n*2 m`")
    left, right = (IntImm(INT64, x) if isinstance(x, int) else prim.cast(x, INT64) for x in (a, b))
    analyzer = Analyzer()
    variables = list(dict.fromkeys(free_vars((left, right))))
    bounds = function.attrs.get(UPPER_BOUND)
    for var in variables:
        most = bounds.get(var.name, inf) if bounds is not None else inf
        analyzer.update(var, Bound(0, most))
    said = f"`{plain(left)}` and `{plain(right)}`"
    difference = analyzer.simplify(left - right)
    if analyzer.can_prove_equal(left, right):
        return f"{said} are equal: both are `{plain(analyzer.simplify(left))}`"
    if analyzer.can_prove(prim.NE(left, right)):
        return f"{said} are never equal: their difference is {plain(difference)}"
    lines = [f"{said} are not proved equal: nothing says that {plain(difference)} is 0"]
    lines += [f"  `{var.name}` is {origin(function, var)}{_range(analyzer, var)}" for var in variables]
    lines.append(f"  {_counterexample(analyzer, variables, left, right)}")
    one, two = {*free_vars(left)}, {*free_vars(right)}
    if one != two:
        apart = sorted(v.name for v in one ^ two)
        stand = f"{_listed(apart)} {'stands' if len(apart) == 1 else 'stand'} on one side alone"
        how = "give equal dimensions one name" if one and two else "declare the dimension as that number"
        lines.append(f"  {stand}: {how}, or check with `R.match_cast`")
    return "\n".join(lines)


def plain(expr: PrimExpr) -> str:
    """An integer expression without the types of its constants."""
    return re.sub(r"T\.int64\((-?\d+)\)", r"\1", str(expr))


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{n}`" for n in names)


def _range(analyzer: Analyzer, var: Var) -> str:
    low, high = analyzer.const_int_bound(var)
    return f"; at least {low:.0f}" + (f", at most {high:.0f}" if high != inf else "")


def origin(function: relax.Function, var: Var) -> str:
    """Where a symbolic dimension gets its value."""
    for param in function.params:
        for at, dim in enumerate(_dims(param.struct_info)):
            if dim == var:
                return f"dimension {at} of the parameter `{param.name}`"
    for node in walk(function):
        if isinstance(node, relax.MatchCast) and var in free_vars(node.struct_info):
            return f"found at run time, by the match_cast of `{node.var.name}`"
    for node in walk(function):
        if (
            isinstance(node, relax.Binding)
            and node.var.struct_info is not None
            and var in free_vars(node.var.struct_info)
        ):
            return f"a dimension of `{node.var.name}`, which depends on data"
    return "a symbolic dimension"


def _dims(info: StructInfo | None) -> tuple[PrimExpr, ...]:
    if isinstance(info, TensorStructInfo):
        return info.dims or ()
    return (info.values or ()) if isinstance(info, ShapeStructInfo) else ()


def _counterexample(analyzer: Analyzer, variables: list[Var], left: PrimExpr, right: PrimExpr) -> str:
    """Sizes for which two dimensions differ, or that none was found."""
    tried = 0
    for sizes in islice(_sizes(analyzer, variables), MOST_TRIES):
        values: dict[Var, PrimExpr] = {v: IntImm(v.dtype, n) for v, n in zip(variables, sizes)}
        a, b = (Analyzer().simplify(substitute(side, values)) for side in (left, right))
        tried += 1
        if isinstance(a, IntImm) and isinstance(b, IntImm) and a.value != b.value:
            given = ", ".join(f"{v.name} = {n}" for v, n in zip(variables, sizes))
            return f"they differ for {given}: {a.value} and {b.value}"
    return f"they are equal for all {tried} sizes that were tried, but the analyzer finds no proof"


def _sizes(analyzer: Analyzer, variables: list[Var]) -> Iterator[tuple[int, ...]]:
    """Values for variables, small ones first."""
    allowed = []
    for var in variables:
        low, high = analyzer.const_int_bound(var)
        allowed.append([n for n in TRIED if low <= n <= high])
    found = product(*allowed)
    return iter(sorted(islice(found, MOST_TRIES * 4), key=sum))


# --- loops ------------------------------------------------------------------------------------------------------------
def why_not_vectorized(sch: Schedule, var: Var, name: str) -> str:
    """What keeps a loop of a kernel from being vectors, in words."""
    loop = sch.state.loops[var]
    kernel = sch.mod.functions[name]
    assert isinstance(kernel, PrimFunc)  # whoever asks has made sure
    if loop.kind == "vectorized":
        flat = _flat(kernel, var.name)
        reason = why_no_vector_form(flat) if flat is not None else ""
        return f"`{var.name}` is marked as vectorised, but stays a loop: {reason}" if reason else (
            f"`{var.name}` is vectorised: {plain(loop.extent)} lanes")  # fmt: skip
    if not isinstance(loop.extent, IntImm):
        return (
            f"the extent of `{var.name}`, {plain(loop.extent)}, is not known while compiling\n"
            f"  `split {var.name} 8` in `:schedule {name}` makes an inner loop of 8, which can be vectorised"
        )
    trial = sch.copy()
    try:
        trial.vectorize(_result(trial, var))
    except DiagnosticError as fault:
        first = fault.diagnostics[0]
        help = f"\n  {first.help}" if first.help else ""
        return f"iterations of `{var.name}` depend on each other: {first.message}{help}"
    made = trial.mod.functions[name]
    assert isinstance(made, PrimFunc)
    flat = _flat(made, var.name)
    if flat is None:
        return f"`{var.name}` has one iteration: there is nothing to vectorise"
    reason = why_no_vector_form(flat)
    if reason:
        hint = f"\n  `split {var.name} 8` makes an inner loop of 8" if loop.extent.value > 8 else ""
        return f"`{var.name}` has no vector form: {reason}{hint}"
    return _possible(flat, var, kernel, name)


def _result(sch: Schedule, var: Var) -> LoopRV:
    return loop_result(sch, Span(Source("<loop>", var.name), 0, len(var.name)))


def _possible(flat: For, var: Var, kernel: PrimFunc, name: str) -> str:
    """A loop that could be vectors: whether that pays."""
    far = list(dict.fromkeys(text for text in _strided(flat)))
    if far:
        return f"`{var.name}` can be vectorised, but it does not pay: " + "; ".join(far[:4])
    flops = Analyzer().simplify(work_of(kernel).flops)
    if isinstance(flops, IntImm) and flops.value < LEAST:
        why = f"the kernel does {flops.value:,} operations, and below {LEAST:,} the rules leave loops as they are"
    else:
        why = "no rule has chosen it; the pass `schedule-cpu` schedules kernels"
    return f"nothing forbids to vectorise `{var.name}`: {why}\n  `vectorize {var.name}` in `:schedule {name}` does it"


def _flat(kernel: PrimFunc, name: str) -> For | None:
    """The vectorised loop as code generation meets it: over flat buffers, without blocks."""
    context = PassContext.current()
    for step in LOWERING:
        if isinstance(step, VectorizeLoop):
            break
        kernel = step.run_prim_func(kernel, context)
    loops = [n for n in walk(kernel.body) if isinstance(n, For) and n.kind == "vectorized"]
    return next((n for n in loops if n.loop_var.name == name), loops[0] if loops else None)


def _strided(loop: For) -> Iterator[str]:
    """The accesses below a loop whose neighbouring iterations touch elements that are not neighbours, in words."""
    var = loop.loop_var
    step = {var: prim.Add(var, IntImm(var.dtype, 1))}
    analyzer = Analyzer()
    for node in walk(loop.body):
        if not isinstance(node, (prim.BufferLoad, BufferStore)):
            continue
        index = node.indices[-1]
        stride = analyzer.simplify(substitute(index, step) - index)
        if isinstance(stride, IntImm) and stride.value in (0, 1):
            continue
        verb = "written" if isinstance(node, BufferStore) else "read"
        yield f"`{node.buffer.name}` is {verb} in steps of {plain(stride)} elements"
