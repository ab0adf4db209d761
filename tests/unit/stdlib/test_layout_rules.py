"""Layout rules: a call on tensors in other layouts, taken as the rule says, has the result of the plain call, in the
layout that the rule says."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from harness import OPERATORS, Dims, Inputs, run
from layouts import pack, parts, unpack

from relaxlang.ir import relax
from relaxlang.ops.rules import Layouts, tensors_in
from tests.unit.stdlib.cases import CASES
from tests.unit.stdlib.table import Case

Array = np.ndarray[Any, Any]
LETTERS = "ABCDEFGH"
EACH = 3  # cases of an operator
WINDOWS = ("nn.conv", "image.grid")  # take what the user wants (`test_convert_layout.py`), or no rule
RNG = np.random.default_rng(3)


def suitable(case: Case) -> bool:
    arrays = arrays_of(case.args)
    return (
        OPERATORS.get(case.name).layout_rule is not None
        and not case.name.startswith(WINDOWS)
        and bool(arrays)
        and 0 < arrays[0].ndim
        and all(0 < a.size < 400 for a in arrays)
    )


def arrays_of(args: Sequence[Any]) -> list[Array]:
    flat = [x for a in args for x in (a if isinstance(a, (tuple, list)) else (a,))]
    return [x for x in flat if isinstance(x, np.ndarray)]


def some_layout(shape: tuple[int, ...], dice: random.Random) -> str:
    """The dimensions in another order; sometimes one in blocks of 2."""
    letters = list(LETTERS[: len(shape)])
    dice.shuffle(letters)
    even = [c for c, d in zip(LETTERS, shape) if d % 2 == 0]
    block = [f"2{dice.choice(even).lower()}"] if even and dice.random() < 0.4 else []
    return "".join(letters + block)


def fits(x: Array, layout: str) -> bool:
    """Whether the blocks of a layout fill a tensor."""
    return all(x.shape[LETTERS.index(c)] % size == 0 for c, size in parts(layout) if size)


def in_layouts(args: Sequence[Any], arrays: list[Array], found: Layouts) -> list[Any]:
    """The arguments of a call with their tensors in the layouts that a rule asks for."""
    moved = iter([pack(a, LETTERS[: a.ndim], layout) for a, layout in zip(arrays, found.tensors)])

    def one(value: Any) -> Any:
        if isinstance(value, (tuple, list)) and value and all(isinstance(v, np.ndarray) for v in value):
            return tuple(next(moved) for _ in value)
        return next(moved) if isinstance(value, np.ndarray) else value

    return [one(a) for a in args]


def check(case: Case, dice: random.Random) -> bool:
    """Whether the rule takes some layout of the first tensor; then the results must be the same."""
    inputs = Inputs(Dims("static"))
    call = inputs.call(case.name, case.args, case.attrs)
    call = call.replace(struct_info=OPERATORS.infer(call))
    arrays = arrays_of(case.args)
    if len(tensors_in(call)) != len(arrays):
        return False
    kept = [some_layout(arrays[0].shape, dice), *[LETTERS[: a.ndim] for a in arrays[1:]]]
    found = OPERATORS.layouts(call, kept)
    if found is None or not all(fits(a, layout) for a, layout in zip(arrays, found.tensors)):
        return False
    definition = OPERATORS.get(case.name)
    given = dict(zip((p.name for p in definition.params), in_layouts(case.args, arrays, found)))
    given |= case.attrs | found.attrs
    values = [given.pop(p.name) for p in itertools.takewhile(lambda p: p.name in given, definition.arg_params)]
    want, got = run(case.name, *case.args, **case.attrs), run(case.name, *values, **given)
    wanted, made = (x if isinstance(x, tuple) else (x,) for x in (want, got))
    assert len(wanted) == len(made) == len(found.results)
    for plain, moved, layout in zip(wanted, made, found.results):
        letters = LETTERS[: plain.ndim]
        assert moved.shape == pack(plain, letters, layout).shape
        back = unpack(moved, layout, letters).astype("float64")[tuple(slice(d) for d in plain.shape)]
        np.testing.assert_allclose(back, plain.astype("float64"), rtol=1e-3, atol=1e-5)
    return True


NAMES = sorted({c.name for c in CASES if suitable(c)})


@pytest.mark.parametrize("name", NAMES)
def test_results_in_other_layouts(name: str) -> None:
    dice = random.Random(name)
    cases = [c for c in CASES if c.name == name and suitable(c)][:EACH]
    taken = sum(check(c, dice) for c in cases for _ in range(2))
    assert taken or all(arrays_of(c.args)[0].ndim == 1 for c in cases)


def test_the_tables_reach_most_rules() -> None:
    rules = [n for n in OPERATORS.names() if OPERATORS.get(n).layout_rule is not None]
    assert len(NAMES) > 0.8 * len(rules)


def test_a_call_has_its_tensors_in_order() -> None:
    inputs = Inputs(Dims("static"))
    call = inputs.call("concat", [(np.ones((2, 3)), np.ones((2, 1)))], {"axis": 1})
    assert isinstance(call, relax.Call) and [str(t) for t in tensors_in(call)] == ["a0", "a1"]
