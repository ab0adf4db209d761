"""The graph executor: its graph, its state, and what it refuses."""

import json
from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.runtime.graph import from_json, to_json
from relaxlang.runtime.graph_executor import GraphExecutor
from relaxlang.runtime.graph_module import GraphExecutorFactory, create

MODULE = relaxlang.parse("""
@R.function
def main(x: R.Tensor((4, 8), "float32"), y: R.Tensor((8,), "float32")):
    with R.dataflow():
        a = R.matmul(x, R.const([[1.0]] * 8, "float32"))
        b = R.nn.softmax(R.add(a, y), axis=1)
        c = R.sum(b, axis=0)
        R.output(b, c)
    return (b, c)
""")
X = np.random.default_rng(0).random((4, 8), np.float32)
Y = np.random.default_rng(1).random(8, np.float32)


@pytest.fixture(scope="module")
def built() -> GraphExecutorFactory:
    made = relaxlang.build(MODULE, executor="graph")
    assert isinstance(made, GraphExecutorFactory)
    return made


def failure(function: Any, *args: Any, **named: Any) -> str:
    with pytest.raises(DiagnosticError) as caught:
        function(*args, **named)
    return str(caught.value)


def test_the_graph_is_readable(built: GraphExecutorFactory) -> None:
    data = json.loads(built.get_graph_json())
    main = data["functions"]["main"]
    assert (data["format"], data["version"]) == ("relaxlang.graph", 1)
    assert main["arguments"] == [["x", 0], ["y", 1]] and [name for name, _ in main["parameters"]] == ["p0"]
    names = [node["name"] for node in main["nodes"]]
    assert names[-2:] == ["b", "c"] and all(node["kernel"] in built.kernels for node in main["nodes"])
    assert all(t["offset"] % 4 == 0 and t["storage"] < len(main["storage"]) for t in main["tensors"])
    assert built.get_graph_json().count("\n    {") == len(main["tensors"]) + len(main["nodes"])
    assert to_json(from_json(built.get_graph_json())) == built.get_graph_json()


def test_inputs_and_outputs(built: GraphExecutorFactory) -> None:
    executor = built["create_executor"](relaxlang.cpu())
    assert (executor.get_num_inputs(), executor.get_num_outputs()) == (2, 2)
    assert "`x`, `y`" in failure(executor.run)
    x = X.copy()
    executor.set_input("x", x)
    x[...] = 0  # what was set is a copy
    executor.run(y=Y)
    want = relaxlang.build(MODULE)["main"](X, Y)
    first = executor.get_output(0)
    np.testing.assert_array_equal(first, want[0])
    np.testing.assert_array_equal(executor.get_input("x"), X)
    out = np.empty(8, np.float32)
    assert executor.get_output(1, out) is out
    np.testing.assert_array_equal(out, want[1])
    executor.set_input(0, np.zeros_like(X))
    executor.run()
    np.testing.assert_array_equal(first, want[0])  # what was got is a copy
    other = built.create_executor()
    other.run(x=X, y=Y)
    assert not np.array_equal(executor.get_output(0), other.get_output(0))
    set_before = executor.get_input("x")
    result = executor["main"](X, Y)
    np.testing.assert_array_equal(executor.get_input("x"), set_before)  # a call leaves what was set
    executor["main"](np.zeros_like(X), Y)
    np.testing.assert_array_equal(result[1], want[1])


def test_what_does_not_fit(built: GraphExecutorFactory) -> None:
    executor = built.create_executor()
    assert "RLX6005" in failure(executor.set_input, "x", X[:3]) and "`x` of `main`" in failure(executor["main"], Y, Y)
    assert "RLX6003" in failure(executor.set_input, 1, Y.astype(np.float64))
    assert "RLX6002" in failure(executor.set_input, "x", "text") and "RLX6001" in failure(executor["main"], X)
    assert "the inputs are `x`, `y`" in failure(executor.set_input, "z", X) and "RLX6018" in failure(
        executor.get_input, 2
    )
    assert "RLX6018" in failure(executor.get_output, 2) and "RLX6002" in failure(executor.get_output, 0, np.zeros(3))
    assert "RLX6008" in failure(lambda: executor["other"]) and "RLX6008" in failure(
        built.create_executor, None, "other"
    )


def test_measuring(built: GraphExecutorFactory) -> None:
    executor = built.create_executor()
    executor.run(x=X, y=Y)
    assert len(executor.benchmark(number=2, repeat=3).results) == 3
    assert len(executor.benchmark(relaxlang.cpu(), number=2).results) == 3
    report = executor.debug(number=2)
    assert [row.node.name for row in report.rows] == [n.name for n in executor.graph.nodes]
    np.testing.assert_array_equal(report.rows[-1].outputs[0], executor.get_output(1))
    assert all(row.seconds > 0 for row in report.rows) and "float32(4, 8)" in str(report)
    np.testing.assert_array_equal(executor.debug_get_output("b"), executor.get_output(0))
    np.testing.assert_array_equal(executor.debug_get_output(len(report.rows) - 1), executor.get_output(1))
    assert "there is no node `z`" in failure(executor.debug_get_output, "z")


