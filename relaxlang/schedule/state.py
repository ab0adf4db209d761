"""The program that a schedule works on: one PrimFunc, with every block and loop findable.

A loop is known by its variable and a block by its name, both unique in the function (`normalized` sees to that), so
they survive rewriting of what is around them. A state never changes: primitives return the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from operator import is_
from typing import NoReturn

from relaxlang.arith.analyzer import Analyzer
from relaxlang.base.diagnostics import fail
from relaxlang.base.node import Node
from relaxlang.ir.prim import BOOL, IntImm, Var
from relaxlang.ir.printing import script
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferStore, For, PrimFunc, Range, SeqStmt, Stmt, seq
from relaxlang.ir.visit import Rewriter, on, substitute
from relaxlang.schedule.access import fill_regions
from relaxlang.schedule.stmts import child_stmts, walk_stmts, with_child_stmts

APART = "pragma_compute_scope"
"""The annotation of a loop whose code becomes a function of its own, so that it takes no registers from other loops."""
STREAMING = "pragma_streaming_stores"
"""The annotation of a loop whose results go past the caches where they are larger than these."""
TRUE = IntImm(BOOL, 1)
Edit = Callable[[Stmt], Stmt]
NO_EDITS: Mapping[Stmt, Edit] = {}
NO_CHANGES: Mapping[Stmt, Stmt | None] = {}


class State:
    """A PrimFunc under a schedule; `name` is what the module calls it."""

    def __init__(self, func: PrimFunc, name: str) -> None:
        self.func = func
        self.name = name

    # --- finding ------------------------------------------------------------------------------------------------------
    @cached_property
    def _index(self) -> tuple[dict[str, BlockRealize], dict[Var, For], dict[int, Stmt]]:
        blocks: dict[str, BlockRealize] = {}
        loops: dict[Var, For] = {}
        parents: dict[int, Stmt] = {}
        stack: list[Stmt] = [self.func.body]
        while stack:
            stmt = stack.pop()
            if isinstance(stmt, For):  # most statements
                loops[stmt.loop_var] = stmt
                parents[id(stmt.body)] = stmt
                stack.append(stmt.body)
                continue
            if isinstance(stmt, BlockRealize):
                blocks[stmt.block.name_hint] = stmt
            below = child_stmts(stmt)
            for child in below:
                parents[id(child)] = stmt
            stack += below[::-1]
        return blocks, loops, parents

    @property
    def blocks(self) -> dict[str, BlockRealize]:
        """All blocks by name, the root first, in program order."""
        return self._index[0]

    @property
    def loops(self) -> dict[Var, For]:
        """All loops by variable, in program order."""
        return self._index[1]

    @property
    def root(self) -> BlockRealize:
        """The block around everything."""
        assert isinstance(self.func.body, BlockRealize)
        return self.func.body

    def parent(self, stmt: Stmt) -> Stmt | None:
        """The statement directly around one; None for the root."""
        return self._index[2].get(id(stmt))

    def ancestors(self, stmt: Stmt) -> Iterator[Stmt]:
        """The statements around one, innermost first."""
        parents = self._index[2]
        above = parents.get(id(stmt))
        while above is not None:
            yield above
            above = parents.get(id(above))

    def scope(self, stmt: Stmt) -> BlockRealize:
        """The nearest block around a statement (not itself)."""
        return next(a for a in self.ancestors(stmt) if isinstance(a, BlockRealize))

    def loops_around(self, stmt: Stmt) -> list[For]:
        """The loops between a statement and the nearest block around it, outermost first."""
        found: list[For] = []
        for above in self.ancestors(stmt):
            if isinstance(above, Block):
                break
            if isinstance(above, For):
                found.append(above)
        return found[::-1]

    def blocks_under(self, stmt: Stmt) -> list[BlockRealize]:
        """The blocks below a statement that belong to its scope (not those inside of these), in program order."""
        found: list[BlockRealize] = []
        stack = [stmt.block.body] if isinstance(stmt, BlockRealize) else [stmt]
        while stack:
            one = stack.pop()
            if isinstance(one, BlockRealize):
                found.append(one)
            else:
                stack += child_stmts(one)[::-1]
        return found

    # --- changing -----------------------------------------------------------------------------------------------------
    def replace(self, changes: Mapping[Stmt, Stmt | None], then: Mapping[Stmt, Edit] = NO_EDITS) -> State:
        """The state with statements replaced (None: removed, with the loops that then are empty); `then` says what
        becomes of statements around them afterwards."""
        above = {id(stmt) for stmt in then}
        for old in (*changes, *then):
            for one in self.ancestors(old):
                if id(one) in above:
                    break
                above.add(id(one))
        replace = _Replace({id(old): new for old, new in changes.items()}, above, {id(s): e for s, e in then.items()})
        body = replace.apply(self.func.body)
        assert body is not None and not replace.then, "edits are of statements of this state"
        return State(self.func.replace(body=body), self.name)

    def with_buffers(
        self, scope: BlockRealize, add: tuple[Buffer, ...] = (), drop: tuple[Buffer, ...] = (),
        changes: Mapping[Stmt, Stmt | None] = NO_CHANGES,
    ) -> State:  # fmt: skip
        """The state with statements replaced, and with buffers added to and removed from what the block `scope`
        allocates."""

        def allocating(block: Stmt) -> Stmt:
            assert isinstance(block, Block)
            kept = tuple(b for b in block.alloc_buffers if b not in drop)
            return block.replace(alloc_buffers=kept + add)

        return self.replace(changes, {self.blocks[scope.block.name_hint].block: allocating})

    def unique(self, hint: str) -> str:
        """A block name that is not in use."""
        name, count = hint, 0
        while name in self.blocks:
            count += 1
            name = f"{hint}_{count}"
        return name

    # --- reasoning ----------------------------------------------------------------------------------------------------
    def analyzer(self) -> Analyzer:
        """An analyzer that knows that dimensions are not negative."""
        dims = [d for b in self.func.buffer_map.values() for d in b.shape if isinstance(d, Var)]
        return Analyzer(dims)

    def ranges(self, stmt: Stmt) -> dict[Var, Range]:
        """The ranges of the loops around a statement, within its scope."""
        return {s.loop_var: Range(s.min, s.extent) for s in self.loops_around(stmt)}

    # --- faults -------------------------------------------------------------------------------------------------------
    def fail(self, code: str, message: str, at: Node | None = None, *, help: str = "") -> NoReturn:
        """Raise a diagnostic that shows the program around the statement `at`."""
        notes = []
        if at is not None:
            text = script(self.func, underline=(at, getattr(at, "block", at)), context=4)
            notes.append(f"in `{self.name}`:\n{text}")
        fail(code, message, getattr(at, "span", None), notes=notes, help=help)


class _Replace:
    """Rebuilds the statements above those that change, of which `above` holds the identities, and does to some what
    `then` says."""

    def __init__(self, changes: dict[int, Stmt | None], above: set[int], then: dict[int, Edit]) -> None:
        self.changes = changes
        self.above = above
        self.then = then

    def apply(self, stmt: Stmt) -> Stmt | None:
        """The statement after the changes; None when nothing is left of it."""
        if id(stmt) in self.changes:
            return self.changes[id(stmt)]
        if id(stmt) not in self.above:
            return stmt
        made = self.rebuilt(stmt)
        return self.then.pop(id(stmt))(made) if made is not None and id(stmt) in self.then else made

    def rebuilt(self, stmt: Stmt) -> Stmt | None:
        """A statement after the changes below it."""
        old = child_stmts(stmt)
        made = [self.apply(s) for s in old]
        if all(map(is_, made, old)):
            return stmt
        if isinstance(stmt, SeqStmt):
            kept = [s for s in made if s is not None]
            return seq(*kept) if kept else None
        if isinstance(stmt, Block):
            made[-1] = made[-1] or seq()
        elif made[0] is None:
            return None
        return with_child_stmts(stmt, made)


# --- entering ---------------------------------------------------------------------------------------------------------
def normalized(func: PrimFunc) -> PrimFunc:
    """The function in the form that schedules work on: a root block, blocks with names and loops with variables of
    their own, and stated regions of what blocks read and write."""
    body = func.body
    if not (isinstance(body, BlockRealize) and not body.block.iter_vars):
        body = BlockRealize((), TRUE, Block((), (), (), "root", body))
    if not _is_distinct(body):
        body = _Distinct()(body)
    return func.replace(body=fill_regions(body))


def _is_distinct(body: Stmt) -> bool:
    """Whether every block has a name of its own, and every loop a variable of its own: but loops around nothing than a
    store, which no instruction can refer to, may have theirs in common."""
    names: set[str] = set()
    variables: set[Var] = set()
    inner: set[Var] = set()
    count = 0
    for stmt in walk_stmts(body):
        if isinstance(stmt, Block):
            names.add(stmt.name_hint)
            count += 1
        elif isinstance(stmt, For) and isinstance(stmt.body, BufferStore):
            inner.add(stmt.loop_var)
        elif isinstance(stmt, For):
            variables.add(stmt.loop_var)
            count += 1
    return len(names) + len(variables) == count and "" not in names and inner.isdisjoint(variables)


class _Distinct(Rewriter):
    """Gives every block a name of its own, and every loop a variable of its own."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.variables: set[Var] = set()

    @on(Block)
    def block(self, node: Block) -> Block:
        """A block; a second one of the name gets a number."""
        name, count = node.name_hint or "block", 0
        while name in self.names:
            count += 1
            name = f"{node.name_hint or 'block'}_{count}"
        self.names.add(name)
        return self.below(node.replace(name_hint=name) if name != node.name_hint else node)

    @on(For)
    def loop(self, node: For) -> For:
        """A loop; a second one of a variable gets a copy of it."""
        var = node.loop_var
        if var in self.variables:
            var = Var(var.name, var.dtype)
            node = node.replace(loop_var=var, body=substitute(node.body, {node.loop_var: var}))
        self.variables.add(var)
        return self.below(node)
