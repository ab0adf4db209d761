"""The entry: one PrimFunc that calls the kernels of a graph in order, with every address known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import dtype
from relaxlang.base.record import record
from relaxlang.codegen.aot.plan import Workspace, plan_workspace, storage_of_outputs
from relaxlang.codegen.function import implicit_dims
from relaxlang.codegen.memory import ALIGNMENT
from relaxlang.ir import prim
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.prim import HANDLE, INT64, IntImm, PointerType, PrimExpr, Var
from relaxlang.ir.relax import GlobalVar
from relaxlang.ir.tir import AllocConst, Buffer, BufferStore, Evaluate, For, PrimFunc, Stmt, seq
from relaxlang.ir.visit import substitute
from relaxlang.passes.tir.lowering import flatten
from relaxlang.passes.tir.pool_allocations import pool_allocations, pool_bytes
from relaxlang.runtime.graph import Graph, GraphNode, Literal

UINT8 = dtype("uint8")


@record
class Port:
    """A tensor that goes in or out: a name that C allows, shape and dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """The bytes it takes."""
        return int(np.prod(self.shape, dtype=np.int64)) * dtype(self.dtype).itemsize


@record
class Program:
    """A module ahead of time: the PrimFuncs, of which `entry` takes inputs, outputs, constants that are not linked in,
    and the workspace, in this order."""

    name: str
    entry: str
    functions: dict[str, PrimFunc]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    constants: tuple[Port, ...]
    linked: bool
    constant_bytes: int
    workspace: Workspace


@record
class Layout:
    """What the executor's options say of memory: alignments in bytes, whether constants are linked in, and how many
    bytes an intermediate of a kernel may take of the stack."""

    workspace_alignment: int = 16
    constant_alignment: int = 16
    link_params: bool = True
    stack_bytes: int = 256


def make_program(
    name: str, graph: Graph, parameters: Mapping[str, Any], kernels: Mapping[str, PrimFunc], layout: Layout
) -> Program:
    """The entry of a graph and the kernels that it calls."""
    return _Builder(name, graph, parameters, kernels, layout).program()


