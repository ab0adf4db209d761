"""`R.call_tir` and its family: calls of kernels, packed functions and closures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.base.suggest import place_of
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import FuncStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, tensor_info
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import as_dtype, describe, error
from relaxlang.syntax.elaborate.annotations import dimension, shape_known, struct_info
from relaxlang.syntax.elaborate.module_ref import result_known
from relaxlang.syntax.elaborate.native import Names, annotation_attrs

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.relax_body import RelaxElaborator

names = Names("R")
_SINFO_WORDS = ("sinfo_args", "ty_args", "type_args")


# --- arguments --------------------------------------------------------------------------------------------------------
def out_info(
    ev: RelaxElaborator, node: tree.Call, more: tuple[Any, ...], words: dict[str, Any], usual: DType | None = None
) -> StructInfo:
    """The result of a call in destination-passing style: `out_sinfo=` (`out_ty=`), or, as in 2022, a shape and
    `dtype=`; `usual` is the element type when none is stated."""
    stated = words.pop("out_sinfo", words.pop("out_ty", None))
    shape = words.pop("shape", None)
    dtype = words.pop("dtype", None)
    if stated is None and more and not isinstance(more[0], (relax.ShapeExpr, relax.Var)) and not _is_shape(more[0]):
        stated = more[0]
    elif shape is None and more:
        shape = more[0]
        dtype = more[1] if len(more) > 1 else dtype
    dtype = usual if dtype is None else dtype
    if stated is not None:
        if isinstance(stated, (list, tuple)):
            infos = tuple(struct_info(s, node.span) for s in stated)
            return infos[0] if len(infos) == 1 else TupleStructInfo(infos)
        return struct_info(stated, node.span)
    if shape is None:
        raise error("RLX0113", "the call lacks `out_sinfo`, the struct info of its result", node.span,
                    help='write `out_sinfo=R.Tensor((n, 4), "float32")`')  # fmt: skip
    if dtype is None:
        raise error("RLX0113", "the call lacks `dtype`, the element type of its result", node.span)
    if isinstance(shape, (list, tuple)) and shape and isinstance(shape[0], (list, tuple, relax.ShapeExpr)):
        dtypes = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(shape)
        return TupleStructInfo(tuple(_tensor(ev, s, d, node.span) for s, d in zip(shape, dtypes)))
    return _tensor(ev, shape, dtype, node.span)


def _is_shape(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(v, (int, PrimExpr)) or _is_shape(v) for v in value)
    return isinstance(value, relax.ShapeExpr)


def _tensor(ev: RelaxElaborator, shape: Any, dtype: Any, span: Span | None) -> StructInfo:
    of = as_dtype(dtype, span)
    if isinstance(shape, relax.ShapeExpr):
        return tensor_info(shape.values, of)
    if isinstance(shape, relax.Expr):
        shape_known(shape, span)
        return tensor_info(shape, of)
    return tensor_info(tuple(dimension(ev, d, span) for d in ev.iterate(shape, span)), of)


def sinfo_args(ev: RelaxElaborator, words: dict[str, Any], span: Span | None) -> tuple[StructInfo, ...]:
    """`sinfo_args=`, under any of its names: one struct info, or several."""
    for word in _SINFO_WORDS:
        if word in words:
            given = words.pop(word)
            return tuple(struct_info(g, span) for g in (given if isinstance(given, (list, tuple)) else (given,)))
    return ()


def no_more(name: str, words: dict[str, Any], span: Span | None) -> None:
    """Complain about keywords that were not used."""
    for word in words:
        raise error("RLX0114", f"`R.{name}` has no parameter `{word}`", place_of(word, span))


def kernel(ev: RelaxElaborator, value: Any, span: Span | None) -> relax.Expr:
    """The callee of `call_tir`: a function of the module, also by its name in a string as in 2021."""
    if isinstance(value, str):
        return ev.unit.reference(value, span)
    if isinstance(value, (relax.GlobalVar, relax.Var)):
        return value
    raise error("RLX0224", f"a TensorIR function of the module is expected, not {describe(value)}", span,
                help="write `cls.name`, or `R.call_packed` for a packed function")  # fmt: skip


def packed(value: Any, span: Span | None) -> relax.Expr:
    """The callee of a packed call: its name, or an `R.ExternFunc`."""
    if isinstance(value, str):
        made: relax.Expr = relax.ExternFunc(value, span=span)
        return made
    if isinstance(value, relax.StringImm):
        return relax.ExternFunc(value.value, span=span)
    if isinstance(value, (relax.ExternFunc, relax.GlobalVar, relax.Var)):
        return value
    raise error("RLX0224", f"the name of a packed function is expected, not {describe(value)}", span)


def tuple_arg(ev: RelaxElaborator, value: Any, span: Span | None) -> relax.Expr:
    """The arguments of a call as one tuple: written out, a single value, or a variable that holds a tuple (taken
    apart)."""
    if isinstance(value, (tuple, list)):
        return relax.Tuple(tuple(ev.lift(v, span) for v in value), span=span)
    made = ev.lift(value, span)
    if isinstance(made, relax.Tuple):
        return made
    if isinstance(made.struct_info, TupleStructInfo):
        fields = [ev.emit(relax.TupleGetItem(made, k, span=span)) for k in range(len(made.struct_info.fields))]
        return relax.Tuple(tuple(fields), span=span)
    if made.struct_info is None and isinstance(made, relax.Var):
        return made
    return relax.Tuple((made,), span=span)


def shape_arg(ev: RelaxElaborator, value: Any, span: Span | None) -> tuple[relax.Expr, ...]:
    """`tir_vars=`: nothing, or one shape."""
    if value is None:
        return ()
    if isinstance(value, relax.Expr):
        return (value,)
    return (relax.ShapeExpr(tuple(dimension(ev, v, span) for v in ev.iterate(value, span)), span=span),)


def _attrs(node: tree.Call, **items: Any) -> Attrs:
    """The attributes of a call; those that are None are left out."""
    return annotation_attrs({k: v for k, v in items.items() if v is not None}, "the call", node)


def _result_type(ev: RelaxElaborator, func: Any) -> DType | None:
    """The element type of a kernel's last parameter, which is its result."""
    info = result_known(ev.unit, func) if isinstance(func, relax.GlobalVar) else None
    params = info.params if isinstance(info, FuncStructInfo) else None
    last = params[-1] if params else None
    return last.dtype if isinstance(last, TensorStructInfo) else None


