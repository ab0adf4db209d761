"""The options of `relaxc` as a table, and the parser that reads a command line by it.

Own parser: a value that is optional (`--run[=FN]`) must not swallow the file that follows, a misspelt option should be
answered with the right one, and diagnostics point into a value's text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, NoReturn

from relaxlang.base.diagnostics import fail
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import did_you_mean

# "flag" takes no value; "value" needs one, the last counts; "repeat" needs one, all count; "maybe" takes one after `=`.
Kind = Literal["flag", "value", "repeat", "maybe"]


class Option(NamedTuple):
    """An option: its spellings (the long one first), how it takes a value, its line of help, the words it accepts.

    `rare` ones are shown by `--help-all` only.
    """

    names: tuple[str, ...]
    kind: Kind
    metavar: str
    help: str
    words: tuple[str, ...] = ()
    rare: bool = False

    @property
    def name(self) -> str:
        """The long spelling."""
        return self.names[0]


def _flag(names: str, help: str, rare: bool = False) -> Option:
    return Option(tuple(names.split()), "flag", "", help, (), rare)


def _value(names: str, metavar: str, help: str, words: tuple[str, ...] = (), rare: bool = False) -> Option:
    return Option(tuple(names.split()), "value", metavar, help, words, rare)


def _repeat(names: str, metavar: str, help: str, rare: bool = False) -> Option:
    return Option(tuple(names.split()), "repeat", metavar, help, (), rare)


LISTS = ("passes", "ops", "pipelines", "targets", "executors", "runtimes", "codes", "intrinsics", "emit")
LEVELS = ("0", "1", "2", "3")
SHELLS = ("bash", "zsh", "fish")
COMPOSED = ("--executor-", "--runtime-")
"""How options begin that are composed from registries; see `build_options`."""

GROUPS: dict[str, tuple[Option, ...]] = {
    "Input": (
        _repeat("--define -D", "N=VALUE", "value of the module's parameter N (`N = I.param(int)`)"),
        _repeat("--bind", "n=VALUE", "the size of the symbolic dimension n of Relax functions", True),
        _repeat("--include -I", "DIR", "a folder whose files may be included, beside the file's own", True),
        _flag("--check", "stop after parsing and checking"),
        _flag(
            "--split-input", "the modules of a file stand between lines `// -----` or `# -----`, each by itself", True
        ),
        _flag(
            "--verify-diagnostics", "succeed when just what comments `# error[RLX0203]: words` announce is wrong", True
        ),
        _flag("--watch", "compile again whenever a file changes, until Ctrl-C", True),
    ),
    "Output": (
        _value("--output -o", "OUT", "the output; its suffix says what: .rlx .ll .s .o .so .rlxe; -: stdout"),
        _repeat("--emit", "KIND[=PATH],…", "what to write: rlx, tir, llvm, asm, vm, obj, exe (`--list=emit`)"),
        _value("--dialect", "RELEASE", "the release of TVM that --emit=rlx writes for: tvm-0.10 to tvm-0.27", (), True),
        _flag("--fmt", "print the source formatted (-i: write it; with --diff, --check)"),
        _flag("--fix", "make the changes in the source that diagnostics are certain of"),
        _flag("--in-place -i", "write what --fmt makes to the file", True),
        _flag("--diff", "show what --fmt or --fix would change, and write nothing", True),
        _value("--width", "N", "columns of --fmt, default 120", (), True),
        _value("--target", "TEXT", "what to compile for, as in 'llvm -mcpu=znver4'; default: this machine"),
        _value("--target-host", "TEXT", "the target of the code around kernels", (), True),
        _value("--executor", "KIND", "what runs the program: vm, graph, aot (`--list=executors`), default vm"),
        _value("--runtime", "KIND", "what the program stands on: cpp, c (`--list=runtimes`), default cpp", (), True),
        _value("--mod-name", "NAME", "what the global symbols of the library begin with", (), True),
    ),
    "Passes": (
        _value("--pipeline -p", "TEXT", "passes or a named pipeline: 'legalize-ops{skip=matmul},normalize'"),
        _value("--opt-level -O", "N", "0: lowering alone, 1: no fusion, 2: default, 3: may round otherwise", LEVELS),
        _repeat("--skip", "PASS,…", "leave passes out", True),
        _value("--start-at", "PASS", "leave out the passes before this one", (), True),
        _value("--stop-after", "PASS", "leave out the passes after this one", (), True),
        _value("--bisect-limit", "N", "run only the first N passes, and say which they are", (), True),
        _flag("--verify-each", "check the rules of the IR after every pass that changes the module", True),
        _flag("--dump-pipeline", "print the pipeline as text"),
    ),
    "Inspect": (
        _repeat("--print-ir-after", "all|PASS,…", "print the module after passes, to stderr"),
        _repeat("--print-ir-before", "all|PASS,…", "print the module before passes", True),
        _flag("--print-ir-changed", "print the module after each pass that changes it", True),
        _flag("--print-ir-diff", "print what each pass changes", True),
        _value("--print-ir-dir", "DIR", "write the module after each pass to DIR/003-fuse-ops.rlx", (), True),
        _flag("--compare-ir", "compare the programs of two files, up to names; exit with 1 when they differ", True),
        _flag("--check-passes", "interpret the program after every pass; report the first that changes a result", True),
        Option(
            ("--reduce",),
            "maybe",
            "COMMAND",
            "shrink a program that fails, or on which COMMAND ('… {}') succeeds",
            rare=True,
        ),
        Option(("--timing",), "maybe", "json", "say where the time went", ("json",)),
        _value(
            "--trace", "FILE", "write phases, passes and kernels over time, for Perfetto or chrome://tracing", (), True
        ),
        _value("--why-not", "'fuse A B'", "say why two variables are not computed by one kernel", (), True),
        _flag("--stats", "say what each pass leaves: functions, bindings, kernels, nodes", True),
        _value("--list", "WHAT", "list passes, ops, pipelines, targets, executors, runtimes, codes, …", LISTS),
        _value("--describe", "NAME", "explain a pass, pipeline, operator, intrinsic or code"),
        _flag("--json", "lists and descriptions as JSON", True),
    ),
    "Run": (
        Option(("--run",), "maybe", "FN", "run a function (default: main) and print its result"),
        _repeat("--arg", "[NAME=]VALUE", "an argument: f32[4]=1,2,3,4  i64=3  shape[3,4]  @x.npy  @x.npz[:name]"),
        _value("--random", "SEED", "fill parameters that have no --arg: uniform in [-1, 1), integers 0 to 9"),
        _repeat("--dim", "n=16", "value of a symbolic dimension, for --random and --emit=memory"),
        _value("--save-result", "X.npy", "write the result to a file (a tuple: X.0.npy, X.1.npy, …)"),
        _repeat(
            "--expect", "@y.npy", "compare the result, exit with 3 when it differs (one for each of a tuple)", True
        ),
        _value(
            "--rtol", "R", "relative tolerance of --expect, default 1e-5, and of --compare, default: rounding", (), True
        ),
        _value(
            "--atol", "A", "absolute tolerance of --expect, default 1e-6, and of --compare, default: rounding", (), True
        ),
        _value("--repeat", "N", "run N times and print the times", (), True),
        Option(
            ("--profile",),
            "maybe",
            "json",
            "time, share, rates and nearness to the machine's peak of each kernel",
            ("json",),
        ),
        _flag("--compare", "interpret the program too; exit with 3 when the compiled code gives something else", True),
    ),
    "Diagnostics": (
        _value("--diagnostics", "STYLE", "human, short, json or github", ("human", "short", "json", "github")),
        _value("--color", "WHEN", "auto, always or never", ("auto", "always", "never")),
        _value("--explain", "CODE", "what a diagnostic code means"),
        _value("--completion", "SHELL", "print the completion script for bash, zsh or fish", SHELLS, True),
        _flag("--version", "the version; with -v of what it is made of, too"),
        _flag("--clear-cache", "remove compiled kernels and programs from the user's cache", True),
        _flag("--no-config", "heed neither `[tool.relaxlang]` of pyproject.toml nor the environment", True),
        _flag("--verbose -v", "say more", True),
        _flag("--help -h", "this text"),
        _flag("--help-all", "all options"),
    ),
}

_BY_NAME = {name: option for group in GROUPS.values() for option in group for name in option.names}


class CommandLine:
    """A command line that was read: `files`, and the values of each option as texts with a place. What other settings
    say (`configuration`) stands before them."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self._given: dict[str, list[Span]] = {}
        self._typed: dict[str, int] = {}

    def add(self, option: Option, value: str) -> None:
        """Note an occurrence of an option; one that takes no value has an empty one."""
        source = Source(option.name, value)
        self._given.setdefault(option.name, []).append(Span(source, 0, len(value)))
        self._typed[option.name] = self._typed.get(option.name, 0) + 1

    def configure(self, option: Option, values: Sequence[Span]) -> None:
        """Put the values of another setting before those that are there."""
        if values:
            self._given[option.name] = [*values, *self._given.get(option.name, [])]

    def given(self, option: Option) -> list[Span]:
        """The places of the values of an option that is not in the table."""
        return self._given.get(option.name, [])

    def has(self, name: str) -> bool:
        """Whether the option was given, here or by another setting."""
        return _BY_NAME[name].name in self._given

    def typed(self, name: str) -> bool:
        """Whether the option was given on the command line itself."""
        return _BY_NAME[name].name in self._typed

    def typed_spans(self, name: str) -> list[Span]:
        """The places of the values that the command line itself gives."""
        spans = self.spans(name)
        return spans[len(spans) - self._typed.get(_BY_NAME[name].name, 0) :]

    def span(self, name: str) -> Span | None:
        """The place of the option's last value, None when it was not given."""
        return self._given[name][-1] if name in self._given else None

    def value(self, name: str, default: str = "") -> str:
        """The option's last value."""
        return self._given[name][-1].text if name in self._given else default

    def spans(self, name: str) -> list[Span]:
        """The places of all the option's values."""
        return self._given.get(_BY_NAME[name].name, [])

    def items(self, name: str) -> Iterator[Span]:
        """The parts, between commas, of all the option's values."""
        for span in self.spans(name):
            yield from split(span, ",")


