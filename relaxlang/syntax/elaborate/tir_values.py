"""What statements of TensorIR are made of while they are read: loops, blocks, things that wait for their name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax.comptime import Value

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.tir_body import BodyElaborator

Wrapper = Callable[[tir.Stmt], tir.Stmt]
Item = tir.Stmt | Wrapper


class Pending(Value):
    """A declaration that waits for its name: `A = T.alloc_buffer(…)`, `with T.launch_thread(…) as tx`.

    `declare(body, name, span)` has the effect (a statement, an entry of the block) and gives what the name means.
    """

    def __init__(self, kind: str, declare: Callable[[BodyElaborator, str, Span | None], Any]) -> None:
        self.kind = kind
        self.declare = declare


class Loop(Value):
    """An iterable of loops: `domains` (min, extent), one for each variable."""

    kind = "loop"

    def __init__(
        self,
        kind: tir.ForKind,
        domains: list[tir.Range],
        annotations: Mapping[str, object] = EMPTY,
        thread: str | None = None,
        step: PrimExpr | None = None,
    ) -> None:
        self.of = kind
        self.domains = domains
        self.annotations = annotations
        self.thread = thread
        self.step = step


class BlockHead(Value):
    """`T.block("b")`, or the old `T.block([n, m], "b")` with its domains."""

    kind = "block"

    def __init__(self, name: str, domains: list[tuple[tir.IterKind, tir.Range]], no_realize: bool) -> None:
        self.name = name
        self.domains = domains
        self.no_realize = no_realize


class Domain(Value):
    """A domain with a kind, in the head of an old-style block: `T.reduce_axis(0, 16)`."""

    kind = "domain"

    def __init__(self, of: tir.IterKind, dom: tir.Range) -> None:
        self.of = of
        self.dom = dom


class InitHead(Value):
    """`T.init()`."""

    kind = "init"


class SuffixHead(Value):
    """`T.block_name_suffix_context("_1")`: what the names of the blocks inside end in."""

    kind = "suffix of names"

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix


class BlockState:
    """A block while its body is read; `root` is the function's implicit one, `realized` whether it runs where it
    stands."""

    def __init__(self, name: str, root: bool = False, realized: bool = True) -> None:
        self.name = name
        self.root = root
        self.realized = realized
        self.iter_vars: list[tir.IterVar] = []
        self.iter_values: list[PrimExpr | None] = []
        self.reads: list[tir.BufferRegion] | None = None
        self.writes: list[tir.BufferRegion] | None = None
        self.predicate: PrimExpr | None = None
        self.init: tir.Stmt | None = None
        self.alloc_buffers: list[tir.Buffer] = []
        self.match_buffers: list[tir.MatchBufferRegion] = []
        self.annotations: dict[str, Any] = {}

    def block(self, body: tir.Stmt, span: Span | None) -> tir.Block:
        """The block."""
        from relaxlang.ir.attrs import Attrs

        return tir.Block(
            tuple(self.iter_vars),
            None if self.reads is None else tuple(self.reads),
            None if self.writes is None else tuple(self.writes),
            self.name,
            body,
            self.init,
            tuple(self.alloc_buffers),
            tuple(self.match_buffers),
            Attrs(self.annotations) if self.annotations else EMPTY,
            span=span,
        )


NOTHING = tir.Evaluate(prim.IntImm(prim.INT32, 0))
TRUE = prim.IntImm(prim.BOOL, 1)


def close(items: list[Item]) -> tir.Stmt:
    """The statements in order; a wrapper takes all that follows it as its body. Nothing that was written is dropped."""
    after: list[tir.Stmt] = []
    for item in reversed(items):
        if isinstance(item, tir.Stmt):
            after.append(item)
        else:
            after = [item(_sequence(after))]
    return _sequence(after)


def _sequence(backwards: list[tir.Stmt]) -> tir.Stmt:
    if not backwards:
        return NOTHING
    if len(backwards) == 1:
        return backwards[0]
    flat: list[tir.Stmt] = []
    for stmt in reversed(backwards):
        flat.extend(stmt.seq) if isinstance(stmt, tir.SeqStmt) else flat.append(stmt)
    return tir.SeqStmt(tuple(flat), span=flat[0].span)
