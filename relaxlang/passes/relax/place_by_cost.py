"""PlaceByCost: what each part of a program runs on is measured, and the fastest is taken."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from relaxlang.base.config import config
from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError, fail
from relaxlang.base.files import write_atomically
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.configuration.host import this_machine
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import TensorStructInfo
from relaxlang.ir.visit import walk
from relaxlang.passes.back_end import CODEGEN, COMPOSITE, BackEnd, CompositePattern, Match
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.relax.bind_symbolic_vars import bind_symbolic_vars
from relaxlang.passes.relax.convert_to_dataflow import ConvertToDataflow
from relaxlang.passes.relax.fuse_ops_by_pattern import PatternFuser
from relaxlang.passes.relax.merge_composite_functions import MergeCompositeFunctions, Merger
from relaxlang.passes.relax.run_codegen import RunCodegen, flattened
from relaxlang.syntax.struct_info import bound_vars

PLACEMENT = "placement"
"""The attribute of a module that says what was measured and chosen."""
NATIVE = "native"
"""What relaxlang's own code is called among the choices."""
MARGIN = 0.05
"""The share of the time that a back end must save at least: less is noise, and not worth a library."""
_VERSION = 2
"""To be raised when the same program is measured differently."""


@record
class PlaceByCost(Pass):
    """Measure what back ends can compute, on this machine and on the module's own shapes, beside relaxlang's own code,
    and give each back end the parts for which it is the fastest: functions with the attribute `Codegen`, for
    `run-codegen`.

    `back_ends` are the names of those to ask; without, all that are installed. `dims` gives symbolic dimensions the
    sizes to measure with, as pairs of a name and a size; the program stays as general as it was. Parts of several back
    ends that overlap go to the one that saves the most time. With `whole`, the default, `main` is then measured as a
    whole: with that choice, with each back end alone, and without any; the fastest is taken. Measurements are kept in
    the cache directory, by the part's text and sizes, the processor and the back end's version. The module's attribute
    `placement` tells what was measured and chosen; `placement_text(mod)` is that as a table.

    Dataflow blocks are made first. Nothing else changes where relaxlang's own code is the fastest, as here:

    Before:

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                y = R.sin(x)
                R.output(y)
            return y

    After:

        @I.ir_module
        class Module:
            I.module_attrs({"placement": {"parts": [], "whole": []}})

            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                with R.dataflow():
                    y = R.sin(x)
                    R.output(y)
                return y
    """

    back_ends: tuple[str, ...] | list[str] = ()
    dims: tuple[Any, ...] | list[Any] = ()
    whole: bool = True

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        mod = ConvertToDataflow(min_size=1).run(mod, ctx)
        sizes = _sizes(self.dims)
        bind_symbolic_vars(mod, sizes)  # refuses names that the module does not have
        place = _Placement(mod, self._asked(ctx), sizes, ctx)
        chosen = place.chosen()
        told: list[dict[str, Any]] = []
        if self.whole and place.parts and _can_be_measured(bind_symbolic_vars(mod, sizes)):
            chosen, told = place.best_whole(chosen)
        made = place.applied(chosen)
        parts = [part.told(part in chosen) for part in place.parts]
        return made.with_attrs(made.attrs.set(PLACEMENT, {"parts": parts, "whole": told}))

    def _asked(self, ctx: PassContext) -> list[BackEnd]:
        """The back ends to measure: those that are named, or those that are installed."""
        if self.back_ends:
            named = [ctx.back_ends.find(name) for name in self.back_ends]
            for one in named:
                one.version()
            return named
        return [one for one in ctx.back_ends.by_name.values() if _is_installed(one)]


def _is_installed(back_end: BackEnd) -> bool:
    try:
        back_end.version()
    except DiagnosticError:
        return False
    return True


def _sizes(dims: Iterable[Any]) -> dict[str | Any, Any]:
    """The sizes of dimensions by name; RLX0454 for what is no pair of a name and a size."""
    made: dict[str, int] = {}
    for pair in dims:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            fail("RLX0454", f"`dims` are pairs of a dimension's name and its size, not {pair!r}")
        name, size = pair
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            fail("RLX0454", f"the size of `{name}` is a positive number, not {size!r}")
        made[name] = size
    return made


