"""Native programs on disk: their object code with what stands in their tables, by the executable they are made of.

The compiled text is in the cache of kernels too; what is saved here is to write that text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaxlang.base.config import config
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.fingerprint import fingerprint
from relaxlang.base.store import KERNELS, key_of
from relaxlang.codegen.cache import llvm
from relaxlang.codegen.native.table import MAKERS, Entry
from relaxlang.ir.configuration.host import this_machine
from relaxlang.runtime.exec_file import as_value, read_operand, write_operand
from relaxlang.runtime.exec_values import Outside, ValueReader, encode_value
from relaxlang.runtime.executable import Constant, Executable, Func, Immediate, Register

_ARGUMENTS = (Register, Immediate, Constant, Func)
_SMALL = 1 << 12
"""Bytes of a constant below which its elements count; code depends on no more than the kind of larger ones."""


def program(executable: Executable, observed: bool) -> tuple[bytes, list[Entry]]:
    """The object code of a program for this machine and its table: from the cache, or made and put there."""
    if KERNELS.folder is None or config.check:
        return _write(executable, observed)
    said = encode_value(as_value(executable.with_objects(())), Outside(_SMALL))
    key = key_of("native", fingerprint(), *this_machine(), llvm(), str(observed), said)
    found = KERNELS.read(key)
    if found is not None:
        try:
            code, entries = ValueReader(memoryview(found)).read_all()
            return code, [_entry(value) for value in entries]
        except (DiagnosticError, TypeError, ValueError, IndexError):
            pass  # made again below
    code, entries = _write(executable, observed)
    KERNELS.write(key, encode_value((code, tuple(_value(entry) for entry in entries))))
    return code, entries


def _write(executable: Executable, observed: bool) -> tuple[bytes, list[Entry]]:
    from relaxlang.codegen.native.writing import write_program

    return write_program(executable, observed)


def _value(entry: Entry) -> tuple[Any, ...]:
    """An entry as a value: the place of its maker in `MAKERS`, and the arguments; operands as tuples."""
    maker, *arguments = entry.key
    number = next(i for i, known in enumerate(MAKERS) if known is maker)
    return (number, *((write_operand(a),) if isinstance(a, _ARGUMENTS) else a for a in arguments))


def _entry(value: tuple[Any, ...]) -> Entry:
    number, *arguments = value
    maker: Callable[..., Entry] = MAKERS[number]
    return maker(*(read_operand(*a) if isinstance(a, tuple) else a for a in arguments))
