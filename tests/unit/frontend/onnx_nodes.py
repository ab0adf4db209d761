"""The node tests that come with the ONNX package: models of one node, with inputs and the outputs they must give.

python tests/unit/frontend/onnx_nodes.py                    # all of them, compiled; prints the share that passes
python tests/unit/frontend/onnx_nodes.py --interpret conv   # those with `conv` in their names, interpreted
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import relaxlang
from relaxlang.base.diagnostics import RelaxlangError

LOOSE = {"bfloat16": 2.0**-7, "float16": 2.0**-9}
"""Relative errors that count as none: a unit or two in the last place of narrow floats."""


def cases(word: str = "") -> list[Any]:
    """The tests with `word` in their names. Making them takes some seconds: their data is computed."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [c for c in collect_testcases(None) if word in c.name]


def compiled(mod: relaxlang.IRModule) -> Callable[..., Any]:
    """`main` as machine code."""
    return relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())["main"]


def interpreted(mod: relaxlang.IRModule) -> Callable[..., Any]:
    """`main` in the interpreter."""
    return lambda *args: relaxlang.interpret(mod, "main", *args)


def check(case: Any, run: Callable[[relaxlang.IRModule], Callable[..., Any]]) -> str:
    """ "" for a test that passes with all inputs at run time, "constants" for one that passes when the inputs after
    the first (or all) are constants, or else what is wrong."""
    import onnx

    from relaxlang.frontend.onnx import from_onnx

    def array(value: Any) -> Any:
        return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value

    names = [value.name for value in case.model.graph.input]
    first = [array(v) for v in case.data_sets[0][0]]
    tensors = [k for k, v in enumerate(first) if not isinstance(v, list) and v is not None]
    faults = []
    for fixed in ([], [k for k in tensors if k], tensors):
        try:
            mod = from_onnx(case.model, constants={names[k]: first[k] for k in fixed})
            function = run(mod)
            for inputs, outputs in case.data_sets:
                got = function(*(array(v) for k, v in enumerate(inputs) if k not in fixed))
                fault = difference(got, [array(v) for v in outputs], case)
                if fault:
                    return fault
            return "constants" if fixed else ""
        except RelaxlangError as fault:
            faults.append(str(fault).splitlines()[0])
    return faults[0]


def flat(value: Any) -> list[Any]:
    """The tensors in nested tuples and lists."""
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value]


def difference(got: Any, want: Any, case: Any) -> str:
    """What is wrong with results; "" for nothing."""
    left, right = flat(got), flat(want)
    if len(left) != len(right):
        return f"{len(left)} results, not {len(right)}"
    for a, b in zip(map(np.asarray, left), map(np.asarray, right)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        loose = LOOSE.get(b.dtype.name, 0.0)
        if b.dtype.kind not in "biuf":
            a, b = a.astype("float32"), b.astype("float32")
        if not np.allclose(a, b, rtol=max(case.rtol, loose), atol=max(case.atol, 1e-6, loose / 2), equal_nan=True):
            return f"values differ by up to {np.nanmax(np.abs(a.astype('float64') - b.astype('float64'))):.3g}"
    return ""


def main() -> None:
    """Run the tests and print what fails, and the share that passes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interpret", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="every Nth test only")
    parser.add_argument("word", nargs="?", default="")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for case in cases(options.word)[:: options.every]:
        outcome = check(case, interpreted if options.interpret else compiled)
        kind = {"": "pass", "constants": "pass with constant inputs"}.get(outcome, "fail")
        counts[kind] += 1
        if kind == "fail":
            print(f"{case.name}: {outcome}", flush=True)
    total = sum(counts.values())
    for kind, count in counts.most_common():
        print(f"{kind}: {count} of {total} ({count / total:.1%})")


if __name__ == "__main__":
    main()
