"""From PrimFuncs to kernels: the entry points of code generation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from relaxlang.base.diagnostics import DiagnosticError, Diagnostics, fail
from relaxlang.base.record import record
from relaxlang.base.recursion import deep_recursion
from relaxlang.codegen import cache, compile, jit
from relaxlang.codegen.function import KernelText, emit_kernel
from relaxlang.codegen.intrinsics import check_shifts
from relaxlang.codegen.link import provided
from relaxlang.codegen.pool import LAUNCH
from relaxlang.codegen.shared_bodies import SharedBodies
from relaxlang.codegen.signature import signature_of
from relaxlang.codegen.target import Target, as_target
from relaxlang.codegen.workers import crew
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.tir.lowering import lower
from relaxlang.runtime.executable import ObjectCode
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.kernel_signature import KernelSignature

_T = TypeVar("_T")


@record
class CompiledCode:
    """The object code of one LLVM module: a kernel, or what several share.

    `symbol` is the name of the function in the object, `externals` the symbols that it expects from the process it is
    loaded into, `llvm` the IR text before LLVM's passes.
    """

    symbol: str
    llvm: str
    externals: tuple[str, ...]
    target: Target

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.symbol} for {self.target}>"

    @cached_property
    def code(self) -> bytes:
        """The object file."""
        return cache.fetch(self.llvm, self.target, compile.object_code)

    @property
    def object_code(self) -> ObjectCode:
        """The object file as an executable carries it."""
        return ObjectCode(self.code, self.target.mtriple, self.target.mcpu, self.target.mattr)


@record
class CompiledKernel(CompiledCode):
    """The object code of one PrimFunc, which calls functions of `shared`, if there are any."""

    signature: KernelSignature
    shared: tuple[CompiledCode, ...] = ()
    __repr__ = CompiledCode.__repr__

    @property
    def name(self) -> str:
        """The name of the PrimFunc."""
        return self.signature.name

    @property
    def assembly(self) -> str:
        """The assembly text."""
        return compile.assembly(self.llvm, self.target)


def build_kernels(
    funcs: Mapping[str, PrimFunc], target: Any = None, own: Mapping[str, Target] | None = None
) -> dict[str, CompiledKernel]:
    """The compiled form of each PrimFunc, by name, for a target, or for the one that `own` has for it. They may call
    each other.

    They are lowered first as far as needed. Raises a diagnostic (RLX50xx) for what has no code on the target.
    """
    with crew(len(funcs)) as others:

        def then(made: CompiledCode) -> None:
            if others is not None and made.symbol not in begun:
                begun.add(made.symbol)
                others.add((made.llvm, made.target), lambda: made.code)

        begun: set[str] = set()
        made = _emitted(funcs, target, own, then, share=True)
        if others is not None:
            others.finish()
    for code in codes_of(made):
        _ = code.code
    return made


def emit_kernels(
    funcs: Mapping[str, PrimFunc], target: Any = None, own: Mapping[str, Target] | None = None
) -> dict[str, CompiledKernel]:
    """As `build_kernels`, but LLVM's part is left until it is asked for. The IR texts are whole: nothing is shared."""
    return _emitted(funcs, target, own, lambda made: None, share=False)


def codes_of(kernels: Mapping[str, CompiledKernel]) -> list[CompiledCode]:
    """All object files of some kernels: their own, and those that they share."""
    shared = {code.symbol: code for kernel in kernels.values() for code in kernel.shared}
    return [*kernels.values(), *shared.values()]


def _emitted(
    funcs: Mapping[str, PrimFunc],
    target: Any,
    own: Mapping[str, Target] | None,
    then: Callable[[CompiledCode], None],
    share: bool,
) -> dict[str, CompiledKernel]:
    """The texts of kernels; `then` is called with each when it is there."""
    chosen, targets = as_target(target), own or {}
    found = Diagnostics()
    lowered = _each(funcs, lambda name: _lower(name, funcs[name]), found)
    shared = SharedBodies(lowered) if share else None
    bodies: dict[str, CompiledCode] = {}

    def emit(name: str) -> CompiledKernel:
        made = _emit(name, lowered, targets.get(name, chosen), shared, bodies)
        for code in (*made.shared, made):
            then(code)
        return made

    return _each(lowered, emit, found)


def _each(names: Iterable[str], step: Callable[[str], _T], found: Diagnostics) -> dict[str, _T]:
    """`step` of every name; what is wrong with some is collected, so that all faults are reported at once."""
    made: dict[str, _T] = {}
    for name in names:
        try:
            made[name] = step(name)
        except DiagnosticError as fault:
            for diagnostic in fault.diagnostics:
                found.report(diagnostic)
    found.check()
    return made


def _lower(name: str, func: PrimFunc) -> PrimFunc:
    check_shifts(func)
    try:
        return lower(func)
    except RecursionError:
        fail("RLX5017", f"`{name}` is nested too deeply", func.span)


def _emit(
    name: str,
    lowered: Mapping[str, PrimFunc],
    target: Target,
    shared: SharedBodies | None = None,
    bodies: dict[str, CompiledCode] | None = None,
) -> CompiledKernel:
    """The text of a kernel, and of what it shares with others, unless that is among `bodies` already."""
    func = lowered[name]
    try:
        with deep_recursion():
            kernel = emit_kernel(name, func, target, lowered, shared=shared)
            signature = signature_of(name, func, kernel.context.messages)
    except RecursionError:
        fail("RLX5017", f"`{name}` is nested too deeply", func.span)
    known = {} if bodies is None else bodies
    for symbol, body in kernel.context.bodies.items():
        if symbol not in known:
            known[symbol] = CompiledCode(*_rendered(body, target))
    return CompiledKernel(*_rendered(kernel, target), signature, tuple(known[s] for s in kernel.context.bodies))


def _rendered(text: KernelText, target: Target) -> tuple[str, str, tuple[str, ...], Target]:
    """The fields of `CompiledCode` for a text."""
    llvm = text.render(target.mtriple, compile.layout(target))
    return text.symbol, llvm, tuple(sorted(text.context.module.externals)), target


def load_kernels(kernels: Mapping[str, CompiledKernel]) -> dict[str, Kernel]:
    """Callable kernels, linked into this process together; they keep their code alive.

    RLX5014 when a function that they call (`T.call_extern`) is not there.
    """
    if not kernels:
        return {}
    codes = codes_of(kernels)
    symbols = provided() if any(LAUNCH in code.externals for code in codes) else {}
    for kernel in kernels.values():
        needed = [e for code in (kernel, *kernel.shared) for e in code.externals if e not in symbols]
        missing = jit.missing_symbol(needed)
        if missing is not None:
            fail("RLX5014", f"`{kernel.name}` calls `{missing}`, which is not in this process", help=jit.LOAD_FIRST)
    loaded = jit.load([code.code for code in codes], [k.symbol for k in kernels.values()], symbols)
    return {name: Kernel(k.signature, loaded.addresses[k.symbol], loaded) for name, k in kernels.items()}


def llvm_text(func: PrimFunc, target: Any = None, name: str = "main") -> str:
    """The LLVM IR of a PrimFunc, before LLVM's passes."""
    return _emit(name, {name: _lower(name, func)}, as_target(target)).llvm


def asm_text(func: PrimFunc, target: Any = None, name: str = "main") -> str:
    """The assembly of a PrimFunc."""
    return _emit(name, {name: _lower(name, func)}, as_target(target)).assembly


def object_bytes(func: PrimFunc, target: Any = None, name: str = "main") -> bytes:
    """The object file of a PrimFunc."""
    return _emit(name, {name: _lower(name, func)}, as_target(target)).code