def split(span: Span, separator: str) -> Iterator[Span]:
    """The parts of a text between separators, without blanks around them; empty ones are left out."""
    start = span.start
    for part in span.text.split(separator):
        text = part.strip()
        if text:
            begin = start + part.index(text)
            yield Span(span.source, begin, begin + len(text))
        start += len(part) + len(separator)


def read_command_line(words: Sequence[str]) -> CommandLine:
    """The command line that `words` (without the program's name) make. Raises `DiagnosticError` (RLX7001, RLX7002)."""
    line = CommandLine()
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            line.files += reversed(rest)
            break
        if word == "-" or not word.startswith("-"):
            line.files.append(word)
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            _take(line, _find(name), value if equals else None, rest)
        else:
            option = _find(word[:2], word)
            _take(line, option, word[2:].removeprefix("=") if len(word) > 2 else None, rest)
    return line


def find_option(name: str) -> Option:
    """The option of that spelling; KeyError when there is none."""
    return _BY_NAME[name]


def _find(name: str, word: str = "") -> Option:
    option = _BY_NAME.get(name) or _composed(name)
    if option is None or (option.kind == "flag" and len(word) > 2):
        _unknown(word or name)
    return option


def _composed(name: str) -> Option | None:
    """The option of that name of an executor or runtime."""
    if not name.startswith(COMPOSED):
        return None
    from relaxlang.cli.build_options import find_composed

    return find_composed(name)


