"""From a module to a program: the only place that sequences parsing, passes, code generation and the runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError, fail
from relaxlang.base.source import Source
from relaxlang.ir.module import IRModule, require_module
from relaxlang.ops import default_operators
from relaxlang.syntax.parser import decode_source

if TYPE_CHECKING:
    from relaxlang.ir.tir import PrimFunc
    from relaxlang.passes.base import Pass, PassContext
    from relaxlang.runtime.module import RuntimeModule

LARGE = 1 << 14
"""Elements in the arguments of a kernel that is worth compiling to be run once."""


def parse(
    text: str,
    filename: str | None = None,
    *,
    values: Mapping[str, Any] | None = None,
    check: bool = True,
    roots: Sequence[str] = (),
) -> IRModule:
    """The module that a text in TVMScript style states.

    `values` are the values of its compile-time parameters. With `check` every error that can be found before lowering
    is raised, all at once, as `DiagnosticError`; without it only errors of syntax and names. `I.include` finds files
    below the folder of `filename` and below `roots`.
    """
    if not isinstance(text, str):
        raise RelaxlangError(f"`parse` takes text, not `{type(text).__name__}`; `load` reads a file")
    return parse_source(Source(filename or "<string>", text), values=values, check=check, roots=roots)


def parse_source(
    source: Source,
    *,
    values: Mapping[str, Any] | None = None,
    check: bool = True,
    roots: Sequence[str] = (),
    part: tuple[int, int] | None = None,
) -> IRModule:
    """As `parse`, from a source that the spans of diagnostics and nodes refer to, or from `part` of it (offsets)."""
    from relaxlang.analysis.well_formed import verify_text
    from relaxlang.syntax.parse import parse_source as elaborate

    operators = default_operators()
    return elaborate(
        source, values=values, check=check, operators=operators, verify=verify_text, roots=roots, part=part
    )


def load(
    path: str | os.PathLike[str],
    *,
    values: Mapping[str, Any] | None = None,
    check: bool = True,
    roots: Sequence[str] = (),
) -> IRModule:
    """The module in a `.rlx` file. A file that can't be read is a `DiagnosticError` too."""
    name = os.fspath(path)
    return parse(decode_source(name, read_file(name)).text, name, values=values, check=check, roots=roots)


def read_file(name: str) -> bytes:
    """The bytes of a file; a diagnostic when it can't be read."""
    try:
        with open(name, "rb") as file:
            return file.read()
    except FileNotFoundError:
        fail("RLX0017", f"there is no file `{name}`")
    except IsADirectoryError:
        fail("RLX0017", f"`{name}` is a directory, not a file")
    except OSError as fault:
        fail("RLX0017", f"`{name}` can't be read: {fault.strerror or fault}")


def lower(
    mod: IRModule, pipeline: str | Pass = "default", *, target: Any = None, context: PassContext | None = None
) -> IRModule:
    """The module after a pipeline; what the code generator takes when the pipeline ends as the default one does."""
    require_module(mod)
    from relaxlang.passes.base import PassContext
    from relaxlang.passes.pipelines import pipeline as read_pipeline

    ctx = context or PassContext.current()
    if ctx.target is None and target is not None:
        ctx.target = target
    if ctx.evaluate is None:
        ctx.evaluate = evaluate
    return read_pipeline(pipeline)(mod, ctx)


def evaluate(func: PrimFunc, args: list[Any]) -> None:
    """Run a kernel on arrays, outputs last, while compiling: small work by the interpreter, large by compiled code.

    Compiling takes about as long as the interpreter needs for `LARGE` elements.
    """
    from relaxlang.interp import run

    if sum(a.size for a in args) < LARGE:
        run(IRModule({"kernel": func}), "kernel", *args)
        return
    from relaxlang.codegen.kernel import build_kernels, load_kernels

    load_kernels(build_kernels({"kernel": func}))["kernel"](*args)


def build(
    mod: IRModule,
    target: Any = None,
    target_host: Any = None,
    executor: str | None = None,
    runtime: str | None = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
    pipeline: str | Pass = "default",
    pass_context: PassContext | None = None,
) -> RuntimeModule:
    """Compile a module, at any stage of lowering, to something that runs.

    `target` is `"llvm"` with options, or None: this machine with all its features. `params` binds parameters of `main`
    to arrays. `pipeline` names the passes to run first: `"default"`, `"minimum"` (lowering alone), or text. A module
    without Relax functions gives its PrimFuncs alone. Raises `DiagnosticError`.
    """
    from relaxlang.codegen.target import as_target

    require_module(mod)
    for given, known, what in ((executor, ("vm",), "executor"), (runtime, ("cpp", "c++"), "runtime")):
        if given is not None and given not in known:
            fail("RLX5022", f"there is no {what} `{given}`", help=f"available: {', '.join(known)}")
    chosen = as_target(target)
    if target_host is not None and as_target(target_host) != chosen:
        fail("RLX5022", "a host target other than the target is not supported", help="leave `target_host` out")
    if params:
        from relaxlang.passes.relax.bind_params import bind_params

        mod = bind_params(mod, "main", params)
    lowered = lower(mod, pipeline, target=chosen, context=pass_context)
    return generate(lowered, chosen)


def generate(lowered: IRModule, target: Any = None) -> RuntimeModule:
    """The program that a lowered module is: machine code for its PrimFuncs, bytecode for its Relax functions."""
    from relaxlang.codegen.kernel import build_kernels, load_kernels
    from relaxlang.codegen.target import as_target
    from relaxlang.codegen.vm import emit_functions
    from relaxlang.runtime.exec_builder import ExecBuilder
    from relaxlang.runtime.module import RuntimeModule

    chosen = as_target(target)
    builder = ExecBuilder()
    try:
        kernels = build_kernels(dict(lowered.prim_funcs()), chosen)
        for kernel in kernels.values():
            builder.declare_kernel(kernel.signature)
        emit_functions(lowered, builder)
    except DiagnosticError as fault:
        from relaxlang.syntax.printer.locate import show_nodes

        show_nodes(fault, lowered, "<lowered module>")
        raise
    executable = builder.get(tuple(k.object_code for k in kernels.values()))
    loaded = load_kernels(kernels) if chosen.runs_here else {}
    return RuntimeModule(executable, loaded, lowered)


def load_module(path: str | os.PathLike[str]) -> RuntimeModule:
    """A program that `export_library` wrote. Damaged, foreign and newer files are `DiagnosticError`s."""
    import relaxlang.codegen  # noqa: F401 - installs what links the kernels
    from relaxlang.runtime.module import load_module as load_executable

    return load_executable(path)
