"""Threads for parallel loops: a pool that lives as long as the process.

The pool is LLVM code, compiled once. A launch publishes a function and a number of chunks; whoever is free claims the
next chunk by counting up a ticket that carries the launch's number, so a late thread cannot take a chunk of another
launch. The caller takes part, and waits only for chunks that others have claimed: with no free processor it does all
the work itself. A launch within a launch, or while another thread's is running, runs serially.

Workers are Python daemon threads that sit in LLVM code without the interpreter lock. They spin for some 50 µs after a
launch, then sleep on a futex. A forked child starts with workers of its own.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from relaxlang.base.config import config
from relaxlang.base.diagnostics import RelaxlangError

if TYPE_CHECKING:
    from relaxlang.codegen.target import Target

LAUNCH = "relaxlang_parallel"
"""`void relaxlang_parallel(void body(void *context, int64_t begin, int64_t end), void *context, int64_t extent,
int64_t grain)`: the iterations from 0 to `extent`, in chunks of at least `grain`."""
MOST_THREADS = 256
_FUTEX = {"x86_64": 202, "aarch64": 98}

# `ticket` is launch << 32 | next chunk, `done` counts chunks, `wake` is the launch that sleepers wait for, `limit` the
# threads allowed, `busy` the lock of launching. Each hot word has a cache line of its own.
_IR = """
target triple = "{triple}"
@ticket = internal global i64 0, align 128
@done = internal global i64 0, align 128
@busy = internal global i32 0, align 128
@sleepers = internal global i32 0, align 128
@wake = internal global i32 0, align 128
@limit = internal global i32 1, align 128
@body = internal global ptr null, align 128
@context = internal global ptr null
@extent = internal global i64 0
@chunk = internal global i64 0
@chunks = internal global i64 0

declare i32 @sched_yield()
{declarations}

define internal void @pause() alwaysinline {{
  {pause}
  ret void
}}

define void @relaxlang_limit(i32 %n) {{
  store atomic i32 %n, ptr @limit seq_cst, align 4
  ret void
}}

define void @relaxlang_reset(i32 %n) {{
  store atomic i64 0, ptr @done seq_cst, align 8
  store atomic i64 4294967295, ptr @ticket seq_cst, align 8
  store atomic i32 0, ptr @wake seq_cst, align 4
  store atomic i32 0, ptr @sleepers seq_cst, align 4
  store atomic i32 %n, ptr @limit seq_cst, align 4
  store atomic i64 0, ptr @chunks seq_cst, align 8
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}}

; Claims and runs chunks of launch %launch until none is left.
define internal void @work(i64 %launch) {{
entry:
  br label %claim
claim:
  %t = load atomic i64, ptr @ticket acquire, align 8
  %of = lshr i64 %t, 32
  %mine = icmp eq i64 %of, %launch
  br i1 %mine, label %look, label %out
look:
  %i = and i64 %t, 4294967295
  %n = load atomic i64, ptr @chunks monotonic, align 8
  %left = icmp ult i64 %i, %n
  br i1 %left, label %take, label %out
take:
  %f = load atomic ptr, ptr @body monotonic, align 8
  %c = load atomic ptr, ptr @context monotonic, align 8
  %e = load atomic i64, ptr @extent monotonic, align 8
  %s = load atomic i64, ptr @chunk monotonic, align 8
  %t1 = add i64 %t, 1
  %pair = cmpxchg ptr @ticket, i64 %t, i64 %t1 acq_rel monotonic
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %run, label %claim
run:
  %begin = mul i64 %i, %s
  %far = add i64 %begin, %s
  %end = call i64 @llvm.smin.i64(i64 %far, i64 %e)
  call void %f(ptr %c, i64 %begin, i64 %end)
  %d = atomicrmw add ptr @done, i64 1 release
  br label %claim
out:
  ret void
}}

