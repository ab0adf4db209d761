"""Which release of TVM knows which name: what `syntax.spellings` cannot rename, because there is nothing it became.

A row names the first release that has the name and the first that has it no more; None where it was always there, or
still is. The names are those that the printer writes for that release.
"""

from __future__ import annotations

from typing import NamedTuple

from relaxlang.syntax.spellings import at_least


class Life(NamedTuple):
    """From which release on a name exists, and from which on no more; `instead` says what to do."""

    since: str | None = None
    until: str | None = None
    instead: str = ""

    def covers(self, dialect: str) -> bool:
        """Whether a release knows the name."""
        early = self.since is not None and not at_least(dialect, self.since)
        return not early and not (self.until is not None and at_least(dialect, self.until))

    def text(self, name: str) -> str:
        """`T.allocate` went away with TVM 0.24."""
        if self == NEVER:
            return f"no release of TVM has `{name}`"
        parts = [f"came with {_shown(self.since)}"] if self.since else []
        parts += [f"went away with {_shown(self.until)}"] if self.until else []
        return f"`{name}` " + " and ".join(parts)


NEVER = Life("tvm-0.27", "tvm-0.10")


def _shown(release: str) -> str:
    return "TVM " + release.removeprefix("tvm-")


_ROWS: tuple[tuple[Life, str], ...] = (
    # I
    (Life("tvm-0.15"), "I.module_global_infos I.vdevice I.dummy_global_info"),
    (Life("tvm-0.22"), "I.pyfunc R.call_py_func"),
    (Life("tvm-0.26"), "I.meta_var"),
    (NEVER, "I.array I.param I.include R.op R.grad"),
    # R: Relax itself was on a branch of its own before
    (Life("tvm-0.16"), "R"),
    (Life("tvm-0.17"), "R.multinomial_from_uniform"),
    (Life("tvm-0.18"), "R.left_shift R.right_shift R.rewriter R.scatter_nd"),
    (Life("tvm-0.19"), "R.eye R.eye_like R.floor_mod R.gather_elements R.gather_nd R.mod R.one_hot"),
    (Life("tvm-0.21"), "R.bucketize R.hamming_window R.index_put R.index_tensor R.log_add_exp R.meshgrid R.outer "
     "R.slice_scatter R.stack R.trunc"),
    (Life(None, "tvm-0.21"), "R.gpu"),
    (Life("tvm-0.22"), "R.vision"),
    (Life("tvm-0.23"), "R.median R.nonzero R.size"),
    (Life("tvm-0.24"), "R.atan2"),
    (Life("tvm-0.26"), "R.reverse_sequence"),
    # T: memory
    (Life(None, "tvm-0.24", "allocate with `T.alloc_buffer` in a block"), "T.allocate T.allocate_const"),
    (Life(None, "tvm-0.24"), "T.realize"),
    (Life(None, "tvm-0.12", "index a buffer"), "T.load T.store T.prefetch"),
    (Life(None, "tvm-0.11"), "T.preflattened_buffer"),
    (Life(None, "tvm-0.26", "declare it as a plain variable"), "T.SizeVar"),
    # T: control
    (Life("tvm-0.22"), "T.break_loop T.continue_loop break continue"),
    (Life(None, "tvm-0.25", "end the function with `return`"), "T.ret"),
    (Life("tvm-0.25"), "return"),
    # T: expressions
    (Life("tvm-0.16"), "T.vscale"),
    (Life("tvm-0.17", "tvm-0.25"), "T.simdgroup_load T.simdgroup_store T.simdgroup_multiply_accumulate "
     "T.make_filled_simdgroup_matrix"),
    (Life(None, "tvm-0.25", "there are `T.ptx.…` functions"),
     "T.ptx_arrive_barrier T.ptx_arrive_barrier_expect_tx T.ptx_commit_group T.ptx_cp_async T.ptx_cp_async_barrier "
     "T.ptx_cp_async_bulk T.ptx_init_barrier_thread_count T.ptx_ldg32 T.ptx_ldmatrix T.ptx_mma T.ptx_mma_sp "
     "T.ptx_wait_barrier T.ptx_wait_group T.create_barriers T.mma_fill T.mma_store"),
    (Life("tvm-0.25"), "T.ptx T.cuda T.nki T.tile T.tmem T.smem T.warp T.warpgroup T.cluster T.cta_group Tx T.cta T.wg "
     "T.thread T.filter T.selector T.ptr_byte_offset"),
    (Life("tvm-0.16", "tvm-0.20"), "T.e4m3_float8 T.e5m2_float8"),
    (Life("tvm-0.20"), "T.float8_e4m3fn T.float8_e5m2"),
    (Life(None, "tvm-0.27"), "T.texture2d_load T.texture2d_store T.mem_copy T.dma_copy T.dma_wait T.dma_start_group "
     "T.dma_end_group T.nd_mem_alloc_with_scope T.tvm_call_trace_packed T.tvm_check_return T.tvm_context_id "
     "T.tvm_static_handle T.tvm_thread_context T.tvm_intrin_call T.call_pure_intrin"),
)  # fmt: skip

LIVES: dict[str, Life] = {name: life for life, names in _ROWS for name in names.split()}
"""The lives of names; of a dotted one all prefixes count, so that `R` is the life of all of Relax."""

KEYWORDS: dict[tuple[str, str], Life] = {
    **{(f"T.{loop}", "step"): Life("tvm-0.23") for loop in ("serial", "parallel", "vectorized", "unroll")},
    ("R.call_tir", "tir_vars"): Life(None, "tvm-0.27", "pass the values as arguments of the kernel"),
    ("R.Prim", "value"): Life(None, "tvm-0.27", "only its dtype can be said"),
}  # fmt: skip
"""The lives of keyword arguments of functions."""
