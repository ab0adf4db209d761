"""`T.…` in statements: blocks and their parts, attributes, lets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.intrinsics import TENSORMAP
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.structural import structural_equal
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Value, as_dtype, describe, error
from relaxlang.syntax.elaborate.buffers import as_region
from relaxlang.syntax.elaborate.native import Names, Native, attributes
from relaxlang.syntax.elaborate.scalars import Fresh, as_range, scalar
from relaxlang.syntax.elaborate.tir_values import BlockHead, Domain, InitHead, Pending, SuffixHead

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.tir_body import BodyElaborator

names = Names("T")
axis_names = Names("T.axis")


# --- blocks -----------------------------------------------------------------------------------------------------------
@names("block", "sblock")
def _block(
    ev: Evaluator,
    node: tree.Call,
    name_hint: Any = "",
    name: Any = "",
    *,
    no_realize: Any = False,
    exec_scope: Any = "",
) -> BlockHead:
    if isinstance(name_hint, (list, tuple)):
        domains: list[tuple[tir.IterKind, tir.Range]] = []
        for dom in name_hint:
            domains.append((dom.of, dom.dom) if isinstance(dom, Domain) else ("spatial", as_range(dom, node.span)))
        return BlockHead(name, domains, False)
    if not isinstance(name_hint, str):
        raise error("RLX0116", f"a block's name is a string, not {describe(name_hint)}", node.span)
    return BlockHead(name_hint, [], bool(no_realize))


def _old_axis(of: tir.IterKind, *spellings: str) -> None:
    def make(ev: Evaluator, node: tree.Call, start: Any, stop: Any = None) -> Domain:
        return Domain(of, as_range(start if stop is None else (start, stop), node.span))

    names(*spellings)(make)


_old_axis("reduce", "reduce_axis")
_old_axis("scan", "scan_axis")
_old_axis("opaque", "opaque_axis")
_old_axis("spatial", "range")


@names("Range")
def _range(ev: Evaluator, node: tree.Call, begin: Any, end: Any = None) -> tir.Range:
    return as_range(begin if end is None else (begin, end), node.span)


@names("init")
def _init(ev: Evaluator, node: tree.Call) -> InitHead:
    return InitHead()


@names("block_name_suffix_context")
def _block_name_suffix(ev: Evaluator, node: tree.Call, block_suffix: Any) -> SuffixHead:
    if not isinstance(block_suffix, str):
        raise error("RLX0116", f"what names end in is a string, not {describe(block_suffix)}", node.span)
    return SuffixHead(block_suffix)


def _axis(of: tir.IterKind, *spellings: str) -> None:
    def make(ev: BodyElaborator, node: tree.Call, dom: Any, binding: Any = None, dtype: Any = "int32") -> Pending:
        domain = as_range(dom, node.span)
        value = None if binding is None else scalar(binding, node.span, domain.extent.dtype)
        if not domain.extent.dtype.is_integer:
            raise error("RLX0309", f"the domain of an axis is an integer range, not `{domain.extent.dtype}`", node.span)
        bits = max(domain.min.dtype.bits, domain.extent.dtype.bits, as_dtype(dtype, node.span).bits)

        def declare(body: BodyElaborator, name: str, span: Span | None) -> prim.Var:
            if value is None and body.open_block(node.span).realized:
                raise error(
                    "RLX0310",
                    "an axis needs the value it is bound to",
                    node.span,
                    help="write `T.axis.spatial(extent, value)`",
                )
            return body.add_axis(name, as_dtype(f"int{bits}", node.span), domain, of, value, span)

        return Pending("axis", declare)

    axis_names(*spellings)(make)


_axis("spatial", "spatial", "S")
_axis("reduce", "reduce", "R")
_axis("scan", "scan")
_axis("opaque", "opaque")
_KINDS: dict[str, tir.IterKind] = {"S": "spatial", "R": "reduce"}


@axis_names("remap")
def _remap(ev: BodyElaborator, node: tree.Call, kinds: Any, bindings: Any, dtype: Any = "int32") -> Any:
    loops = ev.iterate(bindings, node.span)
    if not isinstance(kinds, str) or len(kinds) != len(loops) or set(kinds) - set(_KINDS):
        raise error("RLX0310", "`T.axis.remap` takes one letter, S or R, for each loop", node.span,
                    label=f"{len(loops)} loops")  # fmt: skip
    made = []
    for letter, loop in zip(kinds, loops):
        domain = ev.loop_domains.get(loop) if isinstance(loop, prim.Var) else None
        if domain is None:
            raise error("RLX0310", f"`T.axis.remap` takes loop variables, not {describe(loop)}", node.span,
                        help="for other values write `T.axis.spatial(extent, value)`")  # fmt: skip
        made.append(_remapped(_KINDS[letter], loop, domain))
    return made[0] if len(made) == 1 else tuple(made)


def _remapped(of: tir.IterKind, loop: prim.Var, domain: tir.Range) -> Pending:
    return Pending("axis", lambda body, name, span: body.add_axis(name, loop.dtype, domain, of, loop, span))


def _regions(args: tuple[Any, ...], node: tree.Call) -> list[tir.BufferRegion]:
    flat: list[Any] = []
    for arg in args:
        flat.extend(arg) if isinstance(arg, (list, tuple)) else flat.append(arg)
    return [as_region(a, node.span) for a in flat]


@names("reads")
def _reads(ev: BodyElaborator, node: tree.Call, *regions: Any) -> None:
    block = ev.open_block(node.span)
    _once(block.reads, "T.reads", node)
    block.reads = _regions(regions, node)


@names("writes")
def _writes(ev: BodyElaborator, node: tree.Call, *regions: Any) -> None:
    block = ev.open_block(node.span)
    _once(block.writes, "T.writes", node)
    block.writes = _regions(regions, node)


def _once(stated: Any, what: str, node: tree.Call) -> None:
    if stated is not None:
        raise error("RLX0318", f"the block has `{what}` already", node.span)


@names("where")
def _where(ev: BodyElaborator, node: tree.Call, predicate: Any) -> None:
    block = ev.open_block(node.span)
    _once(block.predicate, "T.where", node)
    block.predicate = scalar(predicate, node.span, prim.BOOL)


@names("block_attr", "sblock_attr")
def _block_attr(ev: BodyElaborator, node: tree.Call, attrs: Any) -> None:
    known = ev.open_block(node.span).annotations
    for key, value in attributes(attrs, "T.block_attr", node).items():
        before = known.get(key, value)
        if isinstance(before, dict) and isinstance(value, dict) and not before.keys() & value.keys():
            value = {**before, **value}
        elif not structural_equal(before, value):
            raise error("RLX0318", f"the block has the attribute `{key}` already, with another value", node.span)
        known[key] = value


# --- the function -----------------------------------------------------------------------------------------------------
@names("func_attr")
def _func_attr(ev: BodyElaborator, node: tree.Call, attrs: Any) -> None:
    ev.attrs.update(attributes(attrs, "T.func_attr", node))


@names("func_name")
def _func_name(ev: BodyElaborator, node: tree.Call, name: Any) -> None:
    ev.attrs["global_symbol"] = name


@names("evaluate", "Evaluate")
def _evaluate(ev: Evaluator, node: tree.Call, value: Any) -> tir.Stmt:
    if isinstance(value, (tir.Break, tir.Continue)):  # calls in TVM, statements here
        return value
    return tir.Evaluate(scalar(value, node.span), span=node.span)


# --- attributes and lets ----------------------------------------------------------------------------------------------
@names("attr", "AttrStmt")
def _attr(ev: Evaluator, node: tree.Call, of: Any, attr_key: Any = None, value: Any = None) -> Pending:
    if isinstance(of, dict) and attr_key is None:
        zero = prim.const(0, prim.INT32)
        several = [(zero, str(key), scalar(v, node.span)) for key, v in of.items()]
        return _attributes(several, node.span)
    if not isinstance(attr_key, str):
        raise error("RLX0116", "`T.attr` takes a node, a key and a value", node.span)
    if isinstance(of, list):
        of = tuple(of)
    subject = of.var if isinstance(of, tir.IterVar) and attr_key not in ("thread_extent", "virtual_thread") else of
    if isinstance(subject, (bool, int, float)):
        subject = scalar(subject, node.span)
    return _attributes([(subject, attr_key, scalar(value, node.span))], node.span)


def _attributes(stated: list[tuple[Any, str, PrimExpr]], span: Span | None) -> Pending:
    """Attributes, node, key and value, of what follows in the scope."""

    def declare(body: BodyElaborator, name: str, at: Span | None) -> None:
        for one in stated:
            body.wrap(lambda rest, one=one: tir.AttrStmt(*one, rest, span=span))  # type: ignore[misc]

    return Pending("attribute", declare)


@names("env_thread")
def _env_thread(ev: Evaluator, node: tree.Call, thread_tag: Any, dtype: Any = "int32") -> Pending:
    def declare(body: BodyElaborator, name: str, span: Span | None) -> prim.Var:
        var = prim.Var(name, as_dtype(dtype, node.span), span=span)
        body.thread_tags[var] = thread_tag
        return var

    return Pending("thread", declare)


@names("launch_thread")
def _launch_thread(ev: Evaluator, node: tree.Call, thread: Any, extent: Any) -> Pending:
    size = scalar(extent, node.span)

    def declare(body: BodyElaborator, name: str, span: Span | None) -> prim.Var:
        var = thread if isinstance(thread, prim.Var) else prim.Var(name, size.dtype, span=span)
        tag = body.thread_tags.get(var, thread)
        if not isinstance(tag, str):
            raise error("RLX0116", "`T.launch_thread` takes a thread tag or a variable of `T.env_thread`", node.span)
        axis = tir.IterVar(var, tir.Range(prim.const(0, size.dtype), size), "thread", tag)
        key = "virtual_thread" if tag.startswith("vthread") else "thread_extent"
        body.wrap(lambda rest: tir.AttrStmt(axis, key, size, rest, span=node.span))
        return var

    return Pending("thread", declare)


@names("iter_var")
def _iter_var(ev: Evaluator, node: tree.Call, var: Any, dom: Any, iter_type: Any, thread_tag: Any = "") -> tir.IterVar:
    kinds: dict[str, tir.IterKind] = {
        "DataPar": "spatial",
        "CommReduce": "reduce",
        "Ordered": "scan",
        "ThreadIndex": "thread",
    }
    domain = tir.Range(prim.const(0, "int32"), prim.const(0, "int32")) if dom is None else as_range(dom, node.span)
    if isinstance(var, Fresh):
        var = var.make("v", node.span)
    return tir.IterVar(var, domain, kinds.get(iter_type, "opaque"), thread_tag, span=node.span)


def let_of(value: PrimExpr, of: DType | None, at: Span | None, var: prim.Var | None = None) -> Pending:
    """A variable bound to `value` for the rest of the scope; its type is `of` when given."""

    def declare(body: BodyElaborator, name: str, span: Span | None) -> prim.Var:
        pointer = value.pointer if isinstance(value, prim.Var) else None
        if isinstance(value, prim.Call) and value.dtype.is_handle and of is None:
            pointer = None
        made = var if var is not None else prim.Var(name, of or value.dtype, pointer, span=span)
        bound = value if value.dtype is made.dtype else prim.cast(value, made.dtype)
        body.wrap(lambda rest: tir.LetStmt(made, bound, rest, span=at))
        return made

    return Pending("let", declare)


@names("LetStmt", "let")
def _let_stmt(ev: Evaluator, node: tree.Call, *args: Any, type_annotation: Any = None, var: Any = None) -> Any:
    if len(args) == 3:
        if not isinstance(args[0], prim.Var):
            raise error("RLX0116", "`T.let` takes a variable, its value and the body", node.span)
        bound = prim.cast(scalar(args[1], node.span, args[0].dtype), args[0].dtype)
        return prim.Let(args[0], bound, scalar(args[2], node.span), span=node.span)
    if len(args) == 2:
        var, value = args
        if isinstance(var, Fresh):
            var = var.make("v", node.span)
        return let_of(scalar(value, node.span, var.dtype), None, node.span, var)
    of = None if type_annotation is None else type_annotation if isinstance(type_annotation, DType) else None
    return let_of(scalar(args[0], node.span, of), of, node.span, var if isinstance(var, prim.Var) else None)


class LetMaker(Native):
    """`T.let`: a call, or, since TVM 0.24, an annotation: `x: T.let[T.int32] = value`."""

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        return index


for _name in ("LetStmt", "let"):
    names.table[_name] = LetMaker("T.let", _let_stmt)


@names("bind", "Bind")
def _bind(ev: BodyElaborator, node: tree.Call, value: Any, type_annotation: Any = None, *, var: Any = None) -> Any:
    """TVM 0.24's `x = T.bind(value)` is a let; the oldest scripts' `T.bind(vi, i)` binds a block axis."""
    if isinstance(var, prim.Var):
        return let_of(scalar(value, node.span, var.dtype), None, node.span, var)
    if type_annotation is None:
        return let_of(scalar(value, node.span), None, node.span)
    if isinstance(type_annotation, Fresh):  # a type; its pointer says what a handle points to
        return _typed_let(scalar(value, node.span), type_annotation, node.span)
    if isinstance(type_annotation, DType):
        return let_of(scalar(value, node.span, type_annotation), type_annotation, node.span)
    ev.bind_axis(value, scalar(type_annotation, node.span), node.span)
    return None


def _typed_let(value: PrimExpr, of: Fresh, at: Span | None) -> Pending:
    def declare(body: BodyElaborator, name: str, span: Span | None) -> prim.Var:
        made: prim.Var = let_of(value, None, at, of.make(name, span)).declare(body, name, span)
        return made

    return Pending("let", declare)


@names("Assert", "AssertStmt")
def _assert(ev: Evaluator, node: tree.Call, condition: Any, message: Any = "", **more: Any) -> Pending:
    when = scalar(condition, node.span, prim.BOOL)
    text = " ".join(message) if isinstance(message, (list, tuple)) else str(message)

    def declare(body: BodyElaborator, name: str, span: Span | None) -> None:
        body.wrap(lambda rest: tir.AssertStmt(when, text, rest, span=node.span))

    return Pending("assertion", declare)


@names("break_loop", "Break")
def _break(ev: Evaluator, node: tree.Call) -> tir.Stmt:
    return tir.Break(span=node.span)


@names("continue_loop", "Continue")
def _continue(ev: Evaluator, node: tree.Call) -> tir.Stmt:
    return tir.Continue(span=node.span)


@names("Return")
def _return(ev: Evaluator, node: tree.Call, value: Any) -> tir.Stmt:
    result = scalar(value, node.span)
    return tir.Evaluate(prim.Call(result.dtype, "ret", (result,), span=node.span), span=node.span)


@names("meta_var")
def _meta_var(ev: Evaluator, node: tree.Call, value: Any) -> Any:
    return Meta(value)


class Meta:
    """What `T.meta_var` gives: a value that an assignment names without making a let."""

    def __init__(self, value: Any) -> None:
        self.value = value


@names("static_assert")
def _static_assert(ev: Evaluator, node: tree.Call, condition: Any, message: Any = "the static assertion fails") -> None:
    if not ev.truth(condition, node.span):
        raise error("RLX0140", str(message), node.span)


@names("preflattened_buffer")
def _preflattened_buffer(
    ev: Evaluator, node: tree.Call, buffer: Any, shape: Any, dtype: Any = "float32", **fields: Any
) -> None:
    """What a parameter was before it was flattened, which scripts up to 0.10 tell; the IR keeps nothing of it."""
    if not isinstance(buffer, tir.Buffer):
        raise error("RLX0116", f"`T.preflattened_buffer` takes a buffer, not {describe(buffer)}", node.span)


# --- variables --------------------------------------------------------------------------------------------------------
def fresh(of: DType, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    """`T.int64()`, `T.int64(is_size_var=True)`, `T.handle("float32", "shared")`: None when it is a constant or cast
    instead."""
    if of.is_handle and (args or "storage_scope" in kwargs):
        scope = args[1] if len(args) > 1 else kwargs.get("storage_scope", "global")
        given = args[0] if args else "void"
        if isinstance(given, (str, DType)):
            element = TENSORMAP if given == TENSORMAP.name else as_dtype(given, node.span)
            return Fresh(of, False, prim.PointerType(element, str(scope)))
        return None
    if args and args != [None]:
        return None
    size = kwargs.get("is_size_var", False)
    if set(kwargs) - {"is_size_var", "is_unknown_type"}:
        return None
    return Fresh(of, bool(size))


@names("TensorMap")
def _tensor_map(ev: Evaluator, node: tree.Call) -> Fresh:
    return Fresh(prim.HANDLE, False, prim.PointerType(TENSORMAP))


@names("var")
def _var(ev: Evaluator, node: tree.Call, dtype: Any, name: Any = "") -> Fresh:
    return Fresh(as_dtype(dtype, node.span), False)


@names("SizeVar")
def _size_var(ev: Evaluator, node: tree.Call, name: Any = "", dtype: Any = "int32") -> Fresh:
    return Fresh(as_dtype(dtype, node.span), True)


@names("Var")
def _named_var(ev: Evaluator, node: tree.Call, name: Any, dtype: Any = "int32") -> Fresh:
    return Fresh(as_dtype(dtype, node.span), False)


class PointerMaker(Value):
    """`T.Ptr("float32", "shared")`, also with brackets, as scripts up to TVM 0.10 write it."""

    kind = "pointer type"

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        scope = args[1] if len(args) > 1 else kwargs.get("storage_scope", "global")
        given = args[0] if args else kwargs.get("dtype", "void")
        return Fresh(prim.HANDLE, False, prim.PointerType(as_dtype(given, node.span), str(scope)))

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        scope = str(parts[1]) if len(parts) > 1 else "global"
        return Fresh(prim.HANDLE, False, prim.PointerType(as_dtype(parts[0], span), scope))


for _name in ("ptr", "Ptr", "buffer_var"):
    names.table[_name] = PointerMaker()


@names("target", "Target")
def _target(ev: Evaluator, node: tree.Call, target: Any, host: Any = None) -> Any:
    """A target, as text or mapping; that is all an attribute keeps of it."""
    if host is None:
        return target
    return {**(target if isinstance(target, dict) else {"kind": target}), "host": host}


@names("Optional")
def _optional(ev: Evaluator, node: tree.Call, of: Any) -> Any:
    return of
