"""From a lowered module of static shape to graphs: the executor's calls, with every tensor in its storage.

What a graph cannot say is refused with the name of the binding: shapes that are not known, control flow, closures, and
values that a call makes itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType, dtype, from_numpy
from relaxlang.base.record import record, replace
from relaxlang.base.recursion import deep_recursion
from relaxlang.codegen.executors import in_process_kernels
from relaxlang.codegen.graph_workspace import fitted
from relaxlang.codegen.kernel import codes_of
from relaxlang.codegen.signature import written_memory
from relaxlang.ir import prim, relax
from relaxlang.ir.configuration.compiler_config import CompilerConfig
from relaxlang.ir.configuration.executor import WORKSPACE_LIMIT
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ir.tir import PrimFunc
from relaxlang.runtime.executable import Executable, KernelFunction
from relaxlang.runtime.graph import Graph, GraphNode, GraphTensor, Literal, Tree
from relaxlang.runtime.graph_module import GraphExecutorFactory, graph_executable
from relaxlang.runtime.module import RuntimeModule
from relaxlang.runtime.ndarray import NDArray, as_tensor

_CHECKS = (
    "vm.builtin.check_tensor_info", "vm.builtin.check_tuple_info", "vm.builtin.match_shape", "vm.builtin.null_value",
    "vm.builtin.check_shape_info", "vm.builtin.check_prim_value_info",
)  # fmt: skip
_NOTHING = ("vm.kill_object", "memory.kill_tensor", "memory.kill_storage")
_ALLOCATE = {"vm.alloc_storage": 2, "memory.alloc_storage": 3}
"""Operators that make a storage, with the place of the element type among their arguments; the first is the shape."""


class _Storage(int):
    """A storage, by its number."""


class _Tensor(int):
    """A tensor, by its number."""


@record
class _Result:
    """What a packed function returned, which has no place in a graph: nobody may use it."""

    binding: str
    function: str


_Value: TypeAlias = "_Storage | _Tensor | _Result | Literal | DType | tuple[_Value, ...] | None"


def graphs_of(mod: IRModule, executor: str = "graph") -> tuple[dict[str, Graph], dict[str, NDArray]]:
    """The graphs of a lowered module's public functions, and their constants by name.

    RLX5029 for what a graph cannot say; `executor` stands in its message.
    """
    public = [(n, f) for n, f in mod.relax_functions() if "global_symbol" in f.attrs] or list(mod.relax_functions())
    constants = _Constants()
    graphs = {}
    with deep_recursion():
        for name, func in public:
            graphs[name] = _Linearizer(mod, name, constants, executor).graph(func)
    return graphs, constants.values


class _Constants:
    """The constants of a module by name, each once."""

    def __init__(self) -> None:
        self.values: dict[str, NDArray] = {}
        self._names: dict[int, tuple[str, object]] = {}  # by identity; the array is kept so that no other can have it

    def name(self, data: Any) -> str:
        """The name of a constant."""
        found = self._names.get(id(data))
        if found is None:
            found = self._names[id(data)] = (f"p{len(self.values)}", data)
            self.values[found[0]] = as_tensor(data)
        return found[0]


class _Linearizer:
    """One function as a list of calls; the functions that it calls are put in their place."""

    def __init__(self, mod: IRModule, name: str, constants: _Constants, executor: str) -> None:
        self.mod = mod
        self.name = name
        self.constants = constants
        self.executor = executor
        self.storage: list[int] = []
        self.tensors: list[GraphTensor] = []
        self.anonymous: set[int] = set()
        self.nodes: list[GraphNode] = []
        self.parameters: dict[str, _Tensor] = {}
        self.values: dict[relax.Var, _Value] = {}
        self.calling = [name]
        self.binding = "result"

    def graph(self, func: relax.Function) -> Graph:
        """The graph of a function."""
        arguments: list[tuple[str, Tree]] = []
        for param in func.params:
            tree = self.argument(param.name, param.struct_info, param)
            self.values[param] = tree
            arguments.append((param.name, _plain(tree)))
        result = self.result(self.sequence(func.body), func)
        return Graph(
            self.name,
            tuple(arguments),
            tuple((name, int(tensor)) for name, tensor in self.parameters.items()),
            tuple(self.storage),
            tuple(self.tensors),
            self.named_nodes(),
            result,
        )

    def argument(self, name: str, info: StructInfo | None, param: relax.Var) -> Any:
        """The tensors of a parameter."""
        if isinstance(info, TupleStructInfo):
            return tuple(self.argument(f"{name}.{i}", field, param) for i, field in enumerate(info.fields))
        shape = _static_shape(info)
        if not isinstance(info, TensorStructInfo) or shape is None or info.dtype is None:
            kind = "is no tensor" if not isinstance(info, TensorStructInfo) else "has no static shape"
            self.refuse(f"the parameter `{name}` of `{self.name}` {kind}: `{info}`", param)
        return self.tensor(name, shape, info.dtype)

    def result(self, value: _Value, func: relax.Function) -> Tree:
        if isinstance(value, tuple):
            return tuple(self.result(part, func) for part in value)
        if isinstance(value, _Tensor):
            return int(value)
        self.refuse(f"`{self.name}` returns a value that is no tensor", func)

    def tensor(self, name: str, shape: Sequence[int], dtype: DType, storage: int | None = None, at: int = 0) -> _Tensor:
        """A new tensor, on a storage of its own unless one is given."""
        if storage is None:
            storage = self.new_storage(math.prod(shape) * dtype.itemsize)
        self.tensors.append(GraphTensor(name, tuple(shape), dtype.name, int(storage), at))
        return _Tensor(len(self.tensors) - 1)

    def new_storage(self, size: int) -> _Storage:
        """A new storage of `size` bytes."""
        self.storage.append(size)
        return _Storage(len(self.storage) - 1)

    # --- bindings -----------------------------------------------------------------------------------------------------
    def sequence(self, seq: relax.Expr) -> _Value:
        """The value of a sequence, after the calls of its bindings."""
        if not isinstance(seq, relax.SeqExpr):
            return self.value(seq)
        for block in seq.blocks:
            for binding in block.bindings:
                outer, self.binding = self.binding, binding.var.name
                made = self.values[binding.var] = self.value(binding.value)
                self.name_after(made, binding)
                self.binding = outer
        return self.value(seq.body)

    def name_after(self, made: _Value, binding: relax.Binding) -> None:
        """Call a tensor by the variable that it is bound to first after it was computed: lowering gives its memory a
        name of its own."""
        if isinstance(made, _Tensor) and made in self.anonymous and isinstance(binding.value, relax.Var):
            self.anonymous.discard(made)
            self.tensors[made] = replace(self.tensors[made], name=binding.var.name)

    def value(self, expr: relax.Expr) -> _Value:
        """What an expression is; RLX5029 when a graph has no such thing."""
        handler = _VALUES.get(expr.__class__)
        if handler is None:
            self.refuse(f"the binding `{self.binding}` is a `{type(expr).__name__}`", expr)
        return handler(self, expr)

    def var(self, expr: relax.Var) -> _Value:
        if expr not in self.values:
            fail("RLX5021", f"the variable `{expr.name}` is not defined here", expr.span)
        value = self.values[expr]
        if isinstance(value, _Result):
            self.refuse(f"the binding `{value.binding}` calls `{value.function}`, which makes its result itself", expr)
        return value

    def constant(self, expr: relax.Constant) -> _Value:
        name = self.constants.name(expr.data)
        if name not in self.parameters:
            self.parameters[name] = self.tensor(name, expr.content.shape, from_numpy(expr.content.dtype))
        return self.parameters[name]

    def shape(self, expr: relax.ShapeExpr) -> _Value:
        dims = _numbers(expr.values)
        if dims is None:
            self.refuse(f"the binding `{self.binding}` has the dynamic shape `{expr}`", expr)
        return Literal(dims)

    def prim_value(self, expr: relax.PrimValue) -> _Value:
        node = expr.value
        if isinstance(node, prim.IntImm):
            return Literal(bool(node.value) if node.dtype.is_bool else node.value)
        if isinstance(node, (prim.FloatImm, prim.StringImm)):
            return Literal(node.value)
        self.refuse(f"the binding `{self.binding}` has the dynamic value `{node}`", expr)

    def fields(self, expr: relax.Tuple) -> _Value:
        return tuple(self.value(field) for field in expr.fields)

    def item(self, expr: relax.TupleGetItem) -> _Value:
        whole = self.value(expr.tuple_value)
        if not isinstance(whole, tuple):
            self.refuse(f"the binding `{self.binding}` takes a part of what is no tuple", expr)
        return whole[expr.index]

    def conditional(self, expr: relax.If) -> _Value:
        self.refuse(f"the binding `{self.binding}` is a conditional", expr)

    # --- calls --------------------------------------------------------------------------------------------------------
    def call(self, call: relax.Call) -> _Value:
        """A call: of memory, of a kernel, of a packed function, or of a function that takes its place."""
        op = call.op
        if isinstance(op, relax.Op):
            return self.op_call(op.name, call)
        if isinstance(op, relax.ExternFunc):
            return self.packed(op.name, call)
        if not isinstance(op, relax.GlobalVar):
            self.refuse(f"the binding `{self.binding}` calls a closure", call)
        callee = self.mod.functions.get(op.name)
        if isinstance(callee, PrimFunc):
            return self.kernel(op.name, callee, [self.value(a) for a in call.args], call)
        if isinstance(callee, relax.ExternFunc):
            return self.packed(callee.name, call)
        if not isinstance(callee, relax.Function):
            fail("RLX5021", f"there is no function `{op.name}`", call.span)
        return self.inline(op.name, callee, [self.value(a) for a in call.args], call)

    def inline(self, name: str, func: relax.Function, args: list[_Value], call: relax.Call) -> _Value:
        if name in self.calling:
            self.refuse(f"the binding `{self.binding}` calls `{name}`, which calls itself", call)
        self.calling.append(name)
        self.values.update(zip(func.params, args, strict=True))
        made = self.sequence(func.body)
        self.calling.pop()
        return made

    def op_call(self, name: str, call: relax.Call) -> _Value:
        if name in _NOTHING:
            return None
        if name == "call_builtin_with_ctx":  # the heap of symbolic dimensions; what is stored there is refused
            return None
        args = [self.value(a) for a in call.args]
        if name in _ALLOCATE:
            element = args[_ALLOCATE[name]]
            assert isinstance(element, DType)
            return self.new_storage(math.prod(_dims(args[0])) * element.itemsize)
        if name in ("vm.alloc_tensor", "memory.alloc_tensor"):
            storage, at, shape, element = args[:4]
            assert isinstance(storage, _Storage) and isinstance(at, Literal) and isinstance(element, DType)
            assert isinstance(at.value, int)
            return self.memory(_dims(shape), element, storage, at.value)
        if name == "builtin.alloc_tensor":
            assert isinstance(args[1], DType)
            return self.memory(_dims(args[0]), args[1])
        if name == "vm.call_tir_dyn":
            return self.dynamic_kernel(call, args)
        fail("RLX5020", f"the operator `R.{name}` must be lowered before code generation", call.span,
             help='build with `pipeline="minimum"`, or run `call-tir-rewrite` and `vm-memory-lower`')  # fmt: skip

    def memory(self, shape: Sequence[int], dtype: DType, storage: int | None = None, at: int = 0) -> _Tensor:
        """A tensor that is still to be computed."""
        made = self.tensor(self.binding, shape, dtype, storage, at)
        self.anonymous.add(made)
        return made

    def dynamic_kernel(self, call: relax.Call, args: list[_Value]) -> _Value:
        """A kernel whose scalars stand in a shape behind its other arguments."""
        target = call.args[0]
        callee = self.mod.functions.get(target.name) if isinstance(target, relax.GlobalVar) else None
        if not isinstance(callee, PrimFunc) or not isinstance(target, relax.GlobalVar):
            self.refuse(f"the binding `{self.binding}` calls a kernel that is not known", call)
        return self.kernel(target.name, callee, [*args[1:-1], *(Literal(d) for d in _dims(args[-1]))], call)

    def kernel(self, name: str, func: PrimFunc, args: list[_Value], call: relax.Call) -> _Value:
        written = written_memory(func)
        operands = [self.operand(a, call) for a in args]
        outputs = [
            a for p, a in zip(func.params, operands) if p in func.buffer_map and func.buffer_map[p].data in written
        ]
        made = [a for a in outputs if isinstance(a, int)]
        self.nodes.append(GraphNode(self.binding, name, tuple(operands), tuple(made)))
        return None

    def packed(self, name: str, call: relax.Call) -> _Value:
        """A call of a packed function, which must write to tensors that it is given: the last of its arguments."""
        if name in _CHECKS:
            return None
        args = [self.value(a) for a in call.args]
        if name == "vm.builtin.reshape" and isinstance(args[0], _Tensor):
            old = self.tensors[args[0]]
            return self.tensor(self.binding, _dims(args[1]), dtype(old.dtype), old.storage, old.offset)
        if name == "vm.builtin.copy":
            return args[0]
        operands = [self.operand(a, call) for a in args]
        made = [a for a in operands if isinstance(a, int)][-1:]
        self.nodes.append(GraphNode(self.binding, name, tuple(operands), tuple(made), True))
        return _Result(self.binding, name)

    def operand(self, value: _Value, call: relax.Call) -> int | Literal:
        if isinstance(value, _Tensor):
            return int(value)
        if isinstance(value, Literal):
            return value
        self.refuse(f"the binding `{self.binding}` passes a value that is no tensor and no number", call)

    def named_nodes(self) -> tuple[GraphNode, ...]:
        """The nodes, each named after what it makes or else after its function, with different names."""
        taken: set[str] = set()
        named = []
        for node in self.nodes:
            hint = self.tensors[node.outputs[0]].name if node.outputs else node.function
            name, n = hint, 0
            while name in taken:
                n += 1
                name = f"{hint}_{n}"
            taken.add(name)
            named.append(replace(node, name=name))
        return tuple(named)

    def refuse(self, what: str, node: Any) -> NoReturn:
        """RLX5029 at a node."""
        fail(
            "RLX5029",
            f"the executor `{self.executor}` cannot run this program: {what}",
            getattr(node, "span", None),
            help='`executor="vm"` runs every program',
        )


def _plain(tree: Any) -> Tree:
    return tuple(_plain(part) for part in tree) if isinstance(tree, tuple) else int(tree)


def _static_shape(info: StructInfo | None) -> tuple[int, ...] | None:
    """The shape of a tensor's struct info, None when a dimension is not known."""
    if not isinstance(info, TensorStructInfo) or info.dims is None:
        return None
    return _numbers(info.dims)


