"""What the options mean together: the pipeline, what is watched, what is compiled for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from relaxlang.base.config import config
from relaxlang.base.diagnostics import fail
from relaxlang.base.source import Span
from relaxlang.cli.build_options import read_build
from relaxlang.cli.options import CommandLine, check_word, number
from relaxlang.cli.report import Reporter
from relaxlang.cli.timing import Clock
from relaxlang.passes.base import Pass, PassInstrument

if TYPE_CHECKING:
    from relaxlang.cli.instruments import Names, Statistics

_QUOTED = re.compile(r"(['\"])(.*)\1\Z", re.DOTALL)
_NONE: frozenset[str] = frozenset()
_WATCHING = (
    "--timing", "--trace", "--stats", "--verify-each", "--print-ir-before", "--print-ir-after", "--print-ir-changed",
    "--print-ir-diff", "--print-ir-dir",
)  # fmt: skip


class Settings:
    """The options of a run, read and checked. Raises `DiagnosticError` for what is wrong with them.

    `roots` are the folders of `-I`; `own_pipeline` says whether the command line asks for a pipeline, `dialect` the
    release of TVM that scripts are written for, `build` what code is made for, `statistics` what `--stats` counts.
    """

    def __init__(self, line: CommandLine, reporter: Reporter, clock: Clock) -> None:
        self.line = line
        self.reporter = reporter
        self.clock = clock
        self.roots = [span.text for span in line.spans("--include")]
        _ = definitions(line, "")  # reports the texts that define nothing
        self.dialect = _dialect(line)
        self.build = read_build(line)
        self.target = self.build.target
        if self.build.deprecated:
            reporter.note(f"{self.build.deprecated} in a target is deprecated: use `--executor` and `--runtime`")
        self.skipped = frozenset(step.name for step in _named(line, "--skip"))
        choosing = ("--pipeline", "--opt-level", "--start-at", "--stop-after")
        self.own_pipeline = any(line.typed(n) for n in (*choosing, "--skip", "--bisect-limit"))
        if any(line.has(n) for n in choosing):
            _ = self.passes
        self.bisect = number(line, "--bisect-limit", 0)
        self.statistics: list[Statistics] = []
        self._before, self._after = (_names(line, n) for n in ("--print-ir-before", "--print-ir-after"))

    @property
    def watches_passes(self) -> bool:
        """Whether the passes have to run because the command line wants to see them."""
        return any(self.line.has(name) for name in _WATCHING)

    @cached_property
    def dims(self) -> dict[str, int]:
        """The symbolic dimensions that `--dim` gives sizes."""
        from relaxlang.cli.parameters import read_dims

        return {name: size for name, (size, _) in read_dims(self.line.spans("--dim")).items()}

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """The pipeline that was asked for, or the default one."""
        return _passes(self.line)

    @cached_property
    def lowering(self) -> tuple[Pass, ...]:
        """What must follow `passes` before code can be generated: nothing, or the minimum pipeline (it repeats
        harmlessly)."""
        from relaxlang.passes.pipelines import MINIMUM, pipeline

        if {p.name for p in self.passes}.issuperset(MINIMUM):
            return ()
        return pipeline("minimum").passes

    def instruments(self, name: str, stem: str) -> list[PassInstrument]:
        """Fresh instruments for the passes of one module, that of the file `name`. Files that are written are for one
        module; of several each has a folder `stem`."""
        from relaxlang.cli.instruments import BisectLimit, PrintDiff, PrintModule, Statistics, VerifyEach, WriteFiles

        line, say = self.line, self.reporter.say
        made: list[PassInstrument] = []
        if self.bisect is not None:
            made.append(BisectLimit(self.bisect, say))
        made.append(self.clock)
        changed = line.has("--print-ir-changed")
        if changed or self._before != _NONE or self._after != _NONE:
            made.append(PrintModule(say, self._before, self._after, changed))
        if line.has("--print-ir-diff"):
            made.append(PrintDiff(say, self.reporter.color))
        if line.has("--print-ir-dir"):
            several = len(line.files) > 1 or line.has("--split-input")
            made.append(WriteFiles(os.path.join(line.value("--print-ir-dir"), stem if several else "")))
        if line.has("--stats"):
            self.statistics.append(Statistics(name))
            made.append(self.statistics[-1])
        if line.has("--verify-each") or config.check:
            made.append(VerifyEach())
        return made

    def pipeline_text(self) -> str:
        """The whole pipeline to code, as `--pipeline` takes it."""
        return ",".join(str(step) for step in (*self.passes, *self.lowering) if step.name not in self.skipped)


def _dialect(line: CommandLine) -> str | None:
    if not line.has("--dialect"):
        return None
    from relaxlang.syntax.migrate import RELEASES

    check_word(line.spans("--dialect")[-1], RELEASES, "`--dialect` takes")
    return line.value("--dialect")


def _passes(line: CommandLine) -> tuple[Pass, ...]:
    from relaxlang.passes.pipelines import pipeline

    if line.has("--pipeline") and line.has("--opt-level"):
        fail("RLX7003", "`-O` and `--pipeline` are two ways to choose the passes", line.span("--opt-level"),
             help=f"a pipeline can begin with a level: `--pipeline=O{line.value('--opt-level')},…`")  # fmt: skip
    level = f"O{line.value('--opt-level')}" if line.has("--opt-level") else "default"
    passes = pipeline(line.value("--pipeline", level), "--pipeline").passes
    for name in ("--start-at", "--stop-after"):
        for step in _named(line, name):
            at = [i for i, p in enumerate(passes) if p.name == step.name]
            if not at:
                known = ", ".join(f"`{p.name}`" for p in passes)
                fail("RLX7003", f"`{step.name}` is not in the pipeline", line.span(name), help=f"its passes: {known}")
            passes = passes[at[0] :] if name == "--start-at" else passes[: at[-1] + 1]
    return passes


def _named(line: CommandLine, option: str) -> Iterator[Pass]:
    """The passes that an option's values name, as lists between commas."""
    if not line.has(option):
        return
    from relaxlang.base.diagnostics import Diagnostics
    from relaxlang.passes.pipelines import find_pass
    from relaxlang.syntax.pipeline_text import parse_pipeline

    for span in line.spans(option):
        diagnostics = Diagnostics()
        specs = parse_pipeline(span.source, diagnostics)
        diagnostics.check()
        yield from (find_pass(spec) for spec in specs)


