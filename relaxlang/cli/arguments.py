"""The little language of `--arg`: `[NAME=]VALUE`.

VALUE  f32[2,3]=1,2,3,4,5,6      a tensor, row by row; brackets between the numbers may show the rows
       f32[2,3]=0                filled with one number
       i64=3   bool=true         a scalar
       shape[3,4]                a shape
       @x.npy  @x.npz:name       an array from a file
       @x.npz                    every array of the file, each for the parameter of its name
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import ALIASES, DType, dtype
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.runtime.ndarray import ShapeTuple, array, empty, numpy_dtype

_HEAD = re.compile(r"\s*([A-Za-z_]\w*)\s*(\[([^\]=]*)\])?\s*")
_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(?=@|[A-Za-z_]\w*\s*[\[=])")
_NUMBER = re.compile(r"[^\s,\[\]()]+")
_EXAMPLES = "for example `f32[2,2]=1,2,3,4`, `i64=3`, `shape[3,4]`, `@x.npy`, `@x.npz:name`"
_TRUTH = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}


class Argument(NamedTuple):
    """A value for a parameter: `name` is empty when it goes by position; `span` is its text.

    The value is an NDArray, a ShapeTuple, a Python scalar, or a mapping of arrays for the parameters of their names.
    """

    name: str
    value: Any
    span: Span


def read_argument(span: Span) -> Argument:
    """The argument that a text states. RLX7004 for a text that states none, RLX7006 for a file that cannot be used."""
    named = _NAMED.match(span.text)
    if named is None:
        return Argument("", _value(span), span)
    return Argument(named[1], _value(Span(span.source, span.start + named.end(), span.end)), span)


def read_file_argument(span: Span) -> Any:
    """The array of a text `@x.npy` or `@x.npz:name`, where the `@` may be missing; RLX7006 when there is none."""
    return _from_file(span, span.text.removeprefix("@"))


def _value(span: Span) -> Any:
    text = span.text
    if text.startswith("@"):
        return _from_file(span, text[1:])
    head = _HEAD.match(text)
    if head is None:
        fail("RLX7004", f"`{text}` is no argument", span, help=_EXAMPLES)
    word = Span(span.source, span.start + head.start(1), span.start + head.end(1))
    rest = Span(span.source, span.start + head.end(), span.end)
    dims = _dims(Span(span.source, span.start + head.start(3), span.start + head.end(3))) if head[2] else None
    if word.text == "shape":
        if dims is None or rest.text:
            fail("RLX7004", "a shape is written `shape[3,4]`", span)
        return ShapeTuple(dims)
    element = _element(word)
    if not rest.text.startswith("="):
        where = f"{word.text}{head[2] or ''}"
        fail("RLX7004", "the numbers are missing", span, label=f"write `{where}=…` after it", help=_EXAMPLES)
    return _numbers(Span(span.source, rest.start + 1, rest.end), element, dims)


def _element(word: Span) -> DType:
    try:
        element = dtype(word.text)
    except ValueError:
        near = did_you_mean(word.text, [*ALIASES, *ALIASES.values(), "shape"])
        fail("RLX7004", f"`{word.text}` is not a dtype", word, help=f"did you mean `{near}`?" if near else _EXAMPLES)
    numpy_dtype(element)
    return element


def _dims(span: Span) -> tuple[int, ...]:
    dims = []
    for part in span.text.split(",") if span.text.strip() else ():
        if not (part.strip().isascii() and part.strip().isdecimal() and len(part.strip()) <= 18):
            fail(
                "RLX7004", f"`{part.strip()}` is no dimension", span, help="dimensions are whole numbers, as in `[2,3]`"
            )
        dims.append(int(part))
    return tuple(dims)


def _numbers(span: Span, element: DType, dims: tuple[int, ...] | None) -> Any:
    """The tensor, or without `dims` the scalar, that a list of numbers states."""
    found = [Span(span.source, span.start + m.start(), span.start + m.end()) for m in _NUMBER.finditer(span.text)]
    values = [_number(word, element) for word in found]
    if dims is None:
        if len(values) != 1:
            help = f"a tensor states its shape: `{element}[{len(values)}]=…`" if values else ""
            fail("RLX7004", f"a scalar is one number, not {len(values)}", span, help=help)
        return values[0]
    count = math.prod(dims)
    if len(values) != count and len(values) != 1:
        shape = f"[{','.join(map(str, dims))}]"
        fail(
            "RLX7004",
            f"a tensor of shape {shape} has {count} elements, not {len(values)}",
            span,
            label=f"{len(values)} here",
        )
    made = empty(dims, element)
    if len(values) == 1:
        made[...] = values[0]
    else:
        made[...] = np.array(values, made.dtype).reshape(dims)
    return made


def _number(word: Span, element: DType) -> bool | int | float:
    text = word.text
    try:
        if element.is_bool:
            return _TRUTH[text]
        if element.is_float:
            return float(text)
        value = int(text, 0)
    except (KeyError, ValueError):
        fail("RLX7004", f"`{text}` is no {element}", word)
    low, high = (
        (-(1 << element.bits - 1), (1 << element.bits - 1) - 1) if element.is_int else (0, (1 << element.bits) - 1)
    )
    if not low <= value <= high:
        fail("RLX7004", f"`{text}` is out of range", word, label=f"{element} goes from {low} to {high}")
    return value


# --- files ------------------------------------------------------------------------------------------------------------
def _from_file(span: Span, text: str) -> Any:
    path, colon, name = text.rpartition(":")
    if not colon or not path.endswith(".npz"):
        path, name = text, ""
    loaded = load_arrays(path, span)
    if isinstance(loaded, np.ndarray):
        return array(loaded)
    if not name:
        return loaded
    if name not in loaded:
        near = did_you_mean(name, loaded)
        has = "it has " + ", ".join(f"`{n}`" for n in loaded)
        fail("RLX7006", f"`{path}` has no array `{name}`", span, help=f"did you mean `{near}`?" if near else has)
    return loaded[name]


def load_arrays(path: str, span: Span | None = None) -> np.ndarray[Any, Any] | Mapping[str, Any]:
    """The array in an `.npy` file, or the arrays in an `.npz` file by name; RLX7006 when it cannot be read.

    Files with Python objects are refused, so reading one runs no code.
    """
    from zipfile import BadZipFile

    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            return {name: array(loaded[name]) for name in loaded.files}
    except OSError as error:
        _unreadable(path, (error.strerror or str(error)).lower(), span)
    except (ValueError, EOFError, BadZipFile, MemoryError) as error:
        why = (
            "it holds Python objects"
            if "pickle" in str(error) and "Object" in str(error)
            else "it is no `.npy` or `.npz` file"
        )
        _unreadable(path, why, span)


def _unreadable(path: str, why: str, span: Span | None) -> NoReturn:
    fail("RLX7006", f"`{path}` cannot be read: {why}", span)


def source_of(text: str) -> Span:
    """A text of `--arg` with a place of its own."""
    return Span(Source("--arg", text), 0, len(text))
