"""Models in the ONNX format become modules that compute the same, with the symbolic dimensions that the models name."""

import numpy as np
import pytest
from onnx_models import Maker, reference

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.frontend.onnx import from_onnx, parameters

pytestmark = pytest.mark.extra("onnx")


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype("float32")


def same(model, *inputs: np.ndarray, build: bool = False, **options) -> relaxlang.IRModule:
    """The module of a model, after its results were compared with the reference evaluator's."""
    mod = from_onnx(model, **options)
    run = relaxlang.VirtualMachine(relaxlang.build(mod))["main"] if build else None
    got = run(*inputs) if run else relaxlang.interpret(mod, "main", *inputs)
    got = got if isinstance(got, tuple) else (got,)
    for a, b in zip(got, reference(model, *inputs), strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-5)
        assert np.asarray(a).dtype == b.dtype
    return mod


def test_symbolic_dimensions_are_kept_and_shape_arithmetic_is_folded() -> None:
    m = Maker()
    x = m.input("x", ("batch", "length", 8))
    shape = m("Shape", x)
    batch, length = (m("Gather", shape, m.constant(k), axis=0) for k in (0, 1))
    half = m("Cast", m("Floor", m("Mul", m("Cast", length, to=1), m.constant(2.0, "float32"))), to=7)
    pieces = [m("Unsqueeze", v, m.constant([0])) for v in (batch, half, m.constant(4))]
    mod = same(m.model(m("Reshape", x, m("Concat", *pieces, axis=0))), random(2, 3, 8))
    assert 'x: R.Tensor((batch, length, 8), "float32")' in mod.script()
    assert "R.Tensor((batch, length * 2, 4)" in str(mod["main"].ret_struct_info)
    assert "shape_to_tensor" not in mod.script()


def test_one_executable_serves_all_sizes() -> None:
    m = Maker()
    x = m.input("x", ("n", 3, "h", "w"))
    y = m("Conv", x, m.constant(random(4, 3, 3, 3)), m.constant(random(4)), pads=[1] * 4, strides=[2, 2])
    y = m("Resize", m("Relu", y), "", m.constant([1, 1, 2, 2], "float32"), mode="nearest")
    model = m.model(m("Add", y, m("GlobalAveragePool", y)))
    vm = relaxlang.VirtualMachine(relaxlang.build(from_onnx(model)))
    for size in ((1, 3, 8, 8), (2, 3, 10, 6), (1, 3, 5, 7)):
        image = random(*size)
        np.testing.assert_allclose(vm["main"](image), reference(model, image)[0], rtol=1e-4, atol=1e-5)


def test_dimensions_whose_names_become_alike_stay_two() -> None:
    m = Maker()
    x, y, z = m.input("x", ("s.1",)), m.input("y", ("s_1",)), m.input("z", (None, "z_0"))
    same(m.model(m("Relu", x), m("Relu", y), m("Relu", z)), random(3), random(4), random(5, 6), build=True)


def test_sizes_known_at_run_time() -> None:
    m = Maker()
    x, shape, k = m.input("x", ("n",)), m.input("shape", (2,), "int64"), m.input("k", (), "int64")
    y = m("Slice", m("Reshape", x, shape), m.constant([0]), m("Unsqueeze", k, m.constant([0])), m.constant([1]))
    z = m("Transpose", m("NonZero", m("Greater", x, m.constant(0.0, "float32"))))
    model = m.model(y, z, m("Range", m.constant(0), k, m.constant(1)))
    same(model, random(12), np.array([-1, 4]), np.array(2), build=True)


def test_weights_as_parameters() -> None:
    m = Maker()
    x = m.input("x", ("n", 4))
    model = m.model(m("Gemm", x, m.constant(random(3, 4)), m.constant(random(3)), transB=1))
    mod = from_onnx(model, keep_params_in_input=True)
    assert [p.name for p in mod["main"].params] == ["x", "c0", "c1"]
    vm = relaxlang.VirtualMachine(relaxlang.build(mod, params=parameters(model)))
    np.testing.assert_allclose(vm["main"](random(2, 4)), reference(model, random(2, 4))[0], rtol=1e-4, atol=1e-5)


