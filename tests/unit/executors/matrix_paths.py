"""The ways in which the matrix runs a program: each is a function from a program to what `main` gives.

A new way to run programs is one more entry of `PATHS`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from c_programs import available, run_in_c
from matrix_programs import Program

import relaxlang
from relaxlang.codegen.aot.library import AotExecutorFactory


class Way(NamedTuple):
    """A way to run a program: `run(program, folder)`, with an empty folder for files; `static` ones run no program
    whose list of calls is not fixed, `standalone` ones none that calls packed functions of Python."""

    run: Callable[[Program, Path], Any]
    static: bool = False
    standalone: bool = False

    def takes(self, program: Program) -> bool:
        """Whether the way can run a program."""
        return (program.static or not self.static) and not (self.standalone and program.packed)


def _interpreter(program: Program, folder: Path) -> Any:
    return relaxlang.interpret(program.module(), "main", *program.arguments())


def _built(**options: Any) -> Callable[[Program, Path], Any]:
    return lambda program, folder: relaxlang.build(program.module(), **options)["main"](*program.arguments())


def _lowered_first(executor: str) -> Callable[[Program, Path], Any]:
    def run(program: Program, folder: Path) -> Any:
        lowered = relaxlang.build(program.module(), executor="vm").ir_module
        return relaxlang.build(lowered, executor=executor, pipeline="minimum")["main"](*program.arguments())

    return run


def _loaded(suffix: str, **options: Any) -> Callable[[Program, Path], Any]:
    def run(program: Program, folder: Path) -> Any:
        path = folder / f"program{suffix}"
        relaxlang.build(program.module(), **options).export_library(path)
        return relaxlang.load_module(path)["main"](*program.arguments())

    return run


def _graph_state(program: Program, folder: Path) -> Any:
    """The graph executor through its inputs and outputs, from JSON and library alone; outputs as a flat tuple."""
    from relaxlang.runtime.graph_module import GraphExecutorFactory, create

    built = relaxlang.build(program.module(), executor="graph")
    assert isinstance(built, GraphExecutorFactory)
    executor = create(built.get_graph_json(), built.get_lib(), params=built.get_params())
    at = 0
    waiting = list(reversed(program.arguments()))
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting += reversed(value)
        else:
            executor.set_input(at, value)
            at += 1
    executor.run()
    return tuple(executor.get_output(i) for i in range(executor.get_num_outputs()))


def _c_program(source: bool, **options: Any) -> Callable[[Program, Path], Any]:
    """A C program of the library's C source, or with its object file; outputs as a flat tuple."""

    def run(program: Program, folder: Path) -> Any:
        executor = relaxlang.Executor("aot", options)
        target = "c" if source else "llvm"
        built = relaxlang.build(program.module(), target, executor=executor, runtime="c", mod_name="net")
        assert isinstance(built, AotExecutorFactory)
        return run_in_c(built, program.arguments(), folder, available("host"), source=source)

    return run


_STRUCTS = {"unpacked-api": True, "interface-api": "c"}
PATHS: dict[str, Way] = {
    "interpreter": Way(_interpreter),
    "vm native": Way(_built(executor={"kind": "vm", "exec-mode": "native"})),
    "vm bytecode": Way(_built(executor={"kind": "vm", "exec-mode": "bytecode"})),
    "vm minimum": Way(_built(executor="vm", pipeline="minimum")),
    "vm file": Way(_loaded(".rlxe", executor="vm")),
    "graph": Way(_built(executor="graph"), static=True),
    "graph minimum": Way(_built(executor="graph", pipeline="minimum"), static=True),
    "graph of what is lowered": Way(_lowered_first("graph"), static=True),
    "graph by inputs": Way(_graph_state, static=True),
    "aot": Way(_built(executor="aot"), static=True, standalone=True),
    "aot minimum": Way(_built(executor="aot", pipeline="minimum"), static=True, standalone=True),
    "aot of what is lowered": Way(_lowered_first("aot"), static=True, standalone=True),
    "aot file": Way(_loaded(".rlxe", executor="aot"), static=True, standalone=True),
    "aot library": Way(_loaded(".so", executor="aot"), static=True, standalone=True),
    "aot object in C": Way(_c_program(False), static=True, standalone=True),
    "aot C source": Way(_c_program(True, **_STRUCTS), static=True, standalone=True),
    "graph file": Way(_loaded(".rlxe", executor="graph"), static=True),
}
