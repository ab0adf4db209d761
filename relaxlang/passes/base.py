"""What a pass is, how passes are put in sequence, and the context they run in.

A pass is a record, or a frozen dataclass: its fields are its options, its docstring holds executed `Before:`/`After:`
programs. Class `FuseOps` lives in `fuse_ops.py` and is called `fuse-ops` in pipelines. Applying one: `FuseOps()(mod)`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, Token
from copy import copy
from typing import Any, ClassVar

from relaxlang.base.arguments import check_fields, checked
from relaxlang.base.diagnostics import DiagnosticError, fail
from relaxlang.base.record import record
from relaxlang.base.recursion import deep_recursion
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.configuration.frozen import check_frozen
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.relax import Function
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.back_end import BackEnds, installed_back_ends


def pass_name(cls: type) -> str:
    """The pipeline name of a pass class: `FuseTIR` is `fuse-tir`, `CallTIRRewrite` is `call-tir-rewrite`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z]|[A-Z]{2})|(?<=[A-Z])(?=[A-Z][a-z])", "-", cls.__name__).lower()


@record
class Pass:
    """A transformation of modules. Subclasses implement `run`."""

    aliases: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def name(self) -> str:
        """The pipeline name."""
        return pass_name(type(self))

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The transformed module; `mod` itself when there is nothing to do."""
        raise TypeError(f"{type(self).__name__} does not say what it does")

    @checked
    def __call__(self, mod: IRModule, ctx: PassContext | None = None) -> IRModule:
        """Apply the pass, under the instruments of the context."""
        return (PassContext.current() if ctx is None else ctx).apply(self, mod)

    def __str__(self) -> str:
        from dataclasses import fields

        options = ",".join(
            f"{f.name}={_option_text(getattr(self, f.name))}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        )
        return self.name + (f"{{{options}}}" if options else "")


def _option_text(value: Any) -> str:
    if isinstance(value, (tuple, list, frozenset, Mapping)):
        return "[" + ",".join(_option_text(v) for v in value) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


@record
class FunctionPass(Pass):
    """A pass that looks at one Relax function at a time."""

    def run_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The transformed function; `func` itself when there is nothing to do."""
        raise TypeError(f"{type(self).__name__} does not say what it does")

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        changed: dict[str, AnyFunc] = dict(mod.functions)
        for name, func in mod.relax_functions():
            changed[name] = self.run_function(func, mod, ctx)
        return mod.with_functions(changed)


@record
class PrimFuncPass(Pass):
    """A pass that looks at one TensorIR function at a time."""

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        """The transformed function; `func` itself when there is nothing to do."""
        raise TypeError(f"{type(self).__name__} does not say what it does")

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        changed: dict[str, AnyFunc] = dict(mod.functions)
        for name, func in mod.prim_funcs():
            changed[name] = self.run_prim_func(func, ctx)
        return mod.with_functions(changed)


@record
class Sequential(Pass):
    """Passes one after the other."""

    passes: tuple[Pass, ...] = ()

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for step in self.passes:
            mod = ctx.apply(step, mod)
        return mod

    def insert_before(self, name: str, *steps: Pass) -> Sequential:
        """The passes with `steps` before the first that is called `name`; RLX3101 when there is none."""
        at = self._index(name)
        return Sequential((*self.passes[:at], *steps, *self.passes[at:]))

    def insert_after(self, name: str, *steps: Pass) -> Sequential:
        """The passes with `steps` after the first that is called `name`; RLX3101 when there is none."""
        at = self._index(name) + 1
        return Sequential((*self.passes[:at], *steps, *self.passes[at:]))

    def without(self, *names: str) -> Sequential:
        """The passes but for those of these names; RLX3101 for a name that none has."""
        for name in names:
            self._index(name)
        return Sequential(tuple(p for p in self.passes if p.name not in names))

    def _index(self, name: str) -> int:
        names = [p.name for p in self.passes]
        if name not in names:
            known = ", ".join(f"`{n}`" for n in names)
            fail("RLX3101", f"there is no pass `{name}` in the pipeline", help=f"its passes: {known}")
        return names.index(name)

    def __str__(self) -> str:
        return ",".join(str(p) for p in self.passes)


# --- instruments ------------------------------------------------------------------------------------------------------
class PassInstrument:
    """Watches passes run. All methods do nothing here."""

    def should_run(self, mod: IRModule, step: Pass) -> bool:
        """Whether to run the pass at all."""
        return True

    def before(self, mod: IRModule, step: Pass) -> None:
        """Called before a pass runs."""

    def after(self, mod: IRModule, step: Pass) -> None:
        """Called with the module that a pass made."""


