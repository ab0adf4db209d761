"""The intrinsics of TensorIR: every name that `prim.Call` may carry, with its arity and the type of its result.

The names are those after `T.`; parser, printer, interpreter and code generation read this one table.
"""

from __future__ import annotations

from typing import Literal

from relaxlang.base.node import Node, node

# "same": the type of the first argument; "bool"; "int32"; "handle"; "void"; "explicit": stated by the call.
ResultRule = Literal["same", "bool", "int32", "handle", "void", "explicit", "second"]


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
    "exp exp2 exp10 erf tanh sigmoid log log2 log10 log1p tan cos cosh sin sinh asin acos atan asinh acosh atanh sqrt rsqrt"
).split()
_ROUNDING = "floor ceil trunc round nearbyint".split()
_FLOAT_2 = "atan2 hypot copysign nextafter fmod".split()

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
    Intrinsic("vscale", 0, "int32"),
    Intrinsic("ret", 1, "int32", pure=False),
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
)
