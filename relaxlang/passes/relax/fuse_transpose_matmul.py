"""FuseTransposeMatmul: matrix products read transposed matrices where they are."""

from __future__ import annotations

from relaxlang.analysis.op_pattern import OpPattern
from relaxlang.analysis.stages import stages_of
from relaxlang.base.record import record
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import Buffer, PrimFunc
from relaxlang.ir.visit import free_vars, on
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.relax.joined_kernels import Joiner

SMALL = 1 << 20
"""Bytes of a matrix that may be read across its lines again and again: a usual second-level cache."""


@record
class FuseTransposeMatmul(Pass):
    """Join kernels that only permute the axes of a matrix with the contraction that alone uses the result.

    The contraction then reads the matrix in its own layout, without a copy of the whole. A large first factor whose
    lines lie across memory stays apart: reading it so would take longer than a copy. Kernels are told by what they do:
    run it after `legalize-ops`.

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
        return _Joiner(mod, ctx).joined()


class _Joiner(Joiner):
    def __init__(self, mod: IRModule, ctx: PassContext) -> None:
        super().__init__(mod, ctx)
        self._permuting: dict[str, bool] = {}

    def permutes(self, name: str, func: PrimFunc) -> bool:
        """Whether a kernel copies its input with the axes in another order; each is looked at once."""
        if name not in self._permuting:
            self._permuting[name] = _permutes(func)
        return self._permuting[name]

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
            if alone and self.permutes(*found) and not self.written & {binding.var, *_args(binding)}:
                permuted[binding.var] = binding
            contracts = self.kernels.kind(*found) is OpPattern.OUT_EWISE_FUSABLE
            args = [(p, permuted[a]) for p, a in zip(found[1].params, _args(binding)) if contracts and a in permuted]
            first = [one for param, one in args if self.suits(one, found[1], param)]
            if first:
                gone.update(first)
                made.append(self.outlined([*first, binding]))
            else:
                made.append(binding)
        kept = tuple(b for b in made if b not in gone)
        return node.replace(bindings=kept) if gone else node

    def suits(self, binding: relax.VarBinding, func: PrimFunc, param: prim.Var) -> bool:
        """Whether a contraction may as well read a permuted matrix, its parameter `param`, where it is.

        The factor that the last axis of the result runs through is read in panels, whose copies may turn it. The other
        one is read a few rows at a time, which is slow across the memory of a large matrix."""
        found = self.kernels.kernel(binding.value)
        assert found is not None
        return _keeps_lines(found[1]) or _gives_columns(func, param) or _bytes(func.buffer_map[param]) <= SMALL


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


def _keeps_lines(func: PrimFunc) -> bool:
    """Whether a permutation leaves the last axis the last."""
    stages = stages_of(func)
    assert stages is not None
    store = stages.stages[0].stores[0]
    load = store.value
    return isinstance(load, prim.BufferLoad) and bool(load.indices) and load.indices[-1] is store.indices[-1]


def _gives_columns(func: PrimFunc, param: prim.Var) -> bool:
    """Whether the last axis of a product runs through a parameter of its kernel."""
    stages = stages_of(func)
    for stage in () if stages is None else stages.stages:
        column = stage.stores[0].indices[-1:]
        loads = [one for one in stage.loads() if one.buffer is func.buffer_map[param]]
        if stage.is_reduction and loads:
            return all(v in free_vars(one.indices) for one in loads for v in column)
    return False


def _bytes(buffer: Buffer) -> float:
    """How large a buffer is; infinite when that is not known."""
    count: float = buffer.dtype.itemsize
    for dim in buffer.shape:
        count *= dim.value if isinstance(dim, prim.IntImm) else float("inf")
    return count
