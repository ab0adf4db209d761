"""Cases made of cases: the same call with other shapes, or with NaN and infinity among its floats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import DiagnosticError
from tests.unit.stdlib.harness import OPERATORS, Dims, Inputs
from tests.unit.stdlib.table import CASES, REFERENCES, Array, Case, case

LARGE = 1000
"""Elements of a large tensor."""


def arrays(value: Any) -> Iterator[Array]:
    """The tensors among arguments, those in tuples too."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from arrays(one)


def changed(value: Any, shape: Callable[[Array], tuple[int, ...]]) -> Any:
    """Arguments with tensors of other shapes."""
    if isinstance(value, np.ndarray):
        return np.resize(value, shape(value))
    return type(value)(changed(v, shape) for v in value) if isinstance(value, (tuple, list)) else value


def with_dimension(size: int, times: int = 0) -> Callable[[Case], Callable[[Array], tuple[int, ...]]]:
    """The first dimension of the first tensor, wherever a dimension has its length, becomes `size`; with `times`, so
    many times what it is."""

    def shape_of(case: Case) -> Callable[[Array], tuple[int, ...]]:
        first = next((a.shape[0] for a in arrays(case.args) if a.ndim), None)
        return lambda a: tuple((first * times if times else size) if n == first else n for n in a.shape)

    return shape_of


def with_special(case: Case) -> tuple[Any, ...]:
    """The arguments with a NaN and an infinity in the first tensor of floats."""
    place = next((k for k, a in enumerate(case.args) if _is_plain(a)), None)
    if place is None:
        return case.args
    array = case.args[place].copy()
    array.flat[array.size // 3], array.flat[2 * array.size // 3] = np.nan, np.inf
    return (*case.args[:place], array, *case.args[place + 1 :])


def _is_plain(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > 2


CONSTANT = frozenset(
    "eye_like size image.affine_grid image.grid_sample nn.cross_entropy_with_logits multinomial_from_uniform "
    "gather_elements".split()
)
"""Operators whose references fit their cases alone, or whose indices fit one shape."""
MOST = 50_000


def kinds_of(model: Case) -> set[str]:
    """The kinds of variants that a case already is."""
    given = list(arrays(model.args))
    found = {"empty": any(a.size == 0 for a in given), "one": any(1 in a.shape for a in given)}
    found["scalar"] = any(a.ndim == 0 for a in given[:1])
    found["large"] = any(a.size >= LARGE for a in given)
    found["special"] = any(a.dtype.kind == "f" and not np.isfinite(a).all() for a in given)
    return {kind for kind, is_so in found.items() if is_so}


def derive() -> None:
    """Enter for each operator the kinds of variants that it lacks and that it and its reference take, made of its first
    cases."""
    first: dict[str, list[int]] = defaultdict(list)
    for k, one in enumerate(CASES):
        first[one.name].append(k)
    for name, places in first.items():
        if name in CONSTANT:
            continue
        missing = {"scalar", "empty", "one", "large", "special"}.difference(*(kinds_of(CASES[k]) for k in places))
        if name == "median":  # numpy's and torch's differ
            missing.discard("special")
        for k in places[:8]:
            for kind in sorted(missing):
                if enter(CASES[k], REFERENCES[k], kind):
                    missing.discard(kind)


def lowered(name: str, args: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    """Raise a diagnostic unless the operator takes the arguments."""
    call = Inputs(Dims("static")).call(name, args, attrs)
    OPERATORS.lower(call.replace(struct_info=OPERATORS.infer(call)))


def enter(model: Case, reference: Callable[..., Any], kind: str) -> bool:
    """Enter one variant; whether there is one."""
    if kind == "special":
        args = with_special(model)
        if args is model.args:
            return False
    else:
        most = max((a.size for a in arrays(model.args)), default=0)
        if not most:
            return False
        shapes = {"scalar": lambda _: lambda a: (), "empty": with_dimension(0), "one": with_dimension(1)}
        shape: Any = shapes.get(kind) or with_dimension(0, -(-LARGE // most))
        args = tuple(changed(model.args, shape(model)))
        if max(a.size for a in arrays(args)) > MOST:
            return False
    try:
        lowered(model.name, args, model.attrs)
        case(model.name, *args, ref=reference, rtol=max(model.rtol, 1e-5), **model.attrs)
    except (DiagnosticError, ValueError, IndexError, ZeroDivisionError, TypeError):  # one of them refuses the shape
        return False
    return True
