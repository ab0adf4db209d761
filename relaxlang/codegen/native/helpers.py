"""What native programs do in Python: instructions without a fast path, errors, and calls with arguments that must be
converted first."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NoReturn

from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.runtime import checks
from relaxlang.runtime.builtins import allocate_shape
from relaxlang.runtime.executable import VM, VOID, Arg, Call, Executable, KernelFunction, Register, VMFunction
from relaxlang.runtime.kernel import Kernel, assertion_failed
from relaxlang.runtime.kernel_signature import KernelSignature
from relaxlang.runtime.linkage import FAULTS, Linkage, bad_instruction, call_foreign, too_deep
from relaxlang.runtime.memory import POOL, refuse
from relaxlang.runtime.native import Imports
from relaxlang.runtime.ndarray import NDArray, ShapeTuple, numpy_dtype, refuse_tensor, wrap
from relaxlang.runtime.observe import Observer, called_kernel, kernel_run
from relaxlang.runtime.outputs import deliver
from relaxlang.runtime.params import Expected, bind, expectations, prologue


class Context:
    """What the helpers of one program share: its executable and kernels, and the native code behind each function.

    It is also what builtins receive as the machine. `entries[i]` is function i as callers have it, `raw[i]` runs it on
    values in the machine's form.
    """

    def __init__(
        self, executable: Executable, kernels: Mapping[str, Kernel], imports: Imports, observer: Observer | None
    ) -> None:
        self.observer = observer
        self.executable = executable
        self.kernels = kernels
        self.entries: dict[int, Callable[..., Any]] = {}
        self.raw: dict[int, Callable[..., Any]] = {}
        self._linkage = Linkage(executable, kernels, self, lambda index: Closure(self, index), imports)
        self._expected: dict[int, list[Expected]] = {}

    def value(self, arg: Arg) -> Any:
        """What an operand other than a register stands for."""
        return self if arg == VM else self._linkage.value(arg)

    def callee(self, index: int) -> Callable[..., Any]:
        """The Python callable behind an entry of the function table."""
        return self._linkage.callee(index)

    def defined(self, index: int) -> VMFunction:
        """A Relax function by its place in the function table."""
        function = self.executable.functions[index]
        assert isinstance(function, VMFunction)
        return function

    def expected(self, index: int) -> list[Expected]:
        """What a function expects of its arguments."""
        found = self._expected.get(index)
        if found is None:
            found = self._expected[index] = expectations(self.executable, self.defined(index))
        return found

    def enter(self, index: int, args: tuple[Any, ...], captured: tuple[Any, ...] = (), out: Any = None) -> Any:
        """Run a function for a caller outside of the program."""
        function = self.defined(index)
        params = function.params[: len(function.params) - len(captured)]
        values = bind(function.name, params, self.expected(index), args)
        result = self.raw[index](*values, *captured)
        return result if out is None else deliver(function.name, result, out)

    def invoke_closure(self, closure: Any, *args: Any) -> Any:
        """Call a closure, whoever made it."""
        if not isinstance(closure, Closure) or closure.context is not self:
            return call_foreign(closure, args)
        function = self.defined(closure.index)
        values = (*args, *closure.captured)
        if len(values) != len(function.params):
            checks.wrong_count(function.name, function.params, len(function.params), len(values))
        try:
            return self.raw[closure.index](*values)
        except RecursionError:
            raise too_deep(function.name) from None


class Closure:
    """A Relax function of one program as a value, with captured values that follow the arguments of every call."""

    __slots__ = ("context", "index", "captured")

    def __init__(self, context: Context, index: int, captured: tuple[Any, ...] = ()) -> None:
        self.context = context
        self.index = index
        self.captured = captured

    @property
    def name(self) -> str:
        """The function's name."""
        return self.context.defined(self.index).name

    def capture(self, values: tuple[Any, ...]) -> Closure:
        """The closure that passes `values` behind its arguments, before those captured already."""
        return Closure(self.context, self.index, values + self.captured)

    def __call__(self, *args: Any, out: Any = None) -> Any:
        return self.context.enter(self.index, args, self.captured, out)

    def __repr__(self) -> str:
        return f"<VM function {self.name}({', '.join(self.context.defined(self.index).params)})>"


class Slow:
    """Takes a call whose arguments native code does not take as they are, or that has more than arguments."""

    __slots__ = ("context", "index")

    def __init__(self, context: Context, index: int) -> None:
        self.context = context
        self.index = index

    def __call__(self, *args: Any, out: Any = None) -> Any:
        if out is None:
            return self.context.enter(self.index, args)
        return deliver(self.context.defined(self.index).name, self.context.entries[self.index](*args), out)


