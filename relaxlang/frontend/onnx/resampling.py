"""Resampling along one axis as ONNX defines it: which elements make each new one, and with what weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaxlang.frontend.onnx.node import Node

Taps = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any] | None]


class Sampling:
    """What a node of Resize says: `method`, `place` (its coordinate transformation) and the rest of its attributes."""

    def __init__(self, n: Node) -> None:
        old = n.op == "Upsample" or n.version < 11
        self.method = n.string("mode", "nearest")
        if self.method not in ("nearest", "linear", "cubic"):
            n.unsupported(f"in the mode `{self.method}`")
        self.place = "asymmetric" if old else n.string("coordinate_transformation_mode", "half_pixel")
        self.rounding = "floor" if old else n.string("nearest_mode", "round_prefer_floor")
        self.cubic = n.float("cubic_coeff_a", -0.75)
        self.exclude_outside = n.flag("exclude_outside")
        self.outside = n.float("extrapolation_value", 0.0)
        self.antialias = n.flag("antialias")
        self.mode = n.string("mode", "nearest")

    def taps(self, old: int, new: int, scale: float | None, region: tuple[float, float]) -> Taps:
        """For each new element the old ones' places and weights, both (new, taps), and whether it lies outside."""
        x = self._places(old, new, scale, region)
        outside = None
        if self.place == "tf_crop_and_resize":
            outside = (x < 0) | (x > old - 1)
        if self.method == "nearest":
            at = np.clip(self._nearest(x), 0, old - 1).astype(np.int64)
            return at[:, None], np.ones((new, 1)), outside
        factor = new / old if scale is None else scale
        wide = factor if self.antialias and factor < 1 else 1.0
        reach = int(np.ceil((2 if self.method == "cubic" else 1) / wide))
        base = np.floor(x)
        offsets = np.arange(-reach + 1, reach + 1)
        at = base[:, None] + offsets
        weights = self._weight(np.abs((x[:, None] - at) * wide))
        if self.exclude_outside or self.antialias:
            weights = np.where((at >= 0) & (at < old), weights, 0) if self._drops() else weights
            weights = weights / weights.sum(axis=1, keepdims=True)
        return np.clip(at, 0, old - 1).astype(np.int64), weights, outside

    def _drops(self) -> bool:
        return self.exclude_outside

    def _places(self, old: int, new: int, scale: float | None, region: tuple[float, float]) -> np.ndarray[Any, Any]:
        """Where each new element lies among the old ones."""
        i = np.arange(new, dtype=np.float64)
        factor = new / old if scale is None else scale
        if self.place == "align_corners":
            length = factor * old
            return np.zeros(new) if length == 1 or new == 1 else i * (old - 1) / (length - 1)
        if self.place == "asymmetric":
            return i / factor
        if self.place == "tf_crop_and_resize":
            first, last = region
            if new <= 1:
                return np.full(new, 0.5 * (first + last) * (old - 1))
            return first * (old - 1) + i * (last - first) * (old - 1) / (new - 1)
        if self.place == "pytorch_half_pixel" and factor * old <= 1:
            return np.zeros(new)
        if self.place == "half_pixel_symmetric":
            # What the rounded size lost is shared by both ends.
            adjusted = new / (factor * old)
            return old / 2 * (1 - adjusted) + (i + 0.5) / factor - 0.5
        return (i + 0.5) / factor - 0.5

    def _nearest(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.rounding in ("floor", "ceil"):
            return np.asarray(np.floor(x) if self.rounding == "floor" else np.ceil(x))
        return np.asarray(np.ceil(x - 0.5) if self.rounding == "round_prefer_floor" else np.floor(x + 0.5))

    def _weight(self, t: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The weight at a distance: a triangle, or Keys' cubic."""
        if self.method == "linear":
            return np.asarray(np.maximum(1 - t, 0))
        a = self.cubic
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        return np.asarray(np.where(t <= 1, near, np.where(t < 2, far, 0)))
