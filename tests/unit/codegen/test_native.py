"""Native programs give what the interpreter and the bytecode machine give, errors included."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from native_programs import PROGRAMS, array

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen.native import layout
from relaxlang.runtime import registry
from relaxlang.runtime.ndarray import NDArray


@pytest.fixture(autouse=True)
def packed_functions():
    registry.register_func("test.native.pack", lambda *args: [a if isinstance(a, str) else np.sum(a) for a in args])
    registry.register_func("test.native.twice", lambda x: x * 2)
    registry.register_func("test.native.pair", lambda x: [x[::-1], [x, 7]])
    registry.register_func("test.native.copy", lambda x, out: np.copyto(out, x))
    yield
    for name in ("pack", "twice", "pair", "copy"):
        del registry._FUNCTIONS[f"test.native.{name}"]


def machines(mod: Any, pipeline: str = "default") -> tuple[Any, Any]:
    """The native and the bytecode machine of a module."""
    built = relaxlang.build(mod, pipeline=pipeline)
    native = relaxlang.VirtualMachine(built)
    assert native.exec_mode == "native"
    return native, relaxlang.VirtualMachine(built, exec_mode="bytecode")


def same(mine: Any, theirs: Any, exact: bool) -> None:
    """Require equal results of equal types; `exact` to the bit."""
    if isinstance(theirs, np.ndarray):
        assert isinstance(mine, np.ndarray) and (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        if exact:
            assert type(mine) is type(theirs) is NDArray and mine.tobytes() == theirs.tobytes()
            assert mine.flags.writeable == theirs.flags.writeable and mine.flags.c_contiguous
        else:
            np.testing.assert_allclose(np.asarray(mine, "float64"), np.asarray(theirs, "float64"), 1e-4, 1e-5)
    elif isinstance(theirs, tuple):
        assert type(mine) is type(theirs) and len(mine) == len(theirs)
        for a, b in zip(mine, theirs):
            same(a, b, exact)
    else:
        assert type(mine) is type(theirs) and mine == theirs


@pytest.mark.parametrize("pipeline", ["default", "minimum"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_three_ways_to_run_a_program_agree(name, pipeline):
    program = PROGRAMS[name]
    mod = program.module()
    native, bytecode = machines(mod, pipeline)
    for args in program.calls:
        wanted = bytecode["main"](*args)
        same(native["main"](*args), wanted, exact=True)
        same(wanted, relaxlang.interpret(mod, "main", *args), exact=False)


def failure(call: Any) -> tuple[str, str]:
    with pytest.raises(DiagnosticError) as caught:
        call()
    return caught.value.diagnostics[0].code, str(caught.value)


X, W, B = array(5, 8), array(8, 16), array(16)
BAD_CALLS = [
    ("mlp", ()),
    ("mlp", (X, W, B, array(16, 3))),
    ("mlp", (X, W, B, array(16, 3), array(3), 1)),
    ("mlp", (X[0], W, B, array(16, 3), array(3))),
    ("mlp", (X.astype("float64"), W, B, array(16, 3), array(3))),
    ("mlp", (X, W[:, :3], B, array(16, 3), array(3))),
    ("mlp", (X, W, None, array(16, 3), array(3))),
    ("mlp", (X, W, "text", array(16, 3), array(3))),
    ("mlp", (X, W, np.array(["a"]), array(16, 3), array(3))),
    ("branches", (True, 3, array(2))),
    ("branches", (True, [True], array(2))),
    ("tuples", ((array(3), array(3, 2)),)),
    ("tuples", ((array(3), (array(4, 2), 5)),)),
    ("tuples", ((array(3), (array(3, 2), 5.5)),)),
    ("match_cast", (array(2, 3), (2, 7), None)),
    ("match_cast", (array(2, 3), (2,), None)),
    ("match_cast", (array(2, 3), "ab", None)),
    ("scalars", (array(3), 1 << 31, 2.5, True)),
    ("scalars", (array(3), 5, "x", True)),
    ("scalars of callers", (array(3), 128, 1.0, True)),
    ("scalars of callers", (array(3), True, 1.0, True)),
    ("scalars of callers", (array(3), 1 << 70, 1.0, True)),
    ("scalars of callers", (array(3), 1, 1 << 1024, True)),
    ("scalars of callers", (array(3), 1, 1.0, 0)),
    ("scalars", (array(3), 5, 2.5, 1)),
    ("views", (array(4, 6), np.zeros((3, 6), "int8"))),
    ("effects", (array(3), array(2))),
    ("factorial", (-(1 << 70),)),
]


@pytest.mark.parametrize("pipeline", ["default", "minimum"])
def test_both_modes_refuse_the_same_calls_with_the_same_words(pipeline):
    built = {name: machines(PROGRAMS[name].module(), pipeline) for name in {name for name, _ in BAD_CALLS}}
    for name, args in BAD_CALLS:
        native, bytecode = built[name]
        wanted = failure(lambda f=bytecode["main"], a=args: f(*a))
        assert failure(lambda f=native["main"], a=args: f(*a)) == wanted
    for name, (native, bytecode) in built.items():  # and nothing is spoilt by it
        args = PROGRAMS[name].calls[0]
        same(native["main"](*args), bytecode["main"](*args), exact=True)


def test_arguments_of_every_layout_are_taken():
    native, bytecode = machines(PROGRAMS["mlp"].module())
    rest = (array(8, 16), array(16), array(16, 3), array(3))
    buffer = np.zeros(4 * 40 + 1, np.uint8)
    misaligned = buffer[1:].view("float32").reshape(5, 8)
    misaligned[:] = X
    with_metadata = X.view(np.dtype("float32", metadata={"unit": "m"}))
    frozen = X.copy()
    frozen.flags.writeable = False

    class Mine(np.ndarray):
        pass

    for x in (np.asfortranarray(X), X.astype(">f4"), misaligned, with_metadata, frozen, X.view(Mine), X[::-1][::-1],
              np.repeat(X, 2, 0)[::2], Exported(X), relaxlang.array(X)):  # fmt: skip
        same(native["main"](x, *rest), bytecode["main"](x, *rest), exact=True)
        assert np.array_equal(native["main"](x, *rest), native["main"](X, *rest))


class Exported:
    """Something with DLPack that is no array."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()


