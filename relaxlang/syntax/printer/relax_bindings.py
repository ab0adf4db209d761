"""Bindings, dataflow blocks, conditionals and functions of Relax.

A branch of a conditional ends with `y = …`, where `y` is what the whole conditional is bound to. If what stands there
is a leaf (a variable, a constant, a shape, a tuple) without an annotation it is the branch's value itself; else it is
the branch's last binding, and the branch's value is the variable that it binds.
"""

from __future__ import annotations

from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.struct_info import OBJECT, FuncStructInfo, PrimStructInfo, StructInfo
from relaxlang.ir.structural import same_struct_info
from relaxlang.syntax.document import Doc, bracket, concat
from relaxlang.syntax.printer.as_written import bindings_as_written, body_as_written
from relaxlang.syntax.printer.core import Printer, emits
from relaxlang.syntax.printer.sources import declares_result, is_cast, leaves_tuple_open
from relaxlang.syntax.printer.types import annotation_needed, standing_alone
from relaxlang.syntax.printer.values import mapping_doc
from relaxlang.syntax.scalars import string_text
from relaxlang.syntax.spellings import attribute_key
from relaxlang.syntax.struct_info import bound_vars, call_result, erase, unify

_LEAVES = (
    relax.Var, relax.Constant, relax.ShapeExpr, relax.PrimValue, relax.StringImm, relax.DataTypeImm, relax.GlobalVar,
    relax.ExternFunc, relax.Tuple,
)  # fmt: skip


# --- bindings ---------------------------------------------------------------------------------------------------------
@emits(relax.VarBinding)
def _var_binding(p: Printer, node: relax.VarBinding) -> None:
    bind(p, node.var, node.value)


@emits(relax.MatchCast)
def _match_cast(p: Printer, node: relax.MatchCast) -> None:
    _emit_match_cast(p, node, node.var)


def bind(p: Printer, var: relax.Var, value: relax.Expr, *, annotate: bool = True) -> None:
    """The lines of `var = value`; `annotate`: whether the variable's struct info may be stated."""
    if isinstance(value, relax.Function) and (not annotate or _declares(p, var, value)):
        name = p.define(var, var.name)
        emit_function(p, value, name, nested=True)
        return
    if isinstance(value, relax.If):
        condition = p.doc(value.condition)
        name = p.define(var, var.name)
        if annotate and annotation_needed(p, var, value.struct_info):
            p.line(concat(name, ": ", p.doc(var.struct_info)))
        _conditional(p, value, var, condition)
        return
    doc = p.doc(value)
    p.line(concat(_target(p, var, _inferred(p, value), annotate), " = ", doc))


def _declares(p: Printer, var: relax.Var, value: relax.Function) -> bool:
    """Whether `def var(…)` says all; a variable with struct info of its own is bound in a second line."""
    return not annotation_needed(p, var, value.struct_info) or p.options.types == "all"


def _inferred(p: Printer, value: relax.Expr) -> StructInfo | None:
    """What the parser will infer: of a call of the module's functions the result in terms of the arguments, which a
    pass may have written in another way."""
    callee = value.op if isinstance(value, relax.Call) else None
    if p.module is None or not isinstance(callee, relax.GlobalVar):
        return value.struct_info
    function = p.module.functions.get(callee.name)
    if not isinstance(function, relax.Function) or not isinstance(value, relax.Call):
        return value.struct_info
    info = function.struct_info
    mapping: dict[prim.Var, prim.PrimExpr] = {}
    if not isinstance(info, FuncStructInfo) or len(info.params or ()) != len(value.args):
        return value.struct_info
    for param, arg in zip(info.params or (), value.args):
        unify(param, arg.struct_info or OBJECT, mapping)
    return call_result(info, mapping)


def _target(p: Printer, var: relax.Var, inferred: StructInfo | None, annotate: bool = True) -> Doc:
    info = p.doc(var.struct_info) if annotate and annotation_needed(p, var, inferred) else None
    name = p.define(var, var.name)
    return name if info is None else concat(name, ": ", info)


