"""FuseTransposeMatmul: matrix products read transposed matrices where they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from relaxlang.analysis.alias import overwritten
from relaxlang.analysis.op_pattern import OpPattern
from relaxlang.analysis.stages import stages_of
from relaxlang.analysis.uses import variable_uses
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import on
from relaxlang.ops import default_operators
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.relax.fuse_ops import Outliner
from relaxlang.passes.relax.fuse_tir import FuseTIR


@dataclass(frozen=True)
class FuseTransposeMatmul(Pass):
    """Join kernels that only permute the axes of a matrix with the contraction that alone uses the result.

    The contraction then reads the matrix in its own layout, without a copy. Kernels are told by what they do: run it
    after `legalize-ops`.

    Before:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def turn(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 4), "float32")):
                for i, j in T.grid(8, 4):
                    with T.block("turn"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[vj, vi]

            @T.prim_func(private=True)
            def dot(A: T.Buffer((2, 8), "float32"), B: T.Buffer((8, 4), "float32"), C: T.Buffer((2, 4), "float32")):
                for i, j, k in T.grid(2, 4, 8):
                    with T.block("dot"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

            @R.function
            def main(x: R.Tensor((2, 8), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor((2, 4), "float32"):
                cls = Module
                with R.dataflow():
                    t = R.call_tir(cls.turn, (w,), out_sinfo=R.Tensor((8, 4), "float32"))
                    y = R.call_tir(cls.dot, (x, t), out_sinfo=R.Tensor((2, 4), "float32"))
                    R.output(y)
                return y

    After:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def turn(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 4), "float32")):
                for i, j in T.grid(8, 4):
                    with T.block("turn"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[vj, vi]

            @T.prim_func(private=True)
            def dot(A: T.Buffer((2, 8), "float32"), B: T.Buffer((8, 4), "float32"), C: T.Buffer((2, 4), "float32")):
                for i, j, k in T.grid(2, 4, 8):
                    with T.block("dot"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

            @R.function
            def main(x: R.Tensor((2, 8), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor((2, 4), "float32"):
                cls = Module
                with R.dataflow():
                    y = R.call_tir(cls.fused_turn_dot, (w, x), out_sinfo=R.Tensor((2, 4), "float32"))
                    R.output(y)
                return y

            @T.prim_func(private=True)
            def fused_turn_dot(
                w: T.Buffer((T.int64(4), T.int64(8)), "float32"),
                x: T.Buffer((T.int64(2), T.int64(8)), "float32"),
                y: T.Buffer((T.int64(2), T.int64(4)), "float32"),
            ):
                T.func_attr({"tir.noalias": True})
                for i, j, k in T.grid(2, 4, 8):
                    with T.block("dot"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        with T.init():
                            y[vi, vj] = T.float32(0)
                        y[vi, vj] = y[vi, vj] + x[vi, vk] * w[vj, vk]
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        join = _Joiner(mod)
        for name, func in mod.relax_functions():
            join.uses = variable_uses(func)
            join.written = overwritten(func, mod, default_operators(mod))
            join.functions[name] = join(func)
        return FuseTIR().run(mod.with_functions(join.functions), ctx) if join.made else mod


class _Joiner(Outliner):
    """`uses`: how often the variables of the function at hand are used."""

    uses: Counter[relax.Var]

    @on(relax.DataflowBlock)
    def dataflow_block(self, node: relax.DataflowBlock) -> relax.DataflowBlock:
        """A dataflow block: which contractions read a permuted matrix that nobody else reads?"""
        permuted: dict[relax.Expr, relax.VarBinding] = {}
        made: list[relax.Binding] = []
        gone: set[relax.Binding] = set()
        for binding in node.bindings:
            found = self.kernels.kernel(binding.value)
            if found is None or not isinstance(binding, relax.VarBinding):
                made.append(binding)
                continue
            alone = isinstance(binding.var, relax.DataflowVar) and self.uses[binding.var] == 1
            if alone and _permutes(found[1]) and not self.written & {binding.var, *_args(binding)}:
                permuted[binding.var] = binding
            first = [permuted[a] for a in _args(binding) if a in permuted]
            if first and self.kernels.kind(*found) is OpPattern.OUT_EWISE_FUSABLE:
                gone.update(first)
                made.append(self.outlined([*first, binding]))
            else:
                made.append(binding)
        kept = tuple(b for b in made if b not in gone)
        return node.replace(bindings=kept) if gone else node


def _args(binding: relax.VarBinding) -> tuple[relax.Expr, ...]:
    call = binding.value
    return call.args[1].fields if isinstance(call, relax.Call) and isinstance(call.args[1], relax.Tuple) else ()


def _permutes(func: PrimFunc) -> bool:
    """Whether a kernel copies its input with the axes in another order."""
    found = stages_of(func)
    if found is None or len(found.stages) != 1 or len(func.buffer_map) != 2:
        return False
    store = found.stages[0].stores[0]
    load = store.value
    if len(found.stages[0].stores) != 1 or not isinstance(load, prim.BufferLoad) or load.indices == store.indices:
        return False
    axes = [i for i in store.indices if isinstance(i, prim.Var)]
    return len(axes) == len(load.indices) == len(store.indices) and {*load.indices} == {*axes}
