"""Two modules side by side: are they one program, up to names?"""

from __future__ import annotations

from relaxlang.ir import prim, relax
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.structural import StructuralDifference, first_difference
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import Rewriter, on


def compare_modules(left: IRModule, right: IRModule) -> StructuralDifference | None:
    """The first difference of two modules, with both texts around it; None when they differ in names alone.

    Names of variables never count, names of private functions only where the modules have others of the same name.
    """
    right = _renamed(left, right)
    found = first_difference(left, right)
    return None if found is None else StructuralDifference(found, left, right)


def _renamed(left: IRModule, right: IRModule) -> IRModule:
    """The right module with its private functions named as those of the left one that are in the same place."""
    ours = [n for n, f in left.functions.items() if n not in right.functions and _is_private(f)]
    theirs = [n for n, f in right.functions.items() if n not in left.functions and _is_private(f)]
    if not ours or len(ours) != len(theirs):
        return right
    names = dict(zip(theirs, ours))
    rename = _Rename(names)
    functions = {names.get(n, n): rename(f) for n, f in right.functions.items()}
    return right.with_functions(functions)


def _is_private(function: AnyFunc) -> bool:
    return isinstance(function, (relax.Function, PrimFunc)) and function.is_private


class _Rename(Rewriter):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    @on(relax.GlobalVar)
    def reference(self, node: relax.GlobalVar) -> relax.GlobalVar:
        """A reference under the new name."""
        name = self.names.get(node.name)
        return node if name is None else node.replace(name=name)

    @on(prim.Call)
    def call(self, node: prim.Call) -> prim.Call:
        """A call between PrimFuncs."""
        made = self.below(node)
        op = self.reference(made.op) if isinstance(made.op, relax.GlobalVar) else made.op
        return made if op is made.op else made.replace(op=op)
