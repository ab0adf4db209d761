"""Programs about shapes at run time, with calls: arguments, and the values or the error that they give."""

from __future__ import annotations

from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

import relaxlang
from relaxlang.ir.module import IRModule


class Error(NamedTuple):
    """A call that fails: the code, and words of the message."""

    code: str
    words: tuple[str, ...]


class Program(NamedTuple):
    """A module with calls of `main`: arguments and outcome."""

    name: str
    text: str
    calls: tuple[tuple[tuple[Any, ...], Any], ...]

    @property
    def module(self) -> IRModule:
        """The parsed module."""
        return relaxlang.parse("@I.ir_module\nclass Module:\n" + indent(self.text.strip("\n"), "    "), self.name)


def f32(*shape: int) -> Any:
    """0, 1, 2, … as float32, of a shape."""
    return np.arange(int(np.prod(shape)), dtype="float32").reshape(shape)


def shape(*dims: int) -> Any:
    """A shape argument."""
    return relaxlang.ShapeTuple(dims)


PROGRAMS: list[Program] = []


def program(name: str, text: str, *calls: tuple[tuple[Any, ...], Any]) -> None:
    """Enter a program in the table."""
    PROGRAMS.append(Program(name, text, calls))


# --- match_cast -------------------------------------------------------------------------------------------------------
program(
    "match_cast of a tensor",
    """
@R.function
def main(x: R.Object, y: R.Tensor(ndim=2, dtype="float32")) -> R.Tuple(R.Tensor(ndim=1), R.Prim("int64")):
    t = R.match_cast(x, R.Tensor((n, m), "float32"))
    u = R.match_cast(y, R.Tensor((m, n), "float32"))
    s = R.add(R.flatten(t), R.flatten(R.permute_dims(u)))
    return (s, R.prim_value(n * 10 + m))
""",
    ((f32(2, 3), f32(3, 2)), (f32(6) + f32(3, 2).T.ravel(), 23)),
    ((f32(0, 3), f32(3, 0)), (f32(0), 3)),
    ((f32(2, 3), f32(2, 3)), Error("RLX6005", ("`m` = 3",))),
    ((f32(2), f32(3, 2)), Error("RLX6004", ("2 dimensions",))),
    ((f32(2, 3).astype("int32"), f32(3, 2)), Error("RLX6003", ("float32",))),
    ((5, f32(3, 2)), Error("RLX6002", ("a tensor",))),
)
program(
    "match_cast of a shape, a tuple and a scalar",
    """
@R.function
def main(s: R.Shape(ndim=2), p: R.Object, k: R.Prim("int64")) -> R.Tuple(R.Shape(ndim=3), R.Tensor(ndim=1)):
    dims = R.match_cast(s, R.Shape([a, b]))
    pair = R.match_cast(p, R.Tuple(R.Tensor((c,), "float32"), R.Tuple(R.Shape([c]), R.Object)))
    n = R.match_cast(k, R.Prim(value="q"))
    z = R.full((a * c + q,), R.const(2, "float32"))
    return (R.shape([a, b + c, q]), z)
""",
    ((shape(2, 3), (f32(4), (shape(4), "x")), 5), (shape(2, 7, 5), np.full(13, 2, "float32"))),
    ((shape(0, 3), (f32(4), (shape(4), 0)), 0), (shape(0, 7, 0), f32(0))),
    ((shape(2, 3), (f32(4), (shape(5), "x")), 5), Error("RLX6005", ("`c` = 4", "5"))),
    ((shape(2, 3), (f32(4),), 5), Error("RLX6002", ("tuple of 2",))),
    ((shape(2, 3, 4), (f32(4), (shape(4), "x")), 5), Error("RLX6004", ("2 dimensions",))),
)
program(
    "products before their factors",
    """
@R.function
def main(x: R.Tensor((n * m,), "float32"), y: R.Tensor((n, m), "float32")) -> R.Tensor((n * m,), "float32"):
    r = R.add(x, R.flatten(y))
    return r
""",
    ((f32(6), f32(2, 3)), f32(6) * 2),
    ((f32(0), f32(0, 3)), f32(0)),
    ((f32(7), f32(2, 3)), Error("RLX6005", ("n * m", "6", "7"))),
)
program(
    "a product in a match_cast before its factor",
    """
@R.function
def main(x: R.Tensor(ndim=1, dtype="float32"), y: R.Tensor(ndim=1, dtype="float32")):
    p = R.match_cast((x, y), R.Tuple(R.Tensor((2 * n,), "float32"), R.Tensor((n,), "float32")))
    a = p[0]
    b = R.concat((p[1], p[1]))
    r = R.add(a, b)
    return r
""",
    ((f32(4), f32(2)), f32(4) + np.tile(f32(2), 2)),
    ((f32(5), f32(2)), Error("RLX6005", ("4", "5"))),
)
# --- signatures -------------------------------------------------------------------------------------------------------
program(
    "nested tuples in and out",
    """
@R.function
def main(p: R.Tuple(R.Tensor((n,), "float32"), R.Tuple(R.Tensor((m, n)), R.Shape([m]))), k: R.Prim(value="k")):
    x = p[0]
    q = p[1]
    y = R.add(R.match_cast(q[0], R.Tensor((m, n), "float32")), x)
    return ((y, (x, R.shape([m, k]))), (R.prim_value(m + n + k),))
""",
    (((f32(3), (f32(2, 3), shape(2))), 7), ((f32(2, 3) + f32(3), (f32(3), shape(2, 7))), (12,))),
    (((f32(3), (f32(2, 3), shape(3))), 7), Error("RLX6005", ("`m` = 2", "3"))),
)
program(
    "int32 dimensions and scalars of several types",
    """
@R.function
def main(x: R.Tensor((n, 2), "float32"), a: R.Prim("int32"), b: R.Prim("bool"), c: R.Prim("float32")):
    n = T.int32()
    f = R.flatten(x)
    return (f, R.shape([n + 1]), a, b, c)
""",
    ((f32(3, 2), 4, True, 0.5), (f32(6), shape(4), 4, True, 0.5)),
    ((f32(3, 2), True, True, 0.5), Error("RLX6003", ("int32",))),
)
program(
    "unknown rank",
    """
@R.function
def main(x: R.Tensor(dtype="float32"), y: R.Tensor) -> R.Tensor(dtype="float32"):
    r = R.match_cast(x, R.Tensor(ndim=2, dtype="float32"))
    q = R.match_cast(y, R.Tensor((n, m), "float32"))
    t = R.add(r, q)
    return t
""",
    ((f32(2, 3), f32(2, 3)), f32(2, 3) * 2),
    ((f32(2, 3), f32(1, 3)), f32(2, 3) + f32(1, 3)),
    ((f32(2), f32(2, 3)), Error("RLX6004", ("2 dimensions",))),
)
program(
    "broadcasting that nothing proves",
    """
@R.function
def main(x: R.Tensor((n, 4), "float32"), y: R.Tensor((m, 4), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
    r = R.add(x, y)
    return r
""",
    ((f32(2, 4), f32(2, 4)), f32(2, 4) * 2),
    ((f32(2, 4), f32(1, 4)), f32(2, 4) + f32(1, 4)),
    ((f32(1, 4), f32(3, 4)), f32(1, 4) + f32(3, 4)),
    ((f32(0, 4), f32(1, 4)), f32(0, 4)),
    ((f32(2, 4), f32(3, 4)), Error("", ("2", "3"))),
    ((f32(0, 4), f32(2, 4)), Error("", ("0", "2"))),
)
program(
    "two values for one dimension",
    """
@R.function
def main(x: R.Tensor((n,), "float32"), y: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
    r = R.add(x, y)
    return r
""",
    ((f32(3), f32(3)), f32(3) * 2),
    ((f32(0), f32(0)), f32(0)),
    ((f32(3), f32(1)), Error("RLX6005", ("parameter `y` of `main`", "`n` = 3", "1"))),
)
# --- control ----------------------------------------------------------------------------------------------------------
program(
    "branches with symbolic results",
    """
@R.function
def main(c: R.Tensor((), "bool"), x: R.Tensor((n, 2), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
    if c:
        a = R.flatten(x)
        r = R.match_cast(R.unique(a), R.Tensor((k,), "float32"))
    else:
        b = R.zeros((n * 3,), "float32")
        r = R.concat((b, b))
    s = R.match_cast(r, R.Tensor((k2,), "float32"))
    t = R.reshape(s, (k2 // 2, 2))
    u = R.flatten(t)
    return u
""",
    ((np.array(True), f32(2, 2)), f32(4)),
    ((np.array(False), f32(2, 2)), np.zeros(12, "float32")),
    ((np.array(False), f32(0, 2)), f32(0)),
)
program(
    "recursion over a shrinking dimension",
    """
@R.function
def main(x: R.Tensor((n,), "float32"), i: R.Tensor((), "int64")) -> R.Tensor(ndim=1, dtype="float32"):
    cls = Module
    stop = R.less(i, R.const(1, "int64"))
    if stop:
        r = R.match_cast(x, R.Tensor(ndim=1, dtype="float32"))
    else:
        y = R.concat((x, x))
        r = cls.main(y, R.subtract(i, R.const(1, "int64")))
    return r
""",
    ((f32(2), np.array(3)), np.tile(f32(2), 8)),
    ((f32(0), np.array(3)), f32(0)),
)
program(
    "a closure with the dimensions around it",
    """
@R.function
def main(x: R.Tensor((n, m), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
    @R.function
    def inner(y: R.Tensor((m, k), "float32")) -> R.Tensor((n, k), "float32"):
        z = R.matmul(x, y)
        w = R.add(z, R.ones((n, k), "float32"))
        return w
    a = R.permute_dims(x)
    b = inner(a)
    c = inner(R.concat((a, a), axis=1))
    d = R.concat((b, c), axis=1)
    return d
""",
    ((f32(2, 3),), np.concatenate([f32(2, 3) @ f32(2, 3).T + 1] * 3, 1)),
    ((f32(0, 3),), f32(0, 0)),
    ((f32(2, 0),), np.ones((2, 6), "float32")),
)
program(
    "zero-size dimensions",
    """
@R.function
def main(x: R.Tensor((n, m), "float32")):
    a = R.sum(x, axis=0)
    b = R.nn.softmax(x, axis=-1)
    c = R.matmul(R.permute_dims(x), x)
    d = R.concat((x, x), axis=0)
    e = R.nn.relu(x)
    return (a, b, c, d, e)
""",
    ((f32(0, 3),), (np.zeros(3, "f4"), f32(0, 3), np.zeros((3, 3), "f4"), f32(0, 3), f32(0, 3))),
    ((f32(3, 0),), (f32(0), f32(3, 0), f32(0, 0), f32(6, 0), f32(3, 0))),
    ((f32(0, 0),), (f32(0), f32(0, 0), f32(0, 0), f32(0, 0), f32(0, 0))),
)
program(
    "bounds of dimensions",
    """
@R.function
def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n * 2,), "float32"):
    R.func_attr({"tir_var_upper_bound": {"n": 4}, "tir_var_lower_bound": {"n": 1}})
    r = R.concat((x, x))
    return r
""",
    ((f32(4),), np.tile(f32(4), 2)),
    ((f32(5),), Error("RLX6036", ("`n` = 5", "at most 4"))),
    ((f32(0),), Error("RLX6036", ("`n` = 0", "at least 1"))),
)
program(
    "a shape variable as a shape",
    """
@R.function
def main(s: R.Shape(ndim=2), x: R.Tensor((n,), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
    r = R.reshape(x, s)
    q = R.add(r, R.zeros(s, "float32"))
    return q
""",
    ((shape(2, 3), f32(6)), f32(2, 3)),
    ((shape(0, 3), f32(0)), f32(0, 3)),
    ((shape(2, 4), f32(6)), Error("", ("6",))),
)
program(
    "an opaque shape function",
    """
@R.function(pure=False)
def main(x: R.Tensor((n,), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
    s = R.call_packed("test.halved", R.shape([n]), sinfo_args=R.Shape(ndim=1))
    t = R.match_cast(s, R.Shape([h]))
    r = R.full((h,), R.const(1, "float32"))
    return r
""",
    ((f32(7),), np.ones(3, "float32")),
    ((f32(1),), f32(0)),
)
program(
    "a tensor as a shape",
    """
@R.function
def main(t: R.Tensor((2,), "int64"), x: R.Tensor((n,), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
    s = R.tensor_to_shape(t)
    d = R.match_cast(s, R.Shape([a, b]))
    y = R.match_cast(x, R.Tensor((a * b,), "float32"))
    r = R.reshape(y, (a, b))
    return r
""",
    ((np.array([2, 3]), f32(6)), f32(2, 3)),
    ((np.array([2, 4]), f32(6)), Error("RLX6005", ("8", "6"))),
)
program(
    "a kernel with int32 dimensions",
    """
@T.prim_func
def double(a: T.handle, b: T.handle, k: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n, 3), "float32")
    B = T.match_buffer(b, (n, 3), "float32")
    for i, j in T.grid(n, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.cast(k, "float32")

@R.function
def main(x: R.Tensor((m, 3), "float32"), k: R.Prim("int64")) -> R.Tensor((m, 3), "float32"):
    cls = Module
    q = R.match_cast(k, R.Prim(value="f"))
    y = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((m, 3), "float32"), tir_vars=R.shape([f]))
    return y
""",
    ((f32(2, 3), 2), f32(2, 3) * 2),
    ((f32(0, 3), 2), f32(0, 3)),
)
program(
    "functions as arguments",
    """
@R.function(private=True)
def twice(
    f: R.Callable((R.Tensor((a,), "float32"),), R.Tensor((a,), "float32")), x: R.Tensor((n,), "float32")
) -> R.Tensor((n,), "float32"):
    y = f(x)
    z = f(y)
    return z

@R.function
def main(x: R.Tensor((n,), "float32"), k: R.Tensor((), "float32")) -> R.Tensor((n * 2,), "float32"):
    cls = Module
    @R.function
    def scale(y: R.Tensor((m,), "float32")) -> R.Tensor((m,), "float32"):
        r = R.multiply(y, k)
        return r
    a = cls.twice(scale, x)
    b = cls.twice(scale, R.concat((a, x)))
    return b
""",
    ((f32(3), np.array(2, "float32")), np.concatenate([f32(3) * 16, f32(3) * 4])),
    ((f32(0), np.array(2, "float32")), f32(0)),
)
program(
    "a tensor of more than 2**31 elements",
    """
@R.function
def main(x: R.Tensor((n,), "int8"), i: R.Tensor((2,), "int64")) -> R.Tensor(ndim=1, dtype="int8"):
    picked = R.take(x, i, axis=0)
    tail = R.strided_slice(x, axes=[0], begin=[2147483650], end=[2147483653], strides=[1])
    r = R.concat((picked, tail))
    return r
""",
)
program(
    "several symbolic variables in one call",
    """
@R.function
def main(x: R.Tensor((a, b, c), "float32"), y: R.Tensor((c, d), "float32"), z: R.Tensor((a * b, d), "float32")):
    m = R.matmul(x, y)
    f = R.reshape(m, (a * b, d))
    s = R.add(f, z)
    t = R.permute_dims(R.reshape(s, (a, b, d)), axes=(2, 0, 1))
    u = R.concat((t, t), axis=1)
    return u
""",
    (
        (f32(2, 3, 4), f32(4, 5), f32(6, 5)),
        np.concatenate([((f32(2, 3, 4) @ f32(4, 5)) + f32(6, 5).reshape(2, 3, 5)).transpose(2, 0, 1)] * 2, 1),
    ),
    ((f32(2, 0, 4), f32(4, 5), f32(0, 5)), np.zeros((5, 4, 0), "float32")),
    ((f32(2, 3, 4), f32(4, 5), f32(7, 5)), Error("RLX6005", ("a * b", "6", "7"))),
    ((f32(2, 3, 4), f32(3, 5), f32(6, 5)), Error("RLX6005", ("`c` = 4", "3"))),
)
program(
    "a branch that defines what the other computes",
    """
@R.function
def main(c: R.Prim("bool"), x: R.Tensor((n,), "float32"), y: R.Tensor(ndim=1, dtype="float32")) -> R.Shape(ndim=1):
    if c:
        t = R.match_cast(y, R.Tensor((m,), "float32"))
        s = R.shape([n * 2 + m])
    else:
        s = R.shape([n * 2 + 1])
    q = R.match_cast(s, R.Shape([k]))
    r = R.shape([k * n * 2])
    return r
""",
    ((True, f32(3), f32(4)), shape(60)),
    ((False, f32(3), f32(4)), shape(42)),
)
