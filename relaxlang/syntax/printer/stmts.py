"""Statements of TensorIR, blocks and loops aside (see `blocks`).

Statements with a body that reaches to the end of their scope (let, allocation, attribute, assertion) are written flat,
`x: T.int32 = v`, where they are last in their scope, and as `with T.LetStmt(v) as x:` where more follows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from relaxlang.ir import prim, tir
from relaxlang.ir.intrinsics import CARRIED_WITH, COORDINATES, is_opaque, is_view
from relaxlang.syntax.document import Doc, bracket, concat, render
from relaxlang.syntax.printer.core import Printer, emits, owns_data
from relaxlang.syntax.printer.exprs import element, pointer_call
from relaxlang.syntax.printer.sources import is_annotated, says_type
from relaxlang.syntax.printer.values import array_doc, keyed_doc, list_doc, mapping_doc
from relaxlang.syntax.scalars import string_text

_DATA = re.compile(r"\bdata *= *(\w+)\.data\b")
_SCOPED = (
    tir.LetStmt, tir.AttrStmt, tir.AssertStmt, tir.Allocate, tir.AllocConst, tir.DeclBuffer, tir.BufferRealize,
)  # fmt: skip


def scope(p: Printer, body: tir.Stmt) -> None:
    """The lines of a body that is a scope of its own, one step further in."""
    p.indent += 1
    p.names.enter()
    tail(p, body)
    p.names.leave()
    p.indent -= 1


def tail(p: Printer, body: tir.Stmt) -> None:
    """The lines of what stands last in its scope; no recursion along the chain of scoped statements."""
    while True:
        if isinstance(body, tir.SeqStmt) and body.seq:
            for stmt in body.seq[:-1]:
                _inner(p, stmt)
            body = body.seq[-1]
        elif isinstance(body, tir.LetStmt) and _is_data(p, body):
            body = _declared_at(p, body)
        elif isinstance(body, tir.LetStmt) and p.names.get(body.var) is not None:
            if not p.since("tvm-0.24"):
                _inner(p, body)  # the variable is defined already: only `var=` can say so
                return
            p.line(bracket("T.bind(", [p.doc(body.value), f"var={p.name(body.var)}"], ")"))
            body = body.body
        elif isinstance(body, tir.Allocate) and _is_buffer(p, body):
            body = _allocated_buffer(p, body)
        elif isinstance(body, tir.AttrStmt) and body.key == CARRIED_WITH:
            _inner(p, body)
            return
        elif isinstance(body, _SCOPED):
            if (declared := _allocated(p, body)) is not None:
                _alloc_statement(p, body, declared.buffer)
                body = declared.body
                continue
            p.opens(body)
            places = _coordinates(p, body)
            if places:
                _coordinates_line(p, places)
                body = places[-1].body
                continue
            p.line(_head(p, body, flat=True))
            _after_head(p, body)
            body = body.body
        else:
            p.emit(body)
            return


def _inner(p: Printer, stmt: tir.Stmt) -> None:
    """A statement that others follow in its scope."""
    if isinstance(stmt, tir.Allocate) and _is_buffer(p, stmt):
        tail(p, stmt)  # its scope may reach further than it has to
    elif isinstance(stmt, tir.LetStmt) and p.since("tvm-0.24"):
        tail(p, stmt)  # there is no `with` for it either
    elif isinstance(stmt, tir.DeclBuffer) and is_view(stmt.buffer.layout):
        tail(p, stmt)  # there is no `with` for it
    elif isinstance(stmt, _SCOPED):
        p.names.enter()
        if (declared := _allocated(p, stmt)) is not None:  # there is no `with` for it: it lasts to the end of the scope
            _alloc_statement(p, stmt, declared.buffer)
            tail(p, declared.body)
            p.names.leave()
            return
        p.opens(stmt)
        p.line(_head(p, stmt, flat=False))
        p.indent += 1
        _after_head(p, stmt)
        tail(p, stmt.body)
        p.indent -= 1
        p.names.leave()
    else:
        p.emit(stmt)


@emits(*_SCOPED, tir.SeqStmt)
def _scoped(p: Printer, node: tir.Stmt) -> None:
    tail(p, node)


# --- the heads of scoped statements -----------------------------------------------------------------------------------
def _head(p: Printer, node: Any, *, flat: bool) -> Doc:
    """The line that opens a scoped statement, flat or as a `with`."""
    if isinstance(node, tir.LetStmt):
        return _let_head(p, node, flat)
    if isinstance(node, tir.AssertStmt):
        condition = p.doc(node.condition)
        if flat:
            return concat("assert ", condition, ", ", string_text(node.message))
        return concat(bracket("with T.Assert(", [condition, string_text(node.message)], ")"), ":")
    if isinstance(node, tir.AttrStmt):
        return _attr_head(p, node, flat)
    if isinstance(node, tir.BufferRealize):
        return _realize_head(p, node, flat)
    if isinstance(node, tir.DeclBuffer) and is_view(node.buffer.layout):
        assert node.buffer.layout is not None
        made = p.doc(node.buffer.layout)
        return concat(p.define(node.buffer, node.buffer.name), " = ", made)
    if isinstance(node, tir.DeclBuffer):
        p.name(node.buffer.data)  # without `data=` it would be an allocation as well
        name = p.define(node.buffer, node.buffer.name)
        fields = p.buffer_fields(node.buffer, data=_owner(p, node) if p.since("tvm-0.26") else None)
        p.declared[node.buffer.name] = node.buffer
        return _named(name, concat(p.spell("T.decl_buffer"), fields), flat)
    return _allocate_head(p, node, flat)


def _owner(p: Printer, node: tir.DeclBuffer) -> str | None:
    """`B.data`, where the source takes the memory from another view of it; that is the same here, but not to TVM."""
    found = _DATA.search(node.span.text) if node.span is not None else None
    other = p.declared.get(found.group(1)) if found is not None else None
    name = p.names.get(other) if other is not None and other.data is node.buffer.data else None
    return f"{name}.data" if name is not None else None


def _named(name: str, call: Doc, flat: bool) -> Doc:
    return concat(name, " = ", call) if flat else concat("with ", call, f" as {name}:")


def _let_head(p: Printer, node: tir.LetStmt, flat: bool) -> Doc:
    value = pointer_call(p, node.value, node.var.pointer) or p.doc(node.value)
    if flat:
        p.lets.add(node.var)
        of = node.var.pointer
        kind = f'T.handle("{of.element}", "{of.scope}")' if of is not None else f"T.{node.var.dtype}"
        if isinstance(node.var, prim.SizeVar):
            kind = p.var_type(node.var)
        name, assigned = p.define(node.var, node.var.name), is_annotated(node) if p.since("tvm-0.26") else None
        if assigned is False and node.var.dtype.is_handle and of is None:
            return concat(f"{name} = ", value)  # the release knows better what it points to
        if p.since("tvm-0.24") and (assigned is None or of is not None):
            kind = f"T.let[{kind}]"
        elif isinstance(node.value, prim.Cast) and _is_opaque(node.value.value) and p.since("tvm-0.26"):
            value = p.doc(node.value.value)  # of a type that the release knows
        return concat(f"{name}: {kind} = ", value)
    plain = node.var.__class__ is prim.Var and node.var.pointer is None and node.var.dtype is node.value.dtype
    if plain and p.names.get(node.var) is None:
        p.lets.add(node.var)
        return concat(f"with {p.spell('T.LetStmt')}(", value, f") as {p.define(node.var, node.var.name)}:")
    return bracket(f"with {p.spell('T.LetStmt')}(", [value, f"var={p.name(node.var)}"], "):")


def _is_opaque(value: prim.PrimExpr) -> bool:
    return isinstance(value, prim.Call) and value.of is prim.HANDLE and is_opaque(value.op)


def _is_data(p: Printer, node: tir.LetStmt) -> bool:
    """Whether a let is what `T.decl_buffer(…, data=f(…))` made for the value; since TVM 0.26 that may be any."""
    inner = node.body
    same = isinstance(inner, tir.DeclBuffer) and inner.buffer.data is node.var and inner.span is node.span
    return same and node.span is not None and p.since("tvm-0.26")


def _declared_at(p: Printer, node: tir.LetStmt) -> tir.Stmt:
    """`B = T.decl_buffer(shape, dtype, data=T.address_of(A[16]))`; what comes below it."""
    inner = node.body
    assert isinstance(inner, tir.DeclBuffer)
    p.opens(inner)
    p.names.bind(node.var, render([(0, p.doc(node.value))], sys.maxsize).text.strip())
    p.line(_head(p, inner, flat=True))
    p.names.bind(node.var, f"{p.names.get(inner.buffer)}.data")
    return inner.body


def _coordinates(p: Printer, node: tir.Stmt) -> list[tir.LetStmt]:
    """The lets from here on that name what one call gives: where in the grid of a GPU kernel a thread is."""
    if not isinstance(node, tir.LetStmt) or not isinstance(node.value, prim.Call):
        return []
    call = node.value
    if call.op in COORDINATES:
        return [node]
    found: list[tir.LetStmt] = []
    while isinstance(node, tir.LetStmt) and p.names.get(node.var) is None:
        part = node.value
        if not (isinstance(part, prim.Call) and part.op == "carried.item" and part.args[0] is call.args[0]):
            break
        index = part.args[1]
        if not isinstance(index, prim.IntImm) or index.value != len(found):
            break
        found.append(node)
        node = node.body
    whole = call.args[0] if found else None
    extents = whole.args[0] if isinstance(whole, prim.Call) and whole.op in COORDINATES and whole.args else None
    return found if isinstance(extents, prim.Call) and len(extents.args) == len(found) else []


def _coordinates_line(p: Printer, places: list[tir.LetStmt]) -> None:
    """`bx, by = T.cta_id([8, 4])`."""
    value = places[0].value
    assert isinstance(value, prim.Call)
    doc = p.doc(value if value.op in COORDINATES else value.args[0])
    names = [p.define(place.var, place.var.name) for place in places]
    p.line(concat(", ".join(names), " = ", doc))
    for place in places:
        p.slots[place.var] = p.slot()


def _attr_head(p: Printer, node: tir.AttrStmt, flat: bool) -> Doc:
    on = node.node
    if node.key == CARRIED_WITH and isinstance(on, prim.PrimExpr):
        return concat("with ", p.doc(on), ":")
    if isinstance(on, tir.IterVar) and on.var in p.threads and _is_launch(node, on):
        call = bracket("T.launch_thread(", [p.name(on.var), p.doc(node.value)], ")")
        return call if flat else concat("with ", call, ":")
    if isinstance(on, tir.IterVar) and p.names.get(on.var) is None and _is_launch(node, on):
        if on.var in p.launched and on.var.dtype is prim.INT32:  # again: `T.env_thread` says that it is the same
            p.threads[on.var] = on.thread_tag
        p.launched.add(on.var)
        call = bracket("T.launch_thread(", [string_text(on.thread_tag), p.doc(node.value)], ")")
        return _named(p.define(on.var, on.var.name), call, flat)
    # TVM keeps a bare number of Python here, and takes `T.int32(0)` for something else.
    bare = isinstance(on, prim.IntImm) and on.of is prim.INT32 and not (p.options.dialect and says_type(node))
    text = str(getattr(on, "value", "")) if bare else keyed_doc(p, node.key, on)
    items = [text, string_text(node.key), p.doc(node.value)]
    return bracket("T.attr(" if flat else "with T.attr(", items, ")" if flat else "):")


def _is_launch(node: tir.AttrStmt, on: tir.IterVar) -> bool:
    """Whether `T.launch_thread(tag, extent)` says all."""
    key = "virtual_thread" if on.thread_tag.startswith("vthread") else "thread_extent"
    from_zero = isinstance(on.dom.min, prim.IntImm) and on.dom.min.value == 0
    return (
        node.key == key and on.thread_tag != "" and on.kind == "thread" and from_zero
        and on.dom.extent == node.value and on.var.dtype is node.value.dtype
    )  # fmt: skip


def _realize_head(p: Printer, node: tir.BufferRealize, flat: bool) -> Doc:
    if p.names.get(node.buffer) is None:
        p.buffer_name(node.buffer)
    items = [p.doc(tir.BufferRegion(node.buffer, node.bounds)), string_text(node.buffer.scope)]
    if not _is_true(node.condition):
        items.append(concat("condition=", p.doc(node.condition)))
    return bracket("T.realize(" if flat else "with T.realize(", items, ")" if flat else "):")


def _allocate_head(p: Printer, node: tir.Allocate | tir.AllocConst, flat: bool) -> Doc:
    extents = p.listed(node.extents)
    if isinstance(node, tir.AllocConst):
        import numpy as np

        data = np.asarray(node.data)
        items = [list_doc(data) or array_doc(p, data), f'"{node.dtype}"', extents]
        call = "T.allocate_const("
    else:
        scope_name = node.buffer_var.pointer.scope if node.buffer_var.pointer is not None else "global"
        items = [extents, f'"{node.dtype}"', f'"{scope_name}"']
        if not _is_true(node.condition):
            items.append(concat("condition=", p.doc(node.condition)))
        call = "T.allocate("
    if node.annotations:
        items.append(concat("annotations=", mapping_doc(p, _text_keys(node.annotations))))
    return _named(p.define(node.buffer_var, node.buffer_var.name), bracket(call, items, ")"), flat)


def _allocated(p: Printer, node: Any) -> tir.DeclBuffer | None:
    """The declaration inside an allocation, when releases since 0.24 state both as one: memory and a view of it all."""
    inner = node.body
    if not (p.since("tvm-0.24") and isinstance(node, tir.Allocate) and isinstance(inner, tir.DeclBuffer)):
        return None
    buffer = inner.buffer
    whole = buffer.data is node.buffer_var and buffer.shape == node.extents and owns_data(buffer)
    return inner if whole and _is_true(node.condition) and p.names.get(node.buffer_var) is None else None


def _alloc_statement(p: Printer, node: Any, buffer: tir.Buffer) -> None:
    """`A = T.alloc_buffer(…)`."""
    p.opens(node)
    name = p.define(buffer, buffer.name)
    notes = (concat("annotations=", mapping_doc(p, _text_keys(node.annotations))),) if node.annotations else ()
    p.line(concat(f"{name} = T.alloc_buffer", p.buffer_fields(buffer, last=notes)))
    p.slots[buffer.data] = p.slot()


def _after_head(p: Printer, node: Any) -> None:
    """Behind a line that defines a pointer, leave room for declarations of buffers that live there."""
    if isinstance(node, (tir.Allocate, tir.AllocConst)):
        p.slots[node.buffer_var] = p.slot()
    elif isinstance(node, tir.LetStmt):
        p.slots[node.var] = p.slot()
    elif isinstance(node, tir.AttrStmt) and isinstance(node.node, tir.IterVar):
        p.slots[node.node.var] = p.slot()


def _is_buffer(p: Printer, node: tir.Allocate) -> bool:
    """Whether an allocation is written as a buffer: since TVM 0.24 there is no other way."""
    return p.since("tvm-0.24") and _is_true(node.condition) and not node.annotations


def _allocated_buffer(p: Printer, node: tir.Allocate) -> tir.Stmt:
    """`B = T.decl_buffer(shape, dtype)`, which allocates as well; what comes below it.

    The buffer is the one that is declared right there on all of the memory, or else a new one of the memory's name.
    """
    inner = node.body
    p.opens(node)
    if isinstance(inner, tir.DeclBuffer) and inner.buffer.data is node.buffer_var and owns_data(inner.buffer):
        buffer = inner.buffer
        if buffer.shape == node.extents and buffer.dtype is node.dtype:
            name = p.define(buffer, buffer.name)
            word = p.spell("T.decl_buffer") if buffer.layout is None else "T.alloc_buffer"  # only this takes all fields
            p.line(concat(name, f" = {word}", p.buffer_fields(buffer)))
            p.slots[node.buffer_var] = p.slot()
            return inner.body
    scope_name = node.buffer_var.pointer.scope if node.buffer_var.pointer is not None else "global"
    name = p.define(node.buffer_var, node.buffer_var.name)
    items: list[Doc] = [p.dims(node.extents), f'"{node.dtype}"', f'scope="{scope_name}"']
    p.line(concat(name, bracket(f" = {p.spell('T.decl_buffer')}(", items, ")")))
    p.names.bind(node.buffer_var, f"{name}.data")
    p.slots[node.buffer_var] = p.slot()
    return inner


def _is_true(condition: prim.PrimExpr) -> bool:
    return isinstance(condition, prim.IntImm) and condition.of.is_bool and condition.value == 1


def _text_keys(items: Mapping[str, object]) -> Mapping[str, object]:
    return {str(k): v for k, v in items.items()}


# --- plain statements -------------------------------------------------------------------------------------------------
@emits(tir.BufferStore)
def _store(p: Printer, node: tir.BufferStore) -> None:
    name = p.buffer_name(node.buffer)
    value = p.doc(node.value)
    if node.predicate is not None:
        items = [name, value, p.listed(node.indices), concat("predicate=", p.doc(node.predicate))]
        p.line(bracket(f"{p.spell('T.buffer_store')}(", items, ")"))
    else:
        p.line(concat(element(p, name, node.indices), " = ", value))


@emits(tir.Evaluate)
def _evaluate(p: Printer, node: tir.Evaluate) -> None:
    value = node.value
    if isinstance(value, prim.Call) and value.op == "ret" and len(value.args) == 1 and p.since("tvm-0.25"):
        p.line(concat("return ", p.doc(value.args[0])))
    elif isinstance(value, prim.Call) and value.op not in _OPERATORS:
        p.line(p.doc(value))
    else:
        p.line(concat("T.evaluate(", p.doc(value), ")"))


_OPERATORS = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right"})


@emits(tir.IfThenElse)
def _if(p: Printer, node: tir.IfThenElse) -> None:
    word = "if "
    while True:
        p.opens(node)
        p.line(concat(word, p.doc(node.condition), ":"))
        scope(p, node.then_case)
        if node.else_case is None:
            return
        if not isinstance(node.else_case, tir.IfThenElse):
            break
        node, word = node.else_case, "elif "
    p.line("else:")
    scope(p, node.else_case)


@emits(tir.While)
def _while(p: Printer, node: tir.While) -> None:
    p.line(concat("while ", p.doc(node.condition), ":"))
    scope(p, node.body)


@emits(tir.Break)
def _break(p: Printer, node: tir.Break) -> None:
    _leave(p, "break")


@emits(tir.Continue)
def _continue(p: Printer, node: tir.Continue) -> None:
    _leave(p, "continue")


def _leave(p: Printer, word: str) -> None:
    text = p.spell(word)
    p.line(text if text == word else text + "()")
