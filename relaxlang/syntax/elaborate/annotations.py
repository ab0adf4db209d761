"""Struct info in the text: `R.Tensor((n, m), "float32")`, `R.Shape`, `R.Tuple`, `R.Callable`, …, of every era."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.ir import prim, relax
from relaxlang.ir.module import VDevice
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import (
    OBJECT,
    VOID_TUPLE,
    DTensorStructInfo,
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    shape_info,
    tensor_info,
)
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Value, as_dtype, describe, error
from relaxlang.syntax.elaborate.native import Native

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.relax_body import RelaxElaborator


class Annotation(Value):
    """A constructor of struct info: bare (`R.Tensor`), called (`R.Tensor((n,), "f32")`) or, in old scripts, with
    brackets."""

    def __init__(self, name: str, bare: StructInfo | None, make: Callable[..., StructInfo]) -> None:
        self.name = name
        self.kind = f"annotation `{name}`"
        self.bare = bare
        self.native = Native(name, make)

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        return self.native.call(ev, args, kwargs, node)

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        args = list(index) if isinstance(index, tuple) else [index]
        if self.name == "R.Tensor" and not isinstance(args[0], (tuple, list, str, DType)) and args[0] is not WILDCARD:
            args = [tuple(args)]
        if self.name == "R.Shape":
            args = [args]
        where = tree.Call(tree.Name(self.name, span=span), (), (), span=span)
        return self.native.call(ev, args, {}, where)


class Wildcard(Value):
    """`_` in the oldest annotations: not known."""

    kind = "wildcard `_`"


WILDCARD = Wildcard()


def struct_info(value: Any, span: Span | None) -> StructInfo:
    """The struct info that an annotation's value stands for; None is the empty tuple."""
    if isinstance(value, StructInfo):
        return value
    if isinstance(value, Annotation) and value.bare is not None:
        return value.bare
    if value is None:
        return VOID_TUPLE
    if isinstance(value, (tuple, list)):
        return TupleStructInfo(tuple(struct_info(v, span) for v in value))
    if isinstance(value, DType):
        return PrimStructInfo(value)
    raise error(
        "RLX0222", f"{describe(value)} is no annotation", span, help='write one such as `R.Tensor((n, 4), "float32")`'
    )


def dimension(ev: Evaluator, value: Any, span: Span | None) -> PrimExpr:
    """One dimension of a shape, as an int64 expression."""
    if isinstance(value, relax.PrimValue):
        value = value.value
    if isinstance(value, relax.Expr):
        known = value.struct_info
        if isinstance(known, PrimStructInfo) and known.value is not None:
            value = known.value
    if isinstance(value, bool) or not isinstance(value, (int, PrimExpr)):
        raise error("RLX0221", f"a dimension must be an integer, not {_said(value)}", span)
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise error("RLX0129", f"`{value}` is out of range for `int64`", span)
        return prim.IntImm(prim.INT64, value, span=span)
    if not value.dtype.is_integer or value.dtype.lanes != 1:
        raise error("RLX0221", f"a dimension must be an integer, not `{value.dtype}`", span)
    return prim.cast(value, prim.INT64)


def _said(value: Any) -> str:
    return (
        f"the value `{value.name}`"
        if isinstance(value, relax.Var)
        else "a value of Relax"
        if isinstance(value, relax.Expr)
        else describe(value)
    )


def shape_values(ev: Evaluator, values: Any, node: tree.Call, *, size: bool = True) -> tuple[PrimExpr, ...]:
    """The dimensions of an annotation; a string is an expression (`"n * 2"`). `size`: negative constants are errors."""
    places = _places(node)
    made = []
    for k, value in enumerate(values):
        place = places[k] if len(places) == len(values) else node
        if isinstance(value, str):
            value = ev.quoted(value, place)  # type: ignore[attr-defined]
        dim = dimension(ev, value, place.span)
        if size and isinstance(dim, prim.IntImm) and dim.value < 0:
            raise error("RLX0221", f"the dimension {dim.value} is negative", place.span)
        made.append(dim)
    return tuple(made)


def _places(node: tree.Call) -> tuple[tree.Expr, ...]:
    """The texts of the dimensions, where they are written out as the first argument."""
    first = node.args[0] if node.args else next((k.value for k in node.keywords if k.name in ("shape", "values")), None)
    return first.elements if isinstance(first, (tree.TupleExpr, tree.ListExpr)) else ()


def shape_known(shape: relax.Expr, span: Span | None) -> ShapeStructInfo | None:
    """What is known of a value that stands for a shape, which must be one."""
    known = shape.struct_info
    if known is not None and not isinstance(known, ShapeStructInfo):
        raise error("RLX0221", f"the shape must be a shape value, not {_said(shape)}", span)
    return known


def _rank(value: Any, node: tree.Call) -> int:
    if isinstance(value, prim.IntImm):
        value = value.value
    if isinstance(value, bool) or not isinstance(value, int) or value < -1:
        raise error("RLX0221", f"`ndim` is a number of dimensions, or -1 for unknown, not {describe(value)}", node.span)
    return value


