"""Targets: the processor that code is made for.

`Target("llvm -mcpu=znver4 -num-cores=2")`, the same as a mapping, or None and `llvm` alone for this machine with all
its features.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from relaxlang.base.diagnostics import fail
from relaxlang.base.suggest import did_you_mean

KINDS = ("llvm",)
OPTIONS: dict[str, type] = {
    "mcpu": str, "mtriple": str, "mattr": str, "num-cores": int, "device": str, "model": str, "keys": str,
    "opt-level": int, "vector-width": int, "mabi": str, "mfloat-abi": str, "tag": str, "libs": str,
}  # fmt: skip
_IGNORED = ("device", "model", "keys", "tag", "libs", "mabi", "mfloat-abi", "vector-width")
TargetLike = "Target | str | Mapping[str, Any] | None"


class Target:
    """What code is generated for.

    `kind` is `llvm`; `mcpu` and `mattr` (comma-separated, `+avx2,-fma`) are LLVM's processor and feature names,
    `mtriple` the platform; empty ones mean this machine. `num_cores` is the number of threads that schedules plan for
    (0: not stated), `opt_level` LLVM's level, `host` the target of code that runs beside. Unknown kinds and options are
    RLX5001 and RLX5002, values of the wrong type RLX5003.
    """

    __slots__ = ("kind", "options", "host")

    def __init__(self, spec: Any = None, host: Any = None) -> None:
        if isinstance(spec, Target):
            self.kind: str = spec.kind
            self.options: dict[str, str | int] = spec.options
            self.host: Target | None = spec.host if host is None else as_target(host)
            return
        if spec is None or isinstance(spec, str):
            kind, given = _parse(spec or "llvm")
        elif isinstance(spec, Mapping):
            given = {str(k): v for k, v in spec.items()}
            kind = str(given.pop("kind", "llvm"))
            host = given.pop("host", host)
        else:
            fail("RLX5003", f"a target is a text or a mapping, not {type(spec).__name__}")
        if kind not in KINDS:
            near = did_you_mean(kind, KINDS)
            fail("RLX5001", f"unknown target kind `{kind}`", help=f"did you mean `{near}`?" if near else _KIND_HELP)
        self.kind = kind
        self.options = dict(sorted((_option(name, value) for name, value in given.items())))
        self.host = None if host is None else as_target(host)

    @property
    def mcpu(self) -> str:
        """LLVM's name of the processor; for a target that states none, this machine's."""
        return self._text("mcpu") or ("" if self._text("mtriple") else host_cpu())

    @property
    def mtriple(self) -> str:
        """The platform's triple."""
        return self._text("mtriple") or host_triple()

    @property
    def mattr(self) -> str:
        """LLVM's feature list; all features of this machine when no processor, platform or features are stated."""
        if self.is_host:
            return host_features()
        return self._text("mattr")

    @property
    def is_host(self) -> bool:
        """Whether nothing about the processor is stated, so that this machine is meant."""
        return not (self._text("mcpu") or self._text("mtriple") or self._text("mattr"))

    @property
    def runs_here(self) -> bool:
        """Whether code for the target runs on this machine."""
        from relaxlang.codegen.processors import unfit

        return self.is_host or not unfit(self.mtriple, self.mcpu, self.mattr)

    @property
    def num_cores(self) -> int:
        """The threads that schedules plan for; 0 when not stated."""
        return int(self.options.get("num-cores", 0))

    @property
    def opt_level(self) -> int:
        """LLVM's optimisation level, 0 to 3."""
        return int(self.options.get("opt-level", 2))

    def _text(self, name: str) -> str:
        return str(self.options.get(name, ""))

    def __str__(self) -> str:
        return " ".join([self.kind, *(f"-{k}={shlex.quote(str(v))}" for k, v in self.options.items())])

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and str(self) == str(other) and self.host == other.host

    def __hash__(self) -> int:
        return hash(str(self))


_KIND_HELP = "the target kind for processors is `llvm`, as in `llvm -mcpu=znver4`"


def as_target(spec: Any) -> Target:
    """`spec` as a Target: one already, a text, a mapping, or None for this machine."""
    return spec if isinstance(spec, Target) else Target(spec)


def _parse(text: str) -> tuple[str, dict[str, Any]]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        fail("RLX5003", f"the target `{text}` cannot be read: {str(error).lower()}")
    kind = words.pop(0) if words and not words[0].startswith("-") else "llvm"
    given: dict[str, Any] = {}
    while words:
        name, equals, value = words.pop(0).partition("=")
        if not name.startswith("-"):
            fail("RLX5003", f"`{name}` in the target `{text}` is no option", help="options look like `-mcpu=znver4`")
        if not equals and words and not words[0].startswith("-"):
            value = words.pop(0)
        given[name.lstrip("-")] = value
    return kind, given


def _option(name: str, value: Any) -> tuple[str, str | int]:
    name = name.replace("_", "-")
    if name not in OPTIONS:
        near = did_you_mean(name, OPTIONS)
        known = ", ".join(f"`-{n}`" for n in OPTIONS if n not in _IGNORED)
        fail(
            "RLX5002",
            f"unknown target option `-{name}`",
            help=f"did you mean `-{near}`?" if near else f"known: {known}",
        )
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    if OPTIONS[name] is str:
        return name, str(value)
    if isinstance(value, bool) or not str(value).isdecimal():
        fail("RLX5003", f"the target option `-{name}` takes a whole number, not `{value}`")
    return name, int(value)


@lru_cache(maxsize=1)
def host_cpu() -> str:
    """LLVM's name of this machine's processor."""
    from llvmlite import binding

    return str(binding.get_host_cpu_name())


@lru_cache(maxsize=1)
def host_features() -> str:
    """All features of this machine's processor, as LLVM writes them, in a fixed order."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return ",".join(("+" if on else "-") + name for name, on in sorted(features.items()))


@lru_cache(maxsize=1)
def host_triple() -> str:
    """This machine's triple."""
    from llvmlite import binding

    return str(binding.get_process_triple())
