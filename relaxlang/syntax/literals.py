"""What a number or string literal means: Python's rules, without Python's evaluator."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from relaxlang.base.diagnostics import Diagnostic
from relaxlang.base.source import Source, Span

MAX_DIGITS = 4300  # as in Python: converting more takes quadratic time

Report = Callable[[Diagnostic], None]

_PARTS = re.compile(r"([A-Za-z]*)(\"\"\"|'''|\"|')")
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|N\{([^}]*)\}|(\r\n|[\s\S]))"
)
# A joined line, a quoted character, and the controls.
_SINGLE = {"\n": "", "\r\n": "", "\\": "\\", "'": "'", '"': '"'} | dict(zip("abfnrtv", "\a\b\f\n\r\t\v"))
_NEEDS = {
    "x": "`\\x` needs 2 hexadecimal digits",
    "u": "`\\u` needs 4 hexadecimal digits",
    "U": "`\\U` needs 8 hexadecimal digits",
    "N": "`\\N` needs a `{name}`",
}


def integer(text: str, span: Span, report: Report) -> int:
    """The value of an integer literal; 0, after a report, when it has none."""
    if len(text) > MAX_DIGITS:
        report(
            Diagnostic(
                "RLX0003", f"an integer of {len(text)} digits is too long", span, help=f"at most {MAX_DIGITS} digits"
            )
        )
        return 0
    if text[0] == "0" and text.strip("0_") and text.isdigit() | ("_" in text and text.replace("_", "").isdigit()):
        help = f"write `{text.lstrip('0_')}`, or `0o{text.lstrip('0_')}` for an octal number"
        report(Diagnostic("RLX0003", f"a decimal number cannot begin with 0: `{text}`", span, help=help))
        return 0
    return int(text, 0)


def string_content(text: str) -> tuple[str, int, int]:
    """Of one string literal as written: its prefix in lower case, and where its content begins and ends."""
    found = _PARTS.match(text)
    if found is None:
        raise ValueError(f"not a string literal: {text[:20]!r}")
    return found[1].lower(), found.end(), len(text) - len(found[2])


def string(text: str, source: Source, start: int, report: Report) -> str:
    """The value of one string literal, written as `text` at the offset `start`."""
    prefix, begin, end = string_content(text)
    content = text[begin:end]
    if "b" in prefix or "f" in prefix:
        kind = "byte strings" if "b" in prefix else "f-strings"
        span = Span(source, start, start + len(prefix))
        report(
            Diagnostic(
                "RLX0011",
                f"{kind} are not part of the language",
                span,
                help=f"remove the prefix `{text[: len(prefix)]}`",
            )
        )
    if "\r" in content:
        content = content.replace("\r\n", "\n")
    if "\\" not in content or "r" in prefix:
        return content

    def replace(found: re.Match[str]) -> str:
        value = _escape(found)
        if value is None:
            at = start + begin + found.start()
            why = _NEEDS.get(
                found[6],
                f"no character is named `{found[5]}`" if found[5] is not None else "there is no such character",
            )
            report(
                Diagnostic(
                    "RLX0003", f"`{found[0]}` is not an escape sequence: {why}", Span(source, at, at + len(found[0]))
                )
            )
            return ""
        return value

    return _ESCAPE.sub(replace, content)


def _escape(found: re.Match[str]) -> str | None:
    octal, x, u, long, name, single = found.groups()
    if single is not None:
        return None if single in _NEEDS else _SINGLE.get(single, found[0])  # Python keeps an unknown escape as it is
    if name is not None:
        try:
            return unicodedata.lookup(name)
        except KeyError:
            return None
    code = int(octal, 8) if octal else int(x or u or long, 16)
    return chr(code) if code <= 0x10FFFF else None
