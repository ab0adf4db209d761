"""Which kernels of a dataflow block to compute together, and why not others.

The algorithm is that of dominator-based fusion: a kernel joins the one that all its uses lead to (its immediate
post-dominator), when every kernel on the way may be computed along. So what is inside a group is used only inside.
Groups have at most one anchor (a reduction or a contraction); what may stand before and after it depends on its kind.
Reductions along the same rows, with elementwise kernels between them, are computed together too: a row at a time.
"""

from __future__ import annotations

from collections.abc import Set
from enum import Enum

from relaxlang.analysis.op_pattern import OpPattern, argument_patterns, op_pattern
from relaxlang.analysis.reshape_pattern import has_reshape_pattern
from relaxlang.analysis.rows import Rows, rows_of
from relaxlang.analysis.uses import Uses
from relaxlang.base.record import fresh, record
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import PrimStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ir.tir import PrimFunc
from relaxlang.syntax.struct_info import same_dim

MAX_DEPTH = 64
"""Kernels in one group, by default."""


class Rule(Enum):
    """Why two kernels are not computed together; `{a}` is the producer, `{b}` the consumer."""

    OPAQUE = "`{a}` is no kernel whose elements are known to be computed one by one"
    VIEW = "`{a}` only gives a tensor another shape: it becomes a view, which costs nothing"
    OPAQUE_CONSUMER = "what uses `{a}` is no kernel whose elements are known to be computed one by one"
    NEEDED = "`{a}` is needed outside its dataflow block, or by something other than a kernel"
    SCATTERED = "the uses of `{a}` do not come together in one kernel of the block"
    NOT_ELEMENTWISE = (
        "`{a}` is, or follows, a reduction or contraction: only what reads it elementwise, or in its rows, joins it"
    )
    CONTRACTION = "a contraction reads elements of `{a}` many times: they would be computed anew each time"
    TWO_ANCHORS = "the group of `{a}` has a reduction or contraction already, as has what it would join"
    TOO_LARGE = "the group would be larger than the limit (`max_depth`)"
    ON_THE_WAY = "a kernel on the way from `{a}` to where its uses come together can't be computed along"


@record(frozen=False)
class Node:
    """A binding of the block: a call of a kernel, or a field of a tuple.

    `rows` are the leading dimensions that the kernel goes through row by row; `users` the nodes that use it, each with
    how it reads it; `external`: something else uses it too."""

    index: int
    binding: relax.VarBinding
    kind: OpPattern
    is_view: bool = False
    rows: tuple[PrimExpr, ...] = ()
    users: list[tuple[int, OpPattern]] = fresh(factory=list)
    external: bool = False


class Kernels:
    """What fusion knows of the PrimFuncs of a module, each looked at once."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self._kinds: dict[str, OpPattern] = {}
        self._reads: dict[str, list[OpPattern]] = {}
        self._views: dict[str, bool] = {}
        self._rows: dict[str, Rows] = {}

    def kernel(self, call: relax.Expr) -> tuple[str, PrimFunc] | None:
        """The name and the PrimFunc of a `call_tir` whose arguments and results are known; else None."""
        if not isinstance(call, relax.Call) or call.op != relax.Op("call_tir"):
            return None
        callee, args = call.args[:2]
        func = self.mod.functions.get(callee.name) if isinstance(callee, relax.GlobalVar) else None
        if not isinstance(func, PrimFunc) or not isinstance(callee, relax.GlobalVar):
            return None
        if not isinstance(args, relax.Tuple) or (len(call.args) > 2 and not isinstance(call.args[2], relax.ShapeExpr)):
            return None
        infos = [a.struct_info for a in args.fields] + [call.sinfo_args[0]]
        return (callee.name, func) if all(_is_known(i) for i in infos) else None

    def kind(self, name: str, func: PrimFunc) -> OpPattern:
        """The pattern: the attribute, where there is one."""
        if name not in self._kinds:
            stated = func.attrs.get("op_pattern")
            found = op_pattern(func)
            # An attribute can make a kernel less fusible than its loops say, and not more.
            self._kinds[name] = found if stated is None else max(found, OpPattern(int(stated)))
        return self._kinds[name]

    def reads(self, name: str, func: PrimFunc) -> list[OpPattern]:
        """How each parameter is read; ELEMWISE for scalars and what is not read."""
        if name not in self._reads:
            found = argument_patterns(func)
            self._reads[name] = [found.get(p, OpPattern.ELEMWISE) for p in func.params]
        return self._reads[name]

    def is_view(self, name: str, func: PrimFunc) -> bool:
        """Whether a kernel only reshapes."""
        if name not in self._views:
            self._views[name] = has_reshape_pattern(func)
        return self._views[name]

    def rows(self, name: str, func: PrimFunc) -> Rows:
        """The rows that a kernel goes through."""
        if name not in self._rows:
            self._rows[name] = rows_of(func)
        return self._rows[name]


def _is_known(info: StructInfo | None) -> bool:
    if isinstance(info, TupleStructInfo):
        return all(_is_known(f) for f in info.fields)
    if isinstance(info, PrimStructInfo):
        return info.value is not None and info.dtype.is_integer
    return isinstance(info, TensorStructInfo) and info.dims is not None and info.dtype is not None


def call_info(call: relax.Call) -> StructInfo:
    """What a `call_tir` computes; of several results the first."""
    info = call.sinfo_args[0]
    return info.fields[0] if isinstance(info, TupleStructInfo) and info.fields else info


def _leading(info: StructInfo, count: int) -> tuple[PrimExpr, ...]:
    """The first dimensions of a tensor, in the caller's terms."""
    return (info.dims or ())[:count] if isinstance(info, TensorStructInfo) else ()


