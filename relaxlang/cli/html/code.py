"""Kernels as TensorIR, LLVM IR and assembly beside each other; lines that belong together share a number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from relaxlang.cli.html.stages import colored
from relaxlang.ir.configuration.target import Target
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc

MOST_KERNELS = 200
_LOC = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_DBG = re.compile(r", !dbg !(\d+)")
_LOCATION = re.compile(r"!(\d+) = !DILocation\(line: (\d+)")
_NOISE = re.compile(r"\s*\.(loc|file|cfi_|section\s+\.debug|ident|addrsig|p2align)|\.L(func_(begin|end)|tmp)\w*:")


def kernels_html(lowered: IRModule, target: Target) -> str:
    """A section for each kernel, folded."""
    from relaxlang.passes.tir.lowering import lower

    functions = {name: lower(func) for name, func in lowered.prim_funcs()}
    parts = [_kernel(name, functions, target) for name in list(functions)[:MOST_KERNELS]]
    if len(functions) > MOST_KERNELS:
        parts.append(f"<p>… and {len(functions) - MOST_KERNELS} more.</p>")
    return "".join(parts) or "<p>The module has no kernels.</p>"


def _kernel(name: str, functions: Mapping[str, PrimFunc], target: Target) -> str:
    from relaxlang.codegen import compile
    from relaxlang.codegen.debug_lines import DebugLines
    from relaxlang.codegen.function import emit_kernel
    from relaxlang.syntax.printer import render_node

    printed = render_node(IRModule({name: functions[name]}), positions=True)
    lines: dict[int, int] = {}
    for place in printed.places:
        lines.setdefault(id(place.node), printed.line_column(place.start)[0])
    text = emit_kernel(name, functions[name], target, functions, DebugLines(lines)).render(
        target.mtriple, compile.layout(target)
    )
    columns = (
        _column("TensorIR", [(k, line) for k, line in enumerate(printed.text.splitlines(), 1)], colored),
        _column("LLVM IR", _llvm_lines(text), escape),
        _column("assembly", _assembly_lines(compile.assembly(text, target)), escape),
    )
    return (
        f'<details class="kernel"><summary>{escape(name)}</summary>'
        f'<div class="columns">{"".join(columns)}</div></details>'
    )


def _column(title: str, lines: list[tuple[int, str]], paint: Any) -> str:
    rows = "".join(f'<pre data-line="{number}">{paint(line) or " "}</pre>' for number, line in lines)
    return f'<div class="column"><h4>{title}</h4>{rows}</div>'


def _llvm_lines(text: str) -> list[tuple[int, str]]:
    """The lines of LLVM IR without debug information, each with the line of TensorIR that it comes from; 0 for none."""
    locations = {found[1]: int(found[2]) for found in _LOCATION.finditer(text)}
    made = []
    for line in text.splitlines():
        if line.startswith(("!", "source_filename", "target datalayout")):
            continue
        found = _DBG.search(line)
        number = locations.get(found[1], 0) if found else 0
        made.append((number, _DBG.sub("", line).replace(" !dbg", "")))
    return made


def _assembly_lines(text: str) -> list[tuple[int, str]]:
    """The same for assembly, where a directive says from where on the code belongs to a line."""
    made: list[tuple[int, str]] = []
    number = 0
    for line in text.splitlines():
        if line.lstrip().startswith(".section") and "debug" in line:
            break
        found = _LOC.match(line)
        if found:
            number = int(found[1])
        elif line.startswith(".Lfunc_end"):
            number = 0
        elif not _NOISE.match(line):
            made.append((number, line.split("#", 1)[0].rstrip()))
    return made
