"""Object files of x86-64 Linux put into memory without LLVM, whose library takes longer to load than most programs do.

Kernels and native programs need little of what a linker can do: sections side by side in one piece of memory, four
kinds of relocation, and a table of addresses beyond it (System V ABI, AMD64 supplement, chapters 3.5 and 4.4). Whatever
else an object asks for is left to LLVM's linker (`jit`).
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from relaxlang.base.diagnostics import RelaxlangError

_HEAD = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _UNWIND = 1, 2, 4, 8, 0x70000001
_WRITE, _ALLOC, _EXEC, _KNOWN_FLAGS = 1, 2, 4, 0x37  # with merge, strings and info link
_ABSOLUTE, _RESERVED = 0xFFF1, 0xFF00
_FUNCTION_LIKE = (0, 1, 2, 3)  # no type, object, function, section
_ABS64, _PC32, _PLT32, _GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX = 1, 2, 4, 9, 41, 42
_STUB, _LINE = 8, 64
_JUMP = b"\xff\x25"  # jmp *offset(%rip)


class UnsupportedObject(RelaxlangError):
    """An object file that asks for more than is done here."""


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class _Symbol(NamedTuple):
    name: str
    info: int
    section: int
    value: int


class Memory:
    """Code and data in memory, given back when this object is closed. Forked children have their own."""

    def __init__(self, size: int) -> None:
        self.map = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._first = ctypes.c_char.from_buffer(self.map)
        self.address = ctypes.addressof(self._first)
        self.closed = False

    def protect(self, start: int, end: int, access: int) -> None:
        """Set what may be done with some pages."""
        if end > start and ctypes.CDLL(None).mprotect(ctypes.c_void_p(self.address + start), end - start, access):
            raise UnsupportedObject("this system lets no memory become code")

    def close(self) -> None:
        """Give the memory back."""
        self.closed = True
        del self._first
        self.map.close()


class _Object:
    """An object file: its sections, symbols and relocations, and where its sections are put."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        if not content.startswith(_HEAD) or struct.unpack_from("<HH", content, 16) != (_RELOCATABLE, _X86_64):
            raise UnsupportedObject("not an object file for x86-64")
        (table,) = struct.unpack_from("<Q", content, 40)
        size, count = struct.unpack_from("<HH", content, 58)
        self.sections = [_Section(*struct.unpack_from("<IIQQQQIIQQ", content, table + i * size)) for i in range(count)]
        self.places: dict[int, int] = {}
        self.symbols = list(self._read_symbols())

    def loaded(self) -> Iterator[tuple[int, _Section]]:
        """The sections that are there when the code runs; not those for unwinding, which nothing here does."""
        for index, section in enumerate(self.sections):
            if section.flags & _ALLOC and section.type != _UNWIND:
                if section.type not in (_PROGBITS, _NOBITS) or section.flags & ~_KNOWN_FLAGS:
                    raise UnsupportedObject("a section of an unknown kind")
                yield index, section

    def _read_symbols(self) -> Iterator[_Symbol]:
        for table in self.sections:
            if table.type == _SYMTAB:
                names = self.sections[table.link].offset
                raw = self.content[table.offset : table.offset + table.size]
                for name, info, _, section, value, _ in struct.iter_unpack("<IBBHQQ", raw):
                    end = self.content.index(b"\0", names + name)
                    yield _Symbol(self.content[names + name : end].decode(), info, section, value)

    def relocations(self) -> Iterator[tuple[int, int, _Symbol, int]]:
        """Offset in memory, kind, symbol and addend of all relocations of sections that are loaded."""
        for section in self.sections:
            base = self.places.get(section.info)
            if section.type == _RELA and base is not None:
                raw = self.content[section.offset : section.offset + section.size]
                for offset, info, addend in struct.iter_unpack("<QQq", raw):
                    yield base + offset, info & 0xFFFFFFFF, self.symbols[info >> 32], addend


