"""From an executable to the object code of its native program: what is only imported when that is not in the cache."""

from __future__ import annotations

from relaxlang.codegen import cache, compile
from relaxlang.codegen.native.builtins import FAST
from relaxlang.codegen.native.emitter import Emitter, FastPaths
from relaxlang.codegen.native.entry import emit_entries
from relaxlang.codegen.native.kernels import call_kernel
from relaxlang.codegen.native.program_text import ProgramText
from relaxlang.codegen.native.table import Entry
from relaxlang.ir.configuration.target import Target
from relaxlang.runtime.executable import Call, Executable, Func, VMFunction
from relaxlang.runtime.params import expectations

TIDIED_LINES = 1000
"""Lines of LLVM text up to which a program is tidied. What it does between its kernels is little, so for a long one
that is not worth the time, which grows faster than the program."""
_TIDIED, _PLAIN = (Target({"kind": "llvm", "opt-level": level}) for level in (1, 0))
_PATHS = FastPaths(FAST, call_kernel)


def write_program(executable: Executable, observed: bool) -> tuple[bytes, list[Entry]]:
    """The object code of an executable for this machine, and what its table holds. An `observed` one measures every
    call of a kernel."""
    text, entries = program_text(executable, observed)
    if text.count("\n") <= TIDIED_LINES:
        return cache.fetch(text, _TIDIED, compile.tidied), entries
    return cache.fetch(text, _PLAIN, compile.object_code), entries


def program_text(executable: Executable, observed: bool = False) -> tuple[str, list[Entry]]:
    """The LLVM module of an executable for this machine, and what its table holds. An `observed` one measures every
    call of a kernel."""
    functions = [f if isinstance(f, VMFunction) else None for f in executable.functions]
    program = ProgramText(functions, observed)
    calls = [c for c in executable.instructions if isinstance(c, Call)]
    called = {c.func for c in calls} | {a.index for c in calls for a in c.args if isinstance(a, Func)}
    for index, function in enumerate(functions):
        if function is None:
            continue
        Emitter(program, executable, index, _PATHS, nested=index in called).emit()
        others = any(isinstance(c, Call) and _may_call(executable, c) for c in executable.code_of(function))
        emit_entries(program, index, expectations(executable, function), others)
    target = Target()
    return program.text(target.mtriple, compile.layout(target)), program.entries


def _may_call(executable: Executable, call: Call) -> bool:
    """Whether an instruction calls a Relax function of the program."""
    callee = executable.functions[call.func]
    return isinstance(callee, VMFunction) or callee.name == "vm.builtin.invoke_closure"
