"""Layouts as text: "NCHW" names the dimensions of a tensor in order; in "NCHW4c" channels are kept in blocks of 4."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

Axis: TypeAlias = tuple[str, int]
"""A dimension: its letter, and for the inner part of one that is kept in blocks their size (else 0)."""

_AXIS = re.compile(r"(\d*)([A-Za-z])|.+", re.DOTALL)


@lru_cache(maxsize=1024)
def layout_axes(layout: str) -> tuple[Axis, ...]:
    """The dimensions of a tensor of that layout, in order: `("C", 0)`, and `("C", 4)` for an inner part "4c".

    What is no dimension is `("?", 0)`; an inner part without a number, or of a million or more, has the size -1.
    """
    axes: list[Axis] = []
    for match in _AXIS.finditer(layout):
        number, letter = match[1] or "", match[2]
        if letter is None or (number and letter.isupper()):
            axes.append(("?", 0))
        elif letter.isupper():
            axes.append((letter, 0))
        else:
            axes.append((letter.upper(), int(number) if 0 < len(number) < 7 else -1))
    return tuple(axes)


def is_packed(layout: str) -> bool:
    """Whether a dimension is kept in blocks."""
    return any(size for _, size in layout_axes(layout))
