"""Watching passes: the module as text before and after them, in files, as differences, in numbers; checking it after
each; and running only a few."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable

from relaxlang.base.colors import paint
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, RelaxlangError
from relaxlang.base.files import write_atomically
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import walk
from relaxlang.passes.base import Pass, PassInstrument, Sequential

Write = Callable[[str], object]
Names = frozenset[str] | None  # None: all passes


class PrintModule(PassInstrument):
    """Writes the module before and after the named passes, and after every pass that changed it when `changed`."""

    def __init__(self, write: Write, before: Names, after: Names, changed: bool) -> None:
        self.write = write
        self.names_before = before
        self.names_after = after
        self.changed = changed
        self._seen: list[IRModule] = []

    def before(self, mod: IRModule, step: Pass) -> None:
        self._seen.append(mod)
        if self.names_before is None or step.name in self.names_before:
            self._print("before", step, mod)

    def after(self, mod: IRModule, step: Pass) -> None:
        unchanged = self._seen.pop() is mod
        if self.names_after is None or step.name in self.names_after:
            self._print("after", step, mod)
        elif self.changed and not unchanged:
            self._print("after", step, mod)

    def _print(self, when: str, step: Pass, mod: IRModule) -> None:
        self.write(f"# {when} {step}\n{mod.script()}\n")


class PrintDiff(PassInstrument):
    """Writes what each pass changes, as a unified difference of the module's text."""

    def __init__(self, write: Write, color: bool) -> None:
        self.write = write
        self.color = color
        self._seen: list[IRModule] = []

    def before(self, mod: IRModule, step: Pass) -> None:
        self._seen.append(mod)

    def after(self, mod: IRModule, step: Pass) -> None:
        before = self._seen.pop()
        old, new = (m.script().splitlines() for m in (before, mod)) if before is not mod else ([], [])
        lines = list(difflib.unified_diff(old, new, "before", "after", lineterm="", n=3))[2:]
        self.write(f"# {step}" + ("" if lines else ": no change") + "\n")
        for line in lines:
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
            self.write(paint(line, style if self.color else "") + "\n")


class WriteFiles(PassInstrument):
    """Writes the module after each pass to a numbered file, `003-fuse-ops.rlx`; `000-input.rlx` is what came in."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.count = 0
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise RelaxlangError(f"cannot make the directory `{folder}`: {(error.strerror or '').lower()}") from error

    def before(self, mod: IRModule, step: Pass) -> None:
        if self.count == 0:
            self._write("input", mod)

    def after(self, mod: IRModule, step: Pass) -> None:
        self._write(step.name, mod)

    def _write(self, name: str, mod: IRModule) -> None:
        write_atomically(os.path.join(self.folder, f"{self.count:03}-{name}.rlx"), mod.script())
        self.count += 1


class BisectLimit(PassInstrument):
    """Lets only the first `limit` passes run and says which: halving it finds the pass that breaks a program."""

    def __init__(self, limit: int, write: Write) -> None:
        self.limit = limit
        self.write = write
        self.count = 0

    def should_run(self, mod: IRModule, step: Pass) -> bool:
        self.count += 1
        runs = self.count <= self.limit
        self.write(f"bisect: {'' if runs else 'not '}running pass {self.count}: {step}\n")
        return runs


class VerifyEach(PassInstrument):
    """Checks the rules of the IR after every pass that changed the module; DiagnosticError with the faults, which names
    the pass and points to the source that the faulty parts come from. What is wrong with kernels of the input, which
    reading takes as TVM's scripts have them, is no pass's fault."""

    def __init__(self) -> None:
        self._seen: list[IRModule] = []
        self._known: set[tuple[str, str]] | None = None

    def before(self, mod: IRModule, step: Pass) -> None:
        if self._known is None:
            self._known = {(d.code, d.message) for d in _breaches(mod)}
        self._seen.append(mod)

    def after(self, mod: IRModule, step: Pass) -> None:
        if self._seen.pop() is mod or isinstance(step, Sequential):
            return
        wrong = [d for d in _breaches(mod) if (d.code, d.message) not in (self._known or ())]
        if wrong:
            fault = DiagnosticError(wrong)
            fault.add_note(f"the pass `{step}` made this; `--print-ir-after={step.name}` shows it")
            raise fault


def _breaches(mod: IRModule) -> list[Diagnostic]:
    from relaxlang.analysis.well_formed import well_formed

    return [d for d in well_formed(mod) if d.level == "error"]


class BeforeScheduling(PassInstrument):
    """Keeps the module as it is before loops are scheduled, where kernels state the work that is asked for: tiles and
    vectors that reach over the end of a dimension do more. None when nothing is scheduled."""

    def __init__(self) -> None:
        self.module: IRModule | None = None

    def before(self, mod: IRModule, step: Pass) -> None:
        if self.module is None and step.name == "schedule-cpu":
            self.module = mod


COUNTS = ("functions", "bindings", "kernels", "nodes")


class Statistics(PassInstrument):
    """Counts what each pass leaves: Relax functions, their bindings, TensorIR functions, nodes of the IR in all."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[tuple[str, tuple[int, ...]]] = []
        self._last: IRModule | None = None

    def before(self, mod: IRModule, step: Pass) -> None:
        if self._last is None:
            self._note("(input)", mod)

    def after(self, mod: IRModule, step: Pass) -> None:
        if not isinstance(step, Sequential):
            self._note(str(step), mod)

    def _note(self, name: str, mod: IRModule) -> None:
        self.rows.append((name, self.rows[-1][1] if mod is self._last else counts(mod)))
        self._last = mod

    def report(self) -> str:
        """A table with a line for each pass: the counts after it, and by how much it changed them."""
        table: list[tuple[str, ...]] = [(self.name, *COUNTS)]
        before: tuple[int, ...] | None = None
        for name, now in self.rows:
            table.append((name, *(_change(n, None if before is None else before[k]) for k, n in enumerate(now))))
            before = now
        widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
        lines = (
            "  ".join(c.rjust(w) if k else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths))) for row in table
        )
        return "\n".join(lines) + "\n" + self._placement()

    def _placement(self) -> str:
        """What `place-by-cost` measured and chose, when it has run."""
        if self._last is None or "placement" not in self._last.attrs:
            return ""
        from relaxlang.passes.relax.place_by_cost import placement_text

        return placement_text(self._last) + "\n"


def counts(mod: IRModule) -> tuple[int, ...]:
    """The numbers of `COUNTS` for a module."""
    functions, kernels = dict(mod.relax_functions()), dict(mod.prim_funcs())
    bindings = nodes = 0
    for function in mod.functions.values():
        for node in walk(function):
            nodes += 1
            bindings += isinstance(node, relax.Binding)
    return len(functions), bindings, len(kernels), nodes


def _change(now: int, before: int | None) -> str:
    return str(now) if before is None or now == before else f"{now} ({now - before:+})"