class Graph:
    """The nodes of a dataflow block in order, and for each its immediate post-dominator (`parent`, -1: none) with the
    least regular way in which something on the way reads it (`reads`).

    `written` are variables that calls in place write to: kernels that read them can't move, and count as opaque."""

    def __init__(self, block: relax.DataflowBlock, kernels: Kernels, written: Set[relax.Expr] = frozenset()) -> None:
        self.written = written
        self.nodes: list[Node] = []
        self.of_var: dict[relax.Var, Node] = {}
        self.aligned: dict[tuple[int, int], int] = {}  # along how many dimensions of rows a node reads another
        for binding in block.bindings:
            self._add(binding, kernels)
        self.parent: list[int] = [-1] * len(self.nodes)
        self.reads: list[OpPattern] = [OpPattern.ELEMWISE] * len(self.nodes)
        self._depth: list[int] = [0] * len(self.nodes)
        for node in reversed(self.nodes):
            self._dominate(node)

    def _add(self, binding: relax.Binding, kernels: Kernels) -> None:
        value = binding.value
        external = not isinstance(binding.var, relax.DataflowVar)
        if isinstance(binding, relax.VarBinding):
            found = kernels.kernel(value)
            if found is not None and isinstance(value, relax.Call):
                args = value.args[1]
                assert isinstance(args, relax.Tuple)
                moves = binding.var not in self.written and self.written.isdisjoint(args.fields)
                node = self._node(binding, kernels.kind(*found) if moves else OpPattern.OPAQUE, external)
                rows = kernels.rows(*found)
                node.is_view, node.rows = kernels.is_view(*found), _leading(call_info(value), len(rows.dims))
                for arg, read, param in zip(args.fields, kernels.reads(*found), found[1].params):
                    self._use(arg, node, read, rows.aligned.get(param, 0))
                return
            source = self.of_var.get(value.tuple_value) if isinstance(value, relax.TupleGetItem) and isinstance(
                value.tuple_value, relax.Var) else None  # fmt: skip
            if source is not None:
                node = self._node(binding, OpPattern.ELEMWISE, external)
                source.users.append((node.index, OpPattern.ELEMWISE))
                return
        uses = Uses()
        uses(value)
        for var in uses.counts:
            if var in self.of_var:
                self.of_var[var].external = True

    def _node(self, binding: relax.VarBinding, kind: OpPattern, external: bool) -> Node:
        node = Node(len(self.nodes), binding, kind, external=external)
        self.nodes.append(node)
        self.of_var[binding.var] = node
        return node

    def _use(self, arg: relax.Expr, user: Node, read: OpPattern, aligned: int) -> None:
        source = self.of_var.get(arg) if isinstance(arg, relax.Var) else None
        if source is not None:
            source.users.append((user.index, read))
            edge = source.index, user.index
            self.aligned[edge] = min(aligned, self.aligned.get(edge, aligned))

    def _dominate(self, node: Node) -> None:
        if node.external or not node.users:
            return
        at, reads = node.users[0]
        for user, read in node.users[1:]:
            reads = max(reads, read)
            other = user
            while at != other:
                # The deeper of the two goes up; at the same depth, both.
                a, b = self._depth[at], self._depth[other]
                if a >= b:
                    reads = max(reads, self.reads[at])
                    at = self.parent[at]
                if b >= a:
                    reads = max(reads, self.reads[other])
                    other = self.parent[other]
                if at < 0 or other < 0:
                    return
        self.parent[node.index] = at
        self.reads[node.index] = reads
        self._depth[node.index] = self._depth[at] + 1


