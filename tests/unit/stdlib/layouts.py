"""Tensors in any layout, by numpy: "NCHW4c" keeps channels in blocks of 4, the last one filled up with zeros."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def parts(layout: str) -> list[tuple[str, int]]:
    """The dimensions of a layout: letter and block size (0: not an inner part)."""
    return [(c.upper(), int(n or 0)) for n, c in re.findall(r"(\d*)([A-Za-z])", layout)]


def pack(x: Array, letters: str, layout: str) -> Array:
    """A tensor whose dimensions are `letters`, in a layout."""
    block = {c: n for c, n in parts(layout) if n}
    if block:
        x = np.pad(x, [(0, -d % block.get(c, 1)) for c, d in zip(letters, x.shape)])
    shape: list[int] = []
    names: list[tuple[str, int]] = []
    for c, d in zip(letters, x.shape):
        shape += [d // block[c], block[c]] if c in block else [d]
        names += [(c, 0), (c, block[c])] if c in block else [(c, 0)]
    return x.reshape(shape).transpose([names.index(p) for p in parts(layout)])


def unpack(x: Array, layout: str, letters: str) -> Array:
    """The tensor with dimensions `letters` that is kept in a layout."""
    names = parts(layout)
    order: list[int] = []
    shape: list[int] = []
    for c in letters:
        places = [names.index((c, 0)), *[k for k, (d, n) in enumerate(names) if d == c and n]]
        order += places
        shape.append(int(np.prod([x.shape[k] for k in places])))
    return x.transpose(order).reshape(shape)
