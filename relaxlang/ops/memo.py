"""What was found out once in this process about a call: a second call of one signature costs a look-up.

A signature is the definition, the attributes, and of each argument its dtype and dimensions or its constant value;
symbolic dimensions count by their names, so that a kernel reads the same as one that is made anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from relaxlang.base.dtype import DType
from relaxlang.ir import prim, relax
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.ops.definition import OpDef
from relaxlang.ops.kernel import Kernel

_MOST = 4096
"""Signatures that are kept; beyond, all are forgotten."""


class InfoMemo:
    """Remembers the struct info of results by signature. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[OpDef, StructInfo, dict[str, prim.Var]]] = {}
        self._lock = threading.Lock()

    def infer(
        self, definition: OpDef, call: relax.Call, infer: Callable[[OpDef, relax.Call], StructInfo]
    ) -> StructInfo:
        """The struct info of a call's result: a known one of its signature, or what `infer` says."""
        found = _signature(definition, call, _leaves(call))
        if found is None:
            return infer(definition, call)
        key, variables = found
        known = self._known.get(key)
        if known is not None:
            _, info, before = known
            return substitute(info, {var: variables[name] for name, var in before.items()})
        info = infer(definition, call)
        with self._lock:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = definition, info, variables
        return info


class KernelMemo:
    """Remembers kernels by signature. Thread-safe."""

    def __init__(self) -> None:
        # The kernels are without arguments: they would keep the weights of models alive.
        self._known: dict[object, tuple[OpDef, Kernel, list[int], dict[str, prim.Var]]] = {}
        self._lock = threading.Lock()

    def lower(
        self, definition: OpDef, call: relax.Call, make: Callable[[], Kernel | relax.Expr]
    ) -> Kernel | relax.Expr:
        """The kernel of a call: a known one of its signature for these arguments, or `make()`."""
        given = _leaves(call)
        found = _signature(definition, call, given)
        if found is None:
            return make()
        key, variables = found
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            _, kernel, places, before = known
            args = tuple(given[k] for k in places)
            dims: dict[prim.Var, prim.PrimExpr] = {var: variables[name] for name, var in before.items()}
            return _rebound(kernel, args, dims, call)
        made = make()
        if isinstance(made, Kernel) and not made.casts and made.finish is None and all(a in given for a in made.args):
            places = [given.index(a) for a in made.args]
            with self._lock:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[key] = definition, made.replace(args=()), places, variables
        return made


def _rebound(
    kernel: Kernel, args: tuple[relax.Expr, ...], dims: dict[prim.Var, prim.PrimExpr], call: relax.Call
) -> Kernel:
    """A kernel with the arguments and the symbolic dimensions of another call."""
    return kernel.replace(
        args=args,
        tir_vars=tuple(substitute(v, dims) for v in kernel.tir_vars),
        out=substitute(kernel.out, dims),
        span=call.span,
    )


def _leaves(call: relax.Call) -> list[relax.Expr]:
    """The arguments of a call; of a tuple its fields."""
    return [leaf for a in call.args for leaf in (a.fields if isinstance(a, relax.Tuple) else (a,))]


def _signature(
    definition: OpDef, call: relax.Call, given: list[relax.Expr]
) -> tuple[object, dict[str, prim.Var]] | None:
    """What a kernel or result depends on, and the variables by name. None when something in it is not known, or can't
    be compared at once."""
    if call.sinfo_args or not all(_is_plain(v) for v in call.attrs.values()):
        return None
    parts: list[object] = [id(definition), len(call.args)]
    parts += [len(a.fields) if isinstance(a, relax.Tuple) else -1 for a in call.args]
    variables: dict[str, prim.Var] = {}
    places: dict[relax.Expr, int] = {}
    for leaf in given:
        if isinstance(leaf, relax.PrimValue):
            value = leaf.value
            if not isinstance(value, (prim.IntImm, prim.FloatImm)):
                return None
            parts.append((value.dtype, repr(value.value)))
            continue
        info, of, values = leaf.struct_info, None, None
        if isinstance(leaf, relax.ShapeExpr):
            values = leaf.values
        elif isinstance(leaf, (relax.Var, relax.Constant)) and isinstance(info, TensorStructInfo):
            of, values = info.dtype, info.dims
        dims = None if values is None else _dims(values, variables)
        if dims is None:
            return None
        parts.append((places.setdefault(leaf, len(places)), of, dims))
    # As text, because 1, 1.0 and True are equal, and so are 0.0 and -0.0.
    return (*parts, *((name, repr(value)) for name, value in call.attrs.items())), variables


def _dims(values: tuple[prim.PrimExpr, ...], variables: dict[str, prim.Var]) -> tuple[object, ...] | None:
    """Dimensions by value, or by the text of the expression; None when two variables have one name."""
    made: list[object] = []
    for dim in values:
        if isinstance(dim, prim.IntImm):
            made.append(dim.value)
            continue
        free = free_vars(dim)
        if any(variables.setdefault(var.name, var) is not var for var in free):
            return None
        made.append((str(dim), tuple((v.name, type(v), v.dtype) for v in free)))
    return tuple(made)


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str, DType))
