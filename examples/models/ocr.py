"""Reads the text of pictures that it draws, with the three PP-OCR models: where text is, which way up, what it says.

Needs the packages `onnx`, `pillow` and `rapidocr-onnxruntime` (of the last only the model files, so that
`pip install --no-deps` does). With `onnxruntime` every result is compared with its own.

    python examples/models/ocr.py
"""

import time
from collections import deque
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import relaxlang

PACKAGES = {"onnx": "onnx", "PIL": "pillow", "rapidocr_onnxruntime": "rapidocr-onnxruntime"}
FILES = {
    "detect": "ch_PP-OCRv4_det_infer.onnx",
    "angle": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "read": "ch_PP-OCRv4_rec_infer.onnx",
}
PICTURES = [  # (width, height), lines of (text, size, place, upside down)
    ((320, 128), [("Hello compiler", 32, (20, 20), False), ("12345", 28, (30, 80), False)]),
    ((448, 224), [("One executable", 34, (24, 24), False), ("many sizes of pictures", 30, (24, 90), True),
                  ("Relax 2026", 40, (40, 156), False)]),
]  # fmt: skip


def step(text: str, start: float) -> None:
    """Report what is done and how long it took."""
    print(f"{text:62} {time.perf_counter() - start:8.2f} s", flush=True)


class Model:
    """One of the three models: compiled once, for any batch, height and width."""

    def __init__(self, path: Path) -> None:
        from relaxlang.frontend.onnx import from_onnx

        mod = from_onnx(path, shapes={"x": ("n", 3, "h", "w")})
        self.run = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())["main"]
        self.other = None
        self.worst = 0.0
        if find_spec("onnxruntime") is not None:
            import onnxruntime

            self.other = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The model's output for images (n, 3, h, w); it is compared with ONNX Runtime's."""
        made = np.asarray(self.run(x))
        if self.other is not None:
            self.worst = max(self.worst, float(np.abs(made - self.other.run(None, {"x": x})[0]).max()))
        return made


def draw(size: tuple[int, int], lines: list) -> np.ndarray:
    """A picture (h, w, 3) with lines of text."""
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", size, "white")
    for text, height, place, turned in lines:
        font = ImageFont.load_default(height)
        left, top, right, bottom = font.getbbox(text)
        label = Image.new("RGB", (int(right - left) + 4, int(bottom - top) + 4), "white")
        ImageDraw.Draw(label).text((2 - left, 2 - top), text, "black", font)
        page.paste(label.rotate(180) if turned else label, place)
    return np.array(page)


def planes(picture: np.ndarray) -> np.ndarray:
    """A picture (h, w, 3) of bytes as (3, h, w) from -1 to 1, blue first."""
    return (picture[..., ::-1].transpose(2, 0, 1) / np.float32(127.5) - 1).astype("float32")


def scaled(picture: np.ndarray, width: int, height: int) -> np.ndarray:
    """A picture in another size."""
    from PIL import Image

    return np.array(Image.fromarray(np.ascontiguousarray(picture)).resize((width, height), Image.Resampling.BILINEAR))


def boxes(scores: np.ndarray) -> list[tuple[int, int, int, int]]:
    """The rectangles (x0, y0, x1, y1) around connected pixels that are text, from top to bottom.

    The model marks the core of a text; its rectangle grows by 1.6 times area over perimeter.
    """
    inside, found = scores > 0.3, []
    height, width = scores.shape
    for y, x in zip(*np.nonzero(inside)):
        if not inside[y, x]:
            continue
        inside[y, x] = False
        queue, rows, columns, total = deque([(y, x)]), [], [], []
        while queue:
            r, c = queue.popleft()
            rows.append(r)
            columns.append(c)
            total.append(scores[r, c])
            for i, j in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
                if 0 <= i < height and 0 <= j < width and inside[i, j]:
                    inside[i, j] = False
                    queue.append((i, j))
        w, h = max(columns) - min(columns) + 1, max(rows) - min(rows) + 1
        if min(w, h) < 3 or float(np.mean(total)) < 0.5:
            continue
        grow = round(1.6 * w * h / (2 * (w + h)))
        found.append((max(min(columns) - grow, 0), max(min(rows) - grow, 0),
                      min(max(columns) + grow, width), min(max(rows) + grow, height)))  # fmt: skip
    return sorted(found, key=lambda box: (box[1], box[0]))


def batch(parts: list[np.ndarray], height: int, width: int | None = None) -> np.ndarray:
    """Pictures of one height in one batch, as wide as the widest (or `width`), with grey at the right."""
    sizes = [max(1, round(p.shape[1] * height / p.shape[0])) for p in parts]
    whole = max(sizes) if width is None else width
    made = np.zeros((len(parts), 3, height, whole), "float32")
    for k, (part, w) in enumerate(zip(parts, sizes)):
        w = min(w, whole)
        made[k, :, :, :w] = planes(scaled(part, w, height))
    return made


def letters(path: Path) -> list[str]:
    """The characters of the model's classes: nothing, then those that its file lists, then a space."""
    import onnx

    listed = next(p.value for p in onnx.load(path).metadata_props if p.key == "character")
    return ["", *listed.splitlines(), " "]


def text_of(scores: np.ndarray, known: list[str]) -> tuple[str, float]:
    """The text of one picture from scores (steps, classes): repeated classes count once. And how sure it is."""
    best = scores.argmax(axis=1)
    kept = (best != 0) & (best != np.concatenate(([-1], best[:-1])))
    sure = float(scores.max(axis=1)[kept].mean()) if kept.any() else 0.0
    return "".join(known[k] for k in best[kept]), sure


def main() -> None:
    missing = [package for module, package in PACKAGES.items() if find_spec(module) is None]
    if missing:
        print(f"This example needs {', '.join(missing)}: pip install --no-deps {' '.join(missing)}")
        return
    folder = Path(next(iter(find_spec("rapidocr_onnxruntime").submodule_search_locations))) / "models"
    models = {}
    for name, file in FILES.items():
        start = time.perf_counter()
        models[name] = Model(folder / file)
        step(f"imported and compiled `{name}`, for every batch, height, width", start)
    known = letters(folder / FILES["read"])

    for size, lines in PICTURES:
        picture = draw(size, lines)
        start = time.perf_counter()
        found = boxes(models["detect"](planes(picture)[None])[0, 0])
        step(f"found {len(found)} texts in a picture of {size[0]} by {size[1]}", start)
        parts = [picture[y0:y1, x0:x1] for x0, y0, x1, y1 in found]
        start = time.perf_counter()
        turned = models["angle"](batch(parts, 48, 192))
        parts = [p[::-1, ::-1] if t[1] > 0.9 else p for p, t in zip(parts, turned)]
        step(f"turned {int((turned[:, 1] > 0.9).sum())} of them", start)
        start = time.perf_counter()
        x = batch(parts, 48)
        scores = models["read"](x)
        step(f"read a batch of {x.shape[0]}, {x.shape[3]} pixels wide", start)
        for (text, _, _, _), (read, sure) in zip(lines, (text_of(s, known) for s in scores)):
            print(f"    drawn {text!r:28} read {read!r:28} ({sure:.2f})")
    for name, model in models.items():
        if model.other is not None:
            print(f"`{name}`: largest difference from ONNX Runtime {model.worst:.1e}")


if __name__ == "__main__":
    main()
