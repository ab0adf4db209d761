"""PlaceByCost: what is measured, what is chosen, what is remembered. The seconds here are made up."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import relaxlang
from relaxlang import dpl
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.cli.main import main as relaxc
from relaxlang.codegen.back_ends.measure import arguments, measure
from relaxlang.ir import relax
from relaxlang.ir.relax import Function
from relaxlang.passes import back_end
from relaxlang.passes.back_end import BackEnds, CompositePattern
from relaxlang.passes.relax.place_by_cost import placement_text
from relaxlang.transform import PlaceByCost, RunCodegen, pipeline

TEXT = """
@R.function
def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
    a = R.exp(x)
    b = R.tanh(a)
    c = R.sin(b)
    d = R.exp(c)
    return d
"""
X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


class Renamer:
    """A back end whose code is what it was given, with one more name for the result."""

    def __init__(self, name: str, operators: Sequence[str], whole: bool) -> None:
        self.name = name
        self.operators = operators
        self.takes_whole_functions = whole

    def patterns(self) -> list[CompositePattern]:
        return [CompositePattern(f"{self.name}.{o}", dpl.is_op(o)(dpl.wildcard())) for o in self.operators]

    def version(self) -> str:
        return "1"

    def generate(self, name: str, func: Function, options: object) -> Function:
        result = relax.Var(f"by_{self.name}", func.ret_struct_info)
        more = relax.BindingBlock((relax.VarBinding(result, func.body.body),))
        return func.replace(body=func.body.replace(blocks=(*func.body.blocks, more), body=result))


Cost = Callable[[relaxlang.IRModule], float]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[Cost], list[int]]]:
    """Puts two back ends and a measure in the place of the real ones; gives the sizes of what was measured."""
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path))

    def install(cost: Cost) -> list[int]:
        measured: list[int] = []

        def fake(modules: Sequence[relaxlang.IRModule]) -> list[float]:
            measured.append(len(modules))
            return [cost(m) for m in modules]

        ends = {"one": Renamer("one", ("exp",), False), "many": Renamer("many", ("exp", "tanh", "sin"), True)}
        monkeypatch.setattr(back_end, "_provider", [lambda: BackEnds(ends, fake)])
        return measured

    yield install


def used(mod: relaxlang.IRModule) -> list[str]:
    return [str(f.attrs["Codegen"]) for _, f in mod.relax_functions() if "Codegen" in f.attrs]


def counted(**weights: float) -> Cost:
    """Seconds: 1, and so many for each operator and each function of a back end."""

    def cost(mod: relaxlang.IRModule) -> float:
        text = mod.script()
        return 1.0 + sum(w * (text.count(f"R.{name}(") + text.count(f"by_{name} =")) for name, w in weights.items())

    return cost


def test_the_fastest_is_chosen(installed) -> None:
    mod = relaxlang.parse(TEXT)
    for weights, wanted in (({"one": 9, "many": 9}, []), ({"one": -0.1, "many": 9}, ["one"]),
                            ({"one": 9, "many": -0.5}, ["many"])):  # fmt: skip
        installed(counted(exp=0.1, tanh=0.1, sin=0.1, **weights))
        made = PlaceByCost(dims=[("n", sum(map(ord, str(weights))))])(mod)
        assert used(made) == wanted
        got = relaxlang.build(RunCodegen()(made))["main"](X)
        np.testing.assert_allclose(got, relaxlang.interpret(mod, "main", X), rtol=1e-6)
        assert relaxlang.structural_equal(relaxlang.parse(made.script()), made)


def test_what_was_measured_is_remembered_and_told(installed) -> None:
    mod = relaxlang.parse(TEXT)
    measured = installed(counted(one=-0.1, many=9))
    place = pipeline("place-by-cost{dims=[[n,16]]}")
    made = place(mod)
    assert measured == [2, 2, 2, 3]
    measured.clear()
    relaxlang.assert_structural_equal(place(mod), made)
    assert measured == []
    said = made.attrs["placement"]
    assert [(p["back_end"], tuple(p["variables"]), p["chosen"]) for p in said["parts"]] == [
        ("one", ("d",), True),
        ("one", ("a",), True),
        ("many", ("a", "b", "c", "d"), False),
    ]
    assert [(w["choice"], w["chosen"]) for w in said["whole"]] == [("native", False), ("one", True), ("many", False)]
    text = placement_text(made)
    assert text.count("* one") == 3 and "a, b, c, d" in text and placement_text(mod) == ""


def test_back_ends_share_a_program(installed) -> None:
    def cost(mod: relaxlang.IRModule) -> float:
        text = mod.script()
        return 9.0 - text.count("by_many =") * ("R.sin" in text) - 2 * text.count("by_one =")

    installed(cost)
    mod = relaxlang.parse(TEXT.replace("d = R.exp(c)", "d = R.cos(c)").replace("b = R.tanh(a)", "b = R.cos(a)"))
    made = PlaceByCost(dims=[("n", 2)])(mod)
    assert used(made) == ["one", "many"] and made.attrs["placement"]["whole"][-1]["choice"] == "mixed"


def test_the_command_line_tells(installed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed(counted(one=-0.1, many=9))
    path = tmp_path / "model.rlx"
    path.write_text(TEXT)
    options = ["-p", "place-by-cost{dims=[[n,2]]},run-codegen", "--stats", "--emit=rlx"]
    assert relaxc([str(path), *options]) == 0
    assert "* one" in capsys.readouterr().err


def test_bad_options(installed) -> None:
    mod = relaxlang.parse(TEXT)
    installed(counted())
    for options, code in (({"back_ends": ["two"]}, "RLX3150"), ({"dims": [("m", 2)]}, "RLX3112"),
                          ({"dims": [("n", 0)]}, "RLX0454"), ({"dims": ["n"]}, "RLX0454")):  # fmt: skip
        with pytest.raises(DiagnosticError, match=code):
            PlaceByCost(**options)(mod)


def test_measuring() -> None:
    main = relaxlang.parse(TEXT.replace("(n, 4)", "(2, 4)"))["main"]
    assert isinstance(main, Function)
    (x,) = arguments(main)
    assert x.shape == (2, 4) and x.dtype == np.float32
    fast, slow = measure([lambda a: None, lambda a: sum(range(20000))], [x])
    assert 0 < fast < slow
    open_main = relaxlang.parse(TEXT)["main"]
    assert isinstance(open_main, Function)
    with pytest.raises(DiagnosticError, match="the dimension `n` of `x` has no value"):
        arguments(open_main)


def test_blas_is_measured_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path))
    mod = relaxlang.parse("""
@R.function
def main(x: R.Tensor((n, 8), "float32"), w: R.Tensor((8, 8), "float32")):
    return R.matmul(x, w)
""")
    made = PlaceByCost(back_ends=["blas"], dims=[("n", 4)])(mod)
    assert [w["choice"] for w in made.attrs["placement"]["whole"]] == ["native", "blas"]
    w = np.eye(8, dtype="float32")
    got = relaxlang.build(RunCodegen()(made))["main"](w[:3], w)
    np.testing.assert_allclose(got, w[:3])
