"""Normal form undone where a release of TVM would see the difference.

Here every value has a name, and an annotation that says more than is known is a cast. TVM leaves a call inside
`R.match_cast(…)` where it is and keeps such annotations as they are. So the print for a release puts values back into
the place that they were taken from, when the source did not name them and nothing else uses them, and leaves out the
casts that reading the text makes again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from relaxlang.ir import relax
from relaxlang.ir.structural import same_struct_info
from relaxlang.ir.visit import walk
from relaxlang.syntax.printer.core import Printer
from relaxlang.syntax.printer.sources import declares_result, is_cast, names_nothing


def body_as_written(p: Printer, function: relax.Function) -> relax.SeqExpr:
    """The body; for a release without a last cast that the declared result implies, or a name for the result alone."""
    body = function.body
    while p.options.dialect is not None and body.blocks and body.blocks[-1].__class__ is relax.BindingBlock:
        block = body.blocks[-1]
        last = block.bindings[-1] if block.bindings else None
        if last is None or last.var is not body.body or not _is_result(last, function):
            break
        kept = block.replace(bindings=block.bindings[:-1])
        body = body.replace(blocks=(*body.blocks[:-1], kept), body=last.value)
    return body


def _is_result(last: relax.Binding, function: relax.Function) -> bool:
    if not names_nothing(last.var) or isinstance(last.value, (relax.If, relax.Function)):
        return False
    if not isinstance(last, relax.MatchCast):
        return isinstance(last.value, relax.Call) and not _is_constant(last.value) and _uses(function)[last.var] == 2
    result = function.ret_struct_info
    return not is_cast(last) and result is not None and declares_result(function) and (
        same_struct_info(last.struct_info, result)
    )  # fmt: skip


def bindings_as_written(p: Printer, bindings: Sequence[relax.Binding]) -> list[relax.Binding]:
    """The bindings that are written out; those that are left out are known to the printer as values."""
    if p.options.dialect is None:
        return list(bindings)
    kept: list[relax.Binding] = []
    for binding, after in zip(bindings, (*bindings[1:], None)):
        if names_nothing(binding.var) and _goes_into(binding, after) and _count(p, binding.var) == 2:
            p.values[binding.var] = binding.value
        else:
            kept.append(binding)
    return kept


def _goes_into(binding: relax.Binding, after: relax.Binding | None) -> bool:
    """Whether a value that has no name in the source stands in the binding after it."""
    value = binding.value
    if isinstance(binding, relax.MatchCast):  # of an argument, to what the function of the module takes
        call = after.value if after is not None else None
        of_function = isinstance(call, relax.Call) and isinstance(call.op, relax.GlobalVar)
        return not is_cast(binding) and of_function and binding.var in getattr(call, "args", ())
    if isinstance(value, relax.Call) and _is_constant(value):
        return True
    return isinstance(after, relax.MatchCast) and after.value is binding.var and isinstance(value, relax.Call)


def _is_constant(call: relax.Call) -> bool:
    return isinstance(call.op, relax.Op) and call.op.name == "dist.const"


def _count(p: Printer, var: relax.Var) -> int:
    """How often a variable stands in the function that is printed; its definition counts."""
    if p.uses is None:
        p.uses = _uses(p.function) if p.function is not None else Counter()
    return p.uses[var]


def _uses(function: relax.Function) -> Counter[relax.Var]:
    return Counter(node for node in walk(function.body) if isinstance(node, relax.Var))
