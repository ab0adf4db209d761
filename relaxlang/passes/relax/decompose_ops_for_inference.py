"""DecomposeOpsForInference: operators whose statistics are known become arithmetic."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.struct_info import TensorStructInfo
from relaxlang.ops import default_operators
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.relax.rewriting import OperatorRewriter, dims, numbers, shape_expr


@record
class DecomposeOpsForInference(Pass):
    """Turn batch norms that do not train into a multiplication and an addition for each channel.

    What depends on the weights alone stands by itself, for `fold-constant` and `lift-transform-params`. Batch norms
    with `training=True` stay as they are. With `func_name` only that function changes.

    Before:

        @R.function
        def main(x: R.Tensor((n, 3), "float32"), g: R.Tensor((3,), "float32")) -> R.Tensor((n, 3), "float32"):
            t = R.nn.batch_norm(x, g, g, g, g, axis=1, training=False)
            y = t[0]
            return y

    After:

        @R.function
        def main(x: R.Tensor((n, 3), "float32"), g: R.Tensor((3,), "float32")) -> R.Tensor((n, 3), "float32"):
            spread = R.sqrt(R.add(g, R.const(1e-05, "float32")))
            scale = R.divide(g, spread)
            shift = R.subtract(g, R.multiply(g, scale))
            a = R.reshape(scale, (1, 3))
            b = R.multiply(x, a)
            c = R.reshape(shift, (1, 3))
            d = R.add(b, c)
            t = (d, g, g)
            y = t[0]
            return y
    """

    func_name: str = ""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        changed: dict[str, AnyFunc] = dict(mod.functions)
        for name, func in mod.relax_functions():
            if self.func_name in ("", name):
                changed[name] = _Decomposer(mod, default_operators(mod), func)(func)
        return mod.with_functions(changed)


class _Decomposer(OperatorRewriter):
    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        self.values[binding.var] = binding.value
        norm = self.bound(binding.var, "nn.batch_norm")
        if norm is None or norm.attrs["training"]:
            return (binding,)
        data, count = norm.args[0], numbers(dims(norm.args[1]))
        info = data.struct_info
        if not isinstance(info, TensorStructInfo) or info.ndim < 0 or count is None:
            return (binding,)
        have = norm.args[1].struct_info
        if not isinstance(have, TensorStructInfo) or have.dtype is not info.dtype:
            return (binding,)  # mixed precision keeps the wider arithmetic of the operator
        axis = norm.attrs["axis"] % info.ndim
        place = shape_expr(*(count[0] if k == axis else 1 for k in range(info.ndim)))
        scale, shift = scale_and_shift(self, norm)
        wide = self.emit_call("scale", "reshape", scale, place, span=norm.span)
        product = self.emit_call("scaled", "multiply", data, wide, span=norm.span)
        offset = self.emit_call("shift", "reshape", shift, place, span=norm.span)
        value = self.emit_call("normal", "add", product, offset, span=norm.span)
        return (binding.replace(value=relax.Tuple((value, norm.args[3], norm.args[4]), span=norm.span)),)


def scale_and_shift(rewrite: OperatorRewriter, norm: relax.Call) -> tuple[relax.Var, relax.Var]:
    """What a batch norm that does not train multiplies with and adds for each channel, as new variables."""
    _, gamma, beta, mean, variance = norm.args
    info = variance.struct_info
    assert isinstance(info, TensorStructInfo) and info.dtype is not None
    epsilon = relax.Constant(np.asarray(norm.attrs["epsilon"], info.dtype.numpy), span=norm.span)
    total = rewrite.emit_call("variance", "add", variance, epsilon, span=norm.span)
    spread = rewrite.emit_call("spread", "sqrt", total, span=norm.span)
    one = relax.Constant(np.asarray(1, info.dtype.numpy), span=norm.span)
    factor = gamma if norm.attrs["scale"] else one
    scale = rewrite.emit_call("scale", "divide", factor, spread, span=norm.span)
    moved = rewrite.emit_call("moved", "multiply", mean, scale, span=norm.span)
    if norm.attrs["center"]:
        return scale, rewrite.emit_call("shift", "subtract", beta, moved, span=norm.span)
    return scale, rewrite.emit_call("shift", "negative", moved, span=norm.span)
