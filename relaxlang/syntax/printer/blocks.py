"""Loops and blocks: `T.grid` for perfect nests, `T.axis.remap` for axes that are loop variables."""

from __future__ import annotations

from relaxlang.ir import prim, tir
from relaxlang.syntax.document import Doc, bracket, concat
from relaxlang.syntax.printer.core import Printer, emits
from relaxlang.syntax.printer.exprs import upper_bound
from relaxlang.syntax.printer.sources import stated_stop
from relaxlang.syntax.printer.stmts import scope, tail
from relaxlang.syntax.printer.values import mapping_doc
from relaxlang.syntax.scalars import string_text
from relaxlang.syntax.spellings import attribute_key

_LOOPS = {"serial": "T.serial", "parallel": "T.parallel", "vectorized": "T.vectorized", "unroll": "T.unroll",
          "thread_binding": "T.thread_binding"}  # fmt: skip


# --- loops ------------------------------------------------------------------------------------------------------------
@emits(tir.For)
def _for(p: Printer, node: tir.For) -> None:
    nest = _grid(node)
    extents = [p.doc(loop.extent) for loop in nest]
    header = bracket("T.grid(", extents, ")") if len(nest) > 1 else _iterable(p, node)
    p.names.enter()
    names = []
    for loop in nest:
        names.append(p.define(loop.loop_var, loop.loop_var.name))
        p.loops[loop.loop_var] = loop
    p.line(concat(f"for {', '.join(names)} in ", header, ":"))
    p.indent += 1
    for loop in nest:
        p.slots[loop.loop_var] = p.slot()
    tail(p, nest[-1].body)
    p.indent -= 1
    p.names.leave()


def _grid(node: tir.For) -> list[tir.For]:
    """The loops that one `T.grid` stands for: a perfect nest of plain loops whose extents do not use its variables."""
    nest = [node]
    if not _is_plain(node):
        return nest
    inside = {node.loop_var}
    while isinstance(node.body, tir.For) and _is_plain(node.body):
        node = node.body
        if node.loop_var in inside or (not isinstance(node.extent, prim.IntImm) and _uses(node.extent, inside)):
            break
        inside.add(node.loop_var)
        nest.append(node)
    return nest


def _uses(expr: prim.PrimExpr, variables: set[prim.Var]) -> bool:
    from relaxlang.ir.visit import free_vars

    return any(v in variables for v in free_vars(expr))


def _is_plain(node: tir.For) -> bool:
    return node.kind == "serial" and not node.annotations and _from_zero(node) and _step_one(node)


def _from_zero(node: tir.For) -> bool:
    return isinstance(node.min, prim.IntImm) and node.min.value == 0 and node.min.of is node.extent.dtype


def _step_one(node: tir.For) -> bool:
    return isinstance(node.step, prim.IntImm) and node.step.value == 1


def _iterable(p: Printer, node: tir.For) -> Doc:
    items: list[Doc] = []
    last = node.extent
    if not _step_one(node):
        stated = stated_stop(node) if p.options.dialect is not None else None
        last = node.extent * node.step if stated is None else prim.const(stated, node.extent.dtype)
    if not _from_zero(node) or not _step_one(node):
        items += [p.doc(node.min), upper_bound(p, node.min, last)]
    else:
        items.append(p.doc(last))
    word = "range" if node.kind == "serial" and not node.annotations and _step_one(node) else _LOOPS[node.kind]
    if node.kind == "thread_binding" and node.thread_binding is not None:
        items.append(f"thread={string_text(node.thread_binding.thread_tag)}")
    if node.annotations:
        items.append(concat("annotations=", mapping_doc(p, {str(k): v for k, v in node.annotations.items()})))
    if not _step_one(node):
        items.append(concat("step=", p.doc(node.step)))
    return bracket(f"{word}(", items, ")")


# --- blocks -----------------------------------------------------------------------------------------------------------
@emits(tir.BlockRealize)
def _realize(p: Printer, node: tir.BlockRealize) -> None:
    emit_block(p, node.block, node)


@emits(tir.Block)
def _block(p: Printer, node: tir.Block) -> None:
    emit_block(p, node, None)


def emit_block(p: Printer, node: tir.Block, realize: tir.BlockRealize | None) -> None:
    """`with T.block("name"):` and its body; without `realize` a block that is not bound to loops."""
    items: list[Doc] = [string_text(node.name_hint)]
    if realize is None:
        items.append("no_realize=True")
    p.line(concat(f"with {p.spell('T.block')}", bracket("(", items, "):")))
    p.indent += 1
    p.names.enter()
    if realize is None:
        _unbound_axes(p, node.iter_vars)
    else:
        _axes(p, node.iter_vars, realize.iter_values)
        if not (isinstance(realize.predicate, prim.IntImm) and realize.predicate.value == 1):
            p.line(concat("T.where(", p.doc(realize.predicate), ")"))
    block_content(p, node)
    p.names.leave()
    p.indent -= 1


