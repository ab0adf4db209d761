"""Loops that several kernels have: one object of code for all, and the same numbers."""

from pathlib import Path

import numpy as np
import pytest

import relaxlang
from relaxlang.codegen import build_kernels, load_kernels
from relaxlang.codegen.kernel import codes_of, emit_kernels

LONG = "x[i] * 2.0 + T.exp(x[i]) * x[i] - T.max(x[i], 0.5) + x[i] * x[i] * 3.0 - T.abs(x[i] * 0.25) + x[i] / 7.0"


def kernel(name: str, then: str, first: str = LONG) -> str:
    return f"""
    @T.prim_func
    def {name}(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        t = T.alloc_buffer((64,), "float32")
        for i in T.parallel(64):
            t[i] = {first}
        for i in T.parallel(64):
            y[i] = {then}
"""


def funcs(*kernels: str) -> dict[str, relaxlang.ir.tir.PrimFunc]:
    return dict(relaxlang.parse("@I.ir_module\nclass Module:" + "".join(kernels)).prim_funcs())


def values(x):
    return x * 2 + np.exp(x) * x - np.maximum(x, 0.5) + x * x * 3 - np.abs(x * 0.25) + x / 7


def run(made, name, x):
    y = np.zeros_like(x)
    load_kernels(made)[name](x, y)
    return y


def test_equal_loops_are_compiled_once():
    made = build_kernels(funcs(kernel("a", "t[i] + 1.0"), kernel("b", "t[i] * 2.0"), kernel("c", "t[i]")))
    shared = {code.symbol for k in made.values() for code in k.shared}
    assert len(shared) == 1 and len(codes_of(made)) == 4
    assert all(len(k.shared) == 1 and next(iter(shared)) in k.llvm for k in made.values())
    assert not any("llvm.exp" in k.llvm or "fdiv" in k.llvm for k in made.values())
    x = np.linspace(-2, 2, 64, dtype="float32")
    for name, result in (("a", values(x) + 1), ("b", values(x) * 2), ("c", values(x))):
        np.testing.assert_allclose(run(made, name, x), result, rtol=2e-6, atol=1e-6)


def test_names_of_variables_make_no_difference():
    other = kernel("b", "t[i]").replace("x", "data").replace("t[i] = ", "t[i] = ").replace("T.edatap", "T.exp")
    other = other.replace("T.madata", "T.max").replace(" i ", " j ").replace("[i]", "[j]")
    made = build_kernels(funcs(kernel("a", "t[i] + 1.0"), other))
    assert len(codes_of(made)) == 3


@pytest.mark.parametrize("other", [LONG.replace("7.0", "8.0"), LONG.replace("x[i] * 2.0", "x[63 - i] * 2.0")])
def test_other_loops_are_not_shared(other):
    made = build_kernels(funcs(kernel("a", "t[i]"), kernel("b", "t[i]", other)))
    assert not any(k.shared for k in made.values())


def test_one_kernel_shares_nothing_and_texts_to_look_at_are_whole():
    both = funcs(kernel("a", "t[i] + 1.0"), kernel("b", "t[i] * 2.0"))
    assert not build_kernels({"a": both["a"]})["a"].shared
    assert all(not k.shared and "rlx.body" not in k.llvm for k in emit_kernels(both).values())


def test_loops_that_can_fail_stay_in_their_kernels():
    """A status means one of the messages of the kernel."""

    def checked(name: str, more: str) -> str:
        return f"""
    @T.prim_func
    def {name}(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        {more}
        for i in T.parallel(64):
            assert x[i] < 9.0, "too large"
            y[i] = {LONG}
"""

    made = build_kernels(funcs(checked("a", 'assert x[0] > -9.0, "too small"'), checked("b", "T.evaluate(0)")))
    assert not any(k.shared for k in made.values())
    x = np.zeros(64, "float32")
    x[5] = 10
    for name in made:
        with pytest.raises(relaxlang.RelaxlangError, match="too large"):
            run(made, name, x)


