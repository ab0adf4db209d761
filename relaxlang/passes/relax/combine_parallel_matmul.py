"""CombineParallelMatmul: products with one left side become one product."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import OBJECT, TensorStructInfo
from relaxlang.ir.visit import on
from relaxlang.ops import default_operators
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.relax.rewriting import OperatorRewriter, dims, is_call, numbers


@record
class CombineParallelMatmul(FunctionPass):
    """Turn products of one left side with several matrices into one product with the matrices side by side, and split
    its result. The matrices need known column counts, and must be there before the first product.

    Putting constant matrices side by side is work for `fold-constant`, parameters for `lift-transform-params`.

    Before:

        @R.function
        def main(
            x: R.Tensor((n, 8), "float32"), q: R.Tensor((8, 4), "float32"), k: R.Tensor((8, 6), "float32")
        ) -> R.Tuple(R.Tensor((n, 4), "float32"), R.Tensor((n, 6), "float32")):
            a = R.matmul(x, q)
            b = R.matmul(x, k)
            return (a, b)

    After:

        @R.function
        def main(
            x: R.Tensor((n, 8), "float32"), q: R.Tensor((8, 4), "float32"), k: R.Tensor((8, 6), "float32")
        ) -> R.Tuple(R.Tensor((n, 4), "float32"), R.Tensor((n, 6), "float32")):
            matrices = R.concat((q, k), axis=1)
            product = R.matmul(x, matrices)
            parts = R.split(product, [4], axis=1)
            a = parts[0]
            b = parts[1]
            return (a, b)
    """

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        made: relax.Function = _Combiner(mod, func)(func)
        return made


class _Combiner(OperatorRewriter):
    """`groups`: the products to combine, by the variable of the first; `parts`: where the result of each is."""

    def __init__(self, mod: IRModule, func: relax.Function) -> None:
        super().__init__(mod, default_operators(mod), func)
        self.groups: dict[relax.Var, list[relax.Binding]] = {}
        self.parts: dict[relax.Var, tuple[relax.Expr, int]] = {}

    @on(relax.BindingBlock, relax.DataflowBlock)
    def block(self, node: relax.BindingBlock) -> relax.BindingBlock:
        """A block: which products in it have the same left side?"""
        place = {b.var: k for k, b in enumerate(node.bindings)}
        found: dict[tuple[object, ...], list[relax.Binding]] = {}
        for k, binding in enumerate(node.bindings):
            key = _key(binding)
            if key is None or not isinstance(binding.value, relax.Call):
                continue
            group = found.setdefault(key, [])
            first = place[group[0].var] if group else k
            right = binding.value.args[1]
            if not isinstance(right, relax.Var) or place.get(right, -1) < first:
                group.append(binding)
        self.groups.update({g[0].var: g for g in found.values() if len(g) > 1})
        return super().block(node)

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        group = self.groups.get(binding.var)
        if group is not None:
            self.combine(group)
        part = self.parts.get(binding.var)
        if part is None:
            return (binding,)
        return (binding.replace(value=relax.TupleGetItem(part[0], part[1], span=binding.value.span)),)

    def combine(self, group: list[relax.Binding]) -> None:
        """Emit the one product of a group and its split."""
        calls = [b.value for b in group if isinstance(b.value, relax.Call)]
        rights = tuple(self(c.args[1]) for c in calls)
        matrices = self.emit_call("matrices", "concat", relax.Tuple(rights), axis=1, span=calls[0].span)
        left, out_dtype = self(calls[0].args[0]), calls[0].attrs["out_dtype"]
        product = self.emit_call("product", "matmul", left, matrices, out_dtype=out_dtype, span=calls[0].span)
        ends: list[int] = []
        for right in rights:
            columns = numbers((dims(right) or ())[1:])
            assert columns is not None
            ends.append(columns[0] + (ends[-1] if ends else 0))
        rank = len(dims(product) or ())
        parts = self.emit_call(
            "parts", "split", product, indices_or_sections=tuple(ends[:-1]), axis=rank - 1, span=calls[0].span
        )
        self.parts.update({b.var: (parts, k) for k, b in enumerate(group)})


def _key(binding: relax.Binding) -> tuple[object, ...] | None:
    """What products must have in common to be combined; None for other bindings."""
    call = binding.value
    if not isinstance(call, relax.Call) or not is_call(call, "matmul"):
        return None
    left, right = call.args
    info, known = right.struct_info or OBJECT, dims(right)
    if known is None or len(known) != 2 or numbers(known[1:]) is None or len(dims(left) or ()) < 2:
        return None
    if not isinstance(info, TensorStructInfo) or info.dtype is None or not isinstance(left, relax.Var):
        return None
    return left, known[0], info.dtype, call.attrs["out_dtype"]
