"""The digits' files: no test image was trained on, and the weights are as good as said, computed by numpy alone."""

import hashlib
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TEST = np.load(EXAMPLES / "digits_test.npz")
PIXELS = TEST["images"].astype("float32") / 16


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def convolve(x: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, kernel, optimize=True) + bias[:, None, None]


def accuracy(outputs: np.ndarray) -> float:
    return float((outputs.argmax(1) == TEST["labels"]).mean())


def test_no_test_image_is_in_the_training_half() -> None:
    seen = {row.tobytes() for row in TEST["train_sha256"]}
    unseen = {hashlib.sha256(image.tobytes()).digest() for image in TEST["images"]}
    assert (len(seen), len(unseen), len(TEST["labels"])) == (898, 899, 899)  # no image is there twice
    assert not seen & unseen


def test_dense_net() -> None:
    w = np.load(EXAMPLES / "digits_weights.npz")
    x = relu(PIXELS.reshape(-1, 64) @ w["w1"] + w["b1"])
    assert accuracy(relu(x @ w["w2"] + w["b2"]) @ w["w3"] + w["b3"]) >= 0.96


def test_convolution_net() -> None:
    w = np.load(EXAMPLES / "digits_conv_weights.npz")
    x = relu(convolve(PIXELS[:, None], w["k1"], w["b1"]))
    x = x.reshape(-1, 8, 4, 2, 4, 2).max((3, 5))
    x = relu(convolve(x, w["k2"], w["b2"])).reshape(len(x), -1)
    assert accuracy(x @ w["w3"] + w["b3"]) >= 0.97


def test_the_source_is_named() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert "UCI ML hand-written digits data set" in text and "E. Alpaydin" in text
