"""AdjustMatmulOrder: chains of matrix products in the order that needs less work."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.arith import Analyzer
from relaxlang.base.record import record
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.visit import free_vars
from relaxlang.ops import default_operators
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.relax.rewriting import OperatorRewriter, dims, is_call


@record
class AdjustMatmulOrder(FunctionPass):
    """Turn (a @ b) @ c into a @ (b @ c), and the other way round, where that provably takes fewer multiplications.

    Sums are rounded in another order then. Only matrices (stacks of them on the left), and
    inner products that nothing else uses, are looked at.

    Before:

        @R.function
        def main(
            x: R.Tensor((n, 64), "float32"), a: R.Tensor((64, 4), "float32"), b: R.Tensor((4, 64), "float32")
        ) -> R.Tensor((n, 64), "float32"):
            w = R.matmul(a, b)
            y = R.matmul(x, w)
            return y

    After:

        @R.function
        def main(
            x: R.Tensor((n, 64), "float32"), a: R.Tensor((64, 4), "float32"), b: R.Tensor((4, 64), "float32")
        ) -> R.Tensor((n, 64), "float32"):
            w = R.matmul(a, b)
            product = R.matmul(x, a)
            y = R.matmul(product, b)
            return y
    """

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        made: relax.Function = _Reorder(mod, default_operators(mod), func)(func)
        return made


class _Reorder(OperatorRewriter):
    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        made = binding
        call = binding.value
        if isinstance(call, relax.Call) and is_call(call, "matmul") and call.attrs["out_dtype"] is None:
            better = self.better(call)
            if better is not None:
                made = binding.replace(value=better)
        self.values[binding.var] = made.value
        return (made,)

    def better(self, call: relax.Call) -> relax.Call | None:
        """The same product in the other order, or None."""
        left, right = call.args
        for inner, outer_is_left in ((left, False), (right, True)):
            found = self.bound(inner, "matmul")
            if found is None or not self.once(inner) or found.attrs["out_dtype"] is not None:
                continue
            a, b, c = (left, *found.args) if outer_is_left else (*found.args, right)
            shapes = [dims(e) for e in (a, b, c)]
            if any(s is None for s in shapes):
                continue
            sa, sb, sc = (s for s in shapes if s is not None)
            if len(sa) < 2 or len(sb) != 2 or len(sc) != 2:
                continue
            from_left = _product(*sa, sb[1]) + _product(*sa[:-1], sb[1], sc[1])
            from_right = _product(*sb, sc[1]) + _product(*sa, sc[1])
            now, then = (from_right, from_left) if outer_is_left else (from_left, from_right)
            if not Analyzer(free_vars((now, then))).can_prove(prim.LT(then, now)):
                continue
            if outer_is_left:
                return self.call("matmul", self.emit_call("product", "matmul", a, b, span=call.span), c, span=call.span)
            return self.call("matmul", a, self.emit_call("product", "matmul", b, c, span=call.span), span=call.span)
        return None


def _product(*factors: PrimExpr) -> PrimExpr:
    total: PrimExpr = prim.const(1, INT64)
    for factor in factors:
        total = total * factor
    return total
