"""Which variables of Relax may lie in the same memory."""

from __future__ import annotations

from typing import TypeAlias

from relaxlang.analysis.reshape_pattern import has_reshape_pattern
from relaxlang.analysis.uses import Uses, expressions
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ir.tir import PrimFunc
from relaxlang.ops import Operators
from relaxlang.ops.kernel import Kernel
from relaxlang.syntax.core_ops import CORE_OPS

FOREIGN = 0
"""The memory of whoever is outside: callers, constants, and what an unknown function gave back."""

Alias: TypeAlias = "frozenset[int] | tuple[Alias, ...]"
"""The memories that a value may lie in, by number; of a tuple, those of each field."""

NOTHING: frozenset[int] = frozenset()
_FOREIGN: frozenset[int] = frozenset({FOREIGN})

VIEWS = frozenset({
    "memory.view", "memory.ensure_zero_offset", "memory.alloc_tensor", "vm.alloc_tensor", "to_vdevice",
    "hint_on_device", "builtin.stop_lift_params",
})  # fmt: skip
"""Operators whose result is a view of their first argument."""
IN_PLACE = frozenset({"call_tir_inplace", "call_inplace_packed"})
PACKED_VIEWS = frozenset({"vm.builtin.reshape", "vm.builtin.copy"})


class Aliases:
    """The memories of every variable of a function. `owner`: the sequence in which each memory was made (by identity).

    An answer errs on the side of too many: whatever is not known to be fresh may be anything the call was given, and
    foreign. Reshapes count as views even while they are still kernels that copy.
    """

    def __init__(self, func: relax.Function, mod: IRModule, operators: Operators) -> None:
        self.mod = mod
        self.operators = operators
        self.table: dict[relax.Var, Alias] = {}
        self.owner: dict[int, int] = {}
        self._reshapes: dict[str, bool] = {}
        self._function(func)

    def of(self, value: relax.Expr) -> frozenset[int]:
        """The memories that an operand may lie in, all its fields' together."""
        return merge(self._operand(value))

    # --- traversal ----------------------------------------------------------------------------------------------------
    def _function(self, func: relax.Function) -> None:
        for param in func.params:
            self.table[param] = _FOREIGN
        self._sequence(func.body)

    def _sequence(self, seq: relax.SeqExpr) -> Alias:
        for block in seq.blocks:
            for binding in block.bindings:
                self.table[binding.var] = self._value(binding.value, seq, binding.var)
        return self._operand(seq.body)

    def _operand(self, value: relax.Expr) -> Alias:
        if isinstance(value, relax.Var):
            return self.table.get(value, _FOREIGN)
        if isinstance(value, relax.Tuple):
            return tuple(self._operand(f) for f in value.fields)
        return _FOREIGN if isinstance(value, relax.Constant) else NOTHING

    def _value(self, value: relax.Expr, seq: relax.SeqExpr, var: relax.Var) -> Alias:
        if isinstance(value, relax.TupleGetItem):
            of = self._operand(value.tuple_value)
            return of[value.index] if isinstance(of, tuple) and value.index < len(of) else merge(of)
        if isinstance(value, relax.If):
            return _join(self._sequence(value.true_branch), self._sequence(value.false_branch))
        if isinstance(value, relax.Function):
            self.table[var] = NOTHING  # its own name, inside
            self._function(value)
            uses = Uses()
            uses(value)
            return merge(tuple(self._operand(v) for v in uses.counts))
        if isinstance(value, relax.Call):
            return self._call(value, seq)
        return self._operand(value)

    # --- calls --------------------------------------------------------------------------------------------------------
    def _call(self, call: relax.Call, seq: relax.SeqExpr) -> Alias:
        given = merge(tuple(self._operand(a) for a in call.args))
        if not isinstance(call.op, relax.Op):
            if isinstance(call.op, relax.ExternFunc) and call.op.name in PACKED_VIEWS:
                return self._operand(call.args[0])
            return given | self.of(call.op) | _FOREIGN
        name = call.op.name
        if name in VIEWS:
            return self._operand(call.args[0]) if call.args else _FOREIGN
        if name in ("call_tir", "call_dps_packed", "call_tir_with_grad"):
            return given if self._is_reshape(call.args[0]) else self._fresh(call.sinfo_args[0], seq)
        if name == "call_tir_inplace":
            return self._in_place(call, seq)
        if name in ("builtin.alloc_tensor", "memory.alloc_storage", "vm.alloc_storage"):
            return self._new(seq)
        if name in ("call_pure_packed", "call_inplace_packed"):
            callee = call.args[0]
            if isinstance(callee, relax.ExternFunc) and callee.name in PACKED_VIEWS:
                return self._operand(call.args[1])
        if name in CORE_OPS or call.struct_info is None or not _is_static(call.struct_info):
            return given | _FOREIGN
        if sum(isinstance(a.struct_info, TensorStructInfo) for a in call.args) == 1:
            # It may be a reshape, which may become a view.
            kernel = self.operators.lower(call)
            if not isinstance(kernel, Kernel) or kernel.finish is not None:
                return given | _FOREIGN
            if has_reshape_pattern(kernel.func):
                return given
        return self._fresh(call.struct_info, seq)

    def _in_place(self, call: relax.Call, seq: relax.SeqExpr) -> Alias:
        info = call.sinfo_args[0]
        infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
        packed = self._operand(call.args[1])
        places = call.attrs["inplace_indices"]
        results = tuple(
            self._fresh(one, seq) if k < 0 else packed[k] if isinstance(packed, tuple) else merge(packed)
            for one, k in zip(infos, (places,) if isinstance(places, int) else places)
        )
        return results if isinstance(info, TupleStructInfo) else results[0]

    def _is_reshape(self, callee: relax.Expr) -> bool:
        if not isinstance(callee, relax.GlobalVar):
            return False
        known = self._reshapes.get(callee.name)
        if known is None:
            func = self.mod.functions.get(callee.name)
            known = self._reshapes[callee.name] = isinstance(func, PrimFunc) and has_reshape_pattern(func)
        return known

    def _fresh(self, info: StructInfo, seq: relax.SeqExpr) -> Alias:
        if isinstance(info, TupleStructInfo):
            return tuple(self._fresh(f, seq) for f in info.fields)
        return self._new(seq)

    def _new(self, seq: relax.SeqExpr) -> frozenset[int]:
        number = len(self.owner) + 1
        self.owner[number] = id(seq)
        return frozenset({number})


