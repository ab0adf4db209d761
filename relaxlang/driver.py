"""From a module to a program: the only place that sequences parsing, passes, code generation and the runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

from relaxlang.base.arguments import checked
from relaxlang.base.collection import fewer_collections
from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError, WarningSink, fail
from relaxlang.base.source import Source
from relaxlang.ir.module import IRModule, require_module

if TYPE_CHECKING:
    from relaxlang.ir.tir import PrimFunc
    from relaxlang.passes.back_end import BackEnd, BackEnds
    from relaxlang.passes.base import Pass, PassContext
    from relaxlang.runtime.module import RuntimeModule
    from relaxlang.runtime.registry import PackedFunc

LARGE = 1 << 14
"""Elements in the arguments of a kernel that is worth compiling to be run once."""


@checked
def parse(
    text: str,
    filename: str | None = None,
    *,
    values: Mapping[str, Any] | None = None,
    check: bool = True,
    roots: Sequence[str] = (),
    warnings: WarningSink | None = None,
) -> IRModule:
    """The module that a text in TVMScript style states.

    `values` are the values of its compile-time parameters. With `check` every error that can be found before lowering
    is raised, all at once, as `DiagnosticError`; without it only errors of syntax and names. `I.include` finds files
    below the folder of `filename` and below `roots`. `warnings` is a function that is handed each warning as a
    `Diagnostic`, sorted by place.
    """
    if not isinstance(text, str):
        raise RelaxlangError(f"`parse` takes text, not `{type(text).__name__}`; `load` reads a file")
    source = Source(filename or "<string>", text)
    return parse_source(source, values=values, check=check, roots=roots, warnings=warnings)


def parse_source(
    source: Source,
    *,
    values: Mapping[str, Any] | None = None,
    check: bool = True,
    roots: Sequence[str] = (),
    part: tuple[int, int] | None = None,
    warnings: WarningSink | None = None,
) -> IRModule:
    """As `parse`, from a source that the spans of diagnostics and nodes refer to, or from `part` of it (offsets).

    The text of a program that was built before is without fault, and read when its module is first looked at.
    """
    from relaxlang.syntax.inputs import Inputs
    from relaxlang.syntax.origin import origin_of

    @fewer_collections()
    def read(warnings: WarningSink | None, inputs: Inputs) -> IRModule:
        from relaxlang.analysis.well_formed import verify_text
        from relaxlang.ops import default_operators
        from relaxlang.syntax.parse import parse_source as elaborate

        return elaborate(
            source,
            values=values,
            check=check,
            operators=default_operators(),
            verify=verify_text,
            roots=roots,
            part=part,
            warnings=warnings,
            inputs=inputs,
        )

    origin = origin_of(source, read, values or {}, check, roots, part)
    return read(warnings, Inputs()) if origin is None else origin.module(warnings)


@checked
def load(
    path: str | os.PathLike[str],
    *,
    values: Mapping[str, Any] | None = None,
    check: bool = True,
    roots: Sequence[str] = (),
    warnings: WarningSink | None = None,
) -> IRModule:
    """The module in a `.rlx` file. A file that can't be read is a `DiagnosticError` too."""
    from relaxlang.syntax.decode import decode_source

    name = os.fspath(path)
    source = decode_source(name, read_file(name))
    return parse(source.text, name, values=values, check=check, roots=roots, warnings=warnings)


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
    except ValueError as fault:  # a name that no file can have
        fail("RLX0017", f"{name!r} can't be read: {fault}")


