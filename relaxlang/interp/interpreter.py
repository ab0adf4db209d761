"""The interpreter of Relax: functions, bindings, branches, closures, calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaxlang.analysis.dimension_bounds import dimension_bounds
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Label, fail
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Span
from relaxlang.interp.evaluate import EVAL, evaluate_dim
from relaxlang.interp.kernel import call_prim_func
from relaxlang.interp.structural import PACKED
from relaxlang.interp.values import Scope, expected, match
from relaxlang.ir import relax, tir
from relaxlang.ir.module import IRModule, require_module
from relaxlang.ir.relax import GlobalVar
from relaxlang.ops import default_operators
from relaxlang.ops.kernel import Kernel
from relaxlang.runtime import checks
from relaxlang.runtime.builtins import BUILTINS
from relaxlang.runtime.errors import blame, unknown_function
from relaxlang.runtime.ndarray import ShapeTuple, as_tensor, is_tensor
from relaxlang.runtime.params import convert
from relaxlang.runtime.registry import LinkedFunction, PackedFunc, find_func, list_global_func_names

MAX_DEPTH = 2000  # calls within calls of Relax functions

LowerOperator = Callable[[relax.Call], "Kernel | relax.Expr"]
Trace = Callable[[relax.Binding, Any], None]


class Interpreter:
    """Runs the functions of a module, as it is before, between and after all passes.

    `lower_operator(call)` gives what computes a call of an operator, a kernel or an expression that stands for it; the
    call's arguments are variables of static struct info, that of the values at hand. By default it is that of the
    standard library; a module with operators of its own needs its table's (`Operators.lower`). `packed`
    finds packed functions by name (None: there is none). `trace(binding, value)` is called after each binding.
    `vectorize=False` computes every iteration of every loop on its own. `verify=True` holds each value against the
    struct info of the variable that it is bound to, and each result against that of its function: a way to test
    inference and passes. An interpreter has no state of its own: threads may share one.
    """

    def __init__(
        self,
        mod: IRModule,
        lower_operator: LowerOperator | None = None,
        packed: Callable[[str], PackedFunc | None] = find_func,
        trace: Trace | None = None,
        vectorize: bool = True,
        verify: bool = False,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self.mod = mod
        self.lower_operator = lower_operator or default_operators(mod).lower
        self.trace = trace
        self.vectorize = vectorize
        self.verify = verify
        self.max_depth = max_depth
        self._packed = packed

    def run(self, name: str, *args: Any) -> Any:
        """The result of a function of the module.

        Arguments are numpy arrays (or anything with DLPack), Python scalars, shapes, and tuples of these. A PrimFunc
        writes to the arrays that it is given and gives what it returns, if anything. Raises `DiagnosticError`.
        """
        function = self.mod[name]
        with guarded():
            if isinstance(function, tir.PrimFunc):
                return call_prim_func(self, function, name, args)
            if isinstance(function, relax.ExternFunc):
                return self.call_packed(function.name, args, None)
            if len(args) != len(function.params):
                self._wrong_count(function, name, args)
            converted = [convert(a, expected(p.struct_info)) for a, p in zip(args, function.params)]
            return self.call_function(function, name, converted, 0)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The function of that name, to be called like one of Python."""
        return Closure(self, self.mod[name], name, None)

    # --- functions ----------------------------------------------------------------------------------------------------
    def call_function(
        self, function: relax.Function, name: str, args: Sequence[Any], depth: int, outer: Scope | None = None
    ) -> Any:
        """Call a Relax function with values: match them with the parameters, then evaluate the body."""
        if depth > self.max_depth:
            fail("RLX6010", f"recursion too deep: `{name}` is called within {self.max_depth} other calls")
        if len(args) != len(function.params):
            self._wrong_count(function, name, args)
        scope = Scope(self.dim, name, depth, outer)
        for param, arg in zip(function.params, args):
            match(scope, param.struct_info, arg, f"parameter `{param.name}` of `{name}`")
            scope.values[param] = arg
        scope.equations.solve()
        for var, (low, high) in dimension_bounds(function).items():
            checks.check_bounds(var.name, int(scope.dims[var]), low, high, f"a parameter of `{name}`")
        result = self.evaluate(scope, function.body)
        if self.verify and function.ret_struct_info is not None:
            match(scope, function.ret_struct_info, result, f"the result of `{name}`")
            scope.equations.solve()
        return result

    def _wrong_count(self, function: relax.Function, name: str, args: Sequence[Any]) -> None:
        checks.wrong_count(name, tuple([p.name for p in function.params]), len(function.params), len(args))

    def call_global(self, callee: GlobalVar, args: Sequence[Any], depth: int, span: Span | None) -> Any:
        """Call a function of the module by name; a PrimFunc without a result gives the empty tuple."""
        function = self.mod[callee]
        if isinstance(function, tir.PrimFunc):
            result = call_prim_func(self, function, callee.name, args)
            return () if result is None else result.item()
        if isinstance(function, relax.ExternFunc):
            return self.call_packed(function.name, args, span)
        return self.call_function(function, callee.name, args, depth)

    def call_prim_func(self, callee: GlobalVar, args: Sequence[Any], span: Span | None) -> Any:
        """Run a PrimFunc of the module for another one (see `interp.expr.Host`)."""
        function = self.mod[callee]
        if not isinstance(function, tir.PrimFunc):
            fail("RLX6034", f"`{callee.name}` is no PrimFunc, and TensorIR can call no other function", span)
        return call_prim_func(self, function, callee.name, args)

    def invoke_closure(self, closure: Any, *args: Any) -> Any:
        """Call a function value (builtins call this on what they take for the virtual machine)."""
        if not callable(closure):
            fail("RLX6018", f"{checks.describe(closure)} is no function")
        return closure(*args)

    # --- packed functions ---------------------------------------------------------------------------------------------
    def packed_func(self, name: str, span: Span | None) -> Callable[..., Any]:
        """The packed function of that name; what it raises is reported with its name. RLX6008 when there is none."""
        own = PACKED.get(name)
        if own is not None:
            return own
        found = self._packed(name)
        if found is None:
            unknown_function(name, "there is no packed function", list_global_func_names())
        if isinstance(found, LinkedFunction):
            found.link()
        function, trusted = found, BUILTINS.get(name) is found or isinstance(found, LinkedFunction)

        def call(*args: Any) -> Any:
            if trusted:
                return from_packed(function(*args))
            with blame(name):
                return from_packed(function(*args))

        return call

    def call_packed(self, name: str, args: Sequence[Any], span: Span | None) -> Any:
        """Call a packed function by name."""
        return self.packed_func(name, span)(*args)

    def closure(self, function: relax.Function, name: str, scope: Scope) -> Closure:
        """A nested function as a value."""
        return Closure(self, function, name, scope)

    def apply(self, function: Any, args: Sequence[Any], scope: Scope, span: Span | None) -> Any:
        """Call a function value."""
        if isinstance(function, Closure):
            return function.call(args, scope.depth + 1)
        if not callable(function):
            fail("RLX6018", f"{checks.describe(function)} is no function", span)
        return function(*args)

    # --- bindings, expressions ----------------------------------------------------------------------------------------
    def evaluate(self, scope: Scope, e: relax.Expr) -> Any:
        """The value of an expression."""
        return EVAL[e.__class__](self, scope, e)

    def dim(self, scope: Scope, e: Any) -> Any:
        """The value of a scalar expression over symbolic variables, a numpy scalar."""
        return evaluate_dim(self, scope, e)

    def bind(self, scope: Scope, binding: relax.Binding) -> None:
        """Evaluate a binding; an error names its place."""
        try:
            value = self.evaluate(scope, binding.value)
            if isinstance(binding, relax.MatchCast):
                match(scope, binding.struct_info, value, f"match_cast of `{binding.var.name}` in `{scope.function}`")
                scope.equations.solve()
            if self.verify:
                match(scope, binding.var.struct_info, value, f"variable `{binding.var.name}` of `{scope.function}`")
                scope.equations.solve()
        except DiagnosticError as error:
            raise placed(error, binding.span) from error.__cause__
        scope.values[binding.var] = value
        if self.trace is not None:
            self.trace(binding, value)


