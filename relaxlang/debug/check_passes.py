"""Which pass changes what a program computes? The program is interpreted after every pass, with every value held
against its struct info, and its results are compared with those before the first pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from relaxlang.analysis.well_formed import well_formed
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError
from relaxlang.interp import Interpreter
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.passes.base import Pass, PassContext
from relaxlang.runtime.ndarray import ShapeTuple

TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""How far results may be apart, relative to the largest element, by dtype; those that are not here must be equal."""


class Finding(NamedTuple):
    """What a step did wrong. `binding` is the first whose value differs from what its variable was before, where there
    is one; `before` and `after` are the modules around the step."""

    step: str
    message: str
    binding: relax.Binding | None
    before: IRModule
    after: IRModule

    def error(self) -> DiagnosticError:
        """The finding as a diagnostic."""
        notes = []
        if self.binding is not None:
            notes.append(f"the first value that differs is `{self.binding.var.name}`")
        found = Diagnostic("RLX3130", f"the pass `{self.step}` {self.message}", notes=notes, node=self.binding)
        return DiagnosticError([found])


class Run(NamedTuple):
    """One run: the results, arrays that the function wrote to included, and the values of bindings of Relax."""

    results: list[Any]
    values: dict[relax.Var, Any]
    order: list[relax.Binding]


Compiled = Callable[[IRModule, str, Sequence[Any]], Any]
"""Runs a lowered module as compiled code."""


def check_passes(
    mod: IRModule,
    passes: Sequence[Pass],
    name: str,
    args: Sequence[Any],
    context: PassContext | None = None,
    compiled: Compiled | None = None,
) -> Finding | None:
    """The first pass after which `name(*args)` gives another result, fails, or the module breaks a rule; None when all
    is well. With `compiled` the last step is code generation.

    Raises what the program raises before the first pass: it must run to be checked.
    """
    ctx = context or PassContext.current()
    want = interpreted(mod, name, args)
    last = want
    for step in passes:
        before = mod
        try:
            mod = ctx.apply(step, mod)
        except DiagnosticError as fault:
            return Finding(str(step), f"fails: {fault.diagnostics[0].message}", None, before, before)
        if mod is before:
            continue
        broken = [d for d in well_formed(mod) if d.level == "error"]
        if broken:
            return Finding(str(step), f"breaks a rule: {broken[0].code}, {broken[0].message}", None, before, mod)
        try:
            got = interpreted(mod, name, args)
        except DiagnosticError as fault:
            return Finding(str(step), f"makes the program fail: {fault.diagnostics[0].message}", None, before, mod)
        message = difference(want.results, got.results)
        if message:
            return Finding(str(step), f"changes the result: {message}", _first_changed(last, got), before, mod)
        last = got
    if compiled is None:
        return None
    try:
        held = [_copy(a) for a in args]
        result = compiled(mod, name, held)
    except DiagnosticError as fault:
        return Finding("code generation", f"makes the program fail: {fault.diagnostics[0].message}", None, mod, mod)
    message = difference(want.results, [*leaves(result), *leaves(tuple(held))])
    return Finding("code generation", f"changes the result: {message}", None, mod, mod) if message else None


def interpreted(mod: IRModule, name: str, args: Sequence[Any]) -> Run:
    """Interpret a function on copies of the arguments."""
    values: dict[relax.Var, Any] = {}
    order: list[relax.Binding] = []

    def note(binding: relax.Binding, value: Any) -> None:
        if binding.var not in values:
            order.append(binding)
        # Lowered code writes to tensors after they are bound: they are kept as they are, and looked at in the end.
        values[binding.var] = value

    held = [_copy(a) for a in args]
    result = Interpreter(mod, trace=note, verify=True).run(name, *held)
    return Run([*leaves(result), *leaves(tuple(held))], values, order)


def _copy(value: Any) -> Any:
    if isinstance(value, tuple) and not isinstance(value, ShapeTuple):
        return tuple(_copy(v) for v in value)
    return np.array(value) if isinstance(value, np.ndarray) else value


def leaves(value: Any) -> list[Any]:
    """The parts of a result that are no tuples, in order."""
    if isinstance(value, (tuple, list)) and not isinstance(value, ShapeTuple):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]


def _first_changed(before: Run, after: Run) -> relax.Binding | None:
    """The first binding whose variable had another value before the pass."""
    by_name = {v.name: value for v, value in before.values.items()}
    for binding in after.order:
        var = binding.var
        known = before.values.get(var, by_name.get(var.name))
        if known is None or callable(known):
            continue
        if difference(leaves(known), leaves(after.values[var])):
            return binding
    return None


def difference(want: list[Any], got: list[Any]) -> str:
    """How results differ, in words; empty when they do not."""
    if len(want) != len(got):
        return f"{len(got)} values for {len(want)}"
    for at, (a, b) in enumerate(zip(want, got)):
        found = _differ(a, b)
        if found:
            return found if len(want) == 1 else f"value {at} {found}"
    return ""


def _differ(a: Any, b: Any) -> str:
    if not isinstance(a, (np.ndarray, bool, int, float)):
        return "" if callable(a) or a == b else f"is {b!r}, and was {a!r}"
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape or x.dtype != y.dtype:
        return f"is {y.dtype}{list(y.shape)}, and was {x.dtype}{list(x.shape)}"
    rtol = TOLERANCE.get(x.dtype.name)
    if rtol is None:
        same = x == y
    else:
        x, y = x.astype(np.float64), y.astype(np.float64)
        finite = np.abs(x[np.isfinite(x)])
        same = np.isclose(y, x, rtol=rtol, atol=rtol * float(finite.max(initial=0.0)), equal_nan=True)
    if same.all():
        return ""
    where = tuple(int(i) for i in np.argwhere(~same)[0])
    place = f" at {list(where)}" if where else ""
    return f"is {y[where]}{place}, and was {x[where]}"
