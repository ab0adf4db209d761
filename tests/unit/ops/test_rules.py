"""Rules beside operators: precision classes, layouts, gradients; those of a user's own operators too."""

from __future__ import annotations

import numpy as np
import pytest

import relaxlang
from relaxlang import op
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import INT64
from relaxlang.ir.struct_info import tensor_info
from relaxlang.ops import Operators, default_operators

TEXT = '''
def doubled_gradient_of(x, grad):
    return grad * 2


def beside_each_other(tensors, attrs, desired):
    return [t.layout for t in tensors], tensors[0].layout, {}


@R.op("my.twice", precision="always", layout=beside_each_other)
def twice(x: R.Tensor(S, D)) -> R.Tensor(S, D):
    """x + x"""
    return T.compute(S, lambda *i: x[*i] + x[*i])


@R.grad("my.twice")
def twice_gradient(x, grad):
    return doubled_gradient_of(x, grad)


@R.grad("isnan")
def isnan_gradient(x):
    return R.zeros_like(x)


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "float32")):
        return R.my.twice(x)
'''


def operators() -> Operators:
    return default_operators(relaxlang.parse(TEXT))


def tensor(name: str, *shape: int, of: str = "float32") -> relax.Var:
    return relax.Var(name, tensor_info(tuple(prim.IntImm(INT64, d) for d in shape), dtype(of)))


def call(table: Operators, name: str, *args: relax.Expr, **attrs: object) -> relax.Call:
    made = table.make_call(name, list(args), attrs, None)
    return made.replace(struct_info=table.infer(made))


def test_python_sees_them() -> None:
    assert (op.matmul.precision, op.nn.relu.precision, op.exp.precision, op.nn.softmax.precision) == (
        "always", "follow", "follow", "never",
    )  # fmt: skip
    assert op.nn.relu.gradient is not None and op.nn.relu.gradient.function.name == "relu_gradient"
    assert "stdlib/nn/activation.rlx" in repr(op.nn.relu.gradient)
    assert op.nn.relu.layout_rule is not None and op.reshape.layout_rule is None


def test_a_file_has_rules_of_its_own() -> None:
    table = operators()
    found = table.get("my.twice")
    assert found.precision == "always"
    assert found.rules()["gradient"].startswith("twice_gradient")
    x = tensor("x", 3)
    once = call(table, "my.twice", x)
    (derivative,) = table.gradient(once, once, tensor("g", 3))
    assert str(derivative) == 'R.multiply(g, R.const(2.0, "float32"))'
    assert table.layouts(call(table, "my.twice", tensor("y", 2, 3)), ["BA"]).results == ("BA",)  # type: ignore[union-attr]


def test_a_file_adds_a_gradient_to_an_operator_of_the_library() -> None:
    x, table = tensor("x", 3), operators()
    made = call(table, "isnan", x)
    assert str(table.gradient(made, made, tensor("g", 3))[0]) == "R.zeros_like(x, dtype=None)"
    with pytest.raises(DiagnosticError, match=r"RLX0212.*`R.isnan` has no gradient"):
        default_operators().gradient(made, made, tensor("g", 3))


