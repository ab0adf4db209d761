"""A session: text in, results out. It writes nothing, reads nothing but what a command names, and knows no terminal.

session = Session()
session.execute(":load examples/digits.rlx")
print(session.execute(":list").text)
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from relaxlang.analysis.uses import referenced_functions
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Diagnostics, RelaxlangError, fail
from relaxlang.base.record import replace
from relaxlang.base.source import Source, Span
from relaxlang.builder.dpl.rules import is_rule
from relaxlang.ir.module import IRModule
from relaxlang.ir.relax import Function
from relaxlang.ir.tir import PrimFunc
from relaxlang.ops import Operators, default_operators
from relaxlang.repl.calculate import Calculator, Computation
from relaxlang.repl.command import Answer
from relaxlang.repl.commands import find_command
from relaxlang.repl.commands.schedule import primitive
from relaxlang.repl.debugger import Debugger, Place
from relaxlang.repl.define import Extended, extend
from relaxlang.repl.prompts import PROMPT, SCHEDULE_PROMPT
from relaxlang.repl.stages import Stages
from relaxlang.repl.state import RESULTS, State, Step, StepKind
from relaxlang.repl.timing import duration
from relaxlang.repl.values import headline, shown
from relaxlang.syntax import tree
from relaxlang.syntax.elaborate.decorators import dotted
from relaxlang.syntax.parser import parse_surface

PROGRAMS = 8
"""How many built programs are kept, for modules and expressions that are run again."""
WIDTH = 80
"""Columns that drawings and side-by-side views take where no terminal says how many it has."""
SLOW = 0.05
"""Seconds from which the time of compiling is worth mentioning."""


class Result(NamedTuple):
    """What one input gave: `text` to show, in a `language` for its colours (`text`, `rlx`, `diff`, `llvm`, `asm`), the
    `value`, what is to be said about errors, whether all went well, and whether the session is over."""

    text: str
    value: Any
    diagnostics: tuple[Diagnostic, ...]
    ok: bool
    language: str = "text"
    done: bool = False


class Session:
    """The state of a session and how inputs change it. An input that fails, or is interrupted, changes nothing."""

    def __init__(self) -> None:
        self.state = State()
        self.operators: Operators = default_operators()
        self.debugger: Debugger | None = None
        self.places: tuple[Place, ...] = ()
        self.editor: Callable[[str], str] | None = None
        self.warnings: list[Diagnostic] = []
        self.width = WIDTH
        self.count = 0
        self.compiling = 0.0
        self.running = 0.0
        self._programs: OrderedDict[tuple[int, str, str, str], Stages] = OrderedDict()

    # --- inputs -------------------------------------------------------------------------------------------------------
    def execute(self, text: str) -> Result:
        """Do what a text says: a command behind a colon, or statements of the language. Raises nothing but
        KeyboardInterrupt, and what is an error of relaxlang itself; the state is then as it was before."""
        self.count += 1
        self.warnings = []
        self.compiling = self.running = 0.0
        before, operators = self.state, self.operators
        kept = False
        try:
            answer = self._answer(Source(f"<input {self.count}>", text.strip("\n")))
            if self.state is not before:
                self.state = replace(self.state, inputs=(*self.state.inputs, text.strip("\n")))
            kept = True
        except RelaxlangError as fault:
            return Result("", None, diagnostics_of(fault), False)
        finally:
            if not kept:
                self.state, self.operators = before, operators
        return Result(answer.text, answer.value, tuple(self.warnings), True, answer.language, answer.done)

    def _answer(self, source: Source) -> Answer:
        text = source.text.strip()
        if text.startswith(":"):
            command, argument = find_command(source)
            return command.run(self, argument)
        if text.startswith("?"):
            start = source.text.index("?")
            command, _ = find_command(Source(source.name, ":info"))
            return command.run(self, stripped(Span(source, start + 1, len(source.text))))
        if self.state.scheduling is not None and text:
            return primitive(self, stripped(Span(source, 0, len(source.text))))
        return self._statements(source)

    def _statements(self, source: Source) -> Answer:
        diagnostics = Diagnostics()
        surface = parse_surface(source, diagnostics)
        diagnostics.check()
        answers = []
        for group in _grouped(surface.body):
            first = group[0]
            if isinstance(first, tree.ExprStmt):
                answers.append(self._expression(first.value))
            elif isinstance(first, tree.Assign) and not _is_definition(first):
                answers.append(self._assignment(first))
            else:
                answers.append(self._definitions(group))
        texts = [a.text for a in answers if a.text]
        return Answer("\n".join(texts), value=answers[-1].value if answers else None)

    def _expression(self, node: tree.Expr) -> Answer:
        calculator = self.calculator()
        value = calculator.value(node)
        made = calculator.concrete(value, node.span)
        self.state = replace(self.state, draws=calculator.draws)
        return self.result(made)

    def _assignment(self, stmt: tree.Assign) -> Answer:
        if len(stmt.targets) != 1 or not isinstance(stmt.targets[0], tree.Name):
            fail("RLX7104", "one name is assigned at a time", stmt.span)
        return self.assign(stmt.targets[0].id, stmt.value)

    def assign(self, name: str, node: tree.Expr) -> Answer:
        """Give a variable the value of an expression."""
        if name in self.module:
            fail("RLX7104", f"`{name}` is a function of the module", node.span, help="take another name")
        calculator = self.calculator()
        value = calculator.concrete(calculator.value(node), node.span)
        self.state = replace(self.state, variables={**self.state.variables, name: value}, draws=calculator.draws)
        return Answer(f"{name}: {headline(value)}" + self.times(), value=value)

    def define(self, source: Source) -> Answer:
        """Run the statements of a text, as if they had been typed."""
        return self._statements(source)

    def _definitions(self, body: Sequence[tree.Stmt]) -> Answer:
        plain = {n: v for n, v in self.state.variables.items() if isinstance(v, (bool, int, float, str, tuple, list))}
        module = self.module
        if not module.functions:
            named = next((s.name for s in body if isinstance(s, tree.ClassDef) and not is_rule(s)), module.name)
            module = module.with_name(named)
        made = extend(module, body, plain, self.operators, _checked, self.warnings.append)
        self.operators = made.operators
        if made.added or made.replaced or made.new_operators or made.rules:
            names = (*made.added, *made.replaced, *(f"R.{n}" for n in made.new_operators), *made.rules)
            self.step(made.module, "define", ", ".join(names))
        return Answer(_definition_text(made))

    # --- what commands need -------------------------------------------------------------------------------------------
    @property
    def prompt(self) -> str:
        """What stands before the next input."""
        return PROMPT if self.state.scheduling is None else SCHEDULE_PROMPT

    @property
    def module(self) -> IRModule:
        """The module as it stands."""
        return self.state.history.current.module

    def step(self, module: IRModule, kind: StepKind, detail: str) -> Step:
        """Make `module` the current one."""
        self.state = replace(self.state, history=self.state.history.add(module, kind, detail))
        return self.state.history.current

    def calculator(self, values: Mapping[str, Any] | None = None) -> Calculator:
        """An evaluator of expressions over the session's values, and others that hide them."""
        names = {**self.state.names, **(values or {})}
        return Calculator(self.module, self.operators, names, self.compute, self.state.draws)

    def stages(self, root: str = "", module: IRModule | None = None, pipeline: str = "") -> Stages:
        """The current module's way to a program (or that of another one); kept while nothing changes. With a `root`
        only that function and what it calls become a program, so that a large module does not cost much. `pipeline` is
        the session's unless one is given."""
        module = self.module if module is None else module
        pipeline = pipeline or self.state.pipeline
        key = (id(module), root, pipeline, self.state.target)
        found = self._programs.get(key)
        if found is None:
            part = module if not root else restricted(module, root)
            found = self._programs[key] = Stages(part, pipeline, self.state.target, whole=module)
            while len(self._programs) > PROGRAMS:
                self._programs.popitem(last=False)
        return found

    @property
    def known_processor(self) -> str:
        """The processor that code is made for, once something was compiled; asking earlier would take time."""
        latest = next(reversed(self._programs.values()), None)
        made = None if latest is None else latest.__dict__.get("target")
        return "" if made is None else str(made.mcpu)

    def compute(self, work: Computation) -> Any:
        """Build a program, if that is still to be done, and call its function; the times go to `compiling` and
        `running`."""
        start = time.perf_counter()
        function = self.stages(work.name, work.module).machine[work.name]
        begun = time.perf_counter()
        value = function(*work.args)
        self.running += time.perf_counter() - begun
        self.compiling += begun - start
        return value

    def times(self) -> str:
        """How long the input has computed so far, to be put behind what it gave; nothing when it has not."""
        if not self.running:
            return ""
        compiled = f", compiled in {duration(self.compiling)}" if self.compiling > SLOW else ""
        return f"   ({duration(self.running)}{compiled})"

    def result(self, value: Any, note: str = "") -> Answer:
        """The answer that shows a value and keeps it as `_` and by a number."""
        if value is None:
            return Answer("\n".join(part for part in (note, self.times().strip()) if part))
        latest = self.state.results
        number = latest[-1][0] + 1 if latest else 1
        self.state = replace(self.state, results=(*latest, (number, value))[-RESULTS:])
        head = f"_{number}: {headline(value)}{self.times()}"
        return Answer("\n".join(part for part in (note, head, shown(value)) if part), value=value)