def test_numbers_in_the_module_are_no_parameters() -> None:
    m = Maker()
    x, flag = m.input("x", ("n", 4)), m.input("flag", (), "bool")
    branches = []
    for factor in (2.0, 3.0):  # both branches call their weight `c0`
        branch = Maker()
        branches.append(branch.graph(branch("Mul", x, branch.constant(np.full(4, factor), "float32"))))
    y = m("If", flag, then_branch=branches[0], else_branch=branches[1])
    model = m.model(m("Reshape", m("MatMul", y, m.constant(random(4, 6))), m.constant([-1, 3])))
    mod, arrays = from_onnx(model, keep_params_in_input=True), parameters(model)
    assert [p.name for p in mod["main"].params][2:] == list(arrays) and len(arrays) == 3
    bound = relaxlang.VirtualMachine(relaxlang.build(mod, params=arrays))["main"]
    for value, factor in ((True, 2.0), (False, 3.0)):
        inputs = random(2, 4), np.array(value)
        want = (inputs[0] * factor @ random(4, 6)).reshape(-1, 3)
        np.testing.assert_allclose(bound(*inputs), want, rtol=1e-4, atol=1e-5)
        got = relaxlang.interpret(mod, "main", *inputs, *arrays.values())
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_weights_within_a_loop_are_no_parameters() -> None:
    from onnx import numpy_helper

    body = Maker()
    body.input("turn", (), "int64")
    going, v = body.input("going", (), "bool"), body.input("v", (4,))
    step = body("Add", body("Mul", v, body.constant(np.full(4, 2.0), "float32")), "outer")
    m = Maker()
    m.initializers = [numpy_helper.from_array(np.full(4, 3.0, "float32"), "outer")]
    y = m("Loop", m.input("k", (), "int64"), "", m.input("x", (4,)), body=body.graph(body("Identity", going), step))
    mod, arrays = from_onnx(m.model(y), keep_params_in_input=True), parameters(m.model(y))
    assert list(arrays) == ["outer"]
    run = relaxlang.VirtualMachine(relaxlang.build(mod, params=arrays))["main"]
    np.testing.assert_array_equal(run(np.array(3), np.ones(4, "float32")), np.full(4, 29.0))


def test_given_shapes_and_constants() -> None:
    m = Maker()
    x, axes = m.input("x", None), m.input("axes", (1,), "int64")
    mod = from_onnx(m.model(m("ReduceSum", x, axes)), {"x": ("rows", 5)}, constants={"axes": np.array([1])})
    assert 'x: R.Tensor((rows, 5), "float32")' in mod.script() and len(mod["main"].params) == 1
    np.testing.assert_allclose(relaxlang.interpret(mod, "main", np.ones((2, 5), "float32")), [[5.0], [5.0]])


@pytest.mark.parametrize("flag", [True, False])
def test_branches(flag: bool) -> None:
    m = Maker()
    x, c = m.input("x", (3,)), m.input("c", (), "bool")
    then, orelse = Maker(), Maker()
    branches = {"then_branch": then.graph(then("Neg", x)), "else_branch": orelse.graph(orelse("Mul", x, x))}
    same(m.model(m("Exp", m("If", c, **branches))), random(3), np.array(flag), build=True)


def test_loops_are_unrolled() -> None:
    m, body = Maker(), Maker()
    x = m.input("x", (3,))
    turn, going, value = body.input("turn", (), "int64"), body.input("going", (), "bool"), body.input("value", (3,))
    more = body("Add", value, body("Cast", turn, to=1))
    inner = body.graph(body("Identity", going), more, body("Identity", more))
    same(m.model(*m("Loop", m.constant(4), m.constant(True), x, outputs=2, body=inner)), random(3))


@pytest.mark.parametrize("limit, turns", [(0.0, 0), (10.0, 3), (1e9, 5)])
def test_loops_whose_end_is_known_at_run_time(limit: float, turns: int) -> None:
    m, body = Maker(), Maker()
    x, most, limits = m.input("x", ("n",)), m.input("most", (), "int64"), m.input("limit", ())
    _, _, value = body.input("turn", (), "int64"), body.input("going", (), "bool"), body.input("value", ("k",))
    doubled = body("Add", value, value)
    going = body("Less", body("ReduceSum", doubled, keepdims=0), limits)
    grown = body("Concat", doubled, x, axis=0)
    inner = body.graph(going, grown, body("ReduceSum", doubled, keepdims=0))
    total = m("ReduceSum", x, keepdims=0)
    model = m.model(*m("Loop", most, m("Less", total, limits), x, outputs=2, body=inner))
    vm = relaxlang.VirtualMachine(relaxlang.build(from_onnx(model)))
    value, sums, wanted = np.array([1.0, 0.5], "float32"), [], 1.5 < limit
    final, given = value, value
    while wanted and len(sums) < 5:
        doubled = final + final
        sums.append(doubled.sum())
        wanted, final = doubled.sum() < limit, np.concatenate([doubled, given])
    got = vm["main"](given, np.array(5), np.array(limit, "float32"))
    assert len(sums) == turns
    np.testing.assert_allclose(got[0], final)
    np.testing.assert_allclose(got[1], np.array(sums, "float32"))


