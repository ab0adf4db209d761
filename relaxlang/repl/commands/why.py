"""Why not: what keeps kernels apart, dimensions different, memory unshared, loops scalar."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from relaxlang.base.diagnostics import fail
from relaxlang.base.source import Span
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import walk
from relaxlang.passes.pipelines import pipeline
from relaxlang.passes.relax.fuse_ops import explain_fusion
from relaxlang.passes.relax.static_plan_block_memory import explain_reuse
from relaxlang.repl.command import Answer, Choice, Command, needed, prefix_choices, require_module, words
from relaxlang.repl.commands.look import bound_variables, function_choices
from relaxlang.repl.commands.passes import pass_context
from relaxlang.repl.primitives import loop_names, loop_variable
from relaxlang.repl.reasons import compare_dimensions, dimensions, why_not_vectorized
from relaxlang.schedule import Schedule

if TYPE_CHECKING:
    from relaxlang.repl.session import Session

USAGE = ":why-not fuse A B | equal DIM1 DIM2 | reuse A B | vectorize LOOP [FN]"


def why_not(session: Session, argument: Span) -> Answer:
    """Answer a question."""
    given = words(argument)
    if not given:
        needed(argument, USAGE)
    question = _QUESTIONS.get(given[0].text)
    if question is None:
        fail("RLX7102", f"`:why-not {given[0].text}` is no question", given[0], help=f"usage: `{USAGE}`")
    require_module(session)
    rest = Span(argument.source, min(given[0].end + 1, argument.end), argument.end)
    return Answer(question(session, rest))


def _two(argument: Span, usage: str) -> tuple[Span, Span]:
    given = words(argument)
    if len(given) < 2:
        needed(Span(argument.source, argument.end, argument.end), usage)
    if len(given) > 2:
        fail("RLX7102", "there is one argument too many", given[2], help=f"usage: `{usage}`")
    return given[0], given[1]


# --- fuse -------------------------------------------------------------------------------------------------------------
def _fuse(session: Session, argument: Span) -> str:
    one, two = _two(argument, ":why-not fuse A B")
    module = session.module
    (function, a), (_, b) = _computed(module, one), _computed(module, two)
    answer = explain_fusion(session.stages(function).module, a, b, function)
    if answer.fused:
        return f"`{answer.producer}` and `{answer.consumer}` are computed together, by one kernel"
    rule = f"   (rule {answer.rule.name})" if answer.rule is not None else ""
    return f"{answer.reason}{rule}"


def _computed(module: IRModule, word: Span) -> tuple[str, str]:
    """The function and the variable that a word means: the variable itself, or the kernel that computes it."""
    bound = bound_variables(module, word.text)
    if bound:
        return bound[0][0], word.text
    for name, function in module.relax_functions():
        for node in walk(function):
            if isinstance(node, relax.Binding) and _kernel_of(node.value) == word.text:
                return name, node.var.name
    fail("RLX7103", f"the module has no variable and calls no kernel `{word.text}`", word, help="`:show` prints it")


def _kernel_of(value: relax.Expr) -> str:
    if (
        isinstance(value, relax.Call)
        and value.op == relax.Op("call_tir")
        and isinstance(value.args[0], relax.GlobalVar)
    ):
        return value.args[0].name
    return ""


# --- equal ------------------------------------------------------------------------------------------------------------
def _equal(session: Session, argument: Span) -> str:
    usage = ":why-not equal DIM1 DIM2"
    comma = argument.text.find(",")
    if comma >= 0:
        at = argument.start + comma
        one, two = Span(argument.source, argument.start, at), Span(argument.source, at + 1, argument.end)
    else:
        one, two = _two(argument, usage + ", or `DIM1, DIM2`")
    function, known = dimensions(session.module, f"{one.text} {two.text}")
    calculator = session.calculator(known)
    return compare_dimensions(function, calculator.read(one), calculator.read(two), argument)


# --- reuse ------------------------------------------------------------------------------------------------------------
def _reuse(session: Session, argument: Span) -> str:
    one, two = _two(argument, ":why-not reuse A B")
    names = {name: _variables(function) for name, function in session.module.relax_functions()}
    for word in (one, two):
        if not any(word.text in known for known in names.values()):
            fail("RLX7103", f"the module has no variable `{word.text}`", word, help="`:show` prints it")
    function = next((name for name, known in names.items() if {one.text, two.text} <= known), "")
    if not function:
        fail("RLX7103", f"no function has both `{one.text}` and `{two.text}`", argument)
    stages = session.stages(function)
    planned = stages.before_planning.functions[function]
    assert isinstance(planned, relax.Function)  # passes keep the kind of what the user named
    for word in (one, two):
        if word.text not in _variables(planned):
            step = _removed(session, stages.module, word.text)
            return f"`{word.text}` has no memory: {step} made it a part of a kernel, or removed it"
    return explain_reuse(stages.before_planning, one.text, two.text, function).reason


def _variables(function: relax.Function) -> set[str]:
    """The names of a function's parameters and of the variables that it binds."""
    return {p.name for p in function.params} | {n.var.name for n in walk(function) if isinstance(n, relax.Binding)}


