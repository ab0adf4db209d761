"""How each kind of `.rlx` test file is checked. A check returns when all is well and raises `Mismatch` when it is not.

| directory | what must hold for each file |
|---|---|
| `rlx/errors` | `relaxlang.parse` reports just the diagnostics that the comments `# error[RLX0203]: words` announce |
| `rlx/parse` | it parses; what it prints parses to the same module again, and prints the same again |
| `rlx/print` | the same, and it prints as it stands in the file (comments at the file's head apart) |
| `rlx/run` | the calls in its head (`expectations.run_plan`) give the same, expected results in every way to run it |

Test files are trusted: their `# args:` and `# expect:` lines are evaluated as Python.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, RelaxlangError
from relaxlang.base.files import write_atomically
from relaxlang.base.render import render
from relaxlang.testing.expectations import Run, RunPlan, differences, expected_diagnostics, header, run_plan

if TYPE_CHECKING:
    import numpy as np


class Mismatch(Exception):
    """A test file does not hold; the text says why."""


Check = Callable[[Path, bool], None]
"""A check of the file `path`; the flag says whether to bless: to rewrite the expectation instead of failing."""


def check_errors(path: Path, bless: bool) -> None:
    """The diagnostics of the file are those that its comments announce (`bless` changes nothing here)."""
    import relaxlang

    text = _read(path)
    expected = expected_diagnostics(text)
    if not expected:
        raise Mismatch("the file announces no diagnostic: write `# error[CODE]: words` on the offending line")
    reported: list[Diagnostic] = []
    try:
        relaxlang.parse(text, filename=path.name, warnings=reported.append)
    except DiagnosticError as error:
        reported = list(error.diagnostics)
    if wrong := differences(expected, reported):
        raise Mismatch("\n".join([*wrong, "", render(reported) or "(nothing was reported)"]))


def check_parse(path: Path, bless: bool) -> None:
    """Printing and parsing the file's module again changes nothing (`bless` changes nothing here)."""
    _round_trip(path)


def check_print(path: Path, bless: bool) -> None:
    """The file is what its own module prints."""
    text, script = _read(path), _round_trip(path)
    comments = header(text).removesuffix(header(script))
    if text != comments + script:
        if not bless:
            raise Mismatch("it prints differently (`--bless` accepts this):\n" + diff(text, comments + script))
        write_atomically(path, comments + script)


def _round_trip(path: Path) -> str:
    import relaxlang

    module = relaxlang.parse(_read(path), filename=path.name)
    script: str = module.script()
    again = relaxlang.parse(script, filename=f"<printed {path.name}>")
    relaxlang.assert_structural_equal(module, again)
    if (second := again.script()) != script:
        raise Mismatch("the second print differs from the first:\n" + diff(script, second))
    return script


def run_interpreter(path: Path, bless: bool) -> None:
    """The reference interpreter gives the expected results."""
    from relaxlang import interp

    plan, module = _load_run(path)
    _check_runs(plan, lambda *args: interp.run(module, plan.entry, *args), reference=None)


def run_minimum(path: Path, bless: bool) -> None:
    """Built without any optimisation it gives the expected results, and the interpreter's."""
    _run_built(path, "minimum")


def run_default(path: Path, bless: bool) -> None:
    """Built with the default pipeline it gives the expected results, and the interpreter's."""
    _run_built(path, "default")


KINDS: dict[str, Mapping[str, Check]] = {
    "errors": {"errors": check_errors},
    "parse": {"parse": check_parse},
    "print": {"print": check_print},
    "run": {"interpreter": run_interpreter, "minimum": run_minimum, "default": run_default},
}
"""The checks of each kind, by the name that the test item gets."""


def checks_of(path: Path) -> Mapping[str, Check] | None:
    """The checks of a file `…/rlx/<kind>/…/name.rlx`; None for any other file."""
    parts = path.parts
    if path.suffix != ".rlx" or "rlx" not in parts[:-2]:
        return None
    return KINDS.get(parts[len(parts) - 1 - parts[::-1].index("rlx") + 1])


def diff(old: str, new: str) -> str:
    """A unified diff of two texts, `-` the expected and `+` the actual lines."""
    return "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), "expected", "actual", lineterm=""))


def _read(path: Path) -> str:
    return path.read_bytes().decode()  # as it is: line breaks may be what is tested


