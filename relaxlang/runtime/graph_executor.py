"""The graph executor: runs a graph's calls one after the other on memory that it has from the start.

It needs the graph (JSON) and the kernels, nothing of the virtual machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import dtype
from relaxlang.base.record import record
from relaxlang.runtime import checks
from relaxlang.runtime.bench import BenchmarkResult, measure
from relaxlang.runtime.device import Device, as_device
from relaxlang.runtime.errors import blame, unknown_function
from relaxlang.runtime.graph import Graph, GraphNode, GraphTensor, Literal, Tree
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.kernel_args import Binder
from relaxlang.runtime.memory import allocate
from relaxlang.runtime.ndarray import (
    NDArray,
    ShapeTuple,
    as_tensor,
    dtype_name,
    empty,
    numpy_dtype,
    shape_text,
    tensor_on,
    wrap,
)
from relaxlang.runtime.params import Expected, convert
from relaxlang.runtime.registry import LinkedFunction, get_global_func


class GraphExecutor:
    """Runs one function of a graph.

        executor = rt_mod["create_executor"](relaxlang.cpu())
        executor.set_input("x", x)
        executor.run()
        y = executor.get_output(0)

    or in one call `executor["main"](x)`, which leaves what was set. Inputs are copied in (by a call only where they
    must be) and results are copied out, so nothing that a caller holds changes later. `parameters` are the graph's
    constants by name, which are read where they lie; those that are not given are set like inputs. One executor is for
    one thread at a time (`executor["main"]` waits for its turn).
    """

    def __init__(
        self,
        graph: Graph,
        kernels: Mapping[str, Kernel],
        parameters: Mapping[str, NDArray] | None = None,
        device: Device | Sequence[Device] | None = None,
    ) -> None:
        self.device = as_device(device)
        self.graph = graph
        self._kernels = kernels
        self._lock = Lock()
        self._tensors = _place(graph, parameters or {})
        self._names: dict[str, int] = {graph.tensors[t].name: t for t in graph.inputs}
        self._names.update((name, t) for name, t in graph.parameters if name not in (parameters or {}))
        self._unset: dict[str, None] = dict.fromkeys(self._names)
        self._steps = [self._step(node) for node in graph.nodes]
        self._places = self._direct_places()

    # --- calling ------------------------------------------------------------------------------------------------------
    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The graph's function, which takes arguments and gives the result as the virtual machine's does, or a kernel.
        RLX6008 when there is none."""
        if name == self.graph.name:
            return self._call
        if name in self._kernels:
            return self._kernels[name]
        unknown_function(name, "the graph has no function", self.function_names)

    def __contains__(self, name: object) -> bool:
        return name in self.function_names

    @property
    def function_names(self) -> list[str]:
        """What `executor[name]` knows."""
        return [self.graph.name, *self._kernels]

    def set_input(self, key: str | int | None = None, value: Any = None, **values: Any) -> None:
        """Copy an array into an input, by name or place, or arrays into inputs by name.

        RLX6018 for an input that does not exist, RLX6002 to RLX6005 for an array that does not fit.
        """
        given: dict[str | int, Any] = dict(values.items())
        if key is not None:
            given[key] = value
        places = {k: self._index(k) for k in given}
        ready = {places[k]: self._fitting(places[k], v) for k, v in given.items()}
        for at, data in ready.items():
            np.copyto(self._tensors[at], data)
            self._unset.pop(self._name(at), None)

    def run(self, **inputs: Any) -> None:
        """Run the graph on the inputs that are set (`inputs` are set first). RLX6018 when one was never set."""
        if inputs:
            self.set_input(**inputs)
        if self._unset:
            self._require(self._names)
        self._execute()

    def get_num_inputs(self) -> int:
        """How many inputs there are; the elements of a tuple count one by one."""
        return len(self.graph.inputs)

    def get_num_outputs(self) -> int:
        """How many outputs there are; the elements of a tuple count one by one."""
        return len(self.graph.outputs)

    def get_input(self, key: str | int) -> Any:
        """A copy of an input, by name or place."""
        return _copy(self._tensors[self._index(key)])

    def get_output(self, index: int, out: Any = None) -> Any:
        """A copy of an output of the last run, in `out` if given. RLX6018 when there is no such output."""
        outputs = self.graph.outputs
        if type(index) is not int or not 0 <= index < len(outputs):
            fail("RLX6018", f"there is no output {index!r}, the graph has {len(outputs)}")
        return _copy(self._tensors[outputs[index]], out)

    def _call(self, *args: Any) -> Any:
        arguments = self.graph.arguments
        if len(args) != len(arguments):
            checks.wrong_count(self.graph.name, tuple(n for n, _ in arguments), len(arguments), len(args))
        ready: list[tuple[int, Any]] = []
        for (name, tree), arg in zip(arguments, args, strict=True):
            self._unfold(name, tree, arg, ready)
        fitting = [(at, self._fitting(at, value)) for at, value in ready]
        with self._lock:
            if self._unset:
                self._require(name for name, t in self._names.items() if t not in self.graph.inputs)
            kept = {at: _copy(self._tensors[at]) for at, _ in fitting if at not in self._places}
            try:
                for at, data in fitting:
                    self._lend(at, data)
                self._execute()
                return self._result(self.graph.result)
            finally:
                for at, _ in fitting:
                    self._lend(at, kept.get(at, self._tensors[at]))

    def _require(self, names: Iterable[str]) -> None:
        """RLX6018 when one of these inputs and parameters has no value."""
        lacking = [name for name in names if name in self._unset]
        if lacking:
            fail("RLX6018", f"no value yet for {', '.join(f'`{n}`' for n in lacking)}", help="call `set_input`")

    def _execute(self) -> None:
        for step, args in self._steps:
            step(*args)

    def _direct_places(self) -> dict[int, list[tuple[list[Any], int]]]:
        """Inputs that only kernels read, with the places among the arguments of nodes where they stand: a call puts the
        caller's array there."""
        graph = self.graph
        written = {t for node in graph.nodes for t in node.outputs} | set(graph.outputs)
        written |= {a for node in graph.nodes if node.packed for a in node.args if isinstance(a, int)}
        sharing = [t.storage for t in graph.tensors]
        places: dict[int, list[tuple[list[Any], int]]] = {}
        for at in graph.inputs:
            if at not in written and sharing.count(graph.tensors[at].storage) == 1:
                places[at] = [
                    (args, k)
                    for node, (_, args) in zip(graph.nodes, self._steps, strict=True)
                    for k, a in enumerate(node.args)
                    if isinstance(a, int) and a == at
                ]
        return places

    def _lend(self, at: int, data: NDArray) -> None:
        """Let a run read an input's data where it is, or copy it where that cannot be."""
        places = self._places.get(at)
        if places is None:
            np.copyto(self._tensors[at], data)
            return
        for args, k in places:
            args[k] = data

    def _unfold(self, name: str, tree: Tree, arg: Any, ready: list[tuple[int, Any]]) -> None:
        if isinstance(tree, int):
            ready.append((tree, arg))
            return
        if not isinstance(arg, (tuple, list)) or isinstance(arg, ShapeTuple) or len(arg) != len(tree):
            checks.wrong_kind(f"parameter `{name}` of `{self.graph.name}`", f"a tuple of {len(tree)}", arg)
        for part, value in zip(tree, arg, strict=True):
            self._unfold(name, part, value, ready)

    def _result(self, tree: Tree) -> Any:
        return _copy(self._tensors[tree]) if isinstance(tree, int) else tuple(self._result(part) for part in tree)

    # --- measuring ----------------------------------------------------------------------------------------------------
    def benchmark(
        self, device: Device | Sequence[Device] | None = None, number: int = 10, repeat: int = 3
    ) -> BenchmarkResult:
        """Seconds of a run on the inputs that are set; `device` is the CPU."""
        as_device(device)
        return measure(self.run, (), number, repeat)

    def debug(self, number: int = 10) -> DebugReport:
        """Run each node `number` times by itself, in order, and tell how long one took and what it made."""
        self.run()
        rows = []
        for node, (step, args) in zip(self.graph.nodes, self._steps, strict=True):
            seconds = measure(step, tuple(args), number).mean
            rows.append(DebugRow(node, seconds, tuple(_copy(self._tensors[t]) for t in node.outputs)))
        return DebugReport(tuple(rows))

    def debug_get_output(self, node: str | int) -> NDArray | tuple[NDArray, ...]:
        """Run the graph up to a node, by name or place, and give what it made. RLX6018 when there is no such node."""
        names = [n.name for n in self.graph.nodes]
        at = names.index(node) if node in names else node
        if type(at) is not int or not 0 <= at < len(names):
            fail("RLX6018", f"there is no node `{node}`", help=f"the nodes are {', '.join(f'`{n}`' for n in names)}")
        for step, args in self._steps[: at + 1]:
            step(*args)
        made = tuple(_copy(self._tensors[t]) for t in self.graph.nodes[at].outputs)
        return made[0] if len(made) == 1 else made

    # --- preparation --------------------------------------------------------------------------------------------------
    def _step(self, node: GraphNode) -> tuple[Callable[..., Any], list[Any]]:
        """The call of a node: everything is checked here, once, so that running it checks nothing."""
        args = [self._argument(a) for a in node.args]
        if node.packed:
            return _guarded(node.function), args
        kernel = self._kernels.get(node.function)
        if kernel is None:
            unknown_function(node.function, "the library lacks the kernel", self._kernels)
        Binder(kernel.signature).bind(tuple(args))
        return kernel.run, args

    def _argument(self, arg: int | Literal) -> Any:
        if isinstance(arg, int):
            return self._tensors[arg]
        return ShapeTuple(arg.value) if isinstance(arg.value, tuple) else arg.value

    def _index(self, key: str | int) -> int:
        if type(key) is int and 0 <= key < len(self.graph.inputs):
            return self.graph.inputs[key]
        if isinstance(key, str) and key in self._names:
            return self._names[key]
        listed = ", ".join(f"`{n}`" for n in self._names) or "none"
        fail("RLX6018", f"the graph has no input `{key}`", help=f"the inputs are {listed}")

    def _name(self, at: int) -> str:
        return self.graph.tensors[at].name

    def _fitting(self, at: int, value: Any) -> NDArray:
        """A caller's value as an array of the tensor's dtype and shape."""
        wanted = self._tensors[at]
        if isinstance(value, np.ndarray) and value.dtype is wanted.dtype and value.shape == wanted.shape:
            return as_tensor(value)
        tensor = self.graph.tensors[at]
        made = convert(value, Expected("tensor", dtype(tensor.dtype), wanted.ndim))
        context = checks.err_ctx(
            f"parameter `{tensor.name}` of `{self.graph.name}`",
            f'R.Tensor({shape_text(tensor.shape)}, "{tensor.dtype}")',
        )
        if not isinstance(made, NDArray):
            checks.wrong_kind(context, "a tensor", value)
        if made.dtype != wanted.dtype:
            checks.wrong_dtype(context, tensor.dtype, made)
        if made.ndim != wanted.ndim:
            checks.wrong_rank(context, wanted.ndim, made)
        for axis, (dim, given) in enumerate(zip(wanted.shape, made.shape)):
            if dim != given:
                checks.wrong_dim(context, axis, dim, made)
        return made


