"""Tensors spread over a mesh of devices: `R.device_mesh`, `R.dist.…`. They are read, typed and printed; nothing
here runs on several workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaxlang.ir import prim, tir
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.module import DeviceMesh
from relaxlang.ir.struct_info import DTensorStructInfo
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import describe, error
from relaxlang.syntax.elaborate.annotations import struct_info as as_struct_info
from relaxlang.syntax.elaborate.native import Names
from relaxlang.syntax.elaborate.relax_calls import kernel, no_more, out_info, shape_arg, tuple_arg
from relaxlang.syntax.elaborate.relax_names import constant

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.relax_body import RelaxElaborator

names = Names("R")


@names("device_mesh")
def _device_mesh(ev: Any, node: tree.Call, shape: Any, device_ids: Any) -> DeviceMesh:
    if isinstance(device_ids, tir.Range):
        first, extent = device_ids.min, device_ids.extent
        if not (isinstance(first, prim.IntImm) and isinstance(extent, prim.IntImm)):
            raise error("RLX0121", "the devices of a mesh are known while compiling", node.span)
        device_ids = range(first.value, first.value + extent.value)
    return DeviceMesh(tuple(int(d) for d in shape), tuple(int(d) for d in device_ids), span=node.span)


def _call_tir(name: str) -> None:
    def make(ev: RelaxElaborator, node: tree.Call, func: Any, args: Any, *more: Any, **words: Any) -> Any:
        sizes = shape_arg(ev, words.pop("tir_vars", None), node.span)
        info = out_info(ev, node, more, words)
        no_more(name, words, node.span)
        values = (kernel(ev, func, node.span), tuple_arg(ev, args, node.span), *sizes)
        return ev.core(name, values, EMPTY, (info,), node.span)

    names(name)(make)


_call_tir("dist.call_tir")
_call_tir("dist.call_tir_local_view")


@names("dist.const")
def _const(
    ev: RelaxElaborator, node: tree.Call, value: Any, info: Any = None, *, ty: Any = None, struct_info: Any = None
) -> Any:
    """A constant that every device of the mesh has, or a part of it."""
    given = info or ty or struct_info
    of = as_struct_info(given, node.span)
    if not isinstance(of, DTensorStructInfo):
        raise error("RLX0222", f"`R.dist.const` takes an `R.DTensor`, not {describe(given)}", node.span)
    return ev.core("dist.const", (constant(value, of.tensor.dtype, node.span),), EMPTY, (of,), node.span)
