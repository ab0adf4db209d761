"""Models in the ONNX format as modules.

    from relaxlang.frontend.onnx import from_onnx

    mod = from_onnx("model.onnx")

In: a file, its bytes or a `ModelProto`, with operators of version 7 to the newest that the package `onnx` knows. Out: a
module whose `main` takes the graph's inputs, in their order, and gives its outputs. Dimensions that the model names are
symbolic dimensions of these names; what models compute from shapes is computed while importing, as expressions of them,
and what is left of it becomes dimensions that are read at run time.

Reading order: `values` (what stands for a value), `model` (files and versions), `types`, `node`, `graph` (the walk, and
what converters may ask), `folding` (shape arithmetic), `functions` (operators that are functions), `operators` (the
table of converters, which are in `elementwise`, `reduce`, `shape`, `linalg`, `window`, `norm`, `index`, `image` with
`resampling`, `quantize`, `recurrent`, `control` with `loops`, and `contrib`), `importer`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import fail

if TYPE_CHECKING:
    import numpy as np

    from relaxlang.base.diagnostics import WarningSink
    from relaxlang.ir.module import IRModule
    from relaxlang.syntax.origin import Elaborate, Origin

__all__ = ["from_onnx", "parameters"]


def from_onnx(
    model: Any,
    shapes: Mapping[str, tuple[int | str, ...]] | None = None,
    *,
    constants: Mapping[str, Any] | None = None,
    keep_params_in_input: bool = False,
) -> IRModule:
    """The module of an ONNX model: a path, bytes, or a `ModelProto`.

    `shapes` gives inputs other dimensions than the model states: numbers, or names of symbolic ones. `constants` gives
    inputs fixed values (arrays); they are no parameters then. Weights are constants of the module; with
    `keep_params_in_input` they are parameters of `main` after the inputs, called as in the model, and `parameters`
    gives their arrays.

    Raises DiagnosticError: RLX8001 for what is no model, RLX8002 with every operator that is not known, RLX8003 for a
    model that is not well-formed, RLX8004 for missing weights, RLX8005 for shapes that do not fit, RLX8006 for a use of
    an operator that is not supported.
    """
    _require(shapes, constants)
    from relaxlang.syntax.inputs import Inputs

    def read(warnings: WarningSink | None, inputs: Inputs) -> IRModule:
        from relaxlang.base.recursion import deep_recursion
        from relaxlang.frontend.onnx.importer import import_model

        with deep_recursion():
            return import_model(model, shapes, constants, keep_params_in_input, inputs)[0]

    origin = _origin(model, shapes or {}, constants or {}, keep_params_in_input, read)
    return read(None, Inputs()) if origin is None else origin.module()


def _origin(model: Any, shapes: Any, constants: Any, keep_params_in_input: bool, read: Elaborate) -> Origin | None:
    """The origin of the module of a model in a file; None when nothing may be remembered of it."""
    from relaxlang.syntax.origin import is_plain, origin_of_file

    package = find_spec("onnx")
    if package is None or package.origin is None or constants or not isinstance(model, (str, os.PathLike)):
        return None
    if not all(map(is_plain, shapes.items())):
        return None
    try:
        place = os.path.realpath(model)
        folder = os.path.realpath(os.path.dirname(os.path.abspath(model)))  # of weights in further files
        version = os.stat(package.origin).st_mtime_ns
    except (OSError, ValueError):  # as for a name that no file can have
        return None
    said = repr((sorted(shapes.items()), folder, bool(keep_params_in_input), package.origin, version))
    return origin_of_file(os.fspath(model), ("onnx", place, said), read)


def parameters(
    model: Any,
    shapes: Mapping[str, tuple[int | str, ...]] | None = None,
    *,
    constants: Mapping[str, Any] | None = None,
) -> dict[str, np.ndarray[Any, Any]]:
    """The weights of a model by the names of the parameters that `keep_params_in_input` makes of them, in the order of
    these: `build(mod, params=…)` takes them. The arguments and errors are those of `from_onnx`.

    Shapes and other numbers that the module states are no parameters.
    """
    _require(shapes, constants)
    from relaxlang.base.recursion import deep_recursion
    from relaxlang.frontend.onnx.importer import import_model
    from relaxlang.syntax.inputs import Inputs

    with deep_recursion():
        return import_model(model, shapes, constants, True, Inputs())[1]


def _require(shapes: object, constants: object) -> None:
    """See that models can be imported, and that what is given for their inputs is given by name."""
    if find_spec("onnx") is None:
        fail("RLX8007", "importing ONNX needs the package `onnx`", help="`pip install 'relaxlang[onnx]'`")
    for what, given in (("shapes", shapes), ("constants", constants)):
        if given is not None and not (isinstance(given, Mapping) and all(isinstance(name, str) for name in given)):
            fail("RLX8005", f"`{what}` maps names of inputs, and is given {given!r}")