def _emit_match_cast(p: Printer, node: relax.MatchCast, var: relax.Var) -> None:
    value = p.doc(node.value)
    if p.options.dialect is None:  # releases of TVM want what a cast defines to be declared first
        for dim in standing_alone(node.struct_info):
            p.define_dimension(dim, lasting=True)
    info = p.doc(node.struct_info)
    if p.options.dialect is not None and not is_cast(node):
        p.line(concat(p.define(var, var.name), ": ", info, " = ", value))
        return
    call = bracket(f"{p.spell('R.match_cast')}(", [value, info], ")")
    p.line(concat(_target(p, var, node.struct_info), " = ", call))


# --- blocks -----------------------------------------------------------------------------------------------------------
@emits(relax.BindingBlock)
def _block(p: Printer, node: relax.BindingBlock) -> None:
    for binding in bindings_as_written(p, node.bindings):
        p.emit(binding)


@emits(relax.DataflowBlock)
def _dataflow(p: Printer, node: relax.DataflowBlock) -> None:
    p.line(f"with {p.spell('R.dataflow')}():")
    p.indent += 1
    outputs: list[Doc] = []
    for binding in bindings_as_written(p, node.bindings):
        p.emit(binding)
        if not isinstance(binding.var, relax.DataflowVar):
            outputs.append(p.doc(binding.var))
    p.line(bracket(f"{p.spell('R.output')}(", outputs, ")"))
    p.indent -= 1


@emits(relax.SeqExpr)
def _seq_expr(p: Printer, node: relax.SeqExpr) -> None:
    for block in node.blocks:
        p.emit(block)
    result = p.doc(node.body)
    p.line(concat("return ", result))


# --- conditionals -----------------------------------------------------------------------------------------------------
def _conditional(p: Printer, node: relax.If, var: relax.Var, condition: Doc) -> None:
    p.line(concat("if ", condition, ":"))
    _branch(p, node.true_branch, var)
    p.line("else:")
    _branch(p, node.false_branch, var)


def _branch(p: Printer, branch: relax.Expr, var: relax.Var) -> None:
    """The bindings of a branch, the last under the name of the conditional's variable."""
    p.indent += 1
    p.names.enter()
    if not isinstance(branch, relax.SeqExpr):
        branch = relax.SeqExpr((), branch)
    last = _result_binding(branch)
    for block in branch.blocks[:-1] if last is not None else branch.blocks:
        p.emit(block)
    if last is None:
        _assign_result(p, var, branch.body)
    else:
        for binding in bindings_as_written(p, branch.blocks[-1].bindings)[:-1]:
            p.emit(binding)
        name = p.names.get(var) or var.name
        if isinstance(last, relax.VarBinding) and isinstance(last.value, _LEAVES):
            p.line(concat(name, ": ", p.doc(last.var.struct_info), " = ", p.doc(last.value)))
        else:
            p.names.bind(last.var, name)
            p.emit(last)
    p.names.leave()
    p.indent -= 1


def _assign_result(p: Printer, var: relax.Var, body: relax.Expr) -> None:
    if isinstance(body, relax.If):
        _conditional(p, body, var, p.doc(body.condition))
    else:
        p.line(concat(p.names.get(var) or var.name, " = ", p.doc(body)))


def _result_binding(branch: relax.SeqExpr) -> relax.Binding | None:
    """The last binding of a branch, when its variable is the branch's value and one line can say both."""
    if not branch.blocks or branch.blocks[-1].__class__ is not relax.BindingBlock or not branch.blocks[-1].bindings:
        return None
    last = branch.blocks[-1].bindings[-1]
    if last.var is not branch.body or isinstance(last.var, relax.DataflowVar):
        return None
    if isinstance(last, relax.MatchCast):
        return last
    needs_type = isinstance(last.value, _LEAVES) and last.var.struct_info is None
    return None if needs_type or isinstance(last.value, relax.Function) else last


