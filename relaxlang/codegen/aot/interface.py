"""The library as C programs see it: the header, and the entry points in C.

`mod_name_run` takes structs of pointers (`interface-api=c`) or DLPack tensors that it checks (`packed`). Without
`unpacked-api` every kernel can be called by itself too, with its arguments as an array of pointers.
"""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.base.dtype import dtype
from relaxlang.base.record import record
from relaxlang.base.version import __version__
from relaxlang.codegen.aot.entry import Port, Program
from relaxlang.codegen.c.types import declare, identifier, memory_type, prefix
from relaxlang.codegen.c.writer import ALIGN
from relaxlang.codegen.function import PREFIX
from relaxlang.ir.tir import PrimFunc

DL_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
DL_TENSOR = """\
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
/* The tensors of DLPack, as far as they are used here. */
typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;
#endif"""
_EXTERN = '#ifdef __cplusplus\nextern "C" {\n#endif'
_EXTERN_END = "#ifdef __cplusplus\n}\n#endif"


@record
class Interface:
    """How the library is called: `packed` by DLPack tensors, else by structs; `kernels` says whether kernels can be
    called by themselves, `find` whether they are found by name at run time; the alignment is in bytes."""

    packed: bool = True
    kernels: bool = True
    find: bool = False
    workspace_alignment: int = 16


def checked_ports(program: Program) -> tuple[Port, ...]:
    """The arguments of the packed entry in order: inputs, outputs, constants that are not linked in."""
    return (*program.inputs, *program.outputs, *(() if program.linked else program.constants))


