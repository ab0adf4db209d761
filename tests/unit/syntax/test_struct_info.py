"""The algebra of struct info."""

import pytest

from relaxlang import parse
from relaxlang.ir import prim, relax
from relaxlang.ir.struct_info import OBJECT, FuncStructInfo, StructInfo
from relaxlang.syntax.struct_info import BaseCheck, base_check, call_result, erase, least_upper_bound, unify


def infos(*texts: str) -> list[StructInfo]:
    """Struct infos from text; all share the dimensions `n` and `m`."""
    params = ", ".join(f"p{k}: {text}" for k, text in enumerate(texts))
    found = parse(f'@R.function\ndef f(a: R.Shape(["n", "m"]), {params}):\n    return a\n')["f"]
    assert isinstance(found, relax.Function)
    return [p.struct_info for p in found.params[1:]]


@pytest.mark.parametrize(
    ("base", "derived", "outcome"),
    [
        ("R.Object", 'R.Tensor((n,), "int8")', BaseCheck.HOLDS),
        ("R.Tensor", 'R.Tensor((n,), "int8")', BaseCheck.HOLDS),
        ("R.Tensor(ndim=1)", 'R.Tensor((n,), "int8")', BaseCheck.HOLDS),
        ('R.Tensor((n,), "int8")', "R.Tensor", BaseCheck.CAST),
        ('R.Tensor((n,), "int8")', 'R.Tensor(dtype="int8", ndim=1)', BaseCheck.PROOF),
        ('R.Tensor((n,), "int8")', 'R.Tensor((m,), "int8")', BaseCheck.PROOF),
        ('R.Tensor((n,), "int8")', 'R.Tensor((n + 1,), "int8")', BaseCheck.NEVER),
        ('R.Tensor(("n * 2 + n",), "int8")', 'R.Tensor(("3 * n",), "int8")', BaseCheck.HOLDS),
        ('R.Tensor((2,), "int8")', 'R.Tensor((3,), "int8")', BaseCheck.NEVER),
        ('R.Tensor((n,), "int8")', 'R.Tensor((n,), "int32")', BaseCheck.NEVER),
        ("R.Tensor(ndim=2)", "R.Tensor(ndim=1)", BaseCheck.NEVER),
        ("R.Shape(ndim=1)", "R.Shape([n])", BaseCheck.HOLDS),
        ("R.Shape([n])", "R.Shape(ndim=2)", BaseCheck.NEVER),
        ("R.Tuple(R.Object, R.Tensor)", "R.Tuple(R.Tensor, R.Object)", BaseCheck.CAST),
        ("R.Tuple(R.Object)", "R.Tuple(R.Object, R.Object)", BaseCheck.NEVER),
        ('R.Prim("int64")', "R.Prim(value=n)", BaseCheck.HOLDS),
        ("R.Callable", "R.Callable((R.Tensor,), R.Tensor)", BaseCheck.HOLDS),
        ("R.Callable((R.Tensor(ndim=2),), R.Object)", "R.Callable((R.Tensor,), R.Tensor)", BaseCheck.HOLDS),
        ("R.Callable((R.Tensor,), R.Object)", "R.Callable((R.Tensor(ndim=2),), R.Tensor)", BaseCheck.CAST),
        ("R.Callable((R.Tensor,), R.Object)", "R.Callable((R.Tensor,), R.Object, False)", BaseCheck.NEVER),
        ("R.Tensor", "R.Shape", BaseCheck.NEVER),
    ],
)
def test_base_check(base: str, derived: str, outcome: BaseCheck) -> None:
    a, b = infos(base, derived)
    assert base_check(a, b) is outcome


@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        ('R.Tensor((n,), "int8")', 'R.Tensor((n,), "int8")', 'R.Tensor((n,), "int8")'),
        ('R.Tensor((n,), "int8")', 'R.Tensor((m,), "int8")', 'R.Tensor(dtype="int8", ndim=1)'),
        ('R.Tensor((n,), "int8")', 'R.Tensor((n,), "int16")', "R.Tensor((n,))"),
        ("R.Tensor((n,))", "R.Tensor((n, m))", "R.Tensor"),
        ("R.Shape([n])", "R.Shape([m])", "R.Shape(ndim=1)"),
        ("R.Tuple(R.Tensor, R.Shape)", "R.Tuple(R.Shape, R.Shape)", "R.Tuple(R.Object, R.Shape)"),
        ("R.Prim(value=n)", "R.Prim(value=m)", 'R.Prim("int64")'),
        ("R.Tensor", "R.Shape", "R.Object"),
    ],
)
def test_least_upper_bound(a: str, b: str, joined: str) -> None:
    left, right = infos(a, b)
    assert str(least_upper_bound(left, right)) == str(least_upper_bound(right, left)) == joined


def test_erase() -> None:
    (info,) = infos('R.Tuple(R.Tensor((n, m), "int8"), R.Shape([n]), R.Prim(value=m))')
    (shape,) = infos("R.Shape([n])")
    n = shape.values[0]  # type: ignore[attr-defined]
    assert isinstance(n, prim.Var)
    assert str(erase(info, [])) == 'R.Tuple(R.Tensor(dtype="int8", ndim=2), R.Shape(ndim=1), R.Prim("int64"))'


def test_call_result() -> None:
    n, m = prim.Var("n", prim.INT64), prim.Var("m", prim.INT64)
    shaped = infos("R.Tensor((8, 3))")[0]
    from relaxlang.ir.struct_info import tensor_info

    function = FuncStructInfo((tensor_info((n, prim.const(3, "int64"))),), tensor_info((n * 2, m)))
    mapping: dict[prim.Var, prim.PrimExpr] = {}
    unify(function.params[0], shaped, mapping)  # type: ignore[index]
    assert str(call_result(function, mapping)) == "R.Tensor((16, m))" and mapping == {n: prim.const(8, "int64")}
    unknown = FuncStructInfo((tensor_info((n,)), OBJECT), tensor_info((n,)))
    assert str(call_result(unknown, {})) == "R.Tensor(ndim=1)"