def _can_be_measured(mod: IRModule) -> bool:
    """Whether `main` takes tensors of known shapes alone."""
    main = mod.functions.get("main")
    return isinstance(main, relax.Function) and all(
        isinstance(p.struct_info, TensorStructInfo)
        and p.struct_info.dims is not None
        and not bound_vars((p.struct_info,))
        for p in main.params
    )


@record(frozen=False, eq=False)
class _Part:
    """What one back end could compute: the variables of the calls (`roots`), all that they compute (`covers`), and the
    seconds that it takes there and in relaxlang's own code."""

    back_end: BackEnd
    roots: tuple[relax.Var, ...]
    covers: frozenset[relax.Var]
    seconds: float = 0.0
    native: float = 0.0

    @property
    def gain(self) -> float:
        """The seconds that are saved."""
        return self.native - self.seconds

    def told(self, chosen: bool) -> dict[str, Any]:
        """What the module's attribute says of it."""
        return {
            "variables": [v.name for v in self.roots],
            "back_end": self.back_end.name,
            "microseconds": _microseconds(self.seconds),
            "native_microseconds": _microseconds(self.native),
            "chosen": chosen,
        }


def _microseconds(seconds: float) -> float:
    return float(f"{seconds * 1e6:.4g}")


class _Placement:
    """The parts of a module that back ends could compute, measured."""

    def __init__(
        self, mod: IRModule, back_ends: Sequence[BackEnd], sizes: Mapping[str | Any, Any], ctx: PassContext
    ) -> None:
        self.mod = mod
        self.sizes = sizes
        self.ctx = ctx
        self.parts = [part for back_end in back_ends for part in self._parts(back_end)]
        for part in self.parts:
            part.native, part.seconds = self._measured(part)

    def _parts(self, back_end: BackEnd) -> list[_Part]:
        """What a back end could compute, the largest pieces that it takes at once."""
        fuser = PatternFuser(self.mod, back_end.patterns(), True, False)
        fused = fuser.run(self.mod)
        groups: list[tuple[relax.Var, ...]] = [(root,) for root in fuser.taken]
        if back_end.takes_whole_functions:
            merger = Merger(fused)
            blocks = [n for _, f in fused.relax_functions() for n in walk(f) if isinstance(n, relax.DataflowBlock)]
            found = [g for b in blocks for g in merger.groups(b) if g.back_end]
            groups = [tuple(b.var for b in g.members) for g in found]
        return [_Part(back_end, roots, frozenset(v for r in roots for v in fuser.taken[r]))
                for roots in groups if all(r in fuser.taken for r in roots)]  # fmt: skip

    def applied(self, parts: Sequence[_Part]) -> IRModule:
        """The module with functions for these parts."""
        mod = self.mod
        for back_end in dict.fromkeys(p.back_end for p in parts):
            roots = {r for p in parts if p.back_end is back_end for r in p.roots}
            patterns = [_only(p, roots) for p in back_end.patterns()]
            mod = PatternFuser(mod, patterns, True, not back_end.takes_whole_functions).run(mod)
        return MergeCompositeFunctions().run(mod, self.ctx)

    # --- choices ------------------------------------------------------------------------------------------------------
    def chosen(self) -> list[_Part]:
        """The parts that save the most time together, as far as taking the greatest saving first finds them; or those
        of one back end, when they save more."""
        names = dict.fromkeys(p.back_end.name for p in self.parts)
        sets = [
            self._greedy(self.parts),
            *(self._greedy([p for p in self.parts if p.back_end.name == n]) for n in names),
        ]
        return max(sets, key=lambda s: sum(p.gain for p in s))

    @staticmethod
    def _greedy(parts: Sequence[_Part]) -> list[_Part]:
        made: list[_Part] = []
        for part in sorted(parts, key=lambda p: -p.gain):
            if part.gain > MARGIN * part.native and not any(part.covers & other.covers for other in made):
                made.append(part)
        return made

    def best_whole(self, chosen: list[_Part]) -> tuple[list[_Part], list[dict[str, Any]]]:
        """The choice with which `main` is the fastest: this one, one back end for all that it takes, or none; and what
        was measured."""
        sets: dict[str, list[_Part]] = {NATIVE: []}
        for part in self.parts:
            sets.setdefault(part.back_end.name, []).append(part)
        if not any(set(chosen) == set(s) for s in sets.values()):
            sets["mixed"] = chosen
        modules = [self._bound(RunCodegen().run(self.applied(s), self.ctx)) for s in sets.values()]
        seconds = self._cached([self._text(m) for m in modules], lambda: self.ctx.back_ends.measure(modules))
        best = min(range(len(sets)), key=seconds.__getitem__)
        if seconds[0] <= seconds[best] * (1 + MARGIN):
            best = 0  # relaxlang's own code, which needs no library
        told = [
            {"choice": name, "microseconds": _microseconds(s), "chosen": at == best}
            for at, (name, s) in enumerate(zip(sets, seconds, strict=True))
        ]
        return list(sets.values())[best], told

    # --- measuring ----------------------------------------------------------------------------------------------------
    def _measured(self, part: _Part) -> tuple[float, float]:
        """The seconds of a part in relaxlang's own code and on the back end."""
        mod = self.applied([part])
        name = next(n for n, f in mod.relax_functions() if CODEGEN in f.attrs)
        own = self._bound(IRModule({"main": _named_main(flattened(mod, name))}))
        main = own["main"]
        assert isinstance(main, relax.Function)

        def measure() -> list[float]:
            made = part.back_end.generate(name, main, {}).replace(attrs=main.attrs)
            return self.ctx.back_ends.measure([own, IRModule({"main": made})])

        native, seconds = self._cached([self._text(own), part.back_end.name, part.back_end.version()], measure)
        return native, seconds

    def _bound(self, mod: IRModule) -> IRModule:
        """A module with the sizes that were given in the places of its dimensions."""
        names = {v.name for _, f in mod.relax_functions() for v in bound_vars(tuple(p.struct_info for p in f.params))}
        return bind_symbolic_vars(mod, {n: s for n, s in self.sizes.items() if n in names})

    @staticmethod
    def _text(mod: IRModule) -> str:
        return mod.script(constants="inline")

    def _cached(self, parts: Sequence[str], measure: Callable[[], list[float]]) -> list[float]:
        """What `measure` gives, from the cache when it has been measured for the same texts on such a machine."""
        machine = this_machine()
        key = "\0".join([str(_VERSION), machine.cpu, machine.features, str(config.num_threads), *parts])
        root = config.cache_dir
        path = None if root is None else os.path.join(root, "costs", hashlib.sha256(key.encode()).hexdigest() + ".json")
        known = None if path is None else _read(path)
        if known is None:
            known = measure()
            if path is not None:
                _write(path, known)
        return known


