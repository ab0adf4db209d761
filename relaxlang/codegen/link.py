"""The kernels of an executable, from its object code: all that a program needs to run that was compiled before."""

from __future__ import annotations

from relaxlang.base.diagnostics import fail
from relaxlang.codegen import jit
from relaxlang.codegen.pool import LAUNCH, pool
from relaxlang.codegen.processors import unfit
from relaxlang.runtime.executable import Executable
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.kernel_signature import SYMBOL_PREFIX


def link_executable(executable: Executable) -> dict[str, Kernel]:
    """The kernels of an executable. RLX5018 when its object code is for another machine."""
    check_machine(executable)
    signatures = list(executable.kernel_signatures())
    symbols = [SYMBOL_PREFIX + s.name for s in signatures]
    objects = [o.code for o in executable.objects]
    loaded = jit.load(objects, symbols, provided() if any(LAUNCH.encode() in code for code in objects) else {})
    return {s.name: Kernel(s, loaded.addresses[SYMBOL_PREFIX + s.name], loaded) for s in signatures}


def check_machine(executable: Executable) -> None:
    """RLX5018 when an executable's object code is for another machine."""
    for triple, cpu, features in {(o.triple, o.cpu, o.features): None for o in executable.objects}:
        reason = unfit(triple, cpu, features)
        if reason:
            help = "build it again here, or for a processor that both are compatible with, such as `-mcpu=x86-64`"
            fail("RLX5018", f"the executable's code does not run on this machine: {reason}", help=help)


def provided() -> dict[str, int]:
    """The functions of relaxlang itself that kernels call."""
    return {LAUNCH: pool().launch}