@pytest.mark.parametrize("op, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers(op: str, gates: int) -> None:
    m = Maker(14)
    x = m.input("x", (5, 2, 4))
    weights = [m.constant(random(1, gates * 3, n) * np.float32(0.3)) for n in (4, 3)]
    bias = m.constant(random(1, 2 * gates * 3))
    same(m.model(*m(op, x, *weights, bias, outputs=2, hidden_size=3)), random(5, 2, 4))


@pytest.mark.parametrize("op, gates", [("LSTM", 4), ("GRU", 3)])
def test_recurrent_layers_of_any_length(op: str, gates: int) -> None:
    """The first steps of a longer sequence, forwards, and the last ones backwards, are those of the unrolled layer."""
    results = []
    for length in ("length", 5):
        m = Maker(14)
        x = m.input("x", (length, "n", 4))
        weights = [m.constant(random(2, gates * 3, k) * np.float32(0.3)) for k in (4, 3)]
        y = m(op, x, *weights, m.constant(random(2, 2 * gates * 3)), hidden_size=3, direction="bidirectional")
        mod = from_onnx(m.model(y))
        results.append(relaxlang.VirtualMachine(relaxlang.build(mod))["main"])
    data = random(9, 2, 4)
    np.testing.assert_allclose(results[0](data[:5]), results[1](data[:5]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[0](data)[:5, 0], results[1](data[:5])[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[0](data)[4:, 1], results[1](data[4:].copy())[:, 1], rtol=1e-5, atol=1e-6)


def test_functions_of_the_model() -> None:
    from onnx import helper

    m = Maker()
    x = m.input("x", (4,))
    model = m.model(m("Twice", m("Twice", x, domain="own"), domain="own"))
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    model.functions.append(helper.make_function("own", "Twice", ["a"], ["b"], body, [helper.make_opsetid("", 18)]))
    mod = from_onnx(model)
    np.testing.assert_allclose(relaxlang.interpret(mod, "main", random(4)), random(4) * 4)


@pytest.mark.parametrize("opset", [7, 9, 11, 12, 13, 18, 21])
def test_operators_of_old_and_new_releases(opset: int) -> None:
    m = Maker(opset)
    x = m.input("x", (2, 3, 4))
    one = [m.constant([1])] if opset >= 13 else []
    old = {} if opset >= 13 else {"axes": [1]}
    y = m("Squeeze", m("Unsqueeze", m("Softmax", x, axis=2), *one, **old), *one, **old)
    y = m("ReduceSum", y, *one, **old)
    y = (
        m("Slice", y, *(m.constant([k]) for k in (0, 1, 0)))
        if opset >= 10
        else m("Slice", y, starts=[0], ends=[1], axes=[0])
    )
    same(m.model(y), random(2, 3, 4))


@pytest.mark.extra("onnxruntime")
def test_operators_that_onnx_runtime_adds() -> None:
    import onnxruntime

    m, own = Maker(), {"domain": "com.microsoft"}
    x, y = m.input("x", ("n", 4, 8)), m.input("y", ("n", 4, 8))
    row = [m.constant(random(8)) for _ in range(3)]
    skipped = m("SkipLayerNormalization", x, y, *row, outputs=4, epsilon=1e-5, **own)
    m.nodes[-1].output[1:3] = ["", ""]
    model = m.model(
        m("BiasGelu", x, row[0], **own), m("FastGelu", x, row[0], **own), m("QuickGelu", x, alpha=1.5, **own),
        m("FusedMatMul", x, y, transB=1, alpha=0.5, **own), skipped[0], skipped[3],
        m("SkipSimplifiedLayerNormalization", x, y, row[1], epsilon=1e-5, **own),
        m("SimplifiedLayerNormalization", x, row[1], axis=-1, epsilon=1e-5),
    )  # fmt: skip
    inputs = random(2, 4, 8), random(2, 4, 8)[::-1].copy()
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, dict(zip("xy", inputs)))
    for a, b in zip(relaxlang.interpret(from_onnx(model), "main", *inputs), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("a, b", [("uint8", "int8"), ("int8", "uint8"), ("int8", "int8")])
@pytest.mark.parametrize("zeros", [(), (7,), (0, 3), (5, (1, 2, 3))])
def test_products_of_bytes(a: str, b: str, zeros: tuple) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, s).astype(t) for t, s in ((a, (2, 5, 18)), (b, (18, 3))))
    m = Maker()
    points = [m.constant(np.array(z, t)) for z, t in zip(zeros, (a, b))]
    y = m("MatMulInteger", m.input("x", ("n", 5, 18), a), m.constant(w), *points)
    same(m.model(y), x)


def refuses(run, *inputs: np.ndarray) -> None:
    with pytest.raises(DiagnosticError, match="RLX6005"):
        run(*inputs)


def test_sizes_that_are_wrong_at_run_time() -> None:
    m = Maker()
    x, sizes, k = m.input("x", ("n",)), m.input("sizes", (2,), "int64"), m.input("k", (1,), "int64")
    model = m.model(*m("Split", x, sizes, outputs=2), m("TopK", x, k, outputs=2)[0])
    run = relaxlang.VirtualMachine(relaxlang.build(from_onnx(model)))["main"]
    for given, count in (([3, 1], 2), ([0, 4], 0), ([4, 0], 4)):
        inputs = random(4), np.array(given), np.array([count])
        for a, b in zip(run(*inputs), reference(model, *inputs), strict=True):
            np.testing.assert_array_equal(a, b)
    for given in ([3, 2], [1, 1], [100, -96], [-1, 5], [1 << 40, 0], [1 << 62, 0]):
        refuses(run, random(4), np.array(given), np.array([2]))
    for count in (5, -1, 1 << 40):
        refuses(run, random(4), np.array([2, 2]), np.array([count]))


def test_a_condition_that_is_longer_than_what_it_is_for() -> None:
    m = Maker()
    x, condition = m.input("x", ("n",)), m.input("condition", ("k",), "bool")
    run = relaxlang.VirtualMachine(relaxlang.build(from_onnx(m.model(m("Compress", x, condition, axis=0)))))["main"]
    np.testing.assert_array_equal(run(random(3), np.array([True, False, True, True, True])), random(3)[[0, 2]])
    np.testing.assert_array_equal(run(random(3), np.array([False, True])), random(3)[[1]])


@pytest.mark.parametrize("name", ["ReduceMax", "ReduceMin", "ReduceLogSumExp"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_reductions_of_nothing(name: str, dtype: str) -> None:
    if name == "ReduceLogSumExp" and dtype != "float32":
        return
    m = Maker(20)
    x, axes = m.input("x", (2, 0, "n"), dtype), m.constant([1])
    model = m.model(m(name, x, axes), m(name, x, axes, keepdims=0))
    empty = np.zeros((2, 0, 3), dtype)
    least = {"float32": -np.inf, "int8": -128, "bool": False}[dtype]
    greatest = {"float32": np.inf, "int8": 127, "bool": True}[dtype]
    kept, dropped = relaxlang.interpret(from_onnx(model), "main", empty)
    want = np.full((2, 1, 3), greatest if name == "ReduceMin" else least, dtype)
    np.testing.assert_array_equal(kept, want)
    np.testing.assert_array_equal(dropped, want[:, 0])


def test_parts_come_to_the_whole() -> None:
    m = Maker()
    x = m.input("x", ("n",))
    model = m.model(*m("Split", x, m.constant([1, 2]), outputs=2))
    run = relaxlang.VirtualMachine(relaxlang.build(from_onnx(model)))["main"]
    assert [len(part) for part in run(random(3))] == [1, 2]
    refuses(run, random(4))


def test_what_is_scanned_together_is_equally_long() -> None:
    body = Maker()
    made = body.graph(body("Add", body.input("p", (2,)), body.input("q", (2,))))
    m = Maker()
    y = m("Scan", m.input("x", (4, 2)), m.input("y", ("n", 2)), num_scan_inputs=2, body=made)
    run = relaxlang.VirtualMachine(relaxlang.build(from_onnx(m.model(y))))["main"]
    np.testing.assert_allclose(run(random(4, 2), random(4, 2)), random(4, 2) * 2)
    refuses(run, random(4, 2), random(3, 2))
