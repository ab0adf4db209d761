"""CanonicalizeBindings: no second names, no casts that say nothing, no tuples that are taken apart at once."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.analysis.uses import variable_uses
from relaxlang.base.record import record
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import OBJECT, StructInfo, TupleStructInfo
from relaxlang.ir.structural import same_struct_info
from relaxlang.ir.visit import Visitor, on, substitute
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.bindings import BindingRewriter, specialize
from relaxlang.syntax.struct_info import BaseCheck, base_check, bound_vars, unify


@record
class CanonicalizeBindings(FunctionPass):
    """Use variables in place of their second names, fields in place of what takes them out of a tuple, a tuple in place
    of one made of all its fields, and known dimensions in place of those that a `match_cast` names again.

    A `match_cast` that states only what is known is another name for its value. Names that nothing uses any more are
    dropped.

    Before:

        @R.function
        def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
            m = T.int64()
            with R.dataflow():
                a = x
                b = R.match_cast(a, R.Tensor((m, 4), "float32"))
                t = (b, R.exp(b))
                c: R.Tensor((m, 4), "float32") = t[1]
                R.output(c)
            return c

    After:

        @R.function
        def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
            with R.dataflow():
                c = R.exp(x)
                R.output(c)
            return c
    """

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        func = specialize(func, _renamed_dimensions(func))
        while True:  # each round makes the function shorter
            rewrite = _Canonicalizer(_hoisted(func))
            made = _DropNames(rewrite(func), {*rewrite.names, *rewrite.tuples, *rewrite.items}).run()
            if made is func:
                return func
            func = made


def _renamed_dimensions(func: relax.Function) -> dict[prim.Var, prim.PrimExpr]:
    """The dimensions that a `match_cast` outside of branches defines although they are known, with what they are."""
    dims: dict[prim.Var, prim.PrimExpr] = {}
    known = set(bound_vars(tuple(p.struct_info for p in func.params)))
    for binding in (b for block in func.body.blocks for b in block.bindings):
        if not isinstance(binding, relax.MatchCast):
            continue
        mapping: dict[prim.Var, prim.PrimExpr] = {}
        unify(binding.struct_info, binding.value.struct_info or OBJECT, mapping)
        # A dimension that was known before is compared here: that is a check, and no second name.
        dims.update((v, substitute(e, dims)) for v, e in mapping.items() if v not in known)
        known.update(bound_vars((binding.struct_info,)))
    return dims


def _hoisted(func: relax.Function) -> dict[relax.Var, relax.Var]:
    """Dataflow variables that get the name of the output that is bound to nothing but them."""
    found = _Outputs()
    found(func)
    return found.renamed


class _Outputs(Visitor):
    def __init__(self) -> None:
        self.renamed: dict[relax.Var, relax.Var] = {}

    @on(relax.DataflowBlock)
    def block(self, node: relax.DataflowBlock) -> None:
        """A dataflow block: `y = x` for an output `y` and a variable `x` of the block."""
        mine = {b.var for b in node.bindings if isinstance(b, relax.VarBinding)}
        for b in node.bindings:
            if not isinstance(b, relax.VarBinding) or isinstance(b.var, relax.DataflowVar):
                continue
            if b.value in mine and b.value not in self.renamed and isinstance(b.value, relax.DataflowVar):
                if same_struct_info(b.var.struct_info, b.value.struct_info):
                    self.renamed[b.value] = b.var


class _Canonicalizer(BindingRewriter):
    """`names`: variables that were replaced wherever they stand, so that their bindings can go."""

    def __init__(self, hoisted: dict[relax.Var, relax.Var]) -> None:
        super().__init__()
        self.hoisted = hoisted
        self.replaced.update(hoisted)
        self.outputs = set(hoisted.values())
        self.tuples: dict[relax.Var, relax.Tuple] = {}
        self.items: dict[relax.Var, relax.TupleGetItem] = {}
        self.names: set[relax.Var] = set()

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        var, value = binding.var, binding.value
        if value is var:  # the output took the place of what it was bound to
            return ()
        if var in self.hoisted:
            var = self.hoisted[var]
            binding = binding.replace(var=var)
        if isinstance(binding, relax.MatchCast):
            have = value.struct_info or OBJECT
            if base_check(binding.struct_info, have) is not BaseCheck.HOLDS:
                return (binding,)
            self.name(var, value)
            return (relax.VarBinding(var, value, span=binding.span),)
        made = self.simpler(value)
        if isinstance(made, (relax.Var, relax.Constant)):
            self.name(var, made)
        elif isinstance(made, relax.Tuple):
            self.tuples[var] = made
        elif isinstance(made, relax.TupleGetItem):
            self.items[var] = made
        return (binding.replace(value=made),)

    def simpler(self, value: relax.Expr) -> relax.Expr:
        """A field for what takes it out; a tuple for one made of all its fields."""
        if isinstance(value, relax.TupleGetItem):
            of = value.tuple_value
            fields = self.tuples.get(of) if isinstance(of, relax.Var) else None
            return value if fields is None or value.index >= len(fields.fields) else fields.fields[value.index]
        if isinstance(value, relax.Tuple) and value.fields:
            items = [self.items.get(f) if isinstance(f, relax.Var) else None for f in value.fields]
            first = items[0]
            whole = first.tuple_value if first is not None else None
            same = all(i is not None and i.tuple_value is whole and i.index == k for k, i in enumerate(items))
            info = whole.struct_info if whole is not None else None
            if same and whole is not None and isinstance(info, TupleStructInfo) and len(info.fields) == len(items):
                return whole
        return value

    def name(self, var: relax.Var, value: relax.Expr) -> None:
        """`var` is another name for `value`: use the value where it is visible and said to be no more than `var`."""
        if var in self.outputs:
            return
        visible = isinstance(var, relax.DataflowVar) or not isinstance(value, relax.DataflowVar)
        if visible and self.same(var.struct_info, value.struct_info):
            self.replaced[var] = value
            self.names.add(var)

    @staticmethod
    def same(a: StructInfo, b: StructInfo | None) -> bool:
        """Whether two struct infos say the same."""
        return b is not None and base_check(a, b) is BaseCheck.HOLDS and base_check(b, a) is BaseCheck.HOLDS


class _DropNames(BindingRewriter):
    """Drops the bindings of those of `names` that nothing uses."""

    def __init__(self, func: relax.Function, names: Iterable[relax.Var]) -> None:
        super().__init__()
        uses = variable_uses(func)
        self.names = {n for n in names if not uses[n]}
        self.func = func

    def run(self) -> relax.Function:
        """The function without the names that nothing uses."""
        made: relax.Function = self(self.func)
        return made

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        return () if binding.var in self.names else (binding,)

    @on(relax.SeqExpr)
    def sequence(self, node: relax.SeqExpr) -> relax.SeqExpr:
        """A sequence without empty blocks; plain blocks that now stand side by side are one."""
        made = self.below(node)
        return node if made is node else made.replace(blocks=relax.joined(made.blocks))
