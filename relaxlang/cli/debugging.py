"""`--compare-ir`, `--check-passes`, `--reduce` and `--why-not`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import RelaxlangError, fail
from relaxlang.base.files import write_atomically
from relaxlang.base.source import Span
from relaxlang.cli.compilation import Compilation
from relaxlang.cli.options import CommandLine
from relaxlang.cli.parameters import Filler, Parameter, assign
from relaxlang.cli.report import write_out
from relaxlang.cli.run import Request

if TYPE_CHECKING:
    from relaxlang.debug.reduce import Predicate
    from relaxlang.ir.module import IRModule
    from relaxlang.passes.base import Pass


def compare_ir(left: Compilation, right: Compilation) -> RelaxlangError | None:
    """The first difference of two files' programs; None when they are one program up to names."""
    from relaxlang.debug.compare import compare_modules

    return compare_modules(left.parsed, right.parsed)


def why_not(c: Compilation, question: Span) -> str:
    """The answer to `fuse A B`: why fusion does not compute two variables of a file's program together."""
    words = question.text.split()
    if len(words) != 3 or words[0] != "fuse":
        fail("RLX7002", f"`{question.text}` is no question", question, help="for example `--why-not='fuse y z'`")
    from relaxlang.ir import relax
    from relaxlang.ir.visit import walk
    from relaxlang.passes.relax.fuse_ops import explain_fusion

    _, a, b = words
    bound = {
        name: {node.var.name for node in walk(function) if isinstance(node, relax.Binding)}
        for name, function in c.parsed.relax_functions()
    }
    function = next((name for name, names in bound.items() if {a, b} <= names), next(iter(bound), "main"))
    with c.settings.clock.phase("why not"):
        answer = explain_fusion(c.parsed, a, b, function)
    if answer.fused:
        return f"`{answer.producer}` and `{answer.consumer}` are computed together, by one kernel\n"
    return f"{answer.reason}\n"


def check(c: Compilation, request: Request) -> RelaxlangError | None:
    """What the first pass at fault does wrong with a file's program; None, and a line that says so, when none is."""
    from relaxlang.debug.check_passes import check_passes

    name, args = _arguments(c, request)
    passes = _passes(c)
    with c.settings.clock.phase("check passes"):
        finding = check_passes(c.parsed, passes, name, args, c.pass_context(), _compiled(c))
    if finding is not None:
        return finding.error()
    write_out(f"{len(passes)} passes and code generation keep what `{name}` computes\n")
    return None


def reduce(c: Compilation, line: CommandLine, request: Request) -> None:
    """Write a smaller program that still shows its fault: to `--output`, or to the terminal."""
    from relaxlang.debug.reduce import measure, reduce_module

    shows = _predicate(c, line.value("--reduce"), request)
    with c.settings.clock.phase("reduce"):
        made = reduce_module(c.parsed, shows)
    before, after = measure(c.parsed)[0], measure(made)[0]
    c.settings.reporter.note(f"reduced from {before} nodes to {after}")
    if line.value("--output", "-") == "-":
        write_out(made.script())
    else:
        write_atomically(line.value("--output"), made.script())


def _predicate(c: Compilation, command: str, request: Request) -> Predicate:
    from relaxlang.debug import reduce as reducing

    if command:
        return reducing.command_succeeds(command)
    passes = _passes(c)
    fault = reducing.compile_fault(c.parsed, passes, c.settings.target)
    if fault:
        return reducing.fails_to_compile(fault, passes, c.settings.target)
    name = _function(c, request)
    shows = reducing.changes_result(passes, name, _compiled(c), request.seed or 0)
    if not shows(c.parsed):
        fail("RLX3131", f"`{c.name}` compiles, and no pass changes what `{name}` computes",
             help="say what to look for: `--reduce='COMMAND {}'` succeeds as long as the fault is there")  # fmt: skip
    return shows


def _passes(c: Compilation) -> Sequence[Pass]:
    skipped = c.settings.skipped
    return [p for p in (*c.settings.passes, *c.settings.lowering) if p.name not in skipped]


def _function(c: Compilation, request: Request) -> str:
    names = list(c.parsed.functions)
    return names[0] if len(names) == 1 and request.function == "main" else request.function


def _arguments(c: Compilation, request: Request) -> tuple[str, list[Any]]:
    """The function to call, and its arguments: those that were given, random ones for the others."""
    from relaxlang.ir.module import function_info
    from relaxlang.ir.relax import Function
    from relaxlang.ir.struct_info import FuncStructInfo
    from relaxlang.ir.tir import PrimFunc

    name = _function(c, request)
    function = c.parsed[name]
    info = function_info(function)
    names = [p.name for p in function.params] if isinstance(function, (Function, PrimFunc)) else []
    infos = info.params if isinstance(info, FuncStructInfo) and info.params else ()
    params = [Parameter(n, i) for n, i in zip(names, infos)]
    values = assign(name, params, request.given)
    filler = Filler(request.seed or 0, params, values, request.dims)
    for at, param in enumerate(params):
        if param.name not in values:
            values[param.name] = filler.make(param, at)
    return name, [values[p.name] for p in params]


def _compiled(c: Compilation) -> Any:
    """How a lowered module is run as compiled code."""
    from relaxlang import driver
    from relaxlang.ir.tir import PrimFunc
    from relaxlang.runtime.vm import VirtualMachine

    def run(mod: IRModule, name: str, args: Sequence[Any]) -> Any:
        program = driver.generate(mod, c.settings.target)
        if isinstance(mod[name], PrimFunc):
            return program[name](*args)
        return VirtualMachine(program)[name](*args)

    return run
