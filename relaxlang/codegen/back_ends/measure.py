"""How long programs take, for `PlaceByCost`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.ir import prim, relax
from relaxlang.ir.struct_info import PrimStructInfo, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.runtime.ndarray import ShapeTuple, numpy_dtype

ROUNDS, MOST_ROUNDS = 15, 80
LEAST = 2e-3
"""Seconds that one measurement takes at least: short programs are called more than once in it."""
ENOUGH = 2.0
"""Seconds after which there are no more rounds than `ROUNDS`."""


def arguments(func: relax.Function) -> list[Any]:
    """Arguments for a function, random and always the same. RLX3152 where a parameter is not of a constant shape."""
    generator = np.random.default_rng(0)
    return [_value(p.struct_info, generator, p.name) for p in func.params]


def _value(info: StructInfo | None, generator: np.random.Generator, name: str) -> Any:
    if isinstance(info, TensorStructInfo) and info.dims is not None and info.dtype is not None:
        shape, dtype = _numbers(info.dims, name), info.dtype
        if dtype.is_float:
            return generator.standard_normal(shape).astype(numpy_dtype(dtype.name))
        return generator.integers(0, 2, shape).astype(numpy_dtype(dtype.name))
    if isinstance(info, TupleStructInfo):
        return tuple(_value(f, generator, name) for f in info.fields)
    if isinstance(info, ShapeStructInfo) and info.values is not None:
        return ShapeTuple(_numbers(info.values, name))
    if isinstance(info, PrimStructInfo):
        return 1
    fail("RLX3152", f"the parameter `{name}` is not of a known shape, so that nothing can be measured")


def _numbers(dims: Sequence[prim.PrimExpr], name: str) -> tuple[int, ...]:
    for dim in dims:
        if not isinstance(dim, prim.IntImm):
            fail("RLX3152", f"nothing can be measured while the dimension `{dim}` of `{name}` has no value",
                 help=f"give it one: `dims=[[{dim}, 16]]`")  # fmt: skip
    return tuple(int(d.value) for d in dims if isinstance(d, prim.IntImm))


def measure(functions: Sequence[Callable[..., Any]], args: Sequence[Any]) -> list[float]:
    """The seconds that each function takes, all with the same arguments: the least of several measurements, which are
    made in turn, so that other work on the machine meets all of them alike."""
    counts = []
    for function in functions:
        function(*args)
        counts.append(max(1, int(LEAST / max(_seconds(function, args, 1), 1e-7))))
    best = [float("inf")] * len(functions)
    began = time.perf_counter()
    for done in range(MOST_ROUNDS):
        if done >= ROUNDS and time.perf_counter() - began > ENOUGH:
            break
        for index, (function, count) in enumerate(zip(functions, counts, strict=True)):
            best[index] = min(best[index], _seconds(function, args, count))
    return best


def _seconds(function: Callable[..., Any], args: Sequence[Any], count: int) -> float:
    """Seconds of one call among `count`: those of the clock, or of the processors where they are less, as when other
    programs had the processor in between."""
    clock, work = time.perf_counter(), time.process_time()
    for _ in range(count):
        function(*args)
    return min(time.perf_counter() - clock, time.process_time() - work) / count
