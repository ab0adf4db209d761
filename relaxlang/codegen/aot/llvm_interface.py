"""The entry points of `interface` as LLVM IR, for machine code of any platform, without a C compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaxlang.codegen.aot.entry import Program
from relaxlang.codegen.aot.interface import Interface, all_messages, checked_ports, dl_bits, dl_code, kernels
from relaxlang.codegen.c.types import prefix
from relaxlang.codegen.function import PREFIX
from relaxlang.codegen.lltypes import memory_type
from relaxlang.codegen.text import symbol
from relaxlang.ir.tir import PrimFunc

# struct DLTensor of DLPack, whatever the size of pointers.
DL_TENSOR = "%DLTensor = type { ptr, { i32, i32 }, i32, { i8, i8, i16 }, ptr, ptr, i64 }"

# Whether a tensor has the type and the shape, and its elements are next to each other.
FITS = """\
define internal i1 @rl_fits(ptr %t, i8 %code, i8 %bits, i32 %ndim, ptr %shape) {
entry:
  %code.at = getelementptr %DLTensor, ptr %t, i32 0, i32 3, i32 0
  %code.is = load i8, ptr %code.at
  %bits.at = getelementptr %DLTensor, ptr %t, i32 0, i32 3, i32 1
  %bits.is = load i8, ptr %bits.at
  %lanes.at = getelementptr %DLTensor, ptr %t, i32 0, i32 3, i32 2
  %lanes.is = load i16, ptr %lanes.at
  %ndim.at = getelementptr %DLTensor, ptr %t, i32 0, i32 2
  %ndim.is = load i32, ptr %ndim.at
  %shape.at = getelementptr %DLTensor, ptr %t, i32 0, i32 4
  %shape.is = load ptr, ptr %shape.at
  %strides.at = getelementptr %DLTensor, ptr %t, i32 0, i32 5
  %strides.is = load ptr, ptr %strides.at
  %no.strides = icmp eq ptr %strides.is, null
  %same.code = icmp eq i8 %code.is, %code
  %same.bits = icmp eq i8 %bits.is, %bits
  %one.lane = icmp eq i16 %lanes.is, 1
  %same.ndim = icmp eq i32 %ndim.is, %ndim
  %a = and i1 %same.code, %same.bits
  %b = and i1 %one.lane, %same.ndim
  %plain = and i1 %a, %b
  br i1 %plain, label %head, label %no
head:
  %left = phi i32 [ %ndim, %entry ], [ %axis, %next ]
  %run = phi i64 [ 1, %entry ], [ %more, %next ]
  %some = icmp sgt i32 %left, 0
  br i1 %some, label %body, label %yes
body:
  %axis = sub i32 %left, 1
  %dim.at = getelementptr i64, ptr %shape, i32 %axis
  %dim = load i64, ptr %dim.at
  %given.at = getelementptr i64, ptr %shape.is, i32 %axis
  %given = load i64, ptr %given.at
  %same.dim = icmp eq i64 %dim, %given
  br i1 %same.dim, label %stride, label %no
stride:
  %single = icmp sle i64 %dim, 1
  %free = or i1 %single, %no.strides
  br i1 %free, label %next, label %compare
compare:
  %stride.at = getelementptr i64, ptr %strides.is, i32 %axis
  %step = load i64, ptr %stride.at
  %same.step = icmp eq i64 %step, %run
  br i1 %same.step, label %next, label %no
next:
  %more = mul i64 %run, %dim
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}
"""


def llvm_interface(program: Program, interface: Interface, messages: list[str], symbols: Mapping[str, str]) -> str:
    """The entry points of a program, which stand behind its functions in one LLVM module; `symbols` are those of the
    kernels."""
    name = prefix(program.name)
    parts = []
    if program.workspace.size:
        kind = f"[{program.workspace.size} x i8] zeroinitializer"
        parts.append(f"@{name}_workspace = internal global {kind}, align {interface.workspace_alignment}\n")
    parts.append(_packed(program, name, len(messages)) if interface.packed else _unpacked(program, name))
    parts.append(_messages(name, all_messages(program, interface, messages)))
    if interface.kernels:
        parts += [_kernel_entry(name, k, symbols[k], program.functions[k]) for k in kernels(program)]
    if interface.find:
        parts.append(_find(name, kernels(program)))
    return "\n".join(parts)


def _find(name: str, names: Sequence[str]) -> str:
    """The function that finds a kernel by name."""
    head, lines = [], [f"define ptr @{name}_find(ptr %name) {{", "  br label %try0"]
    for k, kernel in enumerate(names):
        raw = kernel.encode() + b"\0"
        text = "".join(chr(c) if 32 <= c < 127 and c not in (34, 92) else f"\\{c:02X}" for c in raw)
        head.append(f'@{name}_name{k} = internal constant [{len(raw)} x i8] c"{text}"')
        lines += [
            f"try{k}:",
            f"  %order{k} = call i32 @strcmp(ptr %name, ptr @{name}_name{k})",
            f"  %same{k} = icmp eq i32 %order{k}, 0",
            f"  br i1 %same{k}, label %found{k}, label %try{k + 1}",
            f"found{k}:",
            f"  ret ptr {symbol(f'{name}_{prefix(kernel)}')}",
        ]
    lines += [f"try{len(names)}:", "  ret ptr null", "}", ""]
    return "\n".join([*head, *lines])


def _call(program: Program, args: Sequence[str]) -> str:
    workspace = [f"ptr @{prefix(program.name)}_workspace"] if program.workspace.size else []
    entry = symbol(PREFIX + program.entry)
    return f"  %status = call i32 {entry}({', '.join([*args, *workspace])})\n  ret i32 %status\n}}\n"


def _load(struct: str, index: int) -> list[str]:
    """Lines that load the pointer number `index` of an array of pointers, which a struct of pointers is too."""
    return [
        f"  %{struct}{index}.at = getelementptr ptr, ptr %{struct}, i32 {index}",
        f"  %{struct}{index} = load ptr, ptr %{struct}{index}.at",
    ]


def _unpacked(program: Program, name: str) -> str:
    groups = {"inputs": program.inputs, "outputs": program.outputs}
    if not program.linked:
        groups["constants"] = program.constants
    lines = [f"define i32 @{name}_run({', '.join(f'ptr %{g}' for g in groups)}) {{"]
    args = []
    for group, ports in groups.items():
        for k in range(len(ports)):
            lines += _load(group, k)
            args.append(f"ptr %{group}{k}")
    return "\n".join(lines) + "\n" + _call(program, args)


def _packed(program: Program, name: str, before: int) -> str:
    ports = checked_ports(program)
    head, args = [], []
    lines = [
        f"define i32 @{name}_run(ptr %args, i32 %num) {{",
        f"  %count = icmp eq i32 %num, {len(ports)}",
        f"  br i1 %count, label %check0, label %failed{before + 1}",
    ]
    for k, port in enumerate(ports):
        dims = ", ".join(f"i64 {d}" for d in port.shape) or "i64 0"
        head.append(f"@{name}_shape{k} = internal constant [{max(1, len(port.shape))} x i64] [{dims}]")
        shape = f"i8 {dl_code(port)}, i8 {dl_bits(port)}, i32 {len(port.shape)}, ptr @{name}_shape{k}"
        lines += [f"check{k}:", *_load("args", k), f"  %fits{k} = call i1 @rl_fits(ptr %args{k}, {shape})",
                  f"  br i1 %fits{k}, label %check{k + 1}, label %failed{before + 2 + k}"]  # fmt: skip
        args.append(f"ptr %data{k}")
    lines.append(f"check{len(ports)}:")
    for k in range(len(ports)):
        lines += [
            f"  %base{k} = load ptr, ptr %args{k}",
            f"  %offset{k}.at = getelementptr %DLTensor, ptr %args{k}, i32 0, i32 6",
            f"  %offset{k} = load i64, ptr %offset{k}.at",
            f"  %data{k} = getelementptr i8, ptr %base{k}, i64 %offset{k}",
        ]
    statuses = range(before + 1, before + 2 + len(ports))
    failures = "".join(f"failed{s}:\n  ret i32 {s}\n" for s in statuses)
    body = "\n".join(lines) + "\n" + _call(program, args).removesuffix("}\n") + failures + "}\n"
    return "\n".join(head) + "\n" + body


def _messages(name: str, texts: list[str]) -> str:
    every = ["no error", *texts, "unknown status"]
    data = []
    for k, text in enumerate(every):
        raw = text.encode() + b"\0"
        escaped = "".join(chr(c) if 32 <= c < 127 and c not in (34, 92) else f"\\{c:02X}" for c in raw)
        data.append(f'@{name}_text{k} = internal constant [{len(raw)} x i8] c"{escaped}"')
    table = ", ".join(f"ptr @{name}_text{k}" for k in range(len(every)))
    last = len(every) - 1
    return (
        "\n".join(data)
        + f"""