def test_constants_beside_the_library_or_in_it(built: GraphExecutorFactory) -> None:
    want = built["main"](X, Y)
    text, library, params = built.get_graph_json(), built.get_lib(), built.get_params()
    given = create(text, library, relaxlang.cpu(), params)
    later = create(text, library.kernels)
    later.set_input("p0", params["p0"])
    linked = relaxlang.build(MODULE, executor={"kind": "graph", "link-params": True})
    assert isinstance(linked, GraphExecutorFactory) and linked.get_params() == {}
    for executor in (given, later, create(linked.get_graph_json(), linked.get_lib())):
        assert isinstance(executor, GraphExecutor)
        np.testing.assert_array_equal(executor["main"](X, Y)[0], want[0])
    assert "`p0`" in failure(create(text, library)["main"], X, Y)
    assert "RLX6021" in failure(create, text, library, None, {"p0": np.zeros(8, np.float32)})
    assert "RLX6008" in failure(create, text, {}) and "RLX6008" in failure(create, text, library, None, None, "f")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t[:-9], "is no graph"), (lambda t: "[]", "is no graph"), (lambda t: "", "is no graph"),
        (lambda t: t.replace('"version": 1', '"version": 2'), "RLX6012"),
        (lambda t: t.replace('"result": ', '"result": [99, ').replace("}}}", "]}}}"), "is 99, and there are"),
        (lambda t: t.replace('"storage": 0,', '"storage": 77,'), "is 77"),
        (lambda t: t.replace('"shape": [4, 8]', '"shape": [-4, 8]', 1), "is -4"),
        (lambda t: t.replace('"args": [0', '"args": [true', 1), "`args` is no int"),
        (lambda t: t.replace('["y", 1]', '["y", 0]'), "lie in one storage"),
        (lambda t: "[" * 100_000, "is no graph"),
    ],
)  # fmt: skip
def test_what_is_no_graph(built: GraphExecutorFactory, change: Any, words: str) -> None:
    assert words in failure(from_json, change(built.get_graph_json()))


def test_a_graph_that_does_not_fit_its_kernels(built: GraphExecutorFactory) -> None:
    text = built.get_graph_json()
    for change in (('"shape": [4, 8]', '"shape": [8, 4]'), ('"dtype": "float32"', '"dtype": "int32"')):
        wrong = text.replace(*change, 1)
        assert "RLX600" in failure(create, wrong, built.get_lib(), None, built.get_params())
    short = text.replace('"storage": [128, ', '"storage": [64, ')
    assert short != text and "RLX6006" in failure(create, short, built.get_lib(), None, built.get_params())


BRANCH = "    if c:\n        y = R.exp(x)\n    else:\n        y = R.negative(x)\n    return y\n"


@pytest.mark.parametrize(
    ("params", "body", "words"),
    [
        ('x: R.Tensor((n,), "float32")', "    return R.exp(x)\n", "the parameter `x` of `main` has no static shape"),
        ("x: R.Shape([3])", "    return x\n", "the parameter `x` of `main` is no tensor"),
        ('x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")', BRANCH, "`y` is a conditional"),
        ('x: R.Tensor((2,), "int64")', "    u = R.unique(x)\n    return u\n", "calls `relax.run.trim`"),
        ('x: R.Tensor((2,), "float32")', '    y = R.call_pure_packed("f", x, sinfo_args=R.Tensor((2,), "float32"))\n'
         "    return R.exp(y)\n", "`y` calls `f`, which makes its result itself"),
        ('x: R.Tensor((2,), "float32")', "    return R.shape([2])\n", "`main` returns a value that is no tensor"),
    ],
)  # fmt: skip
def test_what_a_graph_cannot_say(params: str, body: str, words: str) -> None:
    mod = relaxlang.parse(f"@R.function(pure=False)\ndef main({params}):\n{body}")
    said = failure(relaxlang.build, mod, executor="graph")
    assert "RLX5029" in said and words in said


def test_recursion_is_no_graph() -> None:
    mod = relaxlang.parse("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = Module.main(x)
        return y
""")
    assert "the binding `y` calls `main`, which calls itself" in failure(relaxlang.build, mod, executor="graph")


def test_several_functions_are_several_graphs() -> None:
    text = '@R.function\ndef {}(x: R.Tensor((2,), "float32")):\n    return R.{}(x)\n\n'
    mod = relaxlang.parse(text.format("first", "exp") + text.format("second", "negative"))
    built = relaxlang.build(mod, executor="graph")
    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(built["second"](x), -x)
    assert built["default"](relaxlang.cpu()).graph.name == "first" and built.function_names[:2] == ["first", "second"]


def test_a_limit_packs_the_workspace() -> None:
    body = (
        "    a = R.cumsum(x, 0)\n    b = R.concat([a, a], 0)\n    c = R.cumsum(b, 0)\n    d = R.sum(c)\n    return d\n"
    )
    mod = relaxlang.parse(f'@R.function\ndef main(x: R.Tensor((64,), "float32")):\n{body}')
    free = relaxlang.build(mod, executor="graph", pipeline="minimum")
    tight = relaxlang.build(mod, executor={"kind": "graph", "workspace-byte-limit": 1100}, pipeline="minimum")
    assert isinstance(free, GraphExecutorFactory) and isinstance(tight, GraphExecutorFactory)
    assert free.graphs["main"].workspace_bytes > 1100 >= tight.graphs["main"].workspace_bytes
    x = np.ones(64, np.float32)
    np.testing.assert_array_equal(tight["main"](x), free["main"](x))