class Step:
    """An instruction as a Python function of the values of its registers, in their order."""

    __slots__ = ("_context", "_function", "_pc", "__dict__")

    def __init__(self, context: Context, function: int, pc: int) -> None:
        self._context = context
        self._function = function
        self._pc = pc

    @property
    def _instruction(self) -> Call:
        found = self._context.executable.instructions[self._context.defined(self._function).start + self._pc]
        assert isinstance(found, Call)
        return found

    @cached_property
    def _template(self) -> tuple[Callable[..., Any], list[Any], list[int], bool]:
        """The callee, its arguments with gaps, the gaps, and whether it reads addresses of tensors."""
        call = self._instruction
        gaps = [i for i, a in enumerate(call.args) if isinstance(a, Register) and a != VM]
        values = [None if i in gaps else self._context.value(a) for i, a in enumerate(call.args)]
        function = self._context.executable.functions[call.func]
        addressed = isinstance(function, KernelFunction) or function.name.startswith("vm.builtin.")
        return self._context.callee(call.func), values, gaps, addressed

    def __call__(self, *given: Any) -> Any:
        target, values, gaps, addressed = self._template
        args = list(values)
        for gap, value in zip(gaps, given, strict=True):
            args[gap] = with_address(value) if addressed and isinstance(value, NDArray) else value
        try:
            return target(*args)
        except RelaxlangError:
            raise
        except FAULTS as error:
            function = self._context.defined(self._function)
            raise bad_instruction(self._context.executable, function, self._pc, self._instruction, error) from error


class Observe:
    """Tells a program's observer of a kernel call: `(nanoseconds, *dimensions of all buffers)`."""

    __slots__ = ("_context", "_function", "_pc", "_ranks")

    def __init__(self, context: Context, function: int, pc: int) -> None:
        self._context = context
        self._function = context.defined(function)
        self._pc = pc
        self._ranks = [len(b.dims) for b in called_kernel(context.executable, self._function, pc).buffers]

    def __call__(self, nanoseconds: int, *dims: int) -> None:
        shapes, at = [], 0
        for rank in self._ranks:
            shapes.append(dims[at : at + rank])
            at += rank
        if self._context.observer is not None:
            executable, seconds = self._context.executable, nanoseconds * 1e-9
            self._context.observer(kernel_run(executable, self._function, self._pc, seconds, tuple(shapes)))


class Prologue:
    """The checks that a function begins with, done in Python because one of them failed: raises its error."""

    __slots__ = ("_context", "_function")

    def __init__(self, context: Context, function: int) -> None:
        self._context = context
        self._function = function

    def __call__(self, *args: Any) -> NoReturn:
        executable, function = self._context.executable, self._context.defined(self._function)
        registers = [*args, *[None] * function.registers]
        for pc in range(prologue(executable, function)):
            call = executable.instructions[function.start + pc]
            assert isinstance(call, Call)
            step = Step(self._context, self._function, pc)
            result = step(*(registers[a.index] for a in call.args if isinstance(a, Register) and a != VM))
            if call.dst != VOID:
                registers[call.dst.index] = result
        raise AssertionError(f"the checks of `{function.name}` fail in native code and not in Python")


def with_address(tensor: NDArray) -> NDArray:
    """The tensor itself or a view, with its address known (arrays made by native code come without)."""
    return tensor if hasattr(tensor, "_address") else wrap(tensor)


def make_shape(*dims: int) -> ShapeTuple:
    """A shape of whole numbers."""
    return tuple.__new__(ShapeTuple, dims)


def bind_closure(function: Closure, *captured: Any) -> Closure:
    """A closure of a function and the values it captures."""
    return function.capture(captured)


def heap_view(address: int, size: int) -> Any:
    """A shape heap on the stack, as builtins take it."""
    heap: Any = (ctypes.c_int64 * size).from_address(address)
    heap._address = address
    heap.shape = (size,)
    return heap


def approve_memory(nbytes: int) -> None:
    """RLX6006 unless the system has so many bytes left."""
    POOL.check_available(nbytes)


def refuse_memory(nbytes: int) -> NoReturn:
    """Raise RLX6006 for memory that the system refused."""
    refuse(nbytes)


class RefuseTensor:
    """Raises RLX6006 for a tensor that does not fit its storage: `(storage bytes, offset, *shape)`."""

    __slots__ = ("_dtype",)

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype

    def __call__(self, available: int, offset: int, *shape: int) -> NoReturn:
        refuse_tensor(available, offset, shape, numpy_dtype(self._dtype))


class RefuseStorage:
    """Raises RLX6006 for a storage of a shape that no memory can hold: `(*shape)`."""

    __slots__ = ("_element",)

    def __init__(self, dtype: str) -> None:
        self._element = numpy_dtype(dtype)

    def __call__(self, *shape: int) -> NoReturn:
        # Python multiplies exactly, so this may go well where 64 bits do not suffice: for two negative numbers.
        allocate_shape(shape, self._element.itemsize)
        refuse_tensor(0, 0, shape, self._element)


class RefuseReshape:
    """Raises RLX6018 for a tensor and a shape of other numbers of elements: `(*shape of the tensor, *shape)`."""

    __slots__ = ("_dtype", "_ndim")

    def __init__(self, dtype: str, ndim: int) -> None:
        self._dtype = dtype
        self._ndim = ndim

    def __call__(self, *dims: int) -> NoReturn:
        checks.wrong_reshape(self._dtype, dims[: self._ndim], dims[self._ndim :])


class KernelFailed:
    """Raises RLX6009 for a kernel's status: `(status, *values of symbols and scalars)`."""

    __slots__ = ("_signature",)

    def __init__(self, signature: KernelSignature) -> None:
        self._signature = signature

    def __call__(self, status: int, *values: Any) -> NoReturn:
        assertion_failed(self._signature, status, values)


class TooDeep:
    """Raises RLX6010 for the function of that name."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self) -> NoReturn:
        raise too_deep(self._name)
