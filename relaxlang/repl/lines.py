"""Which instruction of the virtual machine belongs to which binding: what a debugger needs beside the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from relaxlang.codegen.vm import emit_functions
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import TensorStructInfo
from relaxlang.ir.visit import walk
from relaxlang.runtime.exec_builder import ExecBuilder
from relaxlang.runtime.executable import VM, VOID, Call, Executable, KernelFunction, Register, VMFunction


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
        self._entry: dict[str, int] = {}
        wanted = {name: _bindings(f) for name, f in module.relax_functions()}  # by name and place of their variables
        self._infos = {
            name: {v.name: v.struct_info for v in (*f.params, *(b.var for b in wanted[name].values()))}
            for name, f in module.relax_functions()
        }

        def note(function: str, binding: relax.Binding, operand: Any, position: int) -> None:
            seen = _find(wanted.get(function, {}), binding.var)
            if seen is not None:
                register = operand.index if isinstance(operand, Register) and operand not in (VOID, VM) else None
                self.lines.setdefault(function, []).append(Line(binding.var.name, position, register, seen))

        for code in executable.vm_functions():
            self._entry[code.name] = _entry_length(executable, code)
        builder = ExecBuilder()
        for function in executable.functions:
            if isinstance(function, KernelFunction):
                builder.declare_kernel(function.signature)
        emit_functions(lowered, builder, note)

    def begun(self, function: str, pc: int) -> bool:
        """Whether instruction `pc` is past the checks of the arguments with which every function begins."""
        return pc >= self._entry.get(function, 0)

    def current(self, function: str, pc: int) -> Line | None:
        """The binding that instruction `pc` helps to compute; None behind the last one."""
        return next((line for line in self.lines.get(function, ()) if line.end > pc), None)

    def values(self, function: str, pc: int, params: tuple[str, ...], registers: list[Any]) -> dict[str, Any]:
        """The variables that have a value before instruction `pc`, parameters first, and the symbolic dimensions that
        their shapes tell; what was freed is left out."""
        known: Mapping[str, int | None] = {
            **{name: k for k, name in enumerate(params)},
            **{line.name: line.register for line in self.lines.get(function, ()) if line.end <= pc},
        }
        found = {name: registers[at] for name, at in known.items() if at is not None}
        values = {name: value for name, value in found.items() if value is not None}
        return {**values, **self._sizes(function, values)}

    def _sizes(self, function: str, values: Mapping[str, Any]) -> dict[str, int]:
        """The symbolic dimensions that the shapes of known variables tell, by name."""
        sizes: dict[str, int] = {}
        for name, value in values.items():
            info = self._infos.get(function, {}).get(name)
            if isinstance(info, TensorStructInfo) and isinstance(value, np.ndarray):
                for dim, size in zip(info.dims or (), value.shape):
                    if isinstance(dim, prim.Var) and dim.name not in values:
                        sizes.setdefault(dim.name, size)
        return sizes


_ENTRY = ("vm.builtin.alloc_shape_heap", "vm.builtin.check_", "vm.builtin.match_shape", "vm.builtin.match_prim_value")


def _entry_length(executable: Executable, function: VMFunction) -> int:
    """How many instructions at the beginning of a function look at its arguments alone."""
    code = executable.instructions[function.start : function.start + function.count]
    for at, instruction in enumerate(code):
        if not isinstance(instruction, Call) or not executable.functions[instruction.func].name.startswith(_ENTRY):
            return at
    return len(code)


Key = tuple[str, int]


def _bindings(function: relax.Function) -> dict[Key, relax.Binding]:
    """The bindings of a function by the names of their variables and where these stand (-1 where that is not known)."""
    return {_key(n.var): n for n in walk(function) if isinstance(n, relax.Binding)}


def _key(var: relax.Var) -> Key:
    return var.name, -1 if var.span is None else var.span.start


def _find(wanted: Mapping[Key, relax.Binding], var: relax.Var) -> relax.Binding | None:
    """The binding that a variable of lowered code comes from. Passes keep names and places; where one lost the place
    the name alone must do, unless it is `_`, which they give to what they add."""
    found = wanted.get(_key(var))
    if found is None and var.name != "_":
        found = next((b for (name, _), b in wanted.items() if name == var.name), None)
    return found
