"""A C file: headers, helpers, constants, functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from relaxlang.base.diagnostics import DiagnosticError, Diagnostics, fail
from relaxlang.base.record import record
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.version import __version__
from relaxlang.codegen.c.function import write_function
from relaxlang.codegen.c.types import prefix
from relaxlang.codegen.c.writer import ALIGN, NOINLINE, FileNeeds
from relaxlang.codegen.function import PREFIX
from relaxlang.codegen.intrinsics import check_shifts
from relaxlang.ir import prim
from relaxlang.ir.relax import GlobalVar
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import walk
from relaxlang.passes.tir.lowering import flatten


@record
class CFile:
    """A C file in the making. `messages` are what the functions' statuses stand for, from 1."""

    needs: FileNeeds
    bodies: tuple[str, ...]

    @property
    def messages(self) -> list[str]:
        """What the statuses stand for, from 1."""
        return self.needs.messages

    def text(self, tail: Iterable[str] = (), includes: Iterable[str] = ()) -> str:
        """The file; `tail` is C that follows the functions, `includes` are headers in quotes."""
        return _text(self.needs, self.bodies, tail, includes)


def c_source(funcs: Mapping[str, PrimFunc]) -> str:
    """One C99 file with the functions, `rlx_` before each name.

    What has no C is a diagnostic (RLX50xx), all at once. The file compiles without warnings with `-std=c99 -Wall
    -Werror` and needs `-lm`.
    """
    return c_file(funcs, funcs).text()


def c_file(funcs: Mapping[str, PrimFunc], exported: Collection[str]) -> CFile:
    """As `c_source`; the functions that are not `exported` are static."""
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
    names = {name: needs.fresh(PREFIX + prefix(name)) for name in lowered}
    bodies: list[str] = []
    for name in _callees_first(lowered):
        try:
            with deep_recursion():
                lines = write_function(needs, lowered[name], names[name], lowered, names, entry=name in exported)
            bodies.append("\n".join(lines))
        except DiagnosticError as fault:
            _collect(fault, found)
        except RecursionError:
            fail("RLX5017", f"`{name}` is nested too deeply", lowered[name].span)
    found.check()
    return CFile(needs, tuple(bodies))


def _collect(fault: DiagnosticError, found: Diagnostics) -> None:
    for diagnostic in fault.diagnostics:
        found.report(diagnostic)


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


def _text(needs: FileNeeds, bodies: Iterable[str], tail: Iterable[str], includes: Iterable[str]) -> str:
    headers = ["math.h", "stdbool.h", "stddef.h", "stdint.h"]
    headers += ["stdio.h"] if needs.uses_print else []
    headers += ["stdlib.h"] if needs.uses_heap else []
    texts = [*(h.text for h in needs.helpers.values()), *tail]
    headers += ["string.h"] if any("memcpy(" in t or "strcmp(" in t for t in texts) else []
    parts = [f"/* Made by relaxlang {__version__}. */"]
    parts.append("\n".join([*(f"#include <{h}>" for h in headers), *(f'#include "{h}"' for h in includes)]))
    if needs.externals:
        parts.append("\n".join(needs.externals.values()))
    if needs.messages:
        listed = "\n".join(f" * {k}: {_comment(m)}" for k, m in enumerate(needs.messages, 1))
        parts.append(f"/* What the functions return: 0, or the number of what failed.\n{listed}\n */")
    following = [*bodies, *tail]
    parts += [text for word, text in _MACROS.items() if any(word in t for t in (*following, *needs.constants))]
    parts += [h.text for h in needs.helpers.values()]
    parts += needs.constants
    return "\n\n".join([*parts, *following]) + "\n"


def _attribute(head: str, attribute: str) -> str:
    return f"#if defined(__GNUC__)\n#define {head} __attribute__(({attribute}))\n#else\n#define {head}\n#endif"


_MACROS = {
    # Kernels use the same memory for different types, one after the other: a compiler may not mix their accesses.
    NOINLINE: _attribute(NOINLINE, "noinline"),
    ALIGN: _attribute(f"{ALIGN}(n)", "aligned(n)"),
}


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace("\n", " ").replace("\\", "/")