@record
class DebugRow:
    """What a node did: the seconds of one run, and copies of what it made."""

    node: GraphNode
    seconds: float
    outputs: tuple[NDArray, ...]


@record
class DebugReport:
    """The nodes of a graph, in order, with their times; `str()` is a table."""

    rows: tuple[DebugRow, ...]

    def __str__(self) -> str:
        whole = sum(row.seconds for row in self.rows) or 1.0
        table = [("node", "function", "µs", "share", "outputs")]
        for row in self.rows:
            made = ", ".join(f"{dtype_name(o.dtype)}{shape_text(o.shape)}" for o in row.outputs)
            time, share = f"{row.seconds * 1e6:.3f}", f"{row.seconds / whole:.1%}"
            table.append((row.node.name, row.node.function, time, share, made))
        width = [max(len(line[column]) for line in table) for column in range(5)]
        return "\n".join(
            f"{name:{width[0]}}  {function:{width[1]}}  {time:>{width[2]}}  {share:>{width[3]}}  {made}".rstrip()
            for name, function, time, share, made in table
        )


def _place(graph: Graph, parameters: Mapping[str, NDArray]) -> list[NDArray]:
    """The tensors of a graph: parameters that are given where they are, all others on fresh memory. RLX6006 for what
    does not fit, RLX6021 for a parameter of another shape or dtype."""
    given: dict[int, Any] = {}
    for name, at in graph.parameters:
        if name in parameters:
            given[graph.tensors[at].storage] = _bytes(name, graph.tensors[at], parameters[name])
    storages = [given[at] if at in given else allocate(size) for at, size in enumerate(graph.storage)]
    placed: list[NDArray] = []
    for tensor in graph.tensors:
        placed.append(tensor_on(storages[tensor.storage], tensor.offset, tensor.shape, numpy_dtype(tensor.dtype)))
    return placed


