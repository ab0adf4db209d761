"""`I.…`: what stands at module level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.stored_array import StoredArray
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir import tir
from relaxlang.ir.module import DummyGlobalInfo, VDevice
from relaxlang.ir.struct_info import OBJECT, StructInfo
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import as_dtype, describe, error
from relaxlang.syntax.elaborate.native import Names, attribute_value, attributes
from relaxlang.syntax.elaborate.scalars import as_range
from relaxlang.syntax.elaborate.tir_names import Meta
from relaxlang.syntax.scalars import array_from_text

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.module import ModuleEvaluator

names = Names("I")


@names("module_attrs")
def _module_attrs(ev: ModuleEvaluator, node: tree.Call, attrs: Any) -> None:
    ev.unit.attrs.update(attributes(attrs, "I.module_attrs", node))


@names("module_set_attr")
def _module_set_attr(ev: ModuleEvaluator, node: tree.Call, key: Any, value: Any, allow_overwrite: Any = False) -> None:
    if key in ev.unit.attrs and not allow_overwrite:
        raise error(
            "RLX0145", f"the module has an attribute `{key}` already", node.span, help="pass `allow_overwrite=True`"
        )
    ev.unit.attrs[str(key)] = attribute_value(value, node.span)


@names("module_get_attr")
def _module_get_attr(ev: ModuleEvaluator, node: tree.Call, key: Any) -> Any:
    return ev.unit.attrs.get(key)


@names("module_global_infos")
def _module_global_infos(ev: ModuleEvaluator, node: tree.Call, infos: Any) -> None:
    if not isinstance(infos, dict):
        raise error("RLX0116", "`I.module_global_infos` takes a dict of lists", node.span)
    for key, value in infos.items():
        infos_of_key = value if isinstance(value, (list, tuple)) else (value,)
        ev.unit.global_infos[str(key)] = tuple(attribute_value(v, node.span) for v in infos_of_key)


@names("vdevice", "VDevice")
def _vdevice(
    ev: ModuleEvaluator, node: tree.Call, target: Any = None, vdevice_id: Any = 0, memory_scope: Any = "global"
) -> VDevice:
    from relaxlang.ir.attrs import freeze

    if target is not None and not isinstance(target, (str, dict)):
        raise error("RLX0116", f"a target is a string or a dict, not {describe(target)}", node.span)
    return VDevice(freeze(target), int(vdevice_id), str(memory_scope), span=node.span)


@names("Range")
def _range(ev: ModuleEvaluator, node: tree.Call, begin: Any, end: Any = None) -> tir.Range:
    return as_range(begin if end is None else (begin, end), node.span)


@names("dummy_global_info")
def _dummy_global_info(ev: ModuleEvaluator, node: tree.Call) -> DummyGlobalInfo:
    return DummyGlobalInfo(span=node.span)


@names("meta_var")
def _meta_var(ev: ModuleEvaluator, node: tree.Call, value: Any) -> Meta:
    return Meta(value)


@names("array")
def _array(ev: ModuleEvaluator, node: tree.Call, data: Any, dtype: Any, shape: Any = None) -> Any:
    """An array constant: nested numbers, base64, or the name of an entry in the side file."""
    import numpy as np

    of = as_dtype(dtype, node.span)
    try:
        if not isinstance(data, str):
            made = np.array(data, dtype=of.numpy)
            return made if shape is None else made.reshape(shape)
        found = array_from_text(data, of, tuple(shape or ()), ev.unit.arrays)
    except (ValueError, TypeError, OverflowError) as fault:
        raise DiagnosticError([ev.unit.no_array(data, of, str(fault), node.span)]) from None
    if isinstance(found, StoredArray):
        ev.unit.unproved.append((data, of, node.span))
    return found


@names("StringType")
def _string_type(ev: ModuleEvaluator, node: tree.Call) -> StructInfo:
    """What TVM 0.27 calls the type of a string."""
    return OBJECT


@names("param")
def _param(ev: ModuleEvaluator, node: tree.Call, kind: Any = None, default: Any = None) -> Any:
    raise error("RLX0147", "`I.param` stands alone on the right of `name =`, at module level", node.span)


@names("include")
def _include(ev: ModuleEvaluator, node: tree.Call, *arguments: Any, **values: Any) -> Any:
    raise error("RLX0150", "`I.include` stands alone on the right of `name =`, at module level", node.span)


def suggestion(name: str, known: Any) -> str:
    """A help text with the nearest known name, or nothing."""
    near = did_you_mean(name, known)
    return f"did you mean `{near}`?" if near else ""
