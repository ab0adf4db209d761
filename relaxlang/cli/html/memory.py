"""The memory of a function over time, as a drawing: a bar for each piece of memory, from where it is made to its last
use."""

from __future__ import annotations

from html import escape

from relaxlang.analysis.memory import Interval, Timeline

WIDTH, LINE = 900, 15
COLORS = 8


def memory_svg(timeline: Timeline) -> str:
    """Bars by number of binding; above them the bytes that are alive."""
    steps = max(len(timeline.steps), 1)
    usage = timeline.usage
    peak = max(usage, default=0)
    if not timeline.intervals:
        return f"<p><code>{escape(timeline.function)}</code> allocates nothing whose size is known.</p>"
    unit = WIDTH / steps
    top = 110
    curve = " ".join(
        f"{k * unit:.1f},{100 - 90 * used / (peak or 1):.1f} {(k + 1) * unit:.1f},{100 - 90 * used / (peak or 1):.1f}"
        for k, used in enumerate(usage)
    )
    bars = "".join(_bar(k, i, unit, top, timeline) for k, i in enumerate(timeline.intervals))
    height = top + len(timeline.intervals) * LINE + 10
    saved = 100 - 100 * timeline.allocated / timeline.tensors if timeline.tensors else 0
    return (
        f"<p><code>{escape(timeline.function)}</code>: at most <b>{peak:,} bytes</b> alive at a time, "
        f"{timeline.allocated:,} allocated for {timeline.tensors:,} of tensors ({saved:.0f} % less by reuse).</p>"
        f'<svg class="memory" viewBox="0 0 {WIDTH} {height}">'
        f'<polyline class="usage" points="0,100 {curve} {WIDTH},100"/>{bars}</svg>'
    )


def _bar(number: int, interval: Interval, unit: float, top: int, timeline: Timeline) -> str:
    x, width = interval.first * unit, max((interval.last - interval.first + 1) * unit, 2)
    y = top + number * LINE
    text = f"{interval.name}: {interval.size:,} bytes, holds {', '.join(interval.holds) or 'nothing'}"
    span = f"from {timeline.steps[interval.first]} to {timeline.steps[interval.last]}" if timeline.steps else ""
    anchor = f'x="{x + 4:.1f}"' if x < WIDTH * 0.7 else f'x="{x - 4:.1f}" text-anchor="end"'
    return (
        f"<g><title>{escape(text)}, {escape(span)}</title>"
        f'<rect class="piece c{number % COLORS}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LINE - 3}"/>'
        f'<text {anchor} y="{y + 10}">{escape(interval.name)} ({interval.size:,})</text></g>'
    )
