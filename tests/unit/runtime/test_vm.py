"""The virtual machine: calls, conversions, control flow, closures, errors, threads, stepping."""

import importlib
import threading
from functools import partialmethod

import numpy as np
import programs
import pytest
from programs import F32

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.runtime import registry
from relaxlang.runtime.device import Device, cpu
from relaxlang.runtime.errors import PackedFunctionError
from relaxlang.runtime.exec_builder import VM, VOID, ExecBuilder
from relaxlang.runtime.executable import Call, Ret
from relaxlang.runtime.kernel import KernelSignature
from relaxlang.runtime.ndarray import NDArray, ShapeTuple
from relaxlang.runtime.vm import MAX_DEPTH, VirtualMachine


@pytest.fixture(autouse=True, params=["bytecode", "native"])
def exec_mode(request, monkeypatch):
    """Every test runs in both modes."""
    importlib.import_module("relaxlang.codegen")  # which makes native programs
    make = VirtualMachine.__init__
    monkeypatch.setattr(VirtualMachine, "__init__", partialmethod(make, exec_mode=request.param))
    return request.param


@pytest.fixture(autouse=True)
def clean_registry():
    before = dict(registry._FUNCTIONS)
    yield
    registry._FUNCTIONS.clear()
    registry._FUNCTIONS.update(before)


def machine(build, kernels=(), **options):
    """A machine for what `build(b)` writes with a builder."""
    b = ExecBuilder()
    for signature in kernels:
        b.declare_kernel(signature)
    build(b)
    return VirtualMachine(b.get(), mod=programs.kernels(), **options)


def single(params, body, kernels=()):
    """`vm["main"]` of a machine with one function, whose body `body(b)` returns the result's register."""

    def build(b):
        with b.function("main", params):
            b.emit_ret(body(b))

    return machine(build, kernels)["main"]


def a34(dtype="float32"):
    return np.arange(12, dtype=dtype).reshape(3, 4)


def diagnostic(call):
    with pytest.raises(DiagnosticError) as caught:
        call()
    return caught.value


@pytest.fixture
def vm():
    return VirtualMachine(programs.adder(), cpu(), mod=programs.kernels())


def test_a_dynamic_program(vm):
    for n in (3, 0, 50):
        x = np.ones((n, 4), "float32")
        out = vm["main"](x, x)
        assert type(out) is NDArray and out.shape == (n, 4) and (out == 2).all()
    out = vm["main"](a34(">f4"), np.asfortranarray(a34()))
    np.testing.assert_array_equal(out, 2 * a34())


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ((a34(),), "RLX6001", ["`main` takes 2 arguments (x, y), got 1"]),
        ((a34(), a34("float64")), "RLX6003", ["parameter `y` of `main`", "expected dtype float32", "float64"]),
        ((a34()[0], a34()), "RLX6004", ["parameter `x` of `main`", "expected 2 dimensions, got 1"]),
        ((a34(), a34()[:2]), "RLX6005", ["parameter `y`", "dimension 0 is 2, expected `n` = 3"]),
        ((a34()[:, :3], a34()), "RLX6005", ["parameter `x`", "dimension 1 is 3, expected 4"]),
        ((a34(), None), "RLX6002", ["parameter `y`", "expected a tensor, got None"]),
        ((a34(), [1, 2]), "RLX6002", ["parameter `y`", "a tuple of 2"]),
        ((a34(), 3.0), "RLX6002", ["parameter `y`", "the float 3.0"]),
    ],
)
def test_bad_arguments_name_the_parameter_and_spoil_nothing(vm, args, code, words):
    error = diagnostic(lambda: vm["main"](*args))
    assert error.diagnostics[0].code == code
    assert all(word in str(error) for word in words), str(error)
    np.testing.assert_array_equal(vm["main"](a34(), a34()), 2 * a34())