# --- kernels ----------------------------------------------------------------------------------------------------------
def _call_tir(
    ev: RelaxElaborator,
    node: tree.Call,
    op: str,
    func: Any,
    args: Any,
    more: tuple[Any, ...],
    words: dict[str, Any],
    attrs: Attrs,
) -> Any:
    if isinstance(func, (tuple, list, relax.ShapeExpr)) and more:
        func, args, more = args, more[0], (func, *more[1:])  # RFC 0091: the shape stands first
    tir_vars = shape_arg(ev, words.pop("tir_vars", None), node.span)
    info = out_info(ev, node, more, words, _result_type(ev, func))
    no_more(op, words, node.span)
    if op == "call_tir" and isinstance(func, str) and not ev.unit.declares(func):
        op = "call_dps_packed"  # until 2023 a kernel of another library was named in `call_tir`
    callee = (
        kernel(ev, func, node.args[0].span if node.args else node.span)
        if op != "call_dps_packed"
        else packed(func, node.span)
    )
    values = (callee, tuple_arg(ev, args, node.span), *tir_vars)
    return ev.core(op, values, attrs, (info,), node.span)


@names("call_tir")
def _tir(ev: RelaxElaborator, node: tree.Call, func: Any, args: Any, *more: Any, **words: Any) -> Any:
    return _call_tir(ev, node, "call_tir", func, args, more, words, EMPTY)


@names("call_tir_inplace")
def _tir_inplace(
    ev: RelaxElaborator, node: tree.Call, func: Any, args: Any, inplace_indices: Any, *more: Any, **words: Any
) -> Any:
    at = tuple(inplace_indices) if isinstance(inplace_indices, (tuple, list)) else (inplace_indices,)
    return _call_tir(ev, node, "call_tir_inplace", func, args, more, words, _attrs(node, inplace_indices=at))


