"""The `aot` executor: from a lowered module to a library that C programs call, and to an executor in this process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.base.recursion import deep_recursion
from relaxlang.codegen import cache, compile
from relaxlang.codegen.aot.entry import Layout, Program, make_program
from relaxlang.codegen.aot.interface import FITS, Interface, c_interface, checked_ports, header
from relaxlang.codegen.aot.llvm_interface import DL_TENSOR, llvm_interface
from relaxlang.codegen.aot.llvm_interface import FITS as LLVM_FITS
from relaxlang.codegen.c.source import c_file
from relaxlang.codegen.c.types import prefix
from relaxlang.codegen.context import KernelContext
from relaxlang.codegen.function import PREFIX, emit_function
from relaxlang.codegen.graph import graphs_of
from relaxlang.codegen.graph_workspace import check_plan
from relaxlang.codegen.kernel import CompiledKernel, load_kernels
from relaxlang.codegen.signature import signature_of
from relaxlang.codegen.target import runs_here
from relaxlang.ir.configuration.compiler_config import CompilerConfig
from relaxlang.ir.configuration.executor import WORKSPACE_LIMIT, Executor
from relaxlang.ir.configuration.target import Target
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.tir.lowering import lower
from relaxlang.runtime.device import Device
from relaxlang.runtime.executable import Executable, ObjectCode
from relaxlang.runtime.graph import Graph, GraphNode, GraphTensor
from relaxlang.runtime.graph_executor import GraphExecutor
from relaxlang.runtime.graph_module import GraphExecutorFactory, graph_executable
from relaxlang.runtime.module import RuntimeModule
from relaxlang.runtime.ndarray import NDArray

MOST_ALIGNED = 1 << 12
"""The greatest alignment of static memory, in bytes: a page."""
C_TARGET = "c"


@record
class AotLibrary:
    """The programs of a module and how they are called; the code is made when it is asked for.

    `mod_name` begins all names. `parameters` are the constants by name, which C programs hand over when they are not
    linked in.
    """

    mod_name: str
    programs: tuple[Program, ...]
    interface: Interface
    target: Target
    parameters: Mapping[str, NDArray]

    @property
    def functions(self) -> dict[str, PrimFunc]:
        """The kernels and entries of all programs."""
        return {name: func for program in self.programs for name, func in program.functions.items()}

    @cached_property
    def header(self) -> str:
        """The C header."""
        return header(self.mod_name, self.programs, self.interface)

    @cached_property
    def c_source(self) -> str:
        """The library as C99: it includes its header, and needs `-lm`."""
        file = c_file(self.functions, ())
        tail = [FITS] if self.interface.packed else []
        tail += [c_interface(program, self.interface, file.messages) for program in self.programs]
        return file.text(tail, [f"{prefix(self.mod_name)}.h"])

    @cached_property
    def llvm(self) -> str:
        """The library as LLVM IR. RLX5028 for a target that is not LLVM's."""
        if self.target.kind != "llvm":
            fail("RLX5028", f"there is no machine code for the target `{self.target}`", help="it is C source: `.c`")
        return self._emitted[0]

    @cached_property
    def _emitted(self) -> tuple[str, dict[str, list[str]]]:
        """The LLVM text, and the messages of the statuses of each entry."""
        lowered = {name: lower(func) for name, func in self.functions.items()}
        context = KernelContext(self.target, lowered, threads=False)
        with deep_recursion():
            for program in self.programs:
                symbol = context.module.fresh(PREFIX + program.entry)
                emit_function(context, lowered[program.entry], symbol, "", entry=True)
            for name in lowered:
                if name not in context.callees and name not in {p.entry for p in self.programs}:
                    context.callees[name] = context.module.fresh(f"rlx.callee.{name}")
                    emit_function(context, lowered[name], context.callees[name], "internal ", entry=False)
        if self.interface.packed:
            context.module.add(f"{DL_TENSOR}\n\n{LLVM_FITS}")
        if self.interface.find:
            context.module.external("strcmp", "i32", ["ptr", "ptr"])
        for program in self.programs:
            context.module.add(llvm_interface(program, self.interface, context.messages, context.callees))
        text = context.text(self.target.mtriple, compile.layout(self.target))
        return text, {p.entry: list(context.messages) for p in self.programs}

    @cached_property
    def object_code(self) -> bytes:
        """The library as an object file for the target."""
        return cache.fetch(self.llvm, self.target, compile.object_code)

    @property
    def assembly(self) -> str:
        """The library as assembly text."""
        return compile.assembly(self.llvm, self.target)

    @property
    def report(self) -> dict[str, Any]:
        """Bytes of workspace and constants of each program, and where in the workspace everything lies."""
        return {
            program.name: {
                "workspace_bytes": program.workspace.size,
                "constant_bytes": program.constant_bytes,
                "input_bytes": sum(p.nbytes for p in program.inputs),
                "output_bytes": sum(p.nbytes for p in program.outputs),
                "workspace": [
                    {"name": p.block.name, "offset": p.offset, "bytes": p.block.size, "from": p.block.first,
                     "to": p.block.last}
                    for p in sorted(program.workspace.blocks, key=lambda p: p.offset)
                ],
            }
            for program in self.programs
        }  # fmt: skip

    @property
    def report_text(self) -> str:
        """The report as JSON."""
        return json.dumps(self.report, indent=1) + "\n"

    def kernels(self) -> dict[str, CompiledKernel]:
        """The entries as kernels, which take inputs, outputs, constants that are not linked in, and the workspace."""
        messages = self._emitted[1]
        made = {}
        for program in self.programs:
            signature = signature_of(
                program.entry, program.functions[program.entry], messages[program.entry], program.functions
            )
            made[program.entry] = CompiledKernel(PREFIX + program.entry, self.llvm, (), self.target, signature)
        return made


