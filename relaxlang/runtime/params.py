"""What a VM function expects of its arguments, read off the checks at its start, and conversion to it.

The checks themselves stand in the bytecode and raise the errors; conversion only brings Python's values into the form
that the machine works with: contiguous tensors, ShapeTuples, tuples, Python scalars. What it cannot convert it leaves
to the checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType, dtype
from relaxlang.base.record import fresh, record
from relaxlang.runtime import checks
from relaxlang.runtime.executable import Call, Constant, Executable, Immediate, Register, VMFunction
from relaxlang.runtime.ndarray import NDArray, ShapeTuple, array, as_tensor, is_tensor, numpy_dtype

MAX_TUPLE_DEPTH = 64
_PROLOGUE = {
    "vm.builtin.alloc_shape_heap",
    "vm.builtin.match_shape",
    "vm.builtin.match_prim_value",
    "vm.builtin.check_tensor_info",
    "vm.builtin.check_shape_info",
    "vm.builtin.check_prim_value_info",
    "vm.builtin.check_tuple_info",
    "vm.builtin.check_func_info",
    "vm.builtin.tuple_getitem",
}


@record(frozen=False)
class Expected:
    """What a parameter, or an element of a tuple parameter, must be: `kind` is tensor, shape, scalar, tuple or any."""

    kind: str = "any"
    dtype: DType | None = None
    ndim: int = -1
    elements: dict[int, Expected] = fresh(factory=dict)


def expectations(ex: Executable, function: VMFunction) -> list[Expected]:
    """One `Expected` per parameter, from the checks before the first instruction that is something else."""
    params = [Expected() for _ in function.params]
    places: dict[int, Expected] = dict(enumerate(params))
    for instruction in ex.code_of(function)[: prologue(ex, function)]:
        assert isinstance(instruction, Call)
        name = ex.functions[instruction.func].name
        args = instruction.args
        place = places.get(args[0].index) if args and isinstance(args[0], Register) else None
        if place is not None:
            values = [_literal(ex, a) for a in args]
            _note(place, name, values)
            if name == "vm.builtin.tuple_getitem" and isinstance(values[1], int):
                places[instruction.dst.index] = place.elements.setdefault(values[1], Expected())
                continue
        places.pop(instruction.dst.index, None)
    return params


def bind(name: str, params: Sequence[str], expected: Sequence[Expected], args: Sequence[Any]) -> list[Any]:
    """The arguments of a call from outside in the machine's form; RLX6001 when their number is not that of `params`."""
    if len(args) != len(params):
        checks.wrong_count(name, tuple(params), len(params), len(args))
    return [convert(a, e) for a, e in zip(args, expected, strict=False)]


def prologue(ex: Executable, function: VMFunction) -> int:
    """How many instructions a function begins with that only look at its arguments."""
    for at, instruction in enumerate(ex.code_of(function)):
        if not isinstance(instruction, Call) or ex.functions[instruction.func].name not in _PROLOGUE:
            return at
    return function.count


def _note(place: Expected, name: str, values: list[Any]) -> None:
    if name == "vm.builtin.check_tensor_info":
        place.kind, place.ndim, place.dtype = "tensor", values[1], values[2]
    elif name == "vm.builtin.check_shape_info":
        place.kind = "shape"
    elif name == "vm.builtin.check_prim_value_info":
        place.kind, place.dtype = "scalar", values[1]
    elif name == "vm.builtin.check_tuple_info":
        place.kind = "tuple"


def _literal(ex: Executable, arg: Any) -> Any:
    if isinstance(arg, Immediate):
        return arg.value
    return ex.constants[arg.index] if isinstance(arg, Constant) else None


def convert(value: Any, expected: Expected, depth: int = 0) -> Any:
    """`value` in the machine's form; unchanged when it does not fit. RLX6002 for tuples nested too deeply and for
    arrays of element types that the language lacks."""
    if depth > MAX_TUPLE_DEPTH:
        fail("RLX6002", f"an argument has tuples nested more than {MAX_TUPLE_DEPTH} deep")
    if expected.kind == "scalar":
        return _scalar(value, expected.dtype)
    if isinstance(value, np.ndarray):
        return as_tensor(value)
    if expected.kind == "shape" and isinstance(value, (tuple, list)):
        return _shape(value)
    if isinstance(value, ShapeTuple):
        return value
    if isinstance(value, (tuple, list)):
        rest = Expected()
        return tuple(convert(v, expected.elements.get(i, rest), depth + 1) for i, v in enumerate(value))
    if expected.kind == "tensor" and expected.ndim <= 0 and isinstance(value, (bool, int, float)):
        return _zero_d(value, expected.dtype)
    return as_tensor(value) if is_tensor(value) else value


def _shape(value: Any) -> Any:
    if all(isinstance(d, (int, np.integer)) and not isinstance(d, bool) for d in value):
        return ShapeTuple(value)
    return tuple(value)


def _scalar(value: Any, element: DType | None) -> Any:
    if isinstance(value, (np.ndarray, np.generic)) and value.ndim == 0:
        value = value.item()
    elif not isinstance(value, (bool, int, float)) and is_tensor(value):
        tensor = as_tensor(value)
        value = tensor.item() if tensor.ndim == 0 else tensor
    if element is not None and element.is_float and type(value) is int and abs(value) < 1 << 1023:
        return float(value)
    return value


def _zero_d(value: bool | int | float, element: DType | None) -> NDArray | bool | int | float:
    """A Python scalar as a 0-d tensor of the wanted dtype, when that loses nothing but a float's precision."""
    if element is None or not element.bits:
        return array(value)
    if element.is_bool != isinstance(value, bool) or (isinstance(value, float) and not element.is_float):
        return array(value)
    try:
        return array(np.asarray(value, numpy_dtype(element)), dtype(element))
    except OverflowError:
        return value
