"""From the bytes of a file to its text."""

from __future__ import annotations

import re

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError
from relaxlang.base.source import Source, Span

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # bytes that no text has; \x1b begins terminal colours


def decode_source(name: str, data: bytes) -> Source:
    """The text of a file: UTF-8, with or without a byte order mark, any line breaks.

    Raises `DiagnosticError` (RLX0012) for what is no text, with the line of the first bad byte.
    """
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DiagnosticError([Diagnostic("RLX0012", f"`{name}` is UTF-16", help="save the file as UTF-8")])
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = error.object[: error.start].decode("utf-8")
        source = Source(name, good + error.object[error.start :].decode("utf-8", "replace"))
        binary = _CONTROL.search(data) is not None
        message = f"`{name}` is not text" if binary else f"byte 0x{error.object[error.start]:02x} is not valid UTF-8"
        span = Span(source, len(good), len(good) + 1)
        help = "" if binary else "save the file as UTF-8"
        raise DiagnosticError([Diagnostic("RLX0012", message, span, help=help)]) from None
    source = Source(name, text.replace("\r\n", "\n").replace("\r", "\n"))
    nul = source.text.find("\0")
    if nul >= 0:
        raise DiagnosticError([not_text(source, nul)])
    return source


def not_text(source: Source, at: int) -> Diagnostic:
    """What is wrong with a text that has a NUL character."""
    return Diagnostic("RLX0012", f"`{source.name}` is not text", Span(source, at, at + 1), label="a NUL character")
