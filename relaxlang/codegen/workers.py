"""Many kernels at once: a thread compiles while the caller writes the texts of others, and so does a second process
when more waits than it takes to start one.

LLVM leaves Python's lock to others while it works, but has one of its own: a second thread would gain nothing. A worker
is a process of its own that imports LLVM and nothing of the caller's program; it puts what it makes into the cache, and
when it fails for whatever reason, the caller compiles what is missing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from relaxlang.base.config import config, usable_processors
from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.codegen import cache, compile
from relaxlang.codegen.target import Target

if TYPE_CHECKING:
    from concurrent.futures import Future
    from subprocess import Popen

Job = tuple[str, Target]
"""An IR text and the target to compile it for."""

WORTHWHILE = 0.6
"""Seconds of compiling that wait from which on a second process, which takes 0.2 s to start, makes it shorter."""
_START = 0.2
_WORKER = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from relaxlang.codegen.workers import work
work(line.rstrip("\\n") for line in sys.stdin)
"""
_PER_KERNEL, _PER_LINE = 0.01, 8e-5


class Crew:
    """Those who compile beside the caller: `add` gives them a job, `finish` waits until all are done."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._thread = ThreadPoolExecutor(1, "relaxlang-llvm")
        self._begun: list[tuple[Job, Future[object]]] = []  # by the thread, in order
        self._process: Popen[str] | None = None
        self._has_tried = False  # to start it
        self._folder = ""
        self._load = _START  # seconds of what the process has to do
        self._given = 0

    def add(self, job: Job, here: Callable[[], object]) -> None:
        """Let somebody compile a text and put it into the cache; `here` does that in this process."""
        if cache.has(*job):
            return
        self._begun = [(one, future) for one, future in self._begun if not future.done()]
        waits = sum(estimate(one) for one, _ in self._begun)
        if self._process is not None and self._load < waits and self._give(job):
            return
        self._begun.append((job, self._thread.submit(here)))
        if not self._has_tried and waits + estimate(job) > WORTHWHILE and _can_start(job):
            self._has_tried = True
            with suppress(OSError):  # no more processes, or no room: then the thread does it all
                self._start()

    def finish(self) -> None:
        """Wait for all that was begun."""
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(OSError):  # it has ended already
                process.stdin.close()
        self._thread.shutdown()
        if process is not None:
            process.wait()

    def leave(self) -> None:
        """End what is still at work, and forget what waits."""
        self._thread.shutdown(cancel_futures=True)
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            with suppress(OSError):
                if self._process.stdin is not None:
                    self._process.stdin.close()
        if self._folder:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        """Start the process, and give it the latter half of what waits."""
        import subprocess
        import tempfile

        self._folder = tempfile.mkdtemp(prefix="relaxlang-")
        silent = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=silent,
            stderr=silent,
            text=True,
        )
        for job, future in self._begun[len(self._begun) // 2 + 1 :]:
            if future.cancel():
                self._give(job)

    def _give(self, job: Job) -> bool:
        """Give the process a job, in a file, as a pipe holds no text; whether it took it."""
        assert self._process is not None and self._process.stdin is not None
        if not _can_start(job):
            return False
        path = os.path.join(self._folder, f"{self._given}.json")
        try:
            with open(path, "w", encoding="utf-8") as file:
                json.dump([job[0], str(job[1])], file)
            self._process.stdin.write(path + "\n")
            self._process.stdin.flush()
        except OSError:  # it has ended, or the disk is full
            return False
        self._given += 1
        self._load += estimate(job)
        return True


@contextmanager
def crew(jobs: int) -> Iterator[Crew | None]:
    """Who compiles about so many texts beside the caller; None when there is no second processor or nothing to be done
    at the same time. When the context is left early, what waits is dropped."""
    if jobs < 2 or _processors() < 2:
        yield None
        return
    made = Crew()
    try:
        yield made
    finally:
        made.leave()


def estimate(job: Job) -> float:
    """Roughly the seconds that a job takes."""
    return _PER_KERNEL + _PER_LINE * job[0].count("\n")


def _can_start(job: Job) -> bool:
    """Whether another process could do a job: it finds the target by its text, and the result is found in the cache."""
    return config.cache_dir is not None and bool(sys.executable) and Target(str(job[1])) == job[1]


def _processors() -> int:
    """The processes that may work at once: as many as there are threads for kernels, and processors."""
    return max(1, min(config.num_threads, usable_processors()))


def work(paths: Iterator[str]) -> None:
    """What a worker does: compile the texts in files, for targets that are named as `str(target)` names them."""
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                text, target = json.load(file)
            cache.fetch(text, Target(target), compile.object_code)
        except (OSError, ValueError, RelaxlangError):  # the caller meets it too, and reports it
            continue