# --- tensors ----------------------------------------------------------------------------------------------------------
def _tensor(
    ev: RelaxElaborator, node: tree.Call, shape: Any = None, dtype: Any = None, vdevice: Any = None, ndim: Any = -1
) -> TensorStructInfo:
    if isinstance(shape, (str, DType)):
        shape, dtype = None, shape if dtype is None else dtype
    of = None if dtype in (None, "") or dtype is WILDCARD else as_dtype(dtype, node.span)
    rank = _rank(ndim, node)
    device = None if vdevice is None else device_of(ev, vdevice, node.span)
    if isinstance(shape, (tuple, list)) and any(v is WILDCARD for v in shape):
        shape, rank = None, len(shape)
    if shape is None or shape is WILDCARD:
        return tensor_info(None, of, rank, device)
    if isinstance(shape, relax.ShapeExpr):
        shape = shape.values
    if isinstance(shape, relax.Expr):
        known = shape_known(shape, node.span)
        return tensor_info(shape, of, rank if known is None else known.ndim, device)
    if not isinstance(shape, (tuple, list)):
        raise error(
            "RLX0221",
            f"a shape is a tuple of dimensions, not {describe(shape)}",
            node.span,
            help="write `(n,)` for one dimension",
        )
    dims = shape_values(ev, shape, node)
    if rank not in (-1, len(dims)):
        raise error("RLX0221", f"`ndim={rank}` contradicts the {len(dims)} dimensions of the shape", node.span)
    return tensor_info(dims, of, -1, device)


def _dtensor(
    ev: RelaxElaborator,
    node: tree.Call,
    shape: Any = None,
    dtype: Any = None,
    device_mesh: Any = "",
    placement: Any = "",
    *,
    ndim: Any = -1,
) -> DTensorStructInfo:
    return DTensorStructInfo(_tensor(ev, node, shape, dtype, None, ndim), str(device_mesh), str(placement))


def device_of(ev: RelaxElaborator, value: Any, span: Span | None) -> VDevice:
    """A virtual device: itself, `"llvm:0"`, the first of that kind among the module's, or `"vdevice:0"`, the first."""
    if isinstance(value, VDevice):
        return value
    if not isinstance(value, str):
        raise error("RLX0223", f"{describe(value)} is no virtual device", span)
    kind, _, rest = value.partition(":")
    at = rest.split(":")[0] or "0"
    known = [
        d
        for d in ev.unit.global_infos.get("vdevice", ())
        if isinstance(d, VDevice) and kind in ("vdevice", target_kind(d.target))
    ]
    if not at.isdigit() or int(at) >= len(known):
        raise error("RLX0223", f"the module has no virtual device `{value}`", span,
                    help='declare it: `I.module_global_infos({"vdevice": [I.vdevice("llvm")]})`')  # fmt: skip
    return known[int(at)]


def target_kind(target: Any) -> str:
    """The kind of a target in text or mapping form."""
    kind = target.get("kind", "") if hasattr(target, "get") else target
    return str(kind).split()[0] if str(kind).strip() else ""


# --- the others -------------------------------------------------------------------------------------------------------
def _shape(ev: RelaxElaborator, node: tree.Call, values: Any = None, ndim: Any = -1) -> ShapeStructInfo:
    if values is None:
        return shape_info(None, _rank(ndim, node))
    if isinstance(values, relax.ShapeExpr):
        values = values.values
    if not isinstance(values, (tuple, list)):
        raise error("RLX0221", f"a shape is a list of dimensions, not {describe(values)}", node.span)
    if any(v is WILDCARD for v in values):
        return shape_info(None, len(values))
    return shape_info(shape_values(ev, values, node))


def _tuple(ev: Evaluator, node: tree.Call, *fields: Any) -> TupleStructInfo:
    if len(fields) == 1 and isinstance(fields[0], (list, tuple)):
        fields = tuple(fields[0])
    return TupleStructInfo(tuple(struct_info(f, node.span) for f in fields))


def _callable(
    ev: Evaluator, node: tree.Call, params: Any = None, ret: Any = OBJECT, purity: Any = None, derive_func: Any = None
) -> FuncStructInfo:
    result = struct_info(ret, node.span)
    if params is None:
        return FuncStructInfo(None, result, bool(purity), derive_func)
    given = params if isinstance(params, (tuple, list)) else (params,)
    return FuncStructInfo(tuple(struct_info(p, node.span) for p in given), result, purity is None or bool(purity))


def _prim(ev: RelaxElaborator, node: tree.Call, dtype: Any = None, value: Any = None) -> PrimStructInfo:
    if value is None:
        if dtype is None:
            raise error("RLX0113", "`R.Prim` takes a dtype or `value=`", node.span)
        return PrimStructInfo(as_dtype(dtype, node.span))
    if isinstance(value, str):
        value = ev.quoted(value, next((k.value for k in node.keywords if k.name == "value"), node))
    known = value if isinstance(value, PrimExpr) else dimension(ev, value, node.span)
    if dtype is not None and as_dtype(dtype, node.span) is not known.dtype:
        raise error("RLX0221", f"`dtype` says `{dtype}`, the value is `{known.dtype}`", node.span)
    return PrimStructInfo(known.dtype, known)


def _object(ev: Evaluator, node: tree.Call) -> StructInfo:
    return OBJECT


ANNOTATIONS: dict[str, Annotation] = {
    "Tensor": Annotation("R.Tensor", tensor_info(), _tensor),
    "DTensor": Annotation("R.DTensor", None, _dtensor),
    "Shape": Annotation("R.Shape", shape_info(), _shape),
    "Tuple": Annotation("R.Tuple", VOID_TUPLE, _tuple),
    "Callable": Annotation("R.Callable", FuncStructInfo(None, OBJECT, False), _callable),
    "Prim": Annotation("R.Prim", None, _prim),
    "Object": Annotation("R.Object", OBJECT, _object),
    "PackedFunc": Annotation("R.PackedFunc", FuncStructInfo(None, OBJECT, False), _object),
}
