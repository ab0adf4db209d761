"""What is wrong with a model is a diagnostic that says what and where, whatever the bytes are."""

import random
from pathlib import Path

import numpy as np
import pytest
from onnx_models import Maker

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.cli.main import main
from relaxlang.frontend.onnx import from_onnx

pytestmark = pytest.mark.extra("onnx")


def fault(model, *words: str, **options) -> DiagnosticError:
    with pytest.raises(DiagnosticError) as caught:
        from_onnx(model, **options)
    text = str(caught.value)
    assert all(word in text for word in words), text
    return caught.value


def dense() -> Maker:
    m = Maker()
    m("MatMul", m.input("x", ("n", 64)), m.constant(np.ones((64, 32), "float32")))
    return m


def test_every_missing_operator_is_listed_with_its_nodes() -> None:
    m = Maker()
    x = m.input("x", (4,))
    y = m("Frobnicate", m("StringNormalizer", m("Frobnicate", x, domain="own")), domain="own")
    found = fault(m.model(y), "RLX8002", "`own.Frobnicate` (opset 1), which 2 nodes use", "`n0`", "`n2`",
                  "`ai.onnx.StringNormalizer` (opset 18), which 1 node uses")  # fmt: skip
    assert len(found.diagnostics) == 2


def test_damaged_models() -> None:
    data = dense().model("matmul0").SerializeToString()
    fault(b"no model", "RLX8001")
    fault(b"", "RLX8001")
    fault(7, "RLX8001")
    chance = random.Random(0)
    for size in range(0, len(data), 97):
        with pytest.raises(DiagnosticError):
            from_onnx(data[:size])
    for _ in range(150):
        changed = bytearray(data)
        changed[chance.randrange(400)] = chance.randrange(256)
        try:
            from_onnx(bytes(changed))
        except DiagnosticError:
            pass


def test_versions() -> None:
    for opset in (6, 1000):
        m = Maker(opset)
        fault(m.model(m("Relu", m.input("x", (2,)))), "RLX8001", f"version {opset}")


def test_graphs_that_are_not_well_formed() -> None:
    m = Maker()
    m("Add", m.input("x", (2,)), "nowhere")
    fault(m.model("add0"), "RLX8003", "Add node `n0`", "`nowhere`")
    m = Maker()
    m("Transpose", m.input("x", (2, 3)), perm="ab")
    fault(m.model("transpose0"), "RLX8003", "n0")
    m = Maker()
    m("Relu", m.input("x", (2, 3)), m.input("y", (2, 3)))
    fault(m.model("relu0"), "RLX8003", "Relu")
    fault(dense().model("other"), "RLX8003", "`other`")


def test_operands_that_do_not_fit_name_the_node() -> None:
    m = Maker()
    m("MatMul", m.input("x", (2, 3)), m.input("y", (4, 5)))
    fault(m.model("matmul0"), "RLX0210", "inner dimensions differ", "at the MatMul node `n0` (opset 18)")


def test_shapes_and_constants_that_do_not_fit() -> None:
    model = dense().model("matmul0")
    fault(model, "RLX8005", "`y`", "its inputs: `x`", shapes={"y": (1,)})
    fault(model, "RLX8005", "2 dimensions", shapes={"x": (1, 2, 3)})
    fault(model, "RLX8005", "dimension 1", "64", shapes={"x": ("n", 63)})
    fault(model, "RLX8005", "no tuple of numbers and names", shapes={"x": ("n", None)})
    fault(model, "RLX8005", "float64", constants={"x": np.zeros((2, 64))})
    fault(model, "RLX8005", "`shapes` maps names", shapes=[("x", (1, 64))])
    fault(model, "RLX8005", "`shapes` maps names", shapes={1: (1, 64), "x": (1, 64)})
    fault(model, "RLX8005", "`constants` maps names", constants=3)
    m = Maker()
    fault(m.model(m("Relu", m.input("x", None))), "RLX8005", "the rank of the input `x`")


