"""Compilers of single functions: `R.func_attr({"target": {"kind": "llvm", "compiler": "graph"}})`.

A function that asks for another compiler than the module's is compiled by it, together with what it calls, into a
callable; in the module an external function of its name takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relaxlang.base.diagnostics import fail
from relaxlang.base.fingerprint import note_addition
from relaxlang.base.record import replace
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir.configuration.compiler_config import CompilerConfig
from relaxlang.ir.configuration.executor import Executor
from relaxlang.ir.configuration.function_targets import ATTRIBUTE, FunctionTarget, called, function_target, listed
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.relax import ExternFunc, Function
from relaxlang.passes.base import PassContext
from relaxlang.passes.pipelines import pipeline
from relaxlang.runtime.registry import PackedFunc

Compiler = Callable[[IRModule, str, CompilerConfig, PassContext], PackedFunc]
"""Makes a callable of the function of that name, in a module that has it and what it calls. The callable takes tensors
and tuples of them and gives the like."""

OWN = "vm"
"""The compiler of functions that ask for none: the virtual machine's."""


def _graph(mod: IRModule, name: str, config: CompilerConfig, context: PassContext) -> PackedFunc:
    """The function on a graph executor of its own."""
    from relaxlang.codegen.graph import build_graph

    config = replace(config, executor=Executor("graph"))
    return build_graph(pipeline("default")(config.put_on(mod), context), config)[name]


def _interpreter(mod: IRModule, name: str, config: CompilerConfig, context: PassContext) -> PackedFunc:
    """The function by the reference interpreter, which is slow and the meaning of the language."""
    from relaxlang.interp import run

    return lambda *args: run(mod, name, *args)


_COMPILERS: dict[str, Compiler] = {"graph": _graph, "interpreter": _interpreter}


def register_compiler(name: str, compiler: Compiler, override: bool = False) -> None:
    """Let functions ask for a compiler by name. RLX5025 when the name is taken and `override` is not set."""
    if (name in _COMPILERS or name == OWN) and not override:
        fail("RLX5025", f"the compiler `{name}` exists already", help="pass `override=True` to replace it")
    _COMPILERS[name] = compiler
    note_addition(name)


def list_compilers() -> list[str]:
    """The names of all compilers."""
    return sorted([OWN, *_COMPILERS])


def compile_apart(
    mod: IRModule, config: CompilerConfig, context: PassContext
) -> tuple[IRModule, dict[str, PackedFunc]]:
    """The module without the functions that ask for another compiler, and these as callables by name.

    RLX5033 for a compiler that is not registered.
    """
    made: dict[str, PackedFunc] = {}
    functions: dict[str, AnyFunc] = dict(mod.functions)
    for name, func in mod.relax_functions():
        asked = function_target(func, config.targets)
        compiler = _chosen(name, func, asked, config)
        if asked is None or compiler is None:
            continue
        part = replace(config, targets={"default": asked.target})
        made[name] = compiler(_part(mod, name), name, part, context.compiling(asked.target))
        functions[name] = ExternFunc(name, func.struct_info, span=func.span)
    if not made:
        return mod, made
    kept = _reached(mod.with_functions(functions), mod)
    return mod.with_functions({name: func for name, func in functions.items() if name in kept}), made


def _chosen(name: str, func: Function, asked: FunctionTarget | None, config: CompilerConfig) -> Compiler | None:
    """The compiler that a function asks for by its `compiler` or its `executor`; None for the module's own."""
    if asked is None:
        return None
    wanted = asked.compiler or ("" if asked.executor in ("", config.executor.kind) else asked.executor)
    if wanted in ("", OWN):
        return None
    if wanted not in _COMPILERS:
        near = did_you_mean(wanted, list_compilers())
        known = f"registered are {listed(list_compilers())}"
        fail(
            "RLX5033",
            f"the function `{name}` asks for the compiler `{wanted}`, and there is none of that name",
            func.span,
            help=f"did you mean `{near}`? {known}" if near else known,
        )
    return _COMPILERS[wanted]


def _part(mod: IRModule, name: str) -> IRModule:
    """A function and all that it calls, as a module."""
    reached: dict[str, AnyFunc] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached[one] = mod.functions[one]
            waiting += called(mod.functions[one], mod)
    func = reached[name]
    assert isinstance(func, Function)
    reached[name] = func.replace(attrs=func.attrs.without(ATTRIBUTE).set("global_symbol", name))
    return mod.with_functions(reached)


def _reached(mod: IRModule, whole: IRModule) -> set[str]:
    """The functions of the module that are public or that such ones call, and those that nobody called before."""
    before = {callee for func in whole.functions.values() for callee in called(func, whole)}
    waiting = [n for n, f in mod.functions.items() if _is_public(f) or n not in before]
    kept: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in kept:
            kept.add(name)
            waiting += called(mod.functions[name], mod)
    return kept


def _is_public(func: AnyFunc) -> bool:
    attrs: Mapping[str, object] = {"global_symbol": ""} if isinstance(func, ExternFunc) else func.attrs
    return "global_symbol" in attrs
