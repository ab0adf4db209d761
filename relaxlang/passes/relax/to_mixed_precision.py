"""ToMixedPrecision: contractions in half precision, what is delicate in float32."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from relaxlang.analysis.uses import variable_uses
from relaxlang.base.dtype import DType, dtype
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo
from relaxlang.ops import default_operators
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.bindings import BindingRewriter
from relaxlang.passes.relax.rewriting import OperatorRewriter

ALWAYS = frozenset({"matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d"})
"""Operators that are computed in half precision; they accumulate in `out_dtype`."""
FOLLOW = frozenset({
    "add", "subtract", "multiply", "maximum", "minimum", "negative", "abs", "clip", "nn.relu", "nn.leaky_relu",
    "reshape", "flatten", "permute_dims", "concat", "expand_dims", "squeeze", "broadcast_to", "strided_slice",
    "nn.max_pool2d",
})  # fmt: skip
"""Operators that are computed in half precision when all their tensors are there in half precision."""
FLOAT32 = dtype("float32")


@dataclass(frozen=True)
class ToMixedPrecision(FunctionPass):
    """Cast float32 inputs of matrix products and convolutions to `dtype` (float16, bfloat16).

    With `out_dtype="float32"` their results are float32 as before. With `out_dtype` equal to `dtype` they are in half
    precision, and so is what follows them as long as it needs nothing else; sums, norms and softmax stay in float32.
    Functions keep their signatures, except for parameters in `fp16_input_names`, which become half precision too.

    Before:

        @R.function
        def main(x: R.Tensor((n, 8), "float32"), w: R.Tensor((8, 4), "float32")) -> R.Tensor((n, 4), "float32"):
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            return b

    After:

        @R.function
        def main(x: R.Tensor((n, 8), "float32"), w: R.Tensor((8, 4), "float32")) -> R.Tensor((n, 4), "float32"):
            x_half = R.astype(x, "float16")
            w_half = R.astype(w, "float16")
            a = R.matmul(x_half, w_half, out_dtype="float32")
            b = R.nn.relu(a)
            return b
    """

    out_dtype: str = "float32"
    fp16_input_names: tuple[str, ...] = ()
    dtype: str = "float16"

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        lower = _Lowerer(mod, func, dtype(self.dtype), dtype(self.out_dtype))
        params = tuple(lower.parameter(p) if p.name in self.fp16_input_names else p for p in func.params)
        head, lower.pending = lower.pending, []
        made: relax.Function = lower(func)
        body = made.body
        if head:
            first = body.blocks[0] if body.blocks and type(body.blocks[0]) is relax.BindingBlock else None
            rest = body.blocks[1:] if first is not None else body.blocks
            bindings = (*head, *(first.bindings if first is not None else ()))
            body = body.replace(blocks=(relax.BindingBlock(bindings), *rest))
        return _DropCasts(made.replace(params=params, body=body), lower.casts).run()


class _Lowerer(OperatorRewriter):
    """`halves`: the half-precision form of variables; `casts`: variables bound to casts that this pass made."""

    def __init__(self, mod: IRModule, func: relax.Function, half: DType, out: DType) -> None:
        super().__init__(mod, default_operators(mod), func)
        self.half = half
        self.out = out
        self.halves: dict[relax.Expr, relax.Expr] = {}
        self.casts: set[relax.Var] = set()

    def parameter(self, param: relax.Var) -> relax.Var:
        """A parameter in half precision; the old variable is its cast."""
        if not _is_float32(param):
            return param
        made = relax.Var(param.name, _of(param.struct_info, self.half), span=param.span)
        self.halves[param] = made
        wide = self.call("astype", made, dtype=FLOAT32, span=param.span)
        self.pending.append(relax.VarBinding(param, wide, span=param.span))
        self.casts.add(param)
        return made

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        call = binding.value
        if (
            not isinstance(binding, relax.VarBinding)
            or not isinstance(call, relax.Call)
            or not _is_float32(binding.var)
        ):
            return (binding,)
        if not isinstance(call.op, relax.Op):
            return (binding,)
        if call.op.name in ALWAYS and all(_is_float32(a) for a in call.args):
            args = tuple(self.halved(a) for a in call.args)
            attrs = call.attrs.set("out_dtype", self.out)
            return self.bound_in(binding, call.replace(args=args, attrs=attrs), self.out)
        if call.op.name in FOLLOW and self.out is self.half and self.follows(call):
            args = tuple(self.halved(a) for a in call.args)
            return self.bound_in(binding, call.replace(args=args), self.half)
        return (binding,)

    def bound_in(self, binding: relax.VarBinding, call: relax.Call, of: DType) -> Iterable[relax.Binding]:
        """A binding to a call whose result is of another type: the old variable is a cast of it."""
        call = call.replace(struct_info=self.infer(call))
        if of is FLOAT32:
            return (binding.replace(value=call),)
        made = self.emit(f"{binding.var.name}_half", call, _of(binding.var.struct_info, of), call.span)
        self.halves[binding.var] = made
        self.casts.add(binding.var)
        return (binding.replace(value=self.call("astype", made, dtype=FLOAT32, span=call.span)),)

    def halved(self, value: relax.Expr) -> relax.Expr:
        """A value in half precision; what is no float32 tensor as it is."""
        if isinstance(value, relax.Tuple):
            return relax.Tuple(tuple(self.halved(f) for f in value.fields), span=value.span)
        if not _is_float32(value):
            return value
        if isinstance(value, relax.Constant):
            return relax.Constant(value.data.astype(self.half.numpy), span=value.span)
        found = self.halves.get(value)
        if found is not None and (self.in_dataflow or not isinstance(found, relax.DataflowVar)):
            return found
        name = value.name if isinstance(value, relax.Var) else "value"
        return self.emit_call(f"{name}_half", "astype", value, dtype=self.half, span=value.span)

    def follows(self, call: relax.Call) -> bool:
        """Whether a call has tensors, and all of them are there in half precision."""
        flat = [f for a in call.args for f in (a.fields if isinstance(a, relax.Tuple) else (a,))]
        tensors = [a for a in flat if isinstance(a.struct_info, TensorStructInfo)]
        there = [a in self.halves or isinstance(a, relax.Constant) for a in tensors]
        return all(there) and any(a in self.halves for a in tensors)


class _DropCasts(BindingRewriter):
    """Drops casts that nothing uses."""

    def __init__(self, func: relax.Function, casts: set[relax.Var]) -> None:
        super().__init__()
        uses = variable_uses(func)
        self.func = func
        self.gone = {c for c in casts if not uses[c]}

    def run(self) -> relax.Function:
        """The function without them."""
        made: relax.Function = self(self.func)
        return made

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        return () if binding.var in self.gone else (binding,)


def _is_float32(value: relax.Expr) -> bool:
    info = value.struct_info
    return isinstance(info, TensorStructInfo) and info.dtype is FLOAT32


def _of(info: StructInfo, element: DType) -> StructInfo:
    return info.replace(dtype=element) if isinstance(info, TensorStructInfo) else info
