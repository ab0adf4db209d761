"""The page: what was compiled, and its parts as tabs."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from relaxlang.analysis.memory import timeline
from relaxlang.analysis.memory_report import timeline_html
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.version import __version__
from relaxlang.cli.html.code import kernels_html
from relaxlang.cli.html.graph import graph_of, graph_svg
from relaxlang.cli.html.stages import Recorder, colored, stages_html
from relaxlang.ir.module import IRModule

if TYPE_CHECKING:
    from relaxlang.cli.compilation import Compilation


def html_report(c: Compilation) -> str:
    """The page of a compilation, with everything that it shows inside."""
    recorder, lowered = _compiled(c)
    parts = {
        "passes": stages_html(recorder),
        "graph": _graphs(c.scheduled),
        "memory": _memory(c),
        "kernels": kernels_html(lowered, c.target),
        "program": _numbered(recorder.first),
    }
    if c.call is not None:
        from relaxlang.cli.html.profile import profile_html

        parts["profile"] = profile_html(c, c.call)
    return _page(c.name, str(c.target), parts)


def _compiled(c: Compilation) -> tuple[Recorder, IRModule]:
    """The passes, run under a recorder."""
    context = c.pass_context()
    recorder = Recorder(c.configured)
    outer, context.instruments = context.instruments, (*context.instruments, recorder)
    try:
        mod = c.configured
        for step in (*c.settings.passes, *c.settings.lowering):
            mod = context.apply(step, mod)
    finally:
        context.instruments = outer
    return recorder, mod


def _graphs(mod: IRModule) -> str:
    from relaxlang.syntax.printer import render_node

    rendered = render_node(mod, positions=True)
    lines: dict[int, int] = {}
    for place in rendered.places:
        lines.setdefault(id(place.node), rendered.line_column(place.start)[0])
    drawings = [
        f"<h3>{escape(name)}</h3>{graph_svg(name, graph_of(func, lines))}" for name, func in mod.relax_functions()
    ]
    if not drawings:
        return "<p>The module has no Relax functions.</p>"
    help = "<p class='quiet'>Wheel or + − zooms, dragging moves, a click on a box shows its line.</p>"
    return f'{help}<div class="split"><div>{"".join(drawings)}</div>{_numbered(rendered.text)}</div>'


def _memory(c: Compilation) -> str:
    parts = []
    for name, _ in c.planned.relax_functions():
        try:
            parts.append(timeline_html(timeline(c.planned, name, c.settings.dims)))
        except DiagnosticError as fault:  # sizes that are known at run time only
            one = fault.diagnostics[0]
            parts.append(f"<h2>{escape(name)}</h2><p>{escape(one.message)}</p><p class='quiet'>{escape(one.help)}</p>")
    return "".join(parts) or "<p>The module has no Relax functions.</p>"


def _numbered(text: str) -> str:
    lines = text.splitlines()
    rows = "".join(f'<pre data-line="{k}"><b>{k}</b>{colored(line)}</pre>' for k, line in enumerate(lines, 1))
    return f'<div class="text">{rows}</div>'


def _page(name: str, target: str, parts: dict[str, str]) -> str:
    """The page, with a tab for each part."""
    here = files("relaxlang.cli.html")
    css, js = (here.joinpath(f"report.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    buttons = "".join(f'<button role="tab" data-tab="{t}">{t}</button>' for t in parts)
    sections = "".join(f'<section id="{t}" role="tabpanel" hidden>{part}</section>' for t, part in parts.items())
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(name)}: relaxlang</title>'
        f'<meta name="viewport" content="width=device-width"><style>{css}</style></head><body>'
        f"<header><h1>{escape(name)}</h1><span>{escape(target)}</span><span>relaxlang {__version__}</span>"
        f'<nav role="tablist">{buttons}</nav></header><main>{sections}</main><script>{js}</script></body></html>\n'
    )
