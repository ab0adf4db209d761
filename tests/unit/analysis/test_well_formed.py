"""Well-formedness of modules that no text could state: what passes may do wrong."""

from relaxlang import parse
from relaxlang.analysis.well_formed import well_formed
from relaxlang.base.dtype import dtype
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import (
    OBJECT,
    FuncStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    tensor_info,
)

F32 = dtype("float32")


def module(
    *bindings: relax.Binding,
    params: tuple[relax.Var, ...] = (),
    result: relax.Expr | None = None,
    ret: StructInfo | None = None,
) -> IRModule:
    """A module of one public function."""
    body = relax.seq_expr(bindings, relax.Tuple(()) if result is None else result)
    function = relax.Function(params, body, ret, True).replace(attrs=parse("").attrs.with_(global_symbol="f"))
    return IRModule({"f": function})


def codes(mod: IRModule) -> list[str]:
    """The codes of the breaches."""
    return [d.code for d in well_formed(mod)]


def vector(name: str) -> relax.Var:
    """A variable for a vector of four."""
    return relax.Var(name, tensor_info((prim.const(4, "int64"),), F32))


def exp(value: relax.Expr) -> relax.Call:
    """A call with struct info."""
    return relax.Call(relax.Op("exp"), (value,), struct_info=value.struct_info)


def test_well_formed_module() -> None:
    x, y = vector("x"), vector("y")
    assert codes(module(relax.VarBinding(y, exp(x)), params=(x,), result=y)) == []


def test_use_before_binding() -> None:
    x, y = vector("x"), vector("y")
    assert codes(module(relax.VarBinding(y, exp(x)), result=y)) == ["RLX0438"]


def test_single_assignment() -> None:
    x, y = vector("x"), vector("y")
    twice = relax.VarBinding(y, exp(x))
    assert codes(module(twice, twice, params=(x,), result=y)) == ["RLX0436"]


def test_normal_form() -> None:
    x, y = vector("x"), vector("y")
    assert codes(module(relax.VarBinding(y, exp(exp(x))), params=(x,), result=y)) == ["RLX0434"]
    assert codes(module(params=(x,), result=exp(x))) == ["RLX0434"]


def test_operator_as_a_value() -> None:
    y = relax.Var("y", OBJECT)
    assert codes(module(relax.VarBinding(y, relax.Op("exp")), result=y)) == ["RLX0437"]


def test_dataflow_variables_stay_in_their_block() -> None:
    x, y = vector("x"), relax.DataflowVar("y", vector("y").struct_info)
    block = relax.DataflowBlock((relax.VarBinding(y, exp(x)),))
    function = relax.Function((x,), relax.SeqExpr((block,), y), None)
    assert codes(IRModule({"f": function}))[0] == "RLX0432"
    assert codes(module(relax.VarBinding(y, exp(x)), params=(x,), result=y)) == ["RLX0432"]


def test_unknown_symbolic_variable() -> None:
    n = prim.Var("n", prim.INT64)
    x = relax.Var("x", tensor_info((n + 1,), F32))
    assert codes(module(params=(x,), result=x)) == ["RLX0441"]


def test_inconsistent_struct_info() -> None:
    x = relax.Var("x", TensorStructInfo((prim.const(4, "int64"),), F32, 2))
    assert codes(module(params=(x,), result=x)) == ["RLX0442"]
    y = relax.Var("y", FuncStructInfo((OBJECT,), OBJECT, True, "derive"))
    assert codes(module(params=(y,), result=y)) == ["RLX0445"]


def test_annotation_must_follow_from_the_value() -> None:
    x, y = vector("x"), relax.Var("y", tensor_info((prim.const(5, "int64"),), F32))
    assert codes(module(relax.VarBinding(y, exp(x)), params=(x,), result=y)) == ["RLX0220"]


def test_missing_function_and_private_module() -> None:
    y = relax.Var("y", OBJECT)
    call = relax.Call(relax.GlobalVar("gone"), (), struct_info=OBJECT)
    assert codes(module(relax.VarBinding(y, call), result=y)) == ["RLX0101", "RLX0440"]
    found = well_formed(parse("@R.function(private=True)\ndef f(x: R.Object):\n    return x\n"))
    assert [(d.code, d.level) for d in found] == [("RLX0430", "warning")]


def test_memory_management_is_no_effect() -> None:
    parse('@R.function\ndef f():\n    s = R.memory.alloc_storage(R.shape([64]), 0, "global", "uint8")\n'
          '    t = R.memory.alloc_tensor(s, 0, R.shape([4, 4]), "float32")\n    return t\n')  # fmt: skip


def test_the_symbol_of_a_function_is_its_name() -> None:
    x = vector("x")
    other = relax.Function((x,), relax.SeqExpr((), x), x.struct_info).replace(
        attrs=parse("").attrs.with_(global_symbol="g")
    )
    assert codes(IRModule({"f": other})) == ["RLX0431"]


def test_recursion_needs_a_declared_result() -> None:
    y = relax.Var("y", OBJECT)
    call = relax.Call(relax.GlobalVar("f"), (), struct_info=OBJECT)
    assert "RLX0433" in codes(module(relax.VarBinding(y, call), result=y))


def test_a_result_mentions_dimensions_of_parameters_only() -> None:
    n, m = prim.Var("n", prim.INT64), prim.Var("m", prim.INT64)
    x, shape = relax.Var("x", tensor_info((n,), F32)), ShapeStructInfo((m,), 1)
    assert codes(module(params=(x,), result=x, ret=tensor_info((m,), F32)))[0] == "RLX0435"
    cast = relax.MatchCast(relax.Var("s", shape), relax.ShapeExpr((n,)), shape)
    made = module(cast, params=(x,), result=cast.var, ret=shape)
    assert codes(made) == ["RLX0435"]


def test_elements_are_scalars_and_shapes_are_shapes() -> None:
    x = relax.Var("x", TensorStructInfo((prim.const(4, "int64"),), dtype("float32x4"), 1))
    assert codes(module(params=(x,), result=x)) == ["RLX0443"]
    v = vector("v")
    y = relax.Var("y", TensorStructInfo(v, F32, 1))
    assert codes(module(params=(v, y), result=y)) == ["RLX0444"]


def test_conditionals_and_recursion_have_no_place_in_dataflow() -> None:
    c, x = relax.Var("c", tensor_info((), dtype("bool"))), vector("x")
    choice = relax.If(c, relax.SeqExpr((), x), relax.SeqExpr((), x), struct_info=x.struct_info)
    y = relax.Var("y", x.struct_info)
    block = relax.DataflowBlock((relax.VarBinding(y, choice),))
    function = relax.Function((c, x), relax.SeqExpr((block,), y), x.struct_info)
    assert "RLX0403" in codes(IRModule({"f": function}))


def test_closures_do_not_capture_dataflow_variables() -> None:
    x, lv = vector("x"), relax.DataflowVar("lv", vector("x").struct_info)
    inner = relax.Function((), relax.SeqExpr((), lv), lv.struct_info)
    f = relax.DataflowVar("inner", inner.struct_info)
    block = relax.DataflowBlock((relax.VarBinding(lv, exp(x)), relax.VarBinding(f, inner)))
    function = relax.Function((x,), relax.SeqExpr((block,), x), x.struct_info)
    assert "RLX0432" in codes(IRModule({"f": function}))
