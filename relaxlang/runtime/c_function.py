"""C functions in shared libraries, called by programs under a name: `register_c_function`.

    relaxlang.register_c_function(
        "my.axpy", library="libm.so.6", symbol="fma", signature="f64(f64 a, f64 x, f64 y)")

A program that calls one carries its declaration, and so does the file it is exported to: where it is loaded, the
library is opened and the symbol looked up before anything runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relaxlang.base.arguments import checked
from relaxlang.base.diagnostics import fail
from relaxlang.base.fingerprint import note_addition
from relaxlang.runtime import checks
from relaxlang.runtime.c_signature import (
    NUMBERS,
    OWN_INTEGER,
    CParam,
    CSignature,
    FixedParam,
    NumberParam,
    SizeParam,
    TensorParam,
    parse_signature,
)
from relaxlang.runtime.executable import Declaration
from relaxlang.runtime.ndarray import dtype_name
from relaxlang.runtime.registry import LinkedFunction, register_func
from relaxlang.runtime.shared_library import Library, open_library

_C_TYPES: dict[str, Any] = {
    "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64, "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}  # fmt: skip


class CFunction(LinkedFunction):
    """A C function as programs call it: with tensors and numbers as its signature says. Immutable; `link` finds it."""

    def __init__(self, name: str, declaration: Declaration) -> None:
        """RLX6037 for a malformed signature."""
        self.name = name
        self.declaration = declaration
        self.signature: CSignature = parse_signature(declaration.signature)
        self._params = self.signature.call_params()
        self._call: Callable[..., Any] | None = None

    def link(self) -> None:
        """Open the library and find the symbol, unless that is done. RLX6038 when either is missing."""
        if self._call is not None:
            return
        library = open_library(self.declaration.library, f"the C function `{self.name}`")
        function = library.symbol(self.declaration.symbol, f"the C function `{self.name}`")
        result = self.signature.result
        types = [_c_type(p, library) for p in self.signature.params]
        restype = None if result == "void" else ctypes.c_int if result == "status" else _C_TYPES[result]
        self._limits = [_limits(p, library) for p in self.signature.params]
        self._call = ctypes.CFUNCTYPE(restype, *types)(function)

    def __call__(self, *args: Any) -> Any:
        """Call it. Raises RLX600x for arguments that do not fit the signature, RLX6015 for a read-only output, RLX6039
        when it reports a failure."""
        self.link()
        assert self._call is not None
        tensors, numbers, copies = self._bind(args)
        sizes = self._sizes(tensors)
        values: list[Any] = []
        for param, limits in zip(self.signature.params, self._limits, strict=True):
            if isinstance(param, TensorParam):
                values.append(_address(tensors[param.name]))
            else:
                values.append(self._number(param, sizes, numbers, limits))
        result = self._call(*values)
        for target, computed in copies:
            np.copyto(target, computed)
        if self.signature.result == "status":
            if result:
                fail("RLX6039", f"the C function `{self.name}` failed: `{self.declaration.symbol}` returned {result}")
            return None
        return result

    def _bind(
        self, args: Sequence[Any]
    ) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, int | float], list[tuple[Any, Any]]]:
        """The tensors and numbers of a call by name, and outputs to be copied to where the caller has them."""
        if len(args) != len(self._params):
            checks.wrong_count(self.name, tuple(p.name for p in self._params), len(self._params), len(args))
        tensors: dict[str, np.ndarray[Any, Any]] = {}
        numbers: dict[str, int | float] = {}
        copies: list[tuple[Any, Any]] = []
        for param, arg in zip(self._params, args, strict=True):
            if isinstance(param, NumberParam):
                numbers[param.name] = self._given_number(param, arg)
                continue
            if not isinstance(arg, np.ndarray):
                checks.wrong_kind(self._place(param), "a tensor", arg)
            if dtype_name(arg.dtype) != param.dtype:
                checks.wrong_dtype(self._place(param), param.dtype, arg)
            if arg.ndim != len(param.dims):
                checks.wrong_rank(self._place(param), len(param.dims), arg)
            if param.output and not arg.flags.writeable:
                fail("RLX6015", f"{self._place(param)} is written to, and the array is read-only")
            plain = arg if arg.flags.c_contiguous else arg.copy(order="C")
            if param.output and plain is not arg:
                copies.append((arg, plain))
            tensors[param.name] = plain
        return tensors, numbers, copies

    def _sizes(self, tensors: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, int]:
        """The dimensions by name; RLX6005 where two differ."""
        sizes: dict[str, int] = {}
        for param in self._params:
            if not isinstance(param, TensorParam):
                continue
            tensor = tensors[param.name]
            for axis, (dim, size) in enumerate(zip(param.dims, tensor.shape)):
                expected = dim if isinstance(dim, int) else sizes.setdefault(dim, size)
                if expected != size:
                    checks.wrong_dim(self._place(param), axis, expected, tensor, str(dim))
        return sizes

    def _place(self, param: TensorParam | NumberParam) -> str:
        return f"parameter `{param.name}` of the C function `{self.name}`"

    def _given_number(self, param: NumberParam, arg: Any) -> int | float:
        if isinstance(arg, (bool, int, float, np.generic)) and (
            param.type in ("f32", "f64") or isinstance(arg, (bool, int, np.integer))
        ):
            return float(arg) if param.type in ("f32", "f64") else int(arg)
        checks.wrong_kind(self._place(param), f"a number of type `{param.type}`", arg)

    def _number(
        self,
        param: CParam,
        sizes: Mapping[str, int],
        numbers: Mapping[str, int | float],
        limits: tuple[int, int] | None,
    ) -> int | float:
        """What is passed for a parameter that is no tensor; RLX6018 when its type is too small for it."""
        assert not isinstance(param, TensorParam)
        if isinstance(param, SizeParam):
            value: int | float = sum(_product(factor, names, sizes) for factor, names in param.terms)
            what = param.text
        elif isinstance(param, NumberParam):
            value, what = numbers[param.name], param.name
        else:
            return param.value
        if limits is not None and not limits[0] <= value <= limits[1]:
            fail("RLX6018", f"`{what}` = {value} does not fit the type `{param.type}` of the C function `{self.name}`")
        return value

    def __repr__(self) -> str:
        return f"<C function {self.declaration.symbol} of {self.declaration.library}>"


def _address(tensor: np.ndarray[Any, Any]) -> int:
    """Where the elements are; an NDArray knows it, which saves time."""
    known: int | None = getattr(tensor, "_address", None)
    return tensor.ctypes.data if known is None else known


def _product(factor: int, names: Sequence[str], sizes: Mapping[str, int]) -> int:
    for name in names:
        factor *= sizes[name]
    return factor


def _c_type(param: CParam, library: Library) -> Any:
    if isinstance(param, TensorParam):
        return ctypes.c_void_p
    return library.integer if param.type == OWN_INTEGER else _C_TYPES[param.type]


def _limits(param: CParam, library: Library) -> tuple[int, int] | None:
    """The least and the greatest value of an integer parameter."""
    if isinstance(param, (TensorParam, FixedParam)) or param.type in ("f32", "f64"):
        return None
    info = np.iinfo(np.dtype(library.integer) if param.type == OWN_INTEGER else NUMBERS[param.type])
    return int(info.min), int(info.max)


@checked
def register_c_function(name: str, library: str, symbol: str, signature: str, override: bool = False) -> CFunction:
    """Let programs call a C function of a shared library as `name`: `R.call_dps_packed("name", (x, w), out_sinfo=…)`.

    `library` is a path or a name (`libm.so.6`, `m`); `blas` is whatever BLAS there is. `signature` says what the
    function takes, in C's order:

        void(int N, f32 alpha, f32[N] x, out f32[N] y)    void, a type such as f64, or status (an int, 0 is good)
        f32[M, K] A                                       a tensor of the call: a pointer to its elements
        out f32[M, N] C                                   a tensor that is written to: the last ones of the call
        i32 M    i64 2 * M * K                            sizes, by the names in the tensors' dimensions
        i32 101    f32 1                                  fixed numbers
        f32 alpha                                         a number of the call

    Types are i8 to i64, u8 to u64, f32, f64; `int` is the library's own integer, of 32 or 64 bits in a BLAS. Nothing
    checks that the signature is right: calling C is as safe as C. RLX6037 for a malformed signature, RLX6038 when there
    is no such library or symbol, RLX6017 when the name is taken and `override` is not set.
    """
    function = CFunction(name, Declaration(library, symbol, signature))
    function.link()
    made = register_func(name, function, override)
    note_addition(name)  # programs that are built from now on hold the declaration
    return made
