"""Functions by what they do, so that one which is structurally equal to another is found without a look at all of them.

Hashing a kernel takes longer than comparing two that differ, and most kernels of a module differ in their parameters
already. So functions are told apart by what is seen at a glance first, and hashed only where many look alike.
"""

from __future__ import annotations

from relaxlang.ir import prim, relax, tir
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo
from relaxlang.ir.structural import structural_equal, structural_hash

Function = tir.PrimFunc | relax.Function

FEW = 4
"""Functions that look alike and are compared one by one; more are told apart by their hashes."""


class EqualFunctions:
    """Names of functions, each found by any function that is equal to its own; of equal ones the first."""

    def __init__(self) -> None:
        self._alike: dict[object, _Alike] = {}

    def __bool__(self) -> bool:
        return bool(self._alike)

    def find(self, function: Function) -> str | None:
        """The name of a function equal to this one."""
        alike = self._alike.get(_glance(function))
        return None if alike is None else alike.find(function)

    def add(self, name: str, function: Function) -> None:
        """Put in a function, under a name."""
        self._alike.setdefault(_glance(function), _Alike()).entries.append((name, function))


class _Alike:
    """Functions that look alike. `entries` are those that were not hashed so far."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, Function]] = []
        self._hashed: dict[int, list[tuple[str, Function]]] = {}

    def find(self, function: Function) -> str | None:
        """The name of one that is equal."""
        among = self.entries
        if self._hashed or len(self.entries) > FEW:
            for entry in self.entries:
                self._hashed.setdefault(structural_hash(entry[1]), []).append(entry)
            self.entries = []
            among = self._hashed.get(structural_hash(function), [])
        return next((name for name, known in among if structural_equal(known, function)), None)


def _glance(function: Function) -> object:
    """What equal functions have in common and is quickly seen."""
    if isinstance(function, tir.PrimFunc):
        buffers = [function.buffer_map.get(v) for v in function.params]
        params = [v.dtype if b is None else (b.dtype, _dims(b.shape)) for v, b in zip(function.params, buffers)]
        return tuple(params), tuple(_block_names(function.body))
    values = [b.value for block in function.body.blocks for b in block.bindings]
    return tuple(_kind(p.struct_info) for p in function.params), tuple(map(_callee, values))


def _block_names(body: tir.Stmt) -> list[str]:
    """The names of the blocks of a kernel, as far as loops and sequences lead to them."""
    found: list[str] = []
    stack: list[tir.Stmt] = [body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, tir.SeqStmt):
            stack += stmt.seq
        elif isinstance(stmt, tir.For):
            stack.append(stmt.body)
        elif isinstance(stmt, tir.BlockRealize):
            found.append(stmt.block.name_hint)
            stack.append(stmt.block.body)
    return found


def _kind(info: StructInfo) -> object:
    if isinstance(info, TensorStructInfo):
        return info.dtype, info.ndim, None if info.dims is None else _dims(info.dims)
    return info.__class__


def _dims(dims: tuple[prim.PrimExpr, ...]) -> tuple[int | None, ...]:
    return tuple([d.value if isinstance(d, prim.IntImm) else None for d in dims])


def _callee(value: relax.Expr) -> object:
    """What a binding calls: the operator, and of `call_tir` and its like the kernel."""
    if not isinstance(value, relax.Call):
        return value.__class__
    return _name(value.op), _name(value.args[0]) if value.args else None


def _name(value: relax.Expr) -> str | None:
    return value.name if isinstance(value, (relax.Op, relax.GlobalVar, relax.ExternFunc)) else None
