"""annotate, unannotate, set_scope, storage_align: what is noted about loops, blocks and buffers."""

from __future__ import annotations

from relaxlang.ir.attrs import Attrs, freeze
from relaxlang.ir.prim import Var
from relaxlang.ir.tir import Block, For
from relaxlang.schedule.primitives.cache import ReplaceBuffer, buffer_of, new_buffer
from relaxlang.schedule.state import State

ALIGN_KEY = "buffer_dim_align"


def _target(state: State, at: str | Var) -> Block | For:
    return state.blocks[at].block if isinstance(at, str) else state.loops[at]


def annotate(state: State, at: str | Var, key: str, value: object) -> State:
    """The annotation `key` of a block (by name) or loop (by variable) is `value`."""
    stmt = _target(state, at)
    return state.replace({stmt: stmt.replace(annotations=Attrs({**stmt.annotations, key: freeze(value)}))})


def unannotate(state: State, at: str | Var, key: str) -> State:
    """The annotation goes. RLX1013: there is none of that name."""
    stmt = _target(state, at)
    if key not in stmt.annotations:
        have = ", ".join(f"`{k}`" for k in stmt.annotations) or "none"
        state.fail("RLX1013", f"there is no annotation `{key}` to remove", stmt, help=f"there are: {have}")
    return state.replace({stmt: stmt.replace(annotations=Attrs(stmt.annotations).without(key))})


def set_scope(state: State, name: str, index: int | str, scope: str) -> State:
    """The buffer that the block writes lives in another storage scope. RLX1012: it is a parameter."""
    old = buffer_of(state, name, index, "write")
    home = next((b for b in state.blocks.values() if old in b.block.alloc_buffers), None)
    if home is None:
        message = f"`set_scope`: `{old.name}` is a parameter; its memory is the caller's"
        state.fail("RLX1012", message, state.blocks[name], help="`cache_write` makes a buffer of its own")
    if old.scope == scope:
        return state
    made = new_buffer(old.name, old, old.shape, scope)
    return state.replace({home.block: ReplaceBuffer(old, made)(home.block)})


def storage_align(state: State, name: str, index: int, axis: int, factor: int, offset: int) -> State:
    """The stride of dimension `axis` of the buffer that the block writes is to be `offset` modulo `factor`: an
    annotation, which lowering follows. RLX1013: numbers that make no sense."""
    buffer = buffer_of(state, name, index, "write")
    block = state.blocks[name].block
    if not -buffer.ndim <= axis < buffer.ndim:
        state.fail("RLX1013", f"`{buffer.name}` has no dimension {axis}", state.blocks[name])
    if factor <= 0 or not 0 <= offset < factor:
        state.fail("RLX1013", f"an offset of {offset} modulo {factor} makes no alignment", state.blocks[name])
    entry = (index, axis % buffer.ndim, factor, offset)
    noted = block.annotations.get(ALIGN_KEY, ())
    kept = tuple(e for e in noted if e[:2] != entry[:2]) if isinstance(noted, tuple) else ()
    return annotate(state, name, ALIGN_KEY, (*kept, entry))
