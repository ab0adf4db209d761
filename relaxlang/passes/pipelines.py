"""Named pipelines, and pipelines as text: `legalize-ops{skip=[matmul]},normalize`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaxlang.base.arguments import checked
from relaxlang.base.diagnostics import Diagnostics, RelaxlangError, fail
from relaxlang.base.fingerprint import note_addition
from relaxlang.base.source import Source
from relaxlang.base.suggest import did_you_mean
from relaxlang.passes import ALIASES, PASSES, load_pass
from relaxlang.passes.base import Pass, Sequential, check_options, pass_name
from relaxlang.syntax.pipeline_text import PassSpec, parse_pipeline

# The least that makes any module run: the 2022 minimum build. No optimisation.
MINIMUM = ("to-non-dataflow", "call-tir-rewrite", "vm-memory-lower", "vm-shape-lower")
# What comes when memory is planned: it turns allocations into calls of the virtual machine.
AFTER_PLANNING = ("kill-after-last-use", "vm-memory-lower", "vm-shape-lower")
# From operators to fused kernels. Nothing after it needs any of these passes to have run.
OPTIMIZATION = (
    "legalize-ops", "canonicalize-bindings", "eliminate-common-subexpr", "fold-constant", "dead-code-elimination",
    "convert-to-dataflow", "annotate-tir-op-pattern", "fuse-ops", "fuse-tir", "fuse-transpose-matmul",
    "fuse-matmul-chain", "rewrite-dataflow-reshape", "dead-code-elimination", "bind-target", "schedule-cpu",
    "split-layout-rewrite-preproc", "fold-constant", "merge-loops", "dead-code-elimination",
)  # fmt: skip
_LOWERING = (
    "to-non-dataflow", "call-tir-rewrite", "static-plan-block-memory", "check-workspace", "kill-after-last-use",
    "vm-memory-lower", "vm-shape-lower", "attach-global-symbol",
)  # fmt: skip
# One kernel for each operator, fast in itself, and memory that is used again.
_UNFUSED = (
    "legalize-ops", "canonicalize-bindings", "eliminate-common-subexpr", "fold-constant", "dead-code-elimination",
    "bind-target", "schedule-cpu",
)  # fmt: skip
# Rewrites that compute the same with other operators, so that results may differ in their last digits.
_ALGEBRA = (
    "inline-private-functions", "fold-batchnorm-to-conv2d", "decompose-ops-for-inference", "adjust-matmul-order",
    "remove-redundant-reshape",
)  # fmt: skip
DEFAULT = (*OPTIMIZATION, *_LOWERING)
LEVELS = ("O0", "O1", "O2", "O3")
"""The pipelines of `relaxc -O0` to `-O3`: lowering alone, without fusion, the default one, algebra first."""
PIPELINES: dict[str, tuple[str, ...]] = {
    "minimum": MINIMUM,
    "default": DEFAULT,
    "O0": MINIMUM,
    "O1": (*_UNFUSED, *_LOWERING),
    "O2": DEFAULT,
    "O3": (*_ALGEBRA, *DEFAULT),
}
_extra: dict[str, Callable[[], Sequential]] = {}
_own: dict[str, type[Pass]] = {}


@checked
def register_pipeline(name: str, make: Callable[[], Sequential]) -> None:
    """Give a pipeline of one's own a name, for `build(pipeline=name)` and pipelines as text."""
    _extra[name] = make
    note_addition(name)


@checked
def register_pass(cls: type[Pass], override: bool = False) -> None:
    """Let pipelines as text name a pass of one's own, by its name and with its fields as options. RLX3106 when the name
    is taken and `override` is not set."""
    name = pass_name(cls)
    if not override and (name in PASSES or name in ALIASES or name in _own):
        fail("RLX3106", f"there is a pass `{name}` already", help="pass `override=True` to replace it")
    _own[name] = cls
    note_addition(name)


def pipeline(text: str | Pass | Sequence[Pass], name: str = "<pipeline>") -> Sequential:
    """A pipeline from its name, its text, or passes; `name` is the text's origin."""
    if isinstance(text, Sequential):
        return text
    if isinstance(text, Pass):
        return Sequential((text,))
    if not isinstance(text, str):
        passes = tuple(text) if isinstance(text, (list, tuple)) else (text,)
        wrong = [p for p in passes if not isinstance(p, Pass)]
        if wrong:
            raise RelaxlangError(f"a pipeline is a name, its text or passes, not `{type(wrong[0]).__name__}`")
        return Sequential(passes)
    source = Source(name, text)
    diagnostics = Diagnostics()
    specs = parse_pipeline(source, diagnostics)
    diagnostics.check()
    return Sequential(tuple(step for spec in specs for step in _steps(spec)))


def _steps(spec: PassSpec) -> tuple[Pass, ...]:
    if spec.name in _extra:
        return _extra[spec.name]().passes
    if spec.name in PIPELINES:
        return tuple(load_pass(n)() for n in PIPELINES[spec.name])
    return (find_pass(spec),)


def find_pass(spec: PassSpec) -> Pass:
    """The pass that a piece of pipeline text names, with its options."""
    if spec.name in _own:
        return check_options(_own[spec.name], spec.options, spec.span)
    if spec.name not in PASSES and spec.name not in ALIASES:
        near = did_you_mean(spec.name, [*PASSES, *ALIASES, *PIPELINES, *_extra, *_own])
        help = f"did you mean `{near}`?" if near else "`relaxc --list=passes` shows them all"
        fail("RLX3101", f"there is no pass or pipeline `{spec.name}`", spec.span, help=help)
    return check_options(load_pass(spec.name), spec.options, spec.span)
