"""Folders of the on-disk cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaxlang.base import store as module
from relaxlang.base.store import Store, key_of

HUGE = 2 << 20


@pytest.mark.parametrize("sizes", [[5], [HUGE], [HUGE - 1, 2], [3, 5 * HUGE + 7, 0, 64, HUGE - 10], [HUGE, HUGE]])
def test_big_data_is_mapped_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int]
) -> None:
    monkeypatch.setattr(module, "_HUGE_FROM", 2 * HUGE)
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("RELAXLANG_CACHE", raising=False)
    pieces = [bytes([i + 1]) * (size // 2) + bytes([i + 101]) * (size - size // 2) for i, size in enumerate(sizes)]
    store, key = Store("test", 1 << 30), key_of("test")
    written = store.write_data(key, pieces, sum(sizes))
    assert written is not None
    assert store.map_data(key, *written) == b"".join(pieces)
