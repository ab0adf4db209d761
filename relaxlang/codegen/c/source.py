"""A C file: headers, helpers, constants, functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from relaxlang.base.diagnostics import DiagnosticError, Diagnostics, fail
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.version import __version__
from relaxlang.codegen.c.function import prototype, write_function
from relaxlang.codegen.c.types import identifier
from relaxlang.codegen.c.writer import FileNeeds
from relaxlang.codegen.function import PREFIX
from relaxlang.codegen.intrinsics import check_shifts
from relaxlang.ir import prim
from relaxlang.ir.relax import GlobalVar
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import walk
from relaxlang.passes.tir.lowering import flatten


def c_source(
    funcs: Mapping[str, PrimFunc],
    *,
    exported: Collection[str] | None = None,
    tail: str = "",
    includes: tuple[str, ...] = (),
) -> str:
    """One C99 file with the functions, `rlx_` before each name; those not `exported` (default: all) are static.

    `tail` is C that follows them, `includes` are headers in quotes. What has no C is a diagnostic (RLX50xx), all at
    once. The file compiles without warnings with `-std=c99 -Wall -Werror` and needs `-lm`.
    """
    found = Diagnostics()
    needs = FileNeeds()
    lowered: dict[str, PrimFunc] = {}
    for name, func in funcs.items():
        try:
            check_shifts(func)
            lowered[name] = flatten(func)
        except DiagnosticError as fault:
            _collect(fault, found)
    found.check()
    names = {name: needs.fresh(PREFIX + identifier(name)) for name in lowered}
    shown = set(lowered if exported is None else exported)
    bodies: list[str] = []
    for name in _callees_first(lowered):
        try:
            with deep_recursion():
                lines = write_function(needs, lowered[name], names[name], lowered, names, entry=name in shown)
            bodies.append("\n".join(lines))
        except DiagnosticError as fault:
            _collect(fault, found)
        except RecursionError:
            fail("RLX5017", f"`{name}` is nested too deeply", lowered[name].span)
    found.check()
    return _file(needs, bodies, tail, includes)


def _collect(fault: DiagnosticError, found: Diagnostics) -> None:
    for diagnostic in fault.diagnostics:
        found.report(diagnostic)


def prototypes(funcs: Mapping[str, PrimFunc]) -> list[str]:
    """The declarations of the functions, as they stand in a header."""
    return [prototype(flatten(func), PREFIX + identifier(name)) + ";" for name, func in funcs.items()]


def _callees_first(funcs: Mapping[str, PrimFunc]) -> list[str]:
    """The functions in an order in which each stands after those that it calls. RLX5019 for a cycle."""
    order: dict[str, None] = {}
    open_: list[str] = []

    def visit(name: str) -> None:
        if name in order or name not in funcs:
            return
        if name in open_:
            fail("RLX5019", f"`{name}` calls itself, which has no C", funcs[name].span)
        open_.append(name)
        for node in walk(funcs[name].body):
            if isinstance(node, prim.Call) and isinstance(node.op, GlobalVar):
                visit(node.op.name)
        open_.pop()
        order[name] = None

    for name in funcs:
        visit(name)
    return list(order)


def _file(needs: FileNeeds, bodies: list[str], tail: str, includes: tuple[str, ...]) -> str:
    headers = ["math.h", "stdbool.h", "stddef.h", "stdint.h"]
    headers += ["stdio.h"] if needs.uses_print else []
    headers += ["stdlib.h"] if needs.uses_heap else []
    headers += ["string.h"] if any("memcpy" in h.text for h in needs.helpers.values()) else []
    parts = [f"/* Made by relaxlang {__version__}. */"]
    parts.append("\n".join([*(f"#include <{h}>" for h in headers), *(f'#include "{h}"' for h in includes)]))
    if needs.externals:
        parts.append("\n".join(needs.externals.values()))
    if needs.messages:
        listed = "\n".join(f" * {k}: {_comment(m)}" for k, m in enumerate(needs.messages, 1))
        parts.append(f"/* What the functions return: 0, or the number of what failed.\n{listed}\n */")
    parts += [h.text for h in needs.helpers.values()]
    parts += needs.constants
    parts += bodies
    return "\n\n".join([*parts, tail] if tail else parts) + "\n"


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace("\n", " ").replace("\\", "/")
