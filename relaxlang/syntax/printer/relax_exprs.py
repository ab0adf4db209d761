"""Expressions of Relax. What needs lines of its own (a function, a conditional) is bound to a name first."""

from __future__ import annotations

from math import isfinite

from relaxlang.ir import prim, relax
from relaxlang.ir import struct_info as si
from relaxlang.syntax.document import Doc, bracket, concat
from relaxlang.syntax.printer.core import Printer, prints
from relaxlang.syntax.printer.exprs import global_name
from relaxlang.syntax.printer.values import constant_doc, list_doc, value_doc
from relaxlang.syntax.scalars import float_text, string_text
from relaxlang.syntax.spellings import LOST_KEYWORDS

_EXTERN = si.FuncStructInfo(None, si.OBJECT, False)
_OUT_SINFO = frozenset(
    "call_tir call_tir_inplace call_tir_with_grad call_dps_packed call_py_func dist.call_tir "
    "dist.call_tir_local_view".split()
)
_NAMED_EXTERN = frozenset(
    {"call_dps_packed", "call_pure_packed", "call_inplace_packed", "call_builtin_with_ctx", "call_py_func"}
)
"""Operators whose first argument, a packed function, is written as its name."""


# --- leaves -----------------------------------------------------------------------------------------------------------
@prints(relax.Var, relax.DataflowVar)
def _var(p: Printer, node: relax.Var) -> Doc:
    if node in p.values:
        return p.doc(p.values[node])
    return p.names.get(node) or p.names.define(node, node.name, lasting=True)


@prints(relax.GlobalVar)
def _global_var(p: Printer, node: relax.GlobalVar) -> Doc:
    return global_name(p, node)


@prints(relax.ExternFunc)
def _extern(p: Printer, node: relax.ExternFunc) -> Doc:
    return extern_doc(p, node, None)


def extern_doc(p: Printer, node: relax.ExternFunc, symbol: str | None) -> Doc:
    """`R.ExternFunc("f")`; `symbol` is its name in the module when that is not what it is assigned to."""
    items: list[Doc] = [string_text(node.name)]
    if not _is_plain_extern(node):
        items.append(p.doc(node.struct_info))
    if symbol is not None:
        items.append(f"symbol={string_text(symbol)}")
    return bracket("R.ExternFunc(", items, ")")


def _is_plain_extern(node: relax.ExternFunc) -> bool:
    info = node.struct_info
    return info is None or (
        isinstance(info, si.FuncStructInfo)
        and info.params is None
        and isinstance(info.ret, si.ObjectStructInfo)
        and not info.purity
        and info.derive_func is None
    )


@prints(relax.Op, relax.UnknownOp)
def _op(p: Printer, node: relax.Op) -> Doc:
    return f"R.{node.name}"


@prints(relax.Constant)
def _constant(p: Printer, node: relax.Constant) -> Doc:
    return constant_doc(p, node.data)


@prints(relax.ShapeExpr)
def _shape(p: Printer, node: relax.ShapeExpr) -> Doc:
    return bracket("R.shape([", [p.dimension(v) for v in node.values], "])")


@prints(relax.PrimValue)
def _prim_value(p: Printer, node: relax.PrimValue) -> Doc:
    return concat("R.prim_value(", p.dimension(node.value), ")")


@prints(relax.StringImm)
def _string(p: Printer, node: relax.StringImm) -> Doc:
    return concat("R.str(", string_text(node.value), ")")


@prints(relax.DataTypeImm)
def _dtype(p: Printer, node: relax.DataTypeImm) -> Doc:
    return f'R.dtype("{node.value}")'


# --- compound ---------------------------------------------------------------------------------------------------------
@prints(relax.Tuple)
def _tuple(p: Printer, node: relax.Tuple) -> Doc:
    if not node.fields:
        return "R.tuple()"
    return bracket("(", [p.doc(f) for f in node.fields], ")", lone_comma=True)


@prints(relax.TupleGetItem)
def _item(p: Printer, node: relax.TupleGetItem) -> Doc:
    if isinstance(node.tuple_value, relax.Tuple) and p.options.dialect is not None:  # `(x, y)[0]` is `x` there
        return bracket("R.TupleGetItem(", [_whole(p, node.tuple_value), str(node.index)], ")")
    return concat(p.doc(node.tuple_value), f"[{node.index}]")


