"""ScheduleCPU: kernels get loops that suit a processor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record, replace
from relaxlang.ir import relax
from relaxlang.ir.configuration.function_targets import ATTRIBUTE
from relaxlang.ir.configuration.target import TARGETS, Target
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import Buffer, PrimFunc
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.passes.relax.split_layout_rewrite_preproc import only_called
from relaxlang.schedule.rules import schedule_function
from relaxlang.schedule.rules.processor import processor_of
from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.trace import run_lines

SCHEDULE = "schedule"
LEAST = 1 << 17


@record
class ScheduleCPU(PrimFuncPass):
    """Schedules PrimFuncs by rules that look at what they compute: tiles in registers, vector loops, threads.

    A function with the attribute `schedule`, the lines of a trace, is scheduled by that instead. Functions with
    parallel, vectorised or unrolled loops are scheduled already and stay as they are, and so do those that do fewer
    operations than `least` (some microseconds): loops of their own are not worth compiling. With `winograd=false`
    convolutions of 3 × 3 windows are summed up as they are written (`relaxlang/schedule/rules/winograd.py` tells by how
    much results differ else).

    Before:

        @T.prim_func
        def f(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
            T.func_attr({"schedule": ["i, j = sch.get_loops(\\"B\\")", "sch.parallel(i)"]})
            for i, j in T.grid(8, 64):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2)

    After:

        @T.prim_func
        def f(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
            for i in T.parallel(8):
                for j in range(64):
                    with T.block("B"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        T.reads(A[vi, vj])
                        T.writes(B[vi, vj])
                        B[vi, vj] = A[vi, vj] * T.float32(2)
    """

    least: int = LEAST
    winograd: bool = True

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        changed = dict(mod.functions)
        called = only_called(mod)
        for name, func in mod.prim_funcs():
            changed[name] = self.scheduled(func, ctx, constant_parameters(func, called.get(name, ())))
        return mod.with_functions(changed)

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return self.scheduled(func, ctx, frozenset())

    def scheduled(self, func: PrimFunc, ctx: PassContext, constants: frozenset[Buffer]) -> PrimFunc:
        """The function with better loops; `constants` are the parameters that are the same in every call."""
        if SCHEDULE in func.attrs:
            return replayed(func)
        own = func.attrs.get(ATTRIBUTE)
        if isinstance(own, Mapping) and own.get("kind") not in TARGETS.names():
            return func  # of TVM, for a device that this compiler has no rules for
        target = ctx.target if own is None else Target(own)
        if target is not None and target.kind != "llvm":
            return func  # C source keeps its loops as they are written: small and readable
        return schedule_function(func, replace(processor_of(target), constants=constants), self.least, self.winograd)


def constant_parameters(func: PrimFunc, calls: Sequence[relax.Call]) -> frozenset[Buffer]:
    """The parameters for which all of the calls, of which there are some, give constants."""
    given = [call.args[1].fields for call in calls if isinstance(call.args[1], relax.Tuple)]
    return frozenset(
        func.buffer_map[param]
        for k, param in enumerate(func.params)
        if given and param in func.buffer_map and all(k < len(f) and isinstance(f[k], relax.Constant) for f in given)
    )


def replayed(func: PrimFunc) -> PrimFunc:
    """The function after the trace in its attribute `schedule`, which goes. RLX1014 when that is no list of lines."""
    lines = func.attrs[SCHEDULE]
    if isinstance(lines, str):
        lines = tuple(lines.splitlines())
    if not isinstance(lines, tuple) or not all(isinstance(line, str) for line in lines):
        fail("RLX1014", "the attribute `schedule` is a list of lines", func.span)
    sch = Schedule(IRModule({"main": func.replace(attrs=func.attrs.without(SCHEDULE))}))
    run_lines(sch, lines, "<schedule>")
    made = sch.mod["main"]
    assert isinstance(made, PrimFunc)
    return made