def _bytes(name: str, tensor: GraphTensor, value: Any) -> Any:
    """The memory of a parameter, as a storage."""
    held = as_tensor(value)
    if held.shape != tensor.shape or dtype_name(held.dtype) != tensor.dtype:
        wanted = f'R.Tensor({shape_text(tensor.shape)}, "{tensor.dtype}")'
        fail("RLX6021", f"the parameter `{name}` is {checks.describe(held)}, and the graph wants {wanted}")
    return wrap(held.reshape(-1).view(np.uint8))


def _copy(source: NDArray, out: Any = None) -> Any:
    """A copy of a tensor, in `out` if given."""
    if out is None:
        made = empty(source.shape, dtype_name(source.dtype))
        np.copyto(made, source)
        return made
    if not isinstance(out, np.ndarray) or out.shape != source.shape or out.dtype != source.dtype:
        checks.wrong_kind("`out`", f"an array of shape {shape_text(source.shape)} and dtype {source.dtype}", out)
    np.copyto(out, source)
    return out


def _guarded(name: str) -> Callable[..., Any]:
    """A packed function that names itself in what it raises."""
    function = get_global_func(name)
    if isinstance(function, LinkedFunction):
        function.link()
        return function

    def call(*args: Any) -> None:
        with blame(name):
            function(*args)

    return call
