"""Whether calls pass what is taken: `R.call_tir` and its kin to a kernel, others to a function.

What is known of the functions of the module comes as an argument, since elaboration asks while it makes them and
`analysis.contradictions` when they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Label
from relaxlang.base.source import Span
from relaxlang.ir import prim, relax
from relaxlang.ir.struct_info import OBJECT, FuncStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ir.visit import free_vars
from relaxlang.syntax.comptime import error
from relaxlang.syntax.struct_info import BaseCheck, base_check, dims_of, replaced, unify

Known = Callable[[relax.GlobalVar], StructInfo | None]
"""What is known of a function of the module."""
DefinedAt = Callable[[str], list[Label]]
"""The place of a function of the module, as a second label."""


def check_count(name: str, info: FuncStructInfo, call: relax.Call, defined_at: DefinedAt) -> None:
    """Raises DiagnosticError when a function is not passed as many arguments as it takes."""
    wanted, given = len(info.params or ()), len(call.args)
    if wanted != given:
        takes = f"`{name}` takes {wanted} argument{'' if wanted == 1 else 's'}"
        text = f"{takes}, {given} {'was' if given == 1 else 'were'} given"
        raise DiagnosticError([Diagnostic("RLX0207", text, call.span, labels=defined_at(name))])


def matched(info: FuncStructInfo, args: Sequence[relax.Expr]) -> dict[prim.Var, prim.PrimExpr]:
    """What the symbols of a function are in a call."""
    mapping: dict[prim.Var, prim.PrimExpr] = {}
    for param, arg in zip(info.params or (), args):
        unify(param, arg.struct_info or OBJECT, mapping)
    return mapping


def unfit(
    name: str, at: int, wanted: StructInfo, given: StructInfo, place: Span | None, defined_at: DefinedAt
) -> DiagnosticError:
    """The error of an argument that is not of its parameter's struct info."""
    help = "make it known with `R.match_cast`" if base_check(wanted, given) is BaseCheck.CAST else ""
    text = f"argument {at + 1} of `{name}` must be `{wanted}`, and is `{given}`"
    return DiagnosticError([Diagnostic("RLX0208", text, place, label=f"`{given}`", labels=defined_at(name), help=help)])


def passed_to_kernel(call: relax.Call) -> list[StructInfo]:
    """What `R.call_tir` and its kin pass a kernel, results included; raises DiagnosticError where no kernel could take
    it."""
    args, outs = call.args[1], call.sinfo_args[0]
    assert isinstance(args, relax.Tuple)
    given = [f.struct_info or OBJECT for f in args.fields]
    for at, info in enumerate(given):
        if isinstance(info, TupleStructInfo):
            raise error(
                "RLX0206", f"argument {at + 1} of the kernel is a tuple; a kernel takes tensors and scalars", call.span
            )
    results = list(outs.fields) if isinstance(outs, TupleStructInfo) else [outs]
    if "inplace_indices" in call.attrs:
        results = _in_place(call, given, results)
    return [*given, *results]


def check_kernel_call(call: relax.Call, passed: list[StructInfo], known: Known, defined_at: DefinedAt) -> None:
    """Raises DiagnosticError when the count, element type, rank or a constant dimension of what a call passes is not
    what the kernel's buffers say. A kernel that is not known (yet) is taken to fit."""
    kernel = call.args[0]
    if isinstance(kernel, relax.GlobalVar):
        _check_parameters(kernel, call, passed, known, defined_at)


def _in_place(call: relax.Call, given: list[StructInfo], results: list[StructInfo]) -> list[StructInfo]:
    """The results that need memory of their own; the others are checked against the arguments that they overwrite."""
    places = call.attrs["inplace_indices"]
    if len(places) != len(results):
        raise error("RLX0207", f"{len(results)} results have {len(places)} `inplace_indices`", call.span,
                    help="give one for each result, -1 for memory of its own")  # fmt: skip
    taken = [k for k in places if k != -1]
    if len(set(taken)) != len(taken):
        raise error("RLX0209", "two results are written over the same argument", call.span)
    for at, result in zip(places, results):
        if at == -1:
            continue
        if not 0 <= at < len(given):
            raise error("RLX0209", f"there is no argument {at} to write a result to", call.span)
        if base_check(result, given[at]) is BaseCheck.NEVER:
            raise error(
                "RLX0209", f"the result `{result}` is written over argument {at}, which is `{given[at]}`", call.span
            )
    return [r for at, r in zip(places, results) if at == -1]


def _check_parameters(
    kernel: relax.GlobalVar, call: relax.Call, given: list[StructInfo], known: Known, defined_at: DefinedAt
) -> None:
    info = known(kernel)
    if not isinstance(info, FuncStructInfo) or info.params is None:
        return
    shape = call.args[2] if len(call.args) > 2 else None
    extra = len(shape.values) if isinstance(shape, relax.ShapeExpr) else 0
    if len(given) + extra != len(info.params):
        count = len(given) + extra
        text = f"the kernel `{kernel.name}` takes {len(info.params)} arguments, {count} were given, results included"
        raise DiagnosticError([Diagnostic("RLX0207", text, call.span, labels=defined_at(kernel.name))])
    symbols: dict[prim.Var, prim.PrimExpr] = {}
    for at, (param, arg) in enumerate(zip(info.params, given)):
        if isinstance(param, TensorStructInfo) and isinstance(arg, TensorStructInfo):
            unify(param, arg, symbols)
            wanted = certain(param, symbols)
            if base_check(wanted, arg) is BaseCheck.NEVER:
                of = dict(zip(param.dims or (), dims_of(wanted) or ()))
                values = {
                    v.name: d.value if isinstance(d, prim.IntImm) else d
                    for v, d in of.items()
                    if isinstance(v, prim.Var)
                }
                bound = ", ".join(f"{name} = {value}" for name, value in values.items())
                text = f"argument {at + 1} of the kernel `{kernel.name}` must be `{wanted}`, and is `{arg}`"
                text += f" ({bound})" if bound else ""
                raise DiagnosticError([Diagnostic("RLX0209", text, call.span, labels=defined_at(kernel.name))])


def certain(param: TensorStructInfo, symbols: Mapping[prim.Var, prim.PrimExpr]) -> TensorStructInfo:
    """What is certain of a buffer while compiling, given what the arguments before it say of the kernel's symbols."""
    if param.dims is None:
        return TensorStructInfo(None, param.dtype, param.ndim)
    if not symbols.keys() >= set(free_vars(param.dims)):
        return TensorStructInfo(None, param.dtype, param.ndim)
    made = replaced(param, symbols)
    dims = tuple(prim.cast(d, prim.INT64) for d in dims_of(made) or ())
    return TensorStructInfo(dims, param.dtype, param.ndim)
