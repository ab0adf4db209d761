"""The walk over a graph: nodes in order, each converted and bound; what converters ask for on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import checker, defs

from relaxlang.arith import Analyzer, Bound
from relaxlang.base.diagnostics import DiagnosticError, fail
from relaxlang.base.dtype import DType
from relaxlang.builder.block_builder import BlockBuilder
from relaxlang.frontend.onnx import functions
from relaxlang.frontend.onnx.folding import FOLDS, MAX_FOLDED
from relaxlang.frontend.onnx.node import Node, at_node, describe
from relaxlang.frontend.onnx.types import tensor_data
from relaxlang.frontend.onnx.values import Dim, Known, Result, Value
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import INT64, IntImm, PrimExpr
from relaxlang.ir.struct_info import TensorStructInfo, shape_info, tensor_info
from relaxlang.ir.visit import free_vars
from relaxlang.ops import python_api as op

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Converter = Callable[["Graph", Node], Result]


MAX_READ = 64
"""Elements of a tensor that become dimensions at run time: no tensor of numpy has more."""
MAX_NODES = 1 << 18
"""Nodes that a model may come to: functions that call each other twice double with each one."""


def legal_name(text: str, hint: str = "v") -> str:
    """A name of ONNX as an identifier."""
    made = re.sub(r"\W+", "_", text).strip("_")
    return made if made and not made[0].isdigit() else f"{hint}_{made}" if made else hint


class Graph:
    """A graph that is being imported, and those around it.

    `values` are the values by name, of this graph only; `outer` is the graph around it. `versions` are those of the
    operator sets by domain, `parameters` the weights that became parameters of `main`. One `BlockBuilder` and one
    `Analyzer` serve all graphs of a model.
    """

    def __init__(self, bb: BlockBuilder, versions: Mapping[str, int], library: functions.Library,
                 keep_parameters: bool) -> None:  # fmt: skip
        self.bb = bb
        self.versions = versions
        self.library = library
        self.keep_parameters = keep_parameters
        self.parameters: dict[relax.Var, np.ndarray[Any, Any]] = {}
        self.analyzer = Analyzer()
        self.outer: Graph | None = None
        self.values: dict[str, Value] = {}
        self._constants: dict[int, tuple[Any, relax.Expr]] = {}
        self._read: dict[relax.Expr, tuple[PrimExpr, ...]] = {}
        self._dims: dict[str, prim.Var] = {}
        self._dim_names: set[str] = set()
        self.depth = 0
        self._nodes = [0]

    def inner(self, versions: Mapping[str, int] | None = None, *, sees: bool = True) -> Graph:
        """A graph inside of this one; with `sees` it reads the values of this one by name."""
        made = object.__new__(Graph)
        made.__dict__.update(self.__dict__)
        made.outer, made.values, made.depth = (self if sees else None), {}, self.depth + 1
        made.versions = self.versions if versions is None else versions
        if made.depth > functions.MAX_DEPTH:
            fail("RLX8003", f"the model has graphs or functions nested more than {functions.MAX_DEPTH} deep")
        return made

    # --- walking ------------------------------------------------------------------------------------------------------
    def initialize(self, tensors: Iterable[Any]) -> None:
        """Take the initializers of the graph."""
        for tensor in tensors:
            data = tensor_data(tensor, f"the initializer `{tensor.name}`")
            self.values[tensor.name] = Known(data, parameter=tensor.name)

    def run(self, nodes: Iterable[Any]) -> None:
        """Convert nodes, which stand in an order in which each comes after those that it reads."""
        for proto in nodes:
            version = self.version_of(proto)
            self._nodes[0] += 1
            if self._nodes[0] > MAX_NODES:
                fail(
                    "RLX8003",
                    f"the model comes to more than {MAX_NODES:,} nodes, with its functions and loops written out",
                )
            node = Node(proto, version, [self._lookup(name, proto, version) for name in proto.input])
            try:
                self._check(node)
                results = self.convert(node)
            except DiagnosticError as fault:
                raise at_node(fault, node) from None
            for name, value in zip(proto.output, results):
                if name:
                    self.values[name] = value

    def version_of(self, proto: Any) -> int:
        """The version of the operator set that a node belongs to."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        if domain not in self.versions:
            fail(
                "RLX8003", f"the model imports no operator set of the domain `{domain}`, which `{proto.op_type}` is of"
            )
        return self.versions[domain]

    def _lookup(self, name: str, proto: Any, version: int) -> Value:
        found = self.find(name) if name else None
        if name and found is None and not self._has(name):
            fail("RLX8003", f"nothing before {describe(proto, version)} computes its input `{name}`")
        return found

    def find(self, name: str) -> Value:
        """The value of a name, in this graph or one around it; None when there is none."""
        at: Graph | None = self
        while at is not None and name not in at.values:
            at = at.outer
        return None if at is None else at.values[name]

    def _has(self, name: str) -> bool:
        at: Graph | None = self
        while at is not None and name not in at.values:
            at = at.outer
        return at is not None

    def _check(self, node: Node) -> None:
        """RLX8003 when a node breaks its operator's rules: the number of inputs, the kinds of attributes."""
        if (
            node.domain not in ("", "ai.onnx")
            or not defs.has(node.op)
            or any(a.HasField("g") for a in node.proto.attribute)
        ):
            return
        context = checker.C.CheckerContext()
        context.ir_version = checker.DEFAULT_CONTEXT.ir_version
        context.opset_imports = {"": node.version}
        try:
            checker.check_node(node.proto, context)
        except checker.ValidationError as fault:
            fail("RLX8003", f"{node} is not valid: {str(fault).splitlines()[0].rstrip('.')}")

    def convert(self, node: Node) -> tuple[Value, ...]:
        """The values of a node's outputs: folded, converted, or those of the function that the operator stands for."""
        folded = self._fold(node)
        if folded is not None:
            return folded
        converter = self.library.converter(node)
        if converter is None:
            return functions.call(self, node)
        made = converter(self, node)
        results = made if isinstance(made, tuple) else (made,)
        return tuple(self.bound(value, name) for value, name in zip(results, node.outputs))

    def _fold(self, node: Node) -> tuple[Value, ...] | None:
        """The outputs of a node whose inputs are known and few; None when it must be computed at run time."""
        fold = FOLDS.get(node.op) if node.domain in ("", "ai.onnx") else None
        if fold is None or not node.inputs:
            return None
        arrays = []
        for value in node.inputs:
            if not isinstance(value, Known) or value.data.size > MAX_FOLDED:
                return None
            arrays.append(value)
        made = fold(self, node, *arrays)
        if made is None:
            return None
        return made if isinstance(made, tuple) else (made,)

    def bound(self, value: Value, name: str) -> Value:
        """A result as a value that others may use: an expression is bound to a variable that has a known shape."""
        if not isinstance(value, relax.Expr):
            return value
        if isinstance(value, (relax.Var, relax.Constant)):
            return value
        hint = legal_name(name)
        var = self.bb.emit(value, hint)
        info = var.struct_info
        if isinstance(info, TensorStructInfo) and info.dims is None and info.ndim >= 0:
            dims = tuple(self.new_dim(f"{hint}_{k}") for k in range(info.ndim))
            var = self.bb.match_cast(var, tensor_info(dims, info.dtype), hint)
        return var

    # --- what converters ask for --------------------------------------------------------------------------------------
    def tensor(self, value: Value) -> relax.Expr:
        """A value as a tensor that is there at run time."""
        if isinstance(value, relax.Expr):
            return value
        if not isinstance(value, Known):
            fail(
                "RLX8006", "a tensor is needed, and this is a sequence" if value is not None else "an input is missing"
            )
        found = self._constants.get(id(value.data))
        if found is None:
            found = self._constants[id(value.data)] = (value.data, self._materialize(value))
        return found[1]

    def _materialize(self, value: Known) -> relax.Expr:
        if not value.is_symbolic:
            if value.parameter and self.keep_parameters and value.data.ndim and value.data.size > 1:
                return self._parameter(value)
            return relax.Constant(value.data)
        elements = tuple(prim.as_prim(int(e) if isinstance(e, bool) else e, INT64) for e in value.data.reshape(-1))
        elements = tuple(prim.cast(e, INT64) for e in elements)
        made = op.shape_to_tensor(relax.ShapeExpr(elements))
        if value.data.ndim != 1:
            made = op.reshape(made, value.data.shape)
        return made if value.dtype is INT64 else op.astype(made, value.dtype)

    def _parameter(self, value: Known) -> relax.Var:
        dims = tuple(IntImm(INT64, n) for n in value.data.shape)
        taken = {v.name for v in self.parameters}
        name = legal_name(value.parameter, "p")
        while name in taken:
            name += "_"
        made = relax.Var(self.bb.get_unique_name(name), tensor_info(dims, value.dtype))
        self.parameters[made] = value.data
        return made

    def shape(self, value: Value) -> tuple[PrimExpr, ...]:
        """The dimensions of a value."""
        if isinstance(value, Known):
            return tuple(IntImm(INT64, n) for n in value.data.shape)
        dims = self.info(value).dims
        if dims is None:
            fail(
                "RLX8006", "the rank of an input is not known, as it depends on sizes of the model's inputs",
                help="give these numbers: `shapes={\"x\": (\"n\", 3, 224, 224)}`",
            )  # fmt: skip
        return dims

    def sizes(self, value: Value) -> tuple[Dim, ...]:
        """As `shape`, with ints for the dimensions that are known."""
        return tuple(d.value if isinstance(d, IntImm) else d for d in self.shape(value))

    def rank(self, value: Value) -> int:
        """The number of dimensions of a value."""
        return len(self.shape(value))

    def sizes_of_rank(self, value: Value, least: int, most: int | None = None) -> tuple[Dim, ...]:
        """As `sizes`, of a value that must have so many dimensions (`most` None: just `least`)."""
        dims = self.sizes(value)
        if not least <= len(dims) <= (least if most is None else most):
            fail("RLX8003", f"an input has {len(dims)} dimensions, not {least}")
        return dims

    def dtype(self, value: Value) -> DType:
        """The element type of a value."""
        if isinstance(value, Known):
            return value.dtype
        found = self.info(value).dtype
        if found is None:
            fail("RLX8006", "the element type of an input is not known")
        return found

    def info(self, value: Value) -> TensorStructInfo:
        """What is known about a tensor."""
        found = value.struct_info if isinstance(value, relax.Expr) else None
        if not isinstance(found, TensorStructInfo):
            fail("RLX8006", "an input is no tensor")
        return found

    def axis(self, node: Node, axis: int, rank: int) -> int:
        """An axis counted from the front."""
        if not -rank <= axis < rank:
            fail("RLX8003", f"the axis {axis} is out of range for {rank} dimensions")
        return axis % rank if rank else 0

    def axes(self, node: Node, axes: Iterable[int], rank: int) -> tuple[int, ...]:
        """Axes counted from the front."""
        return tuple(self.axis(node, a, rank) for a in axes)

    def dims(self, value: Value, what: str) -> tuple[Dim, ...]:
        """The elements of an integer tensor of one dimension (or none), as numbers and expressions.

        One that is computed at run time is read there: its elements become new symbolic dimensions.
        """
        if isinstance(value, Known):
            if not value.dtype.is_integer or value.data.ndim > 1:
                fail("RLX8003", f"{what} must be integers in one dimension")
            return tuple(int(e) if not isinstance(e, PrimExpr) else e for e in value.data.reshape(-1))
        tensor = self.tensor(value)
        if tensor in self._read:
            return self._read[tensor]
        dims = self.sizes(tensor)
        if len(dims) > 1 or not self.dtype(tensor).is_integer:
            fail("RLX8003", f"{what} must be integers in one dimension")
        count = dims[0] if dims else 1
        if not isinstance(count, int):
            fail("RLX8006", f"{what} are as many as is known only at run time")
        if count > MAX_READ:
            fail("RLX8006", f"{what} are {count} numbers that are known only at run time; {MAX_READ} are possible")
        flat = tensor if dims else self.bb.emit(op.reshape(tensor, (1,)))
        shape = self.bb.emit(relax.Call(relax.Op("tensor_to_shape"), (flat,)))
        name = legal_name(getattr(tensor, "name", "d"))
        values = tuple(self.new_dim(f"{name}_{k}", nonnegative=False) for k in range(count))
        self.bb.match_cast(shape, shape_info(values))
        self._read[tensor] = values
        return values

    def scalar(self, value: Value, what: str) -> Dim:
        """An integer tensor of one element, as `dims`."""
        found = self.dims(value, what)
        if len(found) != 1:
            fail("RLX8003", f"{what} must be one number, not {len(found)}")
        return found[0]

    def ints(self, value: Value, what: str) -> tuple[int, ...]:
        """The elements of an integer tensor that must be known while importing."""
        if not isinstance(value, Known) or value.is_symbolic:
            fail("RLX8006", f"{what} must be a constant")
        return tuple(int(v) for v in self.dims(value, what) if isinstance(v, int))

    def constant(self, value: Value, what: str) -> np.ndarray[Any, Any]:
        """The array of a tensor that must be known while importing."""
        if not isinstance(value, Known) or value.is_symbolic:
            fail("RLX8006", f"{what} must be a constant")
        return value.data

    def like(self, number: float, value: Value) -> relax.Constant:
        """A number as a tensor without dimensions, of a value's element type; RLX8003 when it has no such number."""
        of = self.dtype(value)
        try:
            return relax.Constant(np.array(number, dtype=of.numpy))
        except (ValueError, OverflowError):
            fail("RLX8003", f"{number} is no `{of}`")

    def of_length(self, x: relax.Expr, axis: int, length: Dim) -> relax.Expr:
        """A tensor that has this many elements along an axis: RLX8003, or an error at run time, when it has not."""
        dims = self.sizes(x)
        have = dims[axis]
        if self.equal(have, length):
            return x
        if isinstance(have, int) and isinstance(length, int):
            fail("RLX8003", f"axis {axis} has {have} elements, and should have {length}")
        stated = (prim.as_prim(length if k == axis else d, INT64) for k, d in enumerate(dims))
        made: relax.Expr = self.bb.match_cast(x, tensor_info(tuple(stated), self.dtype(x)))
        return made

    # --- symbolic dimensions ------------------------------------------------------------------------------------------
    def dim(self, name: str) -> prim.Var:
        """The symbolic dimension that the model calls by this name, one wherever it occurs."""
        if name not in self._dims:
            self._dims[name] = self.new_dim(name)
        return self._dims[name]

    def new_dim(self, hint: str, *, nonnegative: bool = True) -> prim.Var:
        """A new symbolic dimension."""
        name, n = legal_name(hint, "d"), 0
        base = name
        while name in self._dim_names:
            n += 1
            name = f"{base}_{n}"
        self._dim_names.add(name)
        made = prim.Var(name, INT64)
        if nonnegative:
            self.analyzer.update(made, Bound(0, float("inf")))
        return made

    def simplify(self, value: Dim) -> Dim:
        """The simplest form of a dimension."""
        if isinstance(value, int):
            return value
        made = self.analyzer.simplify(value)
        return made.value if isinstance(made, IntImm) else made

    def equal(self, a: Dim, b: Dim) -> bool:
        """Whether two dimensions are provably equal."""
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        return self.analyzer.can_prove_equal(a, b)

    def differs(self, a: Dim, b: Dim) -> bool:
        """Whether two dimensions are provably different."""
        if isinstance(a, int) and isinstance(b, int):
            return a != b
        return self.analyzer.can_prove(prim.NE(*prim.match(a, b)))

    def product(self, dims: Iterable[Dim]) -> Dim:
        """The product of dimensions."""
        total: Dim = 1
        for d in dims:
            total = d if total == 1 and isinstance(total, int) else total * d
        return self.simplify(total)

    def broadcast(self, *shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """The shape that shapes broadcast to; dimensions that may differ are compared at run time."""
        rank = max((len(s) for s in shapes), default=0)
        out: list[Dim] = []
        for k in range(rank):
            found: Dim = 1
            for s in shapes:
                at = k - (rank - len(s))
                if at >= 0 and not self.equal(s[at], 1):
                    found = self._broadcast_dim(found, s[at])
            out.append(found)
        return tuple(out)

    def _broadcast_dim(self, a: Dim, b: Dim) -> Dim:
        if self.equal(a, 1):
            return b
        if self.equal(a, b) or isinstance(a, int):
            return a
        if isinstance(b, int) or self.differs(b, 1):
            return b
        return a if self.differs(a, 1) else prim.Select(prim.EQ(*prim.match(a, 1)), b, a)

    def known_nonnegative(self, value: PrimExpr) -> bool:
        """Whether an expression is provably not negative."""
        return self.analyzer.can_prove(prim.GE(*prim.match(value, 0)))

    def learn(self, dims: Iterable[PrimExpr]) -> None:
        """Note that the variables in dimensions are not negative."""
        for var in free_vars(relax.ShapeExpr(tuple(dims))):
            if isinstance(var, prim.Var):
                self._dim_names.add(var.name)
                self.analyzer.update(var, Bound(0, float("inf")))

    # --- graphs inside ------------------------------------------------------------------------------------------------
    @contextmanager
    def sealed(self) -> Iterator[None]:
        """What is read or made within it is not known after it."""
        constants, read = dict(self._constants), dict(self._read)
        try:
            yield
        finally:
            for made in [k for k in self._constants if k not in constants]:
                del self._constants[made]
            for var in [v for v in self._read if v not in read]:
                del self._read[var]

    @contextmanager
    def sequence(self) -> Iterator[list[relax.SeqExpr]]:
        """A run of bindings of its own, for a branch."""
        with self.sealed(), self.bb.sequence() as finished:
            yield finished

    def outputs_of(self, graph: Any) -> list[Value]:
        """The values of a graph's outputs, after its nodes were run."""
        found: list[Value] = []
        for output in graph.output:
            if not self._has(output.name):
                fail("RLX8003", f"nothing computes the output `{output.name}`")
            found.append(self.find(output.name))
        return found


def item(tuple_value: relax.Expr, index: int) -> relax.Expr:
    """A field of a tuple."""
    return relax.TupleGetItem(tuple_value, index)
