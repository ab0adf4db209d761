"""Asking about names: what they mean, where they come from, what depends on what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from relaxlang.base.codes import CODES, explain
from relaxlang.base.diagnostics import DiagnosticError, fail
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.cli.describe import describe
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule, function_info
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import walk
from relaxlang.passes import ALIASES, PASSES, load_pass
from relaxlang.repl.command import Answer, Choice, Command, at_most, function_name, needed, prefix_choices
from relaxlang.repl.commands.look import bound_variables, function_choices
from relaxlang.repl.values import MAKERS, SUMMARIES, headline

if TYPE_CHECKING:
    from relaxlang.repl.session import Session


def _word(argument: Span, usage: str) -> Span:
    given = at_most(argument, 1, usage)
    if not given:
        needed(argument, usage)
    return given[0]


def info(session: Session, argument: Span) -> Answer:
    """Everything about a name."""
    word = _word(argument, ":info NAME")
    name = word.text
    parts: list[str] = []
    if name in session.state.names:
        parts.append(f"variable {name}: {headline(session.state.names[name])}")
    if name in session.module:
        parts.append(_function(session.module, name))
    for function, binding in bound_variables(session.module, name):
        place = f"   {binding.span}" if binding.span is not None else ""
        parts.append(f"bound in {function}{place}\n  {binding}\n  {binding.var.struct_info}")
    if name in MAKERS:
        parts.append(f"function of the prompt: {SUMMARIES[name]}")
    if parts:
        return Answer("\n".join(parts), "rlx")
    return Answer(_described(session, word))


def _described(session: Session, word: Span) -> str:
    """What relaxc knows about a name. RLX7008, with the session's names in mind, when there is nothing."""
    try:
        return describe(word.text, word, False).rstrip("\n")
    except DiagnosticError:
        names = [*session.module.functions, *session.state.names, *session.operators.names(), *PASSES, *MAKERS]
        near = did_you_mean(word.text, names)
        help = f"did you mean `{near}`?" if near else "`:list`, `:set` and `:passes` show names"
        fail("RLX7008", f"nothing has the name `{word.text}`", word, help=help)


def _function(module: IRModule, name: str) -> str:
    function = module.functions[name]
    what = "TensorIR function" if isinstance(function, PrimFunc) else "Relax function"
    lines = [f"{what} {name}: {function_info(function)}"]
    if function.span is not None:
        lines.append(f"  at {function.span}")
    if not isinstance(function, relax.ExternFunc) and len(function.attrs):
        lines.append("  attributes: " + ", ".join(f"{k} = {v!r}" for k, v in function.attrs.items()))
    uses, users = _callees(module, name), [n for n in module.functions if name in _callees(module, n)]
    for label, names in (("calls", uses), ("called by", users)):
        if names:
            lines.append(f"  {label}: {', '.join(names)}")
    return "\n".join(lines)


def _callees(module: IRModule, name: str) -> list[str]:
    found: dict[str, None] = {}
    for node in walk(module.functions[name]):
        if isinstance(node, relax.GlobalVar):
            found[node.name] = None
        elif isinstance(node, prim.Call) and isinstance(node.op, relax.GlobalVar):
            found[node.op.name] = None
    return [n for n in found if n in module]


def doc(session: Session, argument: Span) -> Answer:
    """Describe an operator, a pass, a code."""
    word = _word(argument, ":doc NAME")
    if word.text in MAKERS:
        return Answer(SUMMARIES[word.text])
    return Answer(_described(session, word))


def explain_code(session: Session, argument: Span) -> Answer:
    """What a diagnostic code means."""
    return Answer(explain(_word(argument, ":explain CODE").text))


def deps(session: Session, argument: Span) -> Answer:
    """Who calls whom."""
    module = session.module
    given = at_most(argument, 1, ":deps [FN]")
    called = {c for n in module.functions for c in _callees(module, n)}
    roots = [function_name(session, given[0])] if given else [n for n in module.functions if n not in called]
    return Answer("\n".join(_tree(module, roots or list(module.functions))))


