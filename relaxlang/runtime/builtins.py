"""The builtins that lowered programs call: shapes, argument checks, memory, tuples and closures.

Names, argument orders and codes are those of TVM's virtual machine. A *shape heap* is a run of int64 values that
belongs to one call of one function: symbolic dimensions are stored in it, and kernels compute further ones there
(`shape_func(heap)`).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType
from relaxlang.runtime import checks
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.kernel_signature import scalar_fits
from relaxlang.runtime.memory import POOL, Storage, allocate
from relaxlang.runtime.ndarray import NDArray, ShapeTuple, dtype_name, numpy_dtype, tensor_on, wrap
from relaxlang.runtime.registry import register_func

if TYPE_CHECKING:
    from relaxlang.runtime.vm import VirtualMachine

Context = str
MAX_HEAP = 1 << 20


class MatchShapeCode(IntEnum):
    """What `match_shape` and `match_prim_value` do with a value; the second number is the operand `reg`."""

    ASSERT_EQUAL_TO_IMM = 0
    STORE_TO_HEAP = 1
    NO_OP = 2
    ASSERT_EQUAL_TO_LOAD = 3


class MakeShapeCode(IntEnum):
    """Where `make_shape` and `make_prim_value` take a value from: the operand itself or a place of the heap."""

    USE_IMM = 0
    LOAD_SHAPE = 1


BUILTINS: dict[str, Callable[..., Any]] = {}


def builtin(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a builtin: like a packed function, but called without the guard around users' code."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        BUILTINS[name] = function
        register_func(name, function)
        return function

    return enter


# Shapes


@builtin("vm.builtin.alloc_shape_heap")
def alloc_shape_heap(vm: VirtualMachine, size: int) -> Any:
    """A fresh shape heap of `size` zeros."""
    if not 0 <= size <= MAX_HEAP:
        fail("RLX6006", f"a shape heap of {size} values: the limit is {MAX_HEAP}")
    heap: Any = (ctypes.c_int64 * size)()
    heap._address = ctypes.addressof(heap)  # kernels take it as a buffer of this shape
    heap.shape = (size,)
    return heap


@builtin("vm.builtin.match_shape")
def match_shape(value: Any, heap: Any, ndim: int, *rest: Any) -> None:
    """Match the shape of a tensor, or a shape, with `ndim` pairs (code, reg), which the context follows.

    Raises RLX6004 or RLX6005 when they do not match.
    """
    shape = value if isinstance(value, tuple) else value.shape
    if len(shape) != ndim:
        checks.wrong_rank(rest[-1], ndim, value)
    at = 0
    for dim in shape:
        code = rest[at]
        reg = rest[at + 1]
        if code == 1:
            heap[reg] = dim
        elif code == 3:
            if heap[reg] != dim:
                checks.wrong_dim(rest[-1], at // 2, heap[reg], value)
        elif code == 0 and reg != dim:
            checks.wrong_dim(rest[-1], at // 2, reg, value)
        at += 2


@builtin("vm.builtin.make_shape")
def make_shape(heap: Any, ndim: int, *rest: int) -> ShapeTuple:
    """The shape of `ndim` pairs (code, reg)."""
    dims = [heap[rest[at + 1]] if rest[at] else rest[at + 1] for at in range(0, 2 * ndim, 2)]
    return tuple.__new__(ShapeTuple, dims)


@builtin("vm.builtin.match_prim_value")
def match_prim_value(value: int, heap: Any, code: int, reg: int, context: Context) -> None:
    """Match an integer like one dimension of `match_shape`."""
    if code == MatchShapeCode.STORE_TO_HEAP:
        heap[reg] = value
    elif code != MatchShapeCode.NO_OP:
        expected = reg if code == MatchShapeCode.ASSERT_EQUAL_TO_IMM else heap[reg]
        if expected != value:
            checks.wrong_value(context, expected, value)


@builtin("vm.builtin.make_prim_value")
def make_prim_value(heap: Any, code: int, reg: int) -> int:
    """An integer: the operand, or a place of the heap."""
    return int(heap[reg]) if code == MakeShapeCode.LOAD_SHAPE else reg


@builtin("vm.builtin.shape_of")
def shape_of(tensor: NDArray) -> ShapeTuple:
    """The shape of a tensor."""
    return tuple.__new__(ShapeTuple, tensor.shape)


@builtin("vm.builtin.tensor_to_shape")
def tensor_to_shape(tensor: NDArray) -> ShapeTuple:
    """A 1-D integer tensor as a shape; RLX6018 for any other tensor."""
    if tensor.ndim != 1 or tensor.dtype.kind not in "iu":
        fail("RLX6018", f"a shape is made of a 1-D integer tensor, not of {checks.describe(tensor)}")
    return ShapeTuple(tensor.tolist())


# Checks: each ends with the context that names function and parameter


@builtin("vm.builtin.check_tensor_info")
def check_tensor_info(value: Any, ndim: int, element: DType | None, context: Context = "value") -> None:
    """Require a tensor of `ndim` dimensions (-1: any) and of a dtype (None or void: any)."""
    if not isinstance(value, np.ndarray):
        checks.wrong_kind(context, "a tensor", value)
    if element is not None and element.bits and value.dtype != numpy_dtype(element):
        checks.wrong_dtype(context, element.name, value)
    if ndim >= 0 and value.ndim != ndim:
        checks.wrong_rank(context, ndim, value)


@builtin("vm.builtin.check_shape_info")
def check_shape_info(value: Any, ndim: int, context: Context = "value") -> None:
    """Require a shape of `ndim` dimensions (-1: any)."""
    if not isinstance(value, ShapeTuple):
        checks.wrong_kind(context, "a shape", value)
    if ndim >= 0 and len(value) != ndim:
        checks.wrong_rank(context, ndim, value)


@builtin("vm.builtin.check_prim_value_info")
def check_prim_value_info(value: Any, element: DType | None, context: Context = "value") -> None:
    """Require a scalar that fits a dtype (None or void: any)."""
    if not isinstance(value, (bool, int, float)):
        checks.wrong_kind(context, f"a scalar of dtype {element}" if element else "a scalar", value)
    if element is not None and element.bits and not scalar_fits(element.name, value):
        checks.wrong_dtype(context, element.name, value)


@builtin("vm.builtin.check_tuple_info")
def check_tuple_info(value: Any, size: int, context: Context = "value") -> None:
    """Require a tuple of `size` elements."""
    if not isinstance(value, tuple) or isinstance(value, ShapeTuple) or len(value) != size:
        checks.wrong_kind(context, f"a tuple of {size}", value)


@builtin("vm.builtin.check_shape_value")
def check_shape_value(value: Any, shape: ShapeTuple, context: Context = "value") -> None:
    """Require a tensor whose shape is that of a shape value."""
    if len(shape) != value.ndim:
        checks.wrong_rank(context, len(shape), value)
    for axis, (wanted, given) in enumerate(zip(shape, value.shape)):
        if wanted != given:
            checks.wrong_dim(context, axis, wanted, value)


@builtin("vm.builtin.check_bounds")
def check_bounds(heap: Any, reg: int, low: int, high: int, name: str, context: Context) -> None:
    """Require that a place of the heap, the dimension `name`, is between two bounds; `high` < `low`: no upper one."""
    checks.check_bounds(name, int(heap[reg]), low, None if high < low else high, context)


@builtin("vm.builtin.check_func_info")
def check_func_info(value: Any, context: Context = "value") -> None:
    """Require something that can be called."""
    if not callable(value):
        checks.wrong_kind(context, "a function", value)


# Memory


@builtin("vm.builtin.alloc_storage")
def alloc_storage(
    vm: VirtualMachine, shape: tuple[int, ...], device: int, element: DType, scope: str = "global"
) -> Storage:
    """Memory for `shape` elements of a dtype on the host (`device` and `scope` have no other choice yet)."""
    return allocate_shape(shape, element.itemsize)


def allocate_shape(shape: tuple[int, ...], itemsize: int) -> Storage:
    """Memory for a shape of elements of `itemsize` bytes; RLX6006 when it cannot be had."""
    return allocate(math.prod(shape) * itemsize)


@builtin("vm.builtin.alloc_tensor")
def alloc_tensor(storage: Storage, offset: int, shape: tuple[int, ...], element: DType, *device: int) -> NDArray:
    """A tensor that begins `offset` bytes into a storage; RLX6006 when it does not fit."""
    return tensor_on(storage, offset, shape, numpy_dtype(element))


@builtin("vm.builtin.reshape")
def reshape(tensor: NDArray, shape: tuple[int, ...]) -> NDArray:
    """The same data under another shape, without a copy; RLX6018 when the number of elements differs."""
    if math.prod(shape) != tensor.size or any(d < 0 for d in shape):
        checks.wrong_reshape(dtype_name(tensor.dtype), tensor.shape, tuple(shape))
    return wrap(tensor.reshape(shape))


@builtin("vm.builtin.copy")
def copy(value: Any) -> Any:
    """The value itself: a move from register to register."""
    return value


@builtin("vm.builtin.null_value")
def null_value() -> None:
    """None; written to a register, it lets go of what was there."""


@builtin("vm.builtin.to_device")
def to_device(tensor: NDArray, kind: int, index: int) -> NDArray:
    """The tensor on a device by DLPack's number of its kind: the host (1) has it already. RLX6016 for others."""
    if kind != 1:
        fail("RLX6016", f"there is no device of kind {kind}", help="this release runs on the CPU (kind 1) only")
    return tensor


