"""`relaxc`: from a command line to an exit code.

0 done; 1 errors in a program; 2 a wrong command line; 3 the program failed while it ran, or its result is not the
expected one; 70 an internal error; 130 interrupted; 141 when whoever reads the output has gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, RelaxlangError, fail
from relaxlang.cli.options import CommandLine, read_command_line
from relaxlang.cli.report import Reporter, output_failed, write_out

if TYPE_CHECKING:
    from relaxlang.cli.compilation import Compilation
    from relaxlang.cli.crash import CrashGuard
    from relaxlang.cli.emit import Output
    from relaxlang.cli.run import Call, Request
    from relaxlang.cli.settings import Settings
    from relaxlang.ir.module import IRModule

_DEBUGGING = ("--check-passes", "--reduce")
DONE, FAULTY_PROGRAM, USAGE, FAILED_RUN, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141


def main(words: Sequence[str] | None = None) -> int:
    """Run `relaxc` with these words (default: the process's) and return the exit code. Nothing is raised."""
    words = sys.argv[1:] if words is None else words
    try:
        status = _guarded(words)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except OSError as error:
        _discard_output()
        Reporter().error(output_failed(error), in_program=False)
        return FAULTY_PROGRAM


def _discard_output() -> None:
    """Drop what is still buffered, so that Python doesn't try to write it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _guarded(words: Sequence[str]) -> int:
    from relaxlang.cli.crash import INTERNAL_ERROR, CrashGuard

    status = INTERNAL_ERROR
    with CrashGuard(words) as guard:
        status = _run(words, guard)
    return INTERNAL_ERROR if guard.crashed else status


def _run(words: Sequence[str], guard: CrashGuard) -> int:
    reporter = Reporter(_asked_style(words))
    try:
        line = read_command_line(words)
        reporter = Reporter(line.value("--diagnostics", "human"), line.value("--color", "auto"))
        text = _answer(line)
        if not text:
            from relaxlang.cli.configuration import configure

            try:
                guard.words = [*configure(line), *words]
            finally:
                reporter = Reporter(line.value("--diagnostics", "human"), line.value("--color", "auto"))
    except RelaxlangError as fault:
        reporter.error(fault, in_program=False)
        return USAGE
    try:
        if text:
            write_out(text)
            return DONE
        if not line.files and not line.has("--dump-pipeline"):
            from relaxlang.cli.help import USAGE_TEXT

            if reporter.style == "human":
                reporter.say(f"{USAGE_TEXT}\n\n")
            reporter.error(RelaxlangError("no input file; `relaxc --help` shows the options"), in_program=False)
            return USAGE
        if line.has("--watch"):
            from relaxlang.cli.watch import watch

            return watch(line, reporter, lambda: _work(line, reporter, guard))
        return _work(line, reporter, guard)[0]
    except RelaxlangError as fault:
        reporter.error(fault, in_program=False)
        return USAGE if _is_usage(fault) else FAULTY_PROGRAM
    finally:
        reporter.finish()


def _work(line: CommandLine, reporter: Reporter, guard: CrashGuard) -> tuple[int, set[str]]:
    """What is to be done with the files; the exit code, and for `--watch` the sources that were read."""
    if line.has("--fmt") or line.has("--fix"):
        from relaxlang.cli.rewrite import rewrite

        return rewrite(line, reporter), set()
    session = _Session(line, reporter, guard)
    return session.run(), session.sources


def _asked_style(words: Sequence[str]) -> str:
    """The style of diagnostics that a command line asks for which could not be read as a whole."""
    known = ("human", "short", "json", "github")
    given = [style for style in known if f"--diagnostics={style}" in words]
    return given[-1] if given else "human"


def _answer(line: CommandLine) -> str:
    """What needs no file: help, version, lists. Empty when there are files to work on."""
    if line.has("--help") or line.has("--help-all"):
        from relaxlang.cli.help import help_text

        return help_text(line.has("--help-all"))
    if line.has("--version"):
        from relaxlang.cli.version import version_text

        return version_text(line.has("--verbose"))
    if line.has("--completion"):
        from relaxlang.cli.completion import completion

        return completion(line.value("--completion"))
    if line.has("--clear-cache"):
        from relaxlang.cli.version import clear_cache

        return clear_cache()
    if line.has("--explain"):
        from relaxlang.base.codes import explain

        return explain(line.value("--explain")) + "\n"
    if line.has("--list"):
        from relaxlang.cli.listing import listing

        return listing(line.value("--list"), line.has("--json"))
    if line.has("--describe"):
        from relaxlang.cli.describe import describe

        return describe(line.value("--describe"), line.span("--describe"), line.has("--json"))
    return ""


def _is_usage(fault: RelaxlangError) -> bool:
    """Whether an error is about the command line although it showed late, as with an output that a file cannot give."""
    return isinstance(fault, DiagnosticError) and all(d.code.startswith("RLX70") for d in fault.diagnostics)


def _sources(mod: IRModule) -> set[str]:
    """The names of the texts that a module was read from: its file, and those included there."""
    from relaxlang.ir.visit import walk

    spans = (node.span for function in mod.functions.values() for node in walk(function))
    return {span.source.name for span in spans if span is not None}


class _Session:
    """The work on the files of a command line."""

    def __init__(self, line: CommandLine, reporter: Reporter, guard: CrashGuard) -> None:
        from relaxlang.cli.progress import status_line
        from relaxlang.cli.timing import Clock

        self.line = line
        self.reporter = reporter
        self.guard = guard
        self.sources: set[str] = set()
        reporter.status = status_line()
        self.clock = Clock(reporter.status)

    def run(self) -> int:
        """Work on each file; the worst of their exit codes, or that of a wrong command line."""
        try:
            settings, outputs, request = self._read()
        except RelaxlangError as fault:
            self.reporter.error(fault, in_program=False)
            return USAGE
        if self.line.has("--dump-pipeline"):
            write_out(settings.pipeline_text() + "\n")
        status = DONE
        if self.line.has("--compare-ir"):
            return self._compare(settings)
        for name in self.line.files:
            with self.clock.phase(name):
                status = max(status, self._file(name, settings, outputs, request))
        for statistics in settings.statistics:
            self.reporter.say(statistics.report())
        if self.line.has("--timing"):
            self.reporter.say(self.clock.report(self.line.value("--timing")) + "\n")
        if self.line.has("--trace"):
            from relaxlang.base.files import write_atomically

            path, text = self.line.value("--trace"), self.clock.trace() + "\n"
            if path == "-":
                write_out(text)
            else:
                write_atomically(path, text)
        return status

    def _read(self) -> tuple[Settings, list[Output], Request | None]:
        from relaxlang.cli.emit import plan
        from relaxlang.cli.settings import Settings

        settings = Settings(self.line, self.reporter, self.clock)
        outputs = plan(self.line)
        if not any(self.line.has(option) for option in ("--run", *_DEBUGGING)):
            return settings, outputs, None
        from relaxlang.cli.run import read_request

        return settings, outputs, read_request(self.line)

    def _file(self, name: str, settings: Settings, outputs: list[Output], request: Request | None) -> int:
        status = DONE
        try:
            for k, compilation in enumerate(self._parts(name, settings)):
                if k and (request is not None or any(output.is_shown for output in outputs)):
                    from relaxlang.cli.parts import SEPARATOR

                    write_out(SEPARATOR)
                status = max(status, self._part(compilation, outputs, request))
        except RelaxlangError as fault:
            return max(status, self._failed(fault))
        return status

    def _parts(self, name: str, settings: Settings) -> list[Compilation]:
        """The file, or with `--split-input` the modules in it."""
        from relaxlang.cli.compilation import Compilation

        whole = Compilation(name, settings, self.guard)
        if not self.line.has("--split-input"):
            return [whole]
        if whole.is_built or whole.is_imported:
            fail("RLX7003", f"`--split-input` is for text, and `{name}` is none")
        from relaxlang.cli.parts import split_input

        source = whole.source
        return [Compilation(name, settings, self.guard, source, part) for part in split_input(source)]

    def _part(self, compilation: Compilation, outputs: list[Output], request: Request | None) -> int:
        try:
            if self.line.has("--verify-diagnostics"):
                return self._verify(compilation, outputs, request)
            return self._make(compilation, outputs, request)
        except RelaxlangError as fault:
            return self._failed(fault)

    def _failed(self, fault: RelaxlangError) -> int:
        usage = _is_usage(fault)
        if isinstance(fault, DiagnosticError):
            self.sources.update(d.span.source.name for d in fault.diagnostics if d.span is not None)
        self.reporter.error(fault, in_program=not usage)
        return USAGE if usage else FAULTY_PROGRAM

    def _make(self, compilation: Compilation, outputs: list[Output], request: Request | None) -> int:
        from relaxlang.cli.emit import emit

        if not compilation.is_built:
            parsed = compilation.parsed
            if self.line.has("--watch"):
                self.sources |= _sources(parsed)
        if compilation.warnings and not self.line.has("--verify-diagnostics"):
            self.reporter.warn(compilation.warnings)
        if request is not None and any(self.line.has(option) for option in _DEBUGGING):
            return self._debug(compilation, request)
        question = self.line.span("--why-not")
        if question is not None:
            from relaxlang.cli import debugging

            write_out(debugging.why_not(compilation, question))
            return DONE
        if request is not None and any(output.kind == "html" for output in outputs):
            from relaxlang.cli.run import prepare

            prepare(compilation, request)  # so that the page can show how the call runs
        emit(compilation, outputs)
        return DONE if request is None else self._call(compilation, request)

    def _verify(self, compilation: Compilation, outputs: list[Output], request: Request | None) -> int:
        """Do the work, and compare what is wrong with what the comments announce."""
        from relaxlang.cli.parts import unexpected

        status, reported = DONE, tuple[Diagnostic, ...]()
        try:
            status = self._make(compilation, outputs, request)
        except DiagnosticError as fault:
            if _is_usage(fault):
                raise
            reported = fault.diagnostics
        wrong = unexpected(compilation.source, compilation.part, (*compilation.warnings, *reported))
        if wrong is not None:
            self.reporter.error(wrong)
        return status if wrong is None else FAULTY_PROGRAM

    def _compare(self, settings: Settings) -> int:
        """Compare the programs of two files."""
        from relaxlang.cli.compilation import Compilation
        from relaxlang.cli.debugging import compare_ir

        if len(self.line.files) != 2:
            self.reporter.error(RelaxlangError("`--compare-ir` takes two files"), in_program=False)
            return USAGE
        left, right = (Compilation(name, settings, self.guard) for name in self.line.files)
        difference = compare_ir(left, right)
        if difference is not None:
            self.reporter.error(difference, in_program=True)
        return DONE if difference is None else FAULTY_PROGRAM

    def _debug(self, compilation: Compilation, request: Request) -> int:
        """`--reduce`, or else `--check-passes`."""
        from relaxlang.cli import debugging

        if self.line.has("--reduce"):
            debugging.reduce(compilation, self.line, request)
            return DONE
        fault = debugging.check(compilation, request)
        if fault is not None:
            self.reporter.error(fault, in_program=True)
        return DONE if fault is None else FAILED_RUN

    def _call(self, compilation: Compilation, request: Request) -> int:
        from relaxlang.cli import run

        _ = compilation.program
        try:
            call = run.prepare(compilation, request)
        except RelaxlangError as fault:
            self.reporter.error(fault, in_program=False)
            return USAGE
        try:
            wanted = run.interpret(compilation, call) if self.line.has("--compare") else None
            results = run.execute(compilation, call, request)
            self._observe(compilation, call)
        except RelaxlangError as fault:
            self.reporter.error(fault, in_program=False)
            return FAILED_RUN
        if len(self.line.files) > 1:
            write_out(f"# {compilation.name}\n")
        run.show(results)
        if request.save:
            run.save(results, request.save, self.reporter.note)
        try:
            if wanted is not None:
                self.reporter.say(run.compare_with(results, wanted, request))
            if request.expected:
                run.compare(results, request)
        except RelaxlangError as fault:
            self.reporter.error(fault, in_program=False)
            return FAILED_RUN
        return DONE

    def _observe(self, compilation: Compilation, call: Call) -> None:
        """Run the call again with its kernels watched, for `--profile` and `--trace`."""
        if not self.line.has("--profile") and not self.line.has("--trace"):
            return
        from relaxlang.cli import profile

        with self.clock.phase("profile"):
            made = profile.observe(call)
        self.clock.add_kernels(made.runs)
        if self.line.has("--profile"):
            show = profile.as_json if self.line.value("--profile") == "json" else profile.table
            self.reporter.say(show(profile.rows(compilation, made), made))