# --- functions --------------------------------------------------------------------------------------------------------
@emits(relax.Function)
def _function(p: Printer, node: relax.Function) -> None:
    emit_function(p, node, str(node.attrs.get("global_symbol", "main")), nested=False)


def emit_function(p: Printer, node: relax.Function, name: str, *, nested: bool, symbol: str | None = None) -> None:
    """The definition of a function. `name` is what follows `def`; `symbol` its name in the module when that is no
    identifier."""
    p.int_dtype = prim.INT64
    p.line(_decorator(node, nested, symbol))
    p.names.enter(function=True)
    outer_head = p.head
    if not nested:
        p.dimension_names.clear()
    infos = [param.struct_info for param in node.params]
    for param in node.params:
        _define_number(p, param, [info for other, info in zip(node.params, infos) if other is not param])
    for info in infos:
        for dim in standing_alone(info):
            p.define_dimension(dim)
    params = [p.define(param, param.name) for param in node.params]
    at = len(p.lines)
    p.indent += 1
    p.head = p.slot()
    p.quoting = p.options.dialect is not None
    items = [concat(text, ": ", p.doc(info)) for text, info in zip(params, infos)]
    result = None if _is_inferred(p, node) else node.ret_struct_info
    returns: Doc = concat(" -> ", p.doc(result), ":") if result is not None else ":"
    if p.options.dialect is not None and leaves_tuple_open(node):
        returns = " -> R.Tuple:"
    p.quoting = False
    p.indent -= 1
    p.lines.insert(at, (p.indent, concat(f"def {name}", bracket("(", items, ")"), returns)))
    p.indent += 1
    attrs = function_attrs(p, node.attrs, symbol or name, nested)
    if attrs:
        p.line(concat("R.func_attr(", mapping_doc(p, attrs), ")"))
    here, used = len(p.lines), p.uses_module
    p.uses_module = used and nested
    outer, p.function, p.uses = p.function, node, None
    p.emit(body_as_written(p, node))
    p.function, p.uses = outer, None
    if p.uses_module and not nested and p.module is not None:
        p.lines.insert(here, (p.indent, f"cls = {p.module_name}"))
    p.uses_module = p.uses_module or used
    p.indent -= 1
    p.head = outer_head
    p.names.leave()


def _define_number(p: Printer, param: relax.Var, others: list[StructInfo]) -> None:
    """Since TVM 0.27 a parameter that is a number is the dimension of its name, which another parameter has."""
    info = param.struct_info
    if p.since("tvm-0.27") and isinstance(info, PrimStructInfo) and isinstance(info.value, prim.Var):
        if p.names.get(info.value) is None and any(info.value in standing_alone(other) for other in others):
            p.names.bind(info.value, p.define(param, param.name))
            p.numbers.add(info.value)


def _is_inferred(p: Printer, node: relax.Function) -> bool:
    """Whether a release shall infer the result, as it would from the source: the body gives it."""
    inferred, result = node.body.struct_info, node.ret_struct_info
    if p.options.dialect is None or inferred is None or result is None or declares_result(node):
        return False
    if same_struct_info(inferred, result):
        return True
    known = bound_vars(tuple(info for param in node.params if (info := param.struct_info) is not None))
    return same_struct_info(erase(inferred, known, set(node.params)), result)


def _decorator(node: relax.Function, nested: bool, symbol: str | None) -> Doc:
    items: list[Doc] = []
    if not nested and node.is_private:
        items.append("private=True")
    if not node.is_pure:
        items.append("pure=False")
    if symbol is not None:
        items.append(f"name={string_text(symbol)}")
    return bracket("@R.function(", items, ")") if items else "@R.function"


def function_attrs(p: Printer, attrs: Attrs, name: str, nested: bool) -> Attrs:
    """The attributes that are written out: all but a `global_symbol` that is the function's name."""
    if not nested and attrs.get("global_symbol") == name:
        attrs = attrs.without("global_symbol")
    return Attrs({attribute_key(key, p.options.dialect): value for key, value in attrs.items()})
