"""What a machine tells of a run."""

import json

import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.runtime.vm import VirtualMachine

MODULE = relaxlang.parse("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 4), "float32")):
        a = Module.twice(x)
        b = Module.twice(a)
        c = R.call_dps_packed("test.profile.fill", (b,), out_sinfo=R.Tensor((n, 4), "float32"))
        return c

    @R.function(private=True)
    def twice(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
        n = T.int64()
        return R.call_tir(Module.double, (x,), out_sinfo=R.Tensor((n, 4), "float32"))

    @T.prim_func(private=True)
    def double(A: T.Buffer((n, 4), "float32"), B: T.Buffer((n, 4), "float32")):
        for i, j in T.grid(n, 4):
            B[i, j] = A[i, j] * T.float32(2)
""")


@relaxlang.register_func("test.profile.fill", override=True)
def _fill(x: object, out: np.ndarray) -> None:
    out[...] = np.asarray(x) + 1


def test_rows_of_a_profile() -> None:
    machine = VirtualMachine(relaxlang.build(MODULE), relaxlang.cpu())
    x = np.ones((3, 4), np.float32)
    report = machine.profile("main", x)
    np.testing.assert_array_equal(report.result, 4 * x + 1)
    rows = {row.name: row for row in report.rows}
    double, fill = rows["double"], rows["test.profile.fill"]
    assert (double.kind, double.count, double.shapes) == ("kernel", 2, ("float32(3, 4)", "float32(3, 4)"))
    assert (fill.kind, fill.count) == ("packed", 1) and rows["vm.builtin.alloc_tensor"].kind == "builtin"
    assert all(row.seconds > 0 for row in report.rows) and report.seconds >= sum(r.seconds for r in report.rows)
    assert [r.seconds for r in report.rows] == sorted((r.seconds for r in report.rows), reverse=True)
    assert "double" in str(report) and len(json.loads(report.to_json())["rows"]) == len(report.rows)
    np.testing.assert_array_equal(machine["main"](x), 4 * x + 1)
    with pytest.raises(DiagnosticError, match="RLX6008"):
        machine.profile("mian", x)


def test_a_machine_keeps_what_it_is_told() -> None:
    built = relaxlang.build(MODULE)
    first, second = built["create_executor"](relaxlang.cpu()), built["create_executor"](relaxlang.cpu())
    x = np.ones((2, 4), np.float32)
    first.set_input("main", x)
    first.invoke_stateful("main")
    np.testing.assert_array_equal(first.get_outputs("main"), 4 * x + 1)
    with pytest.raises(DiagnosticError, match="no outputs yet"):
        second.get_outputs("main")
    first.save_function("main", "saved", x)
    np.testing.assert_array_equal(first["saved"](), 4 * x + 1)
    assert "saved" not in second and len(first.time_evaluator("main", number=2, repeat=3)(x).results) == 3
    legacy = VirtualMachine(built.executable, relaxlang.cpu(), mod=built)
    np.testing.assert_array_equal(legacy["main"](x), first["main"](x))