define void @relaxlang_parallel(ptr %f, ptr %c, i64 %extent, i64 %grain) {{
entry:
  %some = icmp sgt i64 %extent, 0
  br i1 %some, label %size, label %nothing
nothing:
  ret void
size:
  %threads = load atomic i32, ptr @limit monotonic, align 4
  %wide = sext i32 %threads to i64
  %parts = mul i64 %wide, 4
  %up = add i64 %extent, %parts
  %up1 = sub i64 %up, 1
  %even = sdiv i64 %up1, %parts
  %chunk = call i64 @llvm.smax.i64(i64 %even, i64 %grain)
  %one = icmp sle i32 %threads, 1
  %twice = shl i64 %grain, 1
  %small = icmp slt i64 %extent, %twice
  %few = icmp sge i64 %chunk, %extent
  %no1 = or i1 %one, %small
  %no = or i1 %no1, %few
  br i1 %no, label %serial, label %lock
serial:
  call void %f(ptr %c, i64 0, i64 %extent)
  ret void
lock:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %locked = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %locked, label %publish, label %serial
publish:
  %sum = add i64 %extent, %chunk
  %sum1 = sub i64 %sum, 1
  %n = sdiv i64 %sum1, %chunk
  %old = load atomic i64, ptr @ticket monotonic, align 8
  %generation = lshr i64 %old, 32
  %next = add i64 %generation, 1
  %launch = and i64 %next, 2147483647
  store atomic ptr %f, ptr @body monotonic, align 8
  store atomic ptr %c, ptr @context monotonic, align 8
  store atomic i64 %extent, ptr @extent monotonic, align 8
  store atomic i64 %chunk, ptr @chunk monotonic, align 8
  store atomic i64 %n, ptr @chunks monotonic, align 8
  store atomic i64 0, ptr @done monotonic, align 8
  %ticket = shl i64 %launch, 32
  store atomic i64 %ticket, ptr @ticket seq_cst, align 8
  %narrow = trunc i64 %launch to i32
  store atomic i32 %narrow, ptr @wake seq_cst, align 4
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %any = icmp sgt i32 %asleep, 0
  br i1 %any, label %rouse, label %join
rouse:
  {rouse}
  br label %join
join:
  call void @work(i64 %launch)
  br label %wait
wait:
  %spins = phi i32 [ 0, %join ], [ %spins1, %again ], [ 0, %yield ]
  %d = load atomic i64, ptr @done acquire, align 8
  %all = icmp eq i64 %d, %n
  br i1 %all, label %unlock, label %idle
idle:
  %spins1 = add i32 %spins, 1
  %long = icmp ugt i32 %spins1, 2000
  br i1 %long, label %yield, label %again
again:
  call void @pause()
  br label %wait
yield:
  %y = call i32 @sched_yield()
  br label %wait
unlock:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}}

define void @relaxlang_worker(i32 %id) {{
entry:
  br label %watch
watch:
  %seen = phi i32 [ 0, %entry ], [ %now, %join ], [ %now, %skip ]
  br label %look
look:
  %spins = phi i32 [ 0, %watch ], [ %spins1, %idle ], [ 0, %awake ]
  %now = load atomic i32, ptr @wake seq_cst, align 4
  %same = icmp eq i32 %now, %seen
  br i1 %same, label %still, label %called
still:
  %spins1 = add i32 %spins, 1
  %long = icmp ugt i32 %spins1, 2000
  br i1 %long, label %sleep, label %idle
idle:
  call void @pause()
  br label %look
sleep:
  %up = atomicrmw add ptr @sleepers, i32 1 seq_cst
  {sleep}
  %down = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %awake
awake:
  br label %look
called:
  %allowed = load atomic i32, ptr @limit monotonic, align 4
  %id1 = add i32 %id, 1
  %wanted = icmp slt i32 %id1, %allowed
  br i1 %wanted, label %join, label %skip
skip:
  br label %watch
join:
  %launch = zext i32 %now to i64
  call void @work(i64 %launch)
  br label %watch
}}

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""


