"""`--version`, and with `-v` the versions of what relaxlang stands on: what a bug report says; `--clear-cache`."""

from __future__ import annotations

import platform
import sys

from relaxlang.base.config import config
from relaxlang.base.version import __version__


def version_text(verbose: bool) -> str:
    """The version; when `verbose` also of Python and the libraries, this machine's processor, and the directories."""
    if not verbose:
        return f"relaxc {__version__}\n"
    from importlib.metadata import version

    from relaxlang.base.resources import resource_dir
    from relaxlang.codegen.compile import llvm_version
    from relaxlang.codegen.target import host_cpu, host_triple

    rows = {
        "relaxc": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "llvm": f"{llvm_version()} (llvmlite {version('llvmlite')})",
        "numpy": version("numpy"),
        "lark": version("lark"),
        "host": f"{host_cpu()}, {host_triple()}",
        "operators": str(resource_dir("stdlib")),
        "cache": str(config.cache_dir or "off"),
    }
    return "".join(f"{name:10} {value}\n" for name, value in rows.items())


def clear_cache() -> str:
    """Remove what the user's cache holds of compiled code; what was given back, for `--clear-cache` to say."""
    from relaxlang.base.store import clear
    from relaxlang.runtime.memory import format_bytes

    if config.cache_dir is None:
        return "the cache is off\n"
    return f"{format_bytes(clear())} removed from {config.cache_dir}\n"
