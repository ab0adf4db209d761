"""The text of a program's LLVM module: declarations, helper functions, the table."""

from __future__ import annotations

import time

import numpy as np

from relaxlang.codegen.native import layout, table
from relaxlang.codegen.native.helpers import approve_memory, refuse_memory
from relaxlang.codegen.native.support import SIGNATURES
from relaxlang.codegen.native.table import TABLE, Entry
from relaxlang.codegen.text import ModuleText, symbol
from relaxlang.runtime.executable import VMFunction
from relaxlang.runtime.ndarray import NDArray, wrap

INLINED_CHECKS = 8
"""Checks of arrays up to which each is written out where it is done."""
_METADATA = """!0 = !{!"branch_weights", i32 1000000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 1000000}
!2 = !{}
"""
_SIGNATURES: dict[str, tuple[str, tuple[str, ...]]] = {
    **SIGNATURES,
    "Py_IncRef": ("void", ("ptr",)),
    "Py_DecRef": ("void", ("ptr",)),
    "PyObject_Vectorcall": ("ptr", ("ptr", "ptr", "i64", "ptr")),
    "PyErr_CheckSignals": ("i32", ()),
    "PyEval_SaveThread": ("ptr", ()),
    "PyEval_RestoreThread": ("void", ("ptr",)),
    "PyLong_FromLongLong": ("ptr", ("i64",)),
    "PyFloat_AsDouble": ("double", ("ptr",)),
    "clock_gettime": ("i32", ("i32", "ptr")),
}


