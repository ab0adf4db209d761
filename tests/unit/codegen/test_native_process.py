"""Native programs in a process: without the bytecode machine, in many threads, deep, interrupted, short of memory."""

from __future__ import annotations

import _thread
import gc
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest
from llvmlite import binding
from native_programs import PROGRAMS, array

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen import compile
from relaxlang.codegen.native.support import _text, stack_text, support
from relaxlang.runtime import registry
from relaxlang.runtime.memory import POOL

HERE = Path(__file__).parent


def native(text: str, pipeline: str = "default") -> Any:
    """The native machine of a module's text."""
    return relaxlang.VirtualMachine(relaxlang.build(relaxlang.parse(text, "test.rlx"), pipeline=pipeline))


def test_the_bytecode_machine_is_not_needed():
    script = """
import sys
sys.path.insert(0, sys.argv[1])
for name in ("bytecode", "decode"):
    sys.modules[f"relaxlang.runtime.{name}"] = None  # an import raises
import numpy as np
import relaxlang
from native_programs import PROGRAMS
for name in ("mlp", "encoder", "factorial"):
    program = PROGRAMS[name]
    mod = program.module()
    vm = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())
    for args in program.calls:
        np.testing.assert_allclose(vm["main"](*args), relaxlang.interpret(mod, "main", *args), 1e-4, 1e-5)
    try:
        vm["main"]()
    except relaxlang.DiagnosticError as error:
        assert error.diagnostics[0].code == "RLX6001"
try:
    relaxlang.VirtualMachine(relaxlang.build(mod), exec_mode="bytecode")["main"]
except ImportError:
    print("done")
"""
    done = subprocess.run([sys.executable, "-c", script, str(HERE)], capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr


COUNT = """
@R.function
def main(n: R.Tensor((), "int64"), x: R.Tensor((k,), "float32")) -> R.Tensor((k,), "float32"):
    cls = Module
    if R.less(n, R.const(1, "int64")):
        r: R.Tensor((k,), "float32") = x
    else:
        r = cls.main(R.subtract(n, R.const(1, "int64")), R.add(x, x))
    return r
"""


def module(text: str) -> str:
    """The text of a module of functions."""
    return "@I.ir_module\nclass Module:\n" + indent(dedent(text).strip(), "    ")


def test_recursion_is_deep_and_ends_in_an_error():
    main = native(module(COUNT))["main"]
    assert main(5000, np.zeros(3, "float32")).tolist() == [0, 0, 0]
    for _ in range(3):
        with pytest.raises(DiagnosticError, match="recursion too deep: `main`") as caught:
            main(1 << 40, np.zeros(3, "float32"))
        assert caught.value.diagnostics[0].code == "RLX6010"
    assert main(3, np.ones(1, "float32")) == 8


@pytest.mark.parametrize("size", [128 << 10, 16 << 20])
def test_recursion_ends_in_an_error_on_any_stack(size):
    main = native(module(COUNT))["main"]
    found = []

    def work():
        for depth in (100, 1 << 40):
            try:
                found.append(main(depth, np.zeros(1, "float32")).tolist())
            except DiagnosticError as error:
                found.append(error.diagnostics[0].code)

    before = threading.stack_size(size)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == [[0.0], "RLX6010"]


def test_memory_goes_back_on_errors():
    text = """
    @R.function(pure=False)
    def main(x: R.Tensor((n,), "float32"), y: R.Tensor((m,), "float32")):
        a = R.exp(x)
        b = R.matmul(R.reshape(a, (n, 1)), R.reshape(a, (1, n)))
        _ = R.call_packed("test.native.fails", b)
        return R.add(R.sum(b, axis=0), y)
    """

    def fails(value: Any) -> None:
        if len(value) == 200:
            raise ValueError("not this one")

    registry.register_func("test.native.fails", fails, override=True)
    main = native(module(text))["main"]
    x, y = array(200), array(201)
    assert main(y, y).shape == (201,)

    def fail_in_python_and_in_a_kernel() -> int:
        for bad in ((x, x), (y, x)):
            with pytest.raises(DiagnosticError):
                main(*bad)
        gc.collect()
        return support().idle

    idle = fail_in_python_and_in_a_kernel()
    assert all(fail_in_python_and_in_a_kernel() == idle > 0 for _ in range(20))  # the same blocks, all of them back
    POOL.clear()
    assert support().idle == 0


def test_results_keep_their_memory_and_nothing_more():
    main = native(module(COUNT))["main"]
    x = np.ones(1000, "float32")
    POOL.clear()
    results = [main(k, x) for k in range(8)]
    for k, result in enumerate(results[1:], 1):
        assert (result == 2**k).all() and result.ctypes.data % 64 == 0
    views = [r[3:5] for r in results]
    del results, result
    assert [float(v[0]) for v in views] == [2.0**k for k in range(8)]
    grown = main(1, x).copy()
    grown.resize(3000, refcheck=False)
    mine = main(1, x)
    mine.resize(2000, refcheck=False)
    assert (mine[:1000] == 2).all() and (grown[:1000] == 2).all()
    del views, mine
    gc.collect()
    idle = support().idle
    for _ in range(50):
        main(5, x)
    assert support().idle == idle


def test_memory_that_cannot_be_had():
    text = """
    @R.function
    def main(x: R.Tensor((n,), "float32")):
        return R.full(R.shape([n, n, n, 8]), R.const(1, "float32"), "float32")
    """
    main = native(module(text))["main"]
    for n, words in ((1 << 14, "cannot allocate"), (1 << 20, "too large|overflows"), (1 << 21, "too large|overflows")):
        with pytest.raises(DiagnosticError, match=words) as caught:
            main(np.zeros(n, "float32"))
        assert caught.value.diagnostics[0].code == "RLX6006"
    assert main(np.zeros(2, "float32")).shape == (2, 2, 2, 8)


def test_many_threads_share_one_program():
    program = PROGRAMS["mlp"]
    vm = relaxlang.VirtualMachine(relaxlang.build(program.module()))
    weights = program.calls[0][1:]
    failures: list[object] = []

    def work(n: int) -> None:
        x = array(n, 8, seed=n)
        wanted = vm["main"](x, *weights)
        for _ in range(200):
            try:
                vm["main"](x, weights[0], weights[1], weights[2], weights[2])
                failures.append("no error")
            except DiagnosticError:
                pass
            if not np.array_equal(vm["main"](x, *weights), wanted):
                failures.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 3, 900, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_others_run_while_a_kernel_does():
    text = """
    @R.function
    def main(x: R.Tensor((n, n), "float32")):
        return R.matmul(R.matmul(R.matmul(x, x), x), x)
    """
    main = native(module(text))["main"]
    x = array(700, 700)
    ticks, going = [0], [True]

    def tick() -> None:
        while going[0]:
            ticks[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks[0]
    main(x)
    during = ticks[0] - before
    going[0] = False
    thread.join()
    assert during > 3


def test_ctrl_c_stops_recursion():
    text = module(COUNT).replace("R.subtract(n", "R.multiply(n").replace("R.add(x, x)", "R.tanh(x)")
    main = native(text)["main"]
    timer = threading.Timer(0.05, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            try:
                main(5, array(20000))
            except DiagnosticError:
                continue
    timer.join()


def test_programs_are_freed_while_their_results_live():
    vm = native(module(COUNT))
    bound = weakref.ref(vm["main"].__self__.program)
    result = vm["main"](2, np.ones(4, "float32"))
    del vm
    gc.collect()
    assert bound() is None
    assert result.tolist() == [4, 4, 4, 4]
    del result


def test_a_packed_function_may_call_the_program_again():
    text = """
    @R.function(pure=False)
    def main(n: R.Prim("int64")):
        return R.call_packed("test.native.again", n, sinfo_args=R.Object)
    """
    vm = native(module(text))
    registry.register_func("test.native.again", lambda n: n and vm["main"](n - 1) + 1, override=True)
    assert vm["main"](20) == 20
    with pytest.raises(DiagnosticError) as caught:
        vm["main"](1000)
    error: Any = caught.value
    while error.__cause__ is not None:
        error = error.__cause__
    assert error.diagnostics[0].code == "RLX6010"
    assert vm["main"](3) == 3


def test_no_reference_is_lost():
    program = PROGRAMS["tuples"]
    main = relaxlang.VirtualMachine(relaxlang.build(program.module()))["main"]
    arrays = array(3), array(3, 2), array(4, 2)
    good, bad = (arrays[0], (arrays[1], 5)), (arrays[0], (arrays[2], 5))

    def counts() -> list[int]:
        return [sys.getrefcount(o) for o in (*arrays, good, bad, good[1], bad[1])]

    def both() -> None:
        main(good)
        with pytest.raises(DiagnosticError):
            main(bad)

    both()
    before = counts()
    for _ in range(100):
        both()
    gc.collect()
    assert counts() == before


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "arm64-apple-darwin23", "x86_64-pc-windows-msvc"])
def test_the_support_module_is_correct_on_every_platform(triple):
    text = _text(triple)
    assert "rlx_stack_limit" in stack_text(triple) and stack_text(triple) in text
    compile.start()
    binding.parse_assembly(text, binding.create_context()).verify()
