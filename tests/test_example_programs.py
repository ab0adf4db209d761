"""The examples run, and what they compute is what numpy computes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relaxlang

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_script(script: Path) -> None:
    # In a process of its own: an example may register packed functions.
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout, done.stderr


@pytest.mark.parametrize("pipeline", ["default", "minimum"])
def test_digits_compute_what_numpy_computes(pipeline: str) -> None:
    data = np.load(EXAMPLES / "digits_test.npz")
    weights = dict(np.load(EXAMPLES / "digits_weights.npz"))
    built = relaxlang.build(relaxlang.load(EXAMPLES / "digits.rlx"), params=weights, pipeline=pipeline)
    vm = relaxlang.VirtualMachine(built, relaxlang.cpu())
    pixels = (data["images"].reshape(-1, 64) / 16).astype("float32")

    h1 = np.maximum(pixels @ weights["w1"] + weights["b1"], 0)
    h2 = np.maximum(h1 @ weights["w2"] + weights["b2"], 0)
    logits = h2 @ weights["w3"] + weights["b3"]
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = exps / exps.sum(axis=1, keepdims=True)

    for batch in (1, 7, len(pixels)):
        np.testing.assert_allclose(vm["main"](pixels[:batch]), expected[:batch], rtol=1e-4, atol=1e-6)
    assert (vm["main"](pixels).argmax(axis=1) == data["labels"]).mean() >= 0.95


@pytest.mark.parametrize("module", sorted(EXAMPLES.glob("*.rlx")), ids=lambda p: p.name)
def test_module_survives_printing(module: Path) -> None:
    mod = relaxlang.load(module)
    again = relaxlang.parse(mod.script())
    relaxlang.assert_structural_equal(mod, again)
    assert again.script() == mod.script()
