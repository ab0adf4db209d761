"""What the tests of the interpreter share: kernels from text, and runs by both paths."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import numpy as np

from relaxlang.interp import Interpreter
from relaxlang.ir.module import IRModule
from relaxlang.ops import default_operators
from relaxlang.syntax.parse import parse

OPERATORS = default_operators()


def module(text: str) -> IRModule:
    """A module from the text of its functions."""
    body = indent(dedent(text).strip(), "    ")
    return parse(f"@I.ir_module\nclass Module:\n{body}\n", "test.rlx", operators=OPERATORS)


def kernel(params: str, body: str) -> IRModule:
    """A module with the PrimFunc `f`."""
    return module(f"@T.prim_func\ndef f({params}):\n" + indent(dedent(body).strip(), "    "))


def call(mod: IRModule, *args: Any, name: str = "f") -> Any:
    """Run a PrimFunc with and without computing instances at once; the arguments must come out the same. They hold the
    result afterwards."""
    plain = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    wanted = Interpreter(mod, vectorize=False).run(name, *plain)
    result = Interpreter(mod).run(name, *args)
    assert result == wanted
    for mine, theirs in zip(args, plain):
        if isinstance(mine, np.ndarray):
            assert mine.tobytes() == theirs.tobytes()
    return result
