"""The memory of a module for people: text with a timeline, HTML, and a summary of what planning saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaxlang.analysis.memory import Interval, Timeline, timeline
from relaxlang.ir.module import IRModule

_COLUMNS = 64
_LABEL = 60
_LEVELS = " ▁▂▃▄▅▆▇█"


def timelines(mod: IRModule, dims: Mapping[str, int] | None = None) -> list[Timeline]:
    """The memory of each Relax function of a module after `call-tir-rewrite`; `dims` gives symbolic dimensions values.
    RLX3112 when a size is not known."""
    return [timeline(mod, name, dims) for name, _ in mod.relax_functions()]


def estimate_memory_usage(mod: IRModule, dims: Mapping[str, int] | None = None) -> str:
    """What each function of a planned module (after `static-plan-block-memory`) allocates, with and without planning.

    An estimate from above: of the branches of a conditional the larger counts, and functions that are called do not.
    `dims` gives symbolic dimensions values, by name; without, their upper bounds count. RLX3112 when there is neither.
    """
    lines = []
    for one in timelines(mod, dims):
        saved = 1 - one.allocated / one.tensors if one.tensors else 0.0
        lines += [
            f"{one.function}:",
            f"  without planning  {one.tensors:,} bytes of tensors",
            f"  with planning     {one.allocated:,} bytes in {_count(one.intervals, 'allocation')} ({saved:.1%} less)",
            f"  at one time       {one.peak:,} bytes at most",
        ]
    return "\n".join(lines) + "\n" if lines else "no Relax functions\n"


def memory_text(made: Sequence[Timeline]) -> str:
    """Timelines as text: a line for each piece of memory, on which `█` is where it is needed and `·` where not."""
    return "\n".join(_function_text(one) for one in made) if made else "no Relax functions\n"


def _function_text(one: Timeline) -> str:
    columns = min(max(len(one.steps), 1), _COLUMNS)
    rows = [("bytes", _count(one.steps, "step"), "holds")]
    for interval in one.intervals:
        rows.append((f"{interval.size:,}", _bar(interval, one, columns), _label(interval)))
    rows.append((f"{one.peak:,}", _skyline(one, columns), f"in use, most at `{_step(one)}`"))
    width = [max(len(row[i]) for row in rows) for i in range(2)]
    table = [f"  {size:>{width[0]}}  {bar:{width[1]}}  {what}" for size, bar, what in rows]
    return "\n".join([head(one), *table]) + "\n"


def head(one: Timeline) -> str:
    """A timeline in one line."""
    return (
        f"{one.function}: {one.allocated:,} bytes in {_count(one.intervals, 'allocation')}, {one.peak:,} at one time; "
        f"parameters {one.held[0]:,}, constants {one.held[1]:,}"
    )


def alive_text(one: Timeline) -> tuple[str, ...]:
    """What is needed when most memory is, largest first, a line each."""
    alive = sorted(one.alive(one.peak_step), key=lambda i: -i.size)
    return tuple(f"{i.size:,} bytes: {_label(i)}" for i in alive)


def _step(one: Timeline) -> str:
    """The binding at which most is needed; memory that is about to be filled says what by."""
    name = one.steps[one.peak_step] if one.steps else ""
    held = {i.name: i.holds for i in one.intervals}
    return held[name][0] if held.get(name) else name


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'s' * (len(things) != 1)}"


def _label(interval: Interval) -> str:
    """What lies in a piece of memory, shortened where it is much."""
    text = ", ".join(interval.holds) or interval.name
    return text if len(text) <= _LABEL else f"{text[:_LABEL]}…"


def _bar(interval: Interval, one: Timeline, columns: int) -> str:
    steps = max(len(one.steps), 1)
    spans = [
        range(c * steps // columns, max((c + 1) * steps // columns, c * steps // columns + 1)) for c in range(columns)
    ]
    return "".join("█" if any(map(interval.needed, span)) else "·" for span in spans)


def _skyline(one: Timeline, columns: int) -> str:
    usage, steps, peak = one.usage, max(len(one.steps), 1), max(one.peak, 1)
    heights = [
        max(usage[c * steps // columns : max((c + 1) * steps // columns, c * steps // columns + 1)])
        for c in range(columns)
    ]
    return "".join(_LEVELS[-(-h * (len(_LEVELS) - 1) // peak)] for h in heights)


# --- HTML -------------------------------------------------------------------------------------------------------------
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>memory</title><style>
body {{ font: 14px system-ui, sans-serif; margin: 2em }}
svg {{ border: 1px solid #bbb; width: 100%; height: auto }}
rect.tensor {{ fill: #4c78a8; stroke: #fff; stroke-width: 0.5 }} rect.tensor:hover {{ fill: #f58518 }}
polyline {{ fill: none; stroke: #e45756; stroke-width: 1.5 }} text {{ font: 10px system-ui, sans-serif }}
</style></head><body>
{body}
</body></html>
"""
_WIDTH, _ROW = 900, 14


def memory_html(made: Sequence[Timeline]) -> str:
    """Timelines as a page: a bar for each piece of memory, and over them how much is in use."""
    return _PAGE.format(body="\n".join(timeline_html(one) for one in made) or "<p>no Relax functions</p>")


def timeline_html(one: Timeline) -> str:
    """The part of a page that shows one timeline."""
    from html import escape  # here, because builds want the texts alone

    steps, rows = max(len(one.steps), 1), len(one.intervals)
    height, unit = 80 + _ROW * (rows + 1), _WIDTH / steps
    parts = []
    for row, interval in enumerate(one.intervals):
        x, width, y = interval.first * unit, (interval.last - interval.first + 1) * unit, 80 + row * _ROW
        label = escape(f"{_label(interval)}: {interval.size:,} bytes")
        bar = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_ROW - 2}"'
        parts.append(
            f'<rect class="tensor" {bar}><title>{label}</title></rect><text x="{x + 2:.1f}" y="{y + 10}">{label}</text>'
        )
    peak = max(one.peak, 1)
    points = " ".join(f"{(at + 0.5) * unit:.1f},{75 - 70 * used / peak:.1f}" for at, used in enumerate(one.usage))
    most = escape(f"most at {_step(one)}: {one.peak:,} bytes")
    return (
        f"<h2>{escape(head(one))}</h2>\n"
        f'<svg class="memory" viewBox="0 0 {_WIDTH} {height}"><polyline points="{points}"/>'
        f'<text x="4" y="10">{most}</text>{"".join(parts)}</svg>'
    )
