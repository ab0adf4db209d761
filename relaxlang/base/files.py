"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import stat

from relaxlang.base.diagnostics import RelaxlangError


def write_atomically(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Put `data` (text as UTF-8, line breaks as they are) into the file `path`, wholly or not at all.

    The data goes to a temporary file in the same directory, which then takes the old one's place and mode; a symbolic
    link stays one and its target is replaced. Devices and pipes (`/dev/stdout`) are written directly. Raises
    `RelaxlangError` when that is impossible: a directory, no permission, no space.
    """
    shown = os.fspath(path)
    try:
        content = data.encode() if isinstance(data, str) else data
        target = os.path.realpath(shown)
        mode = _mode_of(target)
        if mode is None or stat.S_ISREG(mode):
            _replace(target, content, mode)
        else:
            with open(target, "wb") as stream:
                stream.write(content)
    except OSError as error:
        raise RelaxlangError(f"cannot write `{shown}`: {(error.strerror or str(error)).lower()}") from error
    except UnicodeEncodeError as error:
        raise RelaxlangError(f"cannot write `{shown}`: the text has no UTF-8 form ({error.reason})") from error
    except ValueError as error:
        raise RelaxlangError(f"cannot write {shown!r}: {error}") from error


def _mode_of(target: str) -> int | None:
    try:
        return os.stat(target).st_mode
    except FileNotFoundError:
        return None


def _replace(target: str, content: bytes, mode: int | None) -> None:
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "the file is read-only")
    # The name is short and fixed, so that it fits wherever the target's name fits; mode 0o666 is narrowed by the umask.
    temporary = os.path.join(os.path.dirname(target), f".relaxlang-{os.urandom(6).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666)
    try:
        with open(handle, "wb") as stream:
            stream.write(content)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
