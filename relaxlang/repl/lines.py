"""Which instruction of the virtual machine belongs to which binding: what a debugger needs beside the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from relaxlang.codegen.vm import emit_functions
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import walk
from relaxlang.runtime.exec_builder import ExecBuilder
from relaxlang.runtime.executable import Executable, KernelFunction, Register


class Line(NamedTuple):
    """A binding of a user's function: the variable, the instruction from which on it has its value, where that is (a
    register, or None for what is no register), and the binding as the module states it."""

    name: str
    end: int
    register: int | None
    binding: relax.Binding


class LineTable:
    """The lines of each function, in the order of the instructions."""

    def __init__(self, module: IRModule, lowered: IRModule, executable: Executable) -> None:
        """`module` is what the user sees, `lowered` what was compiled to `executable`."""
        self.lines: dict[str, list[Line]] = {}
        wanted = {name: _bindings(f) for name, f in module.relax_functions()}

        def note(function: str, binding: relax.Binding, operand: Any, position: int) -> None:
            seen = wanted.get(function, {}).get(binding.var.name)
            if seen is not None:
                register = operand.index if isinstance(operand, Register) else None
                self.lines.setdefault(function, []).append(Line(binding.var.name, position, register, seen))

        builder = ExecBuilder()
        for function in executable.functions:
            if isinstance(function, KernelFunction):
                builder.declare_kernel(function.signature)
        emit_functions(lowered, builder, note)

    def current(self, function: str, pc: int) -> Line | None:
        """The binding that instruction `pc` helps to compute; None behind the last one."""
        return next((line for line in self.lines.get(function, ()) if line.end > pc), None)

    def values(self, function: str, pc: int, params: tuple[str, ...], registers: list[Any]) -> dict[str, Any]:
        """The variables that have a value before instruction `pc`, parameters first; what was freed is left out."""
        known: Mapping[str, int | None] = {
            **{name: k for k, name in enumerate(params)},
            **{line.name: line.register for line in self.lines.get(function, ()) if line.end <= pc},
        }
        found = {name: registers[at] for name, at in known.items() if at is not None}
        return {name: value for name, value in found.items() if value is not None}


def _bindings(function: relax.Function) -> dict[str, relax.Binding]:
    return {n.var.name: n for n in walk(function) if isinstance(n, relax.Binding)}
