"""The programs of the matrix: small, and between them with everything that a static program can be made of."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

import relaxlang
from relaxlang.ir.module import IRModule

Make = Callable[[np.random.Generator], tuple[Any, ...]]


class Program(NamedTuple):
    """A module's functions as text, arguments of `main`, what it computes with numpy (None: the interpreter decides),
    and whether it is a fixed list of kernel calls, so that graphs and C programs can be made of it."""

    text: str
    args: Make
    numpy: Callable[..., Any] | None = None
    static: bool = True
    packed: bool = False

    def module(self) -> IRModule:
        """The module."""
        return relaxlang.parse("@I.ir_module\nclass Module:\n" + indent(self.text.strip("\n"), "    "))

    def arguments(self) -> tuple[Any, ...]:
        """The arguments, the same each time."""
        return self.args(np.random.default_rng(0))


def floats(*shapes: tuple[int, ...]) -> Make:
    """Uniform float32 arrays."""
    return lambda rng: tuple(rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes)


def softmax(x: Any) -> Any:
    """Along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


PROGRAMS: dict[str, Program] = {
    "mlp": Program(
        '''
@R.function
def main(x: R.Tensor((4, 16), "float32"), w: R.Tensor((16, 32), "float32"), v: R.Tensor((32, 10), "float32")):
    with R.dataflow():
        h = R.nn.relu(R.matmul(x, w))
        y = R.nn.softmax(R.matmul(h, v), axis=-1)
        R.output(y)
    return y
''',
        floats((4, 16), (16, 32), (32, 10)),
        lambda x, w, v: softmax(np.maximum(x @ w, 0) @ v),
    ),
    "cnn": Program(
        '''
@R.function
def main(x: R.Tensor((1, 3, 12, 12), "float32"), w: R.Tensor((8, 3, 3, 3), "float32"), b: R.Tensor((8,), "float32")):
    with R.dataflow():
        c = R.nn.conv2d(x, w, padding=(1, 1))
        d = R.nn.relu(R.add(c, R.reshape(b, (1, 8, 1, 1))))
        p = R.nn.max_pool2d(d, pool_size=(2, 2), strides=(2, 2))
        m = R.mean(p, axis=(2, 3))
        R.output(m)
    return m
''',
        floats((1, 3, 12, 12), (8, 3, 3, 3), (8,)),
    ),
    "tuples": Program(
        '''
@R.function
def main(p: R.Tuple(R.Tensor((3, 4), "float32"), R.Tensor((4,), "float32")), q: R.Tensor((3, 4), "float32")):
    with R.dataflow():
        s = R.split(R.add(p[0], p[1]), 2, axis=1)
        t = R.multiply(q, q)
        r = ((s[0], t), R.concat([s[1], s[0]], axis=1))
        R.output(r)
    return r
''',
        lambda rng: ((rng.random((3, 4), np.float32), rng.random(4, np.float32)), rng.random((3, 4), np.float32)),
        lambda p, q: (((p[0] + p[1])[:, :2], q * q), np.concatenate([(p[0] + p[1])[:, 2:], (p[0] + p[1])[:, :2]], 1)),
    ),
    "constants": Program(
        '''
@R.function
def main(x: R.Tensor((2, 3), "float32")):
    with R.dataflow():
        w = R.const([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]], "float32")
        y = R.add(R.matmul(x, w), R.const([0.5, -0.5, 2.0], "float32"))
        z = R.multiply(y, R.const(3.0, "float32"))
        R.output(y, z)
    return (z, y, R.const([1, 2], "int64"))
''',
        floats((2, 3)),
        lambda x: (
            (x @ np.arange(1, 10, dtype=np.float32).reshape(3, 3) + np.float32([0.5, -0.5, 2])) * np.float32(3),
            x @ np.arange(1, 10, dtype=np.float32).reshape(3, 3) + np.float32([0.5, -0.5, 2]),
            np.int64([1, 2]),
        ),
    ),
    "dtypes": Program(
        '''
@R.function
def main(a: R.Tensor((5,), "int8"), b: R.Tensor((5,), "bool"), c: R.Tensor((5,), "float16"), d: R.Tensor((), "int64")):
    with R.dataflow():
        e = R.where(b, R.astype(a, "float16"), c)
        f = R.add(R.astype(a, "int64"), d)
        g = R.logical_not(b)
        R.output(e, f, g)
    return (e, f, g)
''',
        lambda rng: (
            rng.integers(-128, 128, 5).astype(np.int8), rng.random(5) < 0.5, rng.random(5).astype(np.float16),
            np.int64(7),
        ),
        lambda a, b, c, d: (np.where(b, a.astype(np.float16), c), a.astype(np.int64) + d, ~b),
    ),
    "functions": Program(
        '''
@R.function
def main(x: R.Tensor((4, 4), "float32")):
    y = Module.twice(x)
    z = Module.twice(y)
    return R.add(y, z)

@R.function(private=True)
def twice(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
    out = R.call_tir(Module.double, (x,), out_sinfo=R.Tensor((4, 4), "float32"))
    return out

@T.prim_func(private=True)
def double(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
''',
        floats((4, 4)),
        lambda x: 6 * x,
    ),
    "views": Program(
        '''
@R.function
def main(x: R.Tensor((2, 6), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.reshape(a, (3, 4))
        c = R.reshape(R.multiply(b, b), (12,))
        d = R.add(R.reshape(b, (2, 6)), x)
        R.output(c, d)
    return (c, d, x)
''',
        floats((2, 6)),
        lambda x: ((np.exp(x) ** 2).reshape(12), np.exp(x) + x, x),
    ),
    "packed": Program(
        '''
@R.function
def main(x: R.Tensor((3,), "float32")):
    y = R.call_dps_packed("test.matrix.triple", (x,), out_sinfo=R.Tensor((3,), "float32"))
    return R.add(y, x)
''',
        floats((3,)),
        lambda x: 4 * x,
        packed=True,
    ),
    "shapes": Program(
        '''
@R.function
def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, m), "float32")):
    return R.reshape(R.matmul(x, w), (n * m,))
''',
        floats((3, 4), (4, 5)),
        lambda x, w: (x @ w).reshape(15),
        static=False,
    ),
    "branches": Program(
        '''
@R.function
def main(c: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
    if c:
        y = R.add(x, x)
    else:
        y = R.negative(x)
    return y
''',
        lambda rng: (np.bool_(False), rng.random(3, np.float32)),
        lambda c, x: -x,
        static=False,
    ),
    "sizes found by values": Program(
        '''
@R.function
def main(x: R.Tensor((6,), "int64")):
    u = R.unique(x)
    return u
''',
        lambda rng: (np.int64([3, 1, 3, 2, 1, 3]),),
        lambda x: np.unique(x),
        static=False,
    ),
}  # fmt: skip


@relaxlang.register_func("test.matrix.triple", override=True)
def _triple(x: Any, out: Any) -> None:
    out[...] = np.asarray(x) * 3
