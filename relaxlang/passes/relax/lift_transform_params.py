"""LiftTransformParams: what depends on the weights alone is computed once, in a function of its own."""

from __future__ import annotations

from relaxlang.analysis.alias import overwritten
from relaxlang.analysis.purity import is_pure
from relaxlang.analysis.uses import Uses
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.struct_info import TupleStructInfo
from relaxlang.ir.visit import Rewriter, free_vars, on
from relaxlang.ops import Operators, default_operators
from relaxlang.passes.base import Pass, PassContext

NUM_INPUT = "num_input"
"""The attribute that says how many parameters of a function are inputs; the others are weights."""
SUFFIX = "_transform_params"


@record
class LiftTransformParams(Pass):
    """For every function `f` with the attribute `num_input`, move what is computed from its weights alone to a function
    `f_transform_params`, which takes all weights as a tuple and gives, as a tuple, the weights that `f` takes then.

    Only pure bindings outside of branches move. Weights whose dimensions are symbolic stay where
    they are, as does everything in a function with calls in place.

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((3, 4), "float32"), b: R.Tensor((3,), "float32")) -> (
                R.Tensor((n, 3), "float32")
            ):
                R.func_attr({"num_input": 1})
                t = R.permute_dims(w)
                m = R.matmul(x, t)
                y = R.add(m, b)
                return y

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((n, 4), "float32"), b: R.Tensor((3,), "float32"), t: R.Tensor((4, 3), "float32")) -> (
                R.Tensor((n, 3), "float32")
            ):
                R.func_attr({"num_input": 1})
                m = R.matmul(x, t)
                y = R.add(m, b)
                return y

            @R.function
            def main_transform_params(
                params: R.Tuple(R.Tensor((3, 4), "float32"), R.Tensor((3,), "float32"))
            ) -> R.Tuple(R.Tensor((3,), "float32"), R.Tensor((4, 3), "float32")):
                R.func_attr({"num_input": 0})
                w = params[0]
                b = params[1]
                t = R.permute_dims(w)
                return (b, t)
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        functions: dict[str, AnyFunc] = dict(mod.functions)
        operators = default_operators(mod)
        for name, func in mod.relax_functions():
            count = func.attrs.get(NUM_INPUT)
            made = f"{name}{SUFFIX}"
            if not isinstance(count, int) or name.endswith(SUFFIX) or made in functions:
                continue
            if overwritten(func, mod, operators):
                continue  # weights that are written to are none
            lifted = _lift(func, count, mod, operators, made)
            if lifted is not None:
                functions[name], functions[made] = lifted
        return mod.with_functions(functions)


def _lift(
    func: relax.Function, count: int, mod: IRModule, operators: Operators, name: str
) -> tuple[relax.Function, relax.Function] | None:
    """The function without what moves, and the function of what moves; None when nothing does."""
    weights = [p for p in func.params[count:] if not free_vars(p.struct_info)]
    known: set[relax.Var] = set(weights)
    moving: list[relax.VarBinding] = []
    for binding in (b for block in func.body.blocks for b in block.bindings):
        used = _used(binding.value)
        plain = isinstance(binding, relax.VarBinding) and not isinstance(binding.value, (relax.If, relax.Function))
        if not isinstance(binding, relax.VarBinding) or not plain or not used or not used <= known:
            continue
        if free_vars(binding.var.struct_info) or not is_pure(binding.value, mod, operators):
            continue
        known.add(binding.var)
        moving.append(binding)
    if not moving:
        return None
    gone = {b.var for b in moving}
    rest = _Without(gone)
    body: relax.SeqExpr = rest(func.body)
    still = _used(body)
    results = [v for v in (*weights, *(b.var for b in moving)) if v in still]
    plain_vars = {v: relax.Var(v.name, v.struct_info, span=v.span) for v in gone}
    body = _Rename(plain_vars)(body)
    kept = [p for p in func.params if p not in weights]
    params = (*kept, *(plain_vars.get(v, v) for v in results))
    main = func.replace(params=tuple(params), body=body)
    return main, _transform(func, weights, moving, results, name)


def _transform(
    func: relax.Function, weights: list[relax.Var], moving: list[relax.VarBinding], results: list[relax.Var], name: str
) -> relax.Function:
    """The function that makes the new weights of the old ones."""
    params = relax.Var("params", TupleStructInfo(tuple(w.struct_info for w in weights)))
    bindings: list[relax.Binding] = []
    names: dict[relax.Var, relax.Var] = {}
    for k, weight in enumerate(weights):
        names[weight] = relax.Var(weight.name, weight.struct_info, span=weight.span)
        bindings.append(relax.VarBinding(names[weight], relax.TupleGetItem(params, k)))
    rename = _Rename(names)
    for binding in moving:
        value = rename(binding.value)
        names[binding.var] = relax.Var(binding.var.name, binding.var.struct_info, span=binding.var.span)
        bindings.append(relax.VarBinding(names[binding.var], value, span=binding.span))
    result = relax.Tuple(tuple(names[v] for v in results))
    attrs = Attrs({NUM_INPUT: 0}) if func.is_private else Attrs({"global_symbol": name, NUM_INPUT: 0})
    info = TupleStructInfo(tuple(v.struct_info for v in results))
    return relax.Function((params,), relax.seq_expr(bindings, result), info, True, attrs, span=func.span)


def _used(value: relax.Expr) -> set[relax.Var]:
    uses = Uses()
    uses(value)
    return set(uses.counts)


class _Without(Rewriter):
    """Drops bindings."""

    def __init__(self, gone: set[relax.Var]) -> None:
        self.gone = gone

    @on(relax.SeqExpr)
    def sequence(self, node: relax.SeqExpr) -> relax.SeqExpr:
        """A sequence; blocks that are empty then go too."""
        blocks = []
        for block in node.blocks:
            kept = tuple(b for b in block.bindings if b.var not in self.gone)
            if kept:
                blocks.append(block if len(kept) == len(block.bindings) else block.replace(bindings=kept))
        return node.replace(blocks=tuple(blocks))


class _Rename(Rewriter):
    def __init__(self, names: dict[relax.Var, relax.Var]) -> None:
        self.names = names

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> relax.Var:
        """The new variable."""
        return self.names.get(node, node)