def test_arguments_are_converted_to_what_the_checks_want():
    def body(b):
        ctx = "parameter `p` of `main`"
        s, n, f, t = (b.param(i) for i in range(4))
        b.emit_call("vm.builtin.check_shape_info", [s, 2, ctx], dst=VOID)
        b.emit_call("vm.builtin.check_prim_value_info", [n, dtype("int64"), ctx], dst=VOID)
        b.emit_call("vm.builtin.check_tensor_info", [f, 0, F32, ctx], dst=VOID)
        b.emit_call("vm.builtin.check_tuple_info", [t, 2, ctx], dst=VOID)
        first = b.emit_call("vm.builtin.tuple_getitem", [t, 0])
        b.emit_call("vm.builtin.check_tensor_info", [first, 1, F32, ctx], dst=VOID)
        second = b.emit_call("vm.builtin.tuple_getitem", [t, 1])
        b.emit_call("vm.builtin.check_prim_value_info", [second, dtype("float64"), ctx], dst=VOID)
        return b.emit_call("vm.builtin.make_tuple", [s, n, f, first, second])

    f = single(["s", "n", "f", "t"], body)
    for args in [
        ((2, 3), 4, 1.5, (np.ones(2, "f4"), 2.0)),
        ([2, 3], np.int32(4), np.float32(1.5), [np.ones(2, "f4"), 2]),
        (ShapeTuple([2, 3]), np.array(4), np.array(1.5, "f4"), (np.ones(4, "f4")[::2], np.float32(2))),
    ]:
        s, n, x, first, second = f(*args)
        assert s == ShapeTuple((2, 3)) and type(s) is ShapeTuple
        assert n == 4 and type(n) is int and second == 2.0 and type(second) is float
        assert x.dtype == np.float32 and x.shape == () and x == 1.5 and type(x) is NDArray
        assert first.flags.c_contiguous and first.tolist() == [1, 1]
    good = ((2, 3), 4, 1.5, (np.ones(2, "f4"), 2.0))
    for index, bad, code in [
        (0, (2, 3.5), "RLX6002"), (0, (2, 3, 4), "RLX6004"), (0, np.ones(2), "RLX6002"), (1, 4.0, "RLX6003"),
        (1, True, "RLX6003"), (1, 1 << 63, "RLX6003"), (1, "x", "RLX6002"), (2, True, "RLX6003"), (2, "x", "RLX6002"),
        (3, (np.ones(2, "f4"),), "RLX6002"), (3, (np.ones(2), 2.0), "RLX6003"), (3, (1, 2, 3), "RLX6002"),
    ]:  # fmt: skip
        args = [bad if i == index else a for i, a in enumerate(good)]
        assert diagnostic(lambda args=args: f(*args)).diagnostics[0].code == code, (index, bad)


def test_deeply_nested_arguments_are_an_error():
    f = single(["x"], lambda b: b.param(0))
    value = ()
    for _ in range(5000):
        value = (value,)
    assert diagnostic(lambda: f(value)).diagnostics[0].code == "RLX6002"


def test_an_argument_that_is_returned_is_the_callers_data():
    x = a34()
    assert np.shares_memory(single(["x"], lambda b: b.param(0))(x), x)


def test_constants_cannot_be_changed_through_results():
    f = single([], lambda b: b.emit_call("vm.builtin.copy", [np.arange(3)]))
    with pytest.raises(ValueError, match="read-only"):
        f()[0] = 5
    assert f().tolist() == [0, 1, 2]


def countdown(b):
    """`main(n)`: loops until the 0-d int64 tensor n is 0, and gives the number of rounds."""
    with b.function("main", ["n", "scratch", "rounds", "limit"]):
        start, end = b.label(), b.label()
        b.place(start)
        cond = b.emit_call("vm.builtin.read_if_cond", [b.param(0)])
        b.emit_if(cond, end)
        b.emit_call("sub_one", [b.param(0), b.param(0)], dst=VOID)
        b.emit_call("double_i64", [b.param(2), b.param(2)], dst=VOID)
        b.emit_goto(start)
        b.place(end)
        b.emit_ret(b.param(2))


def test_loops():
    vm = machine(countdown, [programs.SUB_ONE, programs.DOUBLE])
    assert vm["main"](np.int64(10), None, np.int64(1), None) == 1024
    assert vm["main"](np.int64(0), None, np.int64(7), None) == 7


def recursive(b):
    """`main(n, x)`: recursion n deep, whose innermost call gives x."""
    with b.function("main", ["n", "x"]):
        end = b.label()
        cond = b.emit_call("vm.builtin.read_if_cond", [b.param(0)])
        b.emit_if(cond, end)
        less = b.emit_call("test.minus_one", [b.param(0)])
        b.emit_ret(b.emit_call("main", [less, b.param(1)]))
        b.place(end)
        b.emit_ret(b.param(1))


