"""The body of a Relax function: from the surface tree to bindings in normal form.

Operands are bound before what uses them, in the order they are written: to `lv`, `lv1`, … in a dataflow block, to `gv`,
`gv1`, … outside. Variables, constants, shapes, scalars and tuples stand as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.base.suggest import suggestion
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import (
    OBJECT,
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import BUILTINS, Evaluator, Scope, Value, describe, error, silent
from relaxlang.syntax.core_ops import CORE_OPS
from relaxlang.syntax.elaborate.annotations import WILDCARD
from relaxlang.syntax.elaborate.dims import define_dimensions, quoted_tree
from relaxlang.syntax.elaborate.kernel_calls import (
    certain,
    check_count,
    check_kernel_call,
    matched,
    passed_to_kernel,
    unfit,
)
from relaxlang.syntax.elaborate.module_ref import result_known
from relaxlang.syntax.elaborate.relax_inspect import inspected
from relaxlang.syntax.elaborate.relax_names import CastValue, prim_value
from relaxlang.syntax.elaborate.scalars import Fresh
from relaxlang.syntax.elaborate.tir_names import fresh
from relaxlang.syntax.elaborate.unit import Unit
from relaxlang.syntax.spellings import BARE_NAMES
from relaxlang.syntax.struct_info import BaseCheck, base_check, call_result, replaced

UNKNOWN = cast(StructInfo, None)
"""The struct info of variables in a module that is read without checking."""

COMPOUND = (relax.Call, relax.TupleGetItem, relax.If, relax.Function)
_BOUND_FIRST = (*COMPOUND, CastValue)
INFIX = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "floor_mod", "**": "power",
    "==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
}  # fmt: skip
"""What Python's operators mean between tensors."""
BITWISE = {
    "&": ("logical_and", "bitwise_and"), "|": ("logical_or", "bitwise_or"), "^": ("logical_xor", "bitwise_xor"),
    "<<": ("left_shift", "left_shift"), ">>": ("right_shift", "right_shift"),
}  # fmt: skip
"""The operators on bits between tensors: on truth values, and on integers."""


class BuiltinOrOperator(Value):
    """`sum`, alone: the builtin for values known while compiling, the operator of scripts of 2021 for tensors."""

    def __init__(self, builtin: Any, operator: Any) -> None:
        self.builtin = builtin
        self.operator = operator
        self.kind = builtin.kind

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        known = not any(isinstance(a, relax.Expr) for a in (*args, *kwargs.values()))
        return ev.call(self.builtin if known else self.operator, args, kwargs, node)


class Frame:
    """A `SeqExpr` in the making: finished blocks, and the bindings of the open one."""

    def __init__(self) -> None:
        self.blocks: list[relax.BindingBlock] = []
        self.bindings: list[relax.Binding] = []
        self.dataflow = False

    def close(self, kind: type[relax.BindingBlock] = relax.BindingBlock) -> None:
        """End the open block."""
        if self.bindings:
            self.blocks.append(kind(tuple(self.bindings), span=self.bindings[0].span))
            self.bindings = []


