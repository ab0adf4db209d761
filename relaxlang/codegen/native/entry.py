"""The functions of a program that Python calls, in CPython's METH_FASTCALL | METH_KEYWORDS convention.

`entry.i` takes a caller's arguments: when their number is right and each may be what native code takes as it is, they
go straight to the function, which checks them; anything else (conversions, errors, `out=`) goes to `helpers.Slow`.
`raw.i` takes values that are in the machine's form already.
"""

from __future__ import annotations

from relaxlang.codegen.native import layout, table
from relaxlang.codegen.native.emitter import symbol_of
from relaxlang.codegen.native.program_text import ProgramText
from relaxlang.codegen.text import FunctionText
from relaxlang.runtime.ndarray import ShapeTuple
from relaxlang.runtime.params import Expected

_HEAD = "(ptr %self, ptr %args, i64 %count, ptr %names)"


def emit_entries(program: ProgramText, index: int, expected: list[Expected], calls_others: bool) -> None:
    """Write `entry.i` and `raw.i` for the function at place `index` of the function table."""
    _emit_raw(program, index, calls_others)
    at = FunctionText(program.module)
    right = at.value(f"icmp eq i64 %count, {len(expected)}")
    plain = at.value("icmp eq ptr %names, null")
    _go_on(at, at.value(f"and i1 {right}, {plain}"))
    for place, one in enumerate(expected):
        if _checked_by_function(one):
            continue
        slot = at.value(f"getelementptr inbounds ptr, ptr %args, i64 {place}")
        _go_on(at, _accepts(program, at, at.value(f"load ptr, ptr {slot}"), one))
    at.finish(f"ret ptr {_call(program, at, index, calls_others, False)}")
    at.start("slow")
    slow = at.value(program.load(table.slow(index)))
    vectorcall = program.function("PyObject_Vectorcall")
    made = at.call("ptr", vectorcall, ("ptr", slow), ("ptr", "%args"), ("i64", "%count"), ("ptr", "%names"))
    at.finish(f"ret ptr {made}")
    program.module.add(at.text(f"define ptr @entry.{index}{_HEAD}"))


def _emit_raw(program: ProgramText, index: int, calls_others: bool) -> None:
    at = FunctionText(program.module)
    at.finish(f"ret ptr {_call(program, at, index, calls_others, True)}")
    program.module.add(at.text(f"define ptr @raw.{index}{_HEAD}"))


def _call(program: ProgramText, at: FunctionText, index: int, calls_others: bool, ready: bool) -> str:
    """The call of the function itself, on values in the machine's form when they are `ready`. How far the stack may
    grow matters only where functions call each other."""
    limit = at.call("i64", program.function("rlx_stack_limit")) if calls_others else "0"
    flag = ("i1", "true" if ready else "false")
    return at.call("ptr", symbol_of(index), ("ptr", "%args"), ("i64", "0"), ("i64", limit), flag)


def _go_on(at: FunctionText, good: str) -> None:
    go = at.label("go")
    at.branch_if(good, go, "slow", ", !prof !0")
    at.start(go)


def _checked_by_function(expected: Expected) -> bool:
    """Whether the function itself looks at an argument, and comes back to `Slow` when it is not what it wants."""
    if expected.dtype is None or not expected.dtype.bits or expected.dtype.name == "uint64":
        return False
    return expected.kind == "scalar" or (expected.kind == "tensor" and expected.ndim >= 0)


def _accepts(program: ProgramText, at: FunctionText, value: str, expected: Expected) -> str:
    """Whether any other argument needs no conversion."""
    if expected.kind != "shape":
        return "false"
    type_at = at.value(f"getelementptr i8, ptr {value}, i64 {layout.TYPE}")
    given = at.value(f"load ptr, ptr {type_at}")
    return at.value(f"icmp eq ptr {given}, {at.value(program.load(table.fixed(ShapeTuple)))}")
