"""Kernels against installed peers: ratios of CPU time on one thread, and what part of the peak they reach.

    python tests/bench/bench_kernels.py [name…] [--peers numpy,torch] [--seconds 1.0]

It runs on purpose, not with the tests. Peers come with the extra `bench`; those that are not installed are left out.
All contenders of a workload take turns in one process, and the median of each one's CPU time counts, which other load
on the machine does not inflate (though caches and memory are shared). A ratio above 1 says that relaxlang is faster
than the best peer. The peak is measured first, with a kernel of nothing but multiplications and additions.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator

for name in ("OMP", "OPENBLAS", "MKL", "RELAXLANG"):
    os.environ[f"{name}_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np  # noqa: E402
from peers import PEERS, Workload  # noqa: E402
from workloads import WORKLOADS  # noqa: E402

import relaxlang  # noqa: E402

Call = Callable[[], object]

PEAK = """
@I.ir_module
class Peak:
    @T.prim_func
    def main(x: T.Buffer((16,), "float32"), y: T.Buffer((16,), "float32"), out: T.Buffer((12, 16), "float32")):
        total = T.alloc_buffer((12, 16), "float32", scope="local")
        for u in T.unroll(12):
            for v in T.vectorized(16):
                total[u, v] = out[u, v]
        for i in range(ROUNDS):
            for u in T.unroll(12):
                for v in T.vectorized(16):
                    total[u, v] = total[u, v] * x[v] + y[v]
        for u in T.unroll(12):
            for v in T.vectorized(16):
                out[u, v] = total[u, v]
"""
ROUNDS = 200_000


def peak() -> float:
    """Floating-point operations a second of one processor."""
    module = relaxlang.build(relaxlang.parse(PEAK.replace("ROUNDS", str(ROUNDS))))
    args = [np.full(16, 0.5, np.float32), np.ones(16, np.float32), np.random.rand(12, 16).astype(np.float32)]
    seconds = min(cpu_time(lambda: module["main"](*args), 1) for _ in range(20))
    return 2 * 12 * 16 * ROUNDS / seconds


def cpu_time(call: Call, times: int) -> float:
    """CPU seconds a call."""
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times


def ours(work: Workload) -> Call:
    """The workload as relaxlang runs it: constants are bound when it is built."""
    mod = relaxlang.parse(work.program())
    constants = {n: a for n, a in work.arrays.items() if n in work.constants}
    run = relaxlang.build(mod, params=constants)["main"]
    args = [a for n, a in work.arrays.items() if n not in constants]
    return lambda: run(*args)


def contenders(work: Workload, peers: list[str]) -> Iterator[tuple[str, Call]]:
    """Whoever can run the workload; a peer that is not installed or cannot is left out, with a word about it."""
    yield "relaxlang", ours(work)
    for name in peers:
        try:
            call = PEERS[name](work)
        except ImportError:
            continue
        if call is not None:
            yield name, call


def check(work: Workload, calls: dict[str, Call]) -> None:
    """Raise unless all contenders give the same values, but for rounding."""
    wanted = np.asarray(calls["relaxlang"]())
    scale = float(np.abs(wanted).max()) or 1.0
    for name, call in calls.items():
        found = np.asarray(call())
        if not np.allclose(found.reshape(wanted.shape), wanted, atol=2e-3 * scale):
            raise SystemExit(f"{work.name}: {name} gives other values than relaxlang")


def measure(calls: dict[str, Call], seconds: float) -> dict[str, float]:
    """The median CPU time a call of each contender; they take turns."""
    times = {n: max(1, int(0.01 / max(cpu_time(c, 1), 1e-7))) for n, c in calls.items()}
    found: dict[str, list[float]] = {n: [] for n in calls}
    start = time.perf_counter()
    while time.perf_counter() - start < seconds * len(calls) or len(found["relaxlang"]) < 5:
        for name, call in calls.items():
            found[name].append(cpu_time(call, times[name]))
    return {n: float(np.median(t)) for n, t in found.items()}


def main() -> None:
    """Measure the workloads whose names contain one of the arguments (all without), and print a row for each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*")
    options.add_argument("--peers", default=",".join(PEERS))
    options.add_argument("--seconds", type=float, default=1.0, help="of measuring, for each contender of a workload")
    given = options.parse_args()
    top = peak()
    print(f"peak: {top / 1e9:.1f} GFLOP/s on one thread; CPU time in µs; ratio = best peer / relaxlang")
    ratios = []
    for work in WORKLOADS:
        if given.names and not any(n in work.name for n in given.names):
            continue
        calls = dict(contenders(work, given.peers.split(",")))
        check(work, calls)
        found = measure(calls, given.seconds)
        mine = found.pop("relaxlang")
        row = f"{work.name:26} {mine * 1e6:11.1f}"
        row += (
            f" {100 * work.flops / mine / top:4.0f} % of peak"
            if work.flops
            else f" {work.bytes / mine / 1e9:6.1f} GB/s   "
        )
        if found:
            best = min(found, key=lambda n: found[n])
            ratios.append(found[best] / mine)
            row += f"  ratio {ratios[-1]:5.2f}  " + "  ".join(f"{n} {t * 1e6:.1f}" for n, t in found.items())
        print(row, flush=True)
    if ratios:
        print(f"geometric mean of {len(ratios)} ratios: {float(np.exp(np.mean(np.log(ratios)))):.2f}")


if __name__ == "__main__":
    sys.exit(main())
