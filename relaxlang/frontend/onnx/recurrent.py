"""Converters of recurrent layers: LSTM, GRU and RNN, unrolled over the sequence, whose length must be known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaxlang.frontend.onnx.graph import Graph
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.values import Result, Value
from relaxlang.ir import relax
from relaxlang.ops import python_api as op

MAX_STEPS = 512
"""The longest sequence that is unrolled."""

Activation = Callable[[relax.Expr], relax.Expr]


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
        if not isinstance(steps, int) or steps > MAX_STEPS:
            n.unsupported(f"over a sequence whose length is not known, or more than {MAX_STEPS}")
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

    def step(self, whole: relax.Expr, t: int) -> relax.Expr:
        """Step t of a sequence."""
        made: relax.Expr = self.g.bb.emit(op.squeeze(op.strided_slice(whole, [0], [t], [t + 1]), [0]))
        return made

    def until_end(self, t: int, new: relax.Expr, old: relax.Expr | None) -> relax.Expr:
        """`new` in the sequences that are longer than t, `old` (None: zeros) in those that have ended."""
        if self.lengths is None:
            return new
        going = op.greater(self.lengths, self.g.like(t, self.lengths))
        return self.g.bb.emit(op.where(going, new, self.g.like(0, new) if old is None else old))

    def results(self, outputs: list[list[relax.Expr]], *states: list[relax.Expr]) -> Result:
        """Y (steps, directions, batch, hidden) and the last states (directions, batch, hidden)."""
        steps = [op.stack(tuple(outputs[d][t] for d in range(self.directions)), axis=0) for t in range(self.steps)]
        y: relax.Expr = self.g.bb.emit(op.stack(tuple(self.g.bb.emit(s) for s in steps), axis=0))
        last: list[relax.Expr] = [self.g.bb.emit(op.stack(tuple(s), axis=0)) for s in states]
        if self.batch_first:
            y = op.permute_dims(y, [2, 0, 1, 3])
            last = [op.permute_dims(s, [1, 0, 2]) for s in last]
        return (y, *last)

    def order(self, d: int) -> range:
        """The steps in the order in which direction d takes them."""
        return range(self.steps - 1, -1, -1) if self.backwards(d) else range(self.steps)


def rnn(g: Graph, n: Node) -> Result:
    """RNN: h = f(x W^T + h R^T + biases)."""
    layer = Layer(g, n, 1, ("Tanh",))
    outputs, last = [], []
    for d in range(layer.directions):
        (f,), (wb, rb) = layer.functions(d), layer.biases(d)
        whole = layer.inputs(d, None if wb is None else op.add(wb, rb))
        back = g.bb.emit(op.permute_dims(layer.part(n.input(2), d), [1, 0]))
        h, found = layer.state(5, d), [layer.x] * layer.steps
        for t in layer.order(d):
            new = g.bb.emit(f(layer.limit(op.add(layer.step(whole, t), op.matmul(h, back)))))
            h, found[t] = layer.until_end(t, new, h), layer.until_end(t, new, None)
        outputs.append(found)
        last.append(h)
    return layer.results(outputs, last)


def gru(g: Graph, n: Node) -> Result:
    """GRU: gates z, r, h; `linear_before_reset` applies the reset after the product."""
    layer = Layer(g, n, 3, ("Sigmoid", "Tanh"))
    late = n.flag("linear_before_reset")
    outputs, last = [], []
    for d in range(layer.directions):
        (f, tanh), (wb, rb) = layer.functions(d), layer.biases(d)
        whole = layer.inputs(d, wb)
        back = g.bb.emit(op.permute_dims(layer.part(n.input(2), d), [1, 0]))
        gates_back, last_back = layer_gates(g, layer, back)
        h, found = layer.state(5, d), [layer.x] * layer.steps
        for t in layer.order(d):
            at = layer.step(whole, t)
            both = g.bb.emit(_plus(op.matmul(h, gates_back), None if rb is None else op.strided_slice(
                rb, [0], [0], [2 * layer.hidden])))  # fmt: skip
            z, r = (g.bb.emit(f(layer.limit(op.add(layer.gate(at, k), layer.gate(both, k))))) for k in (0, 1))
            bias = None if rb is None else layer.gate(rb, 2)
            inner = op.multiply(r, _plus(op.matmul(h, last_back), bias)) if late else _plus(
                op.matmul(op.multiply(r, h), last_back), bias)  # fmt: skip
            new = g.bb.emit(tanh(layer.limit(op.add(layer.gate(at, 2), inner))))
            new = g.bb.emit(op.add(op.multiply(op.subtract(g.like(1, z), z), new), op.multiply(z, h)))
            h, found[t] = layer.until_end(t, new, h), layer.until_end(t, new, None)
        outputs.append(found)
        last.append(h)
    return layer.results(outputs, last)


def layer_gates(g: Graph, layer: Layer, back: relax.Expr) -> tuple[relax.Expr, relax.Expr]:
    """The weights of the state for the first two gates of a GRU, and for the last."""
    first: relax.Expr = g.bb.emit(op.strided_slice(back, [1], [0], [2 * layer.hidden]))
    return first, g.bb.emit(layer.gate(back, 2))


def _plus(x: relax.Expr, bias: relax.Expr | None) -> relax.Expr:
    made: relax.Expr = x if bias is None else op.add(x, bias)
    return made


def lstm(g: Graph, n: Node) -> Result:
    """LSTM: gates i, o, f, c, with peepholes when they are given."""
    if n.flag("input_forget"):
        n.unsupported("with coupled input and forget gates")
    layer = Layer(g, n, 4, ("Sigmoid", "Tanh", "Tanh"))
    outputs, last, cells = [], [], []
    for d in range(layer.directions):
        (f, on_cell, on_hidden), (wb, rb) = layer.functions(d), layer.biases(d)
        whole = layer.inputs(d, None if wb is None else op.add(wb, rb))
        back = g.bb.emit(op.permute_dims(layer.part(n.input(2), d), [1, 0]))
        peep = None if n.input(7) is None else layer.part(n.input(7), d)
        h, c, found = layer.state(5, d), layer.state(6, d), [layer.x] * layer.steps

        def gate(k: int, function: Activation, at: relax.Expr, cell: relax.Expr | None,
                 layer: Layer = layer, peep: relax.Expr | None = peep) -> relax.Expr:  # fmt: skip
            value = layer.gate(at, k)
            if peep is not None and cell is not None:
                value = op.add(value, op.multiply(layer.gate(peep, k), cell))
            made: relax.Expr = g.bb.emit(function(layer.limit(value)))
            return made

        for t in layer.order(d):
            at = g.bb.emit(op.add(layer.step(whole, t), op.matmul(h, back)))
            i, forget, new = gate(0, f, at, c), gate(2, f, at, c), gate(3, on_cell, at, None)
            cell = g.bb.emit(op.add(op.multiply(forget, c), op.multiply(i, new)))
            new = g.bb.emit(op.multiply(gate(1, f, at, cell), on_hidden(cell)))
            h, c, found[t] = (layer.until_end(t, v, old) for v, old in ((new, h), (cell, c), (new, None)))
        outputs.append(found)
        last.append(h)
        cells.append(c)
    return layer.results(outputs, last, cells)