def is_possible() -> bool:
    """Whether this machine is one of those whose objects are known here."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


def place(
    objects: Sequence[bytes], symbols: Sequence[str], provided: Mapping[str, int]
) -> tuple[dict[str, int], Memory]:
    """Put object files into memory together; the addresses of `symbols`, and the memory that they are in.

    They may use each other's symbols, `provided` ones and those of the process. UnsupportedObject for what LLVM's
    linker has to look at, missing symbols too.
    """
    try:
        return _Placing([_Object(content) for content in objects], provided).run(symbols)
    except (struct.error, IndexError, ValueError, OverflowError, OSError) as fault:
        raise UnsupportedObject(str(fault)) from fault


class _Placing:
    """Object files on their way into one piece of memory: code, then constants, then what is written to."""

    def __init__(self, objects: list[_Object], provided: Mapping[str, int]) -> None:
        self.objects = objects
        self.provided = provided
        self.process = ctypes.CDLL(None)
        self.defined: dict[str, int] = {}
        self.got: dict[tuple[str, int], int] = {}
        self.stubs: dict[str, int] = {}

    def run(self, symbols: Sequence[str]) -> tuple[dict[str, int], Memory]:
        page = mmap.PAGESIZE
        code = self._lay_out(0, _EXEC)
        stubs = _up(code, 16)
        count = len({s.name for o in self.objects for s in o.symbols if s.section == 0})
        constants = _up(stubs + _STUB * count, page)
        table = _up(self._lay_out(constants, 0), 8)
        data = _up(table + 8 * (count + sum(len(o.symbols) for o in self.objects)), page)
        end = _up(self._lay_out(data, _WRITE), page)
        self.memory = Memory(end)
        self.next_stub, self.next_slot = stubs, table
        self._fill()
        for one in self.objects:
            self._relocate(one)
        self.memory.protect(0, constants, mmap.PROT_READ | mmap.PROT_EXEC)
        self.memory.protect(constants, data, mmap.PROT_READ)
        base = self.memory.address
        return {name: base + self.defined[name] if name in self.defined else _missing(name) for name in symbols}, (
            self.memory
        )

    def _lay_out(self, at: int, access: int) -> int:
        """Give the sections with this access their places from `at` on; where they end. Code begins at cache lines, so
        that it is as fast wherever it comes to lie."""
        least = _LINE if access == _EXEC else 1
        for one in self.objects:
            for index, section in one.loaded():
                if section.flags & (_EXEC | _WRITE) == access:
                    one.places[index] = at = _up(at, max(section.align, least))
                    at += section.size
        return at

    def _fill(self) -> None:
        for one in self.objects:
            for index, section in one.loaded():
                if index not in one.places:
                    raise UnsupportedObject("a section that is both code and data")
                if section.type == _PROGBITS:
                    start, at = section.offset, one.places[index]
                    self.memory.map[at : at + section.size] = one.content[start : start + section.size]
            for symbol in one.symbols:
                if symbol.info >> 4 and 0 < symbol.section < _RESERVED and symbol.section in one.places:
                    if symbol.name in self.defined:
                        raise UnsupportedObject(f"`{symbol.name}` is there twice")
                    self.defined[symbol.name] = one.places[symbol.section] + symbol.value

    def _relocate(self, one: _Object) -> None:
        memory, base = self.memory.map, self.memory.address
        for at, kind, symbol, addend in one.relocations():
            if symbol.info & 15 not in _FUNCTION_LIKE:
                raise UnsupportedObject(f"`{symbol.name}` is of an unknown kind")
            if kind == _ABS64:
                struct.pack_into("<Q", memory, at, (self._address(one, symbol) + addend) % (1 << 64))
                continue
            if kind in (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX):
                target = base + self._slot(symbol.name, self._address(one, symbol))
            elif kind in (_PC32, _PLT32):
                inside = symbol.section or symbol.name in self.defined
                if not inside and kind == _PC32:
                    raise UnsupportedObject(f"`{symbol.name}` must be near")
                target = self._address(one, symbol) if inside else base + self._stub(one, symbol)
            else:
                raise UnsupportedObject(f"relocation {kind}")
            struct.pack_into("<i", memory, at, target + addend - base - at)

    def _address(self, one: _Object, symbol: _Symbol) -> int:
        if symbol.section == _ABSOLUTE:
            return symbol.value
        if symbol.section >= _RESERVED or (symbol.section and symbol.section not in one.places):
            raise UnsupportedObject(f"`{symbol.name}` is nowhere")
        if symbol.section:
            return self.memory.address + one.places[symbol.section] + symbol.value
        if symbol.name in self.defined:
            return self.memory.address + self.defined[symbol.name]
        known = self.provided.get(symbol.name)
        if known is None:
            found = getattr(self.process, symbol.name, None)
            known = None if found is None else ctypes.cast(found, ctypes.c_void_p).value
        return known or _missing(symbol.name)

    def _slot(self, name: str, address: int) -> int:
        """The place in the table of addresses that holds this one."""
        found = self.got.get((name, address))
        if found is None:
            found = self.got[name, address] = self.next_slot
            struct.pack_into("<Q", self.memory.map, found, address)
            self.next_slot += 8
        return found

    def _stub(self, one: _Object, symbol: _Symbol) -> int:
        """The place of the code that jumps to a function which may be far away."""
        found = self.stubs.get(symbol.name)
        if found is None:
            found = self.stubs[symbol.name] = self.next_stub
            slot = self._slot(symbol.name, self._address(one, symbol))
            self.memory.map[found : found + 6] = _JUMP + struct.pack("<i", slot - found - 6)
            self.next_stub += _STUB
        return found


def _missing(name: str) -> int:
    raise UnsupportedObject(f"there is no `{name}`")


def _up(at: int, align: int) -> int:
    return at + -at % align
