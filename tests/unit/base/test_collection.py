"""Searches for garbage while compiling."""

import gc
from collections.abc import Iterator
from threading import Thread

import pytest

import relaxlang
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


def test_builds_leave_the_setting_alone() -> None:
    gc.set_threshold(500)
    mod = relaxlang.parse('@R.function\ndef main(x: R.Tensor((n,), "float32")):\n    return R.nn.relu(x)\n')
    relaxlang.build(mod)
    with pytest.raises(relaxlang.DiagnosticError):
        relaxlang.parse("@R.function\ndef main(:\n")
    assert gc.get_threshold()[0] == 500