def test_results_leave_by_dlpack():
    native, _ = machines(PROGRAMS["narrow"].module())
    results = native["main"](*PROGRAMS["narrow"].calls[0])
    assert np.from_dlpack(native["main"](*PROGRAMS["narrow"].calls[0])[1]).dtype == np.float16
    assert type(relaxlang.array(Exported(results[0]))) is NDArray


def test_an_argument_that_is_returned_is_the_callers_data():
    native, _ = machines(PROGRAMS["branches"].module())
    x = array(4)
    result = native["main"](False, True, x)[1]
    assert type(result) is NDArray and np.shares_memory(result, x)


def test_results_go_to_arrays_of_the_caller():
    for vm in machines(PROGRAMS["mlp"].module()):
        args = PROGRAMS["mlp"].calls[1]
        wanted = vm["main"](*args)
        out = np.full((5, 3), 7, "float32")
        assert vm["main"](*args, out=out) is out and np.array_equal(out, wanted)
        wide = np.zeros((3, 5), "float32")
        vm["main"](*args, out=wide.T)
        assert np.array_equal(wide.T, wanted)
        frozen = np.zeros((5, 3), "float32")
        frozen.flags.writeable = False
        for bad, code in ((out[:4], "RLX6005"), (out[0], "RLX6004"), (out.astype("f8"), "RLX6003"), (3, "RLX6002"),
                          (frozen, "RLX6015")):  # fmt: skip
            assert failure(lambda bad=bad, f=vm["main"], a=args: f(*a, out=bad))[0] == code
        with pytest.raises(TypeError):
            vm["main"](*args, axis=3)
    for vm in machines(PROGRAMS["branches"].module()):
        pair = (np.zeros(4, "float32"), np.zeros(4, "float32"))
        assert vm["main"](True, True, array(4), out=pair) is pair and np.array_equal(pair[1], array(4))
        overlapping = array(4)
        vm["main"](True, True, overlapping, out=(overlapping, pair[0]))
        assert np.allclose(overlapping, 2 * array(4) ** 2)


