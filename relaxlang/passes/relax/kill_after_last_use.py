"""KillAfterLastUse: memory is given back when nothing needs it any more."""

from __future__ import annotations

from relaxlang.analysis.alias import FOREIGN, Aliases
from relaxlang.analysis.liveness import last_uses
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import VOID_TUPLE
from relaxlang.ir.visit import Rewriter, on
from relaxlang.ops import default_operators
from relaxlang.passes.base import FunctionPass, PassContext


@record
class KillAfterLastUse(FunctionPass):
    """End storages, and the tensors in them, behind the last use of anything that may lie in them.

    Only memory that the same sequence of bindings made is ended: what leaves a branch or the function lives on.

    Before:

        @R.function(private=True, pure=False)
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            s = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
            a = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([4]), R.dtype("float32"))
            _ = R.call_packed("f", x, a)
            b = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0), R.str("global"))
            _1 = R.call_packed("f", a, b)
            _2 = R.call_packed("f", b, b)
            return b

    After:

        @R.function(private=True, pure=False)
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            s = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
            a = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([4]), R.dtype("float32"))
            _ = R.call_packed("f", x, a)
            b = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0), R.str("global"))
            _1 = R.call_packed("f", a, b)
            _3 = R.memory.kill_tensor(a)
            _4 = R.memory.kill_storage(s)
            _2 = R.call_packed("f", b, b)
            return b
    """

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        made: relax.Function = _Kill(Aliases(func, mod, default_operators(mod)))(func)
        return made


_KILLS = frozenset({"memory.kill_tensor", "memory.kill_storage", "vm.kill_object"})


class _Kill(Rewriter):
    def __init__(self, aliases: Aliases) -> None:
        self.aliases = aliases

    @on(relax.SeqExpr)
    def sequence(self, node: relax.SeqExpr) -> relax.SeqExpr:
        """A sequence: when does each memory end, and who lies in it?"""
        made = self.below(node)
        bindings = [b for block in node.blocks for b in block.bindings]
        if any(isinstance(block, relax.DataflowBlock) for block in node.blocks):
            return made
        ends = self.ends(node, bindings)
        if not ends:
            return made
        rest = [b for block in made.blocks for b in block.bindings]
        result: list[relax.Binding] = []
        for at, binding in enumerate(rest):
            result.append(binding)
            result += [_kill(var, value) for var, value in ends.get(at, ())]
        return made.replace(blocks=(relax.BindingBlock(tuple(result)),))

    def ends(self, seq: relax.SeqExpr, bindings: list[relax.Binding]) -> dict[int, list[tuple[relax.Var, relax.Expr]]]:
        """The variables to end behind each binding, storages last."""
        last: dict[int, int] = {}
        for var, at in last_uses(seq).items():
            for memory in self.aliases.of(var):
                last[memory] = max(at, last.get(memory, 0))
        own = {m for m, owner in self.aliases.owner.items() if owner == id(seq)} - {FOREIGN}
        own -= self.aliases.of(seq.body)
        killed = {b.value.args[0] for b in bindings if _is_kill(b.value) and isinstance(b.value, relax.Call)}
        ends: dict[int, list[tuple[relax.Var, relax.Expr]]] = {}
        for binding in bindings:
            memories = self.aliases.of(binding.var)
            if (
                not memories
                or not memories <= own
                or binding.var in killed
                or isinstance(binding.value, relax.Function)
            ):
                continue
            at = max(last.get(m, -1) for m in memories)
            if 0 <= at < len(bindings):
                ends.setdefault(at, []).append((binding.var, binding.value))
        for vars_ in ends.values():
            vars_.sort(key=lambda pair: _is_storage(pair[1]))
        return ends


def _is_kill(value: relax.Expr) -> bool:
    return isinstance(value, relax.Call) and isinstance(value.op, relax.Op) and value.op.name in _KILLS


def _is_storage(value: relax.Expr) -> bool:
    names = ("memory.alloc_storage", "vm.alloc_storage")
    return isinstance(value, relax.Call) and isinstance(value.op, relax.Op) and value.op.name in names


def _kill(var: relax.Var, value: relax.Expr) -> relax.Binding:
    op = relax.Op("memory.kill_storage" if _is_storage(value) else "memory.kill_tensor")
    call = relax.Call(op, (var,), EMPTY, (), VOID_TUPLE, span=value.span)
    return relax.VarBinding(relax.Var("_", VOID_TUPLE), call, span=value.span)
