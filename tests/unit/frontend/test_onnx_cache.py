"""A model file that was built before is not imported again, as long as it and its weights are what they were."""

from pathlib import Path

import numpy as np
import pytest
from onnx_models import Maker

import relaxlang
from relaxlang.base import fingerprint
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen import build_cache
from relaxlang.frontend.onnx import from_onnx
from relaxlang.syntax.inputs import Inputs

pytestmark = pytest.mark.extra("onnx")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("RELAXLANG_CACHE", raising=False)
    monkeypatch.setattr(build_cache, "WORTHWHILE", 0.0)
    note = Inputs.note_side_file

    def note_as_old(self: Inputs, path: str) -> None:
        note(self, path)
        self.settled = True  # the tests write a file and read it at once

    monkeypatch.setattr(Inputs, "note_side_file", note_as_old)
    monkeypatch.setattr(fingerprint, "_additions", set())


def save(path: Path, factor: float = 1.0, **options) -> str:
    import onnx

    m = Maker()
    m("MatMul", m.input("x", ("n", 64)), m.constant(np.full((64, 32), factor, "float32")))
    onnx.save(m.model("matmul0"), path, **options)
    return str(path)


def run(mod) -> float:
    return float(np.asarray(relaxlang.build(mod)["main"](np.ones((1, 64), "float32")))[0, 0])


def test_a_model_that_was_built_is_not_imported(tmp_path, monkeypatch):
    path = save(tmp_path / "model.onnx")
    assert run(from_onnx(path)) == 64.0
    with monkeypatch.context() as patch:
        patch.setattr("relaxlang.frontend.onnx.importer.import_model", lambda *args: pytest.fail("it is imported"))
        assert run(from_onnx(path)) == run(from_onnx(Path(path))) == 64.0
    again = from_onnx(path)
    assert not again.is_read and "R.matmul(" in again.script()


def test_other_options_make_another_module(tmp_path):
    path = save(tmp_path / "model.onnx")
    assert run(from_onnx(path)) == 64.0
    assert "(1, 64)" in from_onnx(path, {"x": (1, 64)}).script()
    assert len(from_onnx(path, keep_params_in_input=True)["main"].params) == 2
    assert len(from_onnx(path, constants={"x": np.ones((1, 64), "float32")})["main"].params) == 0


def test_what_changed_is_imported_again(tmp_path):
    path = save(tmp_path / "model.onnx")
    assert run(from_onnx(path)) == 64.0
    save(tmp_path / "model.onnx", 2.0)
    assert run(from_onnx(path)) == 128.0


def test_weights_in_further_files_count(tmp_path):
    external = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    path = save(tmp_path / "model.onnx", **external)
    assert run(from_onnx(path)) == 64.0 and run(from_onnx(path)) == 64.0
    weights = tmp_path / "weights.bin"
    weights.write_bytes(np.full((64, 32), 3.0, "float32").tobytes())
    assert run(from_onnx(path)) == 192.0
    weights.unlink()
    with pytest.raises(DiagnosticError, match="RLX8004"):
        from_onnx(path)


def weights_of(path: Path, factor: float) -> None:
    path.write_bytes(np.full((64, 32), factor, "float32").tobytes())


def test_links_count(tmp_path):
    external = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    path = save(tmp_path / "model.onnx", **external)
    assert run(from_onnx(path)) == 64.0
    (tmp_path / "other").mkdir()
    linked = tmp_path / "other" / "model.onnx"
    linked.symlink_to(path)  # its weights are beside the link
    weights_of(tmp_path / "other" / "first.bin", 2.0)
    weights_of(tmp_path / "other" / "second.bin", 3.0)
    for name, value in (("first.bin", 128.0), ("second.bin", 192.0)):
        (tmp_path / "other" / "weights.bin").unlink(missing_ok=True)
        (tmp_path / "other" / "weights.bin").symlink_to(name)
        assert run(from_onnx(linked)) == run(from_onnx(linked)) == value


def test_names_may_be_links_to_contents(tmp_path):
    """As in stores of models: the model and its weights are links into one folder. Other links are refused."""
    blobs, names = tmp_path / "blobs", tmp_path / "names"
    blobs.mkdir()
    names.mkdir()
    external = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    Path(save(tmp_path / "model.onnx", **external)).rename(blobs / "a1")
    (tmp_path / "weights.bin").rename(blobs / "b2")
    (names / "model.onnx").symlink_to(blobs / "a1")
    (names / "weights.bin").symlink_to(blobs / "b2")
    assert run(from_onnx(names / "model.onnx")) == 64.0
    (blobs / "b2").rename(tmp_path / "b2")
    (names / "weights.bin").unlink()
    (names / "weights.bin").symlink_to(tmp_path / "b2")
    with pytest.raises(DiagnosticError, match=r"RLX8004.*outside"):
        from_onnx(names / "model.onnx")


def test_a_file_that_changed_before_somebody_looked(tmp_path):
    path = save(tmp_path / "model.onnx")
    assert run(from_onnx(path)) == 64.0
    known = from_onnx(path)
    save(tmp_path / "model.onnx", 2.0)
    assert run(known) == 64.0
    with pytest.raises(DiagnosticError, match=r"RLX8001.*have changed since it was loaded"):
        known.script()