def _load_run(path: Path) -> tuple[RunPlan, Any]:
    import relaxlang

    text = _read(path)
    try:
        plan = run_plan(text)
    except ValueError as error:
        raise Mismatch(str(error)) from error
    return plan, relaxlang.parse(text, filename=path.name)


def _run_built(path: Path, pipeline: str) -> None:
    import relaxlang
    from relaxlang import interp

    plan, module = _load_run(path)
    machine = relaxlang.VirtualMachine(relaxlang.build(module, pipeline=pipeline), relaxlang.cpu())
    _check_runs(plan, machine[plan.entry], reference=lambda *args: interp.run(module, plan.entry, *args))


def _check_runs(plan: RunPlan, call: Callable[..., Any], reference: Callable[..., Any] | None) -> None:
    for number, run in enumerate(plan.runs, 1):
        try:
            _check_run(plan, run, call, reference)
        except Mismatch as mismatch:
            raise Mismatch(f"call {number} (args: {run.args}): {mismatch}") from None


def _check_run(plan: RunPlan, run: Run, call: Callable[..., Any], reference: Callable[..., Any] | None) -> None:
    if run.raises is not None:
        _check_raises(run, call, *run.raises)
        return
    result = call(*arguments(run))
    if run.expect is not None:
        import numpy as np

        names = {f"x{i}": x for i, x in enumerate(arguments(run))}
        with np.errstate(all="ignore"):
            expected = eval(run.expect, {"np": np, **names})
        _compare("expected", result, expected, plan, same_dtype=False)
    if reference is not None:
        _compare("the interpreter's", result, reference(*arguments(run)), plan, same_dtype=True)


def _check_raises(run: Run, call: Callable[..., Any], code: str, words: str) -> None:
    try:
        result = call(*arguments(run))
    except RelaxlangError as error:
        codes = {d.code for d in error.diagnostics} if isinstance(error, DiagnosticError) else set()
        if words not in str(error) or (code and code not in codes):
            raise Mismatch(f"another error than announced:\n{error}") from error
    else:
        raise Mismatch(f"an error was announced, but it returned {result!r}")


def arguments(run: Run) -> tuple[Any, ...]:
    """Fresh arguments of a call.

    The expression may use `np`, `rand(*shape, dtype="float32")` (uniform from -2 to 2, the same numbers every time) and
    `shape(3, 4)` for an argument of type `R.Shape`.
    """
    import numpy as np

    import relaxlang

    generator = np.random.RandomState(0)

    def rand(*size: int, dtype: str = "float32") -> np.ndarray[Any, np.dtype[Any]]:
        return np.asarray(generator.uniform(-2, 2, size)).astype(dtype)

    made = eval(f"({run.args},)" if run.args else "()", {"np": np, "rand": rand, "shape": _shape(relaxlang)})
    return tuple(made)


def _shape(package: Any) -> Callable[..., Any]:
    return lambda *dims: package.ShapeTuple(dims)


def _compare(what: str, result: Any, expected: Any, plan: RunPlan, same_dtype: bool) -> None:
    """Raise `Mismatch` unless both have the same tuples, shapes, kinds of elements (or dtypes) and values."""
    import numpy as np

    if isinstance(expected, tuple | list) or isinstance(result, tuple | list):
        if not isinstance(result, tuple | list) or not isinstance(expected, tuple | list):
            raise Mismatch(f"the result is {result!r}, {what} {expected!r}")
        if len(result) != len(expected):
            raise Mismatch(f"the result has {len(result)} parts, {what} {len(expected)}")
        for one, other in zip(result, expected, strict=True):
            _compare(what, one, other, plan, same_dtype)
        return
    got, want = np.asarray(result), np.asarray(expected)
    if got.shape != want.shape:
        raise Mismatch(f"the result has shape {got.shape}, {what} {want.shape}")
    if got.dtype != want.dtype if same_dtype else _family(got.dtype) != _family(want.dtype):
        raise Mismatch(f"the result is {got.dtype}, {what} {want.dtype}")
    if _family(got.dtype) == "float":
        near = np.allclose(got.astype("f8"), want.astype("f8"), plan.rtol, plan.atol, equal_nan=True)
    else:
        near = np.array_equal(got, want)
    if not near:
        raise Mismatch(f"the result is\n{got}\n{what}\n{want}")


def _family(dtype: np.dtype[Any]) -> str:
    return {"b": "bool", "i": "integer", "u": "integer"}.get(dtype.kind, "float")  # ml_dtypes' kind is V