def _unknown(word: str) -> NoReturn:
    near = did_you_mean(word, _spellings(word))
    help = f"did you mean `{near}`?" if near else "`relaxc --help` shows the options"
    fail("RLX7001", f"there is no option `{word}`", help=help)


def _spellings(word: str) -> list[str]:
    """The long options that a word may be meant to be."""
    if not word.startswith(COMPOSED):
        return [name for name in _BY_NAME if name.startswith("--")]
    from relaxlang.cli.build_options import composed_options

    return [name for composed in composed_options() for name in composed.option.names]


def _take(line: CommandLine, option: Option, value: str | None, rest: list[str]) -> None:
    """Note an option, with the value that stands in its own word or, when it needs one, in the next."""
    name = option.name
    if option.kind == "flag" and value is not None:
        fail("RLX7002", f"`{name}` takes no value")
    if option.kind in ("value", "repeat"):
        if value is None and rest:
            value = rest.pop()
        if not value:
            fail("RLX7002", f"`{name}` needs a value", help=f"`{name}={option.metavar}`: {option.help}")
    line.add(option, value or "")
    if value and option.words:
        check_word(line.spans(name)[-1], option.words, f"`{name}` takes")


def check_word(span: Span, words: Iterable[str], what: str) -> None:
    """RLX7002, with a suggestion, unless the text is one of `words`; `what` begins the message."""
    known = list(words)
    if span.text not in known:
        near = did_you_mean(span.text, known)
        help = f"did you mean `{near}`?" if near else ""
        fail("RLX7002", f"{what} {', '.join(f'`{w}`' for w in known)}, not `{span.text}`", span, help=help)


def number(line: CommandLine, name: str, low: int) -> int | None:
    """The whole number, at least `low`, that is an option's value; None when it was not given."""
    span = line.span(name)
    if span is None:
        return None
    text = span.text.removeprefix("-")
    if not (text.isascii() and text.isdecimal() and len(text) <= 18) or int(span.text) < low:
        fail("RLX7002", f"`{name}` takes a whole number from {low}, not `{span.text}`", span)
    return int(span.text)


def real(line: CommandLine, name: str, default: float) -> float:
    """The number, at least 0, that is an option's value."""
    span = line.span(name)
    if span is None:
        return default
    try:
        value = float(span.text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        fail("RLX7002", f"`{name}` takes a number from 0, not `{span.text}`", span)
    return value
