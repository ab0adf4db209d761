"""Programs in Python files: the same modules as from text, values from around them, places of errors."""

import inspect

import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir import relax, tir
from relaxlang.ir.module import IRModule
from relaxlang.script import from_source
from relaxlang.script import ir as I
from relaxlang.script import relax as R
from relaxlang.script import tir as T

N = 16
SCALE = np.float32(2.0)
WEIGHTS = np.arange(4, dtype="float32")
DTYPE = np.float32


def line_of(word: str) -> int:
    """The line of this file that has the word in a comment."""
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()
    return next(n for n, line in enumerate(lines, 1) if f"# {word}" in line)


@I.ir_module
class Doubled:
    I.module_attrs({"a": 1})

    @T.prim_func(private=True)
    def double(A: T.Buffer((N, 4), "float32"), B: T.Buffer((N, 4), "float32")):
        for i, j in T.grid(N, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(SCALE)

    @R.function
    def main(x: R.Tensor((N, 4), "float32")) -> R.Tensor((N, 4), "float32"):
        cls = Doubled
        with R.dataflow():
            y = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((N, 4), "float32"))
            R.output(y)
        return y


def test_class_is_a_module():
    text = """
@I.ir_module
class Doubled:
    I.module_attrs({"a": 1})
    @T.prim_func(private=True)
    def double(A: T.Buffer((16, 4), "float32"), B: T.Buffer((16, 4), "float32")):
        for i, j in T.grid(16, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
    @R.function
    def main(x: R.Tensor((16, 4), "float32")) -> R.Tensor((16, 4), "float32"):
        with R.dataflow():
            y = R.call_tir(Doubled.double, (x,), out_sinfo=R.Tensor((16, 4), "float32"))
            R.output(y)
        return y
"""
    assert isinstance(Doubled, IRModule) and Doubled.name == "Doubled"
    relaxlang.assert_structural_equal(Doubled, relaxlang.parse(text))
    vm = relaxlang.VirtualMachine(relaxlang.build(Doubled), relaxlang.cpu())
    x = np.ones((16, 4), "float32")
    assert np.array_equal(vm["main"](x), x * 2)


def test_functions_alone():
    @R.function
    def add(x: R.Tensor((4,), "float32")):
        y = R.add(x, R.const(WEIGHTS))
        return R.astype(y, DTYPE)

    @T.prim_func
    def kernel(A: T.Buffer((4,), "float32")) -> None:
        for i in range(4):
            A[i] = 0.0

    assert isinstance(add, relax.Function) and isinstance(kernel, tir.PrimFunc)
    assert np.array_equal(add.body.blocks[0].bindings[0].value.args[1].data, WEIGHTS)
    assert add.span.line == inspect.getsourcelines(test_functions_alone)[1] + 2


def test_values_of_closures_and_enclosing_functions():
    def made(size, name):
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((size,), name)):
                return x

        return Module

    info = made(3, "int8")["main"].params[0].struct_info
    assert str(info) == 'R.Tensor((3,), "int8")'


def test_other_functions_and_modules():
    @T.prim_func(private=True)
    def one(A: T.Buffer((N, 4), "float32"), B: T.Buffer((N, 4), "float32")):
        for i, j in T.grid(N, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((N, 4), "float32")):
            y = R.call_tir(one, (x,), out_sinfo=R.Tensor((N, 4), "float32"))
            return Doubled.main(y)

    assert list(Module) == ["main", "one", "Doubled_main", "double"]
    relaxlang.assert_structural_equal(relaxlang.parse(Module.script()), Module)


def test_macros():
    @T.macro
    def store(buffer, at, value):
        buffer[at] = value * N

    @T.prim_func
    def kernel(A: T.Buffer((4,), "int32")):
        for i in range(4):
            store(A, i, 2)

    assert "A[i] = 32" in str(kernel)


def test_prefixed_with_python_things():
    @I.ir_module(check_well_formed=False)
    class Module:
        """A docstring."""

        @R.function(private=True)
        def f(x: R.Tensor(("n", 4), "float32"), y: R.Tuple(R.Object, R.Prim("int64"))) -> R.Tensor(("n", 4), "float32"):
            return x

    assert "global_symbol" not in Module["f"].attrs


def test_errors_point_into_this_file():
    with pytest.raises(DiagnosticError) as caught:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((N, 4), "float32")):
                y = R.matmull(x, x)  # misspelt operator
                return R.add(y, DTYPES)  # noqa: F821

    found = [(d.code, d.span.line, d.span.source.name) for d in caught.value.diagnostics]
    assert found[0] == ("RLX0103", line_of("misspelt operator"), __file__)
    assert caught.value.column == 21

    with pytest.raises(DiagnosticError) as caught:

        @R.function
        def f(x: R.Tensor((4,), "float32")):
            return R.add(x, line_of(x))  # Python function

    assert caught.value.diagnostics[0].code == "RLX0117" and caught.value.line == line_of("Python function")


def test_modules_of_python_are_named_as_such():
    with pytest.raises(DiagnosticError, match="`np` is a Python `module`") as caught:

        @R.function
        def f(x: R.Tensor((3,), "float32")):
            return R.add(x, R.const(np.ones(3), "float32"))  # Python module

    assert caught.value.diagnostics[0].code == "RLX0117" and caught.value.line == line_of("Python module")


def test_syntax_errors_of_the_language():
    with pytest.raises(DiagnosticError) as caught:

        @R.function
        def f(x: R.Tensor((4,), "float32")):
            yield x

    assert caught.value.line == inspect.getsourcelines(test_syntax_errors_of_the_language)[1] + 5


def test_text_is_needed():
    space = {"R": R}
    with pytest.raises(DiagnosticError) as caught:
        exec("@R.function\ndef f(x: R.Object):\n    return x\n", space)
    assert caught.value.diagnostics[0].code == "RLX0018"
    with pytest.raises(DiagnosticError):
        R.function(3)
    assert list(from_source("@R.function\ndef f(x: R.Object):\n    return x\n")) == ["f"]


def test_names_are_harmless():
    assert R.Tensor[(2, 3), "float32"] is not None and T.int32() * 2 + 1 is not None
    assert repr(T.axis.spatial(3)).startswith("<T.axis.spatial")
    with pytest.raises(AttributeError):
        R.__wrapped__  # noqa: B018
