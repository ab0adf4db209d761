"""Operators: definitions in the language itself, from signature to kernel.

In: `@R.op` functions of `stdlib/*.rlx` (or of a user's module). Out: calls, the struct info of their results, kernels.
Read `stdlib/README.md` for the language of definitions, then `definition` (what a definition is), `library` (where they
come from), `signature` (arguments to a `Call`), `unify` (the signature as the shape rule), `functions` and `body` (how
bodies run), `namespaces`, `reductions` and `nested` (what they may call), `kernel` (stages to a PrimFunc), `elaborate`
(inference and lowering of a call), `rules` (gradients and layouts of a call; `layouts` reads their text), `distributed`
(tensors on several devices), `table` (the face of it all), `python_api` (the same for Python).
"""

from __future__ import annotations

from relaxlang.ops.table import Operators, default_operators

__all__ = ["Operators", "default_operators"]