class Partition:
    """The groups of a dataflow block. `group(i)` is the number of the group of node `i`, that of its last node."""

    def __init__(self, graph: Graph, max_depth: int = MAX_DEPTH) -> None:
        self.graph = graph
        self.max_depth = max_depth
        count = len(graph.nodes)
        self._root = list(range(count))
        self._size = [1 if isinstance(n.binding.value, relax.Call) else 0 for n in graph.nodes]
        self._anchor = [n.index if n.kind >= OpPattern.COMM_REDUCE else -1 for n in graph.nodes]
        self._kind = [n.kind for n in graph.nodes]
        self._members = [[n.index] for n in graph.nodes]
        self.refusals: dict[int, Rule] = {}
        for phase in (0, 1):
            for node in graph.nodes:
                self._try(node, phase)

    def group(self, index: int) -> int:
        """The group of a node."""
        while self._root[index] != index:
            self._root[index] = self._root[self._root[index]]
            index = self._root[index]
        return index

    def groups(self) -> dict[int, list[Node]]:
        """The members of each group, in order, by the group's number."""
        found: dict[int, list[Node]] = {}
        for node in self.graph.nodes:
            found.setdefault(self.group(node.index), []).append(node)
        return found

    def why_not(self, producer: Node, consumer: Node) -> Rule | None:
        """The rule that keeps a node apart from one that uses it; None when they are in one group."""
        if self.group(producer.index) == self.group(consumer.index):
            return None
        if consumer.is_view:
            return Rule.OPAQUE_CONSUMER
        return self.refusals.get(producer.index, Rule.SCATTERED)

    # --- one node -----------------------------------------------------------------------------------------------------
    def _try(self, node: Node, phase: int) -> None:
        """Let a node join its post-dominator, if a rule of this phase says so."""
        # Injective kernels wait until contractions have taken what follows them elementwise.
        if (phase == 0) == (node.kind is OpPattern.INJECTIVE):
            return
        rule = self._rule(node)
        if rule is not None:
            self.refusals[node.index] = rule

    def _rule(self, node: Node) -> Rule | None:
        """Why a node can't join its post-dominator; None when it joined."""
        if node.is_view:
            return Rule.VIEW
        if node.kind is OpPattern.OPAQUE:
            return Rule.OPAQUE
        sink = self.graph.parent[node.index]
        if sink < 0:
            return Rule.NEEDED if node.external or not node.users else Rule.SCATTERED
        if self.group(sink) == self.group(node.index):
            return None
        way = self._way(node.index, sink)
        if way is None:
            return Rule.TOO_LARGE
        rule = self._fits(node, sink, way)
        joined = {self.group(i) for i in (node.index, sink, *way)}
        if rule is None and len({self._anchor[g] for g in joined} - {-1}) > 1:
            rule = Rule.TWO_ANCHORS
        if rule is not None and not self._share_rows(joined):
            return rule
        if sum(self._size[g] for g in joined) > self.max_depth:
            return Rule.TOO_LARGE
        self._join(joined, self.group(sink))
        return None

    def _fits(self, node: Node, sink: int, way: list[int]) -> Rule | None:
        """The rules proper: what may follow a node of its kind, in a group like its own."""
        nodes = self.graph.nodes
        if any(nodes[i].is_view or nodes[i].kind is OpPattern.OPAQUE for i in (*way, sink)):
            return Rule.OPAQUE_CONSUMER
        if self._anchor[self.group(node.index)] >= 0:
            plain = all(nodes[i].kind <= OpPattern.BROADCAST for i in (*way, sink))
            return None if plain and self.graph.reads[node.index] is OpPattern.ELEMWISE else Rule.NOT_ELEMENTWISE
        # What stands behind an anchor may take other inputs along: the kind of the kernel itself counts, unless the way
        # leads through a group of its own.
        for i in way:
            own = self.group(i)
            kind = nodes[i].kind if own == self.group(sink) else self._kind[own]
            if kind > OpPattern.INJECTIVE:
                return Rule.ON_THE_WAY
        return Rule.CONTRACTION if nodes[sink].kind > OpPattern.COMM_REDUCE else None

    def _share_rows(self, groups: set[int]) -> bool:
        """Whether all kernels of some groups go through the same rows, and read each other in the same row only."""
        nodes = [self.graph.nodes[i] for group in groups for i in self._members[group]]
        kinds = (OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.COMM_REDUCE)
        if any(n.is_view or not n.rows or n.kind not in kinds for n in nodes):
            return False
        inside = {n.index for n in nodes}
        aligned = [self.graph.aligned.get((n.index, u), 0) for n in nodes for u, _ in n.users if u in inside]
        return min(aligned, default=0) > 0 and all(same_dim(nodes[0].rows[0], n.rows[0]) for n in nodes)

    def _way(self, start: int, sink: int) -> list[int] | None:
        """The nodes between a node and its post-dominator; None when they are too many."""
        seen: dict[int, None] = {}
        work = [start]
        while work:
            for user, _ in self.graph.nodes[work.pop()].users:
                if user != sink and user not in seen:
                    seen[user] = None
                    work.append(user)
                    if len(seen) > 2 * self.max_depth:
                        return None
        return list(seen)

    def _join(self, groups: set[int], to: int) -> None:
        for group in groups - {to}:
            self._root[group] = to
            self._size[to] += self._size[group]
            self._kind[to] = max(self._kind[to], self._kind[group])
            self._anchor[to] = max(self._anchor[to], self._anchor[group])
            self._members[to] += self._members[group]


def scalar_constant(value: relax.Expr) -> bool:
    """Whether a value is a constant of one element, which kernels have inside them."""
    return isinstance(value, relax.Constant) and value.content.size == 1