class RelaxElaborator(Evaluator):
    """Evaluates the expressions of one Relax function; statements are in `relax_function`."""

    def __init__(self, unit: Unit) -> None:
        super().__init__()
        self.unit = unit
        self.check = unit.check
        self.frame = Frame()
        self.attrs: dict[str, Any] = {}
        self.signature_vars: dict[str, prim.Var] = {}
        self.fresh_names = {"lv": 0, "gv": 0}
        self.outputs: list[Any] | None = None
        self.local_names: set[str] = set()
        self.scope: Scope = Scope()
        self.macro_depth = self.macro_calls = 0
        self.here: Scope | None = None
        self.run_statements: Callable[[tuple[tree.Stmt, ...], Scope], None] | None = None

    # --- bindings -----------------------------------------------------------------------------------------------------
    def new_name(self) -> str:
        """`lv`, `lv1`, … inside a dataflow block, `gv`, `gv1`, … outside."""
        hint = "lv" if self.frame.dataflow else "gv"
        n = self.fresh_names[hint]
        self.fresh_names[hint] = n + 1
        return f"{hint}{n or ''}"

    def emit(
        self,
        value: Any,
        name: str | None = None,
        info: StructInfo | None = None,
        *,
        local: bool = True,
        span: Span | None = None,
    ) -> relax.Var:
        """Bind a value; `info` overrides what was inferred; `local=False` in a dataflow block makes it an output."""
        if name is None:
            name = self.new_name()
        kind = relax.DataflowVar if self.frame.dataflow and local else relax.Var
        if isinstance(value, CastValue):
            var = kind(name, info or value.info, span=span or value.span)
            self.frame.bindings.append(relax.MatchCast(var, value.value, value.info, span=span or value.span))
            return var
        if isinstance(value, relax.GlobalVar) and value.struct_info is None and self.check:
            value = value.replace(struct_info=result_known(self.unit, value))
        known = info or value.struct_info
        var = kind(name, known if known is not None else UNKNOWN if not self.check else OBJECT, span=span or value.span)
        self.frame.bindings.append(relax.VarBinding(var, value, span=span or value.span))
        return var

    # --- evaluation ---------------------------------------------------------------------------------------------------
    def expr(self, node: tree.Expr, scope: Scope) -> Any:
        value = self.evaluate(node, scope)
        if isinstance(value, relax.GlobalVar) and isinstance(node, tree.Name) and node.id not in self.unit.values:
            self.unit.bare_names = True
        return self.emit(value) if isinstance(value, _BOUND_FIRST) else value

    def lift(self, value: Any, span: Span | None, *, shape: bool = False) -> relax.Expr:
        """A value as an expression of Relax that may be an argument. `shape`: tuples of dimensions are shapes."""
        if isinstance(value, _BOUND_FIRST):
            return self.emit(value)
        if isinstance(value, relax.Expr):
            return value
        if isinstance(value, (tuple, list)):
            if shape and value and all(isinstance(v, (int, PrimExpr)) for v in value):
                return relax.ShapeExpr(
                    tuple(prim.cast(prim.as_prim(v, prim.INT64), prim.INT64) for v in value), span=span
                )
            return relax.Tuple(tuple(self.lift(v, span) for v in value), span=span)
        if isinstance(value, bool):  # as an argument it is a number; `R.prim_value(True)` is a bool
            return prim_value(int(value), span)
        if isinstance(value, (int, float, PrimExpr)):
            return prim_value(value, span)
        if isinstance(value, str):
            return relax.StringImm(value, span=span)
        if isinstance(value, DType):
            return relax.DataTypeImm(value, span=span)
        raise error("RLX0225", f"{describe(value)} is no value of Relax", span)

    def construct(self, of: DType, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        made = fresh(of, args, kwargs, node)
        return made if made is not None else super().construct(of, args, kwargs, node)

    def unknown_name(self, node: tree.Name, scope: Scope) -> Any:
        if node.id == "_":
            return WILDCARD
        if node.id in self.local_names:
            raise error("RLX0432", f"`{node.id}` ends with its dataflow block", node.span,
                        help=f"add it to the block's outputs: `R.output({node.id})`")  # fmt: skip
        bare = BARE_NAMES.get(node.id)
        found = scope.find("R") if bare is not None else None
        if bare is not None and found is not None:
            self.unit.bare_names = True
            return self.attribute(found.names["R"], bare[2:], node.span)
        return super().unknown_name(node, scope)

    def callee(self, node: tree.Expr, scope: Scope) -> Any:
        """What is called; scripts of 2021 call operators by their bare names."""
        if isinstance(node, tree.Name) and scope.find(node.id) is None and node.id not in BARE_NAMES:
            found = scope.find("R")
            if found is not None and self.unit.operators.has(node.id):
                operator = self.attribute(found.names["R"], node.id, node.span)
                return BuiltinOrOperator(BUILTINS[node.id], operator) if node.id in BUILTINS else operator
        return self.expr(node, scope)

    def call_node(self, node: tree.Call, scope: Scope) -> Any:
        name = (
            node.func.attr
            if isinstance(node.func, tree.Attribute)
            else node.func.id
            if isinstance(node.func, tree.Name)
            else ""
        )
        if name == "match_cast" and len(node.args) + len(node.keywords) == 2:
            info = node.args[1] if len(node.args) == 2 else node.keywords[0].value
            define_dimensions([info], {}, self.scope)
        elif name == "match_shape":
            for arg in node.args:
                if isinstance(arg, (tree.TupleExpr, tree.ListExpr)):
                    define_dimensions([tree.Call(tree.Name("Shape"), (arg,), ())], {}, self.scope)
        return super().call_node(node, scope)

    def quoted(self, text: str, place: tree.Expr) -> Any:
        """The value of an expression in a string: a dimension such as `"n * 2"`."""
        return self.expr(quoted_tree(self.unit, text, place), self.scope)

    # --- operators ----------------------------------------------------------------------------------------------------
    def binary(self, op: str, a: Any, b: Any, span: Span | None) -> Any:
        if isinstance(a, relax.Expr) or isinstance(b, relax.Expr):
            left, right = _as_scalar(a), _as_scalar(b)
            if left is not None and right is not None:
                return super().binary(op, left, right, span)
            name = self._operator_of(op, a, b)
            if name is None or not self._tensorial(a) or not self._tensorial(b):
                raise error("RLX0112", f"`{op}` is not defined for {self.said(a)} and {self.said(b)}", span)
            return self.operator(name, [a, b], {}, span)
        return super().binary(op, a, b, span)

    def _operator_of(self, symbol: str, *operands: Any) -> str | None:
        """The name of the operator that a symbol stands for between operands."""
        if symbol in BITWISE:
            return BITWISE[symbol][not any(_is_truth(a) for a in operands)]
        return INFIX.get(symbol) or self.unit.operators.sugar(symbol)

    @staticmethod
    def _tensorial(value: Any) -> bool:
        return isinstance(value, (relax.Expr, PrimExpr, bool, int, float))

    def unary(self, op: str, a: Any, span: Span | None) -> Any:
        if isinstance(a, relax.Expr):
            if op == "+":
                return a
            name = {"-": "negative", "not": "logical_not", "~": "logical_not" if _is_truth(a) else "bitwise_not"}[op]
            return self.operator(name, [a], {}, span)
        return super().unary(op, a, span)

    def truth(self, value: Any, span: Span | None) -> bool:
        if isinstance(value, relax.Expr):
            raise error("RLX0121", f"{self.said(value)} is not known while compiling", span)
        return super().truth(value, span)

    def attribute(self, value: Any, name: str, span: Span | None) -> Any:
        if not isinstance(value, relax.Expr):
            return super().attribute(value, name, span)
        info = value.struct_info
        if name == "shape":
            return self.core("shape_of", (value,), EMPTY, (), span)
        if name == "astype":
            return Method(name, value)
        if name in ("struct_info", "ty") and info is not None:
            return info
        if isinstance(info, TensorStructInfo) and name in ("dtype", "ndim"):
            known = info.dtype if name == "dtype" else info.ndim if info.ndim >= 0 else None
            if known is not None:
                return known
        if isinstance(info, TensorStructInfo):
            made = inspected(self, value, name, span)
            if made is not None:
                return made
        hint = suggestion(name, ("shape", "dtype", "ndim", "astype", "struct_info"), span)
        raise error("RLX0102", f"{self.said(value)} has no attribute `{name}`", span, **hint)

    def item(self, value: Any, index: Any, span: Span | None) -> Any:
        if (
            isinstance(value, tuple)
            and isinstance(index, int)
            and value
            and all(isinstance(v, relax.Expr) for v in value)
        ):
            value = self.lift(value, span)
        if not isinstance(value, relax.Expr):
            return super().item(value, index, span)
        info = value.struct_info
        at = index.value if isinstance(index, prim.IntImm) else index
        if isinstance(info, TupleStructInfo) and isinstance(at, int):
            if not -len(info.fields) <= at < len(info.fields):
                raise error("RLX0123", f"index {at} is out of range for a tuple of {len(info.fields)}", span)
            return relax.TupleGetItem(value, at % len(info.fields), span=span)
        if (
            isinstance(info, ShapeStructInfo)
            and info.values is not None
            and isinstance(at, int)
            and -len(info.values) <= at < len(info.values)
        ):
            return info.values[at]
        if isinstance(info, TensorStructInfo):
            return self.sliced(value, index if isinstance(index, tuple) else (index,), span)
        if isinstance(at, int) and at >= 0:
            return relax.TupleGetItem(value, at, span=span)
        raise error("RLX0110", f"{self.said(value)} cannot be indexed so", span)

    def sliced(self, value: relax.Expr, index: tuple[Any, ...], span: Span | None) -> Any:
        """`x[1:3, :, 0]`: a slice of a tensor; a plain index takes its dimension away."""
        name = self.unit.operators.sugar("[:]")
        if name is None:
            raise error("RLX0110", "tensors cannot be sliced: the library has no operator for it", span)
        axes, begin, end, strides, drop = [], [], [], [], []
        for axis, at in enumerate(index):
            if isinstance(at, slice):
                if at == slice(None):
                    continue
                step = 1 if at.step is None else at.step
                backwards = isinstance(step, int) and step < 0
                axes.append(axis)
                begin.append(at.start if at.start is not None else ((1 << 31) - 1 if backwards else 0))
                end.append(at.stop if at.stop is not None else (-(1 << 31) if backwards else (1 << 31) - 1))
                strides.append(step)
            elif isinstance(at, (int, PrimExpr)) and not isinstance(at, bool):
                axes.append(axis)
                begin.append(at)
                end.append(at + 1 if not (isinstance(at, int) and at == -1) else (1 << 31) - 1)
                strides.append(1)
                drop.append(axis)
            else:
                raise error("RLX0110", f"a tensor is indexed by integers and slices, not by {self.said(at)}", span)
        made = (
            self.operator(name, [value], {"axes": axes, "begin": begin, "end": end, "strides": strides}, span)
            if axes
            else value
        )
        dropping = self.unit.operators.sugar("[i]") if drop else None
        return self.operator(dropping, [self.lift(made, span)], {"axis": drop}, span) if dropping is not None else made

    def said(self, value: Any) -> str:
        """A few words for a value."""
        if isinstance(value, relax.Var):
            return f"`{value.name}`"
        return "a value of Relax" if isinstance(value, relax.Expr) else describe(value)

    # --- calls --------------------------------------------------------------------------------------------------------
    def operator(self, name: str, args: list[Any], kwargs: dict[str, Any], span: Span | None) -> relax.Call:
        """The call of an operator of the library."""
        args = [self.emit(a) if isinstance(a, _BOUND_FIRST) else a for a in args]
        return self.typed(self.unit.operators.make_call(name, args, kwargs, span))

    def core(
        self, name: str, args: tuple[relax.Expr, ...], attrs: Attrs, infos: tuple[StructInfo, ...], span: Span | None
    ) -> relax.Call:
        """The call of a structural operator."""
        call = relax.Call(relax.Op(name), args, attrs, infos, span=span)
        if not self.check:
            return call
        if name.startswith("call_tir") and isinstance(call.args[1], relax.Tuple):
            self.check_kernel(call)
        return call.replace(struct_info=CORE_OPS[name].infer(call))

    def check_kernel(self, call: relax.Call) -> None:
        """Whether `R.call_tir` and its kin pass a kernel what it takes."""
        try:
            passed = passed_to_kernel(call)
        except DiagnosticError as fault:
            self.unit.require(fault, always=True)
            return
        try:
            check_kernel_call(call, passed, partial(result_known, self.unit), self.unit.defined_at)
        except DiagnosticError as fault:
            self.unit.require(fault)

    def typed(self, call: relax.Call) -> relax.Call:
        """A call with the struct info of its result."""
        if not self.check:
            return call
        if isinstance(call.op, relax.ExternFunc):
            infos = call.sinfo_args
            known = call.op.struct_info
            stated = known.ret if isinstance(known, FuncStructInfo) else OBJECT
            info = stated if not infos else infos[0] if len(infos) == 1 else TupleStructInfo(infos)
            return call.replace(struct_info=info)
        return call.replace(struct_info=self.unit.operators.infer(call))

    def is_pure_operator(self, call: relax.Call) -> bool:
        """Whether a call is one of an operator without side effects."""
        if not isinstance(call.op, relax.Op):
            return False
        row = CORE_OPS.get(call.op.name)
        return row.pure if row is not None else self.unit.operators.is_pure(call.op.name)

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if isinstance(function, relax.Expr):
            return self.invoke(function, args, kwargs, node)
        return super().call(function, args, kwargs, node)

    def invoke(self, function: relax.Expr, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> relax.Call:
        """The call of a function of the module, or of a value that is a function."""
        stated = kwargs.pop("sinfo_args", kwargs.pop("ty_args", None))
        if kwargs:
            raise error("RLX0114", f"{self.said(function)} takes no keyword arguments", node.span)
        values = tuple(self.lift(a, node.span) for a in args)
        infos: tuple[StructInfo, ...] = (
            tuple(stated) if isinstance(stated, (tuple, list)) else () if stated is None else (stated,)
        )
        call = relax.Call(function, values, EMPTY, infos, span=node.span)
        if not self.check:
            return call
        info = result_known(self.unit, function) if isinstance(function, relax.GlobalVar) else function.struct_info
        if info is None and isinstance(function, relax.GlobalVar) and self.unit.has_failed(function.name):
            raise silent()
        if info is None or info is OBJECT:
            return call.replace(struct_info=infos[0] if infos else OBJECT)
        if not isinstance(info, FuncStructInfo):
            raise error("RLX0111", f"{self.said(function)} is no function", node.func.span)
        if info.params is None:
            return call.replace(struct_info=infos[0] if infos else info.ret)
        return self.matched_call(info, getattr(function, "name", "the function"), call, node)

    def matched_call(self, info: FuncStructInfo, name: str, call: relax.Call, node: tree.Call) -> relax.Call:
        """A call with the struct info of its result, after its arguments were checked against the parameters."""
        try:
            check_count(name, info, call, self.unit.defined_at)
        except DiagnosticError as fault:
            self.unit.require(fault)
            return call.replace(struct_info=info.ret)
        mapping = matched(info, call.args)
        params = enumerate(zip(info.params or (), call.args))
        args = tuple(self.fitting(name, k, param, arg, mapping, node) for k, (param, arg) in params)
        return call.replace(args=args, struct_info=call_result(info, mapping))

    def fitting(
        self, name: str, at: int, param: StructInfo, arg: relax.Expr, mapping: dict[prim.Var, PrimExpr], node: tree.Call
    ) -> relax.Expr:
        """An argument, which must be of its parameter's struct info; dimensions that are not known are checked at run
        time. Lowered programs say less of their tensors than kernels take, which `R.match_cast` makes known."""
        wanted, given = replaced(param, mapping), arg.struct_info or OBJECT
        outcome = base_check(wanted, given)
        if outcome >= BaseCheck.PROOF:
            return arg
        place = node.args[at].span if at < len(node.args) else node.span
        if outcome is BaseCheck.CAST and isinstance(param, TensorStructInfo) and self.unit.is_kernel(name):
            return self.emit(CastValue(arg, certain(param, mapping), place))
        self.unit.require(unfit(name, at, wanted, given, place, self.unit.defined_at))
        return arg

    # --- what builtins call -------------------------------------------------------------------------------------------
    def output(self, values: list[Any], node: tree.Call) -> None:
        """`R.output(…)`: which variables of the dataflow block live on."""
        if not self.frame.dataflow:
            raise error("RLX0401", "`R.output` stands only in a dataflow block", node.span)
        if self.outputs is not None:
            raise error("RLX0401", "the dataflow block has an `R.output` already", node.span)
        self.outputs = values

    def declare(self, name: str, value: Fresh, span: Span | None) -> prim.Var:
        """`n = T.int64()`: the signature's variable of that name, or a new one."""
        found = self.signature_vars.pop(name, None)
        if found is not None and found.dtype is value.of:
            return found
        return value.make(name, span)


class Method(Value):
    """`x.astype`: an operator with its first argument."""

    kind = "method"

    def __init__(self, name: str, value: relax.Expr) -> None:
        self.name = name
        self.value = value

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        return cast(RelaxElaborator, ev).operator(self.name, [self.value, *args], kwargs, node.span)


def _as_scalar(value: Any) -> Any:
    """A scalar of the compile-time language, also where it is the value of a parameter (`k: R.Prim(value="n")`); None
    for anything else."""
    if isinstance(value, relax.Expr):
        info = value.struct_info
        return info.value if isinstance(info, PrimStructInfo) else None
    return value if isinstance(value, (int, PrimExpr)) else None


def _is_truth(value: Any) -> bool:
    """Whether a value is a truth value, or a tensor of such."""
    info = value.struct_info if isinstance(value, relax.Expr) else None
    of = info.dtype if isinstance(info, (TensorStructInfo, PrimStructInfo)) else None
    return isinstance(value, bool) or (of is not None and of.is_bool)
