"""The kernels of a call: time, share and rates, as a table in which bars show the times."""

from __future__ import annotations

from html import escape

from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError
from relaxlang.cli.compilation import Compilation
from relaxlang.cli.profile import HEAD, Row, observe, rows, summary
from relaxlang.cli.run import Call


def profile_html(c: Compilation, call: Call) -> str:
    """The profile of a call, which is run for it; of a program that fails or cannot be watched, why there is none."""
    try:
        with c.settings.clock.phase("profile"):
            made = observe(call)
    except RelaxlangError as fault:
        message = fault.diagnostics[0].message if isinstance(fault, DiagnosticError) else str(fault)
        return f"<h2>{escape(call.function)}</h2><p>{escape(message)}</p>"
    found = rows(c, made)
    head = "".join(f'<th class="{_kind(k)}">{escape(name)}</th>' for k, name in enumerate(HEAD))
    body = "".join(_row(row) for row in found)
    return (
        f"<h2>{escape(call.function)}</h2>"
        f'<table class="profile"><thead><tr>{head}<th></th></tr></thead><tbody>{body}</tbody></table>'
        f"<p class='quiet'>{escape(summary(found, made))}</p>"
    )


def _row(row: Row) -> str:
    cells = "".join(f'<td class="{_kind(k)}">{escape(text)}</td>' for k, text in enumerate(row.cells()))
    return f'<tr>{cells}<td class="share"><span class="bar" style="width:{row.time.share * 100:.1f}%"></span></td></tr>'


def _kind(column: int) -> str:
    return "name" if column in (0, len(HEAD) - 1) else "num"