def restricted(module: IRModule, root: str) -> IRModule:
    """The module with one function and those that it calls. The function is public, so that it outlives all passes."""
    wanted = referenced_functions(module, [root])
    functions = {n: f for n, f in module.functions.items() if n in wanted}
    function = functions[root]
    if isinstance(function, (Function, PrimFunc)) and function.is_private:
        functions[root] = function.replace(attrs=function.attrs.with_(global_symbol=root))
    return module.with_functions(functions)


def _checked(module: IRModule) -> IRModule:
    from relaxlang import driver

    return driver.parse(module.script(), "<module>")


def _is_definition(stmt: tree.Stmt) -> bool:
    """Whether an assignment belongs to a module: `N = I.param(int)`, `n = TypeVar("n")`."""
    if not isinstance(stmt, tree.Assign):
        return isinstance(stmt, (tree.FunctionDef, tree.ClassDef, tree.Import, tree.Pass))
    return dotted(stmt.value).partition(".")[0] in ("I", "ir") or dotted(stmt.value).endswith("TypeVar")


def _grouped(body: Sequence[tree.Stmt]) -> Iterator[list[tree.Stmt]]:
    """Statements one by one, but definitions that follow each other together: they may refer to each other."""
    group: list[tree.Stmt] = []
    for stmt in body:
        if _is_definition(stmt):
            group.append(stmt)
            continue
        if group:
            yield group
            group = []
        if not isinstance(stmt, (tree.ExprStmt, tree.Assign)):
            fail("RLX7104", "this statement cannot stand at the prompt", stmt.span,
                 help="definitions, assignments and expressions can; other statements stand in functions")  # fmt: skip
        yield [stmt]
    if group:
        yield group


def _definition_text(made: Extended) -> str:
    parts = []
    operators = tuple(f"R.{name}" for name in made.new_operators)
    for names, verb in (((*operators, *made.added, *made.rules), "defined"), (made.replaced, "replaced")):
        if names:
            parts.append(f"{verb} {', '.join(names)}")
    return "; ".join(parts)


def stripped(span: Span) -> Span:
    """The span without blanks at its ends."""
    text = span.text
    start = span.start + len(text) - len(text.lstrip())
    return Span(span.source, start, max(start, span.start + len(text.rstrip())))


def diagnostics_of(fault: RelaxlangError) -> tuple[Diagnostic, ...]:
    """What an error says, as diagnostics."""
    if not isinstance(fault, DiagnosticError):
        return (Diagnostic("", str(fault)),)
    from relaxlang.cli.report import with_notes

    found = list(fault.diagnostics)
    if found:
        found[-1] = with_notes(found[-1], getattr(fault, "__notes__", []))
    return tuple(found)