def test_weights_in_further_files(tmp_path: Path) -> None:
    import onnx

    path = tmp_path / "model.onnx"
    onnx.save(dense().model("matmul0"), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert from_onnx(path)["main"].params
    fault(onnx.load(path, load_external_data=False), "RLX8004", "without its path")
    weights = tmp_path / "weights.bin"
    weights.write_bytes(weights.read_bytes()[:100])
    fault(path, "RLX8004", "truncated")
    weights.rename(tmp_path / "weight.bin")
    fault(path, "RLX8004", "missing", "did you mean `weight.bin`?")
    model = onnx.load(path, load_external_data=False)
    told = {entry.key: entry for entry in model.graph.initializer[0].external_data}
    for place, word in (("../../etc/passwd", "outside"), ("a\0b", "no file is called")):
        told["location"].value = place
        path.write_bytes(model.SerializeToString())
        fault(path, "RLX8004", word)
    told["location"].value, told["offset"].value = "weight.bin", "-5"
    path.write_bytes(model.SerializeToString())
    fault(path, "RLX8004", "the place -5")


def test_relaxc_writes_weights_beside_the_text(tmp_path: Path, monkeypatch, capsys) -> None:
    import onnx

    monkeypatch.chdir(tmp_path)
    onnx.save(dense().model("matmul0"), "small.onnx")
    m = Maker()
    m("MatMul", m.input("x", ("n", 256)), m.constant(np.random.default_rng(0).random((256, 128), "float32")))
    onnx.save(m.model("matmul0"), "large.onnx")
    assert main(["small.onnx", "-o", "small.rlx"]) == 0 and not Path("small.weights.npz").exists()
    assert main(["large.onnx", "-o", "large.rlx"]) == 0 and Path("large.weights.npz").exists()
    assert "sha256:" in Path("large.rlx").read_text() and Path("large.rlx").stat().st_size < 2000
    assert main(["large.rlx", "--check"]) == 0
    Path("large.weights.npz").write_bytes(Path("large.weights.npz").read_bytes()[:5000])
    assert main(["large.rlx", "--check"]) == 1
    assert "RLX0128" in capsys.readouterr().err
    Path("cut.onnx").write_bytes(Path("large.onnx").read_bytes()[:3000])
    assert main(["cut.onnx", "-o", "cut.rlx"]) == 1 and not Path("cut.rlx").exists()
    assert "RLX8001" in capsys.readouterr().err


def test_functions_without_end() -> None:
    from onnx import helper

    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    m = Maker()
    model = m.model(m("F0", m.input("x", (2,)), domain="own"))
    for k in range(40):
        body = [helper.make_node(f"F{(k + 1) % 40}", ["a"], ["b"], domain="own")]
        model.functions.append(helper.make_function("own", f"F{k}", ["a"], ["b"], body, imports))
    fault(model, "RLX8003", "nested more than")


KNOWN = {
    "Add": (np.zeros((2, 3)), np.zeros(2)),
    "Less": (np.zeros(2), np.zeros(3)),
    "Where": (np.ones((3, 1), bool), np.zeros((1, 2)), np.zeros(3)),
    "Reshape": (np.zeros(3), np.array([[-1]])),
    "Expand": (np.zeros(3), np.array([[3]])),
    "ConstantOfShape": (np.array([2, -3]),),
    "Unsqueeze": (np.zeros(3), np.array([0, 0])),
    "ReduceProd": (np.zeros((2, 3), "int64"), np.array([0, -2])),
    "Range": (np.array(0), np.zeros(0, "int64"), np.array(1)),
    "Split": (np.zeros(3), np.array([1, -1, 3])),
}
"""Known operands that the operator is not defined for."""


@pytest.mark.parametrize("name", KNOWN)
def test_known_operands_that_do_not_fit(name: str) -> None:
    m = Maker()
    operands = [m.constant(v, "float32" if v.dtype == "float64" else None) for v in KNOWN[name]]
    made = m(name, *operands, outputs=3 if name == "Split" else 1)
    with pytest.raises(DiagnosticError, match=f"at the {name} node"):
        from_onnx(m.model(*(made if name == "Split" else [made])))


def test_attributes_that_make_no_sense() -> None:
    m = Maker()
    fault(m.model(m("Transpose", m.constant([1, 2]), perm=[0, 0])), "RLX0210", "Transpose")
    m = Maker()
    scale = m.constant(np.ones(3, "float32"))
    fault(m.model(m("LayerNormalization", m.input("x", (2, 4)), scale)), "RLX8003", "does not broadcast")
    for scales in ([1, 1, np.nan, 2], [1, 1, 0, 2], [1, 1, np.inf, 2]):
        m = Maker()
        x = m.input("x", (1, 1, 3, 3))
        made = m("Resize", x, "", m.constant(scales, "float32"), mode="linear")
        fault(m.model(made), "RLX8003", "no positive numbers")
    m = Maker()
    ratio, flags = m.constant(0.0, "float32"), m.constant([True, False])
    fault(m.model(m("Dropout", m.input("x", (2,)), ratio, flags)), "RLX8003", "a single element")
    m = Maker()
    branch = Maker()
    inner = branch.graph(branch("Relu", m.input("x", (2,))))
    fault(m.model(m("If", m.constant([], "bool"), then_branch=inner, else_branch=inner)), "RLX8003", "single element")
    m = Maker()
    fault(m.model(m("Range", *(m.constant(v, "float32") for v in (0, 1, np.nan)))), "RLX8003", "no range")
    m = Maker()
    fault(m.model(m("Reshape", m.input("x", ("n",)), m.input("s", (1 << 60,), "int64"))), "RLX8006", "64 are possible")
