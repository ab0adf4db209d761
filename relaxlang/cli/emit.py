"""What is written where: kinds of output, `-o` and `--emit`, and writing it all at the end, when nothing can fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from relaxlang.base.colors import ColorChoice, wants_color
from relaxlang.base.diagnostics import fail
from relaxlang.base.files import write_atomically
from relaxlang.base.source import Span
from relaxlang.cli.compilation import Compilation
from relaxlang.cli.options import CommandLine, check_word
from relaxlang.cli.report import write_out
from relaxlang.syntax.side_file import side_file, side_file_bytes

if TYPE_CHECKING:
    from relaxlang.codegen.aot.library import AotLibrary


class Kind(NamedTuple):
    """A kind of output: the suffix of its files, a line about it, and what makes it (bytes: no text for a terminal)."""

    suffix: str
    help: str
    make: Callable[[Compilation], str | bytes]
    binary: bool = False


def _rlx(c: Compilation) -> str:
    dialect = c.settings.dialect
    if dialect is None or c.is_imported:
        return c.rewritten.script(dialect=dialect)
    from relaxlang.syntax.migrate import migrate

    return migrate(c.source, c.rewritten, dialect)


def _beside(c: Compilation, output: Output) -> tuple[str, bytes] | None:
    """A module's text for a file, and the content of the file beside it; None when its constants are few or it is no
    text in the canonical style."""
    if output.kind not in _PROGRAMS or c.settings.dialect is not None:
        return None
    store: dict[str, Any] = {}
    text = (c.rewritten if output.kind == "rlx" else c.scheduled).script(constants="file", store=store)
    if sum(array.nbytes for array in store.values()) <= INLINE_BYTES:
        return None
    return text, side_file_bytes(store)


def _llvm_opt(c: Compilation) -> str:
    from relaxlang.codegen.compile import optimized

    return str(optimized(c.llvm, c.target))


def _asm(c: Compilation) -> str:
    from relaxlang.codegen.compile import assembly

    return assembly(c.llvm, c.target)


def _obj(c: Compilation) -> bytes:
    from relaxlang.codegen.cache import fetch
    from relaxlang.codegen.compile import object_code

    return fetch(c.llvm, c.target, object_code)


def _c(c: Compilation) -> str:
    from relaxlang.codegen.c.source import c_source

    return c.library.c_source if c.library is not None else c_source(dict(c.scheduled.prim_funcs()))


def _ahead(c: Compilation) -> AotLibrary:
    if c.library is None:
        fail("RLX7003", "a library for C programs is made by the executor `aot`", help="add `--executor=aot`")
    return c.library


def _static_library(c: Compilation) -> bytes:
    from relaxlang.codegen.aot.export import static_library

    return static_library(_ahead(c))


def _model_library(c: Compilation) -> bytes:
    from relaxlang.codegen.aot.export import model_library

    return model_library(_ahead(c))


def _library(c: Compilation) -> bytes:
    from relaxlang.codegen.library import shared_library

    executable = c.executable
    with c.settings.clock.phase("link"):
        return shared_library(executable)


def _html(c: Compilation) -> str:
    from relaxlang.cli.html.page import html_report

    return html_report(c)


def _nothing(c: Compilation) -> str:
    _ = c.program
    return ""


def _graph(c: Compilation) -> str:
    from relaxlang.runtime.graph_module import GraphExecutorFactory

    program = c.program
    if not isinstance(program, GraphExecutorFactory):
        fail("RLX7003", "a graph is made by the executor `graph`", help="add `--executor=graph`")
    return program.get_graph_json()


def _memory(c: Compilation) -> str:
    from relaxlang.analysis.memory_report import memory_text, timelines

    return memory_text(timelines(c.planned, c.settings.dims))


def _memory_page(c: Compilation) -> str:
    from relaxlang.analysis.memory_report import memory_html, timelines

    return memory_html(timelines(c.planned, c.settings.dims))


KINDS: dict[str, Kind] = {
    "rlx": Kind(".rlx", "the module after the pipeline of -p, or as it was read", _rlx),
    "tir": Kind(".tir.rlx", "the module after legalisation and scheduling", lambda c: c.scheduled.script()),
    "llvm": Kind(".ll", "LLVM IR of the kernels, before LLVM's passes", lambda c: c.llvm),
    "llvm-opt": Kind(".opt.ll", "LLVM IR after LLVM's passes", _llvm_opt),
    "asm": Kind(".s", "assembly of the kernels", _asm),
    "obj": Kind(".o", "object file of the kernels", _obj, True),
    "c": Kind(".c", "C99 source of the kernels; with --executor=aot of a library, its header beside it", _c),
    "header": Kind(".h", "C header of a library of --executor=aot", lambda c: _ahead(c).header),
    "lib": Kind(".a", "static library of --executor=aot, its header beside it", _static_library, True),
    "tar": Kind(".tar", "library of --executor=aot with parameters, metadata and memory report", _model_library, True),
    "vm": Kind(".vm.txt", "bytecode of the Relax functions, as text", lambda c: c.executable.as_text()),
    "graph": Kind(".json", "JSON of --executor=graph: kernel calls over numbered storage", _graph),
    "memory": Kind(".memory.txt", "when which memory is needed, after planning (with a path ending in .html a page)",
                   _memory),
    "exe": Kind(".rlxe", "executable for `load_module` (with a path ending in .so a shared library)",
                lambda c: c.executable.to_bytes(), True),
    "html": Kind(".html", "a page: passes and their changes, graph, memory, kernels as TIR, LLVM and assembly", _html),
    "none": Kind("", "nothing, after building all: for --print-ir-after, --timing and the like", _nothing),
}  # fmt: skip

SUFFIXES = {
    ".rlx": "rlx", ".ll": "llvm", ".s": "asm", ".o": "obj", ".c": "c", ".h": "header", ".a": "lib", ".tar": "tar",
    ".html": "html", ".so": "exe", ".rlxe": "exe",
}  # fmt: skip
# What some kinds are when their file has this suffix.
_BY_PATH: dict[tuple[str, str], Callable[[Compilation], str | bytes]] = {
    ("exe", ".so"): _library, ("memory", ".html"): _memory_page,
}  # fmt: skip
_WITH_HEADER = ("c", "obj", "lib")
INLINE_BYTES = 1 << 16
"""A text with larger constants than this in all keeps them in a file beside it."""
_PROGRAMS = ("rlx", "tir")  # what is shown in the colours of the language
_PLAIN = ("vm", "graph", "exe", "none")  # what a built program can still be shown as


class Output(NamedTuple):
    """One thing to write: its kind, and where to (`-`: stdout; empty: the kind's usual place)."""

    kind: str
    path: str
    span: Span | None

    @property
    def is_shown(self) -> bool:
        """Whether it goes to stdout."""
        return self.kind != "none" and (self.path == "-" or (not self.path and not KINDS[self.kind].binary))


_SEVERAL = "several files, or modules of one, give"
_ARGUMENTS = ("--arg", "--random", "--dim")  # what --check-passes and --reduce take too


def plan(line: CommandLine) -> list[Output]:
    """The outputs that a command line asks for. Raises RLX7002 and RLX7003 for what makes no sense."""
    outputs = [_emit(item) for item in line.items("--emit")]
    target = line.span("--output")
    several = len(line.files) > 1 or line.has("--split-input")
    if target is not None:
        if several and target.text != "-":
            fail("RLX7003", f"one output file cannot hold what {_SEVERAL}", target, help="leave `-o` out")
        outputs = _with_path(outputs, target)
    for name in ("--arg", "--random", "--dim", "--save-result", "--expect", "--repeat", "--profile", "--compare"):
        runs = line.has("--run") or (name in _ARGUMENTS and (line.has("--check-passes") or line.has("--reduce")))
        runs = runs or (name == "--dim" and any(output.kind in ("memory", "html") for output in outputs))
        if line.typed(name) and not runs:
            fail("RLX7003", f"`{name}` is for running a function", help="add `--run`, or `--run=FN`")
    for name in ("--in-place", "--diff", "--width"):
        if line.typed(name):
            fail("RLX7003", f"`{name}` is for rewriting files", help="add `--fmt` or `--fix`")
    if line.has("--dialect") and not any(output.kind == "rlx" for output in outputs):
        fail("RLX7003", "`--dialect` is for writing a script", line.span("--dialect"), help="add `--emit=rlx`")
    if line.has("--save-result") and several:
        fail("RLX7003", "one file cannot hold the results of several programs", line.span("--save-result"))
    for name in ("--trace", "--save-result"):
        if any(_is_file(line.value(name), file) for file in line.files):
            fail("RLX7003", f"`{line.value(name)}` is an input: `{name}` would replace it", line.span(name))
    if line.has("--check") and (outputs or line.has("--run")):
        fail("RLX7003", "`--check` writes and runs nothing", help="leave it out: everything is checked anyway")
    if not outputs and not any(line.has(n) for n in ("--run", "--check", "--dump-pipeline", "--verify-diagnostics")):
        outputs.append(Output("exe", "", None))
    for output in outputs:
        if output.path not in ("", "-") and several:
            fail("RLX7003", f"one output file cannot hold what {_SEVERAL}", output.span)
    written: set[str] = set()
    for output in outputs:
        if output.path in written:
            fail("RLX7003", f"two outputs go to `{output.path}`", output.span, help="name another file")
        if output.path not in ("", "-") and not output.path.startswith("/dev/"):
            written.add(output.path)
    return outputs


def _is_file(path: str, other: str) -> bool:
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def _emit(item: Span) -> Output:
    text, equals, path = item.text.partition("=")
    kind = Span(item.source, item.start, item.start + len(text))
    check_word(kind, KINDS, "`--emit` takes")
    if equals and not path:
        fail("RLX7002", "the path is missing", item, help=f"write `{text}=PATH`, or `{text}` alone")
    return Output(text, path, item)


def _with_path(outputs: list[Output], target: Span) -> list[Output]:
    free = [output for output in outputs if not output.path]
    if not outputs:
        suffix = os.path.splitext(target.text)[1]
        if target.text == "-":
            fail("RLX7003", "`-o -` needs `--emit` to say what to write", help="for example `--emit=tir -o -`")
        if suffix not in SUFFIXES:
            known = " ".join(SUFFIXES)
            fail("RLX7002", f"the suffix `{suffix}` does not say what to write", target,
                 help=f"known suffixes: {known}; or name the kind, as in `--emit=asm`")  # fmt: skip
        return [Output(SUFFIXES[suffix], target.text, target)]
    if len(free) != 1 and not (free and target.text == "-"):
        fail("RLX7003", f"`-o` is one place, for {len(free)} outputs", target, help="write `--emit=KIND=PATH,…`")
    return [o if o.path else Output(o.kind, target.text, target) for o in outputs]


_WATCHING = (
    "--print-ir-after", "--print-ir-before", "--print-ir-changed", "--print-ir-diff", "--print-ir-dir", "--stats",
    "--verify-each",
)  # fmt: skip


def _note_idle_flags(c: Compilation, outputs: list[Output]) -> None:
    """Say so when passes are to be watched and none runs."""
    line = c.settings.line
    if c.settings.own_pipeline or line.has("--run") or any(output.kind != "rlx" for output in outputs):
        return
    for name in _WATCHING:
        if outputs and line.has(name):
            c.settings.reporter.note(
                f"`{name}` has nothing to show: `--emit=rlx` writes the module as it was read; `-p` or `-O` runs passes"
            )


def emit(c: Compilation, outputs: Iterable[Output]) -> None:
    """Make all outputs, then write them: when making one fails, none is written."""
    outputs = list(outputs)
    _note_idle_flags(c, outputs)
    made: list[tuple[Output, str | bytes]] = []
    beside: dict[str, bytes] = {}
    for output in outputs:
        placed = _placed(c, output)
        apart = None if placed.path == "-" or c.is_built else _beside(c, placed)
        if apart is not None:
            beside[side_file(placed.path)] = apart[1]
        made.append((placed, _content(c, output) if apart is None else apart[0]))
        if placed.kind in _WITH_HEADER and placed.path != "-" and c.library is not None:
            beside[os.path.join(os.path.dirname(placed.path), f"{c.library.mod_name}.h")] = c.library.header.encode()
    for path, data in beside.items():
        write_atomically(path, data)
    shown = [o.kind for o, _ in made if o.path == "-" and o.kind != "none"]
    colors = wants_color(sys.stdout, cast(ColorChoice, c.settings.line.value("--color", "auto")))
    for output, content in made:
        if output.kind == "none":
            continue
        if output.path != "-":
            write_atomically(output.path, content)
        elif isinstance(content, bytes):
            write_out(content)
        else:
            head = f"# {output.kind}\n" if len(shown) > 1 else ""
            text = head + content + ("" if content.endswith("\n") else "\n")
            if colors and output.kind in _PROGRAMS:
                from relaxlang.syntax.coloring import colored

                text = colored(text)
            write_out(text)


def _content(c: Compilation, output: Output) -> str | bytes:
    if c.is_built and output.kind not in _PLAIN:
        fail("RLX7003", f"`{c.name}` is a built program, which has no {output.kind} any more", output.span)
    make = _BY_PATH.get((output.kind, os.path.splitext(output.path)[1]), KINDS[output.kind].make)
    with c.settings.clock.phase(f"emit {output.kind}"):
        return make(c)


def _placed(c: Compilation, output: Output) -> Output:
    """The output with its path: text without one goes to stdout, anything else to a file named after the input."""
    kind = KINDS[output.kind]
    if output.path == "-":
        if kind.binary and sys.stdout.isatty():
            fail(
                "RLX7003", f"{output.kind} is binary and not for a terminal", output.span, help="name a file with `-o`"
            )
        return output
    if output.path:
        if c.name != "-" and _is_file(output.path, c.name):
            fail("RLX7003", f"`{output.path}` is the input: writing there would replace it", output.span,
                 help="name another file; `--fmt -i` and `--fix` change a source in its place")  # fmt: skip
        return output
    if not kind.binary:
        return output._replace(path="-")
    if c.name == "-":
        fail("RLX7003", f"{output.kind} of what comes from stdin needs a file name", help="give one with `-o`")
    path = c.stem + kind.suffix
    if c.is_built and os.path.exists(path) and os.path.samefile(path, c.name):
        fail(
            "RLX7003", f"`{c.name}` is built already", help="`--run` runs it, `--emit=vm` shows it, `-o x.so` links it"
        )
    return output._replace(path=path)