class AotExecutorFactory(GraphExecutorFactory):
    """A program ahead of time. `library` is what C programs get; in this process, where the code runs here, executors
    call its entry: a graph of one node."""

    def __init__(self, executable: Executable, kernels: Mapping[str, Any], ir_module: Any, library: AotLibrary) -> None:
        super().__init__(executable, kernels, ir_module, linked=all(p.linked for p in library.programs))
        self.library = library

    def create_executor(
        self, device: Device | Sequence[Device] | None = None, function: str | None = None
    ) -> GraphExecutor:
        """A fresh executor. RLX5028 for C source, which does not run in this process."""
        if self.library.target.kind == C_TARGET:
            help = "export it for a C program, or build for the target `llvm` to run it here"
            fail("RLX5028", "a library of the target `c` is C source, and does not run in this process", help=help)
        return super().create_executor(device, function)

    def get_source(self) -> str:
        """The library as C99."""
        return self.library.c_source

    def get_header(self) -> str:
        """The C header of the library."""
        return self.library.header

    def export_library(self, path: str | os.PathLike[str]) -> None:
        """Write the library: `.c`, `.o` and `.a` (with the header beside), `.tar` (code, parameters, metadata, memory
        report), or as other modules, `.rlxe` and `.so`. RLX6019 for other suffixes."""
        from relaxlang.codegen.aot import export

        shown = os.fspath(path)
        suffix = os.path.splitext(shown)[1]
        if suffix in export.SUFFIXES:
            export.export(self.library, shown)
        elif self.library.target.kind == C_TARGET and suffix in (".so", ".rlxe"):
            fail("RLX5028", f"there is no machine code for the target `c`, as `{shown}` needs it",
                 help="it is C source: `.c` or `.tar`; build for the target `llvm`")  # fmt: skip
        else:
            super().export_library(shown)


def _alignment(options: Executor, name: str) -> int:
    """An alignment in bytes; RLX5024 for one that no object can have."""
    value = int(options[name])
    if value < 1 or value & (value - 1) or value > MOST_ALIGNED:
        fail("RLX5024", f"the executor option `{name}` takes a power of two up to {MOST_ALIGNED:,}, not `{value}`")
    return value


