"""FoldConstant: what depends on constants alone is computed while compiling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from relaxlang.analysis.alias import overwritten
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.record import record
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ir.tir import PrimFunc
from relaxlang.ops import Operators, default_operators
from relaxlang.ops.kernel import Kernel
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.bindings import BindingRewriter
from relaxlang.runtime.memory import allocate_lasting, read_only
from relaxlang.schedule.rules.analysis import LAYOUT_REWRITE

# A folded constant larger than its inputs by more than this many bytes is not worth its memory.
MAX_GROWTH = 1 << 20


@record
class FoldConstant(FunctionPass):
    """Evaluate operators and `call_tir` whose arguments are constants.

    The kernel of the operator runs, as it would at run time: by the context's `evaluate` where there is one, else by
    the reference interpreter. A kernel that fails (an assertion) is left to fail at run time.

    Before:

        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            c = R.add(R.const([1, 2], "float32"), R.const([10, 20], "float32"))
            y = R.multiply(x, c)
            return y

    After:

        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            c = R.const([11, 22], "float32")
            y = R.multiply(x, R.const([11, 22], "float32"))
            return y
    """

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        operators = default_operators(mod)
        fold = _Folder(mod, operators, ctx.evaluate or _interpret)
        fold.written = overwritten(func, mod, operators)
        made: relax.Function = fold(func)
        return made


def _interpret(func: PrimFunc, args: list[Any]) -> None:
    """Run a kernel on arrays, outputs last."""
    from relaxlang.interp import run as interpret  # builds come with an `evaluate` of their own

    interpret(IRModule({"kernel": func}), "kernel", *args)


class _Folder(BindingRewriter):
    def __init__(self, mod: IRModule, operators: Operators, evaluate: Callable[..., None]) -> None:
        super().__init__()
        self.mod = mod
        self.operators = operators
        self.evaluate = evaluate
        self.written: set[relax.Expr] = set()

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        # What a call in place writes to must be memory, and no constant.
        if not isinstance(binding, relax.VarBinding) or binding.var in self.written:
            return (binding,)
        folded = self.fold(binding.value)
        if folded is None:
            return (binding,)
        if isinstance(folded, relax.Constant) and structural_same(folded, binding.var):
            self.replaced[binding.var] = folded
        return (binding.replace(value=folded),)

    def fold(self, value: relax.Expr) -> relax.Expr | None:
        """The constant (or tuple of constants) that a value is, or None."""
        if isinstance(value, relax.Constant):
            return value
        if not isinstance(value, relax.Call) or not isinstance(value.op, relax.Op):
            return None
        if value.op.name == "call_tir":
            return self.fold_kernel(value)
        definition = self.operators.find(value.op.name)
        if definition is None or not definition.pure or not value.args or not all(_is_static(a) for a in value.args):
            return None
        lowered = self.operators.lower(value)
        if not isinstance(lowered, Kernel) or lowered.tir_vars or lowered.casts or lowered.finish is not None:
            return None
        return self.run(lowered.func, lowered.args, lowered.out, value)

    def fold_kernel(self, call: relax.Call) -> relax.Expr | None:
        """The result of a `call_tir` with constant arguments."""
        callee, args = call.args[:2]
        func = self.mod.functions.get(callee.name) if isinstance(callee, relax.GlobalVar) else None
        if not isinstance(func, PrimFunc) or not isinstance(args, relax.Tuple) or not args.fields or len(call.args) > 2:
            return None
        if not all(isinstance(a, relax.Constant) for a in args.fields):
            return None
        return self.run(func, args.fields, call.sinfo_args[0], call)

    def run(self, func: PrimFunc, args: tuple[relax.Expr, ...], out: StructInfo, call: relax.Call) -> relax.Expr | None:
        """Run a kernel on its constant arguments."""
        infos = out.fields if isinstance(out, TupleStructInfo) else (out,)
        kinds = [kind for kind in map(_static, infos) if kind is not None]
        given = [a for a in args if isinstance(a, relax.Constant)]
        if len(given) != len(args) or len(kinds) != len(infos):
            return None
        size = sum(math.prod(dims) * dtype.itemsize for dims, dtype in kinds)
        grown = size > sum(c.content.nbytes for c in given) + MAX_GROWTH
        if grown and LAYOUT_REWRITE not in func.attrs:  # what a schedule wants to be done beforehand is
            return None
        # What lasts comes first: the memory of inputs that are read for this alone is free again behind it.
        results = [allocate_lasting(*kind) for kind in kinds]
        inputs = [c.data for c in given]
        try:
            self.evaluate(func, [*inputs, *results])
        except DiagnosticError:
            return None
        constants = tuple(relax.Constant(read_only(r), span=call.span) for r in results)
        return relax.Tuple(constants, span=call.span) if isinstance(out, TupleStructInfo) else constants[0]


def _is_static(value: relax.Expr) -> bool:
    """Whether an argument of an operator is known while compiling."""
    if isinstance(value, relax.Tuple):
        return all(_is_static(f) for f in value.fields)
    if isinstance(value, relax.ShapeExpr):
        return all(isinstance(v, prim.IntImm) for v in value.values)
    if isinstance(value, relax.PrimValue):
        return isinstance(value.value, (prim.IntImm, prim.FloatImm))
    return isinstance(value, (relax.Constant, relax.StringImm, relax.DataTypeImm))


def _static(info: StructInfo) -> tuple[list[int], np.dtype[Any]] | None:
    """The dimensions and the element type of a static output, or None."""
    if not isinstance(info, TensorStructInfo) or info.dims is None or info.dtype is None:
        return None
    dims = [d.value for d in info.dims if isinstance(d, prim.IntImm)]
    if len(dims) != len(info.dims) or math.prod(dims) * info.dtype.itemsize > 1 << 32:
        return None
    return dims, info.dtype.numpy


def structural_same(constant: relax.Constant, var: relax.Var) -> bool:
    """Whether a variable of that struct info may be replaced by the constant wherever it stands."""
    have, want = constant.struct_info, var.struct_info
    return (
        isinstance(have, TensorStructInfo)
        and isinstance(want, TensorStructInfo)
        and have.dims == want.dims
        and have.dtype is want.dtype
    )
