"""Reads handwritten digits with the convolution net of digits_conv.rlx and checks one batch against numpy."""

from pathlib import Path

import numpy as np

import relaxlang

HERE = Path(__file__).parent


def conv3x3(x: np.ndarray, k: np.ndarray) -> np.ndarray:
    """A 3x3 convolution with padding 1, as numpy computes it."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, k)


def reference(x: np.ndarray, w: dict[str, np.ndarray]) -> np.ndarray:
    """The same network in numpy."""
    h = np.maximum(conv3x3(x, w["k1"]) + w["b1"][:, None, None], 0)
    h = h.reshape(*h.shape[:2], 4, 2, 4, 2).max(axis=(3, 5))
    h = np.maximum(conv3x3(h, w["k2"]) + w["b2"][:, None, None], 0)
    return h.reshape(len(x), -1) @ w["w3"] + w["b3"]


data = np.load(HERE / "digits_test.npz")
pixels = (data["images"][:, None] / 16).astype("float32")
weights = dict(np.load(HERE / "digits_conv_weights.npz"))

mod = relaxlang.load(HERE / "digits_conv.rlx")
vm = relaxlang.VirtualMachine(relaxlang.build(mod, params=weights), relaxlang.cpu())
np.testing.assert_allclose(vm["main"](pixels[:5]), reference(pixels[:5], weights), rtol=1e-4, atol=1e-4)
accuracy = float((vm["main"](pixels).argmax(axis=1) == data["labels"]).mean())
assert accuracy >= 0.95
print(f"{len(pixels)} images, accuracy {accuracy:.3f}")
