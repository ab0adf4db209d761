"""`relax-repl`: at a terminal a line editor, else a transcript of the inputs that come from files, options or a pipe.

Exit: 0 done, 1 an input failed, 2 wrong command line, 70 internal error, 130 interrupted, 141 nobody reads the output.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TextIO

from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.cli.crash import INTERNAL_ERROR, CrashGuard
from relaxlang.cli.report import Reporter

if TYPE_CHECKING:
    from relaxlang.repl.session import Result
    from relaxlang.repl.transcript import Entry

DONE, FAILED, USAGE_ERROR, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

USAGE = """\
usage: relax-repl [OPTION]... [FILE.rlx] [SCRIPT.session]...

  FILE.rlx        load this module first
  SCRIPT.session  run its inputs and print a transcript
  -e INPUT        run an input (again: several) and print a transcript
  --keep-going    go on after an input that failed
  --json          print one JSON object for each input: text, struct info of the
                  value, seconds, diagnostics
  --bless         rewrite the outputs in the scripts to what they are now
  --vi            edit with the keys of vi
  --color WHEN    auto, always or never
  --version, --help

Without scripts and -e it reads from the terminal, or from a pipe."""


class Options(NamedTuple):
    """A command line that was read."""

    modules: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    color: str = "auto"


_FLAGS = ("--keep-going", "--json", "--bless", "--vi", "--version", "--help", "-h")


def read_options(words: Sequence[str]) -> Options:
    """The options of a command line. Raises RLX70xx for what makes no sense."""
    from relaxlang.base.diagnostics import fail
    from relaxlang.base.suggest import did_you_mean

    modules: list[str] = []
    scripts: list[str] = []
    inputs: list[str] = []
    flags: set[str] = set()
    color = "auto"
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in ("-e", "--color") or (word.startswith("-e") and word[2:3] != "="):
            if word.startswith("-e") and word != "-e":
                name, equals, value = "-e", "=", word[2:]
            if not equals:
                if not rest:
                    fail("RLX7002", f"`{name}` needs a value")
                value = rest.pop(0)
            if name == "-e":
                inputs.append(value)
            elif value in ("auto", "always", "never"):
                color = value
            else:
                fail("RLX7002", f"`--color` takes auto, always or never, not `{value}`")
        elif word in _FLAGS:
            flags.add(word)
        elif word.startswith("-") and word != "-":
            near = did_you_mean(word, [*_FLAGS, "--color"])
            fail("RLX7001", f"there is no option `{word}`", help=f"did you mean `{near}`?" if near else "see `--help`")
        else:
            (scripts if word.endswith(".session") or word == "-" else modules).append(word)
    if len(modules) > 1:
        fail("RLX7003", "one module is loaded at a time", help="scripts are files that end in .session")
    return Options(tuple(modules), tuple(scripts), tuple(inputs), frozenset(flags), color)


def main(words: Sequence[str] | None = None) -> int:
    """Run `relax-repl` with these words (default: the process's) and return the exit code. Nothing is raised."""
    words = sys.argv[1:] if words is None else words
    try:
        status = INTERNAL_ERROR
        with CrashGuard(words, "relax-repl", ".session") as guard:
            status = _guarded(words, guard)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # What is still buffered must not be written when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _guarded(words: Sequence[str], guard: CrashGuard) -> int:
    try:
        options = read_options(words)
    except RelaxlangError as fault:
        Reporter().error(fault, in_program=False)
        return USAGE_ERROR
    if options.flags & {"--help", "-h"}:
        sys.stdout.write(USAGE + "\n")
        return DONE
    if "--version" in options.flags:
        from relaxlang import __version__

        sys.stdout.write(f"relax-repl {__version__}\n")
        return DONE
    try:
        if "--bless" in options.flags:
            return _bless(options.scripts)
        first = [f":load {_quoted(name)}" for name in options.modules]
        if options.scripts or options.inputs or not sys.stdin.isatty():
            from relaxlang.repl.transcript import Entry

            return _Transcript(options, guard).run(chain((Entry(text, None) for text in first), _inputs(options)))
    except RelaxlangError as fault:
        Reporter(color=options.color).error(fault, in_program=False)
        return USAGE_ERROR
    return _interact(options, first)


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _interact(options: Options, first: Sequence[str]) -> int:
    from relaxlang.base.config import config
    from relaxlang.repl.session import Session

    if config.dumb_terminal or not sys.stdout.isatty():
        from relaxlang.repl.plain import interact_plainly

        status = interact_plainly(Session(), first)
    else:
        from relaxlang.repl.ui import interact

        status = interact(Session(), first, vi="--vi" in options.flags, color=options.color)
    # CPython ends a process as if by Ctrl-C when one ever passed through code that was a string, as that of generated
    # classes, no matter that it was handled. Running any such code makes it forget.
    exec("")
    return status


def _inputs(options: Options) -> Iterator[Entry]:
    from relaxlang.repl.transcript import Entry, chunks, read_script

    for name in options.scripts:
        if name != "-":
            script = read_script(_text(name))
            for at, entry in enumerate(script.entries):
                yield entry if at else entry._replace(prose=script.heading.rstrip("\n"))
            if script.ending:
                yield Entry("", None, script.ending)
    yield from (Entry(text, None) for text in options.inputs)
    if "-" in options.scripts or not (options.scripts or options.inputs):
        yield from (Entry(text, None) for text in chunks(_lines(sys.stdin)))


def _lines(stream: TextIO) -> Iterator[str]:
    """The lines of a stream, each as soon as it is there; pipes from Windows end them with CR and LF."""
    while line := stream.readline():
        yield line.removesuffix("\r\n") + "\n" if line.endswith("\r\n") else line


def _text(name: str) -> str:
    from relaxlang.driver import read_file
    from relaxlang.syntax.decode import decode_source

    return decode_source(name, read_file(name)).text


def _bless(scripts: Iterable[str]) -> int:
    from relaxlang.base.files import write_atomically
    from relaxlang.repl.transcript import blessed, read_script

    for name in scripts:
        write_atomically(name, blessed(read_script(_text(name))))
    return DONE


class _Transcript:
    """Runs inputs one after the other and prints what they give."""

    def __init__(self, options: Options, guard: CrashGuard) -> None:
        from relaxlang.repl.session import Session

        self.session = Session()
        self.keep_going = "--keep-going" in options.flags
        self.json = "--json" in options.flags
        self.guard = guard

    def run(self, inputs: Iterable[Entry]) -> int:
        """Run the inputs; 1 when one failed that a script does not expect to."""
        from relaxlang.repl.prompts import prompted

        status = DONE
        self.guard.text = ""
        for entry in inputs:
            text = entry.text
            if entry.prose and not self.json:
                self._write(("\n" if self.guard.text else "") + entry.prose.rstrip("\n") + "\n")
            if not text and entry.output is None:
                continue
            line = prompted(text, self.session.prompt)
            self.guard.text += line + "\n"
            if not self.json:
                # At once: what the program itself prints shall stand below it.
                self._write(line)
            result = self.session.execute(text)
            self._show(text, result)
            if not result.ok and not (entry.output or "").startswith("error["):
                status = FAILED
                if not self.keep_going:
                    break
            if result.done:
                break
        return status

    def _show(self, text: str, result: Result) -> None:
        from relaxlang.base.render import as_json
        from relaxlang.repl.transcript import said
        from relaxlang.repl.values import headline

        if self.json:
            diagnostics = [as_json(d) for d in result.diagnostics]
            facts = {
                "input": text,
                "ok": result.ok,
                "text": result.text,
                "language": result.language,
                "value": None if result.value is None else headline(result.value),
                "seconds": self.session.running,
                "compile_seconds": self.session.compiling,
            }
            self._write(json.dumps({**facts, "diagnostics": diagnostics}))
        elif output := said(result):
            self._write(output)

    def _write(self, line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
