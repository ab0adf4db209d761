"""MergeCompositeFunctions: neighbouring pieces of one back end's work become one function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaxlang.base.record import fresh, record
from relaxlang.builder.dpl.context import users
from relaxlang.builder.dpl.rewrite import in_order, needed
from relaxlang.ir import relax
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import OBJECT, TupleStructInfo
from relaxlang.ir.visit import on
from relaxlang.passes.back_end import CODEGEN
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.relax.fuse_ops import UNITS, Outliner, outline
from relaxlang.passes.relax.fuse_ops_by_pattern import composites
from relaxlang.syntax.struct_info import bound_vars


@record
class MergeCompositeFunctions(Pass):
    """Calls of functions with the attribute `Composite` that stand next to each other and belong to one back end become
    the call of one function, which calls them and has the attribute `Codegen`.

    Two pieces are joined when one uses the other's result and nothing outside would have to run between them. What is
    also used outside is given back in a tuple.

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                cls = Module
                with R.dataflow():
                    y = cls.fused_a_exp(x)
                    z = cls.fused_a_exp(y)
                    R.output(z)
                return z

            @R.function(private=True)
            def fused_a_exp(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                R.func_attr({"Composite": "a.exp"})
                with R.dataflow():
                    y = R.exp(x)
                    R.output(y)
                return y

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                cls = Module
                with R.dataflow():
                    z = cls.fused_a(x)
                    R.output(z)
                return z

            @R.function(private=True)
            def fused_a_exp(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                R.func_attr({"Composite": "a.exp"})
                with R.dataflow():
                    y = R.exp(x)
                    R.output(y)
                return y

            @R.function(private=True)
            def fused_a(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                R.func_attr({"Codegen": "a"})
                cls = Module
                with R.dataflow():
                    y = cls.fused_a_exp(x)
                    z = cls.fused_a_exp(y)
                    R.output(z)
                return z
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        merge = Merger(mod)
        for name, func in mod.relax_functions():
            if not UNITS & func.attrs.keys():
                merge.functions[name] = merge(func)
        return mod.with_functions(merge.functions)


@record(frozen=False, eq=False)
class Group:
    """Bindings that become one call, or (`back_end` empty) one binding that stays; `needs`: what it uses."""

    back_end: str
    members: list[relax.Binding]
    needs: dict[Group, None] = fresh(factory=dict)


class Merger(Outliner):
    """What `MergeCompositeFunctions` does, block by block."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.back_ends = composites(mod.functions)

    @on(relax.DataflowBlock)
    def dataflow_block(self, node: relax.DataflowBlock) -> relax.DataflowBlock:
        """A dataflow block: each group becomes a call."""
        groups = self.groups(node)
        if not any(g.back_end for g in groups):
            return node
        places = {b: at for at, b in enumerate(node.bindings)}
        uses = users(node)
        made: list[relax.Binding] = []
        for group in sorted(groups, key=lambda g: max(places[b] for b in g.members)):
            members = [b for b in group.members if isinstance(b, relax.VarBinding)]
            made += self.merged(group.back_end, members, uses) if group.back_end else group.members
        return node.replace(bindings=tuple(in_order(made)))

    def groups(self, block: relax.DataflowBlock) -> list[Group]:
        """The bindings of a block, those in one group that become one call."""
        of: dict[object, Group] = {}  # by what their bindings define: variables, dimensions
        for binding in block.bindings:
            group = Group(self._back_end(binding), [binding])
            group.needs = dict.fromkeys(of[v] for v in needed(binding) if v in of)
            for other in list(group.needs) if group.back_end else ():
                if other.back_end != group.back_end or other not in group.needs:
                    continue
                if any(other is not o and _reaches(o, other) for o in group.needs):
                    continue
                if any(group is not n and n is not other and _reaches(n, group) for n in other.needs):
                    continue
                _join(other, group, of)
            for member in group.members:
                of[member.var] = group
            if isinstance(binding, relax.MatchCast):
                for dim in bound_vars((binding.struct_info,)):
                    of.setdefault(dim, group)
        return list(dict.fromkeys(of.values()))

    def _back_end(self, binding: relax.Binding) -> str:
        """The back end that a binding is a piece of work of, empty for others."""
        call = binding.value
        if not isinstance(binding, relax.VarBinding) or not isinstance(call, relax.Call):
            return ""
        return self.back_ends.get(call.op.name, "") if isinstance(call.op, relax.GlobalVar) else ""

    def merged(
        self, back_end: str, members: Sequence[relax.VarBinding], uses: Mapping[relax.Var, Sequence[relax.Var]]
    ) -> list[relax.Binding]:
        """The call of a function that calls the members, and its results by their names."""
        own = {b.var for b in members}
        results = [
            b.var
            for b in members
            if not isinstance(b.var, relax.DataflowVar)
            or not own.issuperset(uses.get(b.var, ()))
            or not uses.get(b.var)
        ]
        func, args = outline(members, Attrs({CODEGEN: back_end}), results)
        callee = relax.GlobalVar(self.add(func, [back_end]), func.struct_info)
        infos = tuple(v.struct_info or OBJECT for v in results)
        info = infos[0] if len(results) == 1 else TupleStructInfo(infos)
        call = relax.Call(callee, args, EMPTY, (), info, span=members[-1].value.span)
        if len(results) == 1:
            return [relax.VarBinding(results[0], call)]
        whole = relax.DataflowVar("results", info)
        fields = [relax.VarBinding(v, relax.TupleGetItem(whole, i)) for i, v in enumerate(results)]
        return [relax.VarBinding(whole, call), *fields]


def _reaches(start: Group, goal: Group) -> bool:
    """Whether `start` is `goal` or needs it, in however many steps."""
    seen = {start}
    work = [start]
    while work:
        group = work.pop()
        if group is goal:
            return True
        fresh = [g for g in group.needs if g not in seen]
        seen.update(fresh)
        work += fresh
    return False


def _join(first: Group, second: Group, of: dict[object, Group]) -> None:
    """Take the members of `first` into `second`; what needed `first` needs `second`."""
    second.members[:0] = first.members
    needs = {**first.needs, **second.needs}
    second.needs = {g: None for g in needs if g is not first and g is not second}
    for group in dict.fromkeys(of.values()):
        if first in group.needs:
            del group.needs[first]
            group.needs[second] = None
    for member in first.members:
        of[member.var] = second
