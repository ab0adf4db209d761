"""Constants in the making, in the file of the cache."""

import gc
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from relaxlang.base.store import Store, key_of
from relaxlang.runtime import draft as module
from relaxlang.runtime.draft import Draft
from relaxlang.runtime.memory import allocate_lasting, lasting_memory, read_only

KEY = key_of("test")
STEP = 2 << 20


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("RELAXLANG_CACHE", raising=False)
    return Store("test", 64 * STEP)


@pytest.fixture
def draft(store: Store) -> Draft:
    made = Draft.begin(store)
    if made is None:
        pytest.skip("no files without names here")
    return made


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_draft_becomes_the_data_of_an_entry(draft: Draft, store: Store, tmp_path: Path) -> None:
    made = {}
    with lasting_memory(draft.take):
        for k, shape in enumerate(((5,), (1024, 1024), (3, 0), (700, 333))):
            made[k] = allocate_lasting(shape, np.dtype("float32"))
            made[k][...] = k
    assert not files(tmp_path)
    places = {k: draft.offset(a) for k, a in made.items()}
    assert all(place is not None and place % 64 == 0 for place in places.values())
    assert draft.offset(np.zeros(5)) is None
    published = draft.publish(store, KEY)
    assert published is not None and [p.name for p in files(tmp_path)] == [published[0]]
    data = store.map_data(KEY, *published)
    assert data is not None and len(data) < STEP * 3
    for k, array in made.items():
        found = np.frombuffer(data, "float32", array.size, places[k])
        assert (found == k).all() and (array == k).all()
    assert draft.take(4096) is None


def test_room_is_used_again(draft: Draft, store: Store) -> None:
    first, second, third = (draft.take(STEP) for _ in range(3))
    places = [draft.offset(p) for p in (first, second, third)]
    view = np.ndarray((STEP // 8,), "float64", first)
    del first
    gc.collect()
    assert draft.offset(draft.take(64)) == 3 * STEP  # the view still needs the first one
    del view, second
    gc.collect()
    wide = draft.take(2 * STEP)
    assert draft.offset(wide) == places[0]
    del wide, third
    gc.collect()
    published = draft.publish(store, KEY)
    assert published is not None and published[1].size == 0


@pytest.mark.parametrize("shape", [(3, 4), (), (0, 5)])
@pytest.mark.parametrize("kind", [np.float64, ml_dtypes.bfloat16])
def test_constants_cannot_be_written_to(draft: Draft, shape: tuple[int, ...], kind: type) -> None:
    with lasting_memory(draft.take):
        array = read_only(allocate_lasting(shape, np.dtype(kind)))
    assert array.shape == shape and array.dtype == kind
    with pytest.raises(ValueError):
        array.flags.writeable = True


def test_room_is_made_in_advance(draft: Draft, store: Store) -> None:
    draft.prepare(9 * STEP)
    pieces = [draft.take(STEP + 64) for _ in range(12)]
    for k, piece in enumerate(pieces):
        piece[...] = k
    published = draft.publish(store, KEY)
    assert published is not None and published[1].size == 12 * (STEP + 64)
    data = store.map_data(KEY, *published)
    assert data is not None
    for k, piece in enumerate(pieces):
        assert data[draft.offset(piece)] == data[draft.offset(piece) + STEP] == k


def test_nobody_makes_room_for_what_is_gone(store: Store) -> None:
    draft = Draft.begin(store)
    if draft is None:
        pytest.skip("no files without names here")
    draft.prepare(60 * STEP)
    thread = draft._preparing
    del draft
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("trouble", ["full", "refused"])
def test_a_full_disk_is_no_fault(draft: Draft, monkeypatch: pytest.MonkeyPatch, trouble: str) -> None:
    if trouble == "full":

        def refuse(*args: int) -> None:
            raise OSError(28, "no space left on device")

        monkeypatch.setattr(os, "posix_fallocate", refuse)
        wanted = 100
    else:
        wanted = 17 * STEP
    assert draft.take(wanted) is None
    with lasting_memory(draft.take):
        array = allocate_lasting((wanted,), np.dtype("uint8"))
        array[...] = 7
    assert draft.offset(array) is None and (array == 7).all()


def test_where_there_can_be_no_draft(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "win32")
    assert Draft.begin(store) is None
    monkeypatch.undo()
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("")
    assert Draft.begin(store) is None
    monkeypatch.setenv("RELAXLANG_CACHE", "0")
    assert Draft.begin(store) is None


def test_a_file_that_cannot_be_named_is_not_kept(draft: Draft, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    piece = draft.take(64)
    assert piece is not None

    def refuse(*args: object, **more: object) -> None:
        raise OSError(1, "not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert draft.publish(store, KEY) is None
