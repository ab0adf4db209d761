"""ToMixedPrecision: contractions in half precision, what is delicate in float32."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.base.dtype import DType, dtype
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ops import default_operators
from relaxlang.ops.rules import tensors_in
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.relax.rewriting import OperatorRewriter, without_unused

FLOAT32 = dtype("float32")


@record
class ToMixedPrecision(FunctionPass):
    """Cast float32 inputs of matrix products and convolutions to `dtype` (float16, bfloat16).

    With `out_dtype="float32"` their results are float32 as before. With `out_dtype` equal to `dtype` they are in half
    precision, and so is what follows them as long as it needs nothing else; sums and softmax stay in float32.
    Each operator says by its `precision` to which of these it belongs ("always", "follow", "never"). Functions keep
    their signatures, except for parameters in `fp16_input_names`, which become half precision too.

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
        return without_unused(made.replace(params=params, body=body), lower.casts)


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
        value = binding.value
        if not isinstance(binding, relax.VarBinding):
            return (binding,)
        if isinstance(value, relax.TupleGetItem):
            return self.item(binding, value)
        if not isinstance(value, relax.Call) or not isinstance(value.op, relax.Op):
            return (binding,)
        definition = self.operators.find(value.op.name)
        precision = "never" if definition is None else definition.precision
        floats = [t for t in tensors_in(value) if _is_float(t)]
        if precision == "always" and floats and all(_is_float32(t) for t in floats):
            return self.always(binding, value)
        if precision == "follow" and self.out is self.half and self.follows(value):
            return self.bound_in(binding, value.replace(args=tuple(self.halved(a) for a in value.args)))
        return (binding,)

    def always(self, binding: relax.VarBinding, call: relax.Call) -> Iterable[relax.Binding]:
        """A call in half precision: its result is what the pass asks for, where the operator leaves a choice."""
        attrs = call.attrs
        if "out_dtype" in attrs:
            if attrs["out_dtype"] not in (None, FLOAT32):
                return (binding,)
            attrs = attrs.set("out_dtype", self.out)
        return self.bound_in(binding, call.replace(args=tuple(self.halved(a) for a in call.args), attrs=attrs))

    def item(self, binding: relax.VarBinding, value: relax.TupleGetItem) -> Iterable[relax.Binding]:
        """A field of a tuple that is there in half precision."""
        whole = self.halves.get(value.tuple_value)
        return (binding,) if whole is None else self.bound_in(binding, value.replace(tuple_value=whole))

    def bound_in(self, binding: relax.VarBinding, value: relax.Expr) -> Iterable[relax.Binding]:
        """A binding to a value that may be of another type: then the old variable is a cast of it."""
        info = value.struct_info if isinstance(value, relax.TupleGetItem) else self.infer(value)
        value = value.replace(struct_info=info) if isinstance(value, relax.Call) else value
        assert info is not None
        if not _narrower(info, binding.var.struct_info):
            return (binding.replace(value=value),)
        made = self.emit(f"{binding.var.name}_half", value, info, value.span)
        self.halves[binding.var] = made
        self.casts.add(binding.var)
        return (binding.replace(value=self.widened(made, binding.var.struct_info)),)

    def widened(self, value: relax.Expr, like: StructInfo) -> relax.Expr:
        """A value in the types that it had, field by field."""
        if not isinstance(like, TupleStructInfo):
            return self.call("astype", value, dtype=FLOAT32, span=value.span)
        fields: list[relax.Expr] = []
        for k, info in enumerate(like.fields):
            field: relax.Expr = relax.TupleGetItem(value, k)
            if _narrower(field.struct_info, info):
                cast = self.emit_call("field", "astype", field, dtype=FLOAT32, span=value.span)
                self.casts.add(cast)
                field = cast
            fields.append(field)
        return relax.Tuple(tuple(fields))

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
        """Whether a call has float32 tensors, and all of them are there in half precision."""
        floats = [t for t in tensors_in(call) if _is_float(t)]
        there = [_is_float32(t) and (t in self.halves or isinstance(t, relax.Constant)) for t in floats]
        return all(there) and any(t in self.halves for t in floats)


def _is_float32(value: relax.Expr) -> bool:
    info = value.struct_info
    return isinstance(info, TensorStructInfo) and info.dtype is FLOAT32


def _is_float(value: relax.Expr) -> bool:
    info = value.struct_info
    return isinstance(info, TensorStructInfo) and info.dtype is not None and info.dtype.is_float


def _narrower(made: StructInfo | None, wanted: StructInfo) -> bool:
    """Whether a value has another dtype than the one wanted, somewhere in a tuple."""
    if isinstance(made, TupleStructInfo) and isinstance(wanted, TupleStructInfo):
        return any(_narrower(a, b) for a, b in zip(made.fields, wanted.fields))
    return isinstance(made, TensorStructInfo) and isinstance(wanted, TensorStructInfo) and made.dtype != wanted.dtype


def _of(info: StructInfo, element: DType) -> StructInfo:
    return info.replace(dtype=element) if isinstance(info, TensorStructInfo) else info
