"""The virtual machine: what runs the functions of an executable, as native code or by its bytecode."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import fail
from relaxlang.runtime import checks
from relaxlang.runtime.device import Device, as_device
from relaxlang.runtime.errors import unknown_function
from relaxlang.runtime.executable import Executable, VMFunction
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.linkage import MAX_DEPTH, link_libraries
from relaxlang.runtime.module import RuntimeModule, link, linked
from relaxlang.runtime.native import ExecMode, Program, native_program, observed_program
from relaxlang.runtime.observe import KernelProfile, KernelRun
from relaxlang.runtime.params import bind, expectations

if TYPE_CHECKING:
    from relaxlang.runtime.bench import BenchmarkResult
    from relaxlang.runtime.bytecode import Bytecode, Frame
    from relaxlang.runtime.profile import ProfileReport

__all__ = ["MAX_DEPTH", "VirtualMachine"]


class VirtualMachine:
    """Runs the functions of an executable: `vm["main"](x, w)`.

    `module` is what `relaxlang.build` or `load_module` returns, or a bare `Executable`, whose kernels then come from
    `mod` (a runtime module or a mapping of kernels by name) or are linked from its object code. One machine may be
    used by many threads at once: a call keeps its state in its own frames. Only `set_input`, `invoke_stateful`,
    `save_function` and `on_instruction` belong to the machine.

    Arguments are numpy arrays, anything with DLPack, Python scalars (for R.Prim and 0-d tensors), ShapeTuples or tuples
    of ints (for R.Shape), and tuples or lists of these. Contiguous arrays are taken without a copy; a function that
    returns its argument returns the caller's data. `vm["main"](x, w, out=y)` writes the result to `y` and gives it;
    `y` is an array of the result's shape and dtype, for several results a tuple of such.

    `exec_mode` is `"native"` (the functions become machine code; the default where code generation can do it, else
    that of the module; `"compiled"`, TVM's word, is the same) or `"bytecode"`. Both give the same results.
    """

    def __init__(
        self,
        module: RuntimeModule | Executable,
        device: Device | Sequence[Device] | None = None,
        *,
        mod: RuntimeModule | Mapping[str, Kernel] | None = None,
        exec_mode: ExecMode | None = None,
    ) -> None:
        executable = module.executable if isinstance(module, RuntimeModule) else module
        if not isinstance(executable, Executable):
            fail("RLX6014", f"a virtual machine needs a built module or an executable, not `{type(module).__name__}`")
        kernels = mod.kernels if isinstance(mod, RuntimeModule) else mod
        if kernels is None:
            kernels = module.kernels if isinstance(module, RuntimeModule) else link(executable)
        kernels = linked(executable, kernels)
        self.device = as_device(device)
        self.executable = executable
        self._kernels = kernels
        self._inputs: dict[str, tuple[Any, ...]] = {}
        self._outputs: dict[str, Any] = {}
        self._saved: dict[str, Callable[[], Any]] = {}
        self._imports = module.imports if isinstance(module, RuntimeModule) else {}
        mode = exec_mode or (module.exec_mode if isinstance(module, RuntimeModule) else "native")
        link_libraries(executable)
        self._native: Program | None = native_program(module, executable, kernels, self._imports, mode)
        self._bytecode: Bytecode | None = None

    @property
    def exec_mode(self) -> ExecMode:
        """How functions run: `native` or `bytecode`."""
        return "bytecode" if self._native is None else "native"

    @property
    def on_instruction(self) -> Callable[[Frame], Any] | None:
        """A function that is called with a `Frame` before every instruction; it may inspect and change
        `frame.registers`, and stops the run by raising. Setting it turns this machine to bytecode: functions that were
        taken from it before stay native."""
        return None if self._bytecode is None else self._bytecode.on_instruction

    @on_instruction.setter
    def on_instruction(self, watch: Callable[[Frame], Any] | None) -> None:
        self._native = None
        self._interpreter.on_instruction = watch

    @property
    def _interpreter(self) -> Bytecode:
        if self._bytecode is None:
            from relaxlang.runtime.bytecode import Bytecode as Machine

            self._bytecode = Machine(self.executable, self._kernels, self, self._imports)
        return self._bytecode

    # Calling

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The function of that name: a Relax function, a saved one, or a kernel. RLX6008 when there is none."""
        if name in self._saved:
            return self._saved[name]
        index = self.executable.function_index(name)
        if index is not None and isinstance(self.executable.functions[index], VMFunction):
            return (self._native or self._interpreter).function(index)
        if name in self._kernels:
            return self._kernels[name]
        if name in self._imports:
            return self._imports[name]
        unknown_function(name, "the executable has no function", self.function_names)

    def __contains__(self, name: object) -> bool:
        return name in self.function_names

    @property
    def function_names(self) -> list[str]:
        """What `vm[name]` knows: Relax functions, kernels and saved functions."""
        relax = [f.name for f in self.executable.vm_functions()]
        return list(dict.fromkeys([*relax, *self._kernels, *self._imports, *self._saved]))

    def invoke_closure(self, closure: Callable[..., Any], *args: Any) -> Any:
        """Call a closure that a function has returned."""
        if not callable(closure):
            fail("RLX6018", f"{checks.describe(closure)} is no function")
        return closure(*args)

    def set_input(self, name: str, *args: Any) -> None:
        """Keep the arguments of function `name` for `invoke_stateful`."""
        function = self._named(name)
        expected = expectations(self.executable, function)
        self._inputs[name] = tuple(bind(name, function.params, expected, args))

    def invoke_stateful(self, name: str) -> None:
        """Run function `name` on the arguments of `set_input` and keep the result for `get_outputs`."""
        if name not in self._inputs:
            fail("RLX6018", f"`{name}` has no inputs yet", help=f'call `vm.set_input("{name}", …)` first')
        self._outputs[name] = self[name](*self._inputs[name])

    def get_outputs(self, name: str) -> Any:
        """The result of the last `invoke_stateful` of function `name`."""
        if name not in self._outputs:
            fail("RLX6018", f"`{name}` has no outputs yet", help=f'call `vm.invoke_stateful("{name}")` first')
        return self._outputs[name]

    def save_function(self, name: str, saved_name: str, *args: Any, include_return: bool = True) -> None:
        """Make `vm[saved_name]()` call function `name` with these arguments; without `include_return` it gives None."""
        function = self[name]

        def saved() -> Any:
            result = function(*args)
            return result if include_return else None

        self._saved[saved_name] = saved

    def time_evaluator(
        self, name: str, device: Device | None = None, number: int = 10, repeat: int = 1
    ) -> Callable[..., BenchmarkResult]:
        """A function that calls `name` with its arguments `repeat` times `number` times and gives seconds per call."""
        from relaxlang.runtime.bench import measure

        as_device(device)
        function = self[name]
        return lambda *args: measure(function, args, number, repeat)

    def profile(self, name: str, *args: Any) -> ProfileReport:
        """Call a Relax function twice, by bytecode, and tell how long each kernel and builtin took the second time."""
        from relaxlang.runtime.bytecode import Bytecode
        from relaxlang.runtime.profile import profile

        self._named(name)
        machine = Bytecode(self.executable, self._kernels, self, self._imports)
        index = self.executable.function_index(name)
        assert index is not None
        return profile(machine, self.executable, machine.function(index), args)

    def kernel_profile(self, name: str, *args: Any, seconds: float = 0.0) -> KernelProfile:
        """Call function `name` twice, and tell how long each kernel took in the second call: in native code where this
        machine runs such, so that nothing but the kernels' own time is in it. The second call is repeated for as long
        as `seconds`; the one whose kernels took least counts."""
        self._named(name)
        runs: list[KernelRun] = []
        program: Program | Bytecode | None = None
        if self._native is not None:
            program = observed_program(self.executable, self._kernels, self._imports, runs.append)
        if program is None:
            from relaxlang.runtime.bytecode import observed_bytecode

            program = observed_bytecode(self.executable, self._kernels, self, self._imports, runs.append)
        function = program.function(self.executable.function_index(name) or 0)
        function(*args)
        best: KernelProfile | None = None
        begin = time.perf_counter()
        while best is None or time.perf_counter() - begin < seconds:
            runs.clear()
            start = time.perf_counter()
            function(*args)
            made = KernelProfile(tuple(runs), time.perf_counter() - start)
            best = made if best is None or made.kernel_seconds < best.kernel_seconds else best
        return best

    def _named(self, name: str) -> VMFunction:
        index = self.executable.function_index(name)
        found = None if index is None else self.executable.functions[index]
        if not isinstance(found, VMFunction):
            unknown_function(name, "the executable has no function", self.function_names)
        return found
