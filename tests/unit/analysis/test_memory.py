"""When a function needs which memory."""

import pytest

import relaxlang
from relaxlang.analysis.memory import Interval, memory_use, timeline
from relaxlang.analysis.memory_report import alive_text, estimate_memory_usage, memory_html, memory_text, timelines
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.module import IRModule

PLAN = "legalize-ops,to-non-dataflow,call-tir-rewrite,static-plan-block-memory"


def planned(body: str, result: str = "(8,)") -> IRModule:
    """A function of `x: (8,)` and `n` with its memory planned."""
    params = 'x: R.Tensor((8,), "float32"), y: R.Tensor((n,), "float32"), c: R.Tensor((), "bool")'
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = f'@R.function\ndef main({params}) -> R.Tensor({result}, "float32"):\n{lines}'
    return relaxlang.lower(relaxlang.parse(text), PLAN)


RAW = '@R.function\ndef main(x: R.Tensor((8,), "float32")):\n    return R.exp(R.abs(x))\n'
CHAIN = "a = R.exp(x)\nb = R.negative(a)\nd = R.sqrt(b)\ne = R.abs(d)\nreturn e"


def test_tensors_that_share_memory() -> None:
    made = timeline(planned(CHAIN), "main")
    assert [(i.size, i.holds) for i in made.intervals] == [(32, ("a", "d")), (32, ("b",)), (32, ("e",))]
    assert (made.allocated, made.tensors, made.peak) == (96, 128, 64) and made.held == (32 + 1, 0)
    first, second, last = made.intervals
    assert first.last < last.last == len(made.steps) - 1 and made.alive(second.last) == (first, second)
    assert made.usage[0] == 32 and max(made.usage) == made.usage[made.peak_step] == 64


def test_branches_count_with_the_larger_one() -> None:
    made = planned("if c:\n    a = R.exp(x)\n    b = R.negative(a)\nelse:\n    b = R.abs(x)\nreturn b")
    assert memory_use(made).allocated == 64 and memory_use(made).peak == 64


def test_sizes_by_values_and_by_bounds() -> None:
    mod = planned("a = R.exp(y)\nreturn R.negative(a)", "(n,)")
    assert memory_use(mod, dims={"n": 100}).peak == 800
    bounded = planned('R.func_attr({"tir_var_upper_bound": {"n": 16}})\na = R.exp(y)\nreturn R.negative(a)', "(n,)")
    assert memory_use(bounded).peak == 128 and memory_use(bounded, dims={"n": 2}).allocated <= 128
    with pytest.raises(DiagnosticError, match="the symbolic dimension `n` needs a value"):
        memory_use(mod)
    with pytest.raises(DiagnosticError, match="RLX3112"):
        timeline(relaxlang.parse('@T.prim_func\ndef main(A: T.Buffer((4,), "float32")):\n    A[0] = T.float32(1)\n'))


def test_reports() -> None:
    made = timelines(planned(CHAIN))
    text = memory_text(made)
    assert text.startswith("main: 96 bytes in 3 allocations, 64 at one time; parameters 33, constants 0\n")
    assert "32  █" in text and "a, d" in text and "in use, most at `b`" in text
    page = memory_html(made)
    assert page.startswith("<!doctype html>") and page.count("<rect") == 3 and "a, d: 32 bytes" in page
    estimate = estimate_memory_usage(planned(CHAIN))
    assert "128 bytes of tensors" in estimate and "96 bytes in 3 allocations (25.0% less)" in estimate
    whole = relaxlang.estimate_memory_usage(relaxlang.parse(RAW))
    assert "without planning  32 bytes" in whole and "in 1 allocation (0.0% less)" in whole
    with pytest.raises(DiagnosticError, match="RLX3112"):
        relaxlang.estimate_memory_usage(relaxlang.parse(RAW.replace("8", "n")))
    assert "without planning  40 bytes" in relaxlang.estimate_memory_usage(
        relaxlang.parse(RAW.replace("8", "n")), {"n": 10}
    )
    assert alive_text(made[0]) == ("32 bytes: a, d", "32 bytes: b")
    assert memory_text([]) == "no Relax functions\n" == estimate_memory_usage(IRModule({}))
    assert isinstance(made[0].intervals[0], Interval)


@pytest.mark.parametrize(("executor", "size"), [("vm", 512), ("graph", 768), ("aot", 512)])
def test_a_workspace_with_a_limit(executor: str, size: int) -> None:
    """The memory of outputs is a caller's for `aot`, and for `graph` that of the executor."""
    text = '@R.function\ndef main(x: R.Tensor((64,), "float32")) -> R.Tensor((64,), "float32"):\n'
    body = "    a = R.exp(x)\n    b = R.cumsum(a, 0)\n    c = R.cumsum(b, 0)\n    d = R.cumsum(c, 0)\n    return d\n"
    mod = relaxlang.parse(text + body)
    with pytest.raises(DiagnosticError) as caught:
        relaxlang.build(mod, executor={"kind": executor, "workspace-byte-limit": size - 12})
    (fault,) = caught.value.diagnostics
    assert fault.code == "RLX5034" and f"is {size:,} bytes, 12 more than its limit of {size - 12:,}" in fault.message
    assert "256 bytes: " in str(caught.value)
    relaxlang.build(mod, executor={"kind": executor, "workspace-byte-limit": size})
