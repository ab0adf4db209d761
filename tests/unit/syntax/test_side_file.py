"""Large constants in the file beside a text."""

import copy
import pickle
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.syntax import side_file as module
from relaxlang.syntax.scalars import array_digest, array_from_text
from relaxlang.syntax.side_array import SideArray
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


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SideFile:
    """A side file of twelve large arrays, of which the digests are computed by a thread."""
    arrays = {array_digest(a): a for a in (np.full(50, k, "float32") for k in range(12))}
    path = tmp_path / "model.rlx"
    Path(side_file(str(path))).write_bytes(side_file_bytes(arrays))
    monkeypatch.setattr(module, "LARGE", 0)
    monkeypatch.setattr(module, "UNREAD", 0)
    monkeypatch.setattr(module, "usable_processors", lambda: 2)
    monkeypatch.setenv("RELAXLANG_NUM_THREADS", "2")
    return SideFile(str(path))


def test_large_arrays_are_read_when_they_are_looked_at(large: SideFile, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched, content = [], SideArray.content
    monkeypatch.setattr(SideArray, "content", lambda self: (fetched.append(self.digest), content(self))[1])
    names = list(large)
    for k in (0, 1, 3, 2):
        array = large[names[k]]
        assert large[names[k]] is array and (array.shape, array.dtype) == ((200,), np.dtype("uint8"))
        assert large.true_digest(names[k]) == names[k] and not fetched
        seen = array.seen_as(np.dtype("float32"), (5, 10))
        assert seen is array.seen_as(np.dtype("float32"), (5, 10))
        first = seen.read()
        assert (first == k).all() and first.shape == (5, 10) and seen.read() is first
        with pytest.raises(ValueError):
            first.flags.writeable = True
        address = first.ctypes.data
        assert address % 64 == 0 and fetched == [names[k]]
        del first
        again = seen.read()  # whoever comes back for it finds it the next time
        assert fetched == [names[k]] * 2 and (again == k).all()
        del again
        seen.read()
        assert fetched == [names[k]] * 2
        fetched.clear()
    assert "absent" not in large and len(large) == 12
    with pytest.raises(KeyError):
        large["absent"]


def test_modules_can_be_copied_and_pickled(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNREAD", 0)
    mod = relaxlang.load(text)
    pickled = mod.with_function("main", pickle.loads(pickle.dumps(mod["main"])))
    for twin in (copy.deepcopy(mod), pickled):
        first, _ = relaxlang.interpret(twin, "main")
        assert (np.asarray(first) == np.arange(100)).all() and relaxlang.structural_equal(twin, mod)


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("change", ["other", "shorter", "same", "replaced"])
def test_files_that_change_in_place(text: Path, monkeypatch: pytest.MonkeyPatch, change: str, threads: str) -> None:
    """A module outlives what happens to its file: it says so, or goes on where nothing was lost."""
    for name in ("LARGE", "UNREAD"):
        monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(module, "usable_processors", lambda: 2)
    monkeypatch.setenv("RELAXLANG_NUM_THREADS", threads)
    beside = Path(side_file(str(text)))
    mod = relaxlang.load(text)
    content = beside.read_bytes()
    if change == "replaced":  # by renaming, as editors and savers do that care
        other = beside.with_suffix(".new")
        other.write_bytes(b"something else")
        other.replace(beside)
    else:
        changed = content.replace(b"\x80\x3f", b"\x81\x3f") if change == "other" else content
        beside.write_bytes(changed[:300] if change == "shorter" else changed)
    if change in ("same", "replaced"):
        first, _ = relaxlang.interpret(mod, "main")
        assert (np.asarray(first) == np.arange(100)).all()
        return
    for use in (lambda: relaxlang.interpret(mod, "main"), lambda: relaxlang.build(mod), mod.script):
        with pytest.raises(DiagnosticError, match="have changed since they were loaded"):
            use()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_arrays_that_are_not_what_they_are_called_are_told_where_they_stand(
    text: Path, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    told = []
    beside = Path(side_file(str(text)))
    beside.write_bytes(beside.read_bytes().replace(b"\x80\x3f", b"\x81\x3f"))
    monkeypatch.setenv("RELAXLANG_NUM_THREADS", threads)
    monkeypatch.setattr(module, "usable_processors", lambda: 2)
    for least in (0, 1 << 20):
        monkeypatch.setattr(module, "LARGE", least)
        monkeypatch.setattr(module, "UNREAD", least)
        with pytest.raises(DiagnosticError) as caught:
            relaxlang.load(text)
        told.append([(d.code, d.message, d.span.start, d.span.end, d.help) for d in caught.value.diagnostics])
    assert told[0][0] == told[1][0] and "another content" in told[0][0][1]


def test_arrays_in_other_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed members, elements by columns and of the other byte order are read at once."""
    monkeypatch.setattr(module, "UNREAD", 0)
    array = np.arange(12, dtype="float32").reshape(3, 4)
    name = array_digest(array)
    path = str(tmp_path / "model.rlx")
    for save, made in (
        (np.savez_compressed, array), (np.savez, np.asfortranarray(array)), (np.savez, array.astype(">f4")),
        (np.savez, array),
    ):  # fmt: skip
        save(side_file(path), **{name: made})
        found = SideFile(path)[name]
        assert isinstance(found, SideArray) == (save is np.savez and made is array)
        taken = array_from_text(name, dtype("float32"), (3, 4), SideFile(path))
        assert ((taken.read() if isinstance(taken, SideArray) else taken) == array).all()


def test_the_fault_of_the_whole_file_is_said(text: Path) -> None:
    path = Path(side_file(str(text)))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DiagnosticError, match="damaged or cut off"):
        relaxlang.load(text)
    path.unlink()
    with pytest.raises(DiagnosticError, match="which is not there"):
        relaxlang.load(text)