def test_recursion():
    registry.register_func("test.minus_one", lambda n: n - 1)
    f = machine(recursive)["main"]
    assert f(5000, 7) == 7
    error = diagnostic(lambda: f(MAX_DEPTH + 5, 7))
    assert error.diagnostics[0].code == "RLX6010" and "recursion too deep: `main`" in str(error)
    assert f(3, 7) == 7


def test_closures():
    def build(b):
        with b.function("body", ["x", "y"]):
            b.emit_ret(b.emit_call("vm.builtin.make_tuple", [b.param(0), b.param(1)]))
        with b.function("make", ["y"]):
            b.emit_ret(b.emit_call("vm.builtin.make_closure", [b.func("body"), b.param(0)]))
        with b.function("main", ["x", "y"]):
            closure = b.emit_call("make", [b.param(1)])
            b.emit_ret(b.emit_call("vm.builtin.invoke_closure", [VM, closure, b.param(0)]))
        with b.function("apply", ["f", "x"]):
            b.emit_ret(b.emit_call("vm.builtin.invoke_closure", [VM, b.param(0), b.param(1)]))

    vm = machine(build)
    assert vm["main"](1, 2) == (1, 2)
    closure = vm["make"](2)
    assert closure(1) == vm.invoke_closure(closure, 1) == (1, 2)
    assert vm["apply"](closure, 5) == (5, 2)
    assert vm["apply"](lambda x: x + 1, 5) == 6
    with pytest.raises(PackedFunctionError, match="`fails` raised TypeError"):
        vm["apply"](fails, 5)
    other = machine(build)["make"](3)
    assert vm["apply"](other, 5) == (5, 3)
    assert diagnostic(lambda: closure(1, 2)).diagnostics[0].code == "RLX6001"
    assert "is no function" in str(diagnostic(lambda: vm["apply"](3, 5)))


def fails(x):
    raise TypeError("not this")


def test_recursion_through_python_is_limited():
    def build(b):
        with b.function("main", ["x"]):
            b.emit_ret(b.emit_call("test.again", [b.param(0)]))

    vm = machine(build)
    registry.register_func("test.again", lambda x: vm["main"](x))
    error = diagnostic(lambda: vm["main"](1))
    while error.__cause__ is not None:
        error = error.__cause__
    assert error.diagnostics[0].code == "RLX6010"
    registry.register_func("test.again", lambda x: x + 1, override=True)
    assert machine(build)["main"](1) == 2


def test_packed_functions():
    seen = []

    @registry.register_func("test.pack")
    def pack(*args):
        seen.extend(args)
        return [args[0].T, np.float64(2.5), (None, "s"), np.arange(3)[::-1], True]

    f = single(["x", "n"], lambda b: b.emit_call("test.pack", [b.param(0), b.param(1), "text", ShapeTuple([1])]))
    a, b, c, d, e = f(a34(), 3)
    assert [type(v) for v in seen] == [NDArray, int, str, ShapeTuple]
    assert type(a) is NDArray and a.flags.c_contiguous and (a == a34().T).all()
    assert type(b) is float and c == (None, "s") and d.tolist() == [2, 1, 0] and d.strides[0] > 0 and e is True


def test_packed_function_may_come_later_and_may_be_missing():
    f = single([], lambda b: b.emit_call("test.later"))
    error = diagnostic(f)
    assert error.diagnostics[0].code == "RLX6008" and "`test.later`" in str(error)
    registry.register_func("test.later", lambda: 5)
    assert f() == 5


def test_exceptions_of_packed_functions():
    @registry.register_func("test.fails")
    def fails(x):
        raise ZeroDivisionError("by zero")

    f = single(["x"], lambda b: b.emit_call("test.fails", [b.param(0)]))
    with pytest.raises(PackedFunctionError) as caught:
        f(1)
    assert caught.value.name == "test.fails" and isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "packed function `test.fails` raised ZeroDivisionError: by zero" in str(caught.value)

    def interrupted(x):
        raise KeyboardInterrupt

    registry.register_func("test.fails", interrupted, override=True)
    with pytest.raises(KeyboardInterrupt):
        single(["x"], lambda b: b.emit_call("test.fails", [b.param(0)]))(1)


def test_kernel_assertions_and_call_tir_dyn():
    out = np.zeros(2, "int8")
    f = single(["x", "y"], lambda b: b.emit_call("half", [b.param(0), b.param(1)]), [programs.HALF])
    assert f(np.zeros(4, "int8"), out) is None
    assert "`n` must be even" in str(diagnostic(lambda: f(np.zeros(5, "int8"), out)))


