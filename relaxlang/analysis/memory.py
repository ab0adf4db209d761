"""How much memory a function needs for its intermediates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from relaxlang.analysis.alias import FOREIGN, Aliases
from relaxlang.analysis.liveness import last_uses
from relaxlang.arith import Analyzer
from relaxlang.base.diagnostics import fail
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import INT64, IntImm, PrimExpr
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.ops import default_operators

_ALLOCATIONS = {"builtin.alloc_tensor": 1, "memory.alloc_storage": 3, "vm.alloc_storage": 2}
"""Operators that allocate, with the place of the element type among their arguments; the first is the shape."""


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of one function: `allocated`, all it allocates, and `peak`, the most that is needed at one time.

    Of the branches of a conditional the larger counts; functions that it calls, inputs and constants do not.
    """

    allocated: int
    peak: int


def memory_use(mod: IRModule, name: str = "main", dims: Mapping[str, int] | None = None) -> MemoryUse:
    """What a function allocates after `call-tir-rewrite`, before and after planning.

    `dims` gives values to symbolic dimensions, by name; RLX3112 when one is missing.
    """
    func = mod[name]
    if not isinstance(func, relax.Function):
        fail("RLX3112", f"`{name}` is no Relax function, it allocates nothing", func.span)
    count = _Count(Aliases(func, mod, default_operators(mod)), dims or {})
    return MemoryUse(*count.sequence(func.body))


class _Count:
    def __init__(self, aliases: Aliases, dims: Mapping[str, int]) -> None:
        self.aliases = aliases
        self.dims = dims

    def sequence(self, seq: relax.SeqExpr) -> tuple[int, int]:
        """The bytes that a sequence allocates, and its peak."""
        bindings = [b for block in seq.blocks for b in block.bindings]
        last: dict[int, int] = {}
        for var, at in last_uses(seq).items():
            for memory in self.aliases.of(var) - {FOREIGN}:
                last[memory] = max(at, last.get(memory, 0))
        ends: dict[int, int] = {}
        total = peak = alive = 0
        for at, binding in enumerate(bindings):
            size = self.size(binding.value)
            inside = (0, 0)
            if isinstance(binding.value, relax.If):
                branches = [self.sequence(binding.value.true_branch), self.sequence(binding.value.false_branch)]
                inside = (max(b[0] for b in branches), max(b[1] for b in branches))
            alive += size
            total += size + inside[0]
            peak = max(peak, alive + inside[1])
            if size:
                until = max(last.get(m, at) for m in self.aliases.of(binding.var))
                ends[until] = ends.get(until, 0) + size
            alive -= ends.pop(at, 0)
        return total, peak

    def size(self, value: relax.Expr) -> int:
        """The bytes that an expression allocates."""
        if not isinstance(value, relax.Call) or not isinstance(value.op, relax.Op) or value.op.name not in _ALLOCATIONS:
            return 0
        shape, element = value.args[0], value.args[_ALLOCATIONS[value.op.name]]
        if not isinstance(shape, relax.ShapeExpr) or not isinstance(element, relax.DataTypeImm):
            return 0
        size = element.value.itemsize
        for dim in shape.values:
            size *= self.number(dim)
        return size

    def number(self, dim: PrimExpr) -> int:
        """A dimension as a number."""
        values: dict[prim.Var, PrimExpr] = {}
        for var in free_vars(dim):
            if var.name not in self.dims:
                fail("RLX3112", f"the symbolic dimension `{var.name}` needs a value", help=f'dims={{"{var.name}": …}}')
            values[var] = IntImm(var.dtype, self.dims[var.name])
        made = Analyzer().simplify(prim.cast(substitute(dim, values), INT64))
        if not isinstance(made, IntImm):
            fail("RLX3112", f"the dimension `{dim}` is no number")
        return made.value
