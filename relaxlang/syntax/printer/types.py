"""Struct info: the annotations of Relax. A bare integer in them is int64."""

from __future__ import annotations

from typing import Any

from relaxlang.ir import prim, relax
from relaxlang.ir import struct_info as si
from relaxlang.syntax.document import Doc, bracket, concat
from relaxlang.syntax.printer.core import Printer, prints
from relaxlang.syntax.printer.sources import annotates
from relaxlang.syntax.printer.values import vdevice_doc
from relaxlang.syntax.scalars import string_text


@prints(si.ObjectStructInfo)
def _object(p: Printer, node: si.ObjectStructInfo) -> Doc:
    return p.spell("R.Object")


@prints(si.PrimStructInfo)
def _prim(p: Printer, node: si.PrimStructInfo) -> Doc:
    if node.value is None or node.value in p.numbers:
        return f'R.Prim("{node.dtype}")'
    return concat("R.Prim(value=", p.dimension(node.value), ")")


@prints(si.ShapeStructInfo)
def _shape(p: Printer, node: si.ShapeStructInfo) -> Doc:
    if node.values is not None:
        return bracket("R.Shape([", [p.dimension(v) for v in node.values], "])")
    return "R.Shape" if node.ndim < 0 else f"R.Shape(ndim={node.ndim})"


@prints(si.TensorStructInfo)
def _tensor(p: Printer, node: si.TensorStructInfo) -> Doc:
    items = _tensor_items(p, node)
    return bracket("R.Tensor(", items, ")") if items else "R.Tensor"


def _tensor_items(p: Printer, node: si.TensorStructInfo) -> list[Doc]:
    items: list[Doc] = []
    if isinstance(node.shape, tuple):
        items.append(p.dims(node.shape))
    elif node.shape is not None:
        items.append(p.doc(node.shape))
    if node.dtype is not None:
        items.append(f'"{node.dtype}"' if items else f'dtype="{node.dtype}"')
    if node.ndim >= 0 and (node.shape is None or (p.options.dialect is None and not isinstance(node.shape, tuple))):
        items.append(f"ndim={node.ndim}")
    if node.vdevice is not None:
        items.append(concat("vdevice=", vdevice_doc(p, node.vdevice)))
    return items


@prints(si.TupleStructInfo)
def _tuple(p: Printer, node: si.TupleStructInfo) -> Doc:
    return bracket("R.Tuple(", [p.doc(f) for f in node.fields], ")")


@prints(si.FuncStructInfo)
def _func(p: Printer, node: si.FuncStructInfo) -> Doc:
    if node.params is not None:
        params = bracket("(", [p.doc(f) for f in node.params], ")", lone_comma=True)
        return bracket("R.Callable(", [params, p.doc(node.ret), str(node.purity)], ")")
    items: list[Doc] = []
    if not isinstance(node.ret, si.ObjectStructInfo):
        items.append(concat("ret=", p.doc(node.ret)))
    if node.purity:
        items.append("purity=True")
    if node.derive_func is not None:
        items.append(f"derive_func={string_text(node.derive_func)}")
    return bracket("R.Callable(", items, ")") if items else "R.Callable"


@prints(si.DTensorStructInfo)
def _dtensor(p: Printer, node: si.DTensorStructInfo) -> Doc:
    items = _tensor_items(p, node.tensor)
    placed: list[Doc] = [string_text(node.mesh), string_text(node.placement)]
    if node.tensor.dims is None or node.tensor.dtype is None or node.tensor.vdevice is not None:
        placed = [concat("device_mesh=", placed[0]), concat("placement=", placed[1])]
    return bracket("R.DTensor(", [*items, *placed], ")")


def standing_alone(info: si.StructInfo) -> list[prim.Var]:
    """The variables that are a whole dimension, or the value of a scalar, in a struct info: what it can define."""
    found: list[prim.Var] = []
    stack: list[si.StructInfo] = [info]
    while stack:
        top = stack.pop()
        if isinstance(top, si.TupleStructInfo):
            stack.extend(reversed(top.fields))
            continue
        if isinstance(top, si.FuncStructInfo):
            stack.extend(reversed(top.params or ()))
            continue
        if isinstance(top, si.DTensorStructInfo):
            top = top.tensor
        values: Any = ()
        if isinstance(top, si.TensorStructInfo):
            values = top.dims or ()
        elif isinstance(top, si.ShapeStructInfo):
            values = top.values or ()
        elif isinstance(top, si.PrimStructInfo):
            values = (top.value,)
        found.extend(v for v in values if isinstance(v, prim.Var))
    return found


def annotation_needed(p: Printer, var: relax.Var, inferred: si.StructInfo | None) -> bool:
    """Whether a binding must state the struct info of its variable, since its value does not give it."""
    from relaxlang.ir.structural import same_struct_info

    if var.struct_info is None:  # in a module that was read without checking
        return False
    if p.options.types == "all" or inferred is None or (p.options.dialect is not None and annotates(var)):
        return True
    return not same_struct_info(var.struct_info, inferred)
