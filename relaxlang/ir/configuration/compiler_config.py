"""`CompilerConfig`: everything that a compilation was asked for, as one object and as attributes of the module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import fresh, record, replace
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.configuration.executor import Executor
from relaxlang.ir.configuration.frozen import FROZEN, freeze_attrs, frozen_names
from relaxlang.ir.configuration.runtime import Runtime
from relaxlang.ir.configuration.target import Target, read_targets
from relaxlang.ir.module import IRModule

EXECUTOR, RUNTIME, TARGETS, CONFIG = ATTRIBUTES = ("Executor", "Runtime", "targets", "CompilerConfig")
"""The attributes of a module that hold its configuration."""


@record
class CompilerConfig:
    """What a module is compiled for.

    `targets` are all targets by name (`default` is the one of functions that state none); `host_target` is where the
    code around kernels runs. Defaults: `primitive_target` for kernels, `shape_target` for the computation of shapes,
    `residual_target` for all that is left, the Relax functions. `mod_name` begins the names of global symbols.
    `pass_context` has the settings of the pass context: `opt_level`, `disabled`, `config`.
    """

    executor: Executor = fresh(factory=lambda: Executor("vm"))
    runtime: Runtime = fresh(factory=lambda: Runtime("cpp"))
    targets: Mapping[str, Target] = fresh(factory=lambda: {"default": Target()})
    host_target: Target = fresh(factory=Target)
    mod_name: str = "default"
    pass_context: Attrs = EMPTY

    @property
    def primitive_target(self) -> Target | None:
        """The target of kernels that state none; None when several targets were given and none is the default."""
        return self.targets.get("default")

    @property
    def shape_target(self) -> Target:
        """The target of shape computations."""
        return self.host_target

    @property
    def residual_target(self) -> Target:
        """The target of Relax functions."""
        return self.host_target

    def to_attrs(self) -> Attrs:
        """The configuration as attributes of a module: `ATTRIBUTES` with plain values."""
        primitive = self.primitive_target
        return Attrs(
            {
                EXECUTOR: self.executor.to_attrs(),
                RUNTIME: self.runtime.to_attrs(),
                TARGETS: {name: target.to_attrs() for name, target in self.targets.items()},
                CONFIG: {
                    "mod_name": self.mod_name,
                    "host_target": self.host_target.to_attrs(),
                    "primitive_target": None if primitive is None else primitive.to_attrs(),
                    "shape_target": self.shape_target.to_attrs(),
                    "residual_target": self.residual_target.to_attrs(),
                    "pass_context": self.pass_context,
                },
            }
        )

    def put_on(self, mod: IRModule) -> IRModule:
        """The module with this configuration as its attributes, which no later pass may change."""
        bare = mod.with_attrs(mod.attrs.without(*ATTRIBUTES, FROZEN))
        names = dict.fromkeys((*frozen_names(mod), *ATTRIBUTES))
        return freeze_attrs(bare.with_attrs(Attrs({**bare.attrs, **self.to_attrs()})), *names)

    @staticmethod
    def of(mod: IRModule) -> CompilerConfig:
        """The configuration on a module; what it does not say has the default."""
        attrs, made = mod.attrs, CompilerConfig()
        if EXECUTOR in attrs:
            made = replace(made, executor=Executor(attrs[EXECUTOR]))
        if RUNTIME in attrs:
            made = replace(made, runtime=Runtime(attrs[RUNTIME]))
        if TARGETS in attrs:
            made = replace(made, targets=read_targets(attrs[TARGETS]))
        rest = _mapping(CONFIG, attrs.get(CONFIG, EMPTY))
        if "host_target" in rest:
            made = replace(made, host_target=Target(rest["host_target"]))
        return replace(
            made,
            mod_name=str(rest.get("mod_name", made.mod_name)),
            pass_context=Attrs(_mapping("pass_context", rest.get("pass_context", EMPTY))),
        )


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    """What an attribute holds; RLX5036 when that is no mapping."""
    if not isinstance(value, Mapping):
        fail("RLX5036", f"the attribute `{name}` of the module is no mapping, but `{value}`")
    return value
