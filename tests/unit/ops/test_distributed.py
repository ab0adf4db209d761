"""What is known of tensors that are spread over devices, when a program is read and after passes."""

from __future__ import annotations

import pytest

import relaxlang
from relaxlang import transform as tr
from relaxlang.ir import relax
from relaxlang.ir.struct_info import OBJECT

TEXT = """
@I.ir_module
class Module:
    I.module_global_infos({"mesh": [R.device_mesh((2,), I.Range(0, 2))]})

    @T.prim_func
    def one_more(A: T.Buffer((64, 128), "float32"), B: T.Buffer((64, 128), "float32")):
        for i, j in T.grid(64, 128):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

    @R.function
    def main(x: R.DTensor((128, 128), "float32", "mesh[0]", "S[0]"), w: R.DTensor((128,), "float32", "mesh[0]", "R")):
        y = R.dist.call_tir_local_view(
            Module.one_more, (x,), out_sinfo=R.DTensor((128, 128), "float32", "mesh[0]", "S[0]")
        )
        z = LAST
        return z
"""
SPREAD = 'R.DTensor((128, 128), "float32", "mesh[0]", "S[0]")'


@pytest.mark.parametrize(
    ("last", "info"),
    [
        ("R.add(y, x)", SPREAD),
        ("R.exp(y)", SPREAD),
        ("R.greater(x, y)", SPREAD.replace("float32", "bool")),
        ('R.dist.redistribute(y, device_mesh="mesh[0]", placement="R")', SPREAD.replace("S[0]", "R")),
        ('R.dist.annotate_sharding(y, device_mesh="mesh[0]", placement="S[0]")', SPREAD),
        ("R.add(y, w)", str(OBJECT)),
        ("R.matmul(y, y)", str(OBJECT)),
    ],
)
def test_results(last: str, info: str) -> None:
    mod = relaxlang.parse(TEXT.replace("LAST", last))
    relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)
    for one in (mod, tr.Normalize()(mod)):
        main = one["main"]
        assert isinstance(main, relax.Function)
        assert str(main.body.blocks[-1].bindings[-1].var.struct_info) == info
