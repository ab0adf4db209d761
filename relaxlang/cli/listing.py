"""`--list`: what there is, one a line with a few words, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from relaxlang.base.resources import resource_dir

Row = tuple[str, str]


def _passes() -> Iterator[Row]:
    from relaxlang.passes import ALIASES, PASSES, load_pass

    for name in sorted(PASSES):
        also = [alias for alias, of in ALIASES.items() if of == name]
        yield name, first_sentence(load_pass(name).__doc__) + (f" (also {', '.join(also)})" if also else "")


def _ops() -> Iterator[Row]:
    from relaxlang.ops import default_operators

    table = default_operators()
    for name in table.names():
        yield name, first_sentence(table.get(name).doc)


def _pipelines() -> Iterator[Row]:
    from relaxlang.passes.pipelines import PIPELINES

    for name, steps in PIPELINES.items():
        yield name, ",".join(steps)


def _targets() -> Iterator[Row]:
    from relaxlang.ir.configuration.host import this_machine
    from relaxlang.ir.configuration.target import TARGETS, list_tags

    host = this_machine()
    for kind in TARGETS.kinds():
        yield kind.name, kind.help
        for option in kind.options:
            yield f"{kind.name} -{option.name}", f"{option.help}; {option.takes}"
    for tag, target in list_tags().items():
        yield tag, str(target.without("tag"))
    yield "(this machine)", f"{host.cpu}, {host.triple}, {len(host.features.split(','))} features"


def _kinds(word: str) -> Iterator[Row]:
    from relaxlang.cli.build_options import composed_options, registries

    for kind in registries()[word].kinds():
        yield kind.name, kind.help + (f" (also {', '.join(kind.aliases)})" if kind.aliases else "")
        for one in composed_options():
            if one.registry == word and one.kind is kind:
                default = "" if one.of.default is None else f", default {_default(one.of.default)}"
                yield one.option.name, f"{one.of.help}; {one.of.takes}{default}"


def _default(value: bool | int | str) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _codes() -> Iterator[Row]:
    from relaxlang.base.codes import CODES

    for code in sorted(CODES):
        yield code, CODES[code].title


def _intrinsics() -> Iterator[Row]:
    from relaxlang.ir.intrinsics import INTRINSICS

    for name, entry in sorted(INTRINSICS.items()):
        yield f"T.{name}", arity_text(entry.arity) + ("" if entry.pure else ", has effects")


def arity_text(arity: int) -> str:
    """How many arguments an intrinsic takes, in words."""
    return "any number of arguments" if arity < 0 else f"{arity} argument{'s' * (arity != 1)}"


def _emit() -> Iterator[Row]:
    from relaxlang.cli.emit import KINDS

    for name, kind in KINDS.items():
        yield name, kind.help


_LISTS: dict[str, Callable[[], Iterator[Row]]] = {
    "passes": _passes,
    "ops": _ops,
    "pipelines": _pipelines,
    "targets": _targets,
    "executors": lambda: _kinds("executor"),
    "runtimes": lambda: _kinds("runtime"),
    "codes": _codes,
    "intrinsics": _intrinsics,
    "emit": _emit,
}


def listing(what: str, as_json: bool) -> str:
    """The list of that name (one of `options.LISTS`), as lines or as JSON: a list of objects with name and summary.

    Operators have `tested` as well: for each kind of argument and of execution whether the test suite compares values
    (`yes`, `no`, or `n/a` when the operator does not take it), and with what (`stdlib/OPERATORS.md`).
    """
    rows = list(_LISTS[what]())
    if as_json:
        found: list[dict[str, Any]] = [{"name": name, "summary": summary} for name, summary in rows]
        if what == "ops":
            tested = json.loads((resource_dir("stdlib") / "tested.json").read_text(encoding="utf-8"))
            found = [{**row, "tested": tested.get(row["name"], {})} for row in found]
        return json.dumps(found, indent=1) + "\n"
    width = max((len(name) for name, _ in rows), default=0) + 2
    return "".join(f"{name:{width}}{summary}".rstrip() + "\n" for name, summary in rows)


def first_sentence(doc: str | None) -> str:
    """The first paragraph's first sentence, on one line."""
    paragraph = " ".join((doc or "").strip().split("\n\n")[0].split())
    end = paragraph.find(". ")
    return paragraph if end < 0 else paragraph[: end + 1]