@fewer_collections()
def lower(
    mod: IRModule,
    pipeline: str | Pass | Sequence[Pass] = "default",
    *,
    target: Any = None,
    context: PassContext | None = None,
) -> IRModule:
    """The module after a pipeline; what the code generator takes when the pipeline ends as the default one does.

    `target` counts before the one on the module, that before the context's, and without any it is this machine.
    """
    require_module(mod)
    from relaxlang.analysis.contradictions import require_buildable
    from relaxlang.ir.configuration.compiler_config import TARGETS, CompilerConfig
    from relaxlang.ir.configuration.target import Target
    from relaxlang.passes.pipelines import pipeline as read_pipeline

    require_buildable(mod)
    ctx = _context(context)
    chosen = ctx.target if target is None else Target(target)
    if target is None and TARGETS in mod.attrs:
        chosen = CompilerConfig.of(mod).primitive_target
    return read_pipeline(pipeline)(mod, ctx.compiling(chosen or Target(), evaluate))


def evaluate(func: PrimFunc, args: list[Any]) -> None:
    """Run a kernel on arrays, outputs last, while compiling: small work by the interpreter, large by compiled code.

    Compiling takes about as long as the interpreter needs for `LARGE` elements.
    """
    if sum(a.size for a in args) < LARGE:
        from relaxlang.interp import run

        run(IRModule({"kernel": func}), "kernel", *args)
    else:
        from relaxlang.codegen.evaluation import run_compiled

        run_compiled(func, args)


@fewer_collections()
def build(
    mod: IRModule,
    target: Any = None,
    target_host: Any = None,
    executor: Any = None,
    runtime: Any = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str | None = None,
    pipeline: str | Pass | Sequence[Pass] = "default",
    pass_context: PassContext | None = None,
) -> RuntimeModule:
    """Compile a module, at any stage of lowering, to something that runs.

    `target` is a `Target` or what makes one (`"llvm -mcpu=…"`, a mapping, JSON, a tag), or several: a list with a
    default or a mapping by name; None is the target of `with Target(…)`, else this machine with all its features.
    `target_host` is the target of the code around kernels. `executor` and `runtime` are an `Executor` and a `Runtime`,
    their names or mappings (default: `vm`, `cpp`). `params` binds parameters of `main` to arrays. `mod_name` begins the
    names of global symbols. `pipeline` names the passes to run first: `"default"`, `"minimum"` (lowering alone), or
    text. What is not given is taken from the attributes of the module, and all of it is written there, to be read at
    any pass by `CompilerConfig.of(mod)`, and on `ir_module` of the result. A module without Relax functions gives its
    PrimFuncs alone. Raises `DiagnosticError`.
    """
    from relaxlang.codegen.build_cache import build_of

    require_module(mod)
    context = _context(pass_context)
    asked = (target, target_host, executor, runtime, params, mod_name)
    known = build_of(mod, asked, pipeline, context)
    found = known.find() if known is not None else None
    if found is not None:
        found.ir_module = lambda: bound(_lowered(mod, asked, pipeline, context)[0])
        return found
    with nullcontext() if known is None else known.memory():
        lowered, imports = _lowered(mod, asked, pipeline, context)
        built = generate(lowered)
    built.imports = imports
    if known is not None:
        known.keep(built)
    return built


def _lowered(
    mod: IRModule, asked: tuple[Any, ...], pipeline: str | Pass | Sequence[Pass], context: PassContext
) -> tuple[IRModule, dict[str, PackedFunc]]:
    """The module as code generation takes it, and the functions that other compilers made; `asked` are the arguments of
    `build`."""
    from relaxlang.codegen.compilers import compile_apart
    from relaxlang.ir.configuration.compiler_config import CompilerConfig

    target, target_host, executor, runtime, params, mod_name = asked
    mod = with_config(mod, target, target_host, executor, runtime, mod_name, context)
    if params is not None:
        from relaxlang.passes.relax.bind_params import bind_params

        mod = bind_params(mod, "main", params)
    context = context.compiling(context.target, evaluate)
    mod, imports = compile_apart(mod, CompilerConfig.of(mod), context)
    return lower(mod, pipeline, context=context), imports


def _context(given: PassContext | None) -> PassContext:
    """The pass context that was given, else the one that is open."""
    from relaxlang.passes.base import PassContext

    if given is not None and not isinstance(given, PassContext):
        fail("RLX0454", f"the pass context must be a `PassContext`, not `{type(given).__name__}`")
    return PassContext.current() if given is None else given


