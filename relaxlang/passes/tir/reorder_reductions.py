"""ReorderReductions: a loop order in which reductions that nobody scheduled run along memory."""

from __future__ import annotations

from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import BufferLoad, IntImm, PrimExpr, Var
from relaxlang.ir.tir import BlockRealize, BufferStore, For, PrimFunc, Stmt
from relaxlang.ir.visit import Rewriter, free_vars, on, walk
from relaxlang.passes.base import PassContext, PrimFuncPass


@record
class ReorderReductions(PrimFuncPass):
    """`for i, j, k: C[i, j] += A[i, k] * B[k, j]` becomes `for i, k, j`.

    It applies to perfect nests of plain serial loops around one block whose reduction loops are innermost, when a
    reduction loop strides over memory and there is a spatial loop along which the output and all inputs are contiguous
    (or constant): that loop goes inside. The order in which each element accumulates stays.

    Before:

        @T.prim_func
        def f(A: T.Buffer((8, 32), "float32"), B: T.Buffer((32, 16), "float32"), C: T.Buffer((8, 16), "float32")):
            for i, j, k in T.grid(8, 16, 32):
                with T.block("matmul"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    After:

        @T.prim_func
        def f(A: T.Buffer((8, 32), "float32"), B: T.Buffer((32, 16), "float32"), C: T.Buffer((8, 16), "float32")):
            for i, k, j in T.grid(8, 32, 16):
                with T.block("matmul"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vi, vj] = T.float32(0.0)
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return reorder_reductions(func)


def reorder_reductions(func: PrimFunc) -> PrimFunc:
    """The function with better loop orders."""
    return func.replace(body=_Reorder()(func.body))


class _Reorder(Rewriter):
    @on(For)
    def loop(self, node: For) -> Stmt:
        """The outermost loop of a nest."""
        loops, inner = [], node
        body: Stmt = node
        while isinstance(body, For) and body.kind == "serial" and not body.annotations:
            loops.append(body)
            body = body.body
        if isinstance(body, BlockRealize) and len(loops) > 1:
            order = _order(loops, body)
            if order is not None:
                made: Stmt = body
                for one in reversed(order):
                    made = one.replace(body=made)
                return made
        return self.below(inner)


def _order(loops: list[For], realize: BlockRealize) -> list[For] | None:
    """The better order of the loops, or None."""
    block, variables = realize.block, {s.loop_var for s in loops}
    kinds: dict[Var, str] = {}
    for axis, value in zip(block.iter_vars, realize.iter_values):
        if (
            not isinstance(value, Var)
            or value not in variables
            or value in kinds
            or axis.kind not in ("spatial", "reduce")
        ):
            return None
        kinds[value] = axis.kind
    if set(kinds) != variables or any(variables & set(free_vars((s.min, s.extent))) for s in loops):
        return None
    axes = {value: axis.var for axis, value in zip(block.iter_vars, realize.iter_values)}
    spatial = [s for s in loops if kinds[s.loop_var] == "spatial"]
    reduce = [s for s in loops if kinds[s.loop_var] == "reduce"]
    if loops != spatial + reduce or not reduce or block.init is None or not isinstance(block.body, BufferStore):
        return None
    accesses = [n for n in walk(block.body) if isinstance(n, BufferLoad)]
    if not any(_stride(a.indices, axes[s.loop_var]) == "strided" for a in accesses for s in reduce):
        return None
    for candidate in reversed(spatial):
        var = axes[candidate.loop_var]
        if isinstance(candidate.extent, IntImm) and candidate.extent.value < 4:
            continue
        if _stride(block.body.indices, var) == "unit" and all(_stride(a.indices, var) != "strided" for a in accesses):
            return [s for s in spatial if s is not candidate] + reduce + [candidate]
    return None


def _stride(indices: tuple[PrimExpr, ...], var: Var) -> str:
    """How an access moves through memory when `var` goes up by one: `none`, `unit` or `strided`."""
    uses = [var in free_vars(i) for i in indices]
    if not any(uses):
        return "none"
    return "unit" if not any(uses[:-1]) and _is_unit(indices[-1], var) else "strided"


def _is_unit(index: PrimExpr, var: Var) -> bool:
    """Whether an index is `var` plus what does not depend on it."""
    while isinstance(index, prim.Add):
        left = var in free_vars(index.a)
        if left and var in free_vars(index.b):
            return False
        index = index.a if left else index.b
    return index is var
