"""`--describe NAME`: everything there is to say about a pass, pipeline, operator, intrinsic or diagnostic code."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from relaxlang.base.diagnostics import fail
from relaxlang.base.source import Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.cli.listing import arity_text


def _pass(name: str) -> dict[str, Any] | None:
    from relaxlang.passes import ALIASES, PASSES, load_pass

    if name not in PASSES and name not in ALIASES:
        by_class = {place.split(":")[1]: known for known, place in PASSES.items()}
        if name not in by_class:
            return None
        name = by_class[name]
    cls = load_pass(name)
    options = {f.name: repr(f.default) for f in fields(cls)}
    return {"kind": "pass", "name": ALIASES.get(name, name), "class": cls.__name__,
            "file": PASSES[ALIASES.get(name, name)].split(":")[0].replace(".", "/").join(("relaxlang/passes/", ".py")),
            "options": options, "doc": inspect.getdoc(cls) or ""}  # fmt: skip


def _pipeline(name: str) -> dict[str, Any] | None:
    from relaxlang.passes.pipelines import PIPELINES

    if name not in PIPELINES:
        return None
    return {"kind": "pipeline", "name": name, "doc": ",\n".join(PIPELINES[name])}


def _operator(name: str) -> dict[str, Any] | None:
    from relaxlang.ops import default_operators

    found = default_operators().find(re.sub(r"^(R|relax)\.(op\.)?", "", name))
    if found is None:
        return None
    place = found.span
    assert place is not None and found.returns.span is not None  # definitions are read from files
    begin = place.source.text.rfind("\n", 0, place.start) + 1
    signature = Span(place.source, begin, found.returns.span.end).text
    return {"kind": "operator", "name": f"R.{found.name}", "file": str(place).rsplit(":", 1)[0],
            "signature": signature, "doc": inspect.cleandoc(found.doc), "rules": found.rules()}  # fmt: skip


def _intrinsic(name: str) -> dict[str, Any] | None:
    from relaxlang.ir.intrinsics import INTRINSICS

    found = INTRINSICS.get(name.removeprefix("T."))
    if found is None:
        return None
    doc = f"takes {arity_text(found.arity)} ({found.accepts}); result: {found.result}"
    doc += "" if found.pure else "; has effects"
    return {"kind": "intrinsic", "name": f"T.{found.name}", "doc": doc}


def _code(name: str) -> dict[str, Any] | None:
    from relaxlang.base.codes import CODES, explain

    if name.upper() not in CODES:
        return None
    return {"kind": "code", "name": name.upper(), "doc": explain(name)}


_FINDERS: tuple[Callable[[str], dict[str, Any] | None], ...] = (_pass, _pipeline, _operator, _intrinsic, _code)


def describe(name: str, place: Span | None, as_json: bool) -> str:
    """The description of a name; of several things when they share it. RLX7008 when there is nothing of that name."""
    found = [facts for find in _FINDERS if (facts := find(name)) is not None]
    if not found:
        near = did_you_mean(name, _names())
        help = f"did you mean `{near}`?" if near else "`--list=ops`, `--list=passes` and so on show what there is"
        fail("RLX7008", f"there is no pass, pipeline, operator, intrinsic or code `{name}`", place, help=help)
    if as_json:
        return json.dumps(found, indent=1) + "\n"
    return "\n".join(_text(facts) for facts in found)


def _text(facts: dict[str, Any]) -> str:
    head = f"{facts['kind']} {facts['name']}" + (f"  ({facts['file']})" if "file" in facts else "")
    parts = [head]
    if "signature" in facts:
        parts.append(facts["signature"])
    parts.append(facts["doc"])
    if facts.get("options"):
        parts.append("Options:\n" + "\n".join(f"    {name} = {default}" for name, default in facts["options"].items()))
    if facts.get("rules"):
        parts.append("Rules:\n" + "\n".join(f"    {kind}: {rule}" for kind, rule in facts["rules"].items()))
    return "\n\n".join(part for part in parts if part) + "\n"


def _names() -> list[str]:
    from relaxlang.base.codes import CODES
    from relaxlang.ir.intrinsics import INTRINSICS
    from relaxlang.ops import default_operators
    from relaxlang.passes import ALIASES, PASSES
    from relaxlang.passes.pipelines import PIPELINES

    return [*PASSES, *ALIASES, *PIPELINES, *default_operators().names(), *INTRINSICS, *CODES]
