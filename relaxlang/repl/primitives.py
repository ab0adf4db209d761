"""Primitives of schedules as they are typed: `split i 8`, `reorder i j`, `compute_at relu matmul.i`.

In: a line and a `Schedule`. Out: the schedule with one instruction more. Loops and blocks go by the names that the
printed program shows; where several blocks have a loop of one name, `BLOCK.LOOP` says which. Lines of Python, as
`:trace` prints them (`l0, l1 = sch.get_loops("B")`), are taken too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from relaxlang.base.diagnostics import Diagnostics, fail
from relaxlang.base.source import Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.cli.listing import first_sentence
from relaxlang.ir.prim import Var
from relaxlang.repl.command import Choice
from relaxlang.schedule import LoopRV, Schedule
from relaxlang.schedule.trace import argument, run_lines
from relaxlang.syntax.parser import parse_expression

# What each argument is; `…`: one or more of these.
PRIMITIVES: dict[str, tuple[str, ...]] = {
    "split": ("LOOP", "EXTENT…"),
    "fuse": ("LOOP…",),
    "reorder": ("LOOP…",),
    "parallel": ("LOOP",),
    "vectorize": ("LOOP",),
    "unroll": ("LOOP",),
    "compute_at": ("BLOCK", "LOOP"),
    "reverse_compute_at": ("BLOCK", "LOOP"),
    "compute_inline": ("BLOCK",),
    "reverse_compute_inline": ("BLOCK",),
    "cache_read": ("BLOCK", "BUFFER", "SCOPE"),
    "cache_write": ("BLOCK", "BUFFER", "SCOPE"),
    "reindex": ("BLOCK", "read|write", "BUFFER"),
    "decompose_reduction": ("BLOCK", "LOOP"),
    "rfactor": ("LOOP", "AXIS"),
    "blockize": ("LOOP",),
    "pad_einsum": ("BLOCK", "MULTIPLE…"),
    "transform_layout": ("BLOCK", "read|write", "BUFFER", "LAMBDA"),
    "annotate": ("PLACE", "KEY", "VALUE"),
    "unannotate": ("PLACE", "KEY"),
    "set_scope": ("BLOCK", "BUFFER", "SCOPE"),
    "tile": ("LOOP", "LOOP", "EXTENT", "EXTENT"),
    "tensorize": ("PLACE", "INTRINSIC"),
    "storage_align": ("BLOCK", "BUFFER", "AXIS", "FACTOR", "OFFSET"),
}
_PYTHON = re.compile(r"\bsch\s*\.")
_CALL = re.compile(r"(\w+)\s*\((.*)\)\s*\Z", re.DOTALL)
_NAMED = re.compile(r"([a-z_]+)=(?!=)")


def usage(method: str) -> str:
    """How a primitive is written."""
    return " ".join((method, *PRIMITIVES[method]))


def summary(method: str) -> str:
    """What a primitive does, in a line."""
    return first_sentence(getattr(Schedule, method).__doc__)


def is_python(text: Span) -> bool:
    """Whether a text is lines of a trace (`l0, l1 = sch.get_loops("B")`), and no primitives as they are typed."""
    return _PYTHON.search(text.text) is not None


def run_primitive(sch: Schedule, line: Span) -> None:
    """Do what a line says to a schedule. RLX1013 for a line that is no primitive, RLX1001 for names that are not
    there, and what the primitive reports."""
    if is_python(line):
        run_lines(sch, line.text.split("\n"), line.source.name)
        return
    method, rest = _split_head(line)
    kinds = PRIMITIVES.get(method.text)
    if kinds is None:
        near = did_you_mean(method.text, PRIMITIVES)
        help = f"did you mean `{near}`?" if near else "`:help schedule` lists the primitives; `:done` ends the schedule"
        fail("RLX1013", f"there is no primitive `{method.text}`", method, help=help)
    words, named = [], {}
    for word in _words(rest):
        key = _NAMED.match(word.text)
        if key is None:
            words.append(word)
        else:
            named[key[1]] = _evaluated(Span(word.source, word.start + key.end(), word.end))
    values = [_value(sch, kind, word) for kind, word in _paired(method, kinds, words)]
    args = _arranged(method.text, kinds, values)
    if named:
        allowed = inspect.signature(getattr(Schedule, method.text)).parameters
        wrong = next((name for name in named if name not in allowed), None)
        if wrong is not None:
            fail("RLX1013", f"`{method.text}` has no option `{wrong}`", line, help=_help(method.text))
    getattr(sch, method.text)(*args, **named)


def _split_head(line: Span) -> tuple[Span, Span]:
    """The name of the primitive, and the text of its arguments: `split i 8` or `split(i, 8)`."""
    called = _CALL.fullmatch(line.text)
    if called is not None:
        return (Span(line.source, line.start, line.start + called.end(1)),
                Span(line.source, line.start + called.start(2), line.start + called.end(2)))  # fmt: skip
    head = line.text.split(None, 1)[0]
    if "(" in head and PRIMITIVES.keys() & {head.split("(")[0]}:
        at = line.start + head.index("(")
        fail("RLX1013", "`(` is never closed", Span(line.source, at, at + 1), help=_help(head.split("(")[0]))
    return Span(line.source, line.start, line.start + len(head)), Span(line.source, line.start + len(head), line.end)


def _words(span: Span) -> Iterator[Span]:
    """The arguments, between blanks and commas that stand in no bracket and no quotes; a lambda goes to the end."""
    text, at, depth, quote = span.text, 0, 0, ""
    start: int | None = None
    for at, c in enumerate(text):
        if start is None and text.startswith("lambda", at):
            yield Span(span.source, span.start + at, span.end)
            return
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        depth += (c in "([{") - (c in ")]}")
        if (c.isspace() or c == ",") and depth <= 0 and not quote:
            if start is not None:
                yield Span(span.source, span.start + start, span.start + at)
            start = None
        elif start is None:
            start = at
    if start is not None:
        yield Span(span.source, span.start + start, span.end)


def _paired(method: Span, kinds: tuple[str, ...], words: list[Span]) -> list[tuple[str, Span]]:
    """The arguments, each with what it has to be."""
    many = kinds[-1].endswith("…")
    if len(words) < len(kinds):
        end = Span(method.source, method.end, method.end)
        fail("RLX1013", f"`{method.text}` lacks its {kinds[len(words)].rstrip('…')}", end, help=_help(method.text))
    if len(words) > len(kinds) and not many:
        fail("RLX1013", "there is one argument too many", words[len(kinds)], help=_help(method.text))
    wanted = [*kinds, *(kinds[-1:] * (len(words) - len(kinds)))]
    return [(kind.rstrip("…"), word) for kind, word in zip(wanted, words)]


def _help(method: str) -> str:
    return f"it is written `{usage(method)}`"


def _arranged(method: str, kinds: tuple[str, ...], values: list[Any]) -> list[Any]:
    """The arguments as the method takes them."""
    if method == "split":
        extents = values[1:]
        listed = len(extents) == 1 and isinstance(extents[0], list)
        return [values[0], extents[0] if listed else extents if None in extents else [None, *extents]]
    if method == "pad_einsum":
        factors = values[1:]
        return [values[0], factors[0] if len(factors) == 1 and isinstance(factors[0], list) else factors]
    if "read|write" in kinds:
        return [values[0], (values[1], values[2]), *values[3:]]
    return values


# --- values -----------------------------------------------------------------------------------------------------------
def _value(sch: Schedule, kind: str, word: Span) -> Any:
    text = word.text.strip("\"'")
    if kind == "LOOP":
        return loop_result(sch, word)
    if kind == "BLOCK":
        return _block(sch, word)
    if kind == "PLACE":
        return _block(sch, word) if text in sch.state.blocks else loop_result(sch, word)
    if kind == "read|write":
        if text not in ("read", "write"):
            fail("RLX1013", f"`{text}` is neither `read` nor `write`", word)
        return text
    if kind == "BUFFER":
        return int(text) if text.isascii() and text.isdecimal() else text
    if kind in ("SCOPE", "KEY", "INTRINSIC"):
        return text
    return _evaluated(word)


def _evaluated(word: Span) -> Any:
    """A number, a text, a list, or a lambda."""
    diagnostics = Diagnostics()
    node = parse_expression(word.source, diagnostics, word.start, word.end)
    diagnostics.check()
    assert node is not None  # otherwise an error was reported
    return argument(node, {})


def _block(sch: Schedule, word: Span) -> str:
    text = word.text.strip("\"'")
    if text not in sch.state.blocks:
        have = [b for b in sch.state.blocks if b != "root"]
        _unknown("block", text, word, have)
    return text


def loop_result(sch: Schedule, word: Span) -> LoopRV:
    """What stands for the loop of that name (`i`, or `BLOCK.i`) in the trace; looked up first, if need be."""
    var = loop_variable(sch, word)
    known = sch.known_loop(var)
    if known is not None:
        return known
    state = sch.state
    inside = state.blocks_under(state.loops[var])
    if not inside:
        fail("RLX1001", f"the loop `{var.name}` has no block in it: primitives work on loops around blocks", word)
    found = sch.get_loops(inside[0].block.name_hint)
    return next(rv for rv in found if sch.get(rv).loop_var is var)


def loop_variable(sch: Schedule, word: Span) -> Var:
    """The variable of the loop of that name. RLX1001 when there is none, or more than one."""
    names = loop_names(sch)
    found = [var for var, name in names.items() if word.text in (name, var.name)]
    if not found and word.text.rpartition(".")[0]:
        found = [var for var, name in names.items() if word.text in _long_names(sch, var)]
    if not found:
        _unknown("loop", word.text, word, list(names.values()))
    if len(found) > 1:
        listed = " or ".join(f"`{names[var]}`" for var in found[:6])
        fail("RLX1001", f"there are {len(found)} loops `{word.text}`", word, help=f"say {listed}")
    return found[0]


def _unknown(what: str, text: str, word: Span, names: list[str]) -> NoReturn:
    near = did_you_mean(text, names)
    listed = f"there are {', '.join(f'`{n}`' for n in names[:12])}" if names else f"it has no {what}s"
    fail("RLX1001", f"the function has no {what} `{text}`", word, help=f"did you mean `{near}`?" if near else listed)


def loop_names(sch: Schedule) -> dict[Var, str]:
    """What each loop is called here, in program order: its variable's name, with a block before it where that is not
    enough."""
    names = [v.name for v in sch.state.loops]
    return {v: v.name if names.count(v.name) == 1 else (_long_names(sch, v) or [v.name])[0] for v in sch.state.loops}


def _long_names(sch: Schedule, var: Var) -> list[str]:
    state = sch.state
    return [f"{b.block.name_hint}.{var.name}" for b in state.blocks_under(state.loops[var])]


# --- completion -------------------------------------------------------------------------------------------------------
def primitive_choices(sch: Schedule, text: str) -> list[Choice]:
    """What may stand at the cursor of a line: primitives, then loops, blocks, buffers as they are wanted there."""
    line = text.lstrip()
    head = re.match(r"\w*", line)
    assert head is not None
    if head.end() == len(line):
        return [Choice(m, len(line), f"{usage(m)}   {summary(m)}") for m in PRIMITIVES if m.startswith(line)]
    kinds = PRIMITIVES.get(head[0])
    if kinds is None:
        return []
    rest = re.split(r"[\s,(]+", line[head.end() :].lstrip(" ("))
    kind = kinds[min(len(rest), len(kinds)) - 1].rstrip("…")
    wanted = _OFFERED.get(kind)
    names = wanted(sch) if wanted is not None else {}
    return [Choice(name, len(rest[-1]), meta) for name, meta in names.items() if name.startswith(rest[-1])]


def _loops(sch: Schedule) -> dict[str, str]:
    loops = sch.state.loops
    return {name: f"{loops[var].kind}, {loops[var].extent}" for var, name in loop_names(sch).items()}


def _blocks(sch: Schedule) -> dict[str, str]:
    return {name: "block" for name in sch.state.blocks if name != "root"}


def _buffers(sch: Schedule) -> dict[str, str]:
    found: dict[str, str] = {}
    for realize in sch.state.blocks.values():
        for region in (*(realize.block.reads or ()), *(realize.block.writes or ())):
            found[region.buffer.name] = str(region.buffer.dtype)
    return found


_OFFERED: dict[str, Callable[[Schedule], dict[str, str]]] = {
    "LOOP": _loops,
    "BLOCK": _blocks,
    "PLACE": lambda sch: {**_loops(sch), **_blocks(sch)},
    "BUFFER": _buffers,
    "SCOPE": lambda sch: {"global": "memory", "local": "registers"},
    "read|write": lambda sch: {"read": "a buffer that the block reads", "write": "one that it writes"},
}
