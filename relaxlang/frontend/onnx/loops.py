"""Loops that end when the program says so, as functions that call themselves.

    def loop(turn, trips, going, carried…, captured…):
        if turn < trips and going:
            carried = body(turn, going, carried…)
            result = loop(turn + 1, trips, going, carried…, captured…)
        else:
            result = carried

Dimensions of what is carried from turn to turn may change on the way: the body is imported once to see which do, and
again with a dimension of its own for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from relaxlang.base.dtype import DType
from relaxlang.frontend.onnx.graph import Graph, item, legal_name
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.values import Known, Value
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import INT64, IntImm, PrimExpr
from relaxlang.ir.struct_info import TensorStructInfo, TupleStructInfo, tensor_info
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.ops import python_api as op

MAX_TRIES = 4
"""How often a body is imported until the dimensions that change are known."""
Varying = set[tuple[int, int]]
"""Dimensions that change from turn to turn: (which of the carried values, axis)."""


class _Dropped(BaseException):
    """Leaves a function that was only imported to look at it."""


class Loop:
    """A loop in the making: its body, what is carried, and the values around it that the body reads."""

    def __init__(self, g: Graph, n: Node, body: Any, carried: Sequence[Value]) -> None:
        self.g, self.n, self.body = g, n, body
        self.first = [g.bb.emit(g.tensor(v)) for v in carried]
        self.scans = len(body.output) - 1 - len(self.first)
        names = _free_names(body)
        around = {name: g.find(name) for name in names}
        self.known = {k: v for k, v in around.items() if isinstance(v, Known) and not self._is_tensor(v)}
        self.captured = {k: g.tensor(v) for k, v in around.items() if k not in self.known and v is not None}
        self.given: list[tuple[tuple[PrimExpr, ...], DType]] = []

    def _declared(self) -> Sequence[Any]:
        """What the model says about that which each turn gives."""
        declared: Sequence[Any] = self.body.output[1 + len(self.first) :]
        return declared

    def _is_tensor(self, value: Known) -> bool:
        return value.is_symbolic or (bool(value.parameter) and self.g.keep_parameters)

    def run(self, trips: Value, going: Value) -> tuple[Value, ...]:
        """The values that are carried out of the loop, then what each turn gave, one after another."""
        g, varying = self.g, set[tuple[int, int]]()
        for _ in range(MAX_TRIES):
            more = self._changing(varying)
            if more <= varying:
                break
            varying |= more
        else:
            self.n.unsupported("whose values go on changing their shapes in unforeseen ways")
        accumulated = [op.zeros((0, *dims), of) for dims, of in self.given]
        self.first += [g.bb.emit(a) for a in accumulated]
        varying |= {(len(self.first) - self.scans + k, 0) for k in range(self.scans)}
        callee, result = self._define(varying)
        most = relax.Constant(np.array(np.iinfo(np.int64).max)) if trips is None else op.reshape(g.tensor(trips), ())
        flag = relax.Constant(np.array(True)) if going is None else op.reshape(g.tensor(going), ())
        arguments = [relax.Constant(np.array(0, dtype=np.int64)), g.bb.emit(most), g.bb.emit(flag)]
        made = g.bb.emit(relax.Call(callee, (*arguments, *self.first, *self.captured.values())))
        assert len(result.fields) == len(self.first)
        return tuple(g.bound(item(made, k), f"{self.n.op.lower()}_{k}") for k in range(len(self.first)))

    def _parameters(self, varying: Varying) -> tuple[list[relax.Var], list[relax.Var]]:
        """Parameters for what is carried and what is captured, with dimensions of the function's own."""
        g, own = self.g, dict[PrimExpr, PrimExpr]()

        def own_dim(dim: PrimExpr, name: str, changes: bool) -> PrimExpr:
            if isinstance(dim, IntImm) and not changes:
                return dim
            if changes:
                return g.new_dim(name)
            if dim not in own:
                own[dim] = g.new_dim(name)
            return own[dim]

        def parameter(value: relax.Expr, name: str, k: int | None) -> relax.Var:
            shape = tuple(own_dim(d, f"{name}_{a}", k is not None and (k, a) in varying)
                          for a, d in enumerate(g.shape(value)))  # fmt: skip
            return relax.Var(name, tensor_info(shape, g.dtype(value)))

        carried = [parameter(v, f"carried{k}", k) for k, v in enumerate(self.first)]
        return carried, [parameter(v, f"{legal_name(name)}_in", None) for name, v in self.captured.items()]

    def _scalars(self) -> list[relax.Var]:
        whole, truth = tensor_info((), INT64), tensor_info((), prim.BOOL)
        return [relax.Var("turn", whole), relax.Var("trips", whole), relax.Var("going", truth)]

    def _body(
        self, turn: relax.Expr, going: relax.Expr, carried: Sequence[Value], captured: Sequence[Value]
    ) -> list[Value]:
        inner = self.g.inner(sees=False)
        inner.keep_parameters = False  # a function has no parameters of `main`
        inner.values.update(self.known)
        inner.values.update(zip(self.captured, captured))
        inner.initialize(self.body.initializer)
        for value, given in zip(self.body.input, (turn, going, *carried)):
            inner.values[value.name] = given
        inner.run(self.body.node)
        return [self.g.tensor(v) for v in inner.outputs_of(self.body)]

    def _changing(self, varying: Varying) -> Varying:
        """The dimensions that a turn changes, when those of `varying` are taken to change."""
        found: Varying = set()
        with _looking(self.g):
            carried, captured = self._parameters(varying)
            scalars = self._scalars()
            with self.g.bb.function("look", [*scalars, *carried, *captured]):
                made = self._body(scalars[0], scalars[2], carried, captured)[1:]
                for k, (before, after) in enumerate(zip(carried, made)):
                    if self.g.dtype(before) is not self.g.dtype(after) or self.g.rank(before) != self.g.rank(after):
                        self.n.unsupported("whose values change their type or rank")
                    pairs = zip(self.g.shape(before), self.g.shape(after))
                    found |= {(k, a) for a, (b, c) in enumerate(pairs) if not self.g.equal(b, c) or (k, a) in varying}
                columns = zip(made[len(carried) :], self._declared())
                self.given = [(self._outside(v, carried, captured, d), self.g.dtype(v)) for v, d in columns]
                raise _Dropped
        return found

    def _outside(
        self, value: Value, carried: Sequence[relax.Var], captured: Sequence[relax.Var], declared: Any
    ) -> tuple[Any, ...]:
        """The shape of what a turn gives, in terms of the values around the loop, or else as the model declares it."""
        g, known = self.g, dict[prim.Var, PrimExpr]()
        around: set[Any] = set()
        for inside, outside in zip((*carried, *captured), (*self.first, *self.captured.values())):
            for a, b in zip(g.shape(inside), g.shape(outside)):
                around.update(free_vars(b))
                if isinstance(a, prim.Var):
                    known[a] = b
        dims = [substitute(d, known) for d in g.shape(value)]
        stated = [] if declared is None else [d.dim_value for d in declared.type.tensor_type.shape.dim]
        for k, d in enumerate(dims):
            if not around.issuperset(free_vars(d)):
                if len(stated) != len(dims) or not stated[k]:
                    self.n.unsupported("whose results have shapes that are made anew in each turn")
                dims[k] = IntImm(INT64, stated[k])
        return tuple(dims)

    def _define(self, varying: Varying) -> tuple[relax.GlobalVar, TupleStructInfo]:
        """The function; and what it gives."""
        g, bb = self.g, self.g.bb
        carried, captured = self._parameters(varying)
        scalars = self._scalars()
        result = TupleStructInfo(tuple(_loose(v, k, varying) for k, v in enumerate(carried)))
        name = bb.get().unique_name(legal_name(self.n.proto.name or self.n.op.lower(), "loop"))
        with g.sealed(), bb.function(name, [*scalars, *carried, *captured], private=True, ret=result) as callee:
            turn, trips, going = scalars
            test = bb.emit(op.logical_and(op.less(turn, trips), going))
            with g.sequence() as then:
                states = carried[: len(carried) - self.scans]
                made = self._body(turn, going, states, captured)
                columns = zip(carried[len(states) :], made[1 + len(states) :])
                grown = [bb.emit(op.concat((c, op.expand_dims(v, [0])), axis=0)) for c, v in columns]
                following = bb.emit(op.add(turn, relax.Constant(np.array(1, dtype=np.int64))))
                flag = bb.emit(op.reshape(g.tensor(made[0]), ()))
                again = [g.tensor(v) for v in made[1 : 1 + len(states)]]
                bb.emit_func_output(bb.emit(relax.Call(callee, (following, trips, flag, *again, *grown, *captured))))
            with g.sequence() as orelse:
                bb.emit_func_output(bb.emit(relax.Tuple(tuple(carried))))
            bb.emit_func_output(bb.emit(relax.If(test, then[0], orelse[0])))
        return callee, result