def _numbers(dims: Sequence[prim.PrimExpr]) -> tuple[int, ...] | None:
    values = [d.value for d in dims if isinstance(d, prim.IntImm)]
    return tuple(values) if len(values) == len(dims) else None


def _dims(value: _Value) -> tuple[int, ...]:
    assert isinstance(value, Literal) and isinstance(value.value, tuple)
    return value.value


_VALUES: dict[type, Callable[[_Linearizer, Any], _Value]] = {
    relax.Var: _Linearizer.var,
    relax.DataflowVar: _Linearizer.var,
    relax.Constant: _Linearizer.constant,
    relax.ShapeExpr: _Linearizer.shape,
    relax.PrimValue: _Linearizer.prim_value,
    relax.StringImm: lambda linearizer, expr: Literal(expr.value),
    relax.DataTypeImm: lambda linearizer, expr: expr.value,
    relax.Tuple: _Linearizer.fields,
    relax.TupleGetItem: _Linearizer.item,
    relax.If: _Linearizer.conditional,
    relax.Call: _Linearizer.call,
    relax.SeqExpr: _Linearizer.sequence,
    relax.GlobalVar: lambda linearizer, expr: None,
    relax.ExternFunc: lambda linearizer, expr: None,
}


def build_graph(lowered: IRModule, config: CompilerConfig) -> RuntimeModule:
    """A lowered module for the graph executor; its kernels alone when it has no Relax functions."""
    graphs, parameters = graphs_of(lowered)
    limit = config.executor.options.get(WORKSPACE_LIMIT)
    if limit is not None:
        graphs = {name: fitted(graph, int(limit)) for name, graph in graphs.items()}
    kernels, loaded = in_process_kernels(lowered, config)
    signatures = [kernel.signature for kernel in kernels.values()]
    objects = tuple(code.object_code for code in codes_of(kernels))
    if not graphs:
        return RuntimeModule(Executable(tuple(KernelFunction(s) for s in signatures), (), (), objects), loaded, lowered)
    executable = graph_executable(graphs, parameters, signatures, objects)
    return GraphExecutorFactory(executable, loaded, lowered, config.executor.flag("link-params"))
