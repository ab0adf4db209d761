"""Searches for garbage while compiling."""

import gc
from collections.abc import Iterator
from threading import Thread
from weakref import ref

import pytest

import relaxlang
from relaxlang.base import collection
from relaxlang.base.collection import RARE, fewer_collections


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_the_setting_is_put_back_when_the_last_leaves() -> None:
    gc.set_threshold(500)
    with fewer_collections():
        assert gc.get_threshold()[0] == RARE
        first = fewer_collections()
        thread = Thread(target=first.__enter__)
        thread.start()
        thread.join()
    assert gc.get_threshold()[0] == RARE
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] == 500


@pytest.mark.parametrize("chosen", [0, RARE + 1])
def test_rarer_searches_stay_as_they_are(chosen: int) -> None:
    gc.set_threshold(chosen)
    with fewer_collections():
        assert gc.get_threshold()[0] == chosen
    assert gc.get_threshold()[0] == chosen


class _Cycle:
    def __init__(self) -> None:
        self.me = self


def _searches() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def test_what_was_made_within_is_not_searched_at_the_end_but_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    monkeypatch.setattr(collection, "_unsearched", 0)
    before = _searches()
    with fewer_collections():
        kept = [_Cycle() for _ in range(2000)]
    assert _searches() <= before + 1 and len(gc.get_objects(2)) > 2000 <= collection._unsearched
    gone = ref(kept[0])
    del kept
    assert gone() is not None
    monkeypatch.setattr(collection, "_unsearched", RARE)
    with fewer_collections():
        [[] for _ in range(10)]
    assert gone() is None and collection._unsearched == 0


def test_frozen_objects_stay_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with fewer_collections():
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()


def test_builds_leave_the_setting_alone() -> None:
    gc.set_threshold(500)
    mod = relaxlang.parse('@R.function\ndef main(x: R.Tensor((n,), "float32")):\n    return R.nn.relu(x)\n')
    relaxlang.build(mod)
    with pytest.raises(relaxlang.DiagnosticError):
        relaxlang.parse("@R.function\ndef main(:\n")
    assert gc.get_threshold()[0] == 500
