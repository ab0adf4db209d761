"""The options of the build, composed from the registries: `--executor=aot --executor-aot-unpacked-api=1 --runtime=c`.

Every option of every registered kind is one of `relaxc`: `--executor-KIND-OPTION` and `--runtime-KIND-OPTION`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from relaxlang.base.diagnostics import fail
from relaxlang.cli.options import Option

if TYPE_CHECKING:
    from relaxlang.base.source import Span
    from relaxlang.cli.options import CommandLine
    from relaxlang.ir.configuration.kinds import Kind, Kinds
    from relaxlang.ir.configuration.kinds import Option as KindOption

TITLE = "Executors and runtimes"


class Composed(NamedTuple):
    """An option of `relaxc` and what it sets: `registry` is `executor` or `runtime`."""

    option: Option
    registry: str
    kind: Kind
    of: KindOption


def registries() -> dict[str, Kinds]:
    """The registries that options are composed from, by the word that the options begin with."""
    from relaxlang.ir.configuration.executor import EXECUTORS
    from relaxlang.ir.configuration.runtime import RUNTIMES

    return {"executor": EXECUTORS, "runtime": RUNTIMES}


def composed_options() -> Iterator[Composed]:
    """All composed options, as `--help-all` shows them."""
    for word, registry in registries().items():
        for kind in registry.kinds():
            for option in kind.options:
                names = tuple(f"--{word}-{name}-{option.name}" for name in (kind.name, *kind.aliases))
                metavar = "|".join(option.words) or {bool: "0|1", int: "N", str: "TEXT"}[option.type]
                takes: Any = "maybe" if option.type is bool else "value"
                yield Composed(Option(names, takes, metavar, option.help, (), True), word, kind, option)


def find_composed(name: str) -> Option | None:
    """The composed option of that spelling."""
    return next((c.option for c in composed_options() if name in c.option.names), None)


class Build(NamedTuple):
    """What a command line asks of the build; None where it says nothing. `asked`: whether it says anything."""

    target: Any
    target_host: Any
    executor: Any
    runtime: Any
    mod_name: str | None

    @property
    def deprecated(self) -> str:
        """The options of executors and runtimes that stand in the target, as it once was done; empty when none do."""
        return ", ".join(f"`-{name}`" for name in self.target.legacy) if self.target is not None else ""

    @property
    def asked(self) -> bool:
        """Whether any of it is stated."""
        return any(part is not None for part in self)


def read_build(line: CommandLine) -> Build:
    """The build that a command line asks for. Raises the registries' diagnostics, and RLX7003 for an option of a kind
    that is not chosen."""
    from relaxlang.ir.configuration.executor import Executor
    from relaxlang.ir.configuration.runtime import Runtime
    from relaxlang.ir.configuration.target import Target

    executor, runtime = (_chosen(line, word) for word in ("executor", "runtime"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # `relaxc` says so itself
        target, host = (Target(line.value(n)) if line.has(n) else None for n in ("--target", "--target-host"))
    return Build(
        target,
        host,
        None if executor is None else Executor(executor),
        None if runtime is None else Runtime(runtime),
        line.value("--mod-name") if line.has("--mod-name") else None,
    )


def _chosen(line: CommandLine, word: str) -> dict[str, Any] | None:
    """The kind and the options that a command line states for one registry."""
    given = [c for c in composed_options() if c.registry == word and line.given(c.option)]
    if not line.has(f"--{word}"):
        if given:
            needs = f"--{word}={given[0].kind.name}"
            fail("RLX7003", f"`{given[0].option.name}` is for `{needs}`", _span(line, given[0]), help=f"add `{needs}`")
        return None
    kind = registries()[word].find(line.value(f"--{word}"))
    made: dict[str, Any] = {"kind": kind.name}
    for one in given:
        if one.kind.name != kind.name:
            needs = f"--{word}={one.kind.name}"
            fail("RLX7003", f"`{one.option.name}` is for `{needs}`, not `{kind.name}`", _span(line, one))
        span = _span(line, one)
        made[one.of.name] = "1" if span is None else span.text
    return made


def _span(line: CommandLine, one: Composed) -> Span | None:
    """The place of the option's value; None when it has none, as in `--executor-aot-unpacked-api`."""
    span = line.given(one.option)[-1]
    return span if span.text else None
