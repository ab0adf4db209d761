"""Object code on disk: a kernel that was compiled once, by any process, is not compiled again.

An entry of the store `KERNELS` is named by everything that determines the code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from relaxlang.base.store import KERNELS, key_of
from relaxlang.codegen.target import Target

VERSION = 1
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
    """The versions of LLVM and its binding."""
    from llvmlite import __version__, binding

    return f"{__version__} {binding.llvm_version_info}"
