"""What callers must know of a kernel, from its PrimFunc."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from relaxlang.codegen.function import implicit_dims, result_type
from relaxlang.ir import prim, tir
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.prim import PrimExpr, Var
from relaxlang.ir.relax import GlobalVar
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import walk
from relaxlang.runtime.kernel_signature import MAX_DIM_DEPTH, BufferParam, Dim, KernelSignature, ScalarParam

_OPS: dict[type, str] = {
    prim.Add: "+", prim.Sub: "-", prim.Mul: "*", prim.FloorDiv: "//", prim.FloorMod: "%",
    prim.Min: "min", prim.Max: "max",
}  # fmt: skip


def signature_of(
    name: str, func: PrimFunc, messages: Sequence[str] = (), functions: Mapping[str, PrimFunc] = EMPTY
) -> KernelSignature:
    """The signature of a PrimFunc's kernel; `messages` are the texts of its failures, `functions` those that it may
    call. A returned value is a last parameter, a buffer without dimensions."""
    symbols = implicit_dims(func)
    names: dict[Var, str] = {}
    for var in [*(p for p in func.params if p not in func.buffer_map), *symbols]:
        names[var] = _unique(var.name, names.values())
    written = written_memory(func, functions)
    params: list[BufferParam | ScalarParam] = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            params.append(ScalarParam(names[param], param.dtype.name))
        else:
            dims = tuple(_dim(d, names, 0) for d in buffer.shape)
            params.append(BufferParam(buffer.name, buffer.dtype.name, dims, buffer.data in written))
    result = result_type(func)
    if result is not None:
        params.append(BufferParam(_unique("result", (p.name for p in params)), result.name, (), True))
    return KernelSignature(name, tuple(params), tuple(names[s] for s in symbols), tuple(messages))


def _unique(hint: str, names: Iterable[str]) -> str:
    made, n, taken = hint, 0, set(names)
    while made in taken:
        n += 1
        made = f"{hint}_{n}"
    return made


def _dim(e: PrimExpr, names: dict[Var, str], depth: int) -> Dim:
    """A dimension as the run time evaluates it; None for what it cannot."""
    if isinstance(e, prim.IntImm):
        return e.value
    if isinstance(e, Var):
        return names.get(e)
    if isinstance(e, prim.Cast):
        return _dim(e.value, names, depth)
    op = _OPS.get(type(e))
    if op is None or not isinstance(e, prim.BinaryOp) or depth >= MAX_DIM_DEPTH:
        return None
    a, b = _dim(e.a, names, depth + 1), _dim(e.b, names, depth + 1)
    return None if a is None or b is None else (op, a, b)


def written_memory(func: PrimFunc, functions: Mapping[str, PrimFunc] = EMPTY) -> set[Var]:
    """The data pointers that the function may write through. Of `functions`, which it may call, it is known what they
    write to; any other may write through all pointers that it is given."""
    views: dict[Var, Var] = {}
    written: set[Var] = set()
    for node in walk(func.body):
        if isinstance(node, tir.BufferStore):
            written.add(node.buffer.data)
        elif isinstance(node, prim.Call):
            written.update(_handed_on(node, functions))
        elif isinstance(node, tir.MatchBufferRegion):
            views[node.buffer.data] = node.source.buffer.data
        elif isinstance(node, tir.LetStmt) and isinstance(node.value, Var):
            views[node.var] = node.value
    for view in list(written):
        while view in views:
            view = views[view]
            written.add(view)
    return written


def _handed_on(call: prim.Call, functions: Mapping[str, PrimFunc]) -> set[Var]:
    """The pointers that a call may write through: those it is given, or whose address it takes."""
    if call.op == "address_of":
        return {a.buffer.data for a in call.args if isinstance(a, prim.BufferLoad)}
    args = list(call.args)
    callee = functions.get(call.op.name) if isinstance(call.op, GlobalVar) else None
    if callee is not None:
        inner = written_memory(callee, functions)
        args = [
            a for p, a in zip(callee.params, args) if p not in callee.buffer_map or callee.buffer_map[p].data in inner
        ]
    return {a for a in args if isinstance(a, Var) and a.dtype.is_handle}
