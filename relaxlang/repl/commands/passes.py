"""Passes: which there are, running them, and finding out what they do to a program."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from relaxlang import driver
from relaxlang.base.diagnostics import DiagnosticError, fail
from relaxlang.base.record import replace
from relaxlang.base.source import Span
from relaxlang.cli.listing import first_sentence
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.structural import structural_equal
from relaxlang.ir.visit import walk
from relaxlang.passes import ALIASES, PASSES, load_pass
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.pipelines import PIPELINES, pipeline
from relaxlang.repl.command import (
    Answer,
    Choice,
    Command,
    at_most,
    flags,
    needed,
    prefix_choices,
    require_module,
    words,
)
from relaxlang.repl.comparison import differences
from relaxlang.repl.difference import summary
from relaxlang.repl.invocation import invocation
from relaxlang.repl.stages import Stages
from relaxlang.repl.timing import duration

if TYPE_CHECKING:
    from relaxlang.repl.session import Session


def pass_context(session: Session) -> PassContext:
    """What passes may ask: the session's target, and the driver to run what they fold."""
    return PassContext().compiling(session.stages().target, driver.evaluate)


def passes(session: Session, argument: Span) -> Answer:
    """List passes."""
    found, rest = flags(argument, {"--effective": ""})
    given = at_most(rest, 1, ":passes [--effective] [WORD]")
    word = given[0].text.lower() if given else ""
    rows = []
    for name in sorted(PASSES):
        text = first_sentence(load_pass(name).__doc__)
        if word in name or word in text.lower():
            rows.append((name, text))
    if found:
        rows = list(_effective(session, [name for name, _ in rows]))
        if not rows:
            return Answer("no pass would change this module")
    if not rows:
        fail("RLX7103", f"no pass is about `{word}`", help="`:passes` lists them all")
    width = max(len(name) for name, _ in rows) + 2
    return Answer("\n".join(f"{name:{width}}{text}" for name, text in rows))