class _Builder:
    def __init__(
        self, name: str, graph: Graph, parameters: Mapping[str, Any], kernels: Mapping[str, PrimFunc], layout: Layout
    ) -> None:
        self.name = name
        self.graph = graph
        self.parameters = parameters
        self.kernels = kernels
        self.layout = layout
        self.names: set[str] = set()
        self.functions: dict[str, PrimFunc] = {}
        self.direct = storage_of_outputs(graph)

    def port(self, tensor: int, hint: str) -> Port:
        made = self.graph.tensors[tensor]
        return Port(self.fresh(hint), made.shape, made.dtype)

    def fresh(self, hint: str) -> str:
        base = re.sub(r"\W", "_", hint, flags=re.ASCII) or "_"
        made, n = base, 0
        while made in self.names:
            n += 1
            made = f"{base}_{n}"
        self.names.add(made)
        return made

    def program(self) -> Program:
        graph = self.graph
        inputs = tuple(self.port(t, graph.tensors[t].name) for t in graph.inputs)
        several = len(graph.outputs) > 1
        outputs = tuple(self.port(t, f"output{k}" if several else "output") for k, t in enumerate(graph.outputs))
        constants = tuple(self.port(t, name) for name, t in graph.parameters)
        callees = [self.specialised(node) for node in graph.nodes]
        pools = {k: size for k, name in enumerate(callees) if (size := pool_bytes(self.functions[name]))}
        space = plan_workspace(graph, pools, self.layout.workspace_alignment)
        entry = self.entry(callees, space, inputs, outputs, constants)
        name = self.unused(f"{self.name}_main")
        self.functions[name] = entry
        return Program(
            self.name, name, self.functions, inputs, outputs, constants, self.layout.link_params,
            sum(c.nbytes for c in constants), space,
        )  # fmt: skip

    def unused(self, hint: str) -> str:
        name, n = hint, 0
        while name in self.functions:
            n += 1
            name = f"{hint}_{n}"
        return name

    # --- kernels ------------------------------------------------------------------------------------------------------
    def specialised(self, node: GraphNode) -> str:
        """The kernel of a node without symbolic dimensions, with its larger intermediates in a pool; its name."""
        if node.packed:
            message = f"the executor `aot` cannot run this program: `{node.name}` calls the packed function"
            fail("RLX5029", f"{message} `{node.function}`", help='`executor="vm"` runs every program')
        func = self.kernels[node.function]
        dims = self.dimensions(func, node)
        name = node.function + "".join(f"_{v}" for v in dims.values())
        if name not in self.functions:
            if dims:
                values = {var: IntImm(var.dtype, value) for var, value in dims.items()}
                func = substitute(func, values)
            self.functions[name] = pool_allocations(
                flatten(func), self.layout.stack_bytes, self.layout.workspace_alignment
            )
        return name

    def dimensions(self, func: PrimFunc, node: GraphNode) -> dict[Var, int]:
        """The values of a kernel's symbolic dimensions in a call."""
        wanted, found = implicit_dims(func), dict[Var, int]()
        for param, arg in zip(func.params, node.args):
            buffer = func.buffer_map.get(param)
            if buffer is not None and isinstance(arg, int):
                for dim, size in zip(buffer.shape, self.graph.tensors[arg].shape):
                    if isinstance(dim, Var) and dim in wanted:
                        found.setdefault(dim, size)
        return found

    # --- the entry ----------------------------------------------------------------------------------------------------
    def entry(
        self,
        callees: Sequence[str],
        space: Workspace,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        constants: Sequence[Port],
    ) -> PrimFunc:
        graph = self.graph
        given = [_buffer(p) for p in (*inputs, *outputs)]
        held = [_buffer(p) for p in constants]
        pool = Buffer(self.fresh("workspace"), (IntImm(INT64, space.size),), UINT8, _data("workspace", "uint8"))
        places: dict[int, tuple[Buffer, int]] = {}  # storage -> the buffer that it lies in, bytes into it
        for t, buffer in zip(graph.inputs, given):
            places[graph.tensors[t].storage] = (buffer, 0)
        for (_, t), buffer in zip(graph.parameters, held):
            places[graph.tensors[t].storage] = (buffer, 0)
        for storage, k in self.direct.items():
            places[storage] = (given[len(inputs) + k], 0)
        for storage, offset in space.storages.items():
            places[storage] = (pool, offset)
        body: list[Stmt] = []
        for k, (node, callee) in enumerate(zip(graph.nodes, callees)):
            args = [self.argument(a, places) for a in node.args]
            if k in space.pools:
                args.append(_address(pool, space.pools[k]))
            body.append(Evaluate(prim.Call(prim.VOID, GlobalVar(callee), tuple(self.fit(callee, args)))))
        for k, t in enumerate(graph.outputs):
            tensor = graph.tensors[t]
            if self.direct.get(tensor.storage) != k:
                body.append(_copy(*places[tensor.storage], tensor.offset, given[len(inputs) + k], outputs[k].nbytes))
        made = seq(*body)
        params = [*given, *(held if not self.layout.link_params else []), *([pool] if space.size else [])]
        if self.layout.link_params:
            for (name, _), buffer in zip(reversed(graph.parameters), reversed(held)):
                data = np.asarray(self.parameters[name])
                aligned = Attrs({ALIGNMENT: self.layout.constant_alignment})
                made = AllocConst(buffer.data, buffer.dtype, buffer.shape, data, made, aligned)
        handles = {Var(b.name, HANDLE): b for b in params}
        attrs = Attrs({"global_symbol": f"{self.name}_main", "tir.noalias": True})
        return PrimFunc(tuple(handles), made, handles, None, attrs)

    def argument(self, arg: int | Literal, places: Mapping[int, tuple[Buffer, int]]) -> Any:
        if isinstance(arg, Literal):
            return arg.value
        tensor = self.graph.tensors[arg]
        buffer, offset = places[tensor.storage]
        return _address(buffer, offset + tensor.offset)

    def fit(self, callee: str, args: Sequence[Any]) -> list[PrimExpr]:
        """The arguments as expressions of the types of the kernel's parameters."""
        made: list[PrimExpr] = []
        for param, arg in zip(self.functions[callee].params, args):
            made.append(arg if isinstance(arg, PrimExpr) else prim.const(arg, param.dtype))
        return made


def _data(name: str, of: str) -> Var:
    return Var(name, HANDLE, PointerType(dtype(of)))


def _buffer(port: Port) -> Buffer:
    return Buffer(
        port.name, tuple(IntImm(INT64, d) for d in port.shape), dtype(port.dtype), _data(port.name, port.dtype)
    )


def _address(buffer: Buffer, offset: int) -> PrimExpr:
    """A pointer to `offset` bytes into a buffer."""
    if offset == 0:
        return buffer.data
    flat = Buffer(buffer.name, (IntImm(INT64, 1),), UINT8, buffer.data)
    return prim.Call(HANDLE, "address_of", (prim.BufferLoad(flat, (IntImm(INT64, offset),)),))


def _copy(source: Buffer, start: int, offset: int, target: Buffer, nbytes: int) -> Stmt:
    """Copy bytes to an output."""
    i = Var("i", INT64)
    size = (IntImm(INT64, nbytes),)
    read = Buffer(source.name, size, UINT8, source.data)
    write = Buffer(target.name, size, UINT8, target.data)
    load = prim.BufferLoad(read, (i + prim.const(start + offset, INT64),))
    return For(i, IntImm(INT64, 0), IntImm(INT64, nbytes), "serial", BufferStore(write, load, (i,)))
