"""The reference interpreter: what a program means, for Relax and TensorIR, on numpy.

In: a module at any stage, from the parsed text to the last pass before code generation, and values. Out: values.
It is slow and obvious, exact in every dtype, and checks every index; tests and `relaxc --check-passes` hold everything
else against it.

Read, for TensorIR: `numeric` and `intrinsics` (arithmetic), `memory` (buffers), `expr`, `calls`, `stmt`, `loops` (what
each node does), `empty` (reductions over nothing), `parallel` (which loops are computed at once), `sums` (long sums),
`shapes` and `kernel` (calls of PrimFuncs). For Relax: `values`, `evaluate`, `structural`, `interpreter`.
"""

from __future__ import annotations

from relaxlang.interp.interpreter import Interpreter, run

__all__ = ["Interpreter", "run"]