def _tree(module: IRModule, roots: Iterable[str]) -> Iterator[str]:
    """The calls below the roots, indented; what was shown before is not unfolded again."""
    waiting = [(name, 0) for name in roots][::-1]
    seen: set[str] = set()
    while waiting:
        name, depth = waiting.pop()
        callees = _callees(module, name)
        again = name in seen and bool(callees)
        operators = sorted({n.op.name for n in walk(module.functions[name])
                            if isinstance(n, relax.Call) and isinstance(n.op, relax.Op)})  # fmt: skip
        uses = f"   uses {', '.join('R.' + n for n in operators)}" if operators and not again else ""
        yield "  " * depth + name + (" (see above)" if again else uses)
        if not again:
            waiting += [(c, depth + 1) for c in reversed(callees)]
        seen.add(name)


# --- sources ----------------------------------------------------------------------------------------------------------
def src(session: Session, argument: Span) -> Answer:
    """Where a name is defined, and the text there."""
    word = _word(argument, ":src NAME")
    name = word.text
    if name in session.module:
        span = session.module.functions[name].span
        if span is None:
            fail(
                "RLX7103", f"`{name}` was made by a pass and stands in no text", word, help=f"`:show {name}` prints it"
            )
        return _excerpt(span.source, span.start)
    operator = session.operators.find(name.removeprefix("R."))
    if operator is not None and operator.span is not None:
        return _excerpt(operator.span.source, operator.span.start)
    if name in PASSES or name in ALIASES:
        return _pass_source(load_pass(name))
    fail("RLX7103", f"`{name}` is no function of the module, no operator and no pass", word)


def _excerpt(source: Source, at: int) -> Answer:
    """The definition around an offset: its decorators, header and body."""
    lines = source.text.split("\n")
    first = last = source.position(at)[0] - 1
    while first > 0 and lines[first - 1].lstrip().startswith("@"):
        first -= 1
    while last + 1 < len(lines) and lines[last].lstrip().startswith("@"):
        last += 1
    margin = len(lines[last]) - len(lines[last].lstrip())
    last += 1
    while last < len(lines):
        line = lines[last]
        if line.strip() and len(line) - len(line.lstrip()) <= margin and not line.lstrip().startswith(")"):
            break
        last += 1
    text = "\n".join(line[margin:] for line in lines[first:last]).rstrip()
    return Answer(f"# {source.name}:{first + 1}\n{text}", "rlx")


def _pass_source(cls: Any) -> Answer:
    import inspect

    lines, start = inspect.getsourcelines(cls)
    path = cls.__module__.replace(".", "/") + ".py"
    return Answer(f"# {path}:{start}\n{''.join(lines).rstrip()}", "rlx")


def name_choices(session: Session, text: str) -> Iterable[Choice]:
    """Everything that has a name."""
    operators = [(f"R.{name}", "operator") for name in session.operators.names()] if text else []
    passes = [(name, "pass") for name in PASSES]
    variables = [(name, headline(value)) for name, value in session.state.names.items()]
    return [*function_choices(session, text), *prefix_choices(text, [*variables, *operators, *passes])]


def code_choices(session: Session, text: str) -> Iterable[Choice]:
    """Diagnostic codes."""
    return prefix_choices(text, [(code, entry.title) for code, entry in sorted(CODES.items())])


COMMANDS: tuple[Command, ...] = (
    Command(
        "info",
        ":info NAME",
        "what a name means: a variable, a function, a binding, an operator, a pass, a code\n`?NAME` does the same.",
        info,
        name_choices,
    ),
    Command("doc", ":doc NAME", "the documentation of an operator, a pass, an intrinsic or a code", doc, name_choices),
    Command("src", ":src NAME", "the text that defines a function, an operator or a pass", src, name_choices),
    Command("deps", ":deps [FN]", "which functions call which, and what operators they use", deps, function_choices),
    Command("explain", ":explain CODE", "what a diagnostic code means", explain_code, code_choices),
)
