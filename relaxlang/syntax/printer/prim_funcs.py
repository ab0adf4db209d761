"""PrimFuncs: parameters and their buffers, declarations, the root block that is not written."""

from __future__ import annotations

from relaxlang.ir import prim, tir
from relaxlang.ir.tir import SCHEDULABLE, is_schedulable
from relaxlang.ir.visit import walk
from relaxlang.syntax.document import Doc, bracket, concat
from relaxlang.syntax.printer.blocks import alloc_buffers
from relaxlang.syntax.printer.core import Printer, emits, owns_data
from relaxlang.syntax.printer.relax_bindings import function_attrs
from relaxlang.syntax.printer.sources import is_for_newest
from relaxlang.syntax.printer.stmts import tail
from relaxlang.syntax.printer.values import mapping_doc
from relaxlang.syntax.scalars import string_text
from relaxlang.syntax.spellings import at_least


@emits(tir.PrimFunc)
def _prim_func(p: Printer, node: tir.PrimFunc) -> None:
    emit_prim_func(p, node, str(node.attrs.get("global_symbol", "main")))


def emit_prim_func(p: Printer, node: tir.PrimFunc, name: str, *, symbol: str | None = None) -> None:
    """The definition of a PrimFunc. `symbol` is its name in the module when `name` is only made from it."""
    start = len(p.lines)
    _definition(p, node, name, symbol)
    if p.escaped or p.threads:  # variables that are used outside of the scope that defines them: declared first
        del p.lines[start:]
        _definition(p, node, name, symbol)
        p.escaped.clear()
        p.threads.clear()


def _definition(p: Printer, node: tir.PrimFunc, name: str, symbol: str | None) -> None:
    p.int_dtype = prim.INT32
    items: list[Doc] = ["private=True"] if node.is_private else []
    implied = p.since("tvm-0.26") and is_schedulable(node.body, node.buffer_map.values())
    if SCHEDULABLE in node.attrs or (implied and not is_for_newest(node)):
        items.append(f"{SCHEDULABLE}=True")
    if symbol is not None:
        items.append(f"name={string_text(symbol)}")
    p.line(bracket("@T.prim_func(", items, ")") if items else "@T.prim_func")
    p.names.enter(function=True)
    at = len(p.lines)
    p.indent += 1
    p.head = p.slot()
    params, matched = _parameters(p, node)
    p.indent -= 1
    returns = f" -> T.{node.ret_type}:" if node.ret_type is not None else ":"
    p.lines.insert(at, (p.indent, concat(f"def {name}", bracket("(", params, ")"), returns)))
    p.indent += 1
    attrs = function_attrs(p, node.attrs.without(SCHEDULABLE), symbol or name, False)
    if attrs:
        p.line(concat("T.func_attr(", mapping_doc(p, attrs), ")"))
    for param, buffer in matched:
        fields = p.buffer_fields(buffer, first=(p.names.get(param) or p.name(param),))
        p.line(concat(p.names.get(buffer) or buffer.name, f" = {p.spell('T.match_buffer')}", fields))
    slot = p.slot()
    for buffer in node.buffer_map.values():
        p.slots[buffer.data] = slot
        if isinstance(buffer.elem_offset, prim.Var):
            p.slots[buffer.elem_offset] = slot
    p.lets.clear()
    p.launched.clear()
    for var in list(p.escaped):
        p.name(var)
    for thread, tag in p.threads.items():
        p.line(f"{p.names.define(thread, thread.name, lasting=True)} = T.env_thread({string_text(tag)})")
    _body(p, node.body)
    p.indent -= 1
    p.head = None
    p.slots.clear()
    p.loops.clear()
    p.names.leave()


# --- parameters -------------------------------------------------------------------------------------------------------
def _parameters(p: Printer, node: tir.PrimFunc) -> tuple[list[Doc], list[tuple[prim.Var, tir.Buffer]]]:
    """The parameters as text, and those whose buffer needs a `T.match_buffer` line."""
    handles = {v for v in node.params if v in node.buffer_map}
    used = {n for n in walk(node.body) if n.__class__ is prim.Var and n in handles} if handles else set()
    plain = {v for v in handles if v not in used and _is_plain(p, node.buffer_map[v], node.params)}
    for var in node.params:
        if var in plain:
            buffer = node.buffer_map[var]
            p.define(buffer, buffer.name)
        else:
            p.define(var, var.name)
    for var in node.params:
        if var in plain:
            for dim in node.buffer_map[var].shape:
                if isinstance(dim, prim.Var):
                    p.define_dimension(dim)
    for var in node.params:
        if var in handles and var not in plain:
            p.define(node.buffer_map[var], node.buffer_map[var].name)
    docs: list[Doc] = []
    for var in node.params:
        if var in plain:
            buffer = node.buffer_map[var]
            docs.append(concat(f"{p.names.get(buffer)}: T.Buffer", _buffer_type(p, buffer)))
        else:
            docs.append(f"{p.names.get(var)}: {_param_type(p, var)}")
    return docs, [(v, node.buffer_map[v]) for v in node.params if v in handles and v not in plain]


def _is_plain(p: Printer, buffer: tir.Buffer, params: tuple[prim.Var, ...]) -> bool:
    """Whether `T.Buffer(shape, dtype)` in the signature says all about a buffer."""
    if p.options.dialect is not None and any(
        not isinstance(d, prim.IntImm) and not (isinstance(d, prim.Var) and p.implicit(d) and d not in params)
        for d in buffer.shape
    ):
        return False  # TVM knows no dimension in a signature before it is declared
    return (
        not buffer.strides and buffer.elem_offset is None and buffer.scope == "global" and buffer.align == -1
        and buffer.offset_factor == 0 and owns_data(buffer)
    )  # fmt: skip


def _buffer_type(p: Printer, buffer: tir.Buffer) -> Doc:
    """The shape and dtype of a buffer in a signature; in brackets up to TVM 0.11."""
    fields = p.buffer_fields(buffer)
    if p.options.dialect is None or at_least(p.options.dialect, "tvm-0.12"):
        return fields
    return bracket("[", [p.dims(buffer.shape), f'"{buffer.dtype}"'], "]")


def _param_type(p: Printer, var: prim.Var) -> str:
    if var.pointer is None and var.__class__ is prim.Var:
        return f"T.{var.dtype}"
    return p.var_type(var)


# --- the root block ---------------------------------------------------------------------------------------------------
def _body(p: Printer, body: tir.Stmt) -> None:
    """The body; the root block is left out where reading the text puts it back: when there are blocks inside it, unless
    it would be taken for one that was written out, or it allocates with a word that only blocks have."""
    if isinstance(body, tir.BlockRealize) and _is_root(body):
        block = body.block
        first = block.body
        bare = isinstance(first, tir.BlockRealize) and not first.block.iter_vars
        inside = any(n.__class__ is tir.BlockRealize for n in walk(first))
        if (inside and not bare) or (block.alloc_buffers and (inside or p.since("tvm-0.24"))):
            alloc_buffers(p, block.alloc_buffers)
            tail(p, block.body)
            return
    tail(p, body)


def _is_root(node: tir.BlockRealize) -> bool:
    block = node.block
    return (
        block.name_hint == "root" and not block.iter_vars and block.reads == () and block.writes == ()
        and block.init is None and not block.match_buffers and not block.annotations
        and isinstance(node.predicate, prim.IntImm) and node.predicate.value == 1
    )  # fmt: skip
