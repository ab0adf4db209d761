"""Random kernels of several stages mean the same interpreted and scheduled for the processor, with every byte of what
they are given followed or preceded by memory that cannot be read.

`python -m tests.property.test_staged_kernels FIRST LAST` tries many more.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from random import Random
from textwrap import indent
from typing import Any

import numpy as np
import pytest

import relaxlang

SIZES = (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129)
MAPS = ("{}", "T.exp(T.min({}, T.float32(1.5)))", "T.max({}, T.float32(0))", "T.tanh({})", "({}) * T.float32(0.5)")
REDUCTIONS = {
    "sum": ("T.float32(0)", "{0} + {1}"),
    "max": ('T.min_value("float32")', "T.max({0}, {1})"),
    "from 5": ("T.float32(5)", "{1} + {0}"),
}


class Kernel:
    """A module whose `main` calls a kernel: `text`, the arrays `args`, and the `shape` of the result."""

    def __init__(self, seed: int) -> None:
        self.random = r = Random(seed)
        self.axes = "ijk"[: r.randint(1, 3)]
        self.extent = {a: r.choice(SIZES if len(self.axes) < 3 else SIZES[:9]) for a in self.axes}
        self.dim = {a: a.upper() if r.random() < 0.4 else str(self.extent[a]) for a in self.axes}
        self.buffers: list[tuple[str, str]] = [("X", self.axes)]
        if r.random() < 0.5:
            self.buffers.append(("Y", self._some_axes()))
        given = list(self.buffers)
        stages = r.randint(2, 5)
        lines = [line for k in range(stages) for line in self._stage(k, "O" if k == stages - 1 else f"s{k}")]
        made = self.buffers[len(given) :]
        allocated = [f'{name} = T.alloc_buffer({self._dims(axes)}, "float32")' for name, axes in made[:-1]]
        params = ", ".join(f'{name}: T.Buffer({self._dims(axes)}, "float32")' for name, axes in (*given, made[-1]))
        tensors = ", ".join(f'{name.lower()}: R.Tensor({self._dims(axes)}, "float32")' for name, axes in given)
        called = f"({', '.join(name.lower() for name, _ in given)},)"
        result = f'R.Tensor({self._dims(made[-1][1])}, "float32")'
        body = indent("\n".join(allocated + lines), " " * 8)
        self.text = (
            "@I.ir_module\nclass Module:\n"
            f"    @T.prim_func(private=True)\n    def f({params}):\n{body}\n"
            f"    @R.function\n    def main({tensors}):\n"
            f"        o = R.call_tir(Module.f, {called}, out_sinfo={result})\n        return o\n"
        )
        rng = np.random.default_rng(seed)
        self.args = [rng.uniform(-1.5, 1.5, self._shape(axes)).astype("float32") for _, axes in given]
        self.shape = self._shape(made[-1][1])

    def _stage(self, at: int, name: str) -> list[str]:
        """A block that maps or reduces one or two of the buffers there are."""
        r = self.random
        axes = self._some_axes() if r.random() < 0.5 else self.axes
        read = [r.choice(self.buffers[-3:]) for _ in range(r.randint(1, 2))]
        reduced = "".join(a for a in self.axes if a not in axes and any(a in of for _, of in read))
        value = r.choice(" * | + | - ".split("|")).join(f"{buffer}[{_indices(of)}]" for buffer, of in read)
        value = r.choice(MAPS).format(value)
        place = f"{name}[{_indices(axes)}]"
        order = r.sample(axes + reduced, len(axes + reduced))
        lines = [f"{'    ' * k}for {a} in range({self.dim[a]}):" for k, a in enumerate(order)]
        lines.append(f'{"    " * len(order)}with T.block("b{at}"):')
        body = [f"v{a} = T.axis.spatial({self.dim[a]}, {a})" for a in axes]
        body += [f"v{a} = T.axis.reduce({self.dim[a]}, {a})" for a in reduced]
        if reduced:
            first, update = REDUCTIONS[r.choice(list(REDUCTIONS))]
            count = int(np.prod([self.extent[a] for a in reduced]))
            value = update.format(place, f"({value}) * T.float32({1 / count})")
            body += ["with T.init():", f"    {place} = {first}"]
        body.append(f"{place} = {value}")
        self.buffers.append((name, axes))
        return lines + ["    " * (len(order) + 1) + line for line in body]

    def _some_axes(self) -> str:
        return "".join(self.random.sample(self.axes, self.random.randint(1, len(self.axes))))

    def _dims(self, axes: str) -> str:
        return f"({', '.join(self.dim[a] for a in axes)},)"

    def _shape(self, axes: str) -> tuple[int, ...]:
        return tuple(self.extent[a] for a in axes)


def _indices(axes: str) -> str:
    return ", ".join(f"v{a}" for a in axes)


class Guarded:
    """A copy of an array that ends, or begins (`first`), where memory that cannot be read or written is next."""

    def __init__(self, array: np.ndarray[Any, Any], first: bool) -> None:
        page = mmap.PAGESIZE
        inside = -(-array.nbytes // page) * page
        self.memory = mmap.mmap(-1, inside + 2 * page)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for place in (base, base + page + inside):
            assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(place), page, 0) == 0
        at = page if first else page + inside - array.nbytes
        self.array = np.frombuffer(self.memory, array.dtype, array.size, at).reshape(array.shape)
        self.array[...] = array


def fault(seed: int) -> str:
    """What is wrong with a kernel; "" when nothing is."""
    kernel = Kernel(seed)
    mod = relaxlang.parse(kernel.text)
    wanted = np.asarray(relaxlang.interpret(mod, "main", *kernel.args))
    size = max(1e-2, float(np.abs(wanted).max()))
    run = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())["main"]
    for first in (False, True):
        given = [Guarded(a, first) for a in kernel.args]
        found = Guarded(np.full(kernel.shape, 7, "float32"), first)
        run(*(g.array for g in given), out=found.array)
        if not np.allclose(found.array, wanted, rtol=3e-4, atol=3e-4 * size):
            return f"{found.array} for {wanted}"
    return ""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages as Linux does")
@pytest.mark.parametrize("seed", range(10))
def test_kernel(seed: int) -> None:
    assert fault(seed) == ""


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        said = fault(number)
        if said:
            print(f"seed {number}: {said}\n{Kernel(number).text}")
