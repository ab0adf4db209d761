"""Programs mean the same after every pass of the pipelines."""

from typing import Any

import numpy as np
import pytest
from interpreted import module

from relaxlang.interp import Interpreter
from relaxlang.passes.base import PassContext
from relaxlang.passes.pipelines import pipeline
from relaxlang.runtime.ndarray import ShapeTuple

PROGRAMS: dict[str, tuple[str, list[Any]]] = {
    "operators": (
        """
        @R.function
        def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 5), "float32")):
            with R.dataflow():
                h = R.matmul(x, w)
                y = R.nn.relu(h)
                z = R.nn.softmax(y, axis=-1)
                f = R.reshape(z, R.shape([n * 5]))
                R.output(f, h)
            return (f, h)
        """,
        [np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4), np.linspace(-2, 2, 20, dtype="float32").reshape(4, 5)],
    ),
    "match_cast": (
        """
        @R.function
        def main(x: R.Tensor(ndim=2, dtype="float32"), s: R.Shape(ndim=1)):
            n = T.int64()
            m = T.int64()
            k = T.int64()
            y = R.match_cast(x, R.Tensor((n, m), "float32"))
            t = R.match_cast(s, R.Shape([k]))
            z = R.zeros(R.shape([m, k + 1]), "float32")
            o = R.matmul(y, z)
            return (o, R.shape_of(z), t)
        """,
        [np.ones((2, 3), "float32"), ShapeTuple([6])],
    ),
    "closures": (
        """
        @R.function
        def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            @R.function
            def make(
                c: R.Tensor((3,), "float32")
            ) -> R.Callable((R.Tensor((3,), "float32"),), R.Tensor((3,), "float32")):
                @R.function
                def adder(v: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                    s = R.add(v, c)
                    return s
                return adder
            f = make(x)
            r = f(y)
            return R.add(r, x)
        """,
        [np.arange(3, dtype="float32"), np.ones(3, "float32")],
    ),
    "branches and recursion": (
        """
        @R.function
        def count(i: R.Tensor((), "int32"), x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            stop = R.less_equal(i, R.const(0, "int32"))
            if stop:
                r = x
            else:
                r = Module.count(R.subtract(i, R.const(1, "int32")), R.add(x, x))
            return r

        @R.function
        def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return Module.count(R.const(4, "int32"), x)
        """,
        [np.arange(3, dtype="float32")],
    ),
    "kernels": (
        """
        @T.prim_func(private=True)
        def both(a: T.handle, b: T.handle, c: T.handle, k: T.int64):
            n = T.int64()
            A = T.match_buffer(a, (n,), "float32")
            B = T.match_buffer(b, (n,), "float32")
            C = T.match_buffer(c, (n,), "int32")
            for i in range(n):
                B[i] = A[i] * T.Cast("float32", k)
                C[i] = T.Cast("int32", A[i])

        @T.prim_func(private=True)
        def bump(A: T.Buffer((3,), "float32")):
            for i in range(3):
                A[i] = A[i] + T.float32(1)

        @R.function
        def main(x: R.Tensor((3,), "float32")):
            cls = Module
            out = [R.Tensor((3,), "float32"), R.Tensor((3,), "int32")]
            p = R.call_tir(cls.both, (x,), out_sinfo=out, tir_vars=R.shape([7]))
            a = p[0]
            b = R.call_tir_inplace(cls.bump, (a,), inplace_indices=[0], out_sinfo=R.Tensor((3,), "float32"))
            u = R.call_pure_packed("vm.builtin.shape_of", x, sinfo_args=R.Shape(ndim=1))
            return (b, p[1], u)
        """,
        [np.array([1.5, -2.5, 3.0], "float32")],
    ),
}  # fmt: skip


def flat(value: Any) -> list[Any]:
    if isinstance(value, tuple) and not isinstance(value, ShapeTuple):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("passes", ["minimum", "default"])
def test_a_program_means_the_same_after_every_pass(name: str, passes: str) -> None:
    text, args = PROGRAMS[name]
    mod = module(text)
    wanted = flat(Interpreter(mod, verify=True).run("main", *args))
    for step in pipeline(passes).passes:
        mod = step.run(mod, PassContext.current())
        result = flat(Interpreter(mod, verify=True).run("main", *args))
        assert len(result) == len(wanted)
        for got, want in zip(result, wanted):
            np.testing.assert_array_equal(got, want, err_msg=step.name)
