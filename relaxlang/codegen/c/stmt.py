"""Statements: from flat TensorIR to C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaxlang.base.dtype import DType
from relaxlang.codegen.c.expr import ExprWriter, bind, spread
from relaxlang.codegen.c.types import declare, floating, integer, memory_type, value_type
from relaxlang.codegen.c.writer import ALIGN, C, FileNeeds
from relaxlang.codegen.memory import ALIGNMENT, STACK_ALL, STACK_ONE, constant_count
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr, Var
from relaxlang.ir.tir import Buffer, PrimFunc, Stmt
from relaxlang.ir.visit import walk

PER_LINE = 12
"""Numbers in a line of a constant array."""


class StmtWriter(ExprWriter):
    """Writes statements. `functions` are the PrimFuncs that may be called, `names` the C names of all of them."""

    def __init__(self, needs: FileNeeds, functions: dict[str, PrimFunc], names: dict[str, str]) -> None:
        super().__init__(needs)
        self.functions = functions
        self.names = names
        self.heap: list[str] = []
        self.loops: list[int] = []
        self.stack = 0
        self.result: DType | None = None

    def stmt(self, s: Stmt) -> None:
        """Write a statement."""
        write = _TABLE.get(s.__class__)
        if write is None:
            self.fail("RLX9001", f"a {type(s).__name__} is left after lowering", s)
        self.begin(s)
        write(self, s)

    def require(self, condition: str, status: int) -> None:
        """Leave with the status unless the condition holds."""
        self.leave_if(f"!({condition})", str(status))

    def leave_if(self, condition: str, status: str) -> None:
        """Leave with the status when the condition holds."""
        if not self.heap:
            self.out.add(f"if ({condition}) return {status};")
            return
        with self.out.braces(f"if ({condition})"):
            self.leave(status)

    def leave(self, status: str) -> None:
        """Return from the function, after giving memory back."""
        self.free(0)
        self.out.add(f"return {status};")

    def free(self, keep: int) -> None:
        """Give back the memory allocated after the first `keep` allocations."""
        for pointer in reversed(self.heap[keep:]):
            self.out.add(f"free({pointer});")

    def held(self, e: PrimExpr) -> C:
        """A value that must not change while a loop runs: a constant, a variable, or a copy."""
        made = self.index(e)
        if isinstance(e, (prim.IntImm, Var)):
            return made
        return self.keep(made, e.dtype, "end")


# --- the table --------------------------------------------------------------------------------------------------------
def _store(w: StmtWriter, s: tir.BufferStore) -> None:
    of = s.buffer.dtype.scalar
    if s.value.dtype.scalar is not of:
        w.fail("RLX5016", f"a {s.value.dtype} is stored to `{s.buffer.name}`, which holds {s.buffer.dtype}", s)
    if _accumulates(s):
        assert isinstance(s.value, prim.Add)
        value = w.root(s.value.b)
        w.out.add(f"{w.element(s.buffer, s.indices).text} += {value.text};")
        return
    if s.value.dtype.lanes == 1:
        _store_lane(w, s, w.root(s.value))
        return
    lanes = s.value.dtype.lanes
    values = ""
    if _reads(s.value, s.buffer.data):
        # All lanes are read before the first is written.
        values = spread(w, s.value, "values")
        w.begin(s)
    lane = w.out.name("lane")
    with w.out.braces(f"for (int {lane} = 0; {lane} < {lanes}; ++{lane})"):
        outer, w.lane = w.lane, lane
        _store_lane(w, s, C(f"{values}[{lane}]") if values else w.at_lane(lane, s.value))
        w.lane = outer


def _accumulates(s: tir.BufferStore) -> bool:
    """Whether `x += y` says the same: of floats that C computes with as they are stored."""
    value = s.value
    return (
        isinstance(value, prim.Add) and s.predicate is None and value.dtype.name in ("float32", "float64")
        and isinstance(value.a, prim.BufferLoad) and value.a.buffer is s.buffer and value.a.predicate is None
        and value.a.indices == s.indices and not any(isinstance(n, prim.BufferLoad) for n in walk(s.indices[0]))
    )  # fmt: skip


def _store_lane(w: StmtWriter, s: tir.BufferStore, value: C) -> None:
    stored = w.to_memory(value, s.buffer.dtype.scalar)
    if s.predicate is None:
        w.out.add(f"{w.element(s.buffer, s.indices).text} = {stored.text};")
        return
    with w.out.braces(f"if ({w.expr(s.predicate).text})"):
        w.out.add(f"{w.element(s.buffer, s.indices).text} = {stored.text};")


def _reads(e: PrimExpr, data: Var) -> bool:
    return any(isinstance(n, prim.BufferLoad) and n.buffer.data is data for n in walk(e))


def _for(w: StmtWriter, s: tir.For) -> None:
    if s.kind == "thread_binding" or s.thread_binding is not None:
        w.fail("RLX5012", "a loop bound to GPU threads cannot run on a processor", s, help="use `T.parallel`")
    if isinstance(s.extent, prim.IntImm) and s.extent.value <= 0:
        return
    kind, first = value_type(s.loop_var.dtype), w.held(s.min)
    unit = isinstance(s.step, prim.IntImm) and s.step.value == 1
    plain = isinstance(s.min, prim.IntImm) and s.min.value == 0
    end = w.held(s.extent if plain or not unit else s.min + s.extent)
    outer = set(w.out.names)
    name = w.out.name(s.loop_var.name)
    w.loops.append(-1 if s.kind == "parallel" else len(w.heap))
    if unit:
        w.env[s.loop_var] = name
        with (
            w.analyzer.within(s.loop_var, tir.Range(s.min, s.extent)),
            w.out.braces(f"for ({kind} {name} = {first.text}; {name} < {end.text}; ++{name})"),
        ):
            w.stmt(s.body)
    else:
        step, turn = w.held(s.step), w.out.name("turn")
        with w.out.braces(f"for ({kind} {turn} = 0; {turn} < {end.text}; ++{turn})"):
            w.out.add(f"const {kind} {name} = {first.text} + {turn} * {step.at(8)};")
            w.env[s.loop_var] = name
            w.stmt(s.body)
    w.loops.pop()
    w.out.names = outer


def _while(w: StmtWriter, s: tir.While) -> None:
    w.loops.append(len(w.heap))
    with w.out.braces("for (;;)"):
        condition = w.root(s.condition)
        w.out.add(f"if (!({condition.text})) break;")
        w.stmt(s.body)
    w.loops.pop()


def _break(w: StmtWriter, s: tir.Break) -> None:
    _jump(w, s, "break")


def _continue(w: StmtWriter, s: tir.Continue) -> None:
    _jump(w, s, "continue")


def _jump(w: StmtWriter, s: Stmt, word: str) -> None:
    if not w.loops or w.loops[-1] < 0:
        w.fail("RLX5012", f"`{word}` has no serial loop to act on", s)
    w.free(w.loops[-1])
    w.out.add(f"{word};")


def _if(w: StmtWriter, s: tir.IfThenElse) -> None:
    condition = w.root(s.condition).text
    with w.out.braces(f"if ({condition})", "}" if s.else_case is None else "} else {"):
        w.stmt(s.then_case)
    if s.else_case is not None:
        names = set(w.out.names)
        w.out.depth += 1
        w.stmt(s.else_case)
        w.out.depth -= 1
        w.out.names = names
        w.out.add("}")


def _seq(w: StmtWriter, s: tir.SeqStmt) -> None:
    for one in s.seq:
        w.stmt(one)


def _evaluate(w: StmtWriter, s: tir.Evaluate) -> None:
    value = s.value
    if isinstance(value, prim.Call) and value.op == "ret":
        if w.result is not None:
            returned = w.to_memory(w.root(prim.cast(value.args[0], w.result)), w.result)
            w.out.add(f"*result = {returned.text};")
        w.leave("0")
    elif isinstance(value, prim.Call):
        made = w.root(value).text
        if made not in ("true", "0"):
            w.out.add(f"{made};" if value.op in _EFFECTS else f"(void)({made});")


_EFFECTS = ("call_extern", "print")


def _let(w: StmtWriter, s: tir.LetStmt) -> None:
    if any(n is s.var or (isinstance(n, Buffer) and n.data is s.var) for n in walk(s.body)):
        bind(w, s.var, s.value)
    w.stmt(s.body)


def _attr(w: StmtWriter, s: tir.AttrStmt) -> None:
    if s.key in ("thread_extent", "virtual_thread"):
        w.fail("RLX5012", f"`{s.key}` binds GPU threads, which a processor does not have", s)
    w.stmt(s.body)


def _assert(w: StmtWriter, s: tir.AssertStmt) -> None:
    w.require(w.root(s.condition).text, w.needs.status(s.message))
    w.stmt(s.body)


def _declare(w: StmtWriter, s: tir.DeclBuffer) -> None:
    w.stmt(s.body)


def _allocate(w: StmtWriter, s: tir.Allocate) -> None:
    kind, count = memory_type(s.dtype), constant_count(s.extents)
    w.kinds[s.buffer_var] = kind
    size = None if count is None else count * s.dtype.itemsize
    if size is not None and size <= STACK_ONE and w.stack + size <= STACK_ALL:
        w.stack += size
        name = w.env[s.buffer_var] = w.out.name(s.buffer_var.name)
        w.out.add(f"{declare(kind, name)}[{max(1, size // s.dtype.scalar.itemsize)}];")
        w.stmt(s.body)
        return
    message = f"no memory for the intermediate `{s.name}`"
    if size is not None and size >= 1 << 62:
        w.fail("RLX5016", f"the intermediate `{s.name}` is larger than any memory", s)
    w.needs.uses_heap = True
    name = w.env[s.buffer_var] = w.out.name(s.buffer_var.name)
    if size is None:
        total = w.out.name("bytes")
        w.out.add(f"uint64_t {total} = {s.dtype.itemsize};")
        for extent in s.extents:
            n = w.held(prim.cast(extent, prim.INT64))
            failed = f"{n.text} >= 0 && ({n.text} == 0 || {total} <= (UINT64_C(1) << 62) / (uint64_t){n.at(7)})"
            w.require(failed, w.needs.status(message))
            w.out.add(f"{total} *= (uint64_t){n.at(7)};")
        w.require(f"{total} <= SIZE_MAX / 2", w.needs.status(message))
        amount = f"(size_t){total} + 1"
    else:
        amount = str(max(size, 1))
    w.out.add(f"{kind} *{name} = ({kind} *)malloc({amount});")
    w.require(f"{name} != NULL", w.needs.status(message))
    w.heap.append(name)
    w.stmt(s.body)
    w.free(len(w.heap) - 1)
    w.heap.pop()


def _constant(w: StmtWriter, s: tir.AllocConst) -> None:
    name = w.needs.fresh(s.buffer_var.name)
    w.needs.constants.append(_constant_text(name, s, np.asarray(s.data)))
    w.env[s.buffer_var], w.kinds[s.buffer_var] = name, memory_type(s.dtype)
    w.stmt(s.body)


def _constant_text(name: str, s: tir.AllocConst, data: np.ndarray[Any, Any]) -> str:
    """A constant array: `static const float name[] = {…};`, in lines."""
    of = s.dtype
    flat = np.ascontiguousarray(data.astype(of.scalar.numpy, copy=False)).reshape(-1)
    if of.is_float and of.bits < 32:
        flat = flat.view(np.uint16 if of.scalar.itemsize == 2 else np.uint8)
        words = [str(v) for v in flat.tolist()]
    elif of.is_float:
        words = [floating(v, of) for v in flat]
    elif of.is_bool:
        words = [str(int(v)) for v in flat]
    else:
        words = [integer(int(v), of.scalar) for v in flat]
    words = words or ["0"]
    lines = [", ".join(words[i : i + PER_LINE]) for i in range(0, len(words), PER_LINE)]
    body = ",\n  ".join(lines)
    alignment = s.annotations.get(ALIGNMENT)
    aligned = f"{ALIGN}({alignment}) " if alignment else ""
    return f"static const {memory_type(of)} {aligned}{name}[{len(words)}] = {{\n  {body}\n}};"


_TABLE: dict[type, Callable[[Any, Any], None]] = {
    tir.BufferStore: _store, tir.For: _for, tir.While: _while, tir.Break: _break, tir.Continue: _continue,
    tir.IfThenElse: _if, tir.SeqStmt: _seq, tir.Evaluate: _evaluate, tir.LetStmt: _let, tir.AttrStmt: _attr,
    tir.AssertStmt: _assert, tir.DeclBuffer: _declare, tir.Allocate: _allocate, tir.AllocConst: _constant,
}  # fmt: skip
