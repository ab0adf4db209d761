"""What the tests of passes share: a module from text, and a pass that must change no value."""

from collections.abc import Callable
from textwrap import dedent, indent
from typing import Any

import numpy as np

import relaxlang
from relaxlang.analysis.well_formed import well_formed
from relaxlang.interp import Interpreter
from relaxlang.ir.module import IRModule


def module(text: str) -> IRModule:
    """A module from the text of its functions."""
    return relaxlang.parse("@I.ir_module\nclass Module:\n" + indent(dedent(text).strip(), "    ") + "\n", "test.rlx")


def flat(value: Any) -> list[Any]:
    """The leaves of nested tuples, as arrays."""
    if isinstance(value, tuple) and not hasattr(value, "shape") and not isinstance(value, relaxlang.ShapeTuple):
        return [leaf for field in value for leaf in flat(field)]
    return [np.asarray(value)]


def assert_same(got: Any, want: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Compare nested tuples of tensors."""
    left, right = flat(got), flat(want)
    assert len(left) == len(right)
    for a, b in zip(left, right):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def in_order(mod: IRModule) -> None:
    """The module is well formed, and its text is the module."""
    assert [d for d in well_formed(mod) if d.level == "error"] == [], mod.script()
    relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)


def check(
    mod: IRModule | str,
    step: Callable[[IRModule], IRModule],
    *inputs: tuple[Any, ...],
    name: str = "main",
    again: bool = True,
    **near: float,
) -> IRModule:
    """Apply a pass; the interpreter must give the same values before and after, and leave the arguments as they were.

    `again`: the pass must find nothing more to do in what it made.
    """
    before = module(mod) if isinstance(mod, str) else mod
    after = step(before)
    in_order(after)
    for args in inputs:
        kept = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
        want = Interpreter(before, verify=True).run(name, *args)
        got = Interpreter(after, verify=True).run(name, *args)
        assert_same(got, want, **near)
        for a, k in zip(args, kept):
            if isinstance(a, np.ndarray):
                np.testing.assert_array_equal(a, k)
    if again:
        relaxlang.assert_structural_equal(step(after), after)
    return after


def array(*shape: int, seed: int = 0, dtype: str = "float32") -> Any:
    """Random values."""
    rng = np.random.default_rng(seed)
    if dtype.startswith("int"):
        return rng.integers(-8, 8, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)
