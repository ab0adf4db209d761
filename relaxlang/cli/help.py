"""The option table for people: `--help`, `--help-all`, and what a call without a file shows."""

from __future__ import annotations

from relaxlang.cli.configuration import SETTINGS
from relaxlang.cli.options import GROUPS, Option

USAGE_TEXT = """\
usage: relaxc [OPTION]... FILE...        (`-` reads from stdin)
       relaxc FILE                       compile to FILE's name with .rlxe
       relaxc FILE -o OUT                compile to what the suffix of OUT says
       relaxc MODEL.onnx -o OUT.rlx      import a model of ONNX
       relaxc FILE --emit=tir            print a stage: rlx, tir, llvm, asm, vm
       relaxc FILE --run --random 0      compile, run, print the result"""

EPILOG = (
    "Exit: 0 done, 1 errors in a program, 2 wrong command line, 3 failed while running, 70 internal error, 130 Ctrl-C."
)

_COLUMN = 29
_WIDTH = 100


def help_text(everything: bool) -> str:
    """The usage lines and the groups of options, rare ones only when `everything` is asked for."""
    parts = [USAGE_TEXT]
    for title, options in GROUPS.items():
        rows = [row for option in options if everything or not option.rare for row in _rows(option)]
        parts.append("\n".join([title + ":", *rows]))
    if everything:
        from relaxlang.cli.build_options import TITLE, composed_options

        parts.append("\n".join([TITLE + ":", *(row for c in composed_options() for row in _rows(c.option))]))
        parts.append("\n".join(["Settings, in `[tool.relaxlang]` of pyproject.toml or as `RELAXLANG_TARGET` and so on:",
                                *("  " + line for line in _wrapped(", ".join(SETTINGS)))]))  # fmt: skip
    return "\n\n".join([*parts, EPILOG]) + "\n"


def _rows(option: Option) -> list[str]:
    short = next((n for n in option.names if not n.startswith("--")), "")
    long = next(n for n in option.names if n.startswith("--"))
    value = {"flag": "", "maybe": f"[={option.metavar}]"}.get(option.kind, f"={option.metavar}")
    head = f"  {short + ', ' if short else '    '}{long}{value}"
    lines = _wrapped(option.help)
    if len(head) >= _COLUMN:
        return [head, *(" " * _COLUMN + line for line in lines)]
    return [head.ljust(_COLUMN) + lines[0], *(" " * _COLUMN + line for line in lines[1:])]


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + len(word) >= _WIDTH - _COLUMN:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines
