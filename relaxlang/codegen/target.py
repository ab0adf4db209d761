"""This machine as a target, and whether code runs on it; `ir.configuration.target` says what targets are."""

from __future__ import annotations

from functools import lru_cache
from itertools import takewhile

from relaxlang.base.store import KERNELS, key_of
from relaxlang.codegen.cache import llvm
from relaxlang.ir.configuration.host import Host
from relaxlang.ir.configuration.target import Target, as_target

__all__ = ["Target", "as_target", "host_cpu", "host_features", "host_triple", "probe", "runs_here"]


def runs_here(target: Target) -> bool:
    """Whether code for the target runs on this machine."""
    from relaxlang.codegen.processors import unfit

    return target.is_host or not unfit(target.mtriple, target.mcpu, target.mattr)


@lru_cache(maxsize=1)
def probe() -> Host:
    """This machine: as LLVM sees it, or saw it when the system described its processor in the same words."""
    described = _processor()
    if described and KERNELS.folder is not None:
        key = key_of("host", llvm(), described)
        found = (KERNELS.read(key) or b"").decode("utf-8", "replace").split("\n")
        if len(found) == len(Host._fields):
            return Host(*found)
        host = _ask_llvm()
        KERNELS.write(key, "\n".join(host).encode())
        return host
    return _ask_llvm()


def host_cpu() -> str:
    """LLVM's name of this machine's processor."""
    return probe().cpu


def host_features() -> str:
    """All features of this machine's processor, as LLVM writes them, in a fixed order."""
    return probe().features


def host_triple() -> str:
    """This machine's triple."""
    return probe().triple


def _ask_llvm() -> Host:
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    listed = ",".join(("+" if on else "-") + name for name, on in sorted(features.items()))
    return Host(str(binding.get_host_cpu_name()), listed, str(binding.get_process_triple()))


def _processor() -> str:
    """What Linux says of the first processor, without what changes while it runs; empty elsewhere."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = list(takewhile(str.strip, file))
    except OSError:
        return ""
    return "".join(line for line in lines if line.partition(":")[0].strip() not in _CHANGING)


_CHANGING = frozenset({"processor", "cpu MHz", "core id", "apicid", "initial apicid", "physical id", "bogomips"})
