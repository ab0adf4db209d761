"""Targets of single functions: `R.func_attr({"target": {"kind": "llvm", "mcpu": …, "compiler": …, "executor": …}})`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from relaxlang.base.diagnostics import fail
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.configuration.target import Target
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.relax import ExternFunc, Function, GlobalVar
from relaxlang.ir.visit import walk

ATTRIBUTE = "target"
_OWN = ("compiler", "executor")


class FunctionTarget(NamedTuple):
    """What a function is compiled for: the target, and the names of the compiler and the executor that it asks for
    (empty: those of the module)."""

    target: Target
    compiler: str = ""
    executor: str = ""


def function_target(func: AnyFunc, targets: Mapping[str, Target]) -> FunctionTarget | None:
    """What a function's attribute `target` asks for, None when it has none.

    A text is the name of one of the module's `targets`, or a target. RLX5001 to RLX5003 for what is none.
    """
    spec: Any = None if isinstance(func, ExternFunc) else func.attrs.get(ATTRIBUTE)
    if spec is None:
        return None
    if isinstance(spec, str):
        return FunctionTarget(targets[spec] if spec in targets else Target(spec))
    if not isinstance(spec, Mapping):
        fail("RLX5003", f"a target is a text or a mapping, not {type(spec).__name__}", func.span)
    own = {name: str(spec.get(name, "")) for name in _OWN}
    rest = {name: value for name, value in spec.items() if name not in _OWN}
    if set(rest) <= {"kind"} and str(rest.get("kind")) in targets:
        return FunctionTarget(targets[str(rest["kind"])], **own)
    return FunctionTarget(Target(rest), **own)


def called(func: AnyFunc, mod: IRModule) -> list[str]:
    """The functions of the module that a function refers to, each once, in order."""
    if isinstance(func, ExternFunc):
        return []
    names = (node.name for node in walk(func.body) if isinstance(node, GlobalVar))
    return [name for name in dict.fromkeys(names) if name in mod.functions]


def without_target(mod: IRModule) -> list[str]:
    """The functions that state no target and get none from a function that refers to them."""
    reached: set[str] = set()
    waiting: list[str] = [n for n, f in mod.functions.items() if ATTRIBUTE in _attrs(f)]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += called(mod.functions[name], mod)
    return [n for n, f in mod.functions.items() if n not in reached and not isinstance(f, ExternFunc)]


def states_targets(mod: IRModule) -> bool:
    """Whether a Relax function states a target of its own."""
    return any(isinstance(f, Function) and ATTRIBUTE in f.attrs for f in mod.functions.values())


def require_targets(mod: IRModule, why: str) -> None:
    """RLX5027, with their names, when functions have no target; `why` says why they need one."""
    lacking = without_target(mod)
    if lacking:
        fail(
            "RLX5027",
            f"{why}, and these functions have none: {listed(lacking)}",
            help='give each `R.func_attr({"target": …})`, or a default: `target={"default": …, …}`',
        )


def listed(names: Iterable[str]) -> str:
    """Names as they stand in messages."""
    return ", ".join(f"`{name}`" for name in names)


def _attrs(func: AnyFunc) -> Attrs:
    return Attrs() if isinstance(func, ExternFunc) else func.attrs
