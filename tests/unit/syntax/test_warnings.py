"""Warnings travel one way: to the sink of whoever reads a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaxlang import load, parse
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError
from relaxlang.lsp.document import Document

WARNED = """@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    A[9] = A[8]
"""


def test_a_program_with_warnings_is_read() -> None:
    found: list[Diagnostic] = []
    module = parse(WARNED, "w.rlx", warnings=found.append)
    assert [(d.level, d.code, d.span and str(d.span)) for d in found] == [
        ("warning", "RLX0313", "w.rlx:3:5"),
        ("warning", "RLX0313", "w.rlx:3:12"),
    ]
    assert parse(WARNED).script() == module.script()


def test_errors_carry_warnings_along() -> None:
    found: list[Diagnostic] = []
    with pytest.raises(DiagnosticError) as failed:
        parse(WARNED + "    A[x] = T.float32(0)\n", warnings=found.append)
    assert [d.level for d in failed.value.diagnostics] == ["warning", "warning", "error"] and not found


def test_included_files_warn(tmp_path: Path) -> None:
    (tmp_path / "part.rlx").write_text(WARNED)
    main = tmp_path / "main.rlx"
    main.write_text('@I.ir_module\nclass M:\n    part = I.include("part.rlx")\n')
    found: list[Diagnostic] = []
    load(main, warnings=found.append)
    assert {d.span.source.name.rsplit("/", 1)[-1] for d in found if d.span} == {"part.rlx"}


def test_the_language_server_shows_them() -> None:
    document = Document("w.rlx", WARNED)
    assert document.module is not None and [d.level for d in document.diagnostics] == ["warning", "warning"]
