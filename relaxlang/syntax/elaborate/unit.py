"""What the elaboration of one file shares: where findings go, the operators, the module's functions by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Diagnostics, Label
from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.base.suggest import suggestion
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.relax import GlobalVar
from relaxlang.ir.struct_info import StructInfo
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import POISON, Scope, error
from relaxlang.syntax.include import Includer
from relaxlang.syntax.operators import OperatorTable
from relaxlang.syntax.scalars import no_content, other_content
from relaxlang.syntax.side_file import SideFile


class Declared:
    """A function of the module between its declaration and its elaboration.

    `state` is "new", "open" (being elaborated: whoever meets it then is recursive), "done" or "failed"; `elaborate`
    makes the function; `signature` gives its struct info when the header alone states it, result included; `info`
    keeps it.
    """

    def __init__(self, name: str, span: Span | None, node: tree.FunctionDef | None) -> None:
        self.name = name
        self.span = span
        self.node = node
        self.state = "new"
        self.elaborate: Callable[[], AnyFunc] | None = None
        self.function: AnyFunc | None = None
        self.is_prim = False
        self.signature: Callable[[], StructInfo | None] | None = None
        self.info: StructInfo | None = None
        self.var = GlobalVar(name)

    def run(self, unit: Unit) -> None:
        """Elaborate the function, once. Faults are reported; `state` says how it went."""
        if self.state != "new" or self.elaborate is None:
            return
        self.state = "open"
        try:
            self.function = self.elaborate()
            self.state = "done"
        except DiagnosticError as fault:
            unit.report(fault)
            self.state = "failed"


class Unit:
    """The state of one parse."""

    def __init__(
        self,
        diagnostics: Diagnostics,
        operators: OperatorTable,
        values: Mapping[str, Any],
        check: bool,
        includer: Includer | None = None,
    ) -> None:
        self.diagnostics = diagnostics
        self.operators = self.first_operators = operators
        self.values = values
        self.check = check
        self.includer = includer
        self.functions: dict[str, Declared] = {}
        self.externs: dict[str, GlobalVar] = {}
        self.global_infos: dict[str, tuple[Any, ...]] = {}
        self.arrays: Mapping[str, Any] = {}
        self.unproved: list[tuple[str, DType, Span | None]] = []
        self.recursive: set[str] = set()
        self.parameters: list[str] = []
        self.attrs: dict[str, Any] = {}
        self.own_operators: dict[str, str] = {}
        self.python: dict[str, str] = {}
        self.rules: dict[str, IRModule] = {}
        self.name = "Module"
        self.verify = True
        self.early = False
        self.tolerated = False
        self.bare_names = False
        self.impure: frozenset[str] = frozenset()
        self.limits: set[str] = set()

    def restart(self, impure: frozenset[str]) -> None:
        """Forget what was elaborated; `impure`: functions that are known to have side effects without saying so."""
        fresh = Unit(self.diagnostics, self.operators, self.values, self.check, self.includer)
        arrays, operators = self.arrays, self.first_operators
        self.__dict__.update(fresh.__dict__)
        self.arrays, self.operators, self.first_operators, self.impure = arrays, operators, operators, impure

    def no_array(self, text: object, of: DType, fault: str, span: Span | None) -> Diagnostic:
        """What to say of an `I.array` that is none."""
        help = ""
        if isinstance(self.arrays, SideFile) and isinstance(text, str) and text.startswith("sha256:"):
            path, state = self.arrays.path, self.arrays.fault
            help = f"the large constants of a text are in the file beside it, here `{path}`{state and ', ' + state}"
        return Diagnostic("RLX0128", f"this is no array of `{of}`: {fault}", span, help=help)

    def prove_arrays(self) -> None:
        """Report the arrays that were taken on trust and are not what their names say."""
        assert isinstance(self.arrays, SideFile)
        for name, of, span in self.unproved:
            found = self.arrays.true_digest(name)
            if found != name:
                self.complain(self.no_array(name, of, other_content(name) if found else no_content(name), span))

    def declares(self, name: str) -> bool:
        """Whether the module has a function of that name."""
        return name in self.functions or name in self.externs

    def reference(self, name: str, span: Span | None) -> GlobalVar:
        """`Module.name`."""
        declared = self.functions.get(name)
        if declared is not None:
            return declared.var
        if name in self.externs:
            return self.externs[name]
        hint = suggestion(name, (*self.functions, *self.externs), span)
        raise error("RLX0101", f"the module has no function `{name}`", span, label="not defined in the module", **hint)

    def has_failed(self, name: str) -> bool:
        """Whether a function of the module is faulty, so that what depends on it stays silent."""
        declared = self.functions.get(name)
        return declared is not None and declared.state == "failed"

    def is_kernel(self, name: str) -> bool:
        """Whether a function of the module is one of TensorIR."""
        declared = self.functions.get(name)
        return declared is not None and declared.is_prim

    def defined_at(self, name: str) -> list[Label]:
        """The place of a function's definition, as a second label."""
        declared = self.functions.get(name)
        return (
            [Label(declared.span, f"`{name}` is defined here")]
            if declared is not None and declared.span is not None
            else []
        )

    def report(self, fault: DiagnosticError) -> None:
        """Keep what an exception carries; nothing, when its cause was reported before. A limit that was hit is reported
        once, as it is hit again by all that follows."""
        for diagnostic in fault.diagnostics:
            if diagnostic.code == "RLX0120":
                if diagnostic.message in self.limits:
                    continue
                self.limits.add(diagnostic.message)
            self.diagnostics.report(diagnostic)

    def require(self, fault: DiagnosticError, *, always: bool = False) -> None:
        """Raise the fault, a contradiction, unless the module may hold it: it says `check_well_formed=False`, or is a
        script of the first releases, which did not look for such (`always`: they did). There it is a warning, the
        module goes on saying `check_well_formed=False`, and `analysis.contradictions` refuses to build it."""
        if self.verify and (always or not self.early):
            raise fault
        self.tolerated = True
        for diagnostic in fault.diagnostics:
            self.complain(diagnostic.replace(level="warning"))

    def complain(self, diagnostic: Diagnostic) -> None:
        """Keep a finding, and go on."""
        self.diagnostics.report(diagnostic)


def poison(targets: Iterable[tree.Expr], scope: Scope) -> None:
    """Bind the names of assignment targets to the faulty value, so that their uses stay silent."""
    for target in targets:
        if isinstance(target, tree.Name):
            scope.names[target.id] = POISON
        elif isinstance(target, (tree.TupleExpr, tree.ListExpr)):
            poison(target.elements, scope)
        elif isinstance(target, tree.Starred):
            poison((target.value,), scope)