def with_config(
    mod: IRModule,
    target: Any = None,
    target_host: Any = None,
    executor: Any = None,
    runtime: Any = None,
    mod_name: str | None = None,
    context: PassContext | None = None,
) -> IRModule:
    """The module with what `build` would be asked for as its attributes."""
    from relaxlang.ir.configuration.compiler_config import TARGETS
    from relaxlang.ir.configuration.configure import configure

    ctx = _context(context)
    if target is None and TARGETS not in mod.attrs:
        target = ctx.target
    return configure(mod, target, target_host, executor, runtime, mod_name, ctx.settings()).put_on(mod)


def generate(lowered: IRModule, target: Any = None) -> RuntimeModule:
    """The program of a lowered module, for the executor and targets in its attributes; `target` replaces the latter."""
    from relaxlang.codegen.executors import back_end
    from relaxlang.ir.configuration.compiler_config import CompilerConfig

    lowered = bound(lowered, target)
    config = CompilerConfig.of(lowered)
    try:
        return back_end(config)(lowered, config)
    except DiagnosticError as fault:
        from relaxlang.syntax.printer.locate import show_nodes

        show_nodes(fault, lowered, "<lowered module>")
        raise


def bound(lowered: IRModule, target: Any = None) -> IRModule:
    """A lowered module with its configuration (`target` replaces the targets in it) and the target of each function."""
    from relaxlang.ir.configuration.compiler_config import CONFIG
    from relaxlang.passes.relax.bind_target import BindTarget

    if target is not None or CONFIG not in lowered.attrs:
        lowered = with_config(lowered, target)
    return BindTarget()(lowered)


@cache
def back_ends() -> BackEnds:
    """The back ends that relaxlang brings, for passes, and how passes measure them."""
    from relaxlang.codegen.back_ends.blas import Blas
    from relaxlang.codegen.back_ends.onnx_runtime import OnnxRuntime
    from relaxlang.passes.back_end import BackEnds

    ends: tuple[BackEnd, ...] = (Blas(), OnnxRuntime())
    return BackEnds({end.name: end for end in ends}, _measure)


def _measure(modules: Sequence[IRModule]) -> list[float]:
    """The seconds that the functions `main` of modules take, which have the same parameters."""
    from relaxlang.codegen.back_ends.measure import arguments, measure
    from relaxlang.ir.relax import Function
    from relaxlang.passes.base import PassContext

    main = modules[0]["main"]
    assert isinstance(main, Function)
    args = arguments(main)
    plain = PassContext()  # nobody's instruments watch these builds
    return measure([build(mod, pass_context=plain)["main"] for mod in modules], args)


def estimate_memory_usage(
    mod: IRModule, dims: Mapping[str, int] | None = None, pipeline: str | Pass | Sequence[Pass] = "default"
) -> str:
    """What each Relax function of a module, at any stage of lowering, allocates with and without memory planning.

    An estimate from above. `dims` gives symbolic dimensions values by name; without, their upper bounds count (RLX3112
    when there is neither). `pipeline` is the one whose memory is told, up to where memory is planned.
    """
    from relaxlang.analysis.memory_report import estimate_memory_usage as estimate
    from relaxlang.passes.base import Sequential
    from relaxlang.passes.pipelines import AFTER_PLANNING
    from relaxlang.passes.pipelines import pipeline as read_pipeline

    passes = read_pipeline(pipeline).passes
    end = next((i for i, step in enumerate(passes) if step.name in AFTER_PLANNING), len(passes))
    return estimate(lower(mod, Sequential(passes[:end])), dims)


@checked
def load_module(path: str | os.PathLike[str]) -> RuntimeModule:
    """A program that `export_library` wrote. Damaged, foreign and newer files are `DiagnosticError`s."""
    import relaxlang.codegen  # noqa: F401 - installs what links the kernels
    from relaxlang.runtime.module import load_module as load_executable

    return load_executable(path)