class PassTiming(PassInstrument):
    """Collects the seconds that each pass takes, in order; nested ones too (`depth`)."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, float]] = []
        self._open: list[tuple[int, float]] = []

    def before(self, mod: IRModule, step: Pass) -> None:
        self._open.append((len(self.rows), time.perf_counter()))
        self.rows.append((len(self._open) - 1, step.name, 0.0))

    def after(self, mod: IRModule, step: Pass) -> None:
        row, start = self._open.pop()
        depth, name, _ = self.rows[row]
        self.rows[row] = (depth, name, time.perf_counter() - start)


class PrintIR(PassInstrument):
    """Prints the module after passes: of every one, or of those named; `write` receives the text."""

    def __init__(self, write: Callable[[str], object], after: Iterable[str] | None = None) -> None:
        self.write = write
        self.names = None if after is None else frozenset(after)

    def after(self, mod: IRModule, step: Pass) -> None:
        if self.names is None or step.name in self.names:
            self.write(f"# after {step}\n{mod.script()}\n")


# --- context ----------------------------------------------------------------------------------------------------------
_current: ContextVar[PassContext | None] = ContextVar("relaxlang_pass_context", default=None)


class PassContext:
    """What passes may ask about the compilation.

    `disabled` names passes to leave out; `config` holds options by name; `instruments` watch; `target` is what code is
    made for (any object of the code generator); `evaluate(func, args) -> value` runs a function while compiling (the
    driver gives compiled code, or the interpreter); `back_ends` are those that passes may call beside the
    ones that relaxlang brings. As a context manager it is the default of calls inside.
    """

    @checked
    def __init__(
        self,
        *,
        opt_level: int = 2,
        disabled: Iterable[str] = (),
        instruments: Iterable[PassInstrument] = (),
        config: Mapping[str, Any] | None = None,
        target: Any = None,
        evaluate: Callable[..., Any] | None = None,
        back_ends: Iterable[Any] = (),
    ) -> None:
        self.opt_level = opt_level
        self.disabled = frozenset(disabled)
        self.instruments = tuple(instruments)
        self.config = dict(config or {})
        self.target = target
        self.evaluate = evaluate
        self._back_ends = {one.name: one for one in back_ends}
        self._token: Token[PassContext | None] | None = None

    def compiling(self, target: Any, evaluate: Callable[..., Any] | None = None) -> PassContext:
        """The context of one compilation: this one with that target, and with a way to run functions where it states
        none. It itself stays as it is, and serves for other targets."""
        made = copy(self)
        made.target, made.evaluate = target, self.evaluate or evaluate
        return made

    @property
    def back_ends(self) -> BackEnds:
        """The back ends that passes may call."""
        known = installed_back_ends()
        return known._replace(by_name={**known.by_name, **self._back_ends}) if self._back_ends else known

    @property
    def has_own_code(self) -> bool:
        """Whether the context makes passes call code of the program: instruments, back ends, a way to run functions."""
        return bool(self.instruments or self._back_ends) or self.evaluate is not None

    @staticmethod
    def current() -> PassContext:
        """The innermost context entered by `with`, else a default one."""
        return _current.get() or PassContext()

    def __enter__(self) -> PassContext:
        self._token = _current.set(self)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._token is not None:
            _current.reset(self._token)
            self._token = None

    def apply(self, step: Pass, mod: IRModule) -> IRModule:
        """Run a pass, unless it is disabled or an instrument declines; errors name the pass."""
        if step.name in self.disabled or not all(i.should_run(mod, step) for i in self.instruments):
            return mod
        for instrument in self.instruments:
            instrument.before(mod, step)
        try:
            with deep_recursion():
                made = step.run(mod, self)
        except RecursionError:
            fail("RLX5017", f"the program is nested too deeply for the pass `{step.name}`",
                 help="give parts of long expressions names of their own")  # fmt: skip
        except DiagnosticError as fault:
            if not isinstance(step, Sequential):
                fault.add_note(f"in the pass `{step}`")
                _show_nodes(fault, mod, step)
            raise
        check_frozen(mod, made, step.name)
        for instrument in self.instruments:
            instrument.after(made, step)
        return made

    def settings(self) -> Attrs:
        """The context's settings as plain data; of an option that is none only its type is told."""
        config = {name: v if _is_plain(v) else f"<{type(v).__name__}>" for name, v in sorted(self.config.items())}
        return Attrs({"opt_level": self.opt_level, "disabled": sorted(self.disabled), "config": config})


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(v) for v in value)
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    return value is None or isinstance(value, (bool, int, float, str))


def _show_nodes(fault: DiagnosticError, mod: IRModule, step: Pass) -> None:
    """Point errors about nodes that stand in no file into the printed module that the pass was given."""
    if any(d.span is None and d.node is not None for d in fault.diagnostics):
        from relaxlang.syntax.printer.locate import show_nodes

        show_nodes(fault, mod, f"<before {step.name}>")


def _as_tuples(value: Any) -> Any:
    """The lists of pipeline text, those in lists too, as the tuples that options are."""
    return tuple(_as_tuples(v) for v in value) if isinstance(value, list) else value


def check_options(cls: type[Pass], options: Mapping[str, Any], span: Any = None) -> Pass:
    """`cls(**options)`, with a diagnostic for an option the pass does not have or a value of the wrong type."""
    from dataclasses import fields

    known = {f.name: f for f in fields(cls)}
    for name, value in options.items():
        if name not in known:
            listed = ", ".join(f"`{n}`" for n in known) or "none"
            fail("RLX3102", f"the pass `{pass_name(cls)}` has no option `{name}`", span, help=f"its options: {listed}")
        default = known[name].default
        if isinstance(default, (bool, int, str)) and not isinstance(value, type(default)):
            fail("RLX3103", f"`{name}` of `{pass_name(cls)}` is a {type(default).__name__}, not {value!r}", span)
    tuples = {n: _as_tuples(v) for n, v in options.items()}
    return cls(
        **{
            n: (v,) if isinstance(known[n].default, tuple) and not isinstance(v, tuple) else v
            for n, v in tuples.items()
        }
    )
