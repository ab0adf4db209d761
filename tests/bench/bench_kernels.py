"""Kernels against installed peers: ratios of time, and what part of the peak they reach.

    python tests/bench/bench_kernels.py [name…] [--peers numpy,torch] [--seconds 1.0] [--threads 2] [--symbolic]

It runs on purpose, not with the tests. Peers come with the extra `bench`; those that are not installed are left out.
All contenders of a workload take turns in one process, and the median of each one's CPU time counts, which other load
on the machine does not inflate (though caches and memory are shared). A ratio above 1 says that relaxlang is faster
than the best peer. The peak is measured first, with a kernel of nothing but multiplications and additions. On several
threads wall time counts, so the machine has to be quiet. `--symbolic` compares with the same program whose sizes are
known only when it is called, instead of with peers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator

from settling import settle

# The libraries read their settings when they are imported; whoever waits for work must not take another's processor.
THREADS = int(sys.argv[sys.argv.index("--threads") + 1]) if "--threads" in sys.argv[:-1] else 1
for name in ("OMP", "OPENBLAS", "MKL", "RELAXLANG"):
    os.environ[f"{name}_NUM_THREADS"] = str(THREADS)
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
if THREADS == 1:
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


CLOCK = time.process_time if THREADS == 1 else time.perf_counter


def peak() -> float:
    """Floating-point operations a second of as many processors as there are threads."""
    module = relaxlang.build(relaxlang.parse(PEAK.replace("ROUNDS", str(ROUNDS))))
    args = [np.full(16, 0.5, np.float32), np.ones(16, np.float32), np.random.rand(12, 16).astype(np.float32)]
    seconds = min(timed(lambda: module["main"](*args), 1) for _ in range(20))
    return THREADS * 2 * 12 * 16 * ROUNDS / seconds


def timed(call: Call, times: int) -> float:
    """Seconds a call: of CPU time on one thread, else of wall time."""
    start = CLOCK()
    for _ in range(times):
        call()
    return (CLOCK() - start) / times


def ours(work: Workload, symbolic: bool = False) -> Call:
    """The workload as relaxlang runs it: constants are bound when it is built."""
    mod = relaxlang.parse(work.program(symbolic))
    constants = {n: a for n, a in work.arrays.items() if n in work.constants}
    run = relaxlang.build(mod, params=constants)["main"]
    args = [a for n, a in work.arrays.items() if n not in constants]
    return lambda: run(*args)


def contenders(work: Workload, peers: list[str]) -> Iterator[tuple[str, Call]]:
    """Whoever can run the workload; a peer that is not installed or cannot is left out."""
    yield "relaxlang", ours(work)
    for name in filter(None, peers):
        try:
            call = PEERS[name](work, THREADS)
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
    """The median time a call of each contender; they take turns."""
    times = {n: max(1, int(0.01 / max(timed(c, 1), 1e-7))) for n, c in calls.items()}
    found: dict[str, list[float]] = {n: [] for n in calls}
    start = time.perf_counter()
    while time.perf_counter() - start < seconds * len(calls) or len(found["relaxlang"]) < 5:
        for name, call in calls.items():
            if THREADS > 1:
                settle()
                call()
            found[name].append(timed(call, times[name]))
    return {n: float(np.median(t)) for n, t in found.items()}


def main() -> None:
    """Measure the workloads whose names contain one of the arguments (all without), and print a row for each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*")
    options.add_argument("--peers", default=",".join(PEERS))
    options.add_argument("--seconds", type=float, default=1.0, help="of measuring, for each contender of a workload")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--symbolic", action="store_true")
    given = options.parse_args()
    top = peak()
    what = "known sizes / symbolic sizes" if given.symbolic else "best peer / relaxlang"
    print(f"peak: {top / 1e9:.1f} GFLOP/s on {THREADS} thread(s); "
          f"{'CPU' if THREADS == 1 else 'wall'} time in µs; ratio = {what}")  # fmt: skip
    ratios = []
    for work in WORKLOADS:
        if given.names and not any(n in work.name for n in given.names):
            continue
        if given.symbolic:
            calls = {"relaxlang": ours(work, symbolic=True), "known": ours(work)}
        else:
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
