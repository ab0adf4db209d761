"""Scalar expressions: Python's operators with the fewest parentheses, constructors where an operator would fold."""

from __future__ import annotations

from relaxlang.arith.index_map import IndexMap
from relaxlang.base.dtype import DType
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.intrinsics import INTRINSICS, carried_type
from relaxlang.syntax.document import Doc, bracket, concat
from relaxlang.syntax.printer.core import Printer, levels, prints
from relaxlang.syntax.printer.names import is_attribute
from relaxlang.syntax.printer.values import typed_constant
from relaxlang.syntax.scalars import string_text
from relaxlang.syntax.spellings import ATOM, COMPARE, FOLDING, INFIX, INFIX_CALLS, NOT, UNARY, Infix

ITER_KINDS: dict[str, str] = {
    "spatial": "DataPar", "reduce": "CommReduce", "scan": "Ordered", "opaque": "Opaque", "thread": "ThreadIndex",
}  # fmt: skip
"""The kinds of `T.iter_var(…)`, by ours."""


_ACCESS = {1: "r", 2: "w", 3: "rw"}


# --- leaves -----------------------------------------------------------------------------------------------------------
@prints(prim.Var, prim.SizeVar)
def _var(p: Printer, node: prim.Var) -> Doc:
    return p.names.get(node) or p.name(node)


@prints(prim.IntImm)
def _int(p: Printer, node: prim.IntImm) -> Doc:
    bare = node.of is prim.INT32 or (node.of.is_handle and p.options.dialect is not None)
    return str(node.value) if bare else typed_constant(node)


@prints(prim.FloatImm)
def _float(p: Printer, node: prim.FloatImm) -> Doc:
    return typed_constant(node)


@prints(prim.StringImm)
def _string(p: Printer, node: prim.StringImm) -> Doc:
    return string_text(node.value)


# --- operators --------------------------------------------------------------------------------------------------------
@levels(*INFIX)
def _infix(p: Printer, node: prim.BinaryOp | prim.CmpOp) -> tuple[Doc, int]:
    a, b = node.a, node.b
    row = INFIX[node.__class__]
    if isinstance(b, prim.IntImm) or isinstance(a, prim.IntImm) or a.dtype is not b.dtype:
        folds = a.dtype is b.dtype and prim.fold(row.node, a, b).__class__ is not row.node
        if a.dtype is not b.dtype or (folds and not _is_operator(p, node, row)):
            return bracket(f"{row.constructor}(", [p.doc(a), p.doc(b)], ")"), ATOM
    if not row.symbol or (row.symbol == "/" and not a.dtype.is_float):
        sides = [_side(p, a, 0), _side(p, b, 0)] if p.int_dtype is prim.INT64 else [p.doc(a), p.doc(b)]
        return bracket(f"{FOLDING[row.node]}(", sides, ")"), ATOM
    left = row.level + 1 if row.level == COMPARE else row.level
    if p.int_dtype is prim.INT64:  # here a literal takes the type of what it meets
        return concat(_side(p, a, left), f" {row.symbol} ", _side(p, b, row.level + 1)), row.level
    return concat(p.operand(a, left), f" {row.symbol} ", p.operand(b, row.level + 1)), row.level


def _is_operator(p: Printer, node: prim.BinaryOp | prim.CmpOp, row: Infix) -> bool:
    """Whether the source has an operator here, which releases of TVM evaluate at once: `x + 0`."""
    if p.options.dialect is None or node.span is None or node.span.text.startswith(row.constructor):
        return False
    return not (isinstance(node.a, prim.IntImm) and isinstance(node.b, prim.IntImm)) and row.symbol != ""


def _side(p: Printer, node: prim.PrimExpr, level: int) -> Doc:
    return str(node.value) if isinstance(node, prim.IntImm) and node.of.is_int else p.operand(node, level)


@levels(prim.Not)
def _not(p: Printer, node: prim.Not) -> tuple[Doc, int]:
    if isinstance(node.a, prim.IntImm):
        return concat("T.Not(", p.doc(node.a), ")"), ATOM
    return concat("not ", p.operand(node.a, NOT)), NOT


