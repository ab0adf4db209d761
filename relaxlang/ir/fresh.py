"""Copies of TensorIR with variables and buffers of their own."""

from __future__ import annotations

from collections.abc import Mapping

from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.tir import Buffer, PrimFunc
from relaxlang.ir.visit import Substitute, on


class Renew(Substitute):
    """Replaces variables and buffers by what the mappings say, and every other one by a new one of its own.

    Nothing that is rewritten shares a variable with the original afterwards, so that it may stand beside it, or twice
    in one function.
    """

    def __init__(
        self, mapping: Mapping[prim.Var, PrimExpr] | None = None, buffers: Mapping[Buffer, Buffer] | None = None
    ) -> None:
        super().__init__(dict(mapping or {}))
        self.buffers.update(buffers or {})
        self._new: dict[prim.Var, PrimExpr] = dict(self.mapping)

    @on(prim.Var, prim.SizeVar)
    def var(self, node: prim.Var) -> PrimExpr:
        """What stands for a variable."""
        made = self._new.get(node)
        if made is None:
            made = self._new[node] = node.__class__(node.name, node.of, node.pointer, span=node.span)
        return made

    @on(tir.Buffer)
    def buffer(self, node: Buffer) -> Buffer:
        """What stands for a buffer."""
        made = self.buffers.get(node)
        if made is None:
            made = self.buffers[node] = self.below(node)
        return made


def renewed(func: PrimFunc) -> PrimFunc:
    """A copy of a function that shares no variable with it."""
    made: PrimFunc = Renew()(func)
    return made
