"""Signatures of C functions as text, and how they are read.

    void(i32 M, i32 N, f32 alpha, f32[M, N] A, out f32[N] y)

A signature is the type of the result and the parameters, in C's order. A parameter is a type and

| | what the function gets | |
|---|---|---|
| `f32[M, 4] A` | a pointer to the elements | a tensor of the call, contiguous; dimensions are names or numbers |
| `out f32[M] y` | the same | a tensor that the function writes to; these come last in the call |
| `i32 101`, `f64 -0.5` | that number | |
| `i32 M`, `i64 2 * M + 1` | a sum of products | of numbers and names of tensors' dimensions |
| `f32 alpha` | a number of the call | for any other name |

Types: `i8` to `i64`, `u8` to `u64`, `f32`, `f64`, in tensors also `f16`, `bf16` and `bool`; `int` is the library's own
integer, which in a BLAS has 32 or 64 bits. The result is `void`; or a type, whose value a `call_packed` gets; or
`status`, a C `int` that is not 0 after a failure.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NoReturn, TypeAlias

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record

OWN_INTEGER = "int"
NUMBERS = {
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "f32": "float32", "f64": "float64",
}  # fmt: skip
"""The types of numbers, and their names as element types."""
ELEMENTS = {**NUMBERS, "f16": "float16", "bf16": "bfloat16", "bool": "bool"}
RESULTS = ("void", "status", *NUMBERS)

_PARAMETER = re.compile(r"\s*(?P<out>out\s)?\s*(?P<type>\w+)\s*(?:\[(?P<dims>[^\[\]]*)\])?\s*(?P<what>[^\[\]]*?)\s*$")
_NAME = re.compile(r"[A-Za-z_]\w*$")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$")


@record
class TensorParam:
    """A tensor: its element type (numpy's name) and dimensions; `output`: the function writes to it."""

    name: str
    dtype: str
    dims: tuple[int | str, ...]
    output: bool


@record
class NumberParam:
    """A number of the call, of a type of C."""

    name: str
    type: str


@record
class FixedParam:
    """A number that stands in the signature."""

    value: int | float
    type: str


@record
class SizeParam:
    """A sum of products of dimensions: each term is its factor and the names of its dimensions."""

    terms: tuple[tuple[int, tuple[str, ...]], ...]
    type: str
    text: str


CParam: TypeAlias = "TensorParam | NumberParam | FixedParam | SizeParam"


@record
class CSignature:
    """The result's type and the parameters of a C function."""

    result: str
    params: tuple[CParam, ...]

    def call_params(self) -> tuple[TensorParam | NumberParam, ...]:
        """What a call passes, in its order: inputs and numbers, then outputs."""
        given = [p for p in self.params if isinstance(p, (TensorParam, NumberParam))]
        return (*(p for p in given if not _is_output(p)), *(p for p in given if _is_output(p)))


def _is_output(param: CParam) -> bool:
    return isinstance(param, TensorParam) and param.output


@lru_cache(maxsize=256)
def parse_signature(text: str) -> CSignature:
    """The signature that a text states. RLX6037 for text that states none."""
    head, bracket, rest = text.partition("(")
    result = head.strip()
    if not bracket or not rest.rstrip().endswith(")"):
        _malformed(text, "it is a result and parameters in parentheses, as in `void(i32 N, f32[N] x, out f32[N] y)`")
    if result not in RESULTS:
        _malformed(text, f"the result is one of {', '.join(RESULTS)}, not `{result}`")
    inside = rest.rstrip()[:-1]
    parts = re.split(r",(?![^\[]*\])", inside) if inside.strip() else []
    found = [_read(text, part) for part in parts]
    dims = {d for p in found if isinstance(p, TensorParam) for d in p.dims if isinstance(d, str)}
    params = tuple(p if isinstance(p, TensorParam) else _number(text, *p, dims) for p in found)
    names = [p.name for p in params if isinstance(p, (TensorParam, NumberParam))]
    for name in names:
        if names.count(name) > 1 or name in dims:
            _malformed(text, f"`{name}` stands for two things")
    return CSignature(result, params)


def _read(text: str, part: str) -> TensorParam | tuple[str, str]:
    """A tensor, or the type and the words of another parameter."""
    match = _PARAMETER.match(part)
    if match is None or not match["what"]:
        _malformed(text, f"`{part.strip()}` is no parameter; one is a type and a name or number")
    kind, what = match["type"], match["what"]
    if match["dims"] is None:
        if match["out"]:
            _malformed(text, f"`{part.strip()}`: only tensors are written to")
        if kind not in NUMBERS and kind != OWN_INTEGER:
            _malformed(text, f"there is no type `{kind}`; types of numbers are {', '.join((*NUMBERS, OWN_INTEGER))}")
        return kind, what
    if kind not in ELEMENTS:
        _malformed(text, f"there is no element type `{kind}`; there are {', '.join(ELEMENTS)}")
    if not _NAME.match(what):
        _malformed(text, f"`{what}` is no name of a tensor")
    dims: list[int | str] = []
    for dim in match["dims"].split(",") if match["dims"].strip() else ():
        dim = dim.strip()
        if not dim.isdecimal() and not _NAME.match(dim):
            _malformed(text, f"the dimension `{dim}` of `{what}` is neither a name nor a number")
        dims.append(int(dim) if dim.isdecimal() else dim)
    return TensorParam(what, ELEMENTS[kind], tuple(dims), bool(match["out"]))


def _number(text: str, kind: str, what: str, dims: set[str]) -> CParam:
    """A parameter that is no tensor."""
    is_float = kind in ("f32", "f64")
    if _NUMBER.match(what):
        if is_float:
            return FixedParam(float(what), kind)
        if what.lstrip("+-").isdecimal():
            return FixedParam(int(what), kind)
        _malformed(text, f"`{what}` is no whole number, as `{kind}` needs")
    if _NAME.match(what) and what not in dims:
        return NumberParam(what, kind)
    if is_float:
        _malformed(text, f"a size such as `{what}` is passed as an integer, not as `{kind}`")
    terms: list[tuple[int, tuple[str, ...]]] = []
    for sign, product in re.findall(r"([+-]?)([^+-]+)", what):
        factor, names = (-1 if sign == "-" else 1), []
        for word in (w.strip() for w in product.split("*")):
            if word.isdecimal():
                factor *= int(word)
            elif word in dims:
                names.append(word)
            else:
                _malformed(text, f"`{word}` in `{what}` is neither a number nor a dimension of a tensor")
        terms.append((factor, tuple(names)))
    if not terms:
        _malformed(text, f"`{what}` is no size")
    return SizeParam(tuple(terms), kind, what)


def _malformed(text: str, why: str) -> NoReturn:
    fail(
        "RLX6037",
        f"the signature `{text}` can't be read: {why}",
        help="`help(relaxlang.register_c_function)` tells more",
    )
