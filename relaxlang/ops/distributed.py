"""Operators on tensors that are spread over a mesh of devices (`R.DTensor`): what is known of their results.

Elementwise operators leave every part where it is; those with parameters `device_mesh` and `placement` say where the
parts go. Of other results nothing is known, and what a program declares is taken.
"""

from __future__ import annotations

from relaxlang.ir import relax
from relaxlang.ir.struct_info import OBJECT, DTensorStructInfo, StructInfo, TensorStructInfo
from relaxlang.ops.definition import OpDef
from relaxlang.ops.elaborate import infer_call
from relaxlang.syntax.struct_info import is_distributed


def is_spread(call: relax.Call) -> bool:
    """Whether an argument of a call is, or holds, a tensor that is spread over devices."""
    return any(is_distributed(a.struct_info) for a in call.args)


def infer_spread(definition: OpDef, call: relax.Call) -> StructInfo:
    """The struct info of the result of a call with spread tensors; `R.Object` where nothing is known."""
    infos = [a.struct_info for a in call.args]
    given = dict(zip((p.name for p in definition.arg_params), call.args))
    mesh, placement = given.get("device_mesh"), given.get("placement")
    if isinstance(mesh, relax.StringImm) and isinstance(placement, relax.StringImm):
        of = infos[0]
        return of.replace(mesh=mesh.value, placement=placement.value) if isinstance(of, DTensorStructInfo) else OBJECT
    rule = definition.layout_rule
    if rule is None or rule.function.name != "follow" or not all(isinstance(i, DTensorStructInfo) for i in infos):
        return OBJECT
    spread = [i for i in infos if isinstance(i, DTensorStructInfo)]
    if len({(i.mesh, i.placement, i.tensor.ndim) for i in spread}) != 1:
        return OBJECT
    whole = [relax.Var("whole", i.tensor, span=a.span) for i, a in zip(spread, call.args)]
    result = infer_call(definition, call.replace(args=tuple(whole)))
    known = isinstance(result, TensorStructInfo) and result.ndim == spread[0].tensor.ndim
    return spread[0].replace(tensor=result) if known else OBJECT