def test_they_travel_with_the_module() -> None:
    mod = relaxlang.parse(relaxlang.parse(TEXT).script())
    assert default_operators(mod).get("my.twice").gradient is not None
    assert default_operators(mod).get("my.twice").precision == "always"
    assert np.array_equal(relaxlang.interpret(mod, "main", np.ones(3, "float32")), [2, 2, 2])


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "kept", "result", "changed"),
    [
        ("add", [(2, 3, 4, 5), (3, 1, 1)], {}, ("ACDB", "ABC"), ("ACDB", "BCA"), {}),
        ("add", [(2, 3, 4, 5), ()], {}, ("ACDB", ""), ("ACDB", ""), {}),
        ("add", [(2, 8, 4, 5), (2, 8, 4, 5)], {}, ("ABCD", "ABCD4b"), ("ABCD4b", "ABCD4b"), {}),
        ("nn.softmax", [(2, 3, 4, 5)], {"axis": 1}, ("ACDB",), ("ACDB",), {"axis": 3}),
        ("mean", [(2, 3, 4, 5)], {"axis": [2, 3]}, ("ACDB",), ("ACDB",), {"axis": (1, 2)}),
        ("concat", [(2, 3, 4), (2, 1, 4)], {"axis": 1}, ("ACB", "ABC"), ("ACB", "ACB"), {"axis": 2}),
        ("nn.max_pool2d", [(2, 8, 4, 4)], {}, ("ABCD4b",), ("ABCD4b",), {"layout": "NCHW4c"}),
        (
            "nn.pad",
            [(2, 3, 4)],
            {"pad_width": (0, 1, 2, 3, 4, 5)},
            ("ACB",),
            ("ACB",),
            {"pad_width": (0, 1, 4, 5, 2, 3)},
        ),
        ("strided_slice", [(2, 3, 4)], {"axes": (1,), "begin": (0,), "end": (2,)}, ("ACB",), ("ACB",), {"axes": (2,)}),
    ],
)
def test_layouts(
    name: str, shapes: list[tuple[int, ...]], attrs: dict[str, object], kept: tuple[str, ...], result: tuple[str, ...],
    changed: dict[str, object],
) -> None:  # fmt: skip
    table = default_operators()
    tensors: list[relax.Expr] = [tensor(f"x{k}", *s) for k, s in enumerate(shapes)]
    args = [relax.Tuple(tuple(tensors))] if name == "concat" else tensors
    found = table.layouts(call(table, name, *args, **attrs), kept)
    assert found is not None and found.tensors == result and found.attrs == changed


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "kept"),
    [
        ("add", [(2, 8, 4, 5), (2, 1, 4, 5)], {}, ("ABCD4b", "ABCD")),
        ("add", [(2, 3, 4, 5), (5,)], {}, ("ACDB", "A")),
        ("nn.softmax", [(2, 8, 4, 5)], {"axis": 1}, ("ABCD4b",)),
        ("mean", [(2, 8, 4, 5)], {}, ("ABCD4b",)),
        ("cumsum", [(2, 8)], {}, ("BA",)),
        ("reshape", [(2, 8)], {"shape": (16,)}, ("BA",)),
        ("nn.conv2d", [(1, 4, 8, 8), (4, 4, 1, 1)], {}, ("ACDB", "ABCD")),
    ],
)
def test_operators_that_need_plain_tensors(
    name: str, shapes: list[tuple[int, ...]], attrs: dict[str, object], kept: tuple[str, ...]
) -> None:
    table = default_operators()
    tensors = [tensor(f"x{k}", *s) for k, s in enumerate(shapes)]
    assert table.layouts(call(table, name, *tensors, **attrs), kept) is None


def test_results_that_lose_dimensions() -> None:
    table = default_operators()
    found = table.layouts(call(table, "sum", tensor("x", 2, 3, 4, 5), axis=[2]), ("ACDB",))
    assert found is not None and found.results == ("ACB",) and found.attrs == {"axis": (1,)}
    found = table.layouts(call(table, "permute_dims", tensor("x", 2, 3, 4, 5), axes=[0, 2, 3, 1]), ("ACDB",))
    assert found is not None and found.results == ("ABCD",) and found.attrs == {"axes": (0, 1, 2, 3)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('precision="always"', 'precision="half"'), "no option"),
        (("layout=beside_each_other", "layout=no_such_rule"), "a rule must be the name"),
        (('@R.grad("my.twice")', "@R.grad"), "needs names of operators"),
        (('@R.grad("isnan")', '@R.grad("isnam")'), "no operator `R.isnam`"),
    ],
)
def test_what_is_no_rule(change: tuple[str, str], words: str) -> None:
    with pytest.raises(DiagnosticError, match=words):
        relaxlang.parse(TEXT.replace(*change))


def test_rules_that_return_nonsense() -> None:
    bad = TEXT.replace("return doubled_gradient_of(x, grad)", "return grad, grad")
    table = default_operators(relaxlang.parse(bad))
    made = call(table, "my.twice", tensor("x", 3))
    with pytest.raises(DiagnosticError, match="must return 1 derivatives, not 2"):
        table.gradient(made, made, tensor("g", 3))
    shape_needed = default_operators()
    vague = relax.Var("x", tensor_info(None, dtype("float32"), 2))
    made = call(shape_needed, "sum", vague)
    with pytest.raises(DiagnosticError, match="RLX0211"):
        shape_needed.gradient(made, made, tensor("g"))