STAGES = """
    @T.prim_func
    def {name}(x: T.Buffer((8, 64), "float32"), y: T.Buffer((8, 64), "float32")):
        for r in T.parallel(8):
            t = T.decl_buffer((64,), "float32")
            for i in range(64):
                t[i] = {first}
            for i in range(64):
                y[r, i] = {then}
"""


def test_long_stages_of_parallel_loops_are_shared():
    first = " + ".join(f"({LONG}) * {k}.0" for k in range(1, 7)).replace("[i]", "[r, i]")
    two = [STAGES.format(name=n, first=first, then=then) for n, then in (("a", "t[i] + 1.0"), ("b", "t[63 - i]"))]
    made = build_kernels(funcs(*two))
    assert len(codes_of(made)) == 3
    x = np.linspace(-2, 2, 512, dtype="float32").reshape(8, 64)
    np.testing.assert_allclose(run(made, "a", x), values(x) * 21 + 1, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(run(made, "b", x), values(x)[:, ::-1] * 21, rtol=1e-5, atol=1e-5)


MODEL = f"""
@I.ir_module
class Module:
{kernel("a", "t[i] + 1.0")}
{kernel("b", "t[i] * 2.0")}
    @R.function
    def main(x: R.Tensor((64,), "float32")) -> R.Tensor((64,), "float32"):
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.a, (x,), out_sinfo=R.Tensor((64,), "float32"))
            q = R.call_tir(cls.b, (p,), out_sinfo=R.Tensor((64,), "float32"))
            R.output(q)
        return q
"""


@pytest.mark.parametrize("executor", ["vm", "graph"])
def test_programs_carry_what_their_kernels_share(executor: str, tmp_path: Path):
    built = relaxlang.build(relaxlang.parse(MODEL), executor=executor, pipeline="minimum")
    assert len(built.executable.objects) == 3
    path = str(tmp_path / "model.so")
    built.export_library(path)
    x = np.linspace(-1, 1, 64, dtype="float32")
    wanted = values(values(x) + 1) * 2
    for program in (built, relaxlang.load_module(path)):
        if executor == "vm":
            found = program["main"](x)
        else:
            made = program.create_executor()
            made.set_input("x", x)
            made.run()
            found = made.get_output(0)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_llvm_links_them_too(monkeypatch):
    """Where this package does not place object code itself."""
    monkeypatch.setattr("relaxlang.codegen.placed.is_possible", lambda: False)
    made = build_kernels(funcs(kernel("a", "t[i] + 1.0"), kernel("b", "t[i] * 2.0")))
    x = np.linspace(-2, 2, 64, dtype="float32")
    np.testing.assert_allclose(run(made, "b", x), values(x) * 2, rtol=2e-6, atol=1e-6)


def test_which_pointers_may_overlap_counts():
    """What is computed from an address may be another name of any memory."""
    head = '\n    @T.prim_func\n    def {}(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):\n'
    loop = f"        for i in T.parallel(64):\n            B[i] = {LONG.replace('x[', 'A[')}\n"
    reads = (
        '        p: T.handle("float32") = T.address_of(x[0])\n        A = T.decl_buffer((64,), "float32", data=p)\n'
        '        B = T.decl_buffer((64,), "float32", data=y.data)\n'
    )
    writes = (
        '        p: T.handle("float32") = T.address_of(y[0])\n        B = T.decl_buffer((64,), "float32", data=p)\n'
        '        A = T.decl_buffer((64,), "float32", data=x.data)\n'
    )
    made = build_kernels(funcs(*(head.format(n) + body + loop for n, body in (("a", reads), ("b", writes)))))
    assert len({code.symbol for k in made.values() for code in k.shared}) == 2
    x = np.linspace(-2, 2, 64, dtype="float32")
    for name in made:
        np.testing.assert_allclose(run(made, name, x), values(x), rtol=2e-6, atol=1e-6)
