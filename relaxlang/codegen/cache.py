"""Object code on disk: a kernel that was compiled once, by any process, is not compiled again.

An entry of the store `KERNELS` is named by everything that determines the code.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from relaxlang.base.store import KERNELS, key_of

if TYPE_CHECKING:
    from relaxlang.ir.configuration.target import Target

VERSION = 5
"""To be raised when the same IR text is compiled differently."""


def fetch(text: str, target: Target, compile: Callable[[str, Target], bytes]) -> bytes:
    """The object code of an IR text: from the cache, or compiled and put there."""
    if KERNELS.folder is None:
        return compile(text, target)
    key = _key(text, target)
    content = KERNELS.read(key)
    if content is None:
        content = compile(text, target)
        KERNELS.write(key, content)
    return content


def has(text: str, target: Target) -> bool:
    """Whether the object code of an IR text is in the cache (an entry may turn out to be damaged all the same)."""
    return KERNELS.folder is not None and KERNELS.has(_key(text, target))


def _key(text: str, target: Target) -> str:
    return key_of(str(VERSION), llvm(), target.mcpu, target.mattr, str(target.opt_level), text)


@lru_cache(maxsize=1)
def llvm() -> str:
    """What tells one LLVM from another: the place, size and time of the library, which is not loaded for that."""
    spec = find_spec("llvmlite")
    folder = os.path.join(os.path.dirname(spec.origin), "binding") if spec is not None and spec.origin else ""
    libraries = [entry for entry in os.scandir(folder) if entry.name.endswith((".so", ".dylib", ".dll"))]
    if libraries:
        found = [(entry.path, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in libraries]
        return repr(sorted(found))
    from llvmlite import __version__, binding

    return f"{__version__} {binding.llvm_version_info}"