class Closure:
    """A function as a value: one of the module, or a nested one with the scope around it; `captured` values follow the
    arguments of every call."""

    __slots__ = ("interpreter", "function", "name", "scope", "captured")

    def __init__(
        self, interpreter: Interpreter, function: Any, name: str, scope: Scope | None, captured: tuple[Any, ...] = ()
    ) -> None:
        self.interpreter = interpreter
        self.function = function
        self.name = name
        self.scope = scope
        self.captured = captured

    def capture(self, values: Sequence[Any]) -> Closure:
        """The closure that passes `values` behind its arguments, before those captured already."""
        return Closure(self.interpreter, self.function, self.name, self.scope, (*values, *self.captured))

    def call(self, args: Sequence[Any], depth: int) -> Any:
        """Call it from within a run."""
        if isinstance(self.function, relax.Function):
            return self.interpreter.call_function(self.function, self.name, (*args, *self.captured), depth, self.scope)
        return self.interpreter.call_global(GlobalVar(self.name), (*args, *self.captured), depth, None)

    def run(self, *args: Any) -> Any:
        """The same as a call (kernels of compiled modules have this name for it)."""
        return self.call(args, 0)

    def __call__(self, *args: Any) -> Any:
        if isinstance(self.function, relax.Function):
            args = tuple([convert(a, expected(p.struct_info)) for a, p in zip(args, self.function.params)])
        depth = self.scope.depth + 1 if self.scope is not None else 0
        with guarded():
            return self.call(args, depth)

    def __repr__(self) -> str:
        return f"<function {self.name}>"


