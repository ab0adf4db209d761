"""The intrinsics of TensorIR: every name that `prim.Call` may carry, with its arity and the type of its result.

The names are those after `T.`; parser, printer, interpreter and code generation read this one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from relaxlang.base.dtype import DType, dtype
from relaxlang.base.node import Node, node
from relaxlang.ir import prim

# "same": the type of the first argument; "bool"; "int32"; "handle"; "void"; "explicit": stated by the call, before its
# arguments; "last": stated behind them.
ResultRule = Literal["same", "bool", "int32", "handle", "void", "explicit", "second", "last"]


@node
class Intrinsic(Node):
    """An intrinsic: `arity` (-1: any number), the rule for its `result`, whether it is `pure`, the types it accepts."""

    name: str
    arity: int
    result: ResultRule = "same"
    pure: bool = True
    accepts: Literal["any", "float", "integer", "number"] = "any"


def _table(*rows: Intrinsic) -> dict[str, Intrinsic]:
    return {row.name: row for row in rows}


_FLOAT_1 = (
    "exp exp2 exp10 erf normcdf tanh sigmoid log log2 log10 log1p tan cos cosh sin sinh asin acos atan asinh acosh "
    "atanh sqrt rsqrt"
).split()
_ROUNDING = "floor ceil trunc round nearbyint".split()
_FLOAT_2 = "atan2 hypot copysign nextafter fmod".split()

_HOST = (
    # What TVM lowers host code to: its argument structs, stack, packed calls and workspaces. Nothing here runs them.
    Intrinsic("tvm_struct_get", 3, "last", pure=False),
    Intrinsic("tvm_struct_set", 4, "int32", pure=False),
    Intrinsic("tvm_stack_alloca", 2, "handle", pure=False),
    Intrinsic("tvm_stack_make_shape", -1, "handle"),
    Intrinsic("tvm_stack_make_array", 6, "handle"),
    Intrinsic("tvm_tuple", -1, "handle"),
    Intrinsic("tvm_static_handle", 0, "handle", pure=False),
    Intrinsic("tvm_context_id", 0, "handle", pure=False),
    Intrinsic("tvm_throw_last_error", 0, "handle", pure=False),
    Intrinsic("tvm_check_return", 3, "int32", pure=False),
    Intrinsic("tvm_call_trace_packed", -1, "int32", pure=False),
    Intrinsic("tvm_call_packed_lowered", -1, "int32", pure=False),
    Intrinsic("tvm_call_cpacked_lowered", -1, "int32", pure=False),
    Intrinsic("call_packed_lowered", -1, "int32", pure=False),
    Intrinsic("call_cpacked_lowered", -1, "int32", pure=False),
    Intrinsic("call_intrin", -1, "explicit", pure=False),
    Intrinsic("call_pure_intrin", -1, "explicit"),
    Intrinsic("anylist_getitem", 2, "handle"),
    Intrinsic("anylist_resetitem", 2, "int32", pure=False),
    Intrinsic("anylist_setitem_call_packed", -1, "int32", pure=False),
    Intrinsic("anylist_setitem_call_cpacked", -1, "int32", pure=False),
    Intrinsic("lookup_param", 1, "handle"),
    Intrinsic("handle_add_byte_offset", 2, "handle"),
    Intrinsic("TVMBackendAllocWorkspace", 5, "handle", pure=False),
    Intrinsic("TVMBackendFreeWorkspace", 3, "int32", pure=False),
    Intrinsic("start_profile_intrinsic", 1, "handle", pure=False),
    Intrinsic("end_profile_intrinsic", 1, "handle", pure=False),
    # Marks for passes and back ends.
    Intrinsic("type_annotation", 0, "explicit"),
    Intrinsic("tvm_thread_invariant", 1),
    Intrinsic("ignore_loop_partition", 1),
    Intrinsic("llvm_lookup_intrinsic_id", 1, "int32"),
    # Operations of processors that no kernel of relaxlang needs.
    Intrinsic("q_multiply_shift_per_axis", 7, "int32"),
    Intrinsic("get_active_lane_mask", 2, "explicit"),
    Intrinsic("vectorlow", 1, "explicit"),
    Intrinsic("vectorhigh", 1, "explicit"),
    Intrinsic("vectorcombine", 2, "explicit"),
    Intrinsic("dma_copy", 5, "int32", pure=False),
    Intrinsic("dma_wait", 2, "int32", pure=False),
    Intrinsic("dma_start_group", 1, "int32", pure=False),
    Intrinsic("dma_end_group", 1, "int32", pure=False),
)

INTRINSICS: dict[str, Intrinsic] = _table(
    *(Intrinsic(n, 1, accepts="float") for n in _FLOAT_1),
    *(Intrinsic(n, 1, accepts="number") for n in _ROUNDING),
    *(Intrinsic(n, 2, accepts="float") for n in _FLOAT_2),
    Intrinsic("pow", 2, accepts="number"),
    Intrinsic("ldexp", 2, accepts="float"),
    Intrinsic("fma", 3, accepts="float"),
    Intrinsic("abs", 1, accepts="number"),
    Intrinsic("popcount", 1, accepts="integer"),
    Intrinsic("clz", 1, "int32", accepts="integer"),
    Intrinsic("isnan", 1, "bool"),
    Intrinsic("isfinite", 1, "bool"),
    Intrinsic("isinf", 1, "bool"),
    Intrinsic("bitwise_and", 2),
    Intrinsic("bitwise_or", 2),
    Intrinsic("bitwise_xor", 2),
    Intrinsic("bitwise_not", 1),
    Intrinsic("shift_left", 2, accepts="integer"),
    Intrinsic("shift_right", 2, accepts="integer"),
    Intrinsic("if_then_else", 3, "second"),
    Intrinsic("likely", 1),
    Intrinsic("reinterpret", 1, "explicit"),
    Intrinsic("infinity", 0, "explicit"),
    Intrinsic("min_value", 0, "explicit"),
    Intrinsic("max_value", 0, "explicit"),
    Intrinsic("q_multiply_shift", 4, "int32"),
    Intrinsic("dp4a", 3, "int32", accepts="integer"),
    Intrinsic("vscale", 0, "int32"),
    Intrinsic("ret", 1, "same", pure=False),
    Intrinsic("undef", 0, "explicit"),
    Intrinsic("assume", 1, "bool", pure=False),
    Intrinsic("address_of", 1, "handle"),
    Intrinsic("isnullptr", 1, "bool"),
    Intrinsic("call_extern", -1, "explicit", pure=False),
    Intrinsic("call_pure_extern", -1, "explicit"),
    Intrinsic("call_packed", -1, "int32", pure=False),
    Intrinsic("call_cpacked", -1, "int32", pure=False),
    Intrinsic("call_llvm_intrin", -1, "explicit", pure=False),
    Intrinsic("call_llvm_pure_intrin", -1, "explicit"),
    Intrinsic("tvm_access_ptr", 5, "handle", pure=False),
    Intrinsic("tvm_thread_allreduce", -1, "void", pure=False),
    Intrinsic("tvm_storage_sync", -1, "int32", pure=False),
    Intrinsic("print", -1, "void", pure=False),
    *_HOST,
)

COORDINATES: frozenset[str] = frozenset(
    """
    cta_id cta_id_in_cluster cta_id_in_pair cluster_id thread_id thread_id_in_wg warp_id warp_id_in_wg warpgroup_id
    lane_id
    """.split()
)
"""Calls that give where in its grid a GPU kernel's thread is: one int32 for each of the extents they are given."""

