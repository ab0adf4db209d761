"""Back ends as passes see them: what parts of a program they take, and what they make of these.

`FuseOpsByPattern` finds the parts by the back end's patterns, `MergeCompositeFunctions` joins them, `RunCodegen` has
the back end replace them, `PlaceByCost` measures which back end to take. Passes receive back ends through
`PassContext`; `relaxlang/__init__` puts those that relaxlang brings into the slot below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from relaxlang.base.diagnostics import fail
from relaxlang.base.suggest import did_you_mean

if TYPE_CHECKING:
    from relaxlang.builder.dpl.patterns import Pattern
    from relaxlang.ir import relax
    from relaxlang.ir.module import IRModule

COMPOSITE = "Composite"
"""The attribute of a function that is one piece of a back end's work: `blas.matmul`, the back end's name first."""
CODEGEN = "Codegen"
"""The attribute of a function that a back end makes code of as a whole: the back end's name."""


class Match(NamedTuple):
    """Where a pattern matched: what each part of it `found`, the bindings that would be taken, the last one last."""

    found: Mapping[Pattern, relax.Expr]
    bindings: Sequence[relax.VarBinding]


class CompositePattern(NamedTuple):
    """What a back end takes as one piece: a dataflow pattern under a name, and a condition on its matches."""

    name: str
    pattern: Pattern
    predicate: Callable[[Match], bool] | None = None


class BackEnd(Protocol):
    """Something outside of relaxlang that can compute parts of programs."""

    @property
    def name(self) -> str:
        """The name, with which the names of its patterns begin."""

    @property
    def takes_whole_functions(self) -> bool:
        """Whether pieces that were merged are handed over as one function; else one after the other."""

    def patterns(self) -> Sequence[CompositePattern]:
        """What it takes, the patterns that shall be tried first first."""

    def version(self) -> str:
        """What results and timings depend on, in a line: versions of libraries. RLX6038 when they are not there."""

    def generate(self, name: str, func: relax.Function, options: Mapping[str, Any]) -> relax.Function:
        """The function that takes the place of one whose body is operators alone. RLX3152 when it can't be made."""


class BackEnds(NamedTuple):
    """Back ends by name, and `measure(modules)`: the seconds that the functions `main` of modules take, which have the
    same parameters, of constant shapes."""

    by_name: Mapping[str, BackEnd]
    measure: Callable[[Sequence[IRModule]], list[float]]

    def find(self, name: str) -> BackEnd:
        """The back end of a name; RLX3150 when there is none."""
        found = self.by_name.get(name)
        if found is None:
            near = did_you_mean(name, self.by_name)
            known = ", ".join(f"`{n}`" for n in sorted(self.by_name)) or "none"
            fail("RLX3150", f"there is no back end `{name}`",
                 help=f"did you mean `{near}`?" if near else f"there is {known}")  # fmt: skip
        return found


_provider: list[Callable[[], BackEnds]] = []


def install_back_ends(provider: Callable[[], BackEnds]) -> None:
    """Make `provider` what gives the back ends that a context has when none are stated."""
    _provider[:] = [provider]


def installed_back_ends() -> BackEnds:
    """The back ends that relaxlang brings."""
    return _provider[0]()
