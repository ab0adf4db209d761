"""How fast texts are read and printed, and how much memory they take; beside apache-tvm where it can be imported.

    python tests/bench/bench_parse.py                 a synthetic module of 2,000 lines
    python tests/bench/bench_parse.py --lines 60000   a larger one: the figures per line should not grow
    python tests/bench/bench_parse.py model.rlx …     these files instead

Times are of the processor, the least of several runs, per 1,000 lines of the canonical print, so that both sides read
the same program in their own spelling. Memory is what Python's allocator holds for the tree of IR, and at most while
parsing, per line.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))
import relaxlang

DIALECT = "tvm-0.27"
KERNEL = """
    @T.prim_func(private=True)
    def kernel_{k}(
        A: T.Buffer((128, 64), "float32"), B: T.Buffer((64, 32), "float32"), C: T.Buffer((128, 32), "float32")
    ):
        local = T.alloc_buffer((128, 32), "float32")
        for i, j, k in T.grid(128, 32, 64):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    local[vi, vj] = T.float32(0.0)
                local[vi, vj] = local[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 32):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(local[vi, vj] * T.float32({k}.5), T.float32(0.0))
"""
FUNCTION = """
    @R.function
    def layer_{k}(
        x: R.Tensor((n, 128, 64), "float32"), w: R.Tensor((64, 32), "float32"), b: R.Tensor((32,), "float32")
    ) -> R.Tensor((n, 128, 32), "float32"):
        with R.dataflow():
            h: R.Tensor((n, 128, 32), "float32") = R.matmul(x, w)
            s: R.Tensor((n, 128, 32), "float32") = R.add(h, b)
            r: R.Tensor((n, 128, 32), "float32") = R.nn.relu(s)
            t: R.Tensor((n, 32, 128), "float32") = R.permute_dims(r, axes=[0, 2, 1])
            y: R.Tensor((n, 128, 32), "float32") = R.reshape(t, R.shape([n, 128, 32]))
            R.output(y)
        return y
"""


class Figures(NamedTuple):
    """Seconds and bytes of one side: of parsing and printing per 1,000 lines, of the tree and the peak per line."""

    parse: float
    print: float
    held: float | None = None
    peak: float | None = None


def synthetic(lines: int) -> str:
    """A module of about so many lines, kernels and functions of Relax in turn."""
    parts, count, k = ["@I.ir_module\nclass Module:"], 0, 0
    while count < lines:
        part = (KERNEL if k % 2 else FUNCTION).format(k=k)
        parts.append(part)
        count, k = count + part.count("\n"), k + 1
    return "".join(parts)


def least(run: Callable[[], Any], repeat: int) -> float:
    """The least processor time of several runs, in seconds."""
    times = []
    for _ in range(repeat):
        gc.collect()
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times)


def ours(text: str, repeat: int) -> Figures:
    """Relaxlang's figures for a text in its canonical spelling."""
    mod = relaxlang.parse(text)
    thousands = text.count("\n") / 1000
    parse = least(lambda: relaxlang.parse(text), repeat) / thousands
    printing = least(mod.script, repeat) / thousands
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = relaxlang.parse(text)
    gc.collect()
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return Figures(parse, printing, (now - before) / thousands / 1000, (peak - before) / thousands / 1000)


def theirs(text: str, repeat: int) -> Figures:
    """The figures of apache-tvm for a text in its own spelling."""
    from tvm.script import from_source

    mod = from_source(text)
    thousands = mod.script().count("\n") / 1000
    return Figures(least(lambda: from_source(text), repeat) / thousands, least(mod.script, repeat) / thousands)


def report(name: str, lines: int, mine: Figures, other: Figures | None) -> None:
    """Print the figures of one text."""
    print(f"{name}: {lines} lines")
    print(f"  relaxlang   parse {mine.parse:.3f} s, print {mine.print:.3f} s per 1,000 lines; "
          f"{mine.held:,.0f} bytes a line held, {mine.peak:,.0f} at most")  # fmt: skip
    if other is not None:
        print(f"  apache-tvm  parse {other.parse:.3f} s, print {other.print:.3f} s per 1,000 lines")
        print(f"  relaxlang is {other.parse / mine.parse:.1f} times as fast to parse, "
              f"{other.print / mine.print:.1f} times to print")  # fmt: skip


def main() -> None:
    """Read the command line, measure, and report."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="*", help="programs; without any a synthetic one")
    options.add_argument("--lines", type=int, default=2000, help="the size of the synthetic module (2000)")
    options.add_argument("--repeat", type=int, default=3, help="runs of which the fastest counts (3)")
    options.add_argument("--no-tvm", action="store_true", help="leave apache-tvm out")
    given = options.parse_args()
    texts = {name: Path(name).read_text() for name in given.files} or {"synthetic": synthetic(given.lines)}
    beside = not given.no_tvm and find_spec("tvm") is not None
    for name, text in texts.items():
        mod = relaxlang.parse(text, name)
        canonical = mod.script()
        mine = ours(canonical, given.repeat)
        other = theirs(mod.script(dialect=DIALECT), given.repeat) if beside else None
        report(name, canonical.count("\n"), mine, other)


if __name__ == "__main__":
    main()
