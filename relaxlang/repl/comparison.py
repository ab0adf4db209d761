"""Whether two results are the same, up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

# Relative closeness by the size of the element type in bytes: sums in another order round in another way.
_RTOL = {1: 2e-1, 2: 2e-2, 4: 1e-4, 8: 1e-9}
_ATOL = 1e-2
"""The absolute closeness, as a share of the relative one; of the largest element, where that is more than one."""


def differences(expected: Any, actual: Any, label: str = "") -> list[str]:
    """In what two results differ, in words; empty when they agree: integers exactly, floats up to rounding."""
    waiting, wrong = [(label, expected, actual)], []
    while waiting:
        name, a, b = waiting.pop()
        where = f"{name}: " if name else ""
        if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
            if len(a) != len(b):
                wrong.append(f"{where}{len(b)} parts instead of {len(a)}")
                continue
            waiting += [(f"{name}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b))][::-1]
        elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            said = _arrays(np.asarray(a), np.asarray(b))
            wrong += [where + said] if said else []
        elif a != b and not (a != a and b != b):
            wrong.append(f"{where}{b!r} instead of {a!r}")
    return wrong


def _arrays(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> str:
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{b.dtype} {b.shape} instead of {a.dtype} {a.shape}"
    exact = a.dtype.kind in "biu"
    x, y = (a, b) if exact else (a.astype("float64"), b.astype("float64"))
    rtol = 0.0 if exact else _RTOL.get(a.dtype.itemsize, 1e-4)
    # Sums that cancel are as exact as what was summed, of which the largest result tells the size.
    finite = np.abs(x[np.isfinite(x)]) if rtol else np.zeros(0)
    atol = rtol * _ATOL * max(1.0, float(finite.max(initial=0.0)))
    with np.errstate(all="ignore"):
        bad = ~np.isclose(y, x, rtol, atol, equal_nan=not exact)
        if not bad.any():
            return ""
        at = tuple(int(i) for i in np.unravel_index(np.argmax(bad), bad.shape))
        return f"{int(bad.sum())} of {bad.size} elements, first at {list(at)}: {b[at]} instead of {a[at]}"


def largest_difference(expected: Any, actual: Any) -> float:
    """The largest absolute difference of the floats of two results that agree in structure."""
    waiting, most = [(expected, actual)], 0.0
    while waiting:
        a, b = waiting.pop()
        if isinstance(a, (tuple, list)):
            waiting += list(zip(a, b))
        elif isinstance(a, np.ndarray) and a.size and a.dtype.kind not in "biu":
            with np.errstate(all="ignore"):
                gap = np.abs(np.asarray(a).astype("float64") - np.asarray(b).astype("float64"))
            most = max(most, float(np.nanmax(gap)) if not np.isnan(gap).all() else 0.0)
    return most
