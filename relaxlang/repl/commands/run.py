"""Running functions: results, times, comparisons."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from relaxlang.base.diagnostics import RelaxlangError, fail
from relaxlang.base.record import replace
from relaxlang.base.source import Span
from relaxlang.ir import relax
from relaxlang.repl.command import Answer, Command, flags, needed
from relaxlang.repl.commands.debug import failed, launch
from relaxlang.repl.comparison import differences, largest_difference
from relaxlang.repl.invocation import Invocation, invocation
from relaxlang.repl.scope import language_choices
from relaxlang.repl.timing import duration, measured
from relaxlang.repl.values import headline
from relaxlang.syntax import tree

if TYPE_CHECKING:
    from relaxlang.repl.session import Session


def run(session: Session, argument: Span) -> Answer:
    """Call a function."""
    call = _prepared(session, argument)
    if session.state.breakpoints and not call.outputs:
        return launch(session, call, "continue")
    start = time.perf_counter()
    try:
        value = call.compiled(session.stages(call.function))
    except RelaxlangError as error:
        failed(session, call.function, error)
        raise
    session.running += time.perf_counter() - start
    return session.result(value, "\n".join(call.notes))


def _prepared(session: Session, argument: Span) -> Invocation:
    """The call, with the program built for it."""
    start = time.perf_counter()
    call = invocation(session, argument, session.module)
    _ = session.stages(call.function).machine
    session.compiling += time.perf_counter() - start
    return call


def time_call(session: Session, argument: Span) -> Answer:
    """Measure a call, or an expression."""
    if argument.text and not _is_call(session, argument):
        calculator = session.calculator()
        value = calculator.read(argument)
        if not isinstance(value, relax.Expr) or value in calculator.leaves:
            fail(
                "RLX7102",
                "there is nothing to be computed here",
                argument,
                help="write a call, or an expression of tensors",
            )
        work = calculator.computation(value)
        function = session.stages(work.name, work.module).machine[work.name]
        return Answer(measured(lambda: function(*work.args)))
    call = _prepared(session, argument)
    function = session.stages(call.function).machine[call.function]
    args = call.fresh()
    return Answer("\n".join([*call.notes, measured(lambda: function(*args))]))


def _is_call(session: Session, argument: Span) -> bool:
    """Whether a text begins with the name of a function of the module."""
    return argument.text.split("(")[0].strip() in session.module


def compare(session: Session, argument: Span) -> Answer:
    """Compare compiled code with the interpreter."""
    call = _prepared(session, argument)
    start = time.perf_counter()
    actual = call.compiled(session.stages(call.function))
    compiled = time.perf_counter() - start
    start = time.perf_counter()
    expected = call.interpret(session, session.module)
    interpreted = time.perf_counter() - start
    wrong = differences(expected, actual)
    times = f"interpreter {duration(interpreted)}, compiled {duration(compiled)}"
    if wrong:
        fail(
            "RLX7106",
            f"compiled `{call.function}` differs from the interpreter: {wrong[0]}",
            notes=[*call.notes, *wrong[1:], times],
        )
    gap = largest_difference(expected, actual)
    return Answer("\n".join([*call.notes, f"the same; largest difference {gap:.2g}   ({times})"]))


def check_nan(session: Session, argument: Span) -> Answer:
    """Find the binding where numbers stop being finite."""
    call = _prepared(session, argument)
    found: list[str] = []
    for value in call.args:
        if _unfinite(value):
            found.append(f"an argument has {_unfinite(value)} already: {headline(value)}")

    def trace(binding: relax.Binding, value: Any) -> None:
        if not found and _unfinite(value):
            place = f"   {binding.span}" if binding.span is not None else ""
            found.append(f"{binding.var.name} has {_unfinite(value)}{place}\n  {binding}")

    call.interpret(session, session.module, trace=trace)
    return Answer("\n".join([*call.notes, found[0] if found else "all values are finite"]))


def _unfinite(value: Any) -> str:
    """How many NaN and infinities a tensor has, in words; empty for none."""
    if not isinstance(value, np.ndarray) or value.dtype.kind in "biu":
        return ""
    numbers = np.asarray(value).astype("float64")
    nan, inf = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
    return " and ".join(f"{n} {what}" for n, what in ((nan, "NaN"), (inf, "inf")) if n)


def profile(session: Session, argument: Span) -> Answer:
    """The time of each kernel."""
    from relaxlang.cli.profile import SECONDS, table
    from relaxlang.cli.profile import measured as rows_of
    from relaxlang.runtime.vm import VirtualMachine

    call = _prepared(session, argument)
    if call.outputs:
        fail("RLX7102", f"`{call.function}` is a kernel itself", argument, help="`:time` measures it")
    stages = session.stages(call.function)
    made = VirtualMachine(stages.runnable).kernel_profile(call.function, *call.args, seconds=SECONDS)
    rows = rows_of(made, stages.module, stages.lowered, stages.program.executable, stages.fused)
    return Answer("\n".join([*call.notes, table(rows, made).rstrip("\n")]))


def set_variable(session: Session, argument: Span) -> Answer:
    """Assign a variable."""
    name, equals, _ = argument.text.partition("=")
    if not argument.text:
        rows = [f"{n} = {headline(v)}" for n, v in session.state.variables.items()]
        return Answer("\n".join(rows) or "no variables")
    if not equals or not name.strip().isidentifier():
        needed(argument, ":set x = EXPR")
    start = argument.start + argument.text.index("=") + 1
    from relaxlang.repl.calculate import parse_call

    node: tree.Expr = parse_call(argument.source, Span(argument.source, start, argument.end))
    return session.assign(name.strip(), node)


def unset(session: Session, argument: Span) -> Answer:
    """Forget variables."""
    _, rest = flags(argument, {})
    name = rest.text
    if name not in session.state.variables:
        fail("RLX7103", f"there is no variable `{name}`", rest)
    left = {n: v for n, v in session.state.variables.items() if n != name}
    session.state = replace(session.state, variables=left)
    return Answer()


COMMANDS: tuple[Command, ...] = (
    Command(
        "run",
        ":run [FN(ARGS)]",
        "compile and call a function; arguments that are left out are random\n"
        '`:run main(rand(3, 64), **load("weights.npz"))` gives the rest from a file, by name.',
        run,
        language_choices,
    ),
    Command(
        "time",
        ":time [FN(ARGS) | EXPR]",
        "measure a call or an expression: median and spread",
        time_call,
        language_choices,
    ),
    Command(
        "profile",
        ":profile [FN(ARGS)]",
        "the kernels of a call: time, rates, share of this machine's peak\nThe peak is that of arithmetic or memory, "
        "whichever a kernel comes nearer to, and is measured once.",
        profile,
        language_choices,
    ),
    Command(
        "compare",
        ":compare [FN(ARGS)]",
        "compare compiled code with the reference interpreter",
        compare,
        language_choices,
    ),
    Command(
        "check-nan",
        ":check-nan [FN(ARGS)]",
        "find the first binding that is NaN or infinite",
        check_nan,
        language_choices,
    ),
    Command(
        "set",
        ":set [x = EXPR]",
        "assign a variable (`x = EXPR` does it too); alone, list them",
        set_variable,
        language_choices,
    ),
    Command("unset", ":unset x", "forget a variable", unset),
)
