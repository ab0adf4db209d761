"""One file on its way through the compiler: each stage is made when it is first asked for, and once."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING

from relaxlang.base.diagnostics import Diagnostic, fail
from relaxlang.cli.crash import CrashGuard
from relaxlang.cli.settings import Settings, bound_sizes, definitions

if TYPE_CHECKING:
    from relaxlang.base.source import Source
    from relaxlang.cli.instruments import BeforeScheduling
    from relaxlang.cli.parts import Part
    from relaxlang.cli.run import Call
    from relaxlang.codegen.aot.library import AotLibrary
    from relaxlang.codegen.build_cache import Build
    from relaxlang.codegen.kernel import CompiledKernel
    from relaxlang.ir.configuration.target import Target
    from relaxlang.ir.module import IRModule
    from relaxlang.passes.base import Pass, PassContext
    from relaxlang.runtime.executable import Executable
    from relaxlang.runtime.module import RuntimeModule

BUILT = (".rlxe", ".so", ".dylib", ".dll")
"""Suffixes of files that hold a built program."""
IMPORTED = (".onnx",)
"""Suffixes of files that hold a model of another framework."""


class Compilation:
    """A file, or a part of it, and what was made of it so far; `guard` is told the program's text, for a crash report.

    `call` is what `--run` calls, once that is known, `warnings` what reading the text warned of. Every stage raises
    `RelaxlangError`s.
    """

    def __init__(
        self, name: str, settings: Settings, guard: CrashGuard, source: Source | None = None, part: Part | None = None
    ) -> None:
        """`source` is the file's text when it was read already."""
        self.name = name
        self.settings = settings
        self.guard = guard
        self.part = part
        self.call: Call | None = None
        self.warnings: list[Diagnostic] = []
        self._source = source
        self._context: PassContext | None = None
        self._before_scheduling: BeforeScheduling | None = None

    @property
    def is_built(self) -> bool:
        """Whether the file holds a built program, so that there is no module and only code and bytecode to look at."""
        return os.path.splitext(self.name)[1] in BUILT

    @property
    def is_imported(self) -> bool:
        """Whether the file is a model of another framework, so that there is no text but the one made of it."""
        return os.path.splitext(self.name)[1] in IMPORTED

    @property
    def stem(self) -> str:
        """The name that outputs get before their suffix: the file's, in the current directory."""
        stem = os.path.splitext(os.path.basename(self.name))[0]
        return stem if self.part is None else f"{stem}.{self.part.number}"

    @cached_property
    def parsed(self) -> IRModule:
        """The module as it stands in the file, its dimensions that `--bind` names being numbers."""
        sizes = bound_sizes(self.settings.line)
        if not sizes:
            return self._read
        from relaxlang.passes.relax.bind_symbolic_vars import bind_symbolic_vars

        return bind_symbolic_vars(self._read, sizes)

    @cached_property
    def _read(self) -> IRModule:
        if self.is_built:
            fail("RLX7003", f"`{self.name}` is a built program, which can be run or shown by `--emit=vm` only")
        if self.is_imported:
            with self.settings.clock.phase("import"):
                from relaxlang.frontend.onnx import from_onnx

                return from_onnx(self.name)
        with self.settings.clock.phase("parse"):
            from relaxlang import driver

            values, roots = definitions(self.settings.line, self.source.text), self.settings.roots
            place = None if self.part is None else (self.part.start, self.part.end)
            sink = self.warnings.append
            return driver.parse_source(self.source, values=values, roots=roots, part=place, warnings=sink)

    @cached_property
    def source(self) -> Source:
        """The text of the file."""
        from relaxlang import driver
        from relaxlang.syntax.decode import decode_source

        source = self._source
        if source is None:
            shown = "<stdin>" if self.name == "-" else self.name
            data = sys.stdin.buffer.read() if self.name == "-" else driver.read_file(self.name)
            source = decode_source(shown, data)
        self.guard.text = source.text if self.part is None else source.text[self.part.start : self.part.end]
        return source

    @cached_property
    def configured(self) -> IRModule:
        """The module as it stands in the file, with what the command line asks of the build as its attributes."""
        if not self.settings.build.asked:
            return self.parsed
        from relaxlang import driver

        return driver.with_config(self.parsed, *self.settings.build, context=self.pass_context())

    @cached_property
    def rewritten(self) -> IRModule:
        """The module after the pipeline that was asked for; as it stands in the file when none was."""
        if not self.settings.own_pipeline:
            return self.parsed
        return self._after(self.scheduled, self.settings.passes[self._graph_passes :])

    @cached_property
    def scheduled(self) -> IRModule:
        """The module after the passes that come before lowering to the virtual machine."""
        return self._after(self.configured, self.settings.passes[: self._graph_passes])

    @property
    def planned(self) -> IRModule:
        """The module with its memory planned, as it is before it is lowered to the virtual machine."""
        from relaxlang.passes.pipelines import AFTER_PLANNING

        steps = (*self.settings.passes[self._graph_passes :], *self.settings.lowering)
        end = next((i for i, step in enumerate(steps) if step.name in AFTER_PLANNING), len(steps))
        return self._after(self.scheduled, steps[:end])

    @cached_property
    def lowered(self) -> IRModule:
        """The module as code generation takes it."""
        from relaxlang.analysis.contradictions import require_buildable

        require_buildable(self.parsed)
        if self.settings.own_pipeline:
            return self._after(self.rewritten, self.settings.lowering)
        rest = self.settings.passes[self._graph_passes :]
        return self._after(self.scheduled, (*rest, *self.settings.lowering))

    @property
    def _graph_passes(self) -> int:
        from relaxlang.passes.pipelines import MINIMUM

        names = [step.name for step in self.settings.passes]
        return next((i for i, name in enumerate(names) if name in MINIMUM), len(names))

    def _after(self, mod: IRModule, passes: Sequence[Pass]) -> IRModule:
        if not passes:
            return mod
        with self.settings.clock.phase("passes"):
            context = self.pass_context()
            for step in passes:
                mod = context.apply(step, mod)
            return mod

    def pass_context(self) -> PassContext:
        """What passes may ask, with the instruments that were asked for."""
        if self._context is None:
            from relaxlang import driver
            from relaxlang.ir.configuration.compiler_config import CompilerConfig
            from relaxlang.passes.base import PassContext

            settings = self.settings
            target = settings.target or CompilerConfig.of(self.parsed).primitive_target
            from relaxlang.cli.instruments import BeforeScheduling

            self._before_scheduling = BeforeScheduling()
            instruments = settings.instruments(self.name if self.part is None else self.stem, self.stem)
            watching = (*instruments, self._before_scheduling)
            asked = PassContext(disabled=settings.skipped, instruments=watching)
            self._context = asked.compiling(target, driver.evaluate)
        return self._context

    @property
    def unscheduled(self) -> IRModule:
        """The module as it was before its loops were scheduled; the lowered one when they were not."""
        lowered = self.lowered
        return self._before_scheduling.module or lowered if self._before_scheduling is not None else lowered

    @cached_property
    def kernels(self) -> Mapping[str, CompiledKernel]:
        """The kernels as LLVM text, compiled further when they are asked for it."""
        from relaxlang.codegen.kernel import emit_kernels

        lowered = self.lowered
        with self.settings.clock.phase("llvm"):
            return emit_kernels(dict(lowered.prim_funcs()), self.target)

    @property
    def target(self) -> Target:
        """The target of kernels that state none."""
        from relaxlang.ir.configuration.compiler_config import CompilerConfig
        from relaxlang.ir.configuration.target import Target

        return CompilerConfig.of(self.lowered).primitive_target or Target()

    @cached_property
    def program(self) -> RuntimeModule:
        """The built program."""
        from relaxlang import driver

        if self.is_built:
            with self.settings.clock.phase("load"):
                return driver.load_module(self.name)
        known = self._known
        with self.settings.clock.phase("load"):
            found = known.find() if known is not None else None
        if found is not None:
            found.ir_module = lambda: driver.bound(self.lowered)
            return found
        with nullcontext() if known is None else known.memory():
            lowered = self.lowered
            with self.settings.clock.phase("code"):
                built = driver.generate(lowered)
        if known is not None:
            known.keep(built)
        return built

    @cached_property
    def _known(self) -> Build | None:
        """The build as the cache of programs may know it; None when the command line asks for passes of its own or
        wants to see them run."""
        if self.settings.own_pipeline or self.settings.watches_passes:
            return None
        from relaxlang.codegen.build_cache import build_of
        from relaxlang.passes.base import PassContext

        target, host, executor, runtime, name = self.settings.build
        asked = (target, host, executor, runtime, None, name)
        return build_of(self.parsed, asked, "default", PassContext(disabled=self.settings.skipped), by="relaxc")

    @property
    def executable(self) -> Executable:
        """The program as data."""
        return self.program.executable

    def runnable(self) -> RuntimeModule:
        """The program with its kernels in this process, or RLX5018 when it is for another machine."""
        from relaxlang.runtime.module import runtime_module

        program = self.program
        if not program.kernels and program.executable.objects:
            return runtime_module(program.executable, None, program.ir_module)
        return program

    @cached_property
    def library(self) -> AotLibrary | None:
        """What the executor `aot` made for C programs; None for other executors."""
        from relaxlang.ir.configuration.compiler_config import CompilerConfig

        if CompilerConfig.of(self.lowered).executor.kind != "aot":
            return None
        from relaxlang.codegen.aot.library import AotExecutorFactory

        program = self.program
        return program.library if isinstance(program, AotExecutorFactory) else None

    @cached_property
    def llvm(self) -> str:
        """All kernels, or a library ahead of time, as one LLVM module, before LLVM's passes."""
        if self.library is not None:
            return self.library.llvm
        from relaxlang.codegen.compile import joined

        return joined([kernel.llvm for kernel in self.kernels.values()])