def _removed(session: Session, module: IRModule, name: str) -> str:
    """The pass that removes a variable, in words."""
    context = pass_context(session)
    for step in pipeline(session.state.pipeline).passes:
        module = context.apply(step, module)
        if not bound_variables(module, name):
            return f"the pass `{step.name}`"
    return "a pass"


# --- vectorize --------------------------------------------------------------------------------------------------------
def _vectorize(session: Session, argument: Span) -> str:
    given = words(argument)
    if not given or len(given) > 2:
        needed(argument, ":why-not vectorize LOOP [FN]")
    name = given[1].text if len(given) == 2 else _only_kernel(session, given[0])
    function = session.module.functions.get(name)
    module = session.module
    if function is None:  # what a pass of the pipeline makes
        module = session.stages().scheduled
        function = module.functions.get(name)
    if not isinstance(function, PrimFunc):
        kernels = (
            ", ".join(f"`{n}`" for n, _ in session.module.prim_funcs()) or "none yet; `:apply legalize-ops` makes some"
        )
        fail("RLX7103", f"there is no kernel `{name}`", given[-1], help=f"kernels: {kernels}")
    sch = Schedule(module.with_functions({name: function}))
    return why_not_vectorized(sch, loop_variable(sch, given[0]), name)


def _only_kernel(session: Session, word: Span) -> str:
    """The kernel that has a loop of that name, when one alone has."""
    found = []
    for name, function in session.module.prim_funcs():
        sch = Schedule(session.module.with_functions({name: function}))
        if any(word.text in (var.name, known) for var, known in loop_names(sch).items()):
            found.append(name)
    if len(found) != 1:
        said = f"{len(found)} kernels have a loop `{word.text}`" if found else f"no kernel has a loop `{word.text}`"
        help = "say which: " + ", ".join(f"`{n}`" for n in found[:8]) if found else "`:schedule FN` lists loops"
        fail("RLX7103", said, word, help=help)
    return found[0]


_QUESTIONS: dict[str, Callable[[Session, Span], str]] = {
    "fuse": _fuse, "equal": _equal, "reuse": _reuse, "vectorize": _vectorize,
}  # fmt: skip


def question_choices(session: Session, text: str) -> Iterable[Choice]:
    """Questions, then variables and kernels."""
    if " " not in text:
        return prefix_choices(text, [(name, "") for name in _QUESTIONS])
    names = {n.var.name: str(n.var.struct_info) for _, f in session.module.relax_functions() for n in walk(f)
             if isinstance(n, relax.Binding)}  # fmt: skip
    return [*prefix_choices(text, names.items()), *function_choices(session, text)]


COMMANDS: tuple[Command, ...] = (
    Command(
        "why-not",
        USAGE,
        "why something was not done\n"
        "fuse: why two variables (or kernels) are not computed together; equal: what is known of two dimensions;\n"
        "reuse: why two variables do not share memory; vectorize: what keeps a loop of a kernel from vectors.",
        why_not,
        question_choices,
    ),
)
