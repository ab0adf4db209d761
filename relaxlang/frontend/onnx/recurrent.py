"""Converters of recurrent layers: LSTM, GRU and RNN.

A short sequence of known length is unrolled; any other is a function that calls itself for each step (see `loops`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaxlang.frontend.onnx.graph import Graph
from relaxlang.frontend.onnx.loops import Steps
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.values import Known, Result, Value
from relaxlang.ir import relax
from relaxlang.ir.prim import INT64
from relaxlang.ops import python_api as op

MAX_STEPS = 64
"""The longest sequence that is unrolled."""

Activation = Callable[[relax.Expr], relax.Expr]
Weights = dict[str, relax.Expr]
Cell = Callable[[relax.Expr, Sequence[relax.Expr], Weights], list[relax.Expr]]
"""One step: from what the input gives, the states and the weights to the new states; the first is the output."""


def _activation(g: Graph, n: Node, name: str, alpha: float | None, beta: float | None) -> Activation:
    """The function of an activation's name."""
    plain: dict[str, Any] = {"relu": op.nn.relu, "tanh": op.tanh, "sigmoid": op.sigmoid}
    key = name.lower()
    if key in plain:
        found: Activation = plain[key]
        return found
    if key == "affine":
        a, b = (1.0 if alpha is None else alpha), (0.0 if beta is None else beta)
        return lambda x: op.add(op.multiply(x, g.like(a, x)), g.like(b, x))
    if key == "leakyrelu":
        return lambda x: op.nn.leakyrelu(x, 0.01 if alpha is None else alpha)
    if key == "hardsigmoid":
        a, b = (0.2 if alpha is None else alpha), (0.5 if beta is None else beta)
        return lambda x: op.clip(op.add(op.multiply(x, g.like(a, x)), g.like(b, x)), 0.0, 1.0)
    n.unsupported(f"with the activation `{name}`")


Direction = tuple[relax.Expr, list[relax.Expr]]
"""What one direction gives: the outputs of all steps, and the last states."""