@builtin("vm.builtin.memory_manager.clear")
def memory_manager_clear() -> None:
    """Give idle memory of the allocator back to the system."""
    POOL.clear()


# Tuples, branches, calls


@builtin("vm.builtin.make_tuple")
def make_tuple(*values: Any) -> tuple[Any, ...]:
    """A tuple."""
    return values


@builtin("vm.builtin.tuple_getitem")
def tuple_getitem(values: tuple[Any, ...], index: int) -> Any:
    """An element of a tuple; RLX6018 when there is none."""
    if not 0 <= index < len(values):
        fail("RLX6018", f"a tuple of {len(values)} has no element {index}")
    return values[index]


@builtin("vm.builtin.read_if_cond")
def read_if_cond(value: Any) -> bool:
    """A truth value from a scalar or a tensor of one element; RLX6018 for anything else."""
    if isinstance(value, np.ndarray):
        if value.size != 1:
            fail("RLX6018", f"a condition is a scalar or a tensor of one element, not {checks.describe(value)}")
    elif not isinstance(value, (bool, int)):
        fail("RLX6018", f"a condition is a scalar or a tensor of one element, not {checks.describe(value)}")
    return bool(value)


def _truncated(a: Any, b: Any) -> Any:
    """The quotient, towards zero where the operands are integers."""
    return np.divide(a, b) if a.dtype.kind not in "iu" else np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


