"""Runs the hand-written kernel of own_kernel.rlx on vectors of several lengths, through Relax and directly."""

from pathlib import Path

import numpy as np

import relaxlang

mod = relaxlang.load(Path(__file__).with_suffix(".rlx"))
built = relaxlang.build(mod)
vm = relaxlang.VirtualMachine(built, relaxlang.cpu())

a = np.array([2], "float32")
for n in (0, 1, 5, 1000):
    x, y = np.arange(n, dtype="float32"), np.ones(n, "float32")
    assert np.array_equal(vm["main"](a, x, y), 2 * x + y)
    # A kernel is also a function of its own: buffers in, the last one is written.
    out = np.empty(n, "float32")
    built["axpy"](a, x, y, out)
    assert np.array_equal(out, 2 * x + y)
    print(f"n = {n}: ok")
