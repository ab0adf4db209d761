"""The passes of a compilation: what each took, and what it changed."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Sequence
from html import escape

from relaxlang.base.record import record
from relaxlang.ir.module import IRModule
from relaxlang.passes.base import Pass, PassInstrument, Sequential
from relaxlang.syntax.interactive import tokens

CONTEXT = 3
"""Lines that are shown around a change."""
MOST_LINES = 20_000
"""A longer text is not compared line by line."""


@record
class Stage:
    """A pass that ran: its name with options, its seconds, the text after it (None when it changed nothing)."""

    name: str
    seconds: float
    text: str | None


class Recorder(PassInstrument):
    """Keeps the text after each pass."""

    def __init__(self, first: IRModule) -> None:
        self.first = first.script()
        self.stages: list[Stage] = []
        self._last = self.first
        self._before: list[tuple[IRModule, float]] = []

    def before(self, mod: IRModule, step: Pass) -> None:
        self._before.append((mod, time.perf_counter()))

    def after(self, mod: IRModule, step: Pass) -> None:
        was, start = self._before.pop()
        seconds = time.perf_counter() - start
        if isinstance(step, Sequential):
            return
        text = mod.script() if mod is not was else self._last
        self.stages.append(Stage(str(step), seconds, text if text != self._last else None))
        self._last = text

    @property
    def last(self) -> str:
        """The text after the last pass."""
        return self._last


def stages_html(recorder: Recorder) -> str:
    """The list of passes; those that changed nothing are folded away."""
    rows, before = [], recorder.first
    total = sum(stage.seconds for stage in recorder.stages) or 1.0
    for number, stage in enumerate(recorder.stages):
        size = len((stage.text or before).splitlines())
        head = (
            f'<td class="name">{escape(stage.name)}</td><td class="num">{stage.seconds * 1e3:.1f} ms</td>'
            f'<td><span class="bar" style="width:{100 * stage.seconds / total:.1f}%"></span></td>'
            f'<td class="num">{size} lines</td>'
        )
        if stage.text is None:
            rows.append(f'<tr class="noop">{head}<td class="quiet">changes nothing</td></tr>')
            continue
        added, removed, table = side_by_side(before, stage.text)
        rows.append(
            f'<tr class="pass" data-diff="diff{number}" tabindex="0">{head}'
            f'<td><b class="plus">+{added}</b> <b class="minus">−{removed}</b></td></tr>'
            f'<tr class="diff" id="diff{number}" hidden><td colspan="5">{table}</td></tr>'
        )
        before = stage.text
    quiet = sum(stage.text is None for stage in recorder.stages)
    button = f'<button id="noops">show {quiet} that change nothing</button>' if quiet else ""
    return f'{button}<table class="passes"><tbody>{"".join(rows)}</tbody></table>'


def side_by_side(old: str, new: str) -> tuple[int, int, str]:
    """Lines added, lines removed, and the two texts beside each other, without what is far from every change."""
    left, right = old.splitlines(), new.splitlines()
    if len(left) + len(right) > MOST_LINES:
        return len(right), len(left), "<p>The texts are too long to be compared here.</p>"
    rows, added, removed = [], 0, 0
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=len(left) > 2000)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        rows.append('<tr class="gap"><td colspan="4">⋯</td></tr>')
        for tag, i, j, k, m in group:
            added += m - k if tag != "equal" else 0
            removed += j - i if tag != "equal" else 0
            rows += _rows(tag, left[i:j], right[k:m], i, k)
    return added, removed, f'<table class="side"><tbody>{"".join(rows)}</tbody></table>'


def _rows(tag: str, left: Sequence[str], right: Sequence[str], first: int, second: int) -> Iterator[str]:
    for at in range(max(len(left), len(right))):
        a = left[at] if at < len(left) else None
        b = right[at] if at < len(right) else None
        yield f"<tr>{_cell(a, first + at, tag != 'equal', 'minus')}{_cell(b, second + at, tag != 'equal', 'plus')}</tr>"


def _cell(line: str | None, number: int, changed: bool, kind: str) -> str:
    if line is None:
        return '<td></td><td class="none"></td>'
    mark = f' class="{kind}"' if changed else ""
    return f'<td class="num">{number + 1}</td><td{mark}><pre>{colored(line)}</pre></td>'


def colored(text: str) -> str:
    """Text of the language as HTML, its tokens in colours."""
    parts, at = [], 0
    for token in tokens(text):
        parts.append(escape(text[at : token.start]))
        parts.append(f'<i class="{token.kind}">{escape(text[token.start : token.end])}</i>')
        at = token.end
    return "".join(parts) + escape(text[at:])
