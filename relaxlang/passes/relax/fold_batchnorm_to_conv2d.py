"""FoldBatchnormToConv2D: a batch norm behind a convolution goes into its weights."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ops import default_operators
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.relax.decompose_ops_for_inference import scale_and_shift
from relaxlang.passes.relax.rewriting import OperatorRewriter, dims, numbers, shape_expr


@record
class FoldBatchnormToConv2D(FunctionPass):
    """Turn a convolution that only a batch norm (which does not train) over its channels uses into a convolution with
    scaled weights and a bias.

    The weights are scaled in the program: with constants that is work for `fold-constant`. Layouts NCHW and OIHW.

    Before:

        @R.function
        def main(
            x: R.Tensor((1, 2, 4, 4), "float32"), w: R.Tensor((3, 2, 1, 1), "float32"), g: R.Tensor((3,), "float32")
        ) -> R.Tensor((1, 3, 4, 4), "float32"):
            c = R.nn.conv2d(x, w)
            t = R.nn.batch_norm(c, g, g, g, g, axis=1, training=False)
            y = t[0]
            return y

    After:

        @R.function
        def main(
            x: R.Tensor((1, 2, 4, 4), "float32"), w: R.Tensor((3, 2, 1, 1), "float32"), g: R.Tensor((3,), "float32")
        ) -> R.Tensor((1, 3, 4, 4), "float32"):
            c = R.nn.conv2d(x, w)
            t = R.nn.batch_norm(c, g, g, g, g, axis=1, training=False)
            spread = R.sqrt(R.add(g, R.const(1e-05, "float32")))
            scale = R.divide(g, spread)
            shift = R.subtract(g, R.multiply(g, scale))
            weight = R.multiply(w, R.reshape(scale, (3, 1, 1, 1)))
            conv = R.nn.conv2d(x, weight)
            bias = R.reshape(shift, (1, 3, 1, 1))
            y = R.add(conv, bias)
            return y
    """

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        made: relax.Function = _Folder(mod, default_operators(mod), func)(func)
        return made


class _Folder(OperatorRewriter):
    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        self.values[binding.var] = binding.value
        item = binding.value
        if not isinstance(item, relax.TupleGetItem):
            return (binding,)
        norm = self.bound(item.tuple_value, "nn.batch_norm")
        if norm is None or norm.attrs["training"] or not self.once(norm.args[0]):
            return (binding,)
        if item.index > 0:  # the moving mean and variance, which stay what they are
            return (binding.replace(value=norm.args[2 + item.index]),)
        conv = self.bound(norm.args[0], "nn.conv2d")
        if conv is None or conv.attrs["data_layout"] != "NCHW" or conv.attrs["kernel_layout"] != "OIHW":
            return (binding,)
        if conv.attrs["out_layout"] not in (None, "NCHW") or norm.attrs["axis"] not in (1, -3):
            return (binding,)
        weight = conv.args[1]
        shape = numbers((dims(weight) or ())[:1])
        if not shape or conv.struct_info is None or conv.attrs["out_dtype"] is not None:
            return (binding,)
        span = binding.value.span
        scale, shift = scale_and_shift(self, norm)
        tall = self.emit_call("scale", "reshape", scale, shape_expr(shape[0], 1, 1, 1), span=span)
        scaled = self.emit_call("weight", "multiply", weight, tall, span=span)
        again = self.emit("conv", conv.replace(args=(conv.args[0], scaled)), conv.struct_info, span)
        bias = self.emit_call("bias", "reshape", shift, shape_expr(1, shape[0], 1, 1), span=span)
        return (binding.replace(value=self.call("add", again, bias, span=span)),)
