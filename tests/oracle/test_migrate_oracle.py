"""Migration against apache-tvm: scripts of old spellings, migrated to 0.27, mean there what the same scripts in the
spellings of 0.27 mean."""

from __future__ import annotations

from typing import Any

import pytest

from relaxlang.base.source import Source
from relaxlang.driver import parse_source
from relaxlang.syntax.migrate import migrate

pytestmark = pytest.mark.extra("tvm")


def read(text: str) -> Any:
    """The program as TVM reads it."""
    from tvm.script import from_source

    return from_source(text)


def migrated(text: str) -> str:
    source = Source("x.rlx", text)
    return migrate(source, parse_source(source), "tvm-0.27")


PAIRS = {
    "block": (
        '''@T.prim_func
def f(a: T.handle, B: T.Buffer[(8, 16), "float32"]):
    # a comment
    A = T.match_buffer(a, [8, 16])
    C = T.alloc_buffer((8, 16))
    for i, j in T.grid(8, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.block_attr({"k": 1})
            C[vi, vj] = T.exp(A[vi, vj])
    for i, j in T.grid(8, 16):
        with T.block("B"):
            vi = T.axis.S(8, i)
            vj = T.axis.R(16, j)
            with T.init():
                B[vi, 0] = 0.0
            B[vi, 0] += C[vi, vj]
''',
        '''@T.prim_func(s_tir=True)
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    C = T.sblock_alloc_buffer((8, 16))
    for i, j in T.grid(8, 16):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.sblock_attr({"k": 1})
            C[vi, vj] = T.exp(A[vi, vj])
    for i, j in T.grid(8, 16):
        with T.sblock("B"):
            vi = T.axis.S(8, i)
            vj = T.axis.R(16, j)
            with T.init():
                B[vi, 0] = T.float32(0.0)
            B[vi, 0] = B[vi, 0] + C[vi, vj]
''',
    ),
    "memory": (
        '''@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in T.serial(0, 4):
        data = T.allocate([1], "float32", "local")
        B = T.decl_buffer((1,), "float32", data=data, scope="local")
        B[0] = A[i] + T.float32(1)
        A[i] = B[0]
''',
        '''@T.prim_func(s_tir=True)
def f(A: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B = T.alloc_buffer((1,), "float32", scope="local")
        B[0] = A[i] + T.float32(1)
        A[i] = B[0]
''',
    ),
    "relax": (
        '''@tvm.script.ir_module
class Module:
    @T.prim_func
    def double(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 4), "float32")
        B = T.match_buffer(b, (n, 4), "float32")
        for i, j in T.grid(n, T.int64(4)):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n, 4), "float32"))
            z = R.nn.relu(R.add(y, x))
            R.output(z)
        return z
''',
        '''n = TypeVar("n")

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def double(A: T.Buffer((n, 4), "float32"), B: T.Buffer((n, 4), "float32")):
        for i, j in T.grid(n, T.int64(4)):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.double, (x,), out_ty=R.Tensor((n, 4), "float32"))
            w = R.add(y, x)
            z = R.nn.relu(w)
            R.output(z)
        return z
''',
    ),
    "sugar": (
        '''@R.function
def main(x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 6), "float32")):
    """Products."""
    a, b = R.split(x @ w, 2, axis=1)
    return a + b
''',
        '''@R.function
def main(x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 6), "float32")):
    m = R.matmul(x, w)
    s = R.split(m, 2, axis=1)
    a = s[0]
    b = s[1]
    c = R.add(a, b)
    return c
''',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_old_scripts_mean_the_same(name: str) -> None:
    import tvm_ffi

    old, new = PAIRS[name]
    text = migrated(old)
    assert tvm_ffi.structural_equal(read(text), read(new), map_free_vars=True), text


@pytest.mark.parametrize("name", PAIRS)
def test_new_scripts_stay_what_they_are(name: str) -> None:
    import tvm_ffi

    new = PAIRS[name][1]
    text = migrated(new)
    assert tvm_ffi.structural_equal(read(text), read(new), map_free_vars=True), text