@levels(prim.Call)
def _call(p: Printer, node: prim.Call) -> tuple[Doc, int]:
    args = node.args
    if not isinstance(node.op, str):
        return _call_function(p, node, node.op), ATOM
    if node.op == "tvm_access_ptr" and p.since("tvm-0.26") and (method := _access_ptr(p, node)) is not None:
        return method, ATOM
    row = INTRINSICS.get(node.op)
    if row is None:
        if node.op.startswith("carried."):
            return _carried_argument(p, node.op.removeprefix("carried."), args), ATOM
        items = [_carried_item(p, a) for a in args]
        if node.of is not carried_type(node.op, args):
            items.append(f'dtype="{node.of}"')
        return bracket(f"{node.op}(" if node.op.startswith("Tx.") else f"T.{node.op}(", items, ")"), ATOM
    if node.op == "normcdf" and p.options.dialect is not None:
        return _infix(p, _by_erf(args[0]))
    if node.op == "undef":
        return f'T.undef(dtype="{node.of}")', ATOM
    if row.result == "explicit":
        return bracket(f"T.{node.op}(", [f'"{node.of}"', *[p.doc(a) for a in args]], ")"), ATOM
    if row.result == "last":
        return bracket(f"T.{node.op}(", [*[p.doc(a) for a in args], f'"{node.of}"'], ")"), ATOM
    implied = _implied(row.result, args) is node.of
    plain = implied and not all(isinstance(a, (prim.IntImm, prim.FloatImm)) for a in args)
    if plain and node.op in INFIX_CALLS and len(args) == 2 and args[0].dtype is args[1].dtype:
        symbol, level = INFIX_CALLS[node.op]
        return concat(p.operand(args[0], level), f" {symbol} ", p.operand(args[1], level + 1)), level
    if plain and node.op == "bitwise_not" and len(args) == 1:
        return concat("~", p.operand(args[0], UNARY)), UNARY
    docs = [p.doc(a) for a in args]
    if not implied:
        docs.append(f'dtype="{node.of}"')
    return bracket(f"{p.spell('T.' + node.op)}(", docs, ")"), ATOM


def pointer_call(p: Printer, node: prim.PrimExpr, pointer: prim.PointerType | None) -> Doc | None:
    """A call that states its result, where that is a pointer: since TVM 0.26 it says what it points to."""
    if pointer is None or not isinstance(node, prim.Call) or not node.of.is_handle or not p.since("tvm-0.26"):
        return None
    row = INTRINSICS.get(node.op) if isinstance(node.op, str) else None
    if row is None or row.result not in ("explicit", "last"):
        return None
    of = f'T.handle("{pointer.element}", "{pointer.scope}").ty'
    args = [p.doc(a) for a in node.args]
    return bracket(f"T.{node.op}(", [of, *args] if row.result == "explicit" else [*args, of], ")")


def _access_ptr(p: Printer, node: prim.Call) -> Doc | None:
    """`A.access_ptr("r", …)` where the source says so: to TVM that is a pointer to elements, the function gives any."""
    element, data, offset, extent, mask = node.args
    owner = p.names.get(data) if isinstance(data, prim.Var) else None
    written = node.span is not None and node.span.text.partition("(")[0].endswith(".access_ptr")
    if not written or owner is None or not owner.endswith(".data") or not isinstance(mask, prim.IntImm):
        return None
    owner = owner.removesuffix(".data")
    start = offset.a if isinstance(offset, prim.Add) else offset
    if isinstance(start, prim.Var) and p.names.get(start) == f"{owner}.elem_offset":  # the method adds it
        offset = offset.b if isinstance(offset, prim.Add) else prim.const(0, start.dtype)
    items = [f'"{_ACCESS[mask.value]}"', concat("offset=", p.doc(offset)), concat("extent=", p.doc(extent))]
    if element.dtype.lanes != 1:
        items.append(f"content_lanes={element.dtype.lanes}")
    return bracket(f"{owner}.access_ptr(", items, ")")


def _by_erf(x: prim.PrimExpr) -> prim.BinaryOp:
    """`normcdf`, which no release of TVM has, less exactly."""
    half, one, scale = (prim.const(c, x.dtype) for c in (0.5, 1.0, 0.7071067811865476))
    return prim.Mul(half, prim.Add(one, prim.Call(x.dtype, "erf", (prim.Mul(x, scale),))))


def _carried_item(p: Printer, arg: prim.PrimExpr) -> Doc:
    """An argument of a carried call; releases take `True` there for what they need it to be."""
    if isinstance(arg, prim.IntImm) and arg.of.is_bool and p.options.dialect is not None:
        return str(bool(arg.value))
    return p.doc(arg)