def test_functions_of_a_program_have_names_and_can_be_told_apart():
    native, _ = machines(PROGRAMS["closures"].module())
    main = native["main"]
    assert main.__name__ == "main" and "main(x, y)" in repr(main.__self__)
    assert native["main"] is main


def test_the_time_of_each_kernel_is_told_in_both_modes():
    args = PROGRAMS["encoder"].calls[1]
    found = [vm.kernel_profile("main", *args) for vm in machines(PROGRAMS["encoder"].module())]
    places = [[(r.kernel, r.function, r.pc, r.shapes, r.nbytes) for r in profile.runs] for profile in found]
    assert places[0] == places[1] and len(places[0]) > 5
    for profile in found:
        assert all(r.seconds > 0 for r in profile.runs) and profile.kernel_seconds < profile.seconds
        kernels = profile.kernels(flops=lambda kernel, shapes: 2.0 * len(shapes), lines={("main", 3): "x.rlx:1"})
        assert sum(k.share for k in kernels) == pytest.approx(1) and all(k.gigaflops for k in kernels)
        assert kernels == sorted(kernels, key=lambda k: -k.seconds)
        assert str(profile).splitlines()[0].split() == ["kernel", "calls", "µs", "share", "GB/s", "GFLOP/s", "place"]
    run = found[0].runs[0]
    assert run.nbytes == 4 * sum(int(np.prod(shape)) for shape in run.shapes)


def test_without_knowledge_of_numpys_layout_everything_runs_as_bytecode(monkeypatch):
    monkeypatch.setattr(layout, "supported", lambda: False)
    vm = relaxlang.VirtualMachine(relaxlang.build(PROGRAMS["mlp"].module()))
    assert vm.exec_mode == "bytecode"
    assert vm["main"](*PROGRAMS["mlp"].calls[0]).shape == (1, 3)


def test_layouts_that_differ_are_noticed(monkeypatch):
    assert layout.supported()
    places = ("DATA", "NDIM", "DIMS", "STRIDES", "BASE", "DESCR", "FLAGS")
    for name, other in itertools.permutations(places, 2):
        with monkeypatch.context() as patch:
            patch.setattr(layout, name, getattr(layout, other))
            assert not all(layout._agrees(probe) for probe in layout._probes()), (name, other)


def test_modes_have_names():
    with pytest.raises(DiagnosticError, match="no execution mode `fast`"):
        relaxlang.VirtualMachine(relaxlang.build(PROGRAMS["mlp"].module()), exec_mode="fast")
    built = relaxlang.build(PROGRAMS["mlp"].module(), executor=relaxlang.Executor("vm", {"exec-mode": "bytecode"}))
    assert relaxlang.VirtualMachine(built).exec_mode == "bytecode"
    assert relaxlang.VirtualMachine(built, exec_mode="compiled").exec_mode == "native"
    assert relaxlang.VirtualMachine(built, exec_mode="native").exec_mode == "native"


@pytest.mark.parametrize("suffix", [".rlxe", ".so"])
def test_programs_from_files_are_native_too(tmp_path, suffix):
    path = str(tmp_path / f"program{suffix}")
    built = relaxlang.build(PROGRAMS["encoder"].module())
    built.export_library(path)
    vm = relaxlang.VirtualMachine(relaxlang.load_module(path))
    assert vm.exec_mode == "native"
    for args in PROGRAMS["encoder"].calls:
        assert np.array_equal(vm["main"](*args), relaxlang.VirtualMachine(built)["main"](*args))


def test_results_can_be_copied_and_pickled():
    native, _ = machines(PROGRAMS["mlp"].module())
    result = native["main"](*PROGRAMS["mlp"].calls[0])
    for twin in (copy.deepcopy(result), pickle.loads(pickle.dumps(result)), result.copy(), result.numpy()):
        assert np.array_equal(twin, result)
    kernel = relaxlang.build(PROGRAMS["scalars"].module())["fill"]
    target = native["main"](*PROGRAMS["mlp"].calls[0]).view("int32").astype("int64")[0, :3].repeat(2)[:4]
    kernel(target, 5)
    assert target.tolist() == [5, 6, 7, 8]