class Pool:
    """The threads of this process. Made when first needed; `launch` is the address of the launching function."""

    def __init__(self, threads: int) -> None:
        from relaxlang.codegen import cache, jit
        from relaxlang.codegen.target import Target

        target = Target()
        names = [LAUNCH, "relaxlang_limit", "relaxlang_reset", "relaxlang_worker"]
        code = cache.fetch(_text(target.mtriple), target, _compile)
        self._code = jit.load([code], names)
        # Workers run this code until the process ends, past the end of the interpreter: it is never given back.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._code))
        self.launch = self._code.addresses[LAUNCH]
        self._set_limit = self._function("relaxlang_limit")
        self._reset = self._function("relaxlang_reset")
        self._work = self._function("relaxlang_worker")
        self._lock = threading.Lock()
        self._started = 0
        self.threads = 1
        self.resize(threads)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _function(self, name: str) -> Callable[[int], None]:
        made: Any = ctypes.CFUNCTYPE(None, ctypes.c_int32)(self._code.addresses[name])
        return made  # type: ignore[no-any-return]

    def resize(self, threads: int) -> None:
        """Let parallel loops use this many threads, the calling one included."""
        with self._lock:
            while self._started < threads - 1:
                worker = threading.Thread(
                    target=self._work, args=(self._started,), name=f"relaxlang-{self._started}", daemon=True
                )
                worker.start()
                self._started += 1
            self.threads = threads
            self._set_limit(threads)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._started = 0
        self._reset(1)
        self.resize(self.threads)


_pool: list[Pool] = []
_making = threading.Lock()


def pool() -> Pool:
    """The process's pool, with `RELAXLANG_NUM_THREADS` threads at first."""
    if not _pool:
        with _making:
            if not _pool:
                _pool.append(Pool(min(config.num_threads, MOST_THREADS)))
    return _pool[0]


def set_num_threads(threads: int) -> None:
    """Let parallel loops use `threads` threads from now on. Results do not depend on it."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise RelaxlangError(f"the number of threads is a whole number from 1 to {MOST_THREADS}, not {threads!r}")
    pool().resize(threads)


def get_num_threads() -> int:
    """How many threads parallel loops use."""
    return pool().threads


def _compile(text: str, target: Target) -> bytes:
    from relaxlang.codegen.compile import tidied

    return tidied(text, target)


def _text(triple: str) -> str:
    arch = "x86_64" if platform.machine().lower() in ("x86_64", "amd64") else platform.machine().lower()
    if arch == "x86_64":
        pause, declarations = "call void @llvm.x86.sse2.pause()", ["declare void @llvm.x86.sse2.pause()"]
    elif arch in ("aarch64", "arm64"):
        pause, declarations = "call void @llvm.aarch64.hint(i32 1)", ["declare void @llvm.aarch64.hint(i32)"]
    else:
        pause, declarations = "fence seq_cst", []
    if sys.platform == "linux" and arch in _FUTEX:
        declarations.append("declare i64 @syscall(i64, ...)")
        call = f"call i64 (i64, ...) @syscall(i64 {_FUTEX[arch]}, ptr @wake, "
        rouse = f"%woken = {call}i32 129, i32 2147483647)"  # FUTEX_WAKE | FUTEX_PRIVATE_FLAG
        sleep = f"%slept = {call}i32 128, i32 %seen, ptr null)"  # FUTEX_WAIT | FUTEX_PRIVATE_FLAG
    else:  # no portable word to sleep on: look again ten thousand times a second
        declarations.append("declare i32 @usleep(i32)")
        rouse, sleep = "fence seq_cst", "%slept = call i32 @usleep(i32 100)"
    return _IR.format(triple=triple, pause=pause, declarations="\n".join(declarations), rouse=rouse, sleep=sleep)
