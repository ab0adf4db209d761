"""What a library is written as: C source, an object file, a static library, or everything in one archive."""

from __future__ import annotations

import io
import json
import os
import struct
import tarfile
from collections.abc import Iterable, Mapping

from relaxlang.base.files import write_atomically
from relaxlang.base.version import __version__
from relaxlang.codegen.aot.entry import Port
from relaxlang.codegen.aot.interface import kernels
from relaxlang.codegen.aot.library import C_TARGET, AotLibrary
from relaxlang.codegen.c.types import prefix
from relaxlang.codegen.function import PREFIX

SUFFIXES = (".c", ".o", ".a", ".tar")
FORMAT_VERSION = 1


def export(library: AotLibrary, path: str) -> None:
    """Write the library to `path`, by its suffix; the header goes beside `.c`, `.o` and `.a`, under its own name."""
    suffix = os.path.splitext(path)[1]
    if suffix == ".tar":
        write_atomically(path, model_library(library))
        return
    content: bytes | str = library.c_source if suffix == ".c" else library.object_code
    if suffix == ".a":
        content = static_library(library)
    write_atomically(os.path.join(os.path.dirname(path), f"{prefix(library.mod_name)}.h"), library.header)
    write_atomically(path, content)


def symbols(library: AotLibrary) -> list[str]:
    """The global symbols of the object file."""
    found: list[str] = []
    for program in library.programs:
        name = prefix(program.name)
        found += [f"{name}_run", f"{name}_message", PREFIX + program.entry]
        if library.interface.kernels:
            found += [f"{name}_{prefix(k)}" for k in kernels(program)]
        found += [f"{name}_find"] if library.interface.find else []
    return found


def static_library(library: AotLibrary) -> bytes:
    """An `ar` archive with the object file and an index of its symbols, in the form that linkers on Linux read."""
    names = symbols(library)
    text = b"".join(n.encode() + b"\0" for n in names)
    index_size = 4 + 4 * len(names) + len(text)
    member = 8 + 60 + index_size + index_size % 2
    index = struct.pack(f">I{len(names)}I", len(names), *[member] * len(names)) + text
    return b"!<arch>\n" + _member("/", index) + _member(f"{prefix(library.mod_name)[:11]}.o/", library.object_code)


def _member(name: str, content: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n"
    return head.encode() + content + b"\n" * (len(content) % 2)


def model_library(library: AotLibrary) -> bytes:
    """A tar archive: `codegen/host` with source or object and header, `parameters`, `metadata.json`, `memory.json`.

    The same library gives the same bytes.
    """
    name = prefix(library.mod_name)
    files: dict[str, bytes] = {f"codegen/host/include/{name}.h": library.header.encode()}
    if library.target.kind == C_TARGET:
        files[f"codegen/host/src/{name}.c"] = library.c_source.encode()
    else:
        files[f"codegen/host/lib/{name}.o"] = library.object_code
    files |= {f"parameters/{key}.bin": value.tobytes() for key, value in library.parameters.items()}
    files["memory.json"] = library.report_text.encode()
    files["metadata.json"] = _metadata(library).encode()
    return _tar(files)


def _metadata(library: AotLibrary) -> str:
    def ports(some: Iterable[Port]) -> list[dict[str, object]]:
        return [{"name": p.name, "shape": list(p.shape), "dtype": p.dtype} for p in some]

    made = {
        "format": "relaxlang.library",
        "version": FORMAT_VERSION,
        "relaxlang": __version__,
        "mod_name": library.mod_name,
        "target": str(library.target),
        "interface": "packed" if library.interface.packed else "c",
        "programs": {
            p.name: {
                "inputs": ports(p.inputs),
                "outputs": ports(p.outputs),
                "constants": ports(p.constants),
                "constants_linked": p.linked,
                "workspace_bytes": p.workspace.size,
            }
            for p in library.programs
        },
    }
    return json.dumps(made, indent=1) + "\n"


def _tar(files: Mapping[str, bytes]) -> bytes:
    """An archive with fixed times and owners."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return out.getvalue()
