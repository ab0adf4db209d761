"""Modules: a class with attributes, global infos and functions."""

from __future__ import annotations

from typing import Any

from relaxlang.ir import relax, tir
from relaxlang.ir.module import UNCHECKED, DeviceMesh, DummyGlobalInfo, IRModule
from relaxlang.syntax.document import INDENT, Doc, bracket, concat
from relaxlang.syntax.printer.core import Printer, emits, prints
from relaxlang.syntax.printer.prim_funcs import emit_prim_func
from relaxlang.syntax.printer.relax_bindings import emit_function
from relaxlang.syntax.printer.relax_exprs import extern_doc
from relaxlang.syntax.printer.values import mapping_doc, value_doc
from relaxlang.syntax.python_text import moved
from relaxlang.syntax.scalars import string_text


@prints(DeviceMesh)
def _device_mesh(p: Printer, node: DeviceMesh) -> Doc:
    shape = bracket("(", [str(d) for d in node.shape], ")", lone_comma=True)
    ids = node.devices
    listed = p.options.dialect is not None and node.span is not None and "Range(" not in node.span.text
    if ids and not listed and ids == tuple(range(ids[0], ids[0] + len(ids))):
        return bracket("R.device_mesh(", [shape, f"I.Range({ids[0]}, {ids[-1] + 1})"], ")")
    return bracket("R.device_mesh(", [shape, bracket("[", [str(d) for d in ids], "]")], ")")


@prints(DummyGlobalInfo)
def _dummy(p: Printer, node: DummyGlobalInfo) -> Doc:
    return "I.dummy_global_info()"


@emits(IRModule)
def _module(p: Printer, module: IRModule) -> None:
    _definitions(p, module)
    for name, rule in module.rules.items():
        inner = Printer(p.options, rule.with_name(name))
        _class(inner, rule, "@R.rewriter")
        p.lines += [*inner.flat_lines(), (0, ""), (0, "")]
        p.type_vars.update(inner.type_vars)
    if module.rules and not (module.functions or module.attrs or module.global_infos or module.python):
        del p.lines[-2:]  # a file of rules alone
        return
    faulty = UNCHECKED in module.attrs
    _class(p, module, "@I.ir_module(check_well_formed=False)" if faulty else "@I.ir_module")


def _class(p: Printer, module: IRModule, decorator: str) -> None:
    p.line(decorator)
    p.line(f"class {p.module_name}(BasePyModule):" if module.python else f"class {p.module_name}:")
    p.indent += 1
    empty = True
    attrs = module.attrs.without(UNCHECKED)
    if attrs:
        p.line(concat("I.module_attrs(", mapping_doc(p, attrs), ")"))
        empty = False
    if module.global_infos:
        pairs = [concat(string_text(k), ": ", _infos(p, v)) for k, v in module.global_infos.items()]
        p.line(concat("I.module_global_infos(", bracket("{", pairs, "}"), ")"))
        empty = False
    for text in module.python.values():
        if not empty:
            p.blank()
        empty = False
        first, *rest = moved(text, INDENT * p.indent).split("\n")
        p.lines += [(p.indent, first), *((0, line) for line in rest)]
    for name, function in module.functions.items():
        if not empty:
            p.blank()
        empty = False
        _member(p, name, function)
    if empty:
        p.line("pass")
    p.indent -= 1


def _definitions(p: Printer, module: IRModule) -> None:
    """The operators that the module defines, as they were written, above it."""
    for text in module.operators.values():
        p.lines += [(0, line) for line in text.split("\n")]
        p.lines += [(0, ""), (0, "")]


def _infos(p: Printer, infos: tuple[Any, ...]) -> Doc:
    # The devices themselves are spelled out here, where `"llvm:0"` is about to get its meaning.
    return bracket("[", [p.doc(i) if not isinstance(i, str) else value_doc(p, i) for i in infos], "]")


def _member(p: Printer, name: str, function: relax.Function | tir.PrimFunc | relax.ExternFunc) -> None:
    written = p.members[name]
    symbol = None if written == name else name
    if isinstance(function, relax.ExternFunc):
        p.line(concat(written, " = ", extern_doc(p, function, symbol)))
    elif isinstance(function, tir.PrimFunc):
        emit_prim_func(p, function, written, symbol=symbol)
    else:
        emit_function(p, function, written, nested=False, symbol=symbol)