def header(name: str, programs: Iterable[Program], interface: Interface) -> str:
    """The header of a library of programs, `name.h`."""
    guard = f"{prefix(name).upper()}_H"
    parts = [f"/* Made by relaxlang {__version__}. */", f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>"]
    parts.append(_EXTERN)
    parts += [DL_TENSOR] if interface.packed else []
    for program in programs:
        parts += _declarations(program, interface)
    parts += [_EXTERN_END, "#endif"]
    return "\n\n".join(parts) + "\n"


def _declarations(program: Program, interface: Interface) -> list[str]:
    name = prefix(program.name)
    upper = name.upper()
    parts = [
        f"/* Bytes of static memory that {name}_run works in, and of its constants. */\n"
        f"#define {upper}_WORKSPACE_SIZE {program.workspace.size}\n"
        f"#define {upper}_CONSTANTS_SIZE {program.constant_bytes}"
    ]
    if interface.packed:
        listed = "\n".join(f" * {k}: {_say(p)}" for k, p in enumerate(checked_ports(program)))
        parts.append(f"/* Runs the program on contiguous tensors in memory that the processor sees:\n{listed}\n"
                     f" * Returns 0, or the number of what failed: see {name}_message. */\n"
                     f"int32_t {name}_run(DLTensor *const *args, int32_t num_args);")  # fmt: skip
    else:
        parts += _structs(program, name)
    parts.append(f"/* What a status stands for. */\nconst char *{name}_message(int32_t status);")
    if interface.kernels:
        listed = "\n".join(
            f"int32_t {name}_{prefix(k)}(void *const *args, int32_t num_args);" for k in kernels(program)
        )
        parts.append(
            f"/* The kernels by themselves: pointers to the data of each buffer, then to each scalar. */\n{listed}"
        )
    if interface.find:
        kind = f"typedef int32_t (*{name}_function)(void *const *args, int32_t num_args);"
        parts.append(f"/* The kernel of a name, or NULL. */\n{kind}\n{name}_function {name}_find(const char *name);")
    return parts


def kernels(program: Program) -> list[str]:
    """The names of the PrimFuncs that the entry calls."""
    return [name for name in program.functions if name != program.entry]


def _structs(program: Program, name: str) -> list[str]:
    parts = [_struct(f"{name}_inputs", program.inputs, const=True), _struct(f"{name}_outputs", program.outputs)]
    args = [f"const struct {name}_inputs *inputs", f"const struct {name}_outputs *outputs"]
    if not program.linked:
        parts.append(_struct(f"{name}_constants", program.constants, const=True))
        args.append(f"const struct {name}_constants *constants")
    said = f"/* Runs the module. Returns 0, or the number of what failed: see {name}_message. */\n"
    return [*parts, f"{said}int32_t {name}_run({', '.join(args)});"]


def _struct(name: str, ports: Iterable[Port], *, const: bool = False) -> str:
    kind = "const " if const else ""
    fields = [
        f"  {declare(f'{kind}{memory_type(dtype(p.dtype))} *', identifier(p.name))}; /* {_say(p, named=False)} */"
        for p in ports
    ]
    return "\n".join([f"struct {name} {{", *(fields or ["  char none; /* C structs have a field */"]), "};"])


def _say(port: Port, *, named: bool = True) -> str:
    shape = ", ".join(map(str, port.shape)) + ("," if len(port.shape) == 1 else "")
    return f"{f'`{port.name}`, ' if named else ''}{port.dtype} ({shape})"


# --- C ----------------------------------------------------------------------------------------------------------------
def c_interface(program: Program, interface: Interface, messages: list[str]) -> str:
    """The entry points in C, which follow the functions; `messages` are those of the kernels, in order of status."""
    name = prefix(program.name)
    parts: list[str] = []
    if program.workspace.size:
        aligned = f"{ALIGN}({interface.workspace_alignment})"
        parts.append(f"static uint8_t {aligned} {name}_workspace[{program.workspace.size}];")
    texts = all_messages(program, interface, messages)
    parts.append(_packed(program, name, len(messages)) if interface.packed else _unpacked(program, name))
    parts.append(_messages(name, texts))
    if interface.kernels:
        parts += [_kernel_entry(name, k, program.functions[k]) for k in kernels(program)]
    if interface.find:
        lines = "".join(f'  if (!strcmp(name, "{k}")) return {name}_{prefix(k)};\n' for k in kernels(program))
        parts.append(f"{name}_function {name}_find(const char *name) {{\n{lines}  return NULL;\n}}")
    return "\n\n".join(parts)


def all_messages(program: Program, interface: Interface, messages: list[str]) -> list[str]:
    """What the statuses stand for, from 1: failures of kernels, then of the checks of the packed entry."""
    if not interface.packed:
        return messages
    ports = checked_ports(program)
    checks = [f"argument {k} is not {_say(port)}, contiguous" for k, port in enumerate(ports)]
    return [*messages, f"{prefix(program.name)}_run takes {len(ports)} tensors", *checks]


def _call(program: Program, args: list[str]) -> str:
    workspace = [f"{prefix(program.name)}_workspace"] if program.workspace.size else []
    return f"{PREFIX}{prefix(program.entry)}({', '.join([*args, *workspace])})"


def _unpacked(program: Program, name: str) -> str:
    head = f"int32_t {name}_run(const struct {name}_inputs *inputs, const struct {name}_outputs *outputs"
    args = [f"inputs->{identifier(p.name)}" for p in program.inputs]
    args += [f"outputs->{identifier(p.name)}" for p in program.outputs]
    if not program.linked:
        head += f", const struct {name}_constants *constants"
        args += [f"constants->{identifier(p.name)}" for p in program.constants]
    unused = "" if program.inputs else "  (void)inputs;\n"
    return f"{head}) {{\n{unused}  return {_call(program, args)};\n}}"


def _packed(program: Program, name: str, before: int) -> str:
    ports = checked_ports(program)
    lines = [f"  if (num_args != {len(ports)}) return {before + 1};"]
    args, shapes = [], []
    for k, port in enumerate(ports):
        dims = ", ".join(map(str, port.shape)) or "0"
        shapes.append(f"  static const int64_t shape{k}[] = {{{dims}}};")
        fits = f"rl_fits(args[{k}], {dl_code(port)}, {dl_bits(port)}, {len(port.shape)}, shape{k})"
        lines.append(f"  if (!{fits}) return {before + 2 + k};")
        args.append(f"({memory_type(dtype(port.dtype))} *)((char *)args[{k}]->data + args[{k}]->byte_offset)")
    body = "\n".join([*shapes, *lines, f"  return {_call(program, args)};"])
    return f"int32_t {name}_run(DLTensor *const *args, int32_t num_args) {{\n{body}\n}}"


def dl_code(port: Port) -> int:
    """DLPack's code of the kind of a dtype."""
    return DL_CODES.get(dtype(port.dtype).kind, 1)


def dl_bits(port: Port) -> int:
    """DLPack's bits of a dtype; a bool takes a byte."""
    of = dtype(port.dtype)
    return 8 if of.is_bool else of.bits


FITS = """\
/* Whether a tensor has the type and the shape, and its elements are next to each other. */
static int rl_fits(const DLTensor *t, int code, int bits, int32_t ndim, const int64_t *shape) {
  int64_t run = 1;
  int32_t axis;
  if (t->dtype.code != code || t->dtype.bits != bits || t->dtype.lanes != 1 || t->ndim != ndim) return 0;
  for (axis = ndim - 1; axis >= 0; --axis) {
    if (t->shape[axis] != shape[axis]) return 0;
    if (t->strides && shape[axis] > 1 && t->strides[axis] != run) return 0;
    run *= shape[axis];
  }
  return 1;
}"""


def _messages(name: str, texts: list[str]) -> str:
    cases = "".join(f'    case {k}: return "{_escaped(t)}";\n' for k, t in enumerate(texts, 1))
    return (
        f"const char *{name}_message(int32_t status) {{\n  switch (status) {{\n"
        f'    case 0: return "no error";\n{cases}    default: return "unknown status";\n  }}\n}}'
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _kernel_entry(name: str, kernel: str, func: PrimFunc) -> str:
    buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    scalars = [p for p in func.params if p not in func.buffer_map]
    args = [f"({memory_type(b.dtype)} *)args[{k}]" for k, b in enumerate(buffers)]
    args += [f"*(const {memory_type(p.dtype)} *)args[{len(buffers) + k}]" for k, p in enumerate(scalars)]
    head = f"int32_t {name}_{prefix(kernel)}(void *const *args, int32_t num_args) {{\n"
    count = f"  if (num_args != {len(args)}) return -1;\n"
    return f"{head}{count}  return {PREFIX}{prefix(kernel)}({', '.join(args)});\n}}"
