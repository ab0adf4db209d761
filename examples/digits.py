"""Reads handwritten digits with the network of digits.rlx: one executable for batches of 1, of 7 and of all images."""

from pathlib import Path

import numpy as np

import relaxlang

HERE = Path(__file__).parent
SHADES = " .:-=+*#%@"


def picture(image: np.ndarray) -> list[str]:
    """An 8x8 image of 0 to 16 as lines of text."""
    return ["".join(SHADES[int(v) * (len(SHADES) - 1) // 16] * 2 for v in row) for row in image]


def main() -> None:
    data = np.load(HERE / "digits_test.npz")
    images, labels = data["images"], data["labels"]
    pixels = (images.reshape(-1, 64) / 16).astype("float32")
    weights = dict(np.load(HERE / "digits_weights.npz"))

    mod = relaxlang.load(HERE / "digits.rlx")
    vm = relaxlang.VirtualMachine(relaxlang.build(mod, params=weights), relaxlang.cpu())

    for batch in (1, 7, len(pixels)):
        scores = vm["main"](pixels[:batch])
        right = int((scores.argmax(axis=1) == labels[:batch]).sum())
        print(f"batch of {batch:3}: {right} right, accuracy {right / batch:.3f}")

    answers = vm["main"](pixels[:4]).argmax(axis=1)
    for row in zip(*(picture(image) for image in images[:4])):
        print("   ".join(row))
    print("   ".join(f"read as {a}, is {b}".ljust(16) for a, b in zip(answers, labels)))


if __name__ == "__main__":
    main()
