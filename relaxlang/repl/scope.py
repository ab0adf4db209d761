"""The names of the language that may stand at the cursor, and the signature of the call that it stands in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from relaxlang.base.source import Span
from relaxlang.ir import relax
from relaxlang.ir.intrinsics import INTRINSICS
from relaxlang.repl.command import Choice
from relaxlang.repl.primitives import PRIMITIVES, summary, usage
from relaxlang.repl.values import MAKERS, SUMMARIES, headline
from relaxlang.syntax.elaborate.namespaces import root_scope

if TYPE_CHECKING:
    from relaxlang.ops import Operators
    from relaxlang.ops.definition import OpDef
    from relaxlang.repl.session import Session

_NAME = re.compile(r"[A-Za-z_][\w.]*\Z")
_WORDS = ("@R.function", "@T.prim_func", "@I.ir_module")
_CONTEXT = 2000
"""Characters before the cursor that are looked at to find the call it stands in."""


def language_choices(session: Session, text: str) -> Iterator[Choice]:
    """Names that the last word begins: after `R.` operators, after `T.` intrinsics, else what is in scope."""
    at = text[text.rfind("\n") + 1 :].strip()
    if at.startswith("@"):
        yield from (Choice(w, len(at)) for w in _WORDS if w.startswith(at))
        return
    found = _NAME.search(text)
    word = found[0] if found else ""
    head, dot, last = word.rpartition(".")
    if dot and head.split(".")[0] in ("R", "T", "I"):
        yield from members(session.operators, head, last)
        return
    if dot:
        return
    for name, meta in _scope(session):
        if name.startswith(word):
            yield Choice(name, len(word), meta)


def _scope(session: Session) -> Iterator[tuple[str, str]]:
    yield from ((n, headline(v)) for n, v in session.state.names.items())
    for name, function in session.module.functions.items():
        yield name, "relax" if isinstance(function, relax.Function) else "tir"
    yield from ((name, SUMMARIES[name]) for name in MAKERS)
    yield from (("R", "operators of Relax"), ("T", "TensorIR"), ("I", "modules"))


def members(operators: Operators, path: str, start: str) -> Iterable[Choice]:
    """The members of a namespace, such as `R.nn`, whose names begin with `start`."""
    space, _, inner = path.partition(".")
    if space == "R":
        prefix = f"{inner}." if inner else ""
        seen: set[str] = set()
        for name in operators.names():
            if name.startswith(prefix + start):
                rest, more, _ = name[len(prefix) :].partition(".")
                if rest not in seen:
                    seen.add(rest)
                    yield Choice(rest + more, len(start), "" if more else _summary(operators, name))
    if not inner:
        yield from (Choice(n, len(start)) for n in _namespace(space) if n.startswith(start))


@lru_cache(maxsize=8)
def _namespace(name: str) -> tuple[str, ...]:
    table = getattr(root_scope().names[name], "table", {})
    intrinsics = INTRINSICS if name == "T" else ()
    return tuple(sorted({*table, *intrinsics}))


def _summary(operators: Operators, name: str) -> str:
    found = operators.find(name)
    return found.doc.strip().split("\n")[0] if found is not None else ""


# --- signatures -------------------------------------------------------------------------------------------------------
def signature(session: Session, text: str) -> str:
    """The signature of the call that the cursor stands in; empty when it stands in none that is known."""
    head = text.split(None, 1)[0] if text.strip() else ""
    if session.state.scheduling is not None and head in PRIMITIVES:
        return f"{usage(head)}   {summary(head)}"
    name = open_call(text[-_CONTEXT:])
    if name.startswith("R."):
        found = session.operators.find(name[2:])
        if found is not None:
            return written_signature(name, found)
    if name in SUMMARIES:
        return SUMMARIES[name]
    function = session.module.functions.get(name)
    if isinstance(function, relax.Function):
        return f"{name}({', '.join(f'{p.name}: {p.struct_info}' for p in function.params)})"
    return ""


def written_signature(name: str, operator: OpDef) -> str:
    """The signature of an operator as its definition writes it, in one line."""
    if operator.span is None or operator.returns.span is None:
        return name
    written = Span(operator.span.source, operator.span.start, operator.returns.span.end).text
    return name + " ".join(written[written.find("(", written.find("def ")) :].split())


def open_call(text: str) -> str:
    """The name before the innermost bracket that is still open."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        if text[at] in ")]}":
            depth += 1
        elif text[at] in "([{":
            depth -= 1
            found = _NAME.search(text[:at]) if depth < 0 and text[at] == "(" else None
            if found is not None:
                return found[0]
            depth = max(depth, 0)
    return ""