def from_packed(value: Any) -> Any:
    """What a packed function returned, in the interpreter's form."""
    if value is None:
        return ()
    if isinstance(value, np.ndarray):
        return as_tensor(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list)) and not isinstance(value, ShapeTuple):
        return tuple([from_packed(v) for v in value])
    return as_tensor(value) if is_tensor(value) else value


class guarded:
    """A context for a run: numpy stays silent, functions may nest deeply, and what nests too deeply is a diagnostic."""

    def __enter__(self) -> None:
        self.errors = np.errstate(all="ignore")
        self.recursion = deep_recursion()
        self.errors.__enter__()
        self.recursion.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.recursion.__exit__(None, None, None)
        self.errors.__exit__(None, None, None)
        if isinstance(error, RecursionError):
            raise DiagnosticError([Diagnostic("RLX6034", "the program nests too deeply to be interpreted")]) from None


def placed(error: DiagnosticError, span: Span | None) -> DiagnosticError:
    """The error with the place of the binding at which it arose: as its own place when it has none, else as a label."""
    if span is None or not error.diagnostics:
        return error
    first, *rest = error.diagnostics
    if first.span is not None and (first.labels or _inside(first.span, span)):
        return error
    labels = first.labels if first.span is None else (Label(span, "while this is computed"),)
    error.diagnostics = (first.replace(span=first.span or span, labels=labels), *rest)
    error.args = (error.diagnostics,)
    return error


def _inside(place: Span, span: Span) -> bool:
    return place.source is span.source and span.start <= place.start < span.end


def run(mod: IRModule, name: str, *args: Any) -> Any:
    """The result of function `name` of a module on numpy arrays, tuples, shapes and scalars (see `Interpreter`)."""
    require_module(mod)
    return Interpreter(mod).run(name, *args)
