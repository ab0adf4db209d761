"""Settings that hold for more than one run: from `pyproject.toml` and the environment, below the command line.

The table `[tool.relaxlang]` of the nearest `pyproject.toml` that has one, from the current directory upwards, gives
options their values, by their long names without dashes; a variable of the environment does so too, and goes before:

    [tool.relaxlang]
    target = "llvm -mcpu=x86-64-v3"        RELAXLANG_TARGET='llvm -mcpu=x86-64-v3'
    define = ["N=128", "M=4"]              RELAXLANG_DEFINE=N=128,M=4
    verify-each = true                     RELAXLANG_VERIFY_EACH=1

Options that can be given several times add up. A `pipeline` also replaces an `opt-level` of less precedence, and the
other way round. Folders of `include` are relative to the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

from relaxlang.base.config import Config, config
from relaxlang.base.diagnostics import fail
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.cli.options import CommandLine, Option, check_word, find_option, split

FILE = "pyproject.toml"
SETTINGS = (
    "color", "define", "diagnostics", "executor", "include", "mod-name", "opt-level", "pipeline",
    "runtime", "atol", "rtol", "skip", "target", "target-host", "verbose", "verify-each", "width",
)  # fmt: skip
"""What can be set: options that say how to do something, not what to do."""
_RIVALS = {"--pipeline": "--opt-level", "--opt-level": "--pipeline"}
_OFF = ("", "0", "false", "no", "off")
_HEADER = re.compile(r"^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*relaxlang[ \t]*(?:\]|$)", re.MULTILINE)
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


class Setting(NamedTuple):
    """An option with its values; a flag that is set has one empty value, one that is not has none."""

    option: Option
    values: list[Span]


def configure(line: CommandLine, environment: Config = config, folder: str | None = None) -> list[str]:
    """Give the options of a command line that it leaves open their values of the environment, then of the nearest
    file from `folder` (default: the current directory) upwards. Raises RLX7010, and RLX7002 for a wrong word. Returns
    what would say the same at the beginning of the command line."""
    if line.has("--no-config"):
        return []
    said: list[str] = []
    where = os.path.abspath(folder or os.curdir)
    levels: tuple[Callable[[], list[Setting]], ...] = (lambda: _of_environment(environment), lambda: _of_file(where))
    for read in levels:  # one after the other: how a fault in the second is shown may be said by the first
        fresh = [s for s in read() if s.option.kind == "repeat" or not _decided(line, s.option.name)]
        for setting in fresh:
            for span in setting.values:
                if setting.option.words:
                    check_word(span, setting.option.words, f"`{setting.option.name}` takes")
            line.configure(setting.option, setting.values)
            name = setting.option.name
            said = [*(name if setting.option.kind == "flag" else f"{name}={v.text}" for v in setting.values), *said]
    return [*said, "--no-config"] if said else []


def _decided(line: CommandLine, name: str) -> bool:
    return line.has(name) or (name in _RIVALS and line.has(_RIVALS[name]))


# --- the environment --------------------------------------------------------------------------------------------------
def _of_environment(environment: Config) -> list[Setting]:
    found = []
    for name in SETTINGS:
        text = environment.option(name)
        if not text:
            continue
        option = find_option(f"--{name}")
        source = Source("RELAXLANG_" + name.upper().replace("-", "_"), text)
        whole = Span(source, 0, len(text))
        if option.kind == "flag":
            found.append(Setting(option, [] if text.lower() in _OFF else [Span(source, 0, 0)]))
        elif option.kind == "repeat":
            found.append(Setting(option, list(split(whole, os.pathsep if name == "include" else ","))))
        else:
            found.append(Setting(option, [whole]))
    return found


# --- the file ---------------------------------------------------------------------------------------------------------
def _of_file(folder: str) -> list[Setting]:
    for path in _candidates(folder):
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            continue
        if b"relaxlang" not in data:  # so that most files cost no TOML parser
            continue
        source = Source(os.path.relpath(path), data.decode("utf-8", errors="replace"))
        table = _table(source)
        if table is not None:
            return [_setting(source, name, value, os.path.dirname(path)) for name, value in table.items()]
    return []


def _candidates(folder: str) -> Iterator[str]:
    while True:
        yield os.path.join(folder, FILE)
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _table(source: Source) -> dict[str, Any] | None:
    """The table of a file; None when it has none."""
    import tomllib

    try:
        content = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        if _HEADER.search(source.text) is None:
            return None
        place = _PLACE.search(str(error))
        at = source.line_starts[int(place[1]) - 1] + int(place[2]) - 1 if place else 0
        what = _PLACE.sub("", str(error)).strip()
        fail("RLX7010", f"`{source.name}` is no TOML: {what[:1].lower() + what[1:]}", Span(source, at, at + 1))
    except RecursionError:  # how this parser refuses brackets without end
        fail("RLX7010", f"`{source.name}` is nested too deeply", Span(source, 0, 0))
    tool = content.get("tool")
    table = tool.get("relaxlang") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        fail("RLX7010", "`tool.relaxlang` is no table", _places(source, "relaxlang")[0])
    return table


def _setting(source: Source, name: str, value: Any, folder: str) -> Setting:
    key, after = _places(source, name)
    if name not in SETTINGS:
        _unknown(name, key)
    option = find_option(f"--{name}")
    if option.kind == "flag":
        if not isinstance(value, bool):
            fail("RLX7010", f"`{name}` is `true` or `false`", after)
        return Setting(option, [Span(source, key.end, key.end)] if value else [])
    several = value if isinstance(value, list) and option.kind == "repeat" else [value]
    for one in several:
        if isinstance(one, bool) or not isinstance(one, (str, int, float)) or one == "":
            takes = "a list of texts" if option.kind == "repeat" else "a text or a number"
            fail("RLX7010", f"`{name}` takes {takes}", after, help=f"as in `--{name}={option.metavar}`: {option.help}")
    texts = [str(one) for one in several]
    if name == "include":
        texts = [os.path.join(folder, text) for text in texts]
    return Setting(option, list(_located(source, after, texts)))


def _unknown(name: str, key: Span) -> NoReturn:
    try:
        known = find_option(f"--{name}").name == f"--{name}"
    except LookupError:
        known = False
    if known:
        fail("RLX7010", f"`{name}` can be given on the command line only", key)
    near = did_you_mean(name, SETTINGS)
    help = f"did you mean `{near}`?" if near else "settings: " + ", ".join(SETTINGS)
    fail("RLX7010", f"there is no setting `{name}`", key, help=help)


def _places(source: Source, name: str) -> tuple[Span, Span]:
    """Where a key of the table stands, and what follows it to the end of the table. Of a table that is written in a way
    of its own, such as in one line, the whole text is both."""
    header = _HEADER.search(source.text)
    if header is not None:
        table = _TABLE.search(source.text, header.end())
        end = table.start() if table else len(source.text)
        key = re.compile(rf"^[ \t]*[\"']?({re.escape(name)})[\"']?[ \t]*=[ \t]*", re.MULTILINE)
        found = key.search(source.text, header.end(), end)
        if found is not None:
            stop = source.text.find("\n", found.end(), end)
            return Span(source, found.start(1), found.end(1)), Span(source, found.end(), end if stop < 0 else stop)
    at = max(source.text.find("relaxlang"), 0)
    return (Span(source, at, at + len("relaxlang")),) * 2


def _located(source: Source, after: Span, texts: Iterable[str]) -> Iterator[Span]:
    """The places of values that stand in the file as they are; others get a text of their own."""
    at = after.start
    for text in texts:
        start = source.text.find(text, at)
        if start < 0:
            yield Span(Source(source.name, text), 0, len(text))
            continue
        at = start + len(text)
        yield Span(source, start, at)
