"""What the source of a node said where the IR says the same either way.

Releases of TVM infer less or keep more than the IR here: a result that is not declared is inferred, by each in its own
way, and so is what a binding gives; `x = 1` in a kernel is memory of one element, and `x: T.let[T.int32] = 1` is not.
What a release reads of the print should be what it reads of the source, so the print for a release looks there. Nodes
that a pass made have no source, and what they say is written out.
"""

from __future__ import annotations

import re

from relaxlang.base.source import Span
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.visit import walk

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*|[()\[\]{}\n=:]|->')
_NAME = re.compile(r"\w+")
_LET = re.compile(r" *T\.[Ll]et\b")
_BIND = re.compile(r" *T\.[Bb]ind\b")
_COLON = re.compile(r" *:")
_BOUNDS = re.compile(r"\b(?:range|serial|parallel|unroll|vectorized)\((-?\d+), *(-?\d+),")
_OPEN = re.compile(r" *R\.Tuple *:")
_CAST = re.compile(r" *[\w.]*match_(?:cast|shape)\b")


def declares_result(function: relax.Function) -> bool:
    """Whether the function's header has `-> …`; a function without a source has."""
    return function.span is None or _next(function.span, ("->", ":"))[0] == "->"


def is_for_newest(function: tir.PrimFunc) -> bool:
    """Whether a kernel was written as one that TVM 0.26 and later read and never schedule: without `s_tir=True`, blocks
    or `T.allocate`."""
    if function.span is None:
        return False
    text = function.span.source.text[: function.span.start]
    if "s_tir" in text[text.rfind("@") :] or "s_tir" in text[text.rfind("@", 0, max(text.rfind("class "), 0)) :]:
        return False
    for part in walk(function.body):
        if isinstance(part, tir.Block) or (
            isinstance(part, (tir.Allocate, tir.AllocConst)) and (part.span is None or "allocate" in part.span.text)
        ):
            return False
    return True


def stated_stop(loop: tir.For) -> int | None:
    """How far from its start a loop with a step ends in the source, in numbers; it may end between two turns."""
    found = _BOUNDS.search(loop.span.text) if loop.span is not None else None
    step, extent = loop.step, loop.extent
    if found is None or not isinstance(step, prim.IntImm) or not isinstance(extent, prim.IntImm):
        return None
    stop = int(found.group(2)) - int(found.group(1))
    return stop if -(-stop // step.value) == extent.value else None


def says_type(node: tir.AttrStmt) -> bool:
    """Whether an attribute is of a number with a type, `T.attr(T.int32(0), …)`."""
    return node.span is not None and "attr(T.int32(" in node.span.text


def annotates(var: relax.Var) -> bool:
    """Whether the binding of a variable states its struct info."""
    return var.span is not None and var.span.text.isidentifier() and _COLON.match(*_after(var.span)) is not None


def names_nothing(var: relax.Var) -> bool:
    """Whether a variable is the reader's, for a value inside another one."""
    return var.span is not None and not var.span.text.isidentifier()


def leaves_tuple_open(function: relax.Function) -> bool:
    """Whether the header says `-> R.Tuple`, which leaves open what it holds."""
    token, at = _next(function.span, ("->", ":")) if function.span is not None else ("", 0)
    return token == "->" and function.span is not None and _OPEN.match(function.span.source.text, at) is not None


def is_cast(binding: relax.MatchCast) -> bool:
    """Whether a cast was written as one: an annotation that says more than is known is a cast too."""
    span = binding.span
    if span is None:
        return True
    at = _next(span, ("=", "\n"))[1] if span.text.isidentifier() else span.start
    return _CAST.match(span.source.text, at) is not None


def is_annotated(let: tir.LetStmt) -> bool | None:
    """Whether the assignment that a let was written as, `x = 1` or `x: T.int32 = 1`, states a type; None for others."""
    span = let.span
    name = _NAME.match(span.source.text, span.start) if span is not None else None
    if span is None or name is None:
        return None
    start = Span(span.source, span.start, name.end())
    token, after = _next(start, (":", "=", "\n"))
    annotated = token == ":"
    if annotated and not _LET.match(span.source.text, after):
        token, after = _next(start, ("=", "\n"))
    return annotated if token == "=" and not _BIND.match(span.source.text, after) else None


def _after(span: Span) -> tuple[str, int]:
    return span.source.text, span.end


def _next(span: Span, stops: tuple[str, ...]) -> tuple[str, int]:
    """The first of some tokens that follows a place outside of brackets, and where it ends; a bracket that closes what
    was open before ends the search."""
    depth = 0
    for found in _TOKEN.finditer(span.source.text, span.end):
        token = found.group()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and token in stops:
            return token, found.end()
    return "", span.end