def test_a_bad_instruction_is_an_error_with_its_text():
    f = single(["x"], lambda b: b.emit_call("vm.builtin.make_shape", [b.param(0), 1, 1, 0]))
    error = diagnostic(lambda: f(None))
    assert error.diagnostics[0].code == "RLX6014"
    assert "instruction 0 of `main` (`call  vm.builtin.make_shape in: %0, i1, i1, i0 dst: %1`) failed" in str(error)


def test_lookup(vm):
    assert "main" in vm and "add" in vm and "mian" not in vm
    out = np.zeros((3, 4), "float32")
    vm["add"](a34(), a34(), out)
    np.testing.assert_array_equal(out, 2 * a34())
    with pytest.raises(KeyError) as caught:
        vm["mian"]
    assert "no function `mian`" in str(caught.value) and "did you mean `main`?" in str(caught.value)


def test_missing_kernel():
    b = ExecBuilder()
    b.declare_kernel(KernelSignature("absent", ()))
    with b.function("main", []):
        b.emit_call("absent", dst=VOID)
        b.emit_ret(1)
    vm = VirtualMachine(b.get(), mod={})
    assert diagnostic(lambda: vm["main"]()).diagnostics[0].code == "RLX6008"


def test_devices():
    assert str(cpu()) == "cpu:0" and cpu(1) == Device("cpu", 1)
    for device in (Device("cuda"), "cpu", 3):
        error = diagnostic(lambda device=device: VirtualMachine(programs.adder(), device, mod=programs.kernels()))
        assert error.diagnostics[0].code == "RLX6016"
    VirtualMachine(programs.adder(), [cpu()], mod=programs.kernels())


def test_stateful_calls_and_saved_functions(vm):
    assert "has no inputs" in str(diagnostic(lambda: vm.invoke_stateful("main")))
    assert "has no outputs" in str(diagnostic(lambda: vm.get_outputs("main")))
    assert diagnostic(lambda: vm.set_input("main", a34())).diagnostics[0].code == "RLX6001"
    vm.set_input("main", a34(), a34())
    vm.invoke_stateful("main")
    np.testing.assert_array_equal(vm.get_outputs("main"), 2 * a34())
    vm.save_function("main", "saved", a34(), a34())
    np.testing.assert_array_equal(vm["saved"](), 2 * a34())
    vm.save_function("main", "quiet", a34(), a34(), include_return=False)
    assert vm["quiet"]() is None


def test_time_evaluator(vm):
    result = vm.time_evaluator("main", cpu(), number=2, repeat=3)(a34(), a34())
    assert len(result.results) == 3 and 0 < result.min <= result.median <= result.max < 1
    assert result.min <= result.mean <= result.max and result.std >= 0
    assert "at least 1" in str(diagnostic(lambda: vm.time_evaluator("main", number=0)(a34(), a34())))


def test_stepping(vm):
    trace = []
    vm.on_instruction = lambda frame: trace.append((frame.function, frame.pc, frame.depth, type(frame.instruction)))
    vm["main"](a34(), a34())
    assert len(trace) == 12 and trace[0] == ("main", 0, 0, Call) and trace[-1] == ("main", 11, 0, Ret)

    class Stop(Exception):
        pass

    def stop_before_add(frame):
        if frame.pc == 10:
            assert frame.registers[5] == (3, 4)
            raise Stop

    vm.on_instruction = stop_before_add
    with pytest.raises(Stop):
        vm["main"](a34(), a34())
    vm.on_instruction = lambda frame: {}["no key"]
    with pytest.raises(KeyError, match="no key"):
        vm["main"](a34(), a34())
    vm.on_instruction = None
    np.testing.assert_array_equal(vm["main"](a34(), a34()), 2 * a34())


def test_many_threads_share_one_machine(vm):
    failures = []

    def work(n):
        x = np.full((n, 4), n, "float32")
        for _ in range(50):
            try:
                vm["main"](x, x[:-1])
                failures.append("no error")
            except DiagnosticError:
                pass
            out = vm["main"](x, x)
            if out.shape != (n, 4) or not (out == 2 * n).all():
                failures.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_calls_do_not_leak(vm):
    import gc
    import resource

    x = np.ones((1000, 4), "float32")
    for _ in range(500):
        vm["main"](x, x)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(5000):
        vm["main"](x, x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 << 10
