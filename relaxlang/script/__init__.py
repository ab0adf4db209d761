"""Programs written as Python: decorators that take the source of a class or function through the parser.

    from relaxlang.script import ir as I, relax as R, tir as T

    @I.ir_module
    class Module:
        @T.prim_func
        def scale(A: T.Buffer((n, 4), "float32"), B: T.Buffer((n, 4), "float32")): ...

`Module` is an `IRModule` then. A file that was written for `tvm.script` works when its imports are changed. The body of
a decorated function is never run. Names of the surrounding Python that it mentions may be plain data (numbers, strings,
tuples, lists, dicts), arrays, dtypes, and functions and modules of relaxlang; anything else is an error where it is
used. Errors and the spans of nodes point into the Python file.

In `.rlx` files nothing of this is needed, and nothing of Python is run; there it is `relaxlang.parse`.

Reading order: `namespace` (what `R.Tensor(…)` is while Python runs), `captured` (values of the surrounding Python),
`source` (the text of what is decorated), `decorators`; `ir`, `relax` and `tir` are the three namespaces.
"""

from __future__ import annotations

from relaxlang.script import ir, relax, tir
from relaxlang.script.decorators import from_source, ir_module

tirx = tir
"""The name of `tir` since TVM 0.23."""

__all__ = ["from_source", "ir", "ir_module", "relax", "tir", "tirx"]
