"""Values at the prompt: the functions that make tensors, and how values are shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relaxlang.base.dtype import DType, dtype, from_numpy
from relaxlang.base.source import Span
from relaxlang.cli.arguments import load_arrays
from relaxlang.ir import prim
from relaxlang.ir.struct_info import (
    OBJECT,
    PrimStructInfo,
    StructInfo,
    TupleStructInfo,
    shape_info,
    tensor_info,
)
from relaxlang.runtime.ndarray import ShapeTuple, array, empty, numpy_dtype
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, as_dtype, describe, error
from relaxlang.syntax.elaborate.native import Native

MAX_ELEMENTS = 1 << 31
"""Elements of a tensor that is made at the prompt."""
SHOWN = 60
"""Elements of a tensor that is shown whole."""

MAKERS: dict[str, Native] = {}
"""The functions of the prompt that the language itself does not have."""

SUMMARIES = {
    "rand": "rand(2, 3, dtype=\"float32\", seed=None)   uniform in [-1, 1); integers from 0 to 9",
    "zeros": "zeros(2, 3, dtype=\"float32\")",
    "ones": "ones(2, 3, dtype=\"float32\")",
    "full": "full((2, 3), 0.5, dtype=\"float32\")",
    "arange": "arange(6), arange(1, 7, 2, dtype=\"float32\")",
    "array": "array([[1, 2], [3, 4]], dtype=\"float32\")",
    "load": "load(\"x.npy\"), load(\"weights.npz\", \"w1\"), load(\"weights.npz\")   the arrays by name",
    "shape": "shape(3, 4)   a value for a parameter of R.Shape",
}  # fmt: skip
"""How each of `MAKERS` is called."""


def _maker(function: Callable[..., Any]) -> Callable[..., Any]:
    name = function.__name__.strip("_")
    MAKERS[name] = Native(name, function)
    return function


def _dims(ev: Evaluator, node: tree.Call, given: tuple[Any, ...]) -> tuple[int, ...]:
    """Dimensions, one by one or as one tuple."""
    parts = list(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else list(given)
    dims = [p.value if isinstance(p, prim.IntImm) else p for p in parts]
    for dim in dims:
        if not isinstance(dim, int) or isinstance(dim, bool) or dim < 0:
            raise error("RLX7105", f"a dimension is a whole number from 0, not {describe(dim)}", node.span)
    if math.prod(dims) > MAX_ELEMENTS:
        raise error("RLX7105", f"a tensor of {math.prod(dims):,} elements is too large", node.span)
    return tuple(dims)


def _new(ev: Evaluator, node: tree.Call, shape: tuple[Any, ...], of: Any) -> Any:
    element = as_dtype(of, node.span)
    numpy_dtype(element)
    return empty(_dims(ev, node, shape), element)


@_maker
def _rand(ev: Any, node: tree.Call, *shape: Any, dtype: Any = "float32", seed: Any = None) -> Any:
    made = _new(ev, node, shape, dtype)
    rng = np.random.default_rng(ev.draw() if seed is None else seed)
    element = from_numpy(made.dtype)
    if element.is_bool:
        made[...] = rng.integers(0, 2, made.shape, np.uint8)
    elif element.is_integer:
        made[...] = rng.integers(0, 10, made.shape)
    else:
        made[...] = rng.uniform(-1, 1, made.shape).astype(made.dtype)
    return ev.leaf(made, "rand")


@_maker
def _zeros(ev: Any, node: tree.Call, *shape: Any, dtype: Any = "float32") -> Any:
    return _filled(ev, node, shape, 0, dtype, "zeros")


@_maker
def _ones(ev: Any, node: tree.Call, *shape: Any, dtype: Any = "float32") -> Any:
    return _filled(ev, node, shape, 1, dtype, "ones")


@_maker
def _full(ev: Any, node: tree.Call, shape: Any, value: Any, dtype: Any = "float32") -> Any:
    return _filled(ev, node, (shape,), _plain(value, node.span), dtype, "full")


def _filled(ev: Any, node: tree.Call, shape: tuple[Any, ...], value: Any, of: Any, name: str) -> Any:
    made = _new(ev, node, shape, of)
    if not isinstance(value, (bool, int, float)):
        raise error("RLX7105", f"a tensor is filled with a number, not {describe(value)}", node.span)
    made[...] = value
    return ev.leaf(made, name)


@_maker
def _arange(ev: Any, node: tree.Call, start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    numbers = [_plain(v, node.span) for v in ((0, start, step) if stop is None else (start, stop, step))]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise error("RLX7105", f"`arange` takes numbers, not {describe(number)}", node.span)
    first, end, by = numbers
    if by == 0 or not math.isfinite((end - first) / by) or (end - first) / by > MAX_ELEMENTS:
        raise error("RLX7105", f"`arange` from {first} to {end} by {by} has no end that can be reached", node.span)
    floats = any(isinstance(n, float) for n in numbers)
    of = as_dtype(dtype if dtype is not None else "float32" if floats else "int64", node.span)
    return ev.leaf(array(np.arange(first, end, by), of), "arange")


@_maker
def _array(ev: Any, node: tree.Call, value: Any, dtype: Any = None) -> Any:
    of = None if dtype is None else as_dtype(dtype, node.span)
    return ev.leaf(
        array(ev.concrete(value, node.span) if not _nested(value) else _plain(value, node.span), of), "array"
    )


@_maker
def _load(ev: Any, node: tree.Call, path: Any, name: Any = None) -> Any:
    if not isinstance(path, str):
        raise error("RLX7105", f"`load` takes the path of a file, not {describe(path)}", node.span)
    found = load_arrays(path, node.span)
    if not isinstance(found, Mapping):
        return ev.leaf(array(found), "load")
    if name is None:
        return {key: ev.leaf(value, key) for key, value in found.items()}
    if name not in found:
        has = ", ".join(f"`{n}`" for n in found)
        raise error("RLX7006", f"`{path}` has no array `{name}`", node.span, help=f"it has {has}")
    return ev.leaf(found[name], name)


@_maker
def _shape(ev: Any, node: tree.Call, *dims: Any) -> Any:
    return ev.leaf(ShapeTuple(_dims(ev, node, dims)), "shape")


def _nested(value: Any) -> bool:
    """Whether a value is numbers and lists of them alone."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (tuple, list)):
            waiting += part
        elif not isinstance(part, (bool, int, float, prim.IntImm, prim.FloatImm)):
            return False
    return True


