"""What `build` returns for the graph executor, and executors from a graph and a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaxlang.base.diagnostics import fail
from relaxlang.runtime.device import Device
from relaxlang.runtime.errors import unknown_function
from relaxlang.runtime.executable import Executable, KernelFunction, ObjectCode
from relaxlang.runtime.graph import FORMAT, Graph, from_json, to_json
from relaxlang.runtime.graph_executor import GraphExecutor
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.kernel_signature import KernelSignature
from relaxlang.runtime.module import EXECUTOR_MAKERS, RuntimeModule, linked
from relaxlang.runtime.ndarray import NDArray, as_tensor
from relaxlang.runtime.registry import PackedFunc


def graph_executable(
    graphs: Mapping[str, Graph],
    parameters: Mapping[str, NDArray],
    signatures: Sequence[KernelSignature],
    objects: tuple[ObjectCode, ...],
) -> Executable:
    """Graphs as an executable without bytecode: kernels, and as constants the graphs' JSON and the parameters."""
    functions = tuple(KernelFunction(s) for s in signatures)
    names = tuple(parameters)
    return Executable(functions, (), (to_json(graphs), names, *(as_tensor(p) for p in parameters.values())), objects)


def holds_graphs(executable: Executable) -> bool:
    """Whether an executable is one that `graph_executable` made."""
    constants = executable.constants
    return len(constants) >= 2 and isinstance(constants[0], str) and constants[0].startswith(f'{{"format": "{FORMAT}"')


class GraphExecutorFactory(RuntimeModule):
    """A program for the graph executor: `rt_mod["main"]` is its function, `rt_mod["create_executor"](device)` a fresh
    `GraphExecutor`.

    `graphs` are the public functions by name and `parameters` their constants by name. `linked` says that the constants
    belong to the library (`get_lib`) and not to what is handed over beside it (`get_params`).
    """

    def __init__(
        self,
        executable: Executable,
        kernels: Mapping[str, Kernel] | None = None,
        ir_module: Any = None,
        linked: bool = False,
    ) -> None:
        super().__init__(executable, kernels, ir_module)
        text, names, *values = executable.constants
        if not isinstance(names, tuple) or len(names) != len(values):
            fail("RLX6021", "the executable's graph and parameters do not belong together")
        self.graphs = from_json(text, "the executable's graph")
        self.parameters: Mapping[str, NDArray] = dict(zip(names, values, strict=True))
        self.linked = linked

    def __getitem__(self, name: str) -> PackedFunc:
        """A kernel, a function on an executor of its own, or the maker of executors. RLX6008 when there is none."""
        if name in self.graphs:
            return self.create_executor(function=name)[name]
        if name in EXECUTOR_MAKERS and name not in self.kernels:
            return self.create_executor
        return super().__getitem__(name)

    @property
    def function_names(self) -> list[str]:
        """What `rt_mod[name]` knows."""
        return list(dict.fromkeys([*self.graphs, *self.kernels, *EXECUTOR_MAKERS]))

    def create_executor(
        self, device: Device | Sequence[Device] | None = None, function: str | None = None
    ) -> GraphExecutor:
        """A fresh executor for a function: the one that is named, else `main`, else the first. RLX6008 when there is
        none of that name."""
        name = function if function is not None else "main" if "main" in self.graphs else next(iter(self.graphs))
        if name not in self.graphs:
            unknown_function(name, "the module has no graph", self.graphs)
        return GraphExecutor(self.graphs[name], linked(self.executable, self.kernels), self.parameters, device)

    def get_graph_json(self) -> str:
        """The graphs as JSON."""
        return to_json(self.graphs)

    def get_params(self) -> dict[str, NDArray]:
        """The constants by name; none when they are linked into the library."""
        return {} if self.linked else dict(self.parameters)

    def get_lib(self) -> RuntimeModule:
        """The kernels alone, with the constants when they are linked."""
        constants = self.executable.constants if self.linked else ()
        bare = Executable(self.executable.functions, (), constants, self.executable.objects)
        return RuntimeModule(bare, self.kernels)


def create(
    graph_json: str,
    lib: RuntimeModule | Mapping[str, Kernel],
    device: Device | Sequence[Device] | None = None,
    params: Mapping[str, Any] | None = None,
    function: str | None = None,
) -> GraphExecutor:
    """An executor from a graph's JSON and a library of its kernels.

    Constants are those that are linked into the library or given as `params`; what is missing then is set like an
    input. Raises RLX6021 for a text that is no graph and RLX6008 for a kernel that the library lacks.
    """
    graphs = from_json(graph_json)
    name = function if function is not None else "main" if "main" in graphs else next(iter(graphs), "")
    if name not in graphs:
        unknown_function(name, "the graph has no function", graphs)
    given = {key: as_tensor(value) for key, value in (params or {}).items()}
    if not isinstance(lib, RuntimeModule):
        return GraphExecutor(graphs[name], lib, given, device)
    linked = GraphExecutorFactory(lib.executable, lib.kernels).parameters if holds_graphs(lib.executable) else {}
    return GraphExecutor(graphs[name], lib.kernels, {**linked, **given}, device)