@{name}_texts = internal constant [{len(every)} x ptr] [{table}]

define ptr @{name}_message(i32 %status) {{
  %known = icmp ult i32 %status, {last}
  %index = select i1 %known, i32 %status, i32 {last}
  %at = getelementptr ptr, ptr @{name}_texts, i32 %index
  %text = load ptr, ptr %at
  ret ptr %text
}}
"""
    )


def _kernel_entry(name: str, kernel: str, callee: str, func: PrimFunc) -> str:
    buffers = [p for p in func.params if p in func.buffer_map]
    scalars = [p for p in func.params if p not in func.buffer_map]
    count = len(buffers) + len(scalars)
    lines = [
        f"define i32 {symbol(f'{name}_{prefix(kernel)}')}(ptr %args, i32 %num) {{",
        f"  %count = icmp eq i32 %num, {count}",
        "  br i1 %count, label %run, label %wrong",
        "wrong:",
        "  ret i32 -1",
        "run:",
    ]
    args = []
    for k in range(count):
        lines += _load("args", k)
        if k < len(buffers):
            args.append(f"ptr %args{k}")
        else:
            kind = memory_type(scalars[k - len(buffers)].dtype)
            lines.append(f"  %value{k} = load {kind}, ptr %args{k}")
            args.append(f"{kind} %value{k}")
    lines += [f"  %status = call i32 {symbol(callee)}({', '.join(args)})", "  ret i32 %status", "}", ""]
    return "\n".join(lines)
