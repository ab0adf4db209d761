"""Shared libraries: an executable and its kernels in one file that `load_module`, or any C program, can open.

Exported are `relaxlang_executable` (the bytes of the `.rlxe` form, without object code), `relaxlang_executable_size`
(uint64), the kernels (`rlx_` before the PrimFunc's name), and where there are parallel loops `relaxlang_launcher`, by
which they find the pool of the process that loaded the library; until somebody sets it they run serially.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec

from relaxlang.base.diagnostics import fail
from relaxlang.base.files import write_atomically
from relaxlang.codegen.pool import LAUNCH
from relaxlang.codegen.target import Target
from relaxlang.runtime.executable import Executable, ObjectCode
from relaxlang.runtime.module import RuntimeModule

LINK_SECONDS = 300
_COMPILERS = ("cc", "gcc", "clang")
_LAUNCHER = "relaxlang_launcher"

# Assembly, so that megabytes of constants are copied by the assembler and never become text.
_DATA = """\
{section}
.globl {underscore}relaxlang_executable
.balign 64
{underscore}relaxlang_executable:
.incbin "{blob}"
.globl {underscore}relaxlang_executable_size
.balign 8
{underscore}relaxlang_executable_size:
.quad {size}
{trailer}
"""

# For kernels with parallel loops, so that a library without relaxlang around it is complete.
_LAUNCH = """
target triple = "{triple}"

@relaxlang_launcher = global ptr @serial

define internal void @serial(ptr %body, ptr %context, i64 %extent, i64 %grain) {{
  %some = icmp sgt i64 %extent, 0
  br i1 %some, label %run, label %done
run:
  call void %body(ptr %context, i64 0, i64 %extent)
  br label %done
done:
  ret void
}}

define hidden void @{launch}(ptr %body, ptr %context, i64 %extent, i64 %grain) {{
  %launcher = load ptr, ptr @relaxlang_launcher
  tail call void %launcher(ptr %body, ptr %context, i64 %extent, i64 %grain)
  ret void
}}
"""


def export_library(module: RuntimeModule, path: str) -> None:
    """Write a built module as a shared library. RLX5030 without a linker, RLX5031 when it fails."""
    write_atomically(path, shared_library(module.executable))


def shared_library(executable: Executable) -> bytes:
    """The content of a shared library that holds an executable and its kernels."""
    objects = executable.objects
    triple = objects[0].triple if objects else Target().mtriple
    linker = _linker(triple)
    with tempfile.TemporaryDirectory(prefix="relaxlang-") as folder:
        contents = {f"{i}.o": content.code for i, content in enumerate(objects)}
        if any(LAUNCH.encode() in content for content in contents.values()):
            contents["launch.o"] = _launch(triple)
        # The machine that the code is for is still wanted when the library is loaded; the code itself is beside it.
        bare = tuple(ObjectCode(b"", o.triple, o.cpu, o.features) for o in objects[:1])
        blob = executable.with_objects(bare).to_bytes()
        contents["data.s"] = _data(triple, os.path.join(folder, "executable"), len(blob)).encode()
        for name, content in {**contents, "executable": blob}.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        made = os.path.join(folder, "library")
        _link([*linker, "-shared", "-o", made, *(os.path.join(folder, name) for name in contents), "-lm"])
        with open(made, "rb") as file:
            return file.read()


def _data(triple: str, path: str, size: int) -> str:
    """Assembly that holds the content of a file of `size` bytes under the executable's symbols."""
    apple = "apple" in triple
    return _DATA.format(
        section=".section __TEXT,__const" if apple else ".section .rodata",
        underscore="_" if apple else "",
        blob=path.replace("\\", "/"),
        size=size,
        trailer="" if apple else '.section .note.GNU-stack,"",%progbits',
    )


def _launch(triple: str) -> bytes:
    """The object file by which parallel loops find somebody to run them."""
    from relaxlang.codegen.compile import object_code

    return object_code(_LAUNCH.format(triple=triple, launch=LAUNCH), Target({"kind": "llvm", "mtriple": triple}))


def _linker(triple: str) -> list[str]:
    """The command that links for a platform: the system's compiler for it, else zig's."""
    native = Target().mtriple
    here = triple.split("-")[0] == native.split("-")[0]
    plain = triple.replace("-unknown-", "-").replace("-pc-", "-")
    for name in _COMPILERS if here else (f"{plain}-gcc",):
        found = shutil.which(name)
        if found is not None:
            return [found]
    if find_spec("ziglang") is None:
        fail(
            "RLX5030",
            f"there is no linker for `{triple}`",
            help="install a C compiler or `pip install ziglang`; `.rlxe` files need none",
        )
    zig = [sys.executable, "-m", "ziglang", "cc"]
    return zig if triple == native else [*zig, "-target", plain]


def _link(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, timeout=LINK_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        fail("RLX5031", f"`{command[0]}` did not link the library within {LINK_SECONDS} seconds")
    except OSError as error:
        fail("RLX5031", f"`{command[0]}` cannot be run: {(error.strerror or str(error)).lower()}")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        fail("RLX5031", f"`{command[0]}` could not link the library", notes=said[:20])


def adopt_library(executable: Executable, library: ctypes.CDLL) -> None:
    """Check that a loaded library's code is for this machine (RLX5018), and give it this process's pool of threads."""
    from relaxlang.codegen.link import check_machine
    from relaxlang.codegen.pool import pool

    check_machine(executable)
    try:
        launcher = ctypes.c_void_p.in_dll(library, _LAUNCHER)
    except ValueError:  # no parallel loops
        return
    launcher.value = pool().launch
