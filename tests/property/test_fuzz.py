"""No input hangs, crashes or shows a traceback: damaged programs are refused by diagnostics, or they mean something.

`RELAXLANG_FUZZ=200000` asks for more inputs, `RELAXLANG_FUZZ_SEED` for others; each test has its share. A failure shows
the input and its seed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.syntax.decode import decode_source
from tests.property.fuzz_inputs import fuzz_input

COUNT = int(os.environ.get("RELAXLANG_FUZZ", "10000"))
SEED = int(os.environ.get("RELAXLANG_FUZZ_SEED", "1"))
SHARES = 10
SECONDS = 20
"""An input takes milliseconds; what takes this long hangs."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError inside the block after so many seconds, where the system has such an alarm."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no answer after {seconds} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read(data: bytes) -> None:
    """Read an input as a file is read: a diagnostic that can be shown, or a module that survives print and parse."""
    try:
        module = relaxlang.parse(decode_source("fuzz.rlx", data).text, "fuzz.rlx")
    except DiagnosticError as fault:
        assert str(fault)
        assert all(d.code.startswith("RLX") and d.code != "RLX9001" for d in fault.diagnostics)
        return
    text = module.script()
    again = relaxlang.parse(text, "printed")
    relaxlang.assert_structural_equal(again, module)
    assert again.script() == text


@pytest.mark.parametrize("share", range(SHARES))
def test_damaged_programs(share: int) -> None:
    for number in range(share, COUNT, SHARES):
        data = fuzz_input(number, SEED)
        try:
            with time_limit(SECONDS):
                read(data)
        except Exception as fault:
            fault.add_note(f"input {number} of seed {SEED}: {data!r}")
            raise