def _carried_argument(p: Printer, kind: str, args: tuple[prim.PrimExpr, ...]) -> Doc:
    """What stands in a carried call and is no scalar (`elaborate.carried`)."""
    if kind == "none":
        return "None"
    if kind == "list":
        return p.listed(args)
    if kind == "tuple":
        return bracket("(", [p.doc(a) for a in args], ")", lone_comma=True)
    if kind == "name" and isinstance(args[0], prim.StringImm):
        return args[0].value
    if kind == "attribute" and isinstance(args[1], prim.StringImm):
        return concat(p.doc(args[0]), ".", args[1].value)
    if kind in ("call", "index"):
        opening, closing = "()" if kind == "call" else "[]"
        return concat(p.doc(args[0]), bracket(opening, [p.doc(a) for a in args[1:]], closing, trailing=False))
    if kind == "item":
        return concat(p.doc(args[0]), "[", _side(p, args[1], ATOM), "]")
    if kind == "keyword" and isinstance(args[0], prim.StringImm):
        return concat(args[0].value, "=", p.doc(args[1]))
    if kind == "dict":
        return bracket("{", [_pair(p, a) for a in args], "}")
    if kind == "slice":
        low, high, step = ("" if isinstance(a, prim.Call) and a.op == "carried.none" else p.doc(a) for a in args)
        return concat(low, ":", high, ":", step) if step else concat(low, ":", high)
    if kind == "subscript" and isinstance(args[0], prim.StringImm):
        return concat(args[0].value, bracket("[", [p.doc(a) for a in args[1:]], "]", trailing=False))
    first = args[0]
    assert isinstance(first, prim.BufferLoad)
    if kind == "buffer":
        return p.doc(first.buffer)
    ends = [concat(p.doc(low), ":", p.doc(_end(low, extent))) for low, extent in zip(first.indices, args[1:])]
    return concat(p.doc(first.buffer), bracket("[", ends, "]"))


def _pair(p: Printer, item: prim.PrimExpr) -> Doc:
    assert isinstance(item, prim.Call)
    return concat(p.doc(item.args[0]), ": ", p.doc(item.args[1]))


def _end(low: prim.PrimExpr, extent: prim.PrimExpr) -> prim.PrimExpr:
    """The end of a range, such that reading `low:end` gives back `extent`."""
    if isinstance(low, prim.IntImm) and (low.value == 0 or isinstance(extent, prim.IntImm)):
        return extent if low.value == 0 else prim.const(low.value + getattr(extent, "value", 0), extent.dtype)
    return prim.Add(low, extent)


def _implied(rule: str, args: tuple[prim.PrimExpr, ...]) -> DType | None:
    """The type that a call without a stated one has."""
    if rule == "same":
        return args[0].dtype if args else None
    if rule == "second":
        return args[1].dtype if len(args) > 1 else None
    if rule == "bool":
        return prim.BOOL if not args or args[0].dtype.lanes == 1 else prim.BOOL.with_lanes(args[0].dtype.lanes)
    return {"int32": prim.INT32, "handle": prim.HANDLE, "void": prim.VOID}.get(rule)


def _call_function(p: Printer, node: prim.Call, op: relax.GlobalVar) -> Doc:
    docs = [p.doc(a) for a in node.args]
    callee = p.module.functions.get(op.name) if p.module is not None else None
    implied = (callee.ret_type or prim.VOID) if isinstance(callee, tir.PrimFunc) else None
    if node.of is not implied:
        docs.append(f'dtype="{node.of}"')
    return bracket(global_name(p, op) + "(", docs, ")")


def global_name(p: Printer, node: relax.GlobalVar) -> str:
    """`cls.f`, and `cls["a.b"]` for a name that is no identifier. TensorIR has no alias for the module."""
    alias = "cls"
    if p.int_dtype is prim.INT32 and p.module is not None:
        alias = p.module_name
    else:
        p.uses_module = True
    return f"{alias}.{node.name}" if is_attribute(node.name) else f"{alias}[{string_text(node.name)}]"


# --- calls by name ----------------------------------------------------------------------------------------------------
@prints(prim.Cast)
def _cast(p: Printer, node: prim.Cast) -> Doc:
    return bracket("T.Cast(", [f'"{node.of}"', p.doc(node.value)], ")")


@prints(prim.Select)
def _select(p: Printer, node: prim.Select) -> Doc:
    return bracket("T.Select(", [p.doc(node.condition), p.doc(node.true_value), p.doc(node.false_value)], ")")


def lanes_text(lanes: int) -> str:
    """A vector length; that of a scalable vector is negative."""
    return str(lanes) if lanes > 0 else f"T.vscale() * {-lanes}"


@prints(prim.Ramp)
def _ramp(p: Printer, node: prim.Ramp) -> Doc:
    return bracket("T.Ramp(", [p.doc(node.base), p.doc(node.stride), lanes_text(node.lanes)], ")")


@prints(prim.Broadcast)
def _broadcast(p: Printer, node: prim.Broadcast) -> Doc:
    return bracket("T.Broadcast(", [p.doc(node.value), lanes_text(node.lanes)], ")")


