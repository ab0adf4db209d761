"""Programs that are run by the interpreter, as bytecode and as native code, with arguments for each."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import relaxlang
from relaxlang.ir.module import IRModule
from relaxlang.runtime.ndarray import ShapeTuple


class Program(NamedTuple):
    """The text of a module's functions, and calls of `main`."""

    text: str
    calls: tuple[tuple[Any, ...], ...]

    def module(self) -> IRModule:
        """The module."""
        body = indent(dedent(self.text).strip(), "    ")
        return relaxlang.parse(f"@I.ir_module\nclass Module:\n{body}\n", "test.rlx")


def array(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray[Any, Any]:
    """Numbers around 0."""
    return (np.random.default_rng(seed).random(shape) - 0.5).astype(dtype)


_MLP = """
@R.function
def main(x: R.Tensor((n, 8), "float32"), w1: R.Tensor((8, 16), "float32"), b1: R.Tensor((16,), "float32"),
         w2: R.Tensor((16, 3), "float32"), b2: R.Tensor((3,), "float32")):
    with R.dataflow():
        h = R.nn.relu(R.add(R.matmul(x, w1), b1))
        y = R.nn.softmax(R.add(R.matmul(h, w2), b2))
        R.output(y)
    return y
"""
_ENCODER = """
@R.function
def main(x: R.Tensor((1, n, 16), "float32"), wq: R.Tensor((16, 16), "float32"), wk: R.Tensor((16, 16), "float32"),
         wv: R.Tensor((16, 16), "float32"), g: R.Tensor((16,), "float32"), b: R.Tensor((16,), "float32")):
    with R.dataflow():
        q = R.permute_dims(R.reshape(R.matmul(x, wq), (1, n, 2, 8)), axes=[0, 2, 1, 3])
        k = R.permute_dims(R.reshape(R.matmul(x, wk), (1, n, 2, 8)), axes=[0, 2, 3, 1])
        v = R.permute_dims(R.reshape(R.matmul(x, wv), (1, n, 2, 8)), axes=[0, 2, 1, 3])
        p = R.nn.softmax(R.multiply(R.matmul(q, k), R.const(0.35, "float32")))
        c = R.reshape(R.permute_dims(R.matmul(p, v), axes=[0, 2, 1, 3]), (1, n, 16))
        y = R.nn.layer_norm(R.add(c, x), g, b, axes=[-1])
        R.output(y)
    return y
"""
_FACTORIAL = """
@R.function
def main(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
    cls = Module
    if R.less(n, R.const(2, "int64")):
        r: R.Tensor((), "int64") = R.const(1, "int64")
    else:
        less: R.Tensor((), "int64") = cls.main(R.subtract(n, R.const(1, "int64")))
        r = R.multiply(n, less)
    return r
"""
_TWO_FUNCTIONS = """
@R.function(private=True)
def is_even(n: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
    cls = Module
    if R.equal(n, R.const(0, "int64")):
        r: R.Tensor((), "bool") = R.const(True, "bool")
    else:
        r = cls.is_odd(R.subtract(n, R.const(1, "int64")))
    return r

@R.function(private=True)
def is_odd(n: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
    cls = Module
    if R.equal(n, R.const(0, "int64")):
        r: R.Tensor((), "bool") = R.const(False, "bool")
    else:
        r = cls.is_even(R.subtract(n, R.const(1, "int64")))
    return r

@R.function
def main(n: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
    cls = Module
    return cls.is_even(n)
"""
_BRANCHES = """
@R.function
def main(c: R.Tensor((), "bool"), d: R.Tensor((), "bool"), x: R.Tensor((n,), "float32")):
    if c:
        if d:
            y = R.add(x, x)
        else:
            y = x
        z = R.multiply(y, x)
    else:
        z = R.negative(x)
    return (z, x)
"""
_TUPLES = """
@R.function
def main(t: R.Tuple(R.Tensor((n,), "float32"), R.Tuple(R.Tensor((n, 2), "float32"), R.Prim("int64")))):
    a = t[0]
    u = t[1]
    b = u[0]
    s = R.split(b, 2, axis=1)
    pair = (R.add(R.reshape(s[0], (n,)), a), R.shape_of(b))
    return (pair, u[1], a, (s[1], ()))
"""
_CLOSURES = """
@R.function
def main(x: R.Tensor((n,), "float32"), y: R.Tensor((n,), "float32")):
    @R.function
    def inner(z: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
        return R.add(R.multiply(z, x), y)
    a = inner(x)
    b = inner(a)
    return R.subtract(b, y)
"""
_PACKED = """
@R.function(pure=False)
def main(x: R.Tensor((n, 2), "float32"), k: R.Prim("int64")):
    y = R.call_packed("test.native.pack", x, R.shape([n, 7]), k, R.str("text"), sinfo_args=R.Object)
    z = R.call_pure_packed("test.native.twice", x, sinfo_args=R.Tensor((n, 2), "float32"))
    w = R.call_dps_packed("test.native.copy", (z,), out_sinfo=R.Tensor((n, 2), "float32"))
    return (y, R.add(w, x))
"""
_DATA_DEPENDENT = """
@R.function
def main(x: R.Tensor((n,), "float32")):
    m = T.int64()
    u = R.unique(x)
    v = R.match_cast(u, R.Tensor((m,), "float32"))
    return (R.add(v, v), R.nonzero(x), R.shape([m, n]))
"""
_MATCH_CAST = """
@R.function
def main(x: R.Tensor("float32", ndim=2), s: R.Shape(ndim=2), o: R.Object):
    a, b = T.int64(), T.int64()
    y = R.match_cast(x, R.Tensor((a, b), "float32"))
    t = R.match_cast(s, R.Shape([a, b * 2]))
    return (R.reshape(y, (a * b,)), t, R.prim_value(a + b), o)
"""
_SCALARS = """
@T.prim_func(private=True)
def axpb(X: T.Buffer((n,), "float32"), k: T.int32, a: T.float32, Y: T.Buffer((n,), "float32")):
    for i in range(n):
        with T.block("axpb"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * a + T.cast(k, "float32")

@T.prim_func(private=True)
def fill(Y: T.Buffer((4,), "int64"), s: T.int64):
    for i in range(4):
        with T.block("fill"):
            vi = T.axis.spatial(4, i)
            Y[vi] = s + vi

@R.function(pure=False)
def main(x: R.Tensor((n,), "float32"), i: R.Prim("int32"), f: R.Prim("float64"), b: R.Prim("bool")):
    cls = Module
    y = R.call_tir(cls.fill, (), out_sinfo=R.Tensor((4,), "int64"), tir_vars=R.shape([n + 2]))
    z: R.Tensor((n,), "float32") = R.builtin.alloc_tensor(R.shape([n]), R.dtype("float32"), R.prim_value(0))
    _ = cls.axpb(x, R.prim_value(T.int32(3)), R.prim_value(T.float32(0.5)), z)
    return (y, z, i, f, b, R.prim_value(7), R.str("word"), R.dtype("int8"))
"""
_VIEWS = """
@R.function
def main(x: R.Tensor((n, 6), "float32"), y: R.Tensor((n, 6), "int8")):
    a = R.reshape(x, (n * 2, 3))
    b = R.reshape(R.add(x, x), (6, n))
    return (a, R.reshape(y, (n * 6,)), b, R.const([1, 2, 3], "int16"), R.flatten(a))
"""
_NARROW = """
@R.function
def main(x: R.Tensor((n,), "bfloat16"), y: R.Tensor((n,), "float16"), z: R.Tensor((n,), "float8_e4m3fn")):
    return (R.add(x, x), R.multiply(y, y), z, R.astype(z, "float32"))
"""
_ASSERTION = """
@R.function(pure=False)
def main(x: R.Tensor((n,), "float32"), y: R.Tensor((m,), "float32")):
    _ = R.print(x, format="{}")
    return R.add(x, y)
"""
_SCALARS_OF_CALLERS = """
@T.prim_func(private=True)
def axpb(X: T.Buffer((n,), "float32"), k: T.int8, a: T.float32, b: T.bool, Y: T.Buffer((n,), "float32")):
    for i in range(n):
        with T.block("axpb"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * a + T.cast(k, "float32") + T.cast(b, "float32")

@R.function(pure=False)
def main(x: R.Tensor((n,), "float32"), k: R.Prim("int8"), a: R.Prim("float32"), b: R.Prim("bool")):
    cls = Module
    z: R.Tensor((n,), "float32") = R.builtin.alloc_tensor(R.shape([n]), R.dtype("float32"), R.prim_value(0))
    _ = cls.axpb(x, k, a, b, z)
    return z
"""
_PACKED_TUPLES = """
@R.function(pure=False)
def main(x: R.Tensor((n,), "float32")):
    t = R.call_packed("test.native.pair", x, sinfo_args=R.Tuple(R.Tensor((n,), "float32"), R.Object))
    y = t[0]
    return (R.add(y, x), t[1], R.nn.relu(R.add(y, y)))
"""

PROGRAMS: dict[str, Program] = {
    "mlp": Program(_MLP, tuple((array(n, 8), array(8, 16), array(16), array(16, 3), array(3)) for n in (1, 5, 0))),
    "encoder": Program(
        _ENCODER,
        tuple((array(1, n, 16), *(array(16, 16, seed=k) for k in range(3)), array(16), array(16)) for n in (1, 7, 33)),
    ),
    "factorial": Program(_FACTORIAL, ((np.array(6),), (np.int64(1),), (10,))),
    "mutual recursion": Program(_TWO_FUNCTIONS, ((7,), (np.array(200),))),
    "branches": Program(_BRANCHES, tuple((np.array(c), d, array(4)) for c in (True, False) for d in (True, False))),
    "tuples": Program(_TUPLES, (((array(3), (array(3, 2), 5)),), ([array(0), [array(0, 2), np.int64(-1)]],))),
    "closures": Program(_CLOSURES, ((array(4), array(4, seed=1)),)),
    "packed": Program(_PACKED, ((array(3, 2), 4), (array(2, 3).T, -1))),
    "data-dependent": Program(_DATA_DEPENDENT, ((np.array([2, 1, 2, 0], "float32"),), (np.zeros(0, "float32"),))),
    "match_cast": Program(_MATCH_CAST, ((array(2, 3), (2, 6), None), (array(1, 4), ShapeTuple([1, 8]), "anything"))),
    "scalars": Program(_SCALARS, ((array(3), 5, 2.5, True), (array(0), np.int32(-7), 3, False))),
    "scalars of callers": Program(
        _SCALARS_OF_CALLERS,
        ((array(3), 5, 2.5, True), (array(0), np.int8(-7), 3, False), (array(2), -128, np.float32(1), np.True_)),
    ),
    "tuples of packed functions": Program(_PACKED_TUPLES, ((array(4),), (array(0),))),
    "views": Program(_VIEWS, ((array(2, 6), np.arange(12, dtype="int8").reshape(2, 6)),)),
    "narrow": Program(
        _NARROW,
        ((array(3).astype(ml_dtypes.bfloat16), array(3, dtype="float16"), array(3).astype(ml_dtypes.float8_e4m3fn)),),
    ),
    "effects": Program(_ASSERTION, ((array(3), array(3)), (array(3), array(1)))),
}