def block_content(p: Printer, node: tir.Block) -> None:
    """What a block says after its axes."""
    axes = p.slot()
    for axis in node.iter_vars:
        p.slots[axis.var] = axes
    accessed = {region.buffer for region in (*(node.reads or ()), *(node.writes or ()))}
    first = not accessed.isdisjoint(
        node.alloc_buffers
    )  # scripts up to TVM 0.11 state accesses of a block's own buffers
    if first:
        alloc_buffers(p, node.alloc_buffers)
    if node.reads is not None:
        p.line(bracket("T.reads(", [p.doc(r) for r in node.reads], ")"))
    if node.writes is not None:
        p.line(bracket("T.writes(", [p.doc(r) for r in node.writes], ")"))
    if node.annotations:
        dialect = p.options.dialect
        annotations = mapping_doc(p, {attribute_key(str(k), dialect): v for k, v in node.annotations.items()})
        p.line(concat(f"{p.spell('T.block_attr')}(", annotations, ")"))
    if not first:
        alloc_buffers(p, node.alloc_buffers)
    for match in node.match_buffers:
        source = p.doc(match.source)
        name = p.define(match.buffer, match.buffer.name)
        p.line(concat(name, f" = {p.spell('T.match_buffer')}", p.buffer_fields(match.buffer, first=(source,))))
        if isinstance(match.buffer.elem_offset, prim.Var):
            p.slots[match.buffer.elem_offset] = p.slot()
    if node.init is not None:
        p.line("with T.init():")
        scope(p, node.init)
    tail(p, node.body)


def alloc_buffers(p: Printer, buffers: tuple[tir.Buffer, ...]) -> None:
    """`B = T.alloc_buffer(…)` for each."""
    for buffer in buffers:
        name = p.define(buffer, buffer.name)
        p.line(concat(name, f" = {p.spell('T.alloc_buffer')}", p.buffer_fields(buffer)))
    if buffers:
        slot = p.slot()
        for buffer in buffers:
            p.slots[buffer.data] = slot


def _axes(p: Printer, axes: tuple[tir.IterVar, ...], values: tuple[prim.PrimExpr, ...]) -> None:
    """The lines that bind axes to values; runs of two and more plain loop variables become one `T.axis.remap`."""
    run: list[tuple[tir.IterVar, prim.PrimExpr]] = []
    for axis, value in zip(axes, values):
        if _is_remap(p, axis, value):
            run.append((axis, value))
            continue
        _flush(p, run)
        run = []
        _axis(p, axis, value)
    _flush(p, run)


def _is_remap(p: Printer, axis: tir.IterVar, value: prim.PrimExpr) -> bool:
    if axis.kind not in ("spatial", "reduce") or not isinstance(value, prim.Var):
        return False
    loop = p.loops.get(value)
    return (
        loop is not None and loop.min == axis.dom.min and loop.extent == axis.dom.extent
        and axis.var.dtype is value.dtype and axis.var.__class__ is prim.Var
    )  # fmt: skip


def _flush(p: Printer, run: list[tuple[tir.IterVar, prim.PrimExpr]]) -> None:
    if len(run) == 1:
        _axis(p, *run[0])
    elif run:
        kinds = "".join("S" if axis.kind == "spatial" else "R" for axis, _ in run)
        values = bracket("[", [p.doc(value) for _, value in run], "]")
        names = ", ".join([p.define(axis.var, axis.var.name) for axis, _ in run])
        p.line(concat(names, " = ", bracket("T.axis.remap(", [f'"{kinds}"', values], ")")))


def _axis(p: Printer, axis: tir.IterVar, value: prim.PrimExpr) -> None:
    bound = p.doc(value)
    domain = _domain(p, axis.dom)
    p.line(concat(p.define(axis.var, axis.var.name), " = ", bracket(f"T.axis.{axis.kind}(", [domain, bound], ")")))


def _domain(p: Printer, dom: tir.Range) -> Doc:
    if isinstance(dom.min, prim.IntImm) and dom.min.value == 0 and dom.min.of is dom.extent.dtype:
        return p.doc(dom.extent)
    return concat("(", p.doc(dom.min), ", ", upper_bound(p, dom.min, dom.extent), ")")


def _unbound_axes(p: Printer, axes: tuple[tir.IterVar, ...]) -> None:
    for axis in axes:
        domain = _domain(p, axis.dom)
        p.line(concat(p.define(axis.var, axis.var.name), " = ", bracket(f"T.axis.{axis.kind}(", [domain], ")")))
