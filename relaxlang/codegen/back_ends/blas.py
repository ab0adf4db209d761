"""BLAS: matrix products, with a transposition before and a bias after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaxlang.base.diagnostics import fail
from relaxlang.builder.dpl.making import is_op, wildcard
from relaxlang.ir import relax
from relaxlang.ir.struct_info import TensorStructInfo
from relaxlang.passes.back_end import CompositePattern, Match
from relaxlang.runtime.blas import function_name
from relaxlang.runtime.shared_library import blas

_TYPES = ("float32", "float64")


class Blas:
    """The BLAS that the system or a wheel brings, as a back end."""

    name = "blas"
    takes_whole_functions = False

    def patterns(self) -> Sequence[CompositePattern]:
        """Products with bias, then without; of transposed matrices, then of plain ones."""
        made: list[CompositePattern] = []
        for bias in (True, False):
            for a_turned, b_turned in ((True, True), (True, False), (False, True), (False, False)):
                a, b, c = wildcard(), wildcard(), wildcard()
                left = is_op("permute_dims")(a) if a_turned else a
                right = is_op("permute_dims")(b) if b_turned else b
                product = is_op("matmul")(left, right)
                whole = (is_op("add")(product, c) | is_op("add")(c, product)) if bias else product
                kind = f"{'_bias' * bias}{'_transposed' * (a_turned or b_turned)}"
                made.append(CompositePattern(f"blas.matmul{kind}", whole, _fits))
        return made

    def version(self) -> str:
        """The library."""
        return blas("the back end `blas`").name

    def generate(self, name: str, func: relax.Function, options: Mapping[str, Any]) -> relax.Function:
        """A function that calls the product."""
        (block,) = func.body.blocks
        bindings = [b for b in block.bindings if isinstance(b, relax.VarBinding)]
        parts = _Product(bindings)
        if parts.product is None:
            fail("RLX3152", f"the back end `blas` takes matrix products, and `{name}` is none", func.span)
        last = bindings[-1].var
        operands = [o for o in (parts.a, parts.b, parts.bias) if o is not None]
        callee = relax.ExternFunc(function_name(parts.turned, parts.bias is not None))
        args = (callee, relax.Tuple(tuple(operands)))
        info = last.struct_info
        assert info is not None
        call = relax.Call(relax.Op("call_dps_packed"), args, sinfo_args=(info,), struct_info=info, span=func.span)
        made = block.replace(bindings=(relax.VarBinding(last, call),))
        return func.replace(body=func.body.replace(blocks=(made,)))


class _Product:
    """The parts of a product: operands, which of them are turned, the bias."""

    def __init__(self, bindings: Sequence[relax.VarBinding]) -> None:
        values = {b.var: b.value for b in bindings}
        self.product: relax.Var | None = None
        self.bias: relax.Expr | None = None
        for binding in bindings:
            call = binding.value
            if not isinstance(call, relax.Call) or not isinstance(call.op, relax.Op):
                continue
            if call.op.name == "matmul":
                self.product = binding.var
                (self.a, a_turned), (self.b, b_turned) = (_turned(x, values) for x in call.args)
                self.turned = (a_turned, b_turned)
            elif call.op.name == "add" and self.product is not None:
                self.bias = call.args[1] if call.args[0] is self.product else call.args[0]


def _turned(operand: relax.Expr, values: Mapping[relax.Var, relax.Expr]) -> tuple[relax.Expr, bool]:
    """What is multiplied, and whether it is a transposition of that which is made here."""
    call = values.get(operand) if isinstance(operand, relax.Var) else None
    if isinstance(call, relax.Call) and isinstance(call.op, relax.Op) and call.op.name == "permute_dims":
        return call.args[0], True
    return operand, False


def _fits(match: Match) -> bool:
    """Whether a BLAS computes just this: element types, ranks, and what is turned and added."""
    parts = _Product(match.bindings)
    if parts.product is None:
        return False
    result = match.bindings[-1].var.struct_info
    product = parts.product.struct_info
    tensors = [parts.a.struct_info, parts.b.struct_info, product, result]
    if parts.bias is not None:
        if parts.bias in {b.var for b in match.bindings}:
            return False
        tensors.append(parts.bias.struct_info)
        if not isinstance(product, TensorStructInfo) or not isinstance(result, TensorStructInfo):
            return False
        if product.dims is None or result.dims != product.dims:
            return False
    types = {i.dtype.name if isinstance(i, TensorStructInfo) and i.dtype is not None else "" for i in tensors}
    matrices = all(isinstance(i, TensorStructInfo) and i.ndim >= 2 for i in tensors[:2])
    turned = [b.value for b in match.bindings if isinstance(b.value, relax.Call) and "axes" in b.value.attrs]
    return types in [{t} for t in _TYPES] and matrices and all(_swaps_last(c) for c in turned)


def _swaps_last(call: relax.Call) -> bool:
    """Whether a `permute_dims` turns matrices and nothing else."""
    info = call.struct_info
    rank = info.ndim if isinstance(info, TensorStructInfo) else 0
    axes = call.attrs["axes"]
    given = tuple(range(rank))[::-1] if axes is None else tuple(a % rank for a in axes)
    return rank >= 2 and given == (*range(rank - 2), rank - 1, rank - 2)