def _only(pattern: CompositePattern, roots: set[relax.Var]) -> CompositePattern:
    """A pattern that counts where its last variable is one of these."""

    def predicate(match: Match) -> bool:
        return match.bindings[-1].var in roots and (pattern.predicate is None or pattern.predicate(match))

    return CompositePattern(pattern.name, pattern.pattern, predicate)


def _named_main(func: relax.Function) -> relax.Function:
    return func.replace(attrs=func.attrs.without(CODEGEN).without(COMPOSITE).set("global_symbol", "main"))


def _read(path: str) -> list[float] | None:
    """The seconds in a file of the cache; None when there is none, or it is damaged."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return None
    good = isinstance(found, list) and found and all(isinstance(v, float) and v > 0 for v in found)
    return found if good else None


def _write(path: str, seconds: list[float]) -> None:
    """Keep seconds for the next time; a cache that cannot be written to is none."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_atomically(path, json.dumps(seconds).encode())
    except (OSError, RelaxlangError):
        return


def placement_text(mod: IRModule) -> str:
    """What `PlaceByCost` measured and chose, as a table; empty when it has not run."""
    said = mod.attrs.get(PLACEMENT)
    if said is None:
        return ""
    lines = []
    for part in said["parts"]:
        names = ", ".join(part["variables"][:4]) + (", …" if len(part["variables"]) > 4 else "")
        times = f"{part['microseconds']:>10,.1f} µs, native {part['native_microseconds']:>10,.1f} µs"
        lines.append(f"{'*' if part['chosen'] else ' '} {part['back_end']:<14} {times}   {names}")
    for row in said["whole"]:
        lines.append(f"{'*' if row['chosen'] else ' '} {row['choice']:<14} {row['microseconds']:>10,.1f} µs   main")
    return "\n".join(lines)