class Layer:
    """What the three layers have in common: inputs, weights of one direction at a time, activations."""

    def __init__(self, g: Graph, n: Node, gates: int, default: tuple[str, ...]) -> None:
        self.g, self.n, self.gates = g, n, gates
        self.hidden = n.int("hidden_size")
        self.batch_first = n.flag("layout")
        self.directions = {"forward": 1, "reverse": 1, "bidirectional": 2}.get(n.string("direction", "forward"), 0)
        if not self.directions:
            n.unsupported(f"in the direction `{n.string('direction')}`")
        x = g.tensor(n.input(0))
        g.sizes_of_rank(x, 3)
        self.x = g.bb.emit(op.permute_dims(x, [1, 0, 2])) if self.batch_first else x
        steps, self.batch, _ = g.sizes_of_rank(self.x, 3)
        self.steps = steps
        self.lengths: relax.Expr | None = None
        if n.input(4) is not None:
            self.lengths = g.bb.emit(op.expand_dims(g.tensor(n.input(4)), [1]))
        names = n.strings("activations", default * self.directions)
        alphas, betas = list(n.floats("activation_alpha", ())), list(n.floats("activation_beta", ()))
        self.activations = [
            _activation(g, n, name, alphas[k] if k < len(alphas) else None, betas[k] if k < len(betas) else None)
            for k, name in enumerate(names)
        ]
        self.per_direction = len(default)
        clip = n.float("clip", 0.0)
        self.limit: Activation = (lambda v: op.clip(v, -clip, clip)) if clip else (lambda v: v)

    def backwards(self, d: int) -> bool:
        """Whether direction d reads the sequence from its end."""
        return d == 1 or self.n.string("direction", "forward") == "reverse"

    def functions(self, d: int) -> list[Activation]:
        """The activations of direction d."""
        return self.activations[d * self.per_direction : (d + 1) * self.per_direction]

    def part(self, value: Value, d: int) -> relax.Expr:
        """The weights of direction d."""
        tensor = self.g.tensor(value)
        made: relax.Expr = self.g.bb.emit(op.squeeze(op.strided_slice(tensor, [0], [d], [d + 1]), [0]))
        return made

    def gate(self, value: relax.Expr, k: int, axis: int = -1) -> relax.Expr:
        """The part of gate k of what all gates have in one."""
        axis = axis % self.g.rank(value)
        made: relax.Expr = op.strided_slice(value, [axis], [k * self.hidden], [(k + 1) * self.hidden])
        return made

    def state(self, k: int, d: int) -> relax.Expr:
        """The first state that input k gives direction d; zeros when it is left out."""
        if self.n.input(k) is None:
            made: relax.Expr = op.zeros((self.batch, self.hidden), self.g.dtype(self.x))
            return self.g.bb.emit(made)
        value = self.g.tensor(self.n.input(k))
        if self.batch_first:
            value = self.g.bb.emit(op.permute_dims(value, [1, 0, 2]))
        return self.part(value, d)

    def biases(self, d: int) -> tuple[relax.Expr | None, relax.Expr | None]:
        """The biases of the input and of the state in direction d."""
        if self.n.input(3) is None:
            return None, None
        both, width = self.part(self.n.input(3), d), self.gates * self.hidden
        return (self.g.bb.emit(op.strided_slice(both, [0], [0], [width])),
                self.g.bb.emit(op.strided_slice(both, [0], [width], [2 * width])))  # fmt: skip

    def inputs(self, d: int, bias: relax.Expr | None) -> relax.Expr:
        """x W^T + bias of all steps at once."""
        weight = self.g.bb.emit(op.permute_dims(self.part(self.n.input(1), d), [1, 0]))
        made = op.matmul(self.x, weight)
        return self.g.bb.emit(made if bias is None else op.add(made, bias))

    def run(self, d: int, whole: relax.Expr, states: Sequence[relax.Expr], weights: Weights, cell: Cell) -> Direction:
        """One direction: `whole` is what the input gives each step."""
        if self.lengths is not None:
            weights = {**weights, "lengths": self.lengths}
        if not isinstance(self.steps, int) or self.steps > MAX_STEPS:
            return self._looped(d, whole, states, weights, cell)
        found: dict[int, relax.Expr] = {}
        for t in range(self.steps - 1, -1, -1) if self.backwards(d) else range(self.steps):
            at = self.g.bb.emit(op.squeeze(op.strided_slice(whole, [0], [t], [t + 1]), [0]))
            states, found[t] = self._step(relax.Constant(np.array(t, dtype=np.int64)), at, states, weights, cell)
        y = self.g.bb.emit(op.stack(tuple(found[t] for t in range(self.steps)), axis=0))
        return y, list(states)

    def _step(
        self, t: relax.Expr, at: relax.Expr, states: Sequence[relax.Expr], weights: Weights, cell: Cell
    ) -> tuple[list[relax.Expr], relax.Expr]:
        """The states after step t, and its output; sequences that have ended keep their states and give zeros."""
        new = [self.g.bb.emit(v) for v in cell(at, states, weights)]
        lengths = weights.get("lengths")
        if lengths is None:
            return list(new), new[0]
        going = self.g.bb.emit(op.greater(op.astype(lengths, "int64"), t))
        kept: list[relax.Expr] = [self.g.bb.emit(op.where(going, v, old)) for v, old in zip(new, states)]
        return kept, self.g.bb.emit(op.where(going, new[0], self.g.like(0, new[0])))

    def _looped(
        self, d: int, whole: relax.Expr, states: Sequence[relax.Expr], weights: Weights, cell: Cell
    ) -> Direction:
        g, back = self.g, self.backwards(d)

        def step(turn: relax.Expr, carried: Sequence[relax.Expr], captured: Weights) -> list[relax.Expr]:
            t = turn
            if back:
                size = op.reshape(op.shape_to_tensor(relax.ShapeExpr((g.shape(captured["whole"])[0],))), ())
                one = relax.Constant(np.array(1, dtype=np.int64))
                t = g.bb.emit(op.subtract(op.subtract(size, one), turn))
            after, out = self._step(t, g.bb.emit(op.take(captured["whole"], t, axis=0)), carried, captured, cell)
            return [*after, out]

        steps = np.empty((), dtype=object)
        steps[()] = self.steps
        made = Steps(g, self.n, states, {"whole": whole, **weights}, step).run(Known.of(steps, INT64), None)
        *last, y = (g.tensor(v) for v in made)
        return (g.bb.emit(op.flip(y, 0)) if back else y), last

    def results(self, directions: Sequence[Direction]) -> Result:
        """Y (steps, directions, batch, hidden) and the last states (directions, batch, hidden)."""
        y: relax.Expr = self.g.bb.emit(op.stack(tuple(y for y, _ in directions), axis=1))
        last: list[relax.Expr] = [
            self.g.bb.emit(op.stack(s, axis=0)) for s in zip(*(states for _, states in directions))
        ]
        if self.batch_first:
            y = op.permute_dims(y, [2, 0, 1, 3])
            last = [op.permute_dims(s, [1, 0, 2]) for s in last]
        return (y, *last)