_SCALAR_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": _truncated, "power": np.power,
    "floor_divide": np.floor_divide, "floor_mod": np.mod, "mod": np.fmod, "atan2": np.arctan2,
    "maximum": np.maximum, "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift, "right_shift": np.right_shift, "log_add_exp": np.logaddexp,
}  # fmt: skip


@builtin("vm.builtin.scalar_operation")
def scalar_operation(name: str, dtype: str, a: Any, b: Any) -> Any:
    """An operator on two scalars of a dtype, as a Python number; RLX6018 for one that scalars have not."""
    if name not in _SCALAR_OPERATIONS:
        fail("RLX6018", f"`R.{name}` has no meaning for scalars; make tensors of them")
    of = numpy_dtype(dtype).type
    with np.errstate(all="ignore"):
        return _SCALAR_OPERATIONS[name](of(a), of(b)).item()


@builtin("vm.builtin.make_closure")
def make_closure(function: Any, *captured: Any) -> Any:
    """A function with values that are added after the arguments of every call."""
    return function.capture(captured)


@builtin("vm.builtin.invoke_closure")
def invoke_closure(vm: VirtualMachine, closure: Any, *args: Any) -> Any:
    """Call a closure or any other callable. (The machine runs closures of its own without this function.)"""
    return vm.invoke_closure(closure, *args)


@builtin("vm.builtin.call_tir_dyn")
def call_tir_dyn(kernel: Kernel, *args: Any) -> None:
    """Call a kernel whose scalar parameters stand, as one shape, in the last argument."""
    kernel.run(*args[:-1], *args[-1])


# Operators that run as library calls


@builtin("relax.run.shape_to_tensor")
def shape_to_tensor(shape: tuple[int, ...]) -> NDArray:
    """A shape as a 1-D int64 tensor."""
    return wrap(np.array(shape, np.int64))


@builtin("relax.run.trim")
def trim(*filled: NDArray) -> Any:
    """Of each pair (values, shape) the first elements of the 1-D `values`, as a tensor of its own of that shape.

    Kernels whose result has a length that depends on the data fill a tensor of the greatest length and say in `shape`,
    a 1-D int64 tensor, how much of it counts. One pair gives a tensor, several a tuple. RLX6018 when a shape has more
    elements than there are values.
    """
    made = [_trimmed(values, tuple(shape.tolist())) for values, shape in zip(filled[::2], filled[1::2])]
    return made[0] if len(made) == 1 else tuple(made)


def _trimmed(values: NDArray, shape: tuple[int, ...]) -> NDArray:
    count = math.prod(shape)
    if values.ndim != 1 or any(d < 0 for d in shape) or count > values.size:
        fail("RLX6018", f"a tensor of shape {shape} can't be the first elements of {checks.describe(values)}")
    return wrap(np.array(values[:count]).reshape(shape))


@builtin("relax.run.print")
def print_values(text: str, *values: Any) -> None:
    """Print values: in the places of `{}` in `text`, or one after another when `text` is empty."""
    print(checks.substitute(text, values) if text else " ".join(checks.value_text(v) for v in values), flush=True)


@builtin("relax.run.assert_op")
def assert_op(condition: Any, text: str = "", *values: Any) -> None:
    """Raise RLX6009 with the formatted `text` unless a scalar or a 0-d bool tensor is true."""
    if isinstance(condition, np.ndarray) and (condition.ndim or dtype_name(condition.dtype) != "bool"):
        fail("RLX6018", f"an assertion needs a 0-d bool tensor or a scalar, not {checks.describe(condition)}")
    if not read_if_cond(condition):
        message = checks.substitute(text, values) if text else " ".join(checks.value_text(v) for v in values)
        fail("RLX6009", f"assertion failed: {message}" if message else "assertion failed")
