"""How the digits' files came to be: needs scikit-learn for the images and PyTorch to train; no example needs either.

    pip install scikit-learn torch
    python examples/data/make_digits.py

The images are split in two halves by a seeded permutation. The weights see the first half only; the second half is
written out to test them, with the SHA-256 digest of every image of the first half, so that anyone can check that no
image is in both. Run again it writes the same images and digests; the weights agree to rounding.
"""

import hashlib
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

FOLDER = Path(__file__).resolve().parent.parent


def halves() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images and labels, test images and labels; images are uint8 (n, 8, 8) from 0 to 16, each there once."""
    digits = load_digits()
    images, first = np.unique(digits.images.astype("uint8"), axis=0, return_index=True)
    labels = digits.target[first].astype("uint8")
    order = np.random.RandomState(0).permutation(len(images))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    return images[train], labels[train], images[test], labels[test]


def digests(images: np.ndarray) -> np.ndarray:
    """The SHA-256 of each image's 64 bytes, uint8 (n, 32)."""
    rows = [hashlib.sha256(image.tobytes()).digest() for image in images]
    return np.frombuffer(b"".join(rows), "uint8").reshape(-1, 32)


def train(model: nn.Module, images: np.ndarray, labels: np.ndarray, epochs: int) -> None:
    """AdamW with a one-cycle rate on images that are shifted by up to one pixel."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    steps = epochs * -(-len(images) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=steps)
    pixels, wanted = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels, dtype=torch.int64)
    padded = nn.functional.pad(pixels, (1, 1, 1, 1))
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(64):
            down, right = torch.randint(0, 3, (2,)).tolist()
            shifted = padded[batch, down : down + 8, right : right + 8]
            loss = nn.functional.cross_entropy(model(shifted), wanted[batch], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def accuracy(model: nn.Module, images: np.ndarray, labels: np.ndarray) -> float:
    """The share of images whose largest output is at their label."""
    with torch.no_grad():
        answers = model(torch.tensor(images / 16, dtype=torch.float32)).argmax(1).numpy()
    return float((answers == labels).mean())


def main() -> None:
    """Write the three files."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_images, train_labels, test_images, test_labels = halves()
    np.savez_compressed(
        FOLDER / "digits_test.npz", images=test_images, labels=test_labels, train_sha256=digests(train_images)
    )

    dense = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    train(dense, train_images, train_labels, epochs=200)
    print("dense:", accuracy(dense, test_images, test_labels))
    layers = [dense[1], dense[3], dense[5]]
    weights = {f"w{i}": layer.weight.detach().numpy().T.copy() for i, layer in enumerate(layers, 1)}
    biases = {f"b{i}": layer.bias.detach().numpy() for i, layer in enumerate(layers, 1)}
    np.savez_compressed(FOLDER / "digits_weights.npz", **weights, **biases)

    convolution = nn.Sequential(
        nn.Unflatten(1, (1, 8)),
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(256, 10),
    )  # fmt: skip
    train(convolution, train_images, train_labels, epochs=200)
    print("convolution:", accuracy(convolution, test_images, test_labels))
    one, two, last = convolution[1], convolution[4], convolution[7]
    arrays = {"k1": one.weight, "b1": one.bias, "k2": two.weight, "b2": two.bias, "w3": last.weight.T, "b3": last.bias}
    np.savez_compressed(
        FOLDER / "digits_conv_weights.npz", **{name: a.detach().numpy().copy() for name, a in arrays.items()}
    )


if __name__ == "__main__":
    main()
