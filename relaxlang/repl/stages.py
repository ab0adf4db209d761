"""A module on its way to a program: each stage is made when it is first looked at, and once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from relaxlang import driver
from relaxlang.ir.module import IRModule
from relaxlang.passes.base import PassContext, Sequential
from relaxlang.passes.pipelines import AFTER_PLANNING, MINIMUM, pipeline

if TYPE_CHECKING:
    from relaxlang.codegen.kernel import CompiledKernel
    from relaxlang.repl.lines import LineTable
    from relaxlang.runtime.module import RuntimeModule
    from relaxlang.runtime.vm import VirtualMachine


PLANNING = "static-plan-block-memory"


class Stages:
    """The stages of a module under a pipeline, for a target (text, or "" for this machine). `whole` is what the module
    is a part of; it is kept alive as long as its part."""

    def __init__(
        self, module: IRModule, pipeline_text: str = "default", target: str = "", whole: IRModule | None = None
    ) -> None:
        self.module = module
        self.whole = whole
        self.passes = pipeline(pipeline_text).passes
        self.target_text = target

    @cached_property
    def target(self) -> Any:
        """The target."""
        from relaxlang.codegen.target import as_target

        return as_target(self.target_text or None)

    @cached_property
    def fused(self) -> IRModule:
        """The module with its kernels as they are before loops are scheduled. Operators that the pipeline leaves become
        kernels of their own."""
        names = [p.name for p in self.passes]
        end = min(names.index("schedule-cpu") if "schedule-cpu" in names else len(names), self._graph_passes)
        return self._after(self._after(self.module, Sequential(self.passes[:end])), pipeline("legalize-ops"))

    @cached_property
    def before_planning(self) -> IRModule:
        """The module just before memory is planned: every tensor has memory of its own."""
        names = [p.name for p in self.passes]
        end = next((i for i, name in enumerate(names) if name in (PLANNING, *AFTER_PLANNING)), len(names))
        missing = [name for name in ("to-non-dataflow", "call-tir-rewrite") if name not in names[:end]]
        return self._after(self.module, Sequential((*self.passes[:end], *(pipeline(name) for name in missing))))

    @cached_property
    def planned(self) -> IRModule:
        """The module with its memory planned."""
        return self._after(self.before_planning, pipeline(PLANNING))

    @cached_property
    def scheduled(self) -> IRModule:
        """The module after the passes that come before lowering to the virtual machine."""
        return self._after(self.module, Sequential(self.passes[: self._graph_passes]))

    @cached_property
    def lowered(self) -> IRModule:
        """The module as code generation takes it: after the rest of the pipeline and, where it lacks them, the passes
        that every program needs."""
        lowered = self._after(self.scheduled, Sequential(self.passes[self._graph_passes :]))
        if {p.name for p in self.passes}.issuperset(MINIMUM):
            return lowered
        return self._after(lowered, pipeline("minimum"))

    @property
    def _graph_passes(self) -> int:
        return next((i for i, p in enumerate(self.passes) if p.name in MINIMUM), len(self.passes))

    def _after(self, module: IRModule, passes: Sequential) -> IRModule:
        return driver.lower(module, passes, context=PassContext(target=self.target))

    @cached_property
    def kernels(self) -> Mapping[str, CompiledKernel]:
        """The kernels as LLVM text, compiled further when they are asked for it."""
        from relaxlang.codegen.kernel import emit_kernels

        return emit_kernels(dict(self.lowered.prim_funcs()), self.target)

    @cached_property
    def program(self) -> RuntimeModule:
        """The built program."""
        return driver.generate(self.lowered, self.target)

    @cached_property
    def runnable(self) -> RuntimeModule:
        """The built program with its kernels in this process. RLX5018 when it is for another machine."""
        from relaxlang.runtime.module import runtime_module

        program = self.program
        if not program.kernels and program.executable.objects:
            return runtime_module(program.executable, None, program.ir_module)
        return program

    @cached_property
    def machine(self) -> VirtualMachine:
        """A virtual machine with the program."""
        from relaxlang.runtime.vm import VirtualMachine

        return VirtualMachine(self.runnable, exec_mode="bytecode")  # so that errors tell where they come from

    @cached_property
    def lines(self) -> LineTable:
        """Which instructions belong to which bindings of the module."""
        from relaxlang.repl.lines import LineTable

        return LineTable(self.module, self.lowered, self.program.executable)
