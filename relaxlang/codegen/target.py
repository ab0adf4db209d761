"""This machine as a target, and whether code runs on it; `ir.configuration.target` says what targets are."""

from __future__ import annotations

from functools import lru_cache

from relaxlang.ir.configuration.host import Host
from relaxlang.ir.configuration.target import Target, as_target

__all__ = ["Target", "as_target", "host_cpu", "host_features", "host_triple", "probe", "runs_here"]


def probe() -> Host:
    """This machine."""
    return Host(host_cpu(), host_features(), host_triple())


def runs_here(target: Target) -> bool:
    """Whether code for the target runs on this machine."""
    from relaxlang.codegen.processors import unfit

    return target.is_host or not unfit(target.mtriple, target.mcpu, target.mattr)


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
