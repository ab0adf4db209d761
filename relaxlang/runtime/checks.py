"""The errors that argument checks raise: one place for their words, used by the VM's builtins and by direct kernel
calls.

A *context* is the text that says what is checked: `err_ctx("parameter `x` of `main`", 'R.Tensor((n, 4), "float32")')`
gives "parameter `x` of `main`: R.Tensor((n, 4), \\"float32\\")". The names of dimensions in a message come from the
annotation.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.runtime.ndarray import ShapeTuple, dtype_name, shape_text

_SHAPE = re.compile(r"\b(?:Tensor|Shape|Buffer)\(\s*([(\[])")


def err_ctx(place: str, annotation: str = "") -> str:
    """The context of a check: `place` says what is checked (without `: `), `annotation` the struct info as text."""
    return f"{place}: {annotation}" if annotation else place


def wrong_count(function: str, params: tuple[str, ...] | None, expected: int, given: int) -> NoReturn:
    """Raise RLX6001: a function was called with the wrong number of arguments."""
    noun = "argument" if expected == 1 else "arguments"
    names = f" ({', '.join(params)})" if params else ""
    fail("RLX6001", f"`{function}` takes {expected} {noun}{names}, got {given}")


def wrong_kind(context: str, expected: str, given: Any) -> NoReturn:
    """Raise RLX6002: a value of another kind (`expected`: `a tensor`, `a shape of rank 2`)."""
    place, notes = _split(context)
    fail("RLX6002", f"{place}: expected {expected}, got {describe(given)}", notes=notes)


def wrong_dtype(context: str, expected: str, given: Any) -> NoReturn:
    """Raise RLX6003: the dtype differs."""
    place, notes = _split(context)
    fail("RLX6003", f"{place}: expected dtype {expected}, got {describe(given)}", notes=notes)


def wrong_rank(context: str, expected: int, given: Any) -> NoReturn:
    """Raise RLX6004: the number of dimensions differs."""
    place, notes = _split(context)
    noun = "dimension" if expected == 1 else "dimensions"
    rank = len(given) if isinstance(given, tuple) else given.ndim
    fail("RLX6004", f"{place}: expected {expected} {noun}, got {rank} ({describe(given)})", notes=notes)


def wrong_dim(context: str, axis: int, expected: int, given: Any, name: str | None = None) -> NoReturn:
    """Raise RLX6005: dimension `axis` of a tensor or shape differs; `name` is its symbolic name or expression (default:
    what the context's annotation says)."""
    place, notes = _split(context)
    shape = given if isinstance(given, tuple) else given.shape
    name = name or dim_name(context, axis)
    shown = str(expected) if name is None or name == str(expected) else f"`{name}` = {expected}"
    fail("RLX6005", f"{place}: dimension {axis} is {shape[axis]}, expected {shown} ({describe(given)})", notes=notes)


def wrong_value(context: str, expected: int, given: int) -> NoReturn:
    """Raise RLX6005: a scalar argument differs from the value that it must have."""
    place, notes = _split(context)
    fail("RLX6005", f"{place}: expected the value {expected}, got {given}", notes=notes)


def check_bounds(name: str, value: int, low: int | None, high: int | None, place: str) -> None:
    """Require `low <= value <= high` (None: no bound) of a symbolic dimension; RLX6036 otherwise."""
    if low is not None and value < low:
        fail("RLX6036", f"{place}: `{name}` = {value}, expected at least {low}")
    if high is not None and value > high:
        fail("RLX6036", f"{place}: `{name}` = {value}, expected at most {high}")


def wrong_reshape(dtype: str, had: tuple[int, ...], wanted: tuple[int, ...]) -> NoReturn:
    """Raise RLX6018: a tensor cannot have another shape because the number of elements differs."""
    tensor = _tensor_text(dtype, had)
    fail("RLX6018", f"cannot reshape {tensor} to {wanted}: the number of elements differs")


def describe(value: Any) -> str:
    """A value in a few words: `a float32 tensor of shape (2, 3)`, `the int 5`, `a tuple of 2`, `None`."""
    if isinstance(value, np.ndarray):
        return _tensor_text(dtype_name(value.dtype), value.shape)
    if isinstance(value, ShapeTuple):
        return f"the shape {shape_text(value)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float)):
        return f"the {type(value).__name__} {value}"
    return f"`{type(value).__name__}`"


def _tensor_text(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{'an' if dtype[0] == 'i' else 'a'} {dtype} tensor of shape {shape_text(shape)}"


def dim_name(context: str, axis: int) -> str | None:
    """The text of dimension `axis` in the context's annotation (`n`, `n * 2`, `4`), None when it has none."""
    found = _SHAPE.search(context)
    if not found:
        return None
    depth, part, parts = 0, "", []
    for char in context[found.end() :]:
        if depth == 0 and char in ")],":
            parts.append(part.strip())
            part = ""
            if char != ",":
                break
            continue
        depth += (char in "([") - (char in ")]")
        part += char
    return parts[axis] if axis < len(parts) and parts[axis] else None


def _split(context: str) -> tuple[str, tuple[str, ...]]:
    place, _, annotation = context.partition(": ")
    return place or "value", (f"declared as {annotation}",) if annotation else ()


_HOLE = re.compile(r"\{\{|\}\}|\{(\d*)\}")


def value_text(value: Any) -> str:
    """A run-time value as `R.print` shows it."""
    if isinstance(value, np.ndarray):
        return str(value)
    return str(tuple(value)) if isinstance(value, ShapeTuple) else str(value)


def substitute(text: str, values: tuple[Any, ...]) -> str:
    """`text` with each `{}` replaced by the next value, `{2}` by value 2, and doubled braces by single ones.

    Only these forms exist, so that a program cannot reach into objects; RLX6018 for a place without a value.
    """
    following = iter(range(len(values)))

    def fill(hole: re.Match[str]) -> str:
        if hole[0] in ("{{", "}}"):
            return hole[0][0]
        index = int(hole[1]) if hole[1] else next(following, len(values))
        if index >= len(values):
            fail("RLX6018", f"the format {text!r} needs more than {len(values)} values")
        return value_text(values[index])

    return _HOLE.sub(fill, text)