@prints(relax.Call)
def _call(p: Printer, node: relax.Call) -> Doc:
    op = node.op
    if isinstance(op, relax.ExternFunc) and (p.options.dialect is None or _is_plain_extern(op)):
        first = string_text(op.name) if _is_plain_extern(op) else p.doc(op)
        return bracket("R.call_packed(", [first, *_args(p, node.args), *_rest(p, node)], ")")
    if not isinstance(op, relax.Op):
        return concat(p.doc(op), bracket("(", [*_args(p, node.args), *_rest(p, node)], ")"))
    if isinstance(op, relax.UnknownOp):
        return bracket(f"R.{op.name}(", [*[_plain(p, a) for a in node.args], *_rest(p, node)], ")")
    name, args = op.name, node.args
    first_args: list[Doc] = []
    if name in _NAMED_EXTERN and args and isinstance(args[0], relax.ExternFunc) and _is_plain_extern(args[0]):
        first_args, args = [string_text(args[0].name)], args[1:]
    if name == "hint_on_device" and "device_type" in node.attrs:
        attrs = node.attrs
        device = f"R.device({string_text(attrs['device_type'])}, {attrs['index']})"
        return bracket("R.hint_on_device(", [p.doc(args[0]), device, string_text(attrs["memory_scope"])], ")")
    if name == "dist.const":
        data = list_doc(args[0].data) if isinstance(args[0], relax.Constant) and args[0].data.ndim == 0 else None
        return bracket("R.dist.const(", [data or p.doc(args[0]), *[p.doc(s) for s in node.sinfo_args]], ")")
    if name not in _OUT_SINFO:
        return bracket(f"R.{name}(", [*first_args, *_op_args(p, name, args), *_rest(p, node)], ")")
    keep = 2 - len(first_args)
    items = [*first_args, *_args(p, args[:keep]), *p.keywords(node.attrs)]
    if node.sinfo_args:
        items.append(concat(p.spell("out_sinfo"), "=", _out_sinfo(p, node.sinfo_args)))
    if len(args) > keep:
        items.append(concat("tir_vars=", p.doc(args[keep])))
    return bracket(f"R.{name}(", items, ")")


def _args(p: Printer, args: tuple[relax.Expr, ...]) -> list[Doc]:
    return [p.doc(a) for a in args]


def _op_args(p: Printer, name: str, args: tuple[relax.Expr, ...]) -> list[Doc]:
    """The arguments of an operator: TVM wants the places of meshes as bare strings, and None for what is left out."""
    if name.startswith("dist."):
        return [string_text(a.value) if isinstance(a, relax.StringImm) else p.doc(a) for a in args]
    if name == "memory.view" and p.options.dialect is not None:
        return ["None" if isinstance(a, relax.Tuple) and not a.fields else p.doc(a) for a in args]
    if name in ("print", "assert_op"):  # there `(x, y)` is two values
        return [_whole(p, a) if isinstance(a, relax.Tuple) else p.doc(a) for a in args]
    return _args(p, args)


def _whole(p: Printer, node: relax.Tuple) -> Doc:
    """`R.tuple(x, y)`, where `(x, y)` means something else."""
    return bracket("R.tuple(", [p.doc(f) for f in node.fields], ")")


def _plain(p: Printer, value: relax.Expr) -> Doc:
    """An argument of an operator that nobody knows, as it is written: `3`, `2.5`, `True`, `"add"`, `None`."""
    if isinstance(value, relax.Call) and value.op == relax.Op("null_value"):
        return "None"
    if isinstance(value, relax.StringImm):
        return string_text(value.value)
    if isinstance(value, relax.Tuple) and value.fields:
        return bracket("(", [_plain(p, field) for field in value.fields], ")", lone_comma=True)
    if isinstance(value, relax.PrimValue):
        number = value.value
        if isinstance(number, prim.IntImm) and number.of in (prim.INT64, prim.BOOL):
            return str(number.value) if number.of is prim.INT64 else str(bool(number.value))
        if isinstance(number, prim.FloatImm) and number.of.name == "float64" and isfinite(number.value):
            return float_text(number.value)
    return p.doc(value)


def _rest(p: Printer, node: relax.Call) -> list[Doc]:
    items = []
    for key, value in node.attrs.items():
        if key in LOST_KEYWORDS and p.since(LOST_KEYWORDS[key]) and not value:
            continue
        # An operator knows from its signature that a parameter is a dtype; `"float32"` is how people write it.
        text = f'"{value}"' if value.__class__.__name__ == "DType" else value_doc(p, value)
        items.append(concat(key, "=", text))
    if node.sinfo_args:
        # This one alone wants no bare `R.Object`.
        end = "()" if isinstance(node.op, relax.Op) and node.op.name == "call_inplace_packed" else ""
        docs = [concat(p.doc(s), end if isinstance(s, si.ObjectStructInfo) else "") for s in node.sinfo_args]
        infos = bracket("(", docs, ")", lone_comma=True)
        items.append(concat(p.spell("sinfo_args"), "=", infos))
    return items


def _out_sinfo(p: Printer, infos: tuple[si.StructInfo, ...]) -> Doc:
    first = infos[0]
    if len(infos) == 1 and isinstance(first, si.TupleStructInfo) and len(first.fields) > 1:
        return p.listed(first.fields)
    return p.doc(first) if len(infos) == 1 else p.listed(infos)


@prints(relax.SeqExpr)
def _seq_expr(p: Printer, node: relax.SeqExpr) -> Doc:
    for block in node.blocks:
        p.emit(block)
    return p.doc(node.body)


@prints(relax.If, relax.Function)
def _hoisted(p: Printer, node: relax.Expr) -> Doc:
    from relaxlang.syntax.printer.relax_bindings import bind

    name = p.names.unique("inner" if isinstance(node, relax.Function) else "value")
    holder = relax.Var(name)
    p.define(holder, name)
    bind(p, holder, node, annotate=False)
    return name
