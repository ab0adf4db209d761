"""FuseMatmulChain: matrix products with a softmax between them become one kernel, without a matrix of all scores."""

from __future__ import annotations

from relaxlang.analysis.op_pattern import OpPattern
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import IntImm
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo
from relaxlang.ir.structural import structural_equal, structural_hash
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import on
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.relax.fuse_ops import outline
from relaxlang.passes.relax.fuse_tir import FuseTIR
from relaxlang.passes.relax.joined_kernels import Joiner
from relaxlang.schedule.rules.online_softmax import FEWEST_COLUMNS
from relaxlang.schedule.rules.row_blocks import takes_pieces

LONGEST = 8
"""Kernels of a chain at most."""


@record
class FuseMatmulChain(Pass):
    """Join a contraction with the one whose result it reads through kernels that work row by row (scale, mask,
    softmax), when the rules for schedules can then compute some rows and columns at a time, so that what lies between
    is never there as a whole.

    That is so for long or unknown lengths; short rows stay as they are. Kernels are told by what they do: run it after
    `fuse-tir`.

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(
                q: R.Tensor((8, 64, 16), "float32"),
                k: R.Tensor((8, 16, n), "float32"),
                v: R.Tensor((8, n, 16), "float32"),
            ) -> R.Tensor((8, 64, 16), "float32"):
                cls = Module
                with R.dataflow():
                    s = R.call_tir(cls.matmul, (q, k), out_sinfo=R.Tensor((8, 64, n), "float32"))
                    p = R.call_tir(cls.softmax, (s,), out_sinfo=R.Tensor((8, 64, n), "float32"))
                    y = R.call_tir(cls.matmul1, (p, v), out_sinfo=R.Tensor((8, 64, 16), "float32"))
                    R.output(y)
                return y

            @T.prim_func(private=True)
            def matmul(
                x1: T.Buffer((T.int64(8), T.int64(64), T.int64(16)), "float32"),
                x2: T.Buffer((T.int64(8), T.int64(16), n), "float32"),
                total: T.Buffer((T.int64(8), T.int64(64), n), "float32"),
            ):
                T.func_attr({"tir.noalias": True})
                for i0, i1, i2, k in T.grid(T.int64(8), T.int64(64), n, T.int64(16)):
                    with T.block("total"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k])
                        with T.init():
                            total[a, b, c] = T.float32(0.0)
                        total[a, b, c] = total[a, b, c] + x1[a, b, d] * x2[a, d, c]

            @T.prim_func(private=True)
            def softmax(
                data: T.Buffer((T.int64(8), T.int64(64), n), "float32"),
                softmax: T.Buffer((T.int64(8), T.int64(64), n), "float32"),
            ):
                T.func_attr({"tir.noalias": True})
                top = T.alloc_buffer((T.int64(8), T.int64(64), T.int64(1)), "float32")
                powers = T.alloc_buffer((T.int64(8), T.int64(64), n), "float32")
                total = T.alloc_buffer((T.int64(8), T.int64(64), T.int64(1)), "float32")
                for i0, i1, i2, k in T.grid(T.int64(8), T.int64(64), T.int64(1), n):
                    with T.block("top"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k])
                        with T.init():
                            top[a, b, c] = T.float32("-inf")
                        top[a, b, c] = T.max(top[a, b, c], data[a, b, d])
                for i0, i1, i2 in T.grid(T.int64(8), T.int64(64), n):
                    with T.block("powers"):
                        a, b, c = T.axis.remap("SSS", [i0, i1, i2])
                        powers[a, b, c] = T.exp(data[a, b, c] - top[a, b, T.int64(0)])
                for i0, i1, i2, k in T.grid(T.int64(8), T.int64(64), T.int64(1), n):
                    with T.block("total"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k])
                        with T.init():
                            total[a, b, c] = T.float32(0.0)
                        total[a, b, c] = total[a, b, c] + powers[a, b, d]
                for i0, i1, i2 in T.grid(T.int64(8), T.int64(64), n):
                    with T.block("softmax"):
                        a, b, c = T.axis.remap("SSS", [i0, i1, i2])
                        softmax[a, b, c] = powers[a, b, c] * (T.float32(1.0) / total[a, b, T.int64(0)])

            @T.prim_func(private=True)
            def matmul1(
                x1: T.Buffer((T.int64(8), T.int64(64), n), "float32"),
                x2: T.Buffer((T.int64(8), n, T.int64(16)), "float32"),
                total: T.Buffer((T.int64(8), T.int64(64), T.int64(16)), "float32"),
            ):
                T.func_attr({"tir.noalias": True})
                for i0, i1, i2, k in T.grid(T.int64(8), T.int64(64), T.int64(16), n):
                    with T.block("total"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k])
                        with T.init():
                            total[a, b, c] = T.float32(0.0)
                        total[a, b, c] = total[a, b, c] + x1[a, b, d] * x2[a, d, c]

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(
                q: R.Tensor((8, 64, 16), "float32"),
                k: R.Tensor((8, 16, n), "float32"),
                v: R.Tensor((8, n, 16), "float32"),
            ) -> R.Tensor((8, 64, 16), "float32"):
                cls = Module
                with R.dataflow():
                    y = R.call_tir(
                        cls.fused_matmul_softmax_matmul1, (q, k, v), out_sinfo=R.Tensor((8, 64, 16), "float32")
                    )
                    R.output(y)
                return y

            @T.prim_func(private=True)
            def matmul(
                x1: T.Buffer((T.int64(8), T.int64(64), T.int64(16)), "float32"),
                x2: T.Buffer((T.int64(8), T.int64(16), n), "float32"),
                total: T.Buffer((T.int64(8), T.int64(64), n), "float32"),
            ):
                T.func_attr({"tir.noalias": True})
                for i0, i1, i2, k in T.grid(T.int64(8), T.int64(64), n, T.int64(16)):
                    with T.block("total"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k])
                        with T.init():
                            total[a, b, c] = T.float32(0.0)
                        total[a, b, c] = total[a, b, c] + x1[a, b, d] * x2[a, d, c]

            @T.prim_func(private=True)
            def softmax(
                data: T.Buffer((T.int64(8), T.int64(64), n), "float32"),
                softmax: T.Buffer((T.int64(8), T.int64(64), n), "float32"),
            ):
                T.func_attr({"tir.noalias": True})
                top = T.alloc_buffer((T.int64(8), T.int64(64), T.int64(1)), "float32")
                powers = T.alloc_buffer((T.int64(8), T.int64(64), n), "float32")
                total = T.alloc_buffer((T.int64(8), T.int64(64), T.int64(1)), "float32")
                for i0, i1, i2, k in T.grid(T.int64(8), T.int64(64), T.int64(1), n):
                    with T.block("top"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k])
                        with T.init():
                            top[a, b, c] = T.float32("-inf")
                        top[a, b, c] = T.max(top[a, b, c], data[a, b, d])
                for i0, i1, i2 in T.grid(T.int64(8), T.int64(64), n):
                    with T.block("powers"):
                        a, b, c = T.axis.remap("SSS", [i0, i1, i2])
                        powers[a, b, c] = T.exp(data[a, b, c] - top[a, b, T.int64(0)])
                for i0, i1, i2, k in T.grid(T.int64(8), T.int64(64), T.int64(1), n):
                    with T.block("total"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k])
                        with T.init():
                            total[a, b, c] = T.float32(0.0)
                        total[a, b, c] = total[a, b, c] + powers[a, b, d]
                for i0, i1, i2 in T.grid(T.int64(8), T.int64(64), n):
                    with T.block("softmax"):
                        a, b, c = T.axis.remap("SSS", [i0, i1, i2])
                        softmax[a, b, c] = powers[a, b, c] * (T.float32(1.0) / total[a, b, T.int64(0)])

            @T.prim_func(private=True)
            def matmul1(
                x1: T.Buffer((T.int64(8), T.int64(64), n), "float32"),
                x2: T.Buffer((T.int64(8), n, T.int64(16)), "float32"),
                total: T.Buffer((T.int64(8), T.int64(64), T.int64(16)), "float32"),
            ):
                T.func_attr({"tir.noalias": True})
                for i0, i1, i2, k in T.grid(T.int64(8), T.int64(64), T.int64(16), n):
                    with T.block("total"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k])
                        with T.init():
                            total[a, b, c] = T.float32(0.0)
                        total[a, b, c] = total[a, b, c] + x1[a, b, d] * x2[a, d, c]

            @T.prim_func(private=True)
            def fused_matmul_softmax_matmul1(
                q: T.Buffer((T.int64(8), T.int64(64), T.int64(16)), "float32"),
                k: T.Buffer((T.int64(8), T.int64(16), n), "float32"),
                v: T.Buffer((T.int64(8), n, T.int64(16)), "float32"),
                y: T.Buffer((T.int64(8), T.int64(64), T.int64(16)), "float32"),
            ):
                T.func_attr({"tir.noalias": True})
                s = T.alloc_buffer((T.int64(8), T.int64(64), n), "float32")
                p = T.alloc_buffer((T.int64(8), T.int64(64), n), "float32")
                top = T.alloc_buffer((T.int64(8), T.int64(64), T.int64(1)), "float32")
                powers = T.alloc_buffer((T.int64(8), T.int64(64), n), "float32")
                total = T.alloc_buffer((T.int64(8), T.int64(64), T.int64(1)), "float32")
                for i0, i1, i2, k_1 in T.grid(T.int64(8), T.int64(64), n, T.int64(16)):
                    with T.block("total"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k_1])
                        with T.init():
                            s[a, b, c] = T.float32(0.0)
                        s[a, b, c] = s[a, b, c] + q[a, b, d] * k[a, d, c]
                for i0, i1, i2, k_1 in T.grid(T.int64(8), T.int64(64), T.int64(1), n):
                    with T.block("top"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k_1])
                        with T.init():
                            top[a, b, c] = T.float32("-inf")
                        top[a, b, c] = T.max(top[a, b, c], s[a, b, d])
                for i0, i1, i2 in T.grid(T.int64(8), T.int64(64), n):
                    with T.block("powers"):
                        a, b, c = T.axis.remap("SSS", [i0, i1, i2])
                        powers[a, b, c] = T.exp(s[a, b, c] - top[a, b, T.int64(0)])
                for i0, i1, i2, k_1 in T.grid(T.int64(8), T.int64(64), T.int64(1), n):
                    with T.block("total"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k_1])
                        with T.init():
                            total[a, b, c] = T.float32(0.0)
                        total[a, b, c] = total[a, b, c] + powers[a, b, d]
                for i0, i1, i2 in T.grid(T.int64(8), T.int64(64), n):
                    with T.block("softmax"):
                        a, b, c = T.axis.remap("SSS", [i0, i1, i2])
                        p[a, b, c] = powers[a, b, c] * (T.float32(1.0) / total[a, b, T.int64(0)])
                for i0, i1, i2, k_1 in T.grid(T.int64(8), T.int64(64), T.int64(16), n):
                    with T.block("total"):
                        a, b, c, d = T.axis.remap("SSSR", [i0, i1, i2, k_1])
                        with T.init():
                            y[a, b, c] = T.float32(0.0)
                        y[a, b, c] = y[a, b, c] + p[a, b, d] * v[a, d, c]
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return _Joiner(mod, ctx).joined()


class _Joiner(Joiner):
    def __init__(self, mod: IRModule, ctx: PassContext) -> None:
        super().__init__(mod, ctx)
        self.answers: dict[int, list[tuple[relax.Function, bool]]] = {}

    @on(relax.DataflowBlock)
    def dataflow_block(self, node: relax.DataflowBlock) -> relax.DataflowBlock:
        """A dataflow block: which contractions read, through rows, what another one computes?"""
        bindings: dict[relax.Expr, relax.VarBinding] = {}
        joined: dict[relax.Binding, relax.Binding | None] = {}
        for binding in node.bindings:
            found = self.kernels.kernel(binding.value)
            if found is None or not isinstance(binding, relax.VarBinding) or self._written(binding):
                continue
            if self.kernels.kind(*found) is OpPattern.OUT_EWISE_FUSABLE:
                chain = self.chain(binding, bindings)
                if chain is not None and not any(one in joined for one in chain) and self.pays(chain):
                    joined.update(dict.fromkeys(chain))
                    joined[binding] = self.outlined(chain)
                    continue
            if isinstance(binding.var, relax.DataflowVar) and self.uses[binding.var] == 1:
                bindings[binding.var] = binding
        kept = (joined.get(b, b) for b in node.bindings)
        return node.replace(bindings=tuple(b for b in kept if b is not None)) if joined else node

    def _written(self, binding: relax.VarBinding) -> bool:
        return bool(self.written & {binding.var, *_args(binding)})

    def chain(
        self, last: relax.VarBinding, bindings: dict[relax.Expr, relax.VarBinding]
    ) -> list[relax.VarBinding] | None:
        """The kernels from a contraction to the one that reads its result, in order; None when there is none."""
        for arg in _args(last):
            made = [last]
            while arg in bindings and len(made) < LONGEST:
                binding = bindings[arg]
                found = self.kernels.kernel(binding.value)
                assert found is not None
                kind = self.kernels.kind(*found)
                made.insert(0, binding)
                if kind is OpPattern.OUT_EWISE_FUSABLE and len(made) > 2:
                    return made
                before = [a for a in _args(binding) if a in bindings]
                if kind not in _BETWEEN or len(before) != 1 or self.kernels.is_view(*found):
                    break
                arg = before[0]
        return None

    def pays(self, chain: list[relax.VarBinding]) -> bool:
        """Whether the kernels, as one, are computed in pieces: one answer for all layers of a model that are alike."""
        if _is_short(chain[0].var.struct_info):
            return False
        func, _ = outline(chain)
        known = self.answers.setdefault(structural_hash(func), [])
        for other, answer in known:
            if structural_equal(other, func):
                return answer
        known.append((func, self._takes_pieces(func)))
        return known[-1][1]

    def _takes_pieces(self, func: relax.Function) -> bool:
        name = self.mod.unique_name("chain")
        made = FuseTIR().run(self.mod.with_functions({**dict(self.mod.prim_funcs()), name: func}), self.ctx)
        kernel = made.functions.get(name)
        return isinstance(kernel, PrimFunc) and takes_pieces(kernel)


def _is_short(scores: StructInfo | None) -> bool:
    """Whether a result is known to have no dimension that is long enough for pieces of its lines."""
    dims = scores.dims if isinstance(scores, TensorStructInfo) else None
    return dims is not None and all(isinstance(d, IntImm) and d.value <= FEWEST_COLUMNS for d in dims)


_BETWEEN = (OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.COMM_REDUCE)


def _args(binding: relax.VarBinding) -> tuple[relax.Expr, ...]:
    call = binding.value
    return call.args[1].fields if isinstance(call, relax.Call) and isinstance(call.args[1], relax.Tuple) else ()