def build_aot(lowered: IRModule, config: CompilerConfig) -> RuntimeModule:
    """A lowered module ahead of time. RLX5029 for what needs control flow, dynamic shapes or Python, RLX5028 for
    settings that do not go together."""
    target, options = config.primitive_target, config.executor
    if target is None or target.kind not in ("llvm", C_TARGET):
        fail("RLX5028", f"the executor `aot` needs a target of kind `llvm` or `c`, not `{target}`")
    packed = options["interface-api"] == "packed"
    if not packed and not options.flag("unpacked-api"):
        fail("RLX5028", "`interface-api=c` goes with `unpacked-api`", help="add the option `unpacked-api`")
    graphs, parameters = graphs_of(lowered, "aot")
    linked = options.flag("link-params") or config.runtime.flag("link-params")
    alignments = (_alignment(options, "workspace-byte-alignment"), _alignment(options, "constant-byte-alignment"))
    layout = Layout(*alignments, linked)
    find = config.runtime.flag("system-lib")
    interface = Interface(packed, find or not options.flag("unpacked-api"), find, layout.workspace_alignment)
    name, kernels = prefix(config.mod_name), dict(lowered.prim_funcs())
    programs = tuple(
        make_program(name if function == "main" or len(graphs) == 1 else f"{name}_{function}", graph,
                     {key: parameters[key] for key, _ in graph.parameters}, kernels, layout)
        for function, graph in graphs.items()
    )  # fmt: skip
    for function, program in zip(graphs, programs):
        check_plan(function, program.workspace, 0, int(options.options.get(WORKSPACE_LIMIT, program.workspace.size)))
    library = AotLibrary(name, programs, interface, target, parameters)
    if not graphs:
        fail("RLX5029", "the executor `aot` needs a Relax function", help="PrimFuncs alone are built with `vm`")
    if target.kind == C_TARGET:
        _ = library.c_source  # what has no C is found now
        executable = _executable(graphs, library, {})
        return AotExecutorFactory(executable, {}, lowered, library)
    compiled = library.kernels()
    executable = _executable(graphs, library, compiled)
    return AotExecutorFactory(executable, load_kernels(compiled) if runs_here(target) else {}, lowered, library)


def _executable(graphs: Mapping[str, Graph], library: AotLibrary, compiled: Mapping[str, CompiledKernel]) -> Executable:
    """Graphs of one node, which calls the entry of a program."""
    whole = {name: _one_node(graph, program) for (name, graph), program in zip(graphs.items(), library.programs)}
    target = library.target
    objects = (ObjectCode(library.object_code, target.mtriple, target.mcpu, target.mattr),) if compiled else ()
    signatures = [k.signature for k in compiled.values()]
    return graph_executable(whole, library.parameters, signatures, objects)


def _one_node(graph: Graph, program: Program) -> Graph:
    """The graph of a program: its entry, with a storage for every tensor that goes in or out."""
    places = [*graph.inputs, *graph.outputs, *(t for _, t in graph.parameters)]
    ports = [*program.inputs, *program.outputs, *program.constants]
    tensors = [GraphTensor(p.name, p.shape, p.dtype, k) for k, p in enumerate(ports)]
    storage = [p.nbytes for p in ports]
    args = list(range(len(checked_ports(program))))
    if program.workspace.size:
        tensors.append(GraphTensor("workspace", (program.workspace.size,), "uint8", len(ports)))
        storage.append(program.workspace.size)
        args.append(len(ports))
    first = len(graph.inputs)
    outputs = tuple(range(first, first + len(graph.outputs)))
    where = {t: k for k, t in reversed(list(enumerate(places[:first])))}
    node = GraphNode(program.name, program.entry, tuple(args), outputs)
    rest = iter(outputs)
    parameters = tuple((name, len(places) - len(graph.parameters) + k) for k, (name, _) in enumerate(graph.parameters))
    return Graph(
        graph.name, tuple((n, _renamed(tree, where)) for n, tree in graph.arguments), parameters, tuple(storage),
        tuple(tensors), (node,), _counted(graph.result, rest),
    )  # fmt: skip


def _renamed(tree: Any, where: Mapping[int, int]) -> Any:
    return tuple(_renamed(t, where) for t in tree) if isinstance(tree, tuple) else where[tree]


def _counted(tree: Any, numbers: Any) -> Any:
    return tuple(_counted(t, numbers) for t in tree) if isinstance(tree, tuple) else next(numbers)
