"""What the source of a node said where the IR says the same either way.

Releases of TVM infer less or keep more than the IR here: a result that is not declared is inferred, by each in its own
way; `x = 1` in a kernel is memory of one element, and `x: T.let[T.int32] = 1` is not. What a release reads of the print
should be what it reads of the source, so the print for a release looks there. Nodes that a pass made have no source,
and what they say is written out.
"""

from __future__ import annotations

import re

from relaxlang.ir import relax, tir

_HEADER = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*|[()\[\]{}]|->|:')
_ASSIGNMENT = re.compile(r"\w+(?: *, *\w+)* *(?:: *(T\.let|T\.Let)?[^=\n]*)?= *(T\.[Bb]ind\b)?")


def declares_result(function: relax.Function) -> bool:
    """Whether the function's header has `-> …`; a function without a source has."""
    span = function.span
    if span is None:
        return True
    depth = 0
    for found in _HEADER.finditer(span.source.text, span.end):
        token = found.group()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif depth == 0 and token in ("->", ":"):
            return token == "->"
    return True


def is_assignment(let: tir.LetStmt) -> bool:
    """Whether the let was written as an assignment, `x = 1` or `x: T.int32 = 1`."""
    span = let.span
    found = _ASSIGNMENT.match(span.source.text, span.start) if span is not None else None
    return found is not None and found.group(1) is None and found.group(2) is None