class ProgramText:
    """The LLVM module of a program while it is written, and its table."""

    def __init__(self, functions: list[VMFunction | None], observed: bool = False) -> None:
        """`functions` has the Relax functions at their places of the function table. An `observed` program measures
        its kernels."""
        self.module = ModuleText()
        self.functions = functions
        self.observed = observed
        self.entries: list[Entry] = []
        self._places: dict[Entry, int] = {}
        self._array_checks = 0

    def function(self, name: str) -> str:
        """The symbol of a function of the support module or of Python."""
        result, params = _SIGNATURES[name]
        attributes = "" if name == "PyErr_CheckSignals" else "nounwind"
        return self.module.external(name, result, params, attributes)

    def load(self, entry: Entry) -> str:
        """The instruction that loads an entry of the table."""
        place = self._place(entry)
        return f"load ptr, ptr getelementptr inbounds (ptr, ptr @{TABLE}, i64 {place}), !invariant.load !2"

    def _place(self, entry: Entry) -> int:
        place = self._places.get(entry)
        if place is None:
            place = self._places[entry] = len(self.entries)
            self.entries.append(entry)
        return place

    def own_argument(self) -> str:
        """The symbol of the function that gives a new reference to an argument, as an NDArray where it is an array."""
        call, retain = self.function("rlx_call"), self.function("Py_IncRef")
        return self._helper(
            "own_argument",
            f"""define internal ptr @own_argument(ptr %value) nounwind {{
  call void {retain}(ptr %value)
  %at = getelementptr i8, ptr %value, i64 {layout.TYPE}
  %type = load ptr, ptr %at
  %plain = {self.load(table.fixed(np.ndarray))}
  %is.plain = icmp eq ptr %type, %plain
  br i1 %is.plain, label %convert, label %done, !prof !1
convert:
  %args = alloca ptr
  store ptr %value, ptr %args
  %wrap = {self.load(table.fixed(wrap))}
  %made = call ptr {call}(ptr %wrap, ptr %args, i64 1)
  ret ptr %made
done:
  ret ptr %value
}}
""",
        )

    def call_relax(self) -> str:
        """The symbol of the function that calls a Relax function on arguments whose references it takes over."""
        complete, release = self.function("rlx_complete"), self.function("rlx_release")
        return self._helper(
            "call_relax",
            f"""define internal ptr @call_relax(ptr %f, ptr %args, i64 %n, i64 %depth, i64 %limit) nounwind {{
  %all = call i1 {complete}(ptr %args, i64 %n)
  br i1 %all, label %go, label %done, !prof !0
go:
  %result = call ptr %f(ptr %args, i64 %depth, i64 %limit, i1 true)
  br label %done
done:
  %given = phi ptr [ null, %0 ], [ %result, %go ]
  call void {release}(ptr %args, i64 %n)
  ret ptr %given
}}
""",
        )

    def take(self) -> str:
        """The symbol of the function that gives a block of so many bytes, null when an exception is set."""
        take, call = self.function("rlx_take"), self.function("rlx_call")
        number, release = self.function("PyLong_FromLongLong"), self.function("Py_DecRef")
        return self._helper(
            "take",
            f"""define internal ptr @take(i64 %size) nounwind {{
  %first = call ptr {take}(i64 %size, i1 false)
  %none = icmp eq ptr %first, null
  br i1 %none, label %ask, label %done, !prof !1
ask:
  %args = alloca ptr
  %number = call ptr {number}(i64 %size)
  store ptr %number, ptr %args
  %approve = {self.load(table.fixed(approve_memory))}
  %answer = call ptr {call}(ptr %approve, ptr %args, i64 1)
  %no = icmp eq ptr %answer, null
  br i1 %no, label %fail, label %again
again:
  call void {release}(ptr %answer)
  %second = call ptr {take}(i64 %size, i1 true)
  %refused = icmp eq ptr %second, null
  br i1 %refused, label %refuse, label %done
refuse:
  %number.2 = call ptr {number}(i64 %size)
  store ptr %number.2, ptr %args
  %raise = {self.load(table.fixed(refuse_memory))}
  %raised = call ptr {call}(ptr %raise, ptr %args, i64 1)
  br label %fail
fail:
  ret ptr null
done:
  %block = phi ptr [ %first, %0 ], [ %second, %again ]
  ret ptr %block
}}
""",
        )

    def unlock(self, least: int) -> str:
        """The symbol of the function that gives up the interpreter's lock for work on more than `least` bytes; null
        when it does not."""
        save = self.function("PyEval_SaveThread")
        return self._helper(
            "unlock",
            f"""define internal ptr @unlock(i64 %bytes) nounwind {{
  %large = icmp ugt i64 %bytes, {least}
  br i1 %large, label %save, label %done
save:
  %state = call ptr {save}()
  br label %done
done:
  %saved = phi ptr [ null, %0 ], [ %state, %save ]
  ret ptr %saved
}}
""",
        )

    def lock(self) -> str:
        """The symbol of the function that takes the lock back; whoever pressed Ctrl-C is heard then, and the result is
        not 0."""
        restore, signals = self.function("PyEval_RestoreThread"), self.function("PyErr_CheckSignals")
        return self._helper(
            "lock",
            f"""define internal i32 @lock(ptr %saved) {{
  %none = icmp eq ptr %saved, null
  br i1 %none, label %done, label %restore
restore:
  call void {restore}(ptr %saved)
  %pressed = call i32 {signals}()
  br label %done
done:
  %status = phi i32 [ 0, %0 ], [ %pressed, %restore ]
  ret i32 %status
}}
""",
        )

    def clock(self) -> str:
        """The symbol of the function that gives the time in nanoseconds."""
        read = self.function("clock_gettime")
        return self._helper(
            "clock",
            f"""define internal i64 @clock() nounwind {{
  %time = alloca {{ i64, i64 }}
  %status = call i32 {read}(i32 {time.CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr {{ i64, i64 }}, ptr %time, i32 0, i32 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}
""",
        )

    def raiser(self, function: Entry, kinds: list[str]) -> str:
        """The symbol of a function that calls a Python function which raises, on values of these LLVM types: integers
        (`i64`), or objects (`ptr`). One piece of code for all the places where the same can go wrong."""
        name = f"raise.{self._place(function)}.{'.'.join(kinds)}"
        call, number = self.function("rlx_call"), self.function("PyLong_FromLongLong")
        retain, release = self.function("Py_IncRef"), self.function("Py_DecRef")
        lines = []
        for index, kind in enumerate(kinds):
            if kind == "ptr":
                lines.append(f"  call void {retain}(ptr %v{index})")
            else:
                lines.append(f"  %a{index} = call ptr {number}(i64 %v{index})")
            lines.append(f"  %p{index} = getelementptr ptr, ptr %args, i64 {index}")
            lines.append(f"  store ptr %{'v' if kind == 'ptr' else 'a'}{index}, ptr %p{index}")
        head = ", ".join(f"{kind} %v{index}" for index, kind in enumerate(kinds))
        steps = "\n".join(lines)
        return self._helper(
            name,
            f"""define internal void {symbol(name)}({head}) noinline cold nounwind {{
  %args = alloca [{max(1, len(kinds))} x ptr]
{steps}
  %function = {self.load(function)}
  %result = call ptr {call}(ptr %function, ptr %args, i64 {len(kinds)})
  %null = icmp eq ptr %result, null
  br i1 %null, label %done, label %drop
drop:
  call void {release}(ptr %result)
  br label %done
done:
  ret void
}}
""",
        )

    def _helper(self, name: str, text: str) -> str:
        if name not in self.module.helpers:
            self.module.add_helper(name, text, "")
        return symbol(name)

    def is_array(self) -> str:
        """The symbol of the function that tells whether an object is an array of a dtype (null: any) and rank that
        kernels take as it is."""
        self._array_checks += 1
        return "@is_array"

    def _add_is_array(self) -> None:
        attributes = "alwaysinline nounwind" if self._array_checks <= INLINED_CHECKS else "noinline nounwind"
        self._helper(
            "is_array",
            f"""define internal i1 @is_array(ptr %value, ptr %dtype, i32 %ndim) {attributes} {{
  %type.at = getelementptr i8, ptr %value, i64 {layout.TYPE}
  %type = load ptr, ptr %type.at
  %own = {self.load(table.fixed(NDArray))}
  %plain = {self.load(table.fixed(np.ndarray))}
  %is.own = icmp eq ptr %type, %own
  %is.plain = icmp eq ptr %type, %plain
  %is = or i1 %is.own, %is.plain
  br i1 %is, label %array, label %no, !prof !0
array:
  %ndim.at = getelementptr i8, ptr %value, i64 {layout.NDIM}
  %has = load i32, ptr %ndim.at
  %same = icmp eq i32 %has, %ndim
  %dtype.at = getelementptr i8, ptr %value, i64 {layout.DESCR}
  %element = load ptr, ptr %dtype.at
  %any = icmp eq ptr %dtype, null
  %equal = icmp eq ptr %element, %dtype
  %right = or i1 %any, %equal
  %flags.at = getelementptr i8, ptr %value, i64 {layout.FLAGS}
  %flags = load i32, ptr %flags.at
  %bits = and i32 %flags, {layout.C_CONTIGUOUS | layout.ALIGNED}
  %good = icmp eq i32 %bits, {layout.C_CONTIGUOUS | layout.ALIGNED}
  %a = and i1 %same, %right
  %b = and i1 %a, %good
  ret i1 %b
no:
  ret i1 false
}}
""",
        )

    def text(self, triple: str, data_layout: str) -> str:
        """The whole module."""
        if self._array_checks:
            self._add_is_array()
        table = f"@{TABLE} = global [{max(1, len(self.entries))} x ptr] zeroinitializer\n"
        weights = (
            '!0 = !{!"branch_weights", i32 1000000, i32 1}\n!1 = !{!"branch_weights", i32 1, i32 1000000}\n!2 = !{}\n'
        )
        return self.module.text(triple, data_layout) + table + weights