def _names(line: CommandLine, option: str) -> Names:
    if any(span.text == "all" for span in line.spans(option)):
        return None
    return frozenset(step.name for step in _named(line, option))


def definitions(line: CommandLine, text: str) -> dict[str, Any]:
    """The compile-time parameters of `-D`. Those of other settings are for many files: only the ones that the text of
    this file mentions count."""
    values = dict(definition(span) for span in line.spans("--define"))
    needed = {definition(span)[0] for span in line.typed_spans("--define")}
    return {n: v for n, v in values.items() if n in needed or re.search(rf"\b{n}\b", text)}


def bound_sizes(line: CommandLine) -> dict[Any, int]:
    """The values of symbolic dimensions that `--bind` gives, by name."""
    sizes: dict[Any, int] = {}
    for span in line.spans("--bind"):
        name, equals, text = (part.strip() for part in span.text.partition("="))
        if not equals or not name.isidentifier() or not (text.isascii() and text.isdecimal() and len(text) <= 18):
            fail("RLX7002", f"`{span.text}` does not give a dimension its size", span, help="write `--bind n=16`")
        sizes[name] = int(text)
    return sizes


def definition(span: Span) -> tuple[str, Any]:
    """`N=128` as a name and a value: a number, `true` or `false`, or else a string, which may stand in quotes."""
    name, equals, text = span.text.partition("=")
    name = name.strip()
    if not equals or not name.isidentifier():
        fail("RLX7002", f"`{span.text}` does not give a parameter its value", span, help="write `-D N=128`")
    text = text.strip()
    if text in ("true", "True", "false", "False"):
        return name, text in ("true", "True")
    for kind in (int, float):
        try:
            return name, kind(text)
        except ValueError:
            continue
    quoted = _QUOTED.match(text)
    return name, quoted[2] if quoted else text
