"""Steps that make TensorIR functions smaller: a statement less, a loop that runs once, an operand for a value."""

from __future__ import annotations

from collections.abc import Iterator

from relaxlang.ir import prim, tir
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import Rewriter, children, substitute, walk


def smaller_statements(mod: IRModule) -> Iterator[IRModule]:
    """One statement or value of a PrimFunc in a smaller form."""
    for name, func in mod.prim_funcs():
        for node in walk(func.body):
            for instead in _smaller(node):
                yield mod.with_function(name, func.replace(body=Put(node, instead)(func.body)))


class Put(Rewriter):
    """Puts one node in the place of another."""

    def __init__(self, old: object, new: object) -> None:
        self.old, self.new = old, new

    def visit(self, node: object) -> object:
        return self.new if node is self.old else super().visit(node)


def _smaller(node: object) -> Iterator[object]:
    """What may stand in the place of a node."""
    if isinstance(node, tir.SeqStmt):
        for at in range(len(node.seq)):
            yield tir.seq(*node.seq[:at], *node.seq[at + 1 :])
    elif isinstance(node, tir.For):
        yield substitute(node.body, {node.loop_var: node.min})
        if node.kind != "serial" or node.annotations:
            yield node.replace(kind="serial", annotations=EMPTY, thread_binding=None)
    elif isinstance(node, tir.IfThenElse):
        yield node.then_case
        if node.else_case is not None:
            yield node.else_case
    elif isinstance(node, (tir.AssertStmt, tir.AttrStmt)):
        yield node.body
    elif isinstance(node, tir.LetStmt):
        yield substitute(node.body, {node.var: node.value})
    elif isinstance(node, tir.Block):
        if node.init is not None:
            yield node.replace(init=None)
        if node.annotations:
            yield node.replace(annotations=EMPTY)
    elif isinstance(node, tir.BlockRealize) and not isinstance(node.predicate, prim.IntImm):
        yield node.replace(predicate=prim.IntImm(prim.BOOL, 1))
    elif isinstance(node, tir.BufferStore):
        yield from (node.replace(value=v) for v in _values(node.value))


def _values(value: prim.PrimExpr) -> Iterator[prim.PrimExpr]:
    """Operands of the same type, and the constant 1."""
    for child in children(value):
        if isinstance(child, prim.PrimExpr) and child.dtype is value.dtype:
            yield child
    if not isinstance(value, (prim.IntImm, prim.FloatImm)) and value.dtype.lanes == 1 and not value.dtype.is_handle:
        yield prim.const(1, value.dtype)
