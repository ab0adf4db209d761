"""`--version`, and with `-v` the versions of what relaxlang stands on: what a bug report should say."""

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