@names("call_tir_with_grad")
def _tir_with_grad(
    ev: RelaxElaborator,
    node: tree.Call,
    func: Any,
    args: Any,
    *more: Any,
    te_grad_name: Any,
    te_grad_kwargs: Any = None,
    **words: Any,
) -> Any:
    attrs = _attrs(node, te_grad_name=te_grad_name, te_grad_kwargs=te_grad_kwargs)
    return _call_tir(ev, node, "call_tir_with_grad", func, args, more, words, attrs)


@names("call_dps_packed", "call_dps")
def _dps_packed(ev: RelaxElaborator, node: tree.Call, func: Any, args: Any, *more: Any, **words: Any) -> Any:
    return _call_tir(ev, node, "call_dps_packed", func, args, more, words, EMPTY)


# --- packed functions -------------------------------------------------------------------------------------------------
@names("call_packed")
def _packed(ev: RelaxElaborator, node: tree.Call, func: Any, *args: Any, **words: Any) -> Any:
    callee = packed(func, node.span)
    if not isinstance(callee, relax.ExternFunc):
        return ev.invoke(callee, list(args), words, node)
    infos = sinfo_args(ev, words, node.span)
    values = tuple(ev.lift(a, node.span) for a in args)
    attrs = annotation_attrs(words, "R.call_packed", node)
    return ev.typed(relax.Call(callee, values, attrs, infos, span=node.span))


@names("call_pure_packed")
def _pure_packed(ev: RelaxElaborator, node: tree.Call, func: Any, *args: Any, **words: Any) -> Any:
    infos = sinfo_args(ev, words, node.span)
    no_more("call_pure_packed", words, node.span)
    values = (packed(func, node.span), *(ev.lift(a, node.span) for a in args))
    return ev.core("call_pure_packed", values, EMPTY, infos, node.span)


@names("call_inplace_packed")
def _inplace_packed(
    ev: RelaxElaborator, node: tree.Call, func: Any, *args: Any, inplace_indices: Any, **words: Any
) -> Any:
    infos = sinfo_args(ev, words, node.span)
    no_more("call_inplace_packed", words, node.span)
    at = tuple(inplace_indices) if isinstance(inplace_indices, (tuple, list)) else (inplace_indices,)
    values = (packed(func, node.span), *(ev.lift(a, node.span) for a in args))
    return ev.core("call_inplace_packed", values, _attrs(node, inplace_indices=at), infos, node.span)


@names("call_builtin_with_ctx")
def _builtin_with_ctx(ev: RelaxElaborator, node: tree.Call, func: Any, args: Any, **words: Any) -> Any:
    infos = sinfo_args(ev, words, node.span)
    no_more("call_builtin_with_ctx", words, node.span)
    return ev.core(
        "call_builtin_with_ctx", (packed(func, node.span), tuple_arg(ev, args, node.span)), EMPTY, infos, node.span
    )


@names("call_py_func")
def _py_func(ev: RelaxElaborator, node: tree.Call, func: Any, args: Any, *more: Any, **words: Any) -> Any:
    info = out_info(ev, node, more, words)
    no_more("call_py_func", words, node.span)
    return ev.core("call_py_func", (packed(func, node.span), tuple_arg(ev, args, node.span)), EMPTY, (info,), node.span)


# --- closures ---------------------------------------------------------------------------------------------------------
def _invoke(op: str) -> None:
    def make(ev: RelaxElaborator, node: tree.Call, closure: Any, args: Any, **words: Any) -> Any:
        infos = sinfo_args(ev, words, node.span)
        no_more(op, words, node.span)
        return ev.core(op, (ev.lift(closure, node.span), tuple_arg(ev, args, node.span)), EMPTY, infos, node.span)

    names(op)(make)


_invoke("invoke_closure")
_invoke("invoke_pure_closure")


@names("make_closure")
def _make_closure(ev: RelaxElaborator, node: tree.Call, func: Any, args: Any) -> Any:
    callee = kernel(ev, func, node.span)
    if ev.check and isinstance(callee, relax.GlobalVar):
        callee = callee.replace(struct_info=result_known(ev.unit, callee))
    return ev.core("make_closure", (callee, tuple_arg(ev, args, node.span)), EMPTY, (), node.span)


DTypeLike = DType | str | prim.PrimExpr
