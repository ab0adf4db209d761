"""Object code on disk: a kernel that was compiled once, by any process, is not compiled again.

An entry is a file named by the SHA-256 of everything that determines the code, and begins with the SHA-256 of its
content: a damaged file is a miss. Files are written beside and renamed, so that processes may share the directory. When
it grows beyond `LIMIT` bytes, the entries that were used least recently go.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import lru_cache

from relaxlang.base.config import config
from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.base.files import write_atomically
from relaxlang.codegen.target import Target

VERSION = 1
"""To be raised when the same IR text is compiled differently."""
LIMIT = 512 << 20
_DIGEST = 32
_EVERY = 64


def fetch(text: str, target: Target, compile: Callable[[str, Target], bytes]) -> bytes:
    """The object code of an IR text: from the cache, or compiled and put there."""
    root = config.cache_dir
    if root is None:
        return compile(text, target)
    path = os.path.join(root, "kernels", _entry(text, target))
    content = _read(path)
    if content is None:
        content = compile(text, target)
        _write(path, content)
    return content


def has(text: str, target: Target) -> bool:
    """Whether the object code of an IR text is in the cache (an entry may turn out to be damaged all the same)."""
    root = config.cache_dir
    return root is not None and os.path.exists(os.path.join(root, "kernels", _entry(text, target)))


def _entry(text: str, target: Target) -> str:
    parts = (str(VERSION), _llvm(), target.mcpu, target.mattr, str(target.opt_level), text)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return os.path.join(key[:2], key + ".o")


@lru_cache(maxsize=1)
def _llvm() -> str:
    from llvmlite import __version__, binding

    return f"{__version__} {binding.llvm_version_info}"


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            data = stream.read()
        if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
            return None
        os.utime(path)
    except OSError:
        return None
    return data[_DIGEST:]


def _write(path: str, content: bytes) -> None:
    """Store an entry; a directory that cannot be written to means no cache."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_atomically(path, hashlib.sha256(content).digest() + content)
    except (OSError, RelaxlangError):
        return
    if int.from_bytes(os.urandom(2)) % _EVERY == 0:
        trim(os.path.dirname(os.path.dirname(path)), LIMIT)


def trim(directory: str, limit: int) -> None:
    """Remove the entries used least recently until at most `limit` bytes are left."""
    entries: list[tuple[float, int, str]] = []
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            try:
                status = os.stat(path)
            except OSError:  # another process removed it
                continue
            entries.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            return
        try:
            os.unlink(path)
        except OSError:
            continue
        total -= size
