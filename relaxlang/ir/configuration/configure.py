"""From the arguments of `build` and what a module says itself to one configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaxlang.base.diagnostics import fail
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.configuration.compiler_config import EXECUTOR, RUNTIME, TARGETS, CompilerConfig
from relaxlang.ir.configuration.executor import EXECUTORS, Executor
from relaxlang.ir.configuration.function_targets import require_targets, states_targets
from relaxlang.ir.configuration.runtime import RUNTIMES, Runtime
from relaxlang.ir.configuration.target import DEFAULT, Target, as_target, read_targets
from relaxlang.ir.module import IRModule


def configure(
    mod: IRModule,
    target: Any = None,
    target_host: Any = None,
    executor: Any = None,
    runtime: Any = None,
    mod_name: str | None = None,
    pass_context: Attrs = EMPTY,
) -> CompilerConfig:
    """The configuration that the arguments of `build` make together with the attributes of the module.

    An argument counts more than an attribute, an attribute more than a default; what old target texts say of executor
    and runtime counts where no argument does. RLX5022 to RLX5024, RLX5027 and the target's codes for what is wrong.
    """
    if mod_name is not None and (
        not isinstance(mod_name, str) or not mod_name.isidentifier() or not mod_name.isascii()
    ):
        fail(
            "RLX5036", f"`{mod_name}` is no name of a module", help="`mod_name` is a name that C allows, as in `net_1`"
        )
    of = CompilerConfig.of(mod)
    targets = _targets(mod, target, of)
    legacy = next((t.legacy for t in targets.values() if t.legacy), {})
    said_executor, said_runtime = _legacy(legacy)
    if executor is None:
        executor = said_executor or (of.executor if EXECUTOR in mod.attrs else "vm")
    if runtime is None:
        runtime = said_runtime or (of.runtime if RUNTIME in mod.attrs else "cpp")
    default = targets.get(DEFAULT)
    host = as_target(target_host) if target_host is not None else default.host if default is not None else None
    for one in targets.values():
        _require_same_architecture(one, host or one.host)
    if target_host is not None:
        targets = {name: Target(t, host=host) for name, t in targets.items()}
    return CompilerConfig(
        executor if isinstance(executor, Executor) else Executor(executor),
        runtime if isinstance(runtime, Runtime) else Runtime(runtime),
        targets,
        host or default or Target(),
        mod_name if mod_name is not None else of.mod_name,
        pass_context,
    )


def _require_same_architecture(target: Target, host: Target | None) -> None:
    """RLX5028 for kernels that could not run in the process of the code around them."""
    if host is None or {target.kind, host.kind} != {"llvm"} or target.mtriple == host.mtriple:
        return
    own, around = (t.mtriple.partition("-")[0] for t in (target, host))
    if own != around:
        fail(
            "RLX5028",
            f"the target is for `{own}`, its host for `{around}`, and kernels run in the process of their host",
            help="leave `target_host` out, or name the platform of the target by `-mtriple`",
        )


def _targets(mod: IRModule, given: Any, of: CompilerConfig) -> dict[str, Target]:
    """All targets by name: those given, those on the module, the one of `with Target(…)`, else this machine; when no
    target is given and functions state theirs, there is no default."""
    if given is not None:
        targets = read_targets(given)
        why = "there are several targets and no default"
    elif TARGETS in mod.attrs:
        targets, why = dict(of.targets), "the module's targets have no default"
    elif Target.current() is None and states_targets(mod):
        targets, why = {}, "no target is given"
    else:
        return {DEFAULT: Target.current() or Target()}
    if DEFAULT not in targets:
        require_targets(mod, why)
    return targets


def _legacy(options: Mapping[str, Any]) -> tuple[Executor | None, Runtime | None]:
    """The executor and the runtime that options of an old target text stand for."""
    rest = dict(options)
    executor, runtime = rest.pop("executor", None), rest.pop("runtime", None)
    wanted = EXECUTORS.find(executor or "vm")
    own = {name: value for name, value in rest.items() if wanted.option(name) is not None}
    others = {name: value for name, value in rest.items() if name not in own}
    made = Executor(wanted.name, own) if executor or own else None
    if not runtime and not others:
        return made, None
    return made, Runtime(RUNTIMES.find(runtime or "cpp").name, others)
