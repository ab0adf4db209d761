"""What this machine reaches at best: measured once in a process, to compare kernels with."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache

import numpy as np

_ROUNDS, _ACCUMULATORS, _LANES = 100_000, 12, 16
_TRIES = 12
_STREAM = 16 << 20

# Nothing but multiplications with additions, on more accumulators than the processor has latency to hide.
_ARITHMETIC = f"""
@T.prim_func
def arithmetic(
    x: T.Buffer(({_LANES},), "float32"), y: T.Buffer(({_LANES},), "float32"),
    out: T.Buffer(({_ACCUMULATORS}, {_LANES}), "float32")
):
    with T.block("root"):
        total = T.alloc_buffer(({_ACCUMULATORS}, {_LANES}), "float32")
        for u in T.unroll({_ACCUMULATORS}):
            for v in T.vectorized({_LANES}):
                total[u, v] = out[u, v]
        for i in range({_ROUNDS}):
            for u in T.unroll({_ACCUMULATORS}):
                for v in T.vectorized({_LANES}):
                    total[u, v] = total[u, v] * x[v] + y[v]
        for u in T.unroll({_ACCUMULATORS}):
            for v in T.vectorized({_LANES}):
                out[u, v] = total[u, v]
"""


@lru_cache(maxsize=1)
def peak_flops() -> float:
    """float32 operations a second of one processor."""
    from relaxlang.codegen.kernel import build_kernels, load_kernels
    from relaxlang.ops import default_operators
    from relaxlang.syntax.parse import parse

    mod = parse(_ARITHMETIC, operators=default_operators())
    kernel = load_kernels(build_kernels(dict(mod.prim_funcs())))["arithmetic"]
    rng = np.random.default_rng(0)
    args = [np.full(_LANES, 0.5, np.float32), np.ones(_LANES, np.float32)]
    out = rng.random((_ACCUMULATORS, _LANES), np.float32)
    return 2 * _ACCUMULATORS * _LANES * _ROUNDS / _best(lambda: kernel(*args, out))


@lru_cache(maxsize=1)
def peak_bandwidth() -> float:
    """Bytes a second that one processor reads and writes in memory, by a copy larger than its caches."""
    source = np.ones(_STREAM, np.float32)
    target = np.empty_like(source)
    return 2 * source.nbytes / _best(lambda: np.copyto(target, source))


def _best(run: Callable[[], object]) -> float:
    """The fewest seconds of several tries."""
    run()
    best = float("inf")
    for _ in range(_TRIES):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best
