"""Large constants in the file beside a text."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.syntax import side_file as module
from relaxlang.syntax.scalars import array_digest
from relaxlang.syntax.side_file import SideFile, side_file, side_file_bytes


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A program whose two constants of different types are in the file beside it."""
    mod = relaxlang.parse('@R.function\ndef main():\n    return (R.const(1.0, "float32"), R.const(2.0, "bfloat16"))\n')
    arrays = np.arange(100, dtype="float32"), np.arange(300).astype(ml_dtypes.bfloat16).reshape(3, 100)
    main = mod["main"]
    body = main.body.replace(body=main.body.body.replace(fields=tuple(relaxlang.const(a) for a in arrays)))
    store: dict[str, np.ndarray] = {}
    path = tmp_path / "model.rlx"
    made = mod.with_function("main", main.replace(body=body, ret_struct_info=None))
    path.write_text(made.script(constants="file", store=store))
    Path(side_file(str(path))).write_bytes(side_file_bytes(store))
    return path


def test_constants_come_back(text: Path) -> None:
    first, second = relaxlang.interpret(relaxlang.load(text), "main")
    assert (np.asarray(first) == np.arange(100)).all() and second.dtype == ml_dtypes.bfloat16
    assert (np.asarray(second).astype("float32").reshape(-1) == np.arange(300).astype(ml_dtypes.bfloat16)).all()


@pytest.mark.parametrize("damage", [
    lambda data: None, lambda data: b"", lambda data: data[:300], lambda data: data.replace(b"\x80\x3f", b"\x81\x3f"),
])  # fmt: skip
def test_missing_and_damaged_files(text: Path, damage) -> None:
    beside = Path(side_file(str(text)))
    made = damage(beside.read_bytes())
    beside.unlink() if made is None else beside.write_bytes(made)
    with pytest.raises(DiagnosticError) as caught:
        relaxlang.load(text)
    assert caught.value.diagnostics[0].code == "RLX0128" and "model.weights.npz" in str(caught.value)


def test_the_next_arrays_are_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever order they are asked for, each is read once, and those that nobody comes to are not read."""
    arrays = {array_digest(a): a for a in (np.full(50, k, "float32") for k in range(12))}
    path = tmp_path / "model.rlx"
    Path(side_file(str(path))).write_bytes(side_file_bytes(arrays))
    monkeypatch.setattr(module, "LARGE", 0)
    monkeypatch.setattr(module, "usable_processors", lambda: 2)
    monkeypatch.setenv("RELAXLANG_NUM_THREADS", "2")
    read, array = [], SideFile._array
    monkeypatch.setattr(SideFile, "_array", lambda self, entry: (read.append(entry.filename), array(self, entry))[1])
    store, names = SideFile(str(path)), list(arrays)
    for k in (0, 1, 3, 2):
        assert (store[names[k]].view("float32") == k).all() and store.digests[names[k]] == names[k]
    assert "absent" not in store and len(store) == 12
    with pytest.raises(KeyError):
        store["absent"]
    store._pool.shutdown()
    assert read == [f"{n}.npy" for n in names[:8]]