Step = Callable[[relax.Expr, Sequence[relax.Expr], dict[str, relax.Expr]], list[relax.Expr]]


class Steps(Loop):
    """A loop whose body is made by Python code: `step(turn, states, captured)` gives the new states and an output."""

    def __init__(
        self, g: Graph, n: Node, states: Sequence[relax.Expr], captured: dict[str, relax.Expr], step: Step
    ) -> None:
        self.g, self.n, self.step = g, n, step
        self.first = [g.bb.emit(s) for s in states]
        self.scans = 1
        self.known = {}
        self.captured = captured
        self.given = []

    def _declared(self) -> Sequence[Any]:
        return (None,)

    def _body(
        self, turn: relax.Expr, going: relax.Expr, carried: Sequence[Value], captured: Sequence[Value]
    ) -> list[Any]:
        states = [self.g.tensor(v) for v in carried]
        values = {name: self.g.tensor(v) for name, v in zip(self.captured, captured)}
        return [going, *self.step(turn, states, values)]


def _loose(value: relax.Var, k: int, varying: Varying) -> TensorStructInfo:
    """What is known about a value after the loop: nothing of a shape that changes."""
    info = value.struct_info
    assert isinstance(info, TensorStructInfo) and info.dims is not None
    changes = any((k, a) in varying for a in range(len(info.dims)))
    return tensor_info(None, info.dtype, len(info.dims)) if changes else info


@contextmanager
def _looking(g: Graph) -> Iterator[None]:
    """A look into a function that is not kept."""
    try:
        with g.sealed():
            yield
    except _Dropped:
        pass


def _free_names(graph: Any) -> list[str]:
    """The names that a graph reads from around it."""
    own = {v.name for v in (*graph.input, *graph.initializer)}
    found: dict[str, None] = {}
    for node in graph.node:
        found.update((name, None) for name in node.input if name and name not in own)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found.update((name, None) for name in _free_names(attribute.g) if name not in own)
        own.update(node.output)
    found.update((v.name, None) for v in graph.output if v.name not in own)
    return list(found)
