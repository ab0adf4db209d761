"""Delta debugging: the smallest program that still shows a fault (after Zeller's ddmin and C-Reduce)."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from types import TracebackType

from relaxlang import driver
from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError, fail
from relaxlang.base.node import Node
from relaxlang.debug.check_passes import Compiled, check_passes
from relaxlang.debug.inputs import Filler, Parameter
from relaxlang.debug.shrink import STEPS
from relaxlang.debug.shrink_tir import smaller_statements
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import OBJECT
from relaxlang.ir.visit import walk
from relaxlang.passes.base import Pass, PassContext

MAX_TRIES = 5000
"""How many candidates are tried at most."""

Predicate = Callable[[IRModule], bool]
"""Whether a module still shows the fault."""


def reduce_module(mod: IRModule, shows: Predicate, tries: int = MAX_TRIES) -> IRModule:
    """A smaller module for which `shows` still holds; every one that is tried is well-formed and parses back.

    Steps are repeated until none of them makes it smaller, or `tries` candidates were tried. RLX3131 when `shows` does
    not hold for `mod` itself.
    """
    if not shows(mod):
        fail("RLX3131", "the program does not show the fault")
    current, size, left = mod, measure(mod), tries
    progress = True
    while progress:
        progress = False
        for step in (*STEPS, smaller_statements):
            again = True
            while again:
                again = False
                for candidate in step(current):
                    made = parsed(candidate)
                    if made is None or measure(made) >= size:
                        continue
                    left -= 1
                    if left < 0:
                        return current
                    if shows(made):
                        current, size = made, measure(made)
                        progress = again = True
                        break
    return current


def parsed(mod: IRModule) -> IRModule | None:
    """A candidate as its text states it; None when that is no well-formed program."""
    try:
        return driver.parse(mod.script(), "candidate.rlx")
    except RelaxlangError:
        return None


def measure(mod: IRModule) -> tuple[int, int, int]:
    """The size of a module: its nodes, then its numbers, then its text."""
    nodes = numbers = 0
    for function in mod.functions.values():
        for node in walk(function):
            if isinstance(node, relax.Var):
                numbers += _numbers(node.struct_info or OBJECT)
            elif isinstance(node, tir.Buffer):
                numbers += sum(_numbers(d) for d in node.shape)
            else:
                nodes += 1
                numbers += abs(node.value) if isinstance(node, prim.IntImm) else 0
    return nodes, numbers, len(mod.script())


def _numbers(root: Node) -> int:
    """The sum of the constants in struct info or a dimension; a symbolic one counts as a large constant."""
    found = list(walk(root))
    return sum(abs(n.value) if isinstance(n, prim.IntImm) else 16 * isinstance(n, prim.Var) for n in found)


# --- faults -----------------------------------------------------------------------------------------------------------
class _Attempt:
    """A context that keeps the exception which ends it, internal errors included: those are what is looked for."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> _Attempt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error
        return isinstance(error, Exception)


def compile_fault(mod: IRModule, passes: Sequence[Pass], target: object = None) -> str:
    """What goes wrong when a module is compiled: the code of a diagnostic, the class of another exception; "" if
    nothing does."""
    attempt = _Attempt()
    with attempt:
        context = PassContext().compiling(target, driver.evaluate)
        lowered = mod
        for step in passes:
            lowered = context.apply(step, lowered)
        driver.generate(lowered, target)
    error = attempt.error
    if isinstance(error, DiagnosticError) and error.diagnostics:
        return error.diagnostics[0].code
    return "" if error is None else type(error).__name__


def fails_to_compile(fault: str, passes: Sequence[Pass], target: object = None) -> Predicate:
    """The predicate: compiling ends in this fault (see `compile_fault`)."""
    return lambda mod: compile_fault(mod, passes, target) == fault


def changes_result(
    passes: Sequence[Pass], name: str, compiled: Compiled | None = None, seed: int = 0, step: str = ""
) -> Predicate:
    """The predicate: on random arguments a pass (`step`: this one) changes the result of a function."""

    def shows(mod: IRModule) -> bool:
        function = mod.functions.get(name)
        if not isinstance(function, relax.Function):
            return False
        try:
            finding = check_passes(mod, passes, name, random_args(function, seed), PassContext(), compiled)
        except RelaxlangError:
            return False  # it does not run even before the first pass
        return finding is not None and step in ("", finding.step)

    return shows


def random_args(function: relax.Function, seed: int) -> list[object]:
    """Random arguments for a function, the same for the same seed."""
    params = [Parameter(p.name, p.struct_info) for p in function.params]
    filler = Filler(seed, params, {}, {})
    return [filler.make(param, at) for at, param in enumerate(params)]


def command_succeeds(command: str) -> Predicate:
    """The predicate: a shell command, with `{}` for the name of a file that holds the program, ends with 0."""

    def shows(mod: IRModule) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "candidate.rlx")
            with open(path, "w", encoding="utf-8") as file:
                file.write(mod.script())
            line = command.replace("{}", path) if "{}" in command else f"{command} {path}"
            ended = subprocess.run(line, shell=True, capture_output=True, check=False)
        return ended.returncode == 0

    return shows
