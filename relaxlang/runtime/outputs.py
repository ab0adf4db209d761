"""Results that a caller wants in arrays of its own (`out=`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.runtime import checks
from relaxlang.runtime.ndarray import dtype_name


def deliver(name: str, result: Any, out: Any) -> Any:
    """Copy the result of function `name` to `out` and give `out`.

    `out` has the structure, shapes and dtypes of the result: RLX6002 to RLX6005 when it has not, and RLX6015 when an
    array is read-only. Nothing is written unless all of it fits.
    """
    pairs: list[tuple[Any, Any]] = []
    _match(name, "out", result, out, pairs)
    for target, value in pairs:
        np.copyto(target, value)
    return out


def _match(name: str, place: str, result: Any, out: Any, pairs: list[tuple[Any, Any]]) -> None:
    context = f"`{place}` of `{name}`"
    if isinstance(result, np.ndarray):
        if not isinstance(out, np.ndarray):
            checks.wrong_kind(context, "an array", out)
        if dtype_name(out.dtype) != dtype_name(result.dtype):
            checks.wrong_dtype(context, dtype_name(result.dtype), out)
        if out.ndim != result.ndim:
            checks.wrong_rank(context, result.ndim, out)
        for axis, (given, wanted) in enumerate(zip(out.shape, result.shape)):
            if given != wanted:
                checks.wrong_dim(context, axis, wanted, out)
        if not out.flags.writeable:
            fail("RLX6015", f"{context} is written to, but the array is read-only")
        pairs.append((out, result))
    elif type(result) is tuple:
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            checks.wrong_kind(context, f"a tuple of {len(result)}", out)
        for index, (value, target) in enumerate(zip(result, out)):
            _match(name, f"{place}[{index}]", value, target, pairs)
    else:
        fail("RLX6002", f"{context}: the result is {checks.describe(result)}, which no array can take")
