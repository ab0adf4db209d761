"""Converters of control flow and of sequences. What is decided while importing leaves no trace in the module."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.frontend.onnx.graph import Graph, item
from relaxlang.frontend.onnx.loops import Loop
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.values import Known, Result, Sequence, Value
from relaxlang.ir import relax
from relaxlang.ops import python_api as op

MAX_UNROLLED = 2048
"""Nodes that an unrolled loop may come to."""


def if_(g: Graph, n: Node) -> Result:
    """If: one branch when the condition is known, else both."""
    condition = n.input(0)
    if isinstance(condition, Known) and not condition.is_symbolic:
        inner = g.inner()
        return tuple(_run(inner, n.graph("then_branch" if condition.only else "else_branch"), []))
    flag = g.tensor(condition)
    if g.rank(flag):
        flag = op.reshape(flag, ())
    flag = g.bb.emit(flag)
    branches = [_branch(g, n.graph(name)) for name in ("then_branch", "else_branch")]
    made = g.bb.emit(relax.If(flag, branches[0], branches[1]))
    count = len(n.outputs)
    return made if count == 1 else tuple(item(made, k) for k in range(count))


def _branch(g: Graph, graph: Any) -> relax.SeqExpr:
    with g.sequence() as finished:
        inner = g.inner()
        values = [g.bb.emit(inner.tensor(v)) for v in _run(inner, graph, [])]
        g.bb.emit_func_output(values[0] if len(values) == 1 else tuple(values))
    return finished[0]


def _run(inner: Graph, graph: Any, arguments: list[Value]) -> list[Value]:
    """The outputs of a graph inside of another, of these arguments."""
    inner.initialize(graph.initializer)
    for value, given in zip(graph.input, arguments):
        inner.values[value.name] = given
    inner.run(graph.node)
    return inner.outputs_of(graph)


def _check_body(n: Node, body: Any, inputs: int, outputs: int) -> None:
    """RLX8003 when the body of a loop does not take as much as it is given, or gives less than the next turn takes."""
    if len(body.input) != inputs or len(body.output) < outputs:
        fail("RLX8003", f"the body of `{n.op}` takes {len(body.input)} values and gives {len(body.output)}; given are "
             f"{inputs}, and {outputs} are taken on")  # fmt: skip


def _truth(value: Value) -> bool | None:
    """A condition that is known while importing."""
    if value is None:
        return True
    if isinstance(value, Known) and not value.is_symbolic:
        return bool(value.only)
    return None


def loop(g: Graph, n: Node) -> Result:
    """Loop: unrolled when the number of turns is known and small, otherwise a function that calls itself."""
    body = n.graph("body")
    _check_body(n, body, len(n.inputs), max(len(n.inputs) - 1, 1))
    trips = n.input(0)
    known = trips is None or (isinstance(trips, Known) and not trips.is_symbolic)
    most = int(g.ints(trips, "the number of turns")[0]) if known and trips is not None else None
    carried: list[Value] = list(n.inputs[2:])
    if not known or not _unrolls(body, most, n.input(1)):
        return Loop(g, n, body, carried).run(trips, n.input(1))
    scanned: list[list[Value]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    going, turn = _truth(n.input(1)), 0
    while going and (most is None or turn < most):
        inner = g.inner()
        index = Known(np.array(turn, dtype=np.int64))
        results = _run(inner, body, [index, Known(np.array(True)), *carried])
        going = _truth(results[0])
        carried = results[1 : 1 + len(carried)]
        for column, value in zip(scanned, results[1 + len(carried) :]):
            column.append(value)
        turn += 1
    if going is None:
        n.unsupported("whose condition is known only at run time")
    outputs = [body.output[1 + len(carried) + k] for k in range(len(scanned))]
    return (*carried, *(_stacked(g, n, column, 0, out) for column, out in zip(scanned, outputs)))


def _unrolls(body: Any, most: int | None, going: Value) -> bool:
    """Whether a loop has few turns, and ends only when they are over: its body passes the condition on."""
    if most is None or most * max(len(body.node), 1) > MAX_UNROLLED or _truth(going) is None:
        return False
    flag = body.output[0].name
    passed = {body.input[1].name}
    for node in body.node:
        if node.op_type in ("Identity", "Constant") and (not node.input or node.input[0] in passed):
            passed.update(node.output)
        if node.op_type == "Cast" and node.input[0] in passed:
            passed.update(node.output)
    return flag in passed or flag in {t.name for t in body.initializer}


def _stacked(g: Graph, n: Node, values: list[Value], axis: int, declared: Any) -> Value:
    """What a loop gave in each turn, along a new axis."""
    if values:
        return op.stack(tuple(g.tensor(v) for v in values), axis=axis)
    dims = [d.dim_value for d in declared.type.tensor_type.shape.dim]
    from relaxlang.frontend.onnx.types import element_type

    of = element_type(declared.type.tensor_type.elem_type, "the output of a loop")
    return Known(np.zeros((0, *dims), dtype=of.numpy))


def scan(g: Graph, n: Node) -> Result:
    """Scan: unrolled over axes whose length is known."""
    if n.version < 9:
        n.unsupported("before version 9")
    body, count = n.graph("body"), n.int("num_scan_inputs")
    if not 0 < count <= len(n.inputs):
        fail("RLX8003", f"{count} of {len(n.inputs)} inputs cannot be scanned")
    _check_body(n, body, len(n.inputs), len(n.inputs) - count)
    states: list[Value] = list(n.inputs[: len(n.inputs) - count])
    inputs = [g.tensor(v) for v in n.inputs[len(n.inputs) - count :]]
    axes = [g.axis(n, a, g.rank(x)) for a, x in zip(_per_item(n, "scan_input_axes", count), inputs)]
    backwards = _per_item(n, "scan_input_directions", count)
    length = g.sizes(inputs[0])[axes[0]]
    if not isinstance(length, int):
        n.unsupported("over an axis whose length is known only at run time")
    if length * max(len(body.node), 1) > MAX_UNROLLED:
        n.unsupported(f"of more than {MAX_UNROLLED} nodes when it is unrolled")
    inputs = [g.of_length(x, a, length) for x, a in zip(inputs, axes)]
    made = len(body.output) - len(states)
    columns: list[list[Value]] = [[] for _ in range(made)]
    for turn in range(length):
        slices = [_at(g, x, a, length - 1 - turn if back else turn) for x, a, back in zip(inputs, axes, backwards)]
        results = _run(g.inner(), body, [*states, *slices])
        states = results[: len(states)]
        for column, value in zip(columns, results[len(states) :]):
            column.append(value)
    out_axes, directions = _per_item(n, "scan_output_axes", made), _per_item(n, "scan_output_directions", made)
    outputs: list[Value] = []
    for k, column in enumerate(columns):
        rank = g.rank(column[0]) + 1 if column else 1
        declared = body.output[len(states) + k]
        outputs.append(
            _stacked(g, n, column[::-1] if directions[k] else column, g.axis(n, out_axes[k], rank), declared)
        )
    return (*states, *outputs)


def _per_item(n: Node, name: str, count: int) -> tuple[int, ...]:
    """An attribute with a number for each of `count` things, 0 unless it is given."""
    found = n.ints(name, [0] * count)
    if len(found) != count:
        fail("RLX8003", f"the attribute `{name}` has {len(found)} numbers for {count}")
    return found


def _at(g: Graph, x: relax.Expr, axis: int, index: int) -> Value:
    """The slice of a tensor at a place along an axis, which is removed."""
    part = op.strided_slice(x, [axis], [index], [index + 1], assume_inbound=True)
    made: Value = g.bb.emit(op.squeeze(part, [axis]))
    return made


# --- sequences and optional values ------------------------------------------------------------------------------------
def _sequence(n: Node, k: int = 0) -> tuple[Value, ...]:
    value = n.input(k)
    if not isinstance(value, Sequence):
        n.unsupported("of a sequence that is known only at run time")
    return value.items


def _position(g: Graph, n: Node, k: int, length: int) -> int:
    at = g.ints(n.input(k), "the position")[0]
    if not -length <= at <= length:
        n.unsupported(f"at the position {at} of {length}")
    return at + length if at < 0 else at


def sequence_construct(g: Graph, n: Node) -> Value:
    """SequenceConstruct."""
    return Sequence(n.inputs)


def sequence_empty(g: Graph, n: Node) -> Value:
    """SequenceEmpty."""
    return Sequence(())


def sequence_at(g: Graph, n: Node) -> Value:
    """SequenceAt."""
    items = _sequence(n)
    at = _position(g, n, 1, len(items))
    if at >= len(items):
        n.unsupported(f"at the position {at} of {len(items)}")
    return items[at]


def sequence_insert(g: Graph, n: Node) -> Value:
    """SequenceInsert: at the end unless a position is given."""
    items = _sequence(n)
    at = len(items) if n.input(2) is None else _position(g, n, 2, len(items))
    return Sequence((*items[:at], n.input(1), *items[at:]))


def sequence_erase(g: Graph, n: Node) -> Value:
    """SequenceErase: the last unless a position is given."""
    items = _sequence(n)
    at = len(items) - 1 if n.input(1) is None else _position(g, n, 1, len(items))
    return Sequence((*items[:at], *items[at + 1 :]))


def sequence_length(g: Graph, n: Node) -> Value:
    """SequenceLength."""
    return Known(np.array(len(_sequence(n)), dtype=np.int64))


def split_to_sequence(g: Graph, n: Node) -> Value:
    """SplitToSequence: parts of one length or of given lengths, or single slices."""
    x = g.tensor(n.input(0))
    dims = g.sizes(x)
    axis = g.axis(n, n.int("axis", 0), len(dims))
    whole = dims[axis]
    if not isinstance(whole, int):
        n.unsupported("of a dimension that is not known")
    if n.input(1) is None:
        lengths = [1] * whole
    else:
        given = g.ints(n.input(1), "the lengths")
        step = max(given[0], 1) if given else 1
        scalar = g.rank(n.input(1)) == 0
        lengths = [min(step, whole - k) for k in range(0, whole, step)] if scalar else list(given)
    parts: list[Value] = []
    at = 0
    for length in lengths:
        part = op.strided_slice(x, [axis], [at], [at + length])
        keep = n.input(1) is not None or n.flag("keepdims", True)
        parts.append(g.bb.emit(part if keep else op.squeeze(part, [axis])))
        at += length
    return Sequence(tuple(parts))


def concat_from_sequence(g: Graph, n: Node) -> Value:
    """ConcatFromSequence: along an axis, or a new one."""
    items = tuple(g.tensor(v) for v in _sequence(n))
    if not items:
        n.unsupported("of nothing")
    axis, new = n.int("axis"), n.flag("new_axis")
    axis = g.axis(n, axis, g.rank(items[0]) + new)
    return op.stack(items, axis=axis) if new else op.concat(items, axis=axis)


def sequence_map(g: Graph, n: Node) -> Result:
    """SequenceMap: a graph applied to each item, with tensors that are common to all."""
    body, first = n.graph("body"), _sequence(n)
    columns: list[list[Value]] = [[] for _ in body.output]
    for k in range(len(first)):
        arguments = [v.items[k] if isinstance(v, Sequence) else v for v in n.inputs]
        for column, value in zip(columns, _run(g.inner(), body, arguments)):
            column.append(value)
    return tuple(Sequence(tuple(c)) for c in columns)


def optional(g: Graph, n: Node) -> Value:
    """Optional: the value itself; without an input, none."""
    return n.input(0)


def optional_has_element(g: Graph, n: Node) -> Value:
    """OptionalHasElement: known while importing."""
    return Known(np.array(n.input(0) is not None))


def optional_get_element(g: Graph, n: Node) -> Value:
    """OptionalGetElement: the value itself."""
    if n.input(0) is None:
        n.unsupported("of nothing")
    return n.input(0)