def _plain(value: Any, span: Span | None) -> Any:
    """Numbers of the language as Python's, in lists too."""
    if isinstance(value, (tuple, list)):
        return [_plain(v, span) for v in value]
    return value.value if isinstance(value, (prim.IntImm, prim.FloatImm)) else value


# --- what a value is --------------------------------------------------------------------------------------------------
def info_of(value: Any) -> StructInfo:
    """The struct info of a value, with all its dimensions known."""
    if isinstance(value, np.ndarray):
        return tensor_info(tuple([prim.const(n, "int64") for n in value.shape]), from_numpy(value.dtype))
    if isinstance(value, ShapeTuple):
        return shape_info(tuple([prim.const(n, "int64") for n in value]))
    if isinstance(value, (tuple, list)):
        return TupleStructInfo(tuple([info_of(v) for v in value]))
    if isinstance(value, bool):
        return PrimStructInfo(dtype("bool"))
    if isinstance(value, (int, float)):
        return PrimStructInfo(dtype("int64" if isinstance(value, int) else "float64"))
    return OBJECT


def is_value(value: Any) -> bool:
    """Whether something can be an argument of a call at run time."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (tuple, list)) and not isinstance(part, ShapeTuple):
            waiting += part
        elif not isinstance(part, (np.ndarray, ShapeTuple, bool, int, float)):
            return False
    return True


def headline(value: Any) -> str:
    """What a value is, in the language's words."""
    if isinstance(value, Mapping):
        return f"{len(value)} arrays by name"
    info = info_of(value)
    return type(value).__name__ if info is OBJECT else str(info)


def shown(value: Any) -> str:
    """A value itself, on as many lines as it takes; large tensors with their edges alone."""
    if isinstance(value, np.ndarray):
        with np.printoptions(precision=4, threshold=SHOWN, linewidth=100, suppress=_is_moderate(value)):
            return str(np.asarray(value))
    if isinstance(value, Mapping):
        width = max((len(name) for name in value), default=0)
        return "\n".join(f"{name:{width}}  {headline(v)}" for name, v in value.items())
    if isinstance(value, ShapeTuple):
        return str(tuple(value))
    if isinstance(value, (tuple, list)) and any(isinstance(v, np.ndarray) for v in value):
        return "\n".join(f"[{i}] {headline(v)}\n{shown(v)}" for i, v in enumerate(value))
    if isinstance(value, DType):
        return str(value)
    return repr(value)


def _is_moderate(value: np.ndarray[Any, Any]) -> bool:
    """Whether four decimals show the numbers of a tensor well enough, the smallest ones as zero."""
    if value.dtype.kind != "f" or value.size == 0:
        return False
    with np.errstate(all="ignore"):
        most = float(np.max(np.abs(value)))
    return 0.01 <= most < 1e5
