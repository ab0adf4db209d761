"""The module as a value in its own functions, and what is known of functions that are not yet elaborated."""

from __future__ import annotations

from typing import Any

from relaxlang.base.source import Span
from relaxlang.ir import relax
from relaxlang.ir.module import function_info
from relaxlang.ir.struct_info import FuncStructInfo, StructInfo
from relaxlang.syntax.comptime import Evaluator, Value, describe, error
from relaxlang.syntax.elaborate.unit import Unit


class ModuleRef(Value):
    """The module itself, as a name in its functions: `Module.f`, `cls.f`."""

    kind = "module"

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        return self.unit.reference(name, span)

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        if not isinstance(index, str):
            raise error("RLX0110", f"`cls[…]` takes the name of a function, not {describe(index)}", span)
        return self.unit.reference(index, span)


def result_known(unit: Unit, var: relax.GlobalVar) -> StructInfo | None:
    """The struct info of a function of the module. One whose result is not declared is elaborated first; None when that
    failed, or for a recursive function without a declared result."""
    declared = unit.functions.get(var.name)
    if declared is None:
        extern = unit.externs.get(var.name)
        return extern.struct_info if extern is not None else var.struct_info
    if declared.info is None and declared.signature is not None:
        declared.info = declared.signature()
    if declared.info is not None:
        return declared.info
    declared.run(unit)
    if declared.function is not None:
        declared.info = function_info(declared.function)
    elif declared.state == "open":
        unit.recursive.add(var.name)
    return declared.info


FunctionInfo = FuncStructInfo