@prints(prim.Shuffle)
def _shuffle(p: Printer, node: prim.Shuffle) -> Doc:
    return bracket("T.Shuffle(", [p.listed(node.vectors), p.listed(node.indices)], ")")


@prints(prim.Let)
def _let(p: Printer, node: prim.Let) -> Doc:
    value = p.doc(node.value)
    where = concat("where={", p.name(node.var), ": ", value, "}")
    return bracket("T.Let(", [p.doc(node.body), where], ")")


# --- memory -----------------------------------------------------------------------------------------------------------
@prints(prim.BufferLoad)
def _load(p: Printer, node: prim.BufferLoad) -> Doc:
    name = p.buffer_name(node.buffer)
    if node.predicate is not None:
        items = [p.listed(node.indices), concat("predicate=", p.doc(node.predicate))]
        return bracket(f"{name}.vload(", items, ")")
    return element(p, name, node.indices)


def element(p: Printer, name: str, indices: tuple[prim.PrimExpr, ...]) -> Doc:
    """`A[i, j]`; `A[()]` for a buffer without dimensions."""
    if not indices:
        return f"{name}[()]"
    return bracket(f"{name}[", [p.doc(i) for i in indices], "]", trailing=len(indices) > 1)


@prints(tir.Buffer)
def _buffer(p: Printer, node: tir.Buffer) -> Doc:
    return p.buffer_name(node)


@prints(tir.BufferRegion)
def _region(p: Printer, node: tir.BufferRegion) -> Doc:
    name = p.buffer_name(node.buffer)
    if not node.region:
        return f"{name}[()]"
    items = [_range_index(p, r) for r in node.region]
    return bracket(f"{name}[", items, "]", trailing=len(items) > 1)


def _range_index(p: Printer, of: tir.Range) -> Doc:
    if isinstance(of.extent, prim.IntImm) and of.extent.value == 1:
        return p.doc(of.min)
    return concat(p.doc(of.min), ":", upper_bound(p, of.min, of.extent))


def upper_bound(p: Printer, low: prim.PrimExpr, extent: prim.PrimExpr) -> Doc:
    """`low + extent`, as one number when both are numbers, as `extent` from zero."""
    if isinstance(low, prim.IntImm) and (low.value == 0 or isinstance(extent, prim.IntImm)):
        return p.doc(low + extent)
    return p.doc(prim.Add(low, extent))


@prints(tir.Range)
def _range(p: Printer, node: tir.Range) -> Doc:
    return bracket("T.Range(", [p.doc(node.min), upper_bound(p, node.min, node.extent)], ")")


# --- iteration, reduction ---------------------------------------------------------------------------------------------
@prints(tir.IterVar)
def _iter_var(p: Printer, node: tir.IterVar) -> Doc:
    items = [p.doc(node.var), p.doc(node.dom), f'"{ITER_KINDS[node.kind]}"', string_text(node.thread_tag)]
    return bracket("T.iter_var(", items, ")")


@prints(prim.CommReducer)
def _comm_reducer(p: Printer, node: prim.CommReducer) -> Doc:
    p.names.enter()
    params = [p.define(v, v.name) for v in (*node.lhs, *node.rhs)]
    result = p.doc(node.result[0]) if len(node.result) == 1 else p.dims(node.result)
    doc = bracket("T.comm_reducer(", [concat(f"lambda {', '.join(params)}: ", result), p.listed(node.identity)], ")")
    p.names.leave()
    return doc


@prints(IndexMap)
def _index_map(p: Printer, node: IndexMap) -> Doc:
    p.names.enter()
    params = ", ".join([p.define(v, v.name) for v in node.initial_indices])
    doc: Doc = concat(f"lambda {params}: ", bracket("(", [p.doc(i) for i in node.final_indices], ")", lone_comma=True))
    p.names.leave()
    items = [doc]
    if node.inverse_index_map is not None:
        items.append(concat("inverse_index_map=", p.doc(node.inverse_index_map)))
    of = node.initial_indices[0].dtype if node.initial_indices else prim.INT64
    if of is not prim.INT64:
        items.append(f'index_dtype="{of}"')
    return bracket("T.index_map(", items, ")")


@prints(prim.Reduce)
def _reduce(p: Printer, node: prim.Reduce) -> Doc:
    items: list[Doc] = [p.doc(node.combiner)]
    items += [concat("source=", p.listed(node.source)), concat("axis=", p.listed(node.axis))]
    if node.condition is not None:
        items.append(concat("condition=", p.doc(node.condition)))
    if node.init:
        items.append(concat("init=", p.listed(node.init)))
    items.append(f"value_index={node.value_index}")
    return bracket("T.Reduce(", items, ")")
