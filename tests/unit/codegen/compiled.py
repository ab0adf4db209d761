"""What the tests of code generation share: kernels from text, run compiled and interpreted."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import numpy as np

import relaxlang
from relaxlang.codegen import build_kernels, load_kernels
from relaxlang.interp import Interpreter
from relaxlang.ir.module import IRModule
from relaxlang.runtime.kernel import Kernel


def module(text: str) -> IRModule:
    """A module from the text of its functions."""
    body = indent(dedent(text).strip(), "    ")
    return relaxlang.parse(f"@I.ir_module\nclass Module:\n{body}\n", "test.rlx")


def prim_func(params: str, body: str) -> IRModule:
    """A module with the PrimFunc `f`."""
    return module(f"@T.prim_func\ndef f({params}):\n" + indent(dedent(body).strip(), "    "))


def compiled(mod: IRModule, target: Any = None, name: str = "f") -> Kernel:
    """A PrimFunc of a module as a kernel."""
    return load_kernels(build_kernels(dict(mod.prim_funcs()), target))[name]


def same(mod: IRModule, *args: Any, rtol: float = 0.0, target: Any = None) -> None:
    """Run `f` on the arguments, and require what the interpreter makes of them. They hold the result afterwards."""
    wanted = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    Interpreter(mod).run("f", *wanted)
    compiled(mod, target)(*args)
    for mine, theirs in zip(args, wanted):
        if isinstance(mine, np.ndarray):
            wide = (mine.astype(np.float64), theirs.astype(np.float64))
            np.testing.assert_allclose(*wide, rtol=rtol, atol=0, equal_nan=True)