def _effective(session: Session, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Which of the passes would change the module, and how; each is tried on the module as it stands."""
    require_module(session)
    for name in names:
        try:
            made = pass_context(session).apply(load_pass(name)(), session.module)
        except DiagnosticError as fault:
            yield name, f"would fail: {fault.diagnostics[0].message}"
            continue
        if made is not session.module and not structural_equal(made, session.module):
            yield name, summary(session.module, made)


def apply(session: Session, argument: Span) -> Answer:
    """Run passes on the module."""
    if not argument.text:
        needed(argument, ":apply PASS[{OPTION=VALUE,…}],…")
    require_module(session)
    chosen = pipeline(argument.text, "<pipeline>")
    lines, module = [], session.module
    for step in chosen.passes:
        start = time.perf_counter()
        made = pass_context(session).apply(step, module)
        took = time.perf_counter() - start
        lines.append(f"{step}: {summary(module, made)}   ({duration(took)})")
        module = made
    if module is session.module:
        return Answer("\n".join([*lines, "nothing changed"]))
    session.step(module, "apply", ",".join(str(p) for p in chosen.passes))
    return Answer("\n".join(lines))


def set_pipeline(session: Session, argument: Span) -> Answer:
    """Show or set the passes between the module and code."""
    if argument.text:
        _ = pipeline(argument.text, "<pipeline>")
        session.state = replace(session.state, pipeline=argument.text)
    text = ",".join(str(p) for p in pipeline(session.state.pipeline).passes)
    return Answer(text if text == session.state.pipeline else f"{session.state.pipeline}: {text}")


def set_target(session: Session, argument: Span) -> Answer:
    """Show or set what code is made for."""
    if argument.text:
        from relaxlang.codegen.target import as_target

        _ = as_target(argument.text)
        session.state = replace(session.state, target="" if argument.text == "llvm" else argument.text)
    target = session.stages().target
    return Answer(f"{session.state.target or 'llvm'}: {target.mcpu}, {target.mtriple}")


# --- what passes do to a program --------------------------------------------------------------------------------------
def _bindings(module: IRModule, name: str) -> list[str]:
    """The bindings of variables of that name, as text."""
    return [
        str(node)
        for _, function in module.relax_functions()
        for node in walk(function)
        if isinstance(node, relax.Binding) and node.var.name == name
    ]


def watch(session: Session, argument: Span) -> Answer:
    """Which passes change or remove a variable."""
    given = words(argument)
    if not given:
        needed(argument, ":watch VARIABLE [PIPELINE]")
    name = given[0].text
    text = argument.text[len(name) :].strip() or session.state.pipeline
    module = session.module
    before = _bindings(module, name)
    if not before:
        fail("RLX7103", f"no binding of the module has the name `{name}`", given[0])
    lines = [f"now: {b}" for b in before]
    for step in pipeline(text, "<pipeline>").passes:
        module = pass_context(session).apply(step, module)
        after = _bindings(module, name)
        if after != before:
            lines += [f"{step}: {b}" for b in after] or [f"{step}: removed"]
        before = after
        if not after:
            break
    else:
        if len(lines) == 1:
            lines.append(f"no pass of `{text}` changes it")
    return Answer("\n".join(lines), "rlx")


def bisect(session: Session, argument: Span) -> Answer:
    """Find the pass that changes what a function computes."""
    call = invocation(session, argument, session.module)
    states = _broken_steps(session)
    start = states[0][1]
    reference = call.interpret(session, start)
    for label, module in states[1:]:
        stages = Stages(module, "minimum", session.state.target)
        wrong = differences(reference, call.compiled(stages))
        if wrong:
            return Answer("\n".join([*call.notes, f"`{label}` changes the result: {wrong[0]}"]))
    names = ", ".join(label for label, _ in states[1:])
    return Answer("\n".join([*call.notes, f"the result is the same after each of: {names}"]))


def _broken_steps(session: Session) -> list[tuple[str, IRModule]]:
    """The modules to compare: the steps since the module was loaded or typed, else those that the pipeline makes."""
    path = session.state.history.path()
    first = max(i for i, s in enumerate(path) if s.kind != "apply")
    states: list[tuple[str, IRModule]] = [("the module", path[first].module)]
    if path[first + 1 :]:
        chosen = [p for s in path[first + 1 :] for p in pipeline(s.detail).passes]
    else:
        chosen = list(pipeline(session.state.pipeline).passes)
    module = states[0][1]
    for step in chosen:
        made = pass_context(session).apply(step, module)
        if made is not module:
            states.append((str(step), made))
        module = made
    return states


# --- completion -------------------------------------------------------------------------------------------------------
_OPEN = re.compile(r"([\w-]+)\{([^{}]*)\Z")


def pass_choices(session: Session, text: str) -> Iterator[Choice]:
    """Passes and pipelines, and inside braces the options of the pass before them."""
    inside = _OPEN.search(text)
    if inside is None:
        rows: list[tuple[str, str]] = [(name, first_sentence(load_pass(name).__doc__)) for name in sorted(PASSES)]
        rows += [(name, f"= {of}") for name, of in ALIASES.items()]
        rows += [(name, ",".join(steps)) for name, steps in PIPELINES.items()]
        yield from prefix_choices(text, rows)
    elif inside[1] in PASSES or inside[1] in ALIASES:
        word = inside[2].rpartition(",")[2].strip()
        cls: type[Pass] = load_pass(inside[1])
        for field in fields(cls):
            if field.name.startswith(word) and "=" not in word:
                yield Choice(f"{field.name}=", len(word), f"default {_default(field.default)}")


def _default(value: Any) -> str:
    return repr(value)


COMMANDS: tuple[Command, ...] = (
    Command(
        "passes",
        ":passes [--effective] [WORD]",
        "list passes, those about a word, or those that would change the module\n"
        "--effective tries each pass on a copy of the module.",
        passes,
    ),
    Command(
        "apply",
        ":apply PASS[{OPTION=VALUE,…}],…",
        "run passes or a named pipeline on the module, as one step",
        apply,
        pass_choices,
    ),
    Command(
        "pipeline",
        ":pipeline [TEXT]",
        "show or set the passes between the module and code\n"
        "`default` is what relaxc runs; `minimum` compiles the module just as it stands.",
        set_pipeline,
        pass_choices,
    ),
    Command(
        "target",
        ":target [TEXT]",
        "show or set what code is made for: `llvm -mcpu=znver4`; `llvm` is this machine",
        set_target,
    ),
    Command("watch", ":watch VARIABLE [PIPELINE]", "which passes change or remove the binding of a variable", watch),
    Command(
        "bisect",
        ":bisect [FN(ARGS)]",
        "find the pass that changes what a function computes\nThe steps since the module "
        "was loaded are checked (else the pipeline's passes), one by one, against the interpreter.",
        bisect,
    ),
)
