"""What the headers of a shared library in the ELF format say, looked at before the system's loader gets it.

The loader maps a file that was cut off all the same, and the process dies when it touches what is not there; of a
library for another processor it says only that it cannot be opened.
"""

from __future__ import annotations

import os
import platform
import struct

MAGIC = b"\x7fELF"
_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_SAME = {"amd64": "x86_64", "arm64": "aarch64", "i686": "i386", "armv7l": "arm"}
_LOADED = 1  # the type of a segment that is mapped


def fault_of_library(path: str | os.PathLike[str]) -> str:
    """Why a file cannot be loaded as a shared library; empty when it can, as far as its headers tell, when it is of
    another format, and when it cannot be read."""
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            head = stream.read(64)
            if not head.startswith(MAGIC):
                return ""
            if len(head) < 64:
                return "it is cut off"
            wide, little = head[4] == 2, head[5] == 1
            order = "<" if little else ">"
            (machine,) = struct.unpack_from(order + "H", head, 18)
            own = platform.machine().lower()
            built = _MACHINES.get(machine, f"the processor number {machine}")
            if built != _SAME.get(own, own) and own:
                return f"it is for {built}, and this machine is {own}"
            if not wide:
                return ""
            segments, sections = struct.unpack_from(order + "QQ", head, 32)
            entry, count, section_size, section_count = struct.unpack_from(order + "HHHH", head, 54)
            ends = [segments + entry * count, sections + section_size * section_count]
            stream.seek(segments)
            table = stream.read(entry * count)
    except OSError:
        return ""
    for at in range(0, len(table) - entry + 1, max(entry, 56)):
        kind, _, offset, _, _, held = struct.unpack_from(order + "IIQQQQ", table, at)
        if kind == _LOADED:
            ends.append(offset + held)
    return "it is cut off" if max(ends) > size else ""
