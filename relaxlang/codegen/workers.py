"""Many kernels at once: a thread compiles while the caller writes the texts of others, and what waits in the end is
shared among processes if that is worthwhile.

LLVM leaves Python's lock to others while it works, but has one of its own: a second thread would gain nothing. A worker
is a process of its own that imports LLVM and nothing of the caller's program; it puts what it makes into the cache, and
when it fails for whatever reason, the caller compiles what is missing.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from relaxlang.base.config import config
from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.codegen import cache, compile
from relaxlang.codegen.target import Target

if TYPE_CHECKING:
    import subprocess

Job = tuple[str, Target]
"""An IR text and the target to compile it for."""

Begin = Callable[[Callable[[], object]], "Future[object]"]

WORTHWHILE = 0.8
"""Seconds of compiling from which on a second process, which takes 0.2 s to start, makes it shorter."""
_WORKER = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    share = json.load(file)
sys.path[:] = share["path"]
from relaxlang.codegen.workers import work
work(share["jobs"])
"""
_PER_KERNEL, _PER_LINE = 0.01, 8e-5


@contextmanager
def beside(jobs: int) -> Iterator[Begin | None]:
    """A thread for that many jobs: what begins one, to be done after those begun earlier; None when there is no second
    processor or nothing to be done at the same time. When the context is left, the job at hand is awaited and what
    waits is dropped."""
    if jobs < 2 or _processors() < 2:
        yield None
        return
    pool = ThreadPoolExecutor(1, "relaxlang-llvm")
    try:
        yield pool.submit
    finally:
        pool.shutdown(cancel_futures=True)


def compile_missing(jobs: Sequence[Job]) -> None:
    """Compile what the cache lacks of `jobs` and put it there, in several processes if that is worthwhile. Without a
    cache nothing is done."""
    if config.cache_dir is None:
        return
    missing = {job: estimate(job) for job in jobs if not cache.has(*job)}
    workers = min(_processors(), len(missing), 1 + int(sum(missing.values()) / WORTHWHILE))
    if workers < 2 or not sys.executable or not all(Target(str(target)) == target for _, target in missing):
        return
    shares = _shares(missing, workers)
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="relaxlang-") as folder:
        try:
            for number, share in enumerate(shares[1:]):
                started.append(_start(os.path.join(folder, f"{number}.json"), share))
            for text, target in shares[0]:
                cache.fetch(text, target, compile.object_code)
            for process in started:
                process.wait()
        finally:
            for process in started:
                if process.poll() is None:
                    process.kill()
                    process.wait()


def estimate(job: Job) -> float:
    """Roughly the seconds that a job takes."""
    return _PER_KERNEL + _PER_LINE * job[0].count("\n")


def _processors() -> int:
    """The processes that may work at once: as many as there are threads for kernels, and processors."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(config.num_threads, here))


def _shares(missing: dict[Job, float], workers: int) -> list[list[Job]]:
    """The jobs dealt out so that all take about as long."""
    shares: list[list[Job]] = [[] for _ in range(workers)]
    loads = [0.0] * workers
    for job, seconds in sorted(missing.items(), key=lambda item: -item[1]):
        least = loads.index(min(loads))
        shares[least].append(job)
        loads[least] += seconds
    return shares


def _start(path: str, share: list[Job]) -> subprocess.Popen[bytes]:
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"path": sys.path, "jobs": [[text, str(target)] for text, target in share]}, file)
    import subprocess  # takes 3 ms, and few builds get here

    silent = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-c", _WORKER, path], stdin=silent, stdout=silent, stderr=silent)


def work(jobs: Sequence[tuple[str, str]]) -> None:
    """What a worker does: compile texts for targets, which are named as `str(target)` names them."""
    for text, target in jobs:
        try:
            cache.fetch(text, Target(target), compile.object_code)
        except RelaxlangError:  # the caller meets it too, and reports it
            continue
