"""The workspace: which bytes of it each storage takes, so that what is alive at one time does not overlap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from relaxlang.base.dtype import dtype
from relaxlang.base.record import record
from relaxlang.runtime.graph import Graph, GraphTensor


@record
class Block:
    """Bytes that are wanted from node `first` to node `last`, both included. `name` is for people."""

    name: str
    size: int
    first: int
    last: int


@record
class Placed:
    """A block and where it lies."""

    block: Block
    offset: int


@record
class Workspace:
    """Where the storages and the kernels' own intermediates lie: `storages` by storage, `pools` by node."""

    size: int
    storages: Mapping[int, int]
    pools: Mapping[int, int]
    blocks: tuple[Placed, ...]

    @property
    def alive(self) -> tuple[int, tuple[Placed, ...]]:
        """The node at which most bytes are alive, and the blocks that are."""
        nodes = range(max((p.block.last for p in self.blocks), default=-1) + 1)
        at = max(nodes, key=lambda n: sum(p.block.size for p in _during(self.blocks, n)), default=0)
        return at, tuple(_during(self.blocks, at))


def _during(blocks: Iterable[Placed], node: int) -> list[Placed]:
    return [p for p in blocks if p.block.first <= node <= p.block.last]


def nbytes(tensor: GraphTensor) -> int:
    """The bytes that a tensor takes."""
    return math.prod(tensor.shape) * dtype(tensor.dtype).itemsize


def storage_of_outputs(graph: Graph) -> dict[int, int]:
    """The storages that are nothing but one output: the caller's memory stands for them. Storage to output."""
    given = {graph.tensors[t].storage for t in (*graph.inputs, *(t for _, t in graph.parameters))}
    found: dict[int, int] = {}
    for k, t in enumerate(graph.outputs):
        tensor = graph.tensors[t]
        alone = [nbytes(u) == nbytes(tensor) for u in graph.tensors if u.storage == tensor.storage]
        if tensor.storage not in given and tensor.storage not in found and tensor.offset == 0 and all(alone):
            found[tensor.storage] = k
    return found


def plan_workspace(graph: Graph, pools: Mapping[int, int], alignment: int) -> Workspace:
    """Place every storage that no argument, parameter or output stands for; `pools` are the bytes that the kernel of a
    node wants while it runs. The largest are placed first, each at the lowest offset that is free while it lives."""
    direct, wanted = storage_of_outputs(graph), list[tuple[Block, int, bool]]()
    for storage in graph.workspace:
        if storage not in direct:
            users = [k for k, node in enumerate(graph.nodes) if storage in _touched(graph, node.args)]
            if any(graph.tensors[t].storage == storage for t in graph.outputs):
                users.append(len(graph.nodes))
            if users:
                wanted.append(
                    (Block(_name(graph, storage), graph.storage[storage], min(users), max(users)), storage, False)
                )
    for node, size in pools.items():
        wanted.append((Block(f"{graph.nodes[node].function} (intermediates)", size, node, node), node, True))
    placed: list[Placed] = []
    storages, inner = dict[int, int](), dict[int, int]()
    for block, key, is_pool in sorted(wanted, key=lambda w: (-w[0].size, w[0].first)):
        offset = _lowest(block, placed, max(alignment, 1))
        placed.append(Placed(block, offset))
        (inner if is_pool else storages)[key] = offset
    size = max((p.offset + p.block.size for p in placed), default=0)
    return Workspace(size, storages, inner, tuple(placed))


def _touched(graph: Graph, args: Iterable[object]) -> set[int]:
    return {graph.tensors[a].storage for a in args if isinstance(a, int)}


def _name(graph: Graph, storage: int) -> str:
    return ", ".join(dict.fromkeys(t.name for t in graph.tensors if t.storage == storage)) or f"storage {storage}"


def _lowest(block: Block, placed: Iterable[Placed], alignment: int) -> int:
    """The lowest offset at which a block overlaps with nothing that is alive while it is."""
    offset = 0
    others = [p for p in placed if p.block.first <= block.last and block.first <= p.block.last]
    for other in sorted(others, key=lambda p: p.offset):
        if offset + block.size <= other.offset:
            break
        offset = max(offset, -(-(other.offset + other.block.size) // alignment) * alignment)
    return offset