def merge(alias: Alias) -> frozenset[int]:
    """All memories of an alias, its fields' together."""
    if isinstance(alias, frozenset):
        return alias
    return NOTHING.union(*(merge(field) for field in alias))


def _join(a: Alias, b: Alias) -> Alias:
    """What may be the one or the other."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(_join(x, y) for x, y in zip(a, b))
    return merge(a) | merge(b)


def _is_static(info: StructInfo) -> bool:
    """Whether an operator with such a result is computed by a kernel, which writes to memory of its own."""
    if isinstance(info, TupleStructInfo):
        return all(_is_static(f) for f in info.fields)
    return isinstance(info, TensorStructInfo) and info.dims is not None


def overwritten(func: relax.Function, mod: IRModule, operators: Operators) -> set[relax.Expr]:
    """The variables of a function whose memory a call in place writes to, under whatever name.

    They hold their value only until that call: nobody may compute with them later, or keep them instead of others.
    """
    every = (n for n in expressions(func) if isinstance(n, relax.Call))
    calls = [n for n in every if isinstance(n.op, relax.Op) and n.op.name in IN_PLACE]
    if not calls:
        return set()
    aliases = Aliases(func, mod, operators)
    memories = NOTHING.union(*(aliases.of(arg) for call in calls for arg in _written(call)))
    return {var for var, alias in aliases.table.items() if merge(alias) & memories}


def _written(call: relax.Call) -> list[relax.Expr]:
    """The arguments that a call in place writes to."""
    assert isinstance(call.op, relax.Op)
    places = call.attrs["inplace_indices"]
    chosen = [k for k in ((places,) if isinstance(places, int) else places) if k >= 0]
    if call.op.name == "call_tir_inplace":
        packed = call.args[1]
        return [packed.fields[k] for k in chosen] if isinstance(packed, relax.Tuple) else [packed]
    return [call.args[1 + k] for k in chosen]
