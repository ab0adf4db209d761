"""The text of a program's LLVM module: declarations, helper functions, the table."""

from __future__ import annotations

import numpy as np

from relaxlang.codegen.native import layout
from relaxlang.codegen.native.support import SIGNATURES
from relaxlang.codegen.native.table import Entry, Fixed
from relaxlang.codegen.text import ModuleText
from relaxlang.runtime.executable import VMFunction
from relaxlang.runtime.ndarray import NDArray, wrap

TABLE = "rlx_table"
"""The symbol of the table: an array of pointers, which whoever links the program fills."""

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
    "PyLong_AsLongLong": ("i64", ("ptr",)),
    "PyObject_IsTrue": ("i32", ("ptr",)),
}


class ProgramText:
    """The LLVM module of a program while it is written, and its table."""

    def __init__(self, functions: list[VMFunction | None]) -> None:
        """`functions` has the Relax functions at their places of the function table."""
        self.module = ModuleText()
        self.functions = functions
        self.entries: list[Entry] = []
        self._places: dict[Entry, int] = {}

    def function(self, name: str) -> str:
        """The symbol of a function of the support module or of Python."""
        result, params = _SIGNATURES[name]
        attributes = "" if name == "PyErr_CheckSignals" else "nounwind"
        return self.module.external(name, result, params, attributes)

    def load(self, entry: Entry) -> str:
        """The instruction that loads an entry of the table."""
        place = self._places.get(entry)
        if place is None:
            place = self._places[entry] = len(self.entries)
            self.entries.append(entry)
        return f"load ptr, ptr getelementptr inbounds (ptr, ptr @{TABLE}, i64 {place}), !invariant.load !2"

    def own_argument(self) -> str:
        """The symbol of the function that gives a new reference to an argument, as an NDArray where it is an array."""
        if "own_argument" not in self.module.helpers:
            call, retain = self.function("rlx_call"), self.function("Py_IncRef")
            self.module.add_helper(
                "own_argument",
                f"""define internal ptr @own_argument(ptr %value) nounwind {{
  call void {retain}(ptr %value)
  %at = getelementptr i8, ptr %value, i64 {layout.TYPE}
  %type = load ptr, ptr %at
  %plain = {self.load(Fixed(np.ndarray))}
  %is.plain = icmp eq ptr %type, %plain
  br i1 %is.plain, label %convert, label %done, !prof !1
convert:
  %args = alloca ptr
  store ptr %value, ptr %args
  %wrap = {self.load(Fixed(wrap))}
  %made = call ptr {call}(ptr %wrap, ptr %args, i64 1)
  ret ptr %made
done:
  ret ptr %value
}}
""",
                "ptr",
            )
        return "@own_argument"

    def call_relax(self) -> str:
        """The symbol of the function that calls a Relax function on arguments whose references it takes over."""
        if "call_relax" not in self.module.helpers:
            complete, release = self.function("rlx_complete"), self.function("rlx_release")
            self.module.add_helper(
                "call_relax",
                f"""define internal ptr @call_relax(ptr %f, ptr %args, i64 %n, i64 %depth, i64 %limit) nounwind {{
  %all = call i1 {complete}(ptr %args, i64 %n)
  br i1 %all, label %go, label %done, !prof !0
go:
  %result = call ptr %f(ptr %args, i64 %depth, i64 %limit)
  br label %done
done:
  %given = phi ptr [ null, %0 ], [ %result, %go ]
  call void {release}(ptr %args, i64 %n)
  ret ptr %given
}}
""",
                "ptr",
            )
        return "@call_relax"

    def is_array(self) -> str:
        """The symbol of the function that tells whether an object is an array of a dtype (null: any) and rank that
        kernels take as it is."""
        if "is_array" not in self.module.helpers:
            self.module.add_helper(
                "is_array",
                f"""define internal i1 @is_array(ptr %value, ptr %dtype, i32 %ndim) alwaysinline nounwind {{
  %type.at = getelementptr i8, ptr %value, i64 {layout.TYPE}
  %type = load ptr, ptr %type.at
  %own = {self.load(Fixed(NDArray))}
  %plain = {self.load(Fixed(np.ndarray))}
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
                "i1",
            )
        return "@is_array"

    def text(self, triple: str, data_layout: str) -> str:
        """The whole module."""
        table = f"@{TABLE} = global [{max(1, len(self.entries))} x ptr] zeroinitializer\n"
        weights = (
            '!0 = !{!"branch_weights", i32 1000000, i32 1}\n!1 = !{!"branch_weights", i32 1, i32 1000000}\n!2 = !{}\n'
        )
        return self.module.text(triple, data_layout) + table + weights
