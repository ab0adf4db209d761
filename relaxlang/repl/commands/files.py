"""Modules from and to files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relaxlang import driver
from relaxlang.base.diagnostics import fail
from relaxlang.base.files import write_atomically
from relaxlang.base.record import replace
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.cli.emit import KINDS
from relaxlang.cli.settings import definition
from relaxlang.ir.module import IRModule
from relaxlang.repl.command import (
    Answer,
    Choice,
    Command,
    at_most,
    function_name,
    needed,
    prefix_choices,
    require_module,
    words,
)
from relaxlang.repl.commands.look import function_choices
from relaxlang.repl.prompts import prompted

if TYPE_CHECKING:
    from relaxlang.repl.session import Session


def load(session: Session, argument: Span) -> Answer:
    """Read a module from a file."""
    if not argument.text:
        needed(argument, ":load FILE [N=VALUE …]")
    path, *given = words(argument)
    for word in given:
        if "=" not in word.text:
            fail("RLX7102", "one file is loaded at a time", word, help="values of module parameters are written `N=4`")
    values = dict(definition(span) for span in given)
    return open_module(session, path.text, values)


def open_module(session: Session, path: str, values: dict[str, Any]) -> Answer:
    """Make the module in a file the current one."""
    module = driver.load(path, values=values, warnings=session.warnings.append)
    step = session.step(module, "load", " ".join([path, *(f"{k}={v}" for k, v in values.items())]))
    session.state = replace(session.state, path=path, written="", saved=step.number)
    return Answer(_loaded(module))


def _loaded(module: IRModule) -> str:
    relax, prim = len(list(module.relax_functions())), len(list(module.prim_funcs()))
    counts = [f"{relax} Relax function{'s' * (relax != 1)}"] * bool(relax) + [
        f"{prim} TensorIR function{'s' * (prim != 1)}"
    ] * bool(prim)
    return f"{module.name}: {' and '.join(counts) or 'no functions'}"


def reload(session: Session, argument: Span) -> Answer:
    """Read the file again."""
    at_most(argument, 0, ":reload")
    loads = [s for s in session.state.history.path() if s.kind == "load"]
    if not loads:
        fail("RLX7103", "the module does not come from a file", help="`:load FILE` reads one")
    return load(session, Span(Source("<reload>", loads[-1].detail), 0, len(loads[-1].detail)))


def save(session: Session, argument: Span) -> Answer:
    """Write the module, or the inputs of the session, to a file."""
    given = at_most(argument, 2, ":save [FILE] | :save session FILE")
    if given and given[0].text == "session" and len(given) == 2:
        lines = [prompted(text) for text in session.state.inputs]
        write_atomically(given[1].text, "\n".join(lines) + "\n")
        return Answer(f"{len(lines)} inputs in {given[1].text}; `relax-repl {given[1].text}` runs them again")
    if len(given) == 2:
        fail("RLX7102", "there is one argument too many", given[1], help="usage: `:save FILE` or `:save session FILE`")
    require_module(session)
    path = given[0].text if given else session.state.written
    if not path:
        # What stands in a file that was loaded has comments and a layout, which the module has not.
        fail("RLX7102", "it is not clear where to", argument, help="say `:save FILE`; later `:save` alone is enough")
    write_atomically(path, session.module.script())
    session.state = replace(session.state, path=path, written=path, saved=session.state.history.at)
    return Answer(f"saved in {path}")


def new(session: Session, argument: Span) -> Answer:
    """Begin with an empty module."""
    at_most(argument, 0, ":new")
    session.step(IRModule({}), "load", "")
    session.state = replace(session.state, path="", written="", saved=session.state.history.at)
    return Answer("an empty module")


def edit(session: Session, argument: Span) -> Answer:
    """Edit a function, or the module, in the user's editor."""
    given = at_most(argument, 1, ":edit [FN]")
    if session.editor is None:
        fail("RLX7103", "there is no editor in a script", help="type the definition")
    if given:
        name = function_name(session, given[0])
        text = IRModule({name: session.module.functions[name]}, name=session.module.name).script()
    else:
        text = session.module.script() if len(session.module) else ""
    changed = session.editor(text)
    if changed == text:
        return Answer("nothing changed")
    if given or not len(session.module):
        return session.define(Source("<editor>", changed))
    session.step(driver.parse(changed, "<editor>", warnings=session.warnings.append), "define", "in the editor")
    return Answer(_loaded(session.module))


def export(session: Session, argument: Span) -> Answer:
    """The command line that makes the current module of its file."""
    import shlex

    given = at_most(argument, 1, ":export [KIND]")
    kind = given[0].text if given else "rlx"
    if kind not in KINDS:
        near = did_you_mean(kind, KINDS)
        help = f"did you mean `{near}`?" if near else f"kinds: {', '.join(KINDS)}"
        fail("RLX7102", f"relaxc emits no `{kind}`", given[0], help=help)
    path = session.state.history.path()
    loads = [i for i, s in enumerate(path) if s.kind == "load" and s.detail]
    steps = path[loads[-1] :] if loads else []
    typed = [s for s in steps if s.kind in ("define", "schedule")]
    if not steps or typed:
        what = (
            f"step {typed[0].number} ({typed[0].made_by}) was typed"
            if typed
            else "the module does not come from a file"
        )
        fail("RLX7103", f"no command line makes this module: {what}", help="`:save FILE` writes it")
    file, *values = steps[0].detail.split(" ")
    line = ["relaxc", file, *(f"-D{v}" for v in values)]
    passes = [s.detail for s in steps[1:]]
    line += ["-p", ",".join(passes)] if passes else []
    line += [f"--target={session.state.target}"] if session.state.target else []
    line += [f"--emit={kind}"]
    return Answer(shlex.join(line))


def path_choices(session: Session, text: str) -> Iterator[Choice]:
    """Files and directories that the last word begins."""
    word = text[text.rfind(" ") + 1 :]
    folder, start = os.path.split(word)
    place = Path(os.path.expanduser(folder or "."))
    if not place.is_dir():
        return
    for entry in sorted(place.iterdir()):
        if entry.name.startswith(start) and (start.startswith(".") or not entry.name.startswith(".")):
            if entry.is_dir():
                yield Choice(entry.name + "/", len(start))
            elif entry.suffix in (".rlx", ".npz", ".npy", ".session"):
                yield Choice(entry.name, len(start))


COMMANDS: tuple[Command, ...] = (
    Command(
        "load",
        ":load FILE [N=VALUE …]",
        "read a module from a .rlx file\nN=VALUE gives the module's parameter N (`N = I.param(int)`) its value.",
        load,
        path_choices,
    ),
    Command("reload", ":reload", "read the file again", reload),
    Command("new", ":new", "begin with an empty module", new),
    Command(
        "save",
        ":save [FILE] | :save session FILE",
        "write the module to a file, or the inputs of the session\n`relax-repl FILE.session` runs such inputs again.",
        save,
        path_choices,
    ),
    Command("edit", ":edit [FN]", "edit a function, or the whole module, in $EDITOR", edit, function_choices),
    Command(
        "export",
        ":export [KIND]",
        "the relaxc command line that makes the current module of its file\nKIND is what it emits: rlx, asm, c, …; the "
        "session's target is named, too.",
        export,
        lambda session, text: prefix_choices(text, [(name, kind.help) for name, kind in KINDS.items()]),
    ),
)