def rnn(g: Graph, n: Node) -> Result:
    """RNN: h = f(x W^T + h R^T + biases)."""
    layer = Layer(g, n, 1, ("Tanh",))
    made = []
    for d in range(layer.directions):
        (f,), (wb, rb) = layer.functions(d), layer.biases(d)
        whole = layer.inputs(d, None if wb is None else op.add(wb, rb))
        back = g.bb.emit(op.permute_dims(layer.part(n.input(2), d), [1, 0]))

        def cell(at: relax.Expr, states: Sequence[relax.Expr], w: Weights, f: Activation = f) -> list[relax.Expr]:
            return [f(layer.limit(op.add(at, op.matmul(states[0], w["back"]))))]

        made.append(layer.run(d, whole, [layer.state(5, d)], {"back": back}, cell))
    return layer.results(made)


def gru(g: Graph, n: Node) -> Result:
    """GRU: gates z, r, h; `linear_before_reset` applies the reset after the product."""
    layer = Layer(g, n, 3, ("Sigmoid", "Tanh"))
    made = []
    for d in range(layer.directions):
        wb, rb = layer.biases(d)
        whole = layer.inputs(d, wb)
        back = g.bb.emit(op.permute_dims(layer.part(n.input(2), d), [1, 0]))
        weights: Weights = {
            "gates": g.bb.emit(op.strided_slice(back, [1], [0], [2 * layer.hidden])),
            "new": g.bb.emit(layer.gate(back, 2)),
        }
        if rb is not None:
            weights["gates_bias"] = g.bb.emit(op.strided_slice(rb, [0], [0], [2 * layer.hidden]))
            weights["new_bias"] = g.bb.emit(layer.gate(rb, 2))
        made.append(layer.run(d, whole, [layer.state(5, d)], weights, _gru_cell(g, layer, d)))
    return layer.results(made)


def _gru_cell(g: Graph, layer: Layer, d: int) -> Cell:
    f, tanh = layer.functions(d)
    late = layer.n.flag("linear_before_reset")

    def cell(at: relax.Expr, states: Sequence[relax.Expr], w: Weights) -> list[relax.Expr]:
        h = states[0]
        both = g.bb.emit(_plus(op.matmul(h, w["gates"]), w.get("gates_bias")))
        z, r = (g.bb.emit(f(layer.limit(op.add(layer.gate(at, k), layer.gate(both, k))))) for k in (0, 1))
        bias = w.get("new_bias")
        if late:
            inner: relax.Expr = op.multiply(r, _plus(op.matmul(h, w["new"]), bias))
        else:
            inner = _plus(op.matmul(op.multiply(r, h), w["new"]), bias)
        new = g.bb.emit(tanh(layer.limit(op.add(layer.gate(at, 2), inner))))
        return [op.add(op.multiply(op.subtract(g.like(1, z), z), new), op.multiply(z, h))]

    return cell


def _plus(x: relax.Expr, bias: relax.Expr | None) -> relax.Expr:
    return x if bias is None else op.add(x, bias)


def lstm(g: Graph, n: Node) -> Result:
    """LSTM: gates i, o, f, c, with peepholes when they are given."""
    if n.flag("input_forget"):
        n.unsupported("with coupled input and forget gates")
    layer = Layer(g, n, 4, ("Sigmoid", "Tanh", "Tanh"))
    made = []
    for d in range(layer.directions):
        wb, rb = layer.biases(d)
        whole = layer.inputs(d, None if wb is None else op.add(wb, rb))
        weights: Weights = {"back": g.bb.emit(op.permute_dims(layer.part(n.input(2), d), [1, 0]))}
        if n.input(7) is not None:
            weights["peep"] = layer.part(n.input(7), d)
        states = [layer.state(5, d), layer.state(6, d)]
        made.append(layer.run(d, whole, states, weights, _lstm_cell(g, layer, d)))
    return layer.results(made)


def _lstm_cell(g: Graph, layer: Layer, d: int) -> Cell:
    f, on_cell, on_hidden = layer.functions(d)

    def cell(at: relax.Expr, states: Sequence[relax.Expr], w: Weights) -> list[relax.Expr]:
        h, c = states
        whole = g.bb.emit(op.add(at, op.matmul(h, w["back"])))

        def gate(k: int, function: Activation, looks_at: relax.Expr | None) -> relax.Var:
            value = layer.gate(whole, k)
            if looks_at is not None and "peep" in w:
                value = op.add(value, op.multiply(layer.gate(w["peep"], k), looks_at))
            return g.bb.emit(function(layer.limit(value)))

        i, forget, new = gate(0, f, c), gate(2, f, c), gate(3, on_cell, None)
        after = g.bb.emit(op.add(op.multiply(forget, c), op.multiply(i, new)))
        return [op.multiply(gate(1, f, after), on_hidden(after)), after]

    return cell