CARRIED: frozenset[str] = frozenset(
    """
    call_ffi_kernel call_kernel make_filled_simdgroup_matrix masked_load masked_store mem_copy mma_fill mma_store
    print_buffer ptx_arrive_barrier ptx_arrive_barrier_expect_tx ptx_commit_group ptx_cp_async ptx_cp_async_barrier
    ptx_cp_async_bulk ptx_init_barrier_thread_count ptx_ldg32 ptx_ldmatrix ptx_mma ptx_mma_sp ptx_wait_barrier
    ptx_wait_group create_barriers read_cache simdgroup_load simdgroup_multiply_accumulate simdgroup_store
    texture2d_load texture2d_store thread_return tvm_bmma_sync tvm_fill_fragment tvm_global_barrier_kinit
    tvm_load_matrix_sync tvm_mma_sync tvm_store_matrix_sync tvm_thread_context tvm_warp_activemask tvm_warp_shuffle
    tvm_warp_shuffle_down tvm_warp_shuffle_up check_return tvm_intrin_call nd_mem_alloc_with_scope prefetch
    TileLayout ComposeLayout SwizzleLayout S R device_entry hint tvm_warp_shuffle_xor filter selector ptr_byte_offset
    tensormap_encode_tiled tvm_kernel_replace_point cooperative_tensor_fill cooperative_tensor_load
    cooperative_tensor_multiply_accumulate cooperative_tensor_store
    """.split()
).union(COORDINATES)
"""Intrinsics of the languages for GPU kernels, which no back end here runs. They are read and printed as they are
written: the type of the result is `dtype=`, and a handle without it."""

TENSORMAP = DType("handle", 64, 1, "tensormap")
"""What `T.handle("tensormap")` points to: how a GPU copies blocks of a tensor. Nothing else has this type."""

CARRIED_NAMESPACES: frozenset[str] = frozenset(
    (
        "ptx ptx_legacy s_tir cuda metal nvshmem tile tmem thread warp wg warpgroup cta cluster cta_group smem "
        "simdgroup nki webgpu"
    ).split()
)
"""Namespaces below `T` of the languages for GPU kernels; what is in them is carried too, as `ptx.mma`."""


CARRIED_WITH = "carried.with"
"""The key of the attribute that `with Tx.compose_op():` is, for what it holds."""


def is_opaque(op: object) -> bool:
    """Whether the name of a call is that of one that is carried."""
    return isinstance(op, str) and op not in INTRINSICS


def is_view(layout: object) -> bool:
    """Whether the layout of a buffer says what other buffer it is made of, in the language of GPU kernels: its shape is
    not known then."""
    return isinstance(layout, prim.Call) and layout.op in ("carried.call", "carried.index", "carried.attribute")


def carried_type(name: str, args: Sequence[Any]) -> DType:
    """The type of a carried call that does not state it: its first argument, when that is the name of a dtype."""
    if name.startswith("tvm_warp_shuffle") and len(args) > 1 and isinstance(args[1], prim.PrimExpr):
        return args[1].dtype
    if name in COORDINATES:
        return dtype("int32")
    if name == "tvm_warp_activemask":
        return dtype("uint32")
    first = args[0] if args else None
    first = first.value if isinstance(first, prim.StringImm) else first
    if isinstance(first, (str, DType)):
        try:
            return dtype(first)
        except ValueError:
            return prim.HANDLE
    return prim.HANDLE
