"""Whether a module keeps the rules of the IR, whatever made it: text, a pass, a program.

The rules are those of Relax's specification: scopes (of variables, dataflow variables, symbolic dimensions, functions),
one binding for each variable, normal form, purity, what dataflow blocks may hold, and struct info that is consistent
and implied by what it describes.
"""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.analysis.contradictions import contradictions
from relaxlang.analysis.index_ranges import out_of_range
from relaxlang.analysis.purity import is_pure_call
from relaxlang.analysis.well_formed_tir import well_formed_prim_func
from relaxlang.base.diagnostics import Diagnostic
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Span
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import (
    OBJECT,
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relaxlang.ir.visit import free_vars
from relaxlang.ops import default_operators
from relaxlang.syntax.core_ops import CORE_OPS
from relaxlang.syntax.operators import OperatorTable
from relaxlang.syntax.struct_info import bound_vars, may_declare

LEAVES = (
    relax.Var, relax.GlobalVar, relax.ExternFunc, relax.Constant, relax.ShapeExpr, relax.PrimValue, relax.StringImm,
    relax.DataTypeImm, relax.Tuple,
)  # fmt: skip


def well_formed(mod: IRModule, operators: OperatorTable | None = None) -> list[Diagnostic]:
    """Every breach of a rule; an empty list for a module in order. Breaches of style (a module without a public
    function) and indices that are certainly out of range are warnings."""
    found = verify_text(mod, operators or default_operators(mod))
    found += [d for d in contradictions(mod) if d.code != "RLX0201"]  # which are among those of RLX0220
    with deep_recursion():
        for name, kernel in mod.prim_funcs():
            found += well_formed_prim_func(name, kernel)
    public = any("global_symbol" in getattr(f, "attrs", {"global_symbol": 1}) for f in mod.functions.values())
    if mod.functions and not public:
        found.append(Diagnostic("RLX0430", "no function of the module is public", level="warning"))
    return found


def verify_text(mod: IRModule, operators: OperatorTable) -> list[Diagnostic]:
    """What reading a module looks at: of the bodies of TensorIR functions only that no index is certainly out of range,
    which is a warning. Text can break their rules in one way only, by using a variable that nothing defines, and
    scripts of TVM do so; lowering refuses them."""
    checker = _Checker(mod, operators)
    with deep_recursion():
        for name, function in mod.relax_functions():
            checker.function(name, function)
        for _, kernel in mod.prim_funcs():
            checker.found += out_of_range(kernel)
    return checker.found


class _Scope:
    """What is visible at one place of a function."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self.vars: set[relax.Var] = set(outer.vars) if outer else set()
        self.scalars: set[prim.Var] = set(outer.scalars) if outer else set()


class _Checker:
    def __init__(self, mod: IRModule, operators: OperatorTable) -> None:
        self.mod = mod
        self.operators = operators
        self.found: list[Diagnostic] = []
        self.bound: set[relax.Var] = set()
        self.pure = True
        self.in_dataflow = False
        self.current = ""

    def report(self, code: str, message: str, span: Span | None, *, help: str = "") -> None:
        """Keep a breach."""
        where = [] if span is not None or not self.current else [f"in the function `{self.current}`"]
        self.found.append(Diagnostic(code, message, span, help=help, notes=where))

    # --- functions ----------------------------------------------------------------------------------------------------
    def function(self, name: str, node: relax.Function) -> None:
        """A function of the module."""
        self.current = name
        symbol = node.attrs.get("global_symbol", name)
        if symbol != name:
            self.report("RLX0431", f"the function `{name}` has the global symbol `{symbol}`", node.span,
                        help="the symbol of a public function is its name")  # fmt: skip
        self.body(node, _Scope(), None)

    def body(self, node: relax.Function, scope: _Scope, itself: relax.Var | None) -> None:
        """The parameters, the bindings and the result of a function; `itself` is its variable when it is a closure."""
        outer = (self.pure, self.in_dataflow)
        self.pure = node.is_pure and not node.attrs.get("relax.force_pure", False)
        self.in_dataflow = False
        params = tuple(p.struct_info for p in node.params)
        scope.scalars.update(bound_vars(params))
        for param in node.params:
            if isinstance(param, relax.DataflowVar):
                self.report("RLX0432", f"the parameter `{param.name}` is a dataflow variable", param.span)
            self.define(param, scope)
            self.info(param.struct_info, scope, param.span)
        if node.ret_struct_info is None and self._recursive(node, itself):
            self.report("RLX0433", "a recursive function must declare its result", node.span)
        if not isinstance(node.body, relax.SeqExpr):
            self.report("RLX0434", "the body of a function must be a `SeqExpr`", node.span)
        else:
            signature = set(scope.scalars)
            self.seq(node.body, scope)
            self._result(node, signature, scope)
        self.pure, self.in_dataflow = outer

    def _result(self, node: relax.Function, signature: set[prim.Var], scope: _Scope) -> None:
        declared, inferred = node.ret_struct_info, node.body.struct_info
        if declared is None:
            return
        for var in _free(declared):
            if var not in signature:
                self.report("RLX0435", f"the result mentions `{var.name}`, which no parameter defines", node.span,
                            help="declare less, such as `R.Tensor(ndim=2)`")  # fmt: skip
        if inferred is not None and not may_declare(declared, inferred):
            self.report(
                "RLX0220",
                f"the result is declared as `{declared}`, and is `{inferred}`",
                node.body.body.span or node.span,
            )
        self.info(declared, scope, node.span, check_scalars=False)

    def _recursive(self, node: relax.Function, itself: relax.Var | None) -> bool:
        from relaxlang.ir.visit import walk

        for inner in walk(node.body):
            if isinstance(inner, relax.Call):
                if inner.op is itself and itself is not None:
                    return True
                if itself is None and isinstance(inner.op, relax.GlobalVar) and inner.op.name == self.current:
                    return True
        return False

    # --- bindings -----------------------------------------------------------------------------------------------------
    def define(self, var: relax.Var, scope: _Scope) -> None:
        """A variable comes into being."""
        if var in self.bound:
            self.report("RLX0436", f"`{var.name}` is bound twice", var.span)
        self.bound.add(var)
        scope.vars.add(var)

    def seq(self, node: relax.SeqExpr, scope: _Scope) -> None:
        """Blocks, then a value."""
        before: relax.BindingBlock | None = None
        for block in node.blocks:
            if not block.bindings:
                self.report("RLX0434", "a block without bindings", block.span)
            if before is not None and before.__class__ is block.__class__ is relax.BindingBlock:
                self.report("RLX0434", "two plain blocks in a row: they must be one", block.span)
            self.block(block, scope)
            before = block
        self.leaf(node.body, scope, node.span)

    def block(self, block: relax.BindingBlock, scope: _Scope) -> None:
        """A run of bindings; dataflow variables end with it."""
        dataflow = isinstance(block, relax.DataflowBlock)
        outer, self.in_dataflow = self.in_dataflow, dataflow
        for binding in block.bindings:
            if isinstance(binding.var, relax.DataflowVar) and not dataflow:
                self.report(
                    "RLX0432",
                    f"the dataflow variable `{binding.var.name}` is bound outside a dataflow block",
                    binding.span,
                )
            self.binding(binding, scope)
        self.in_dataflow = outer
        if dataflow:
            scope.vars -= {b.var for b in block.bindings if isinstance(b.var, relax.DataflowVar)}

    def binding(self, binding: relax.Binding, scope: _Scope) -> None:
        """One binding."""
        var = binding.var
        if isinstance(binding, relax.MatchCast):
            self.leaf(binding.value, scope, binding.span)
            scope.scalars.update(bound_vars((binding.struct_info,)))
            self.info(binding.struct_info, scope, binding.span)
            inferred: StructInfo | None = binding.struct_info
        else:
            assert isinstance(binding, relax.VarBinding)
            if isinstance(binding.value, relax.Function):
                scope.vars.add(var)
                self.closure(var, binding.value, scope)
                scope.vars.discard(var)
            else:
                self.value(binding.value, scope, binding.span)
            inferred = binding.value.struct_info
        if var.struct_info is not None:
            self.info(var.struct_info, scope, var.span or binding.span)
            if inferred is not None and not may_declare(var.struct_info, inferred):
                self.report(
                    "RLX0220", f"`{var.name}` is declared as `{var.struct_info}`, and is `{inferred}`", binding.span
                )
        self.define(var, scope)

    def closure(self, var: relax.Var, node: relax.Function, scope: _Scope) -> None:
        """A function inside a function: it sees what is around it, dataflow variables aside."""
        inner = _Scope(scope)
        hidden = {v for v in inner.vars if isinstance(v, relax.DataflowVar) and v is not var}
        inner.vars -= hidden
        self.body(node, inner, var)

    # --- values -------------------------------------------------------------------------------------------------------
    def leaf(self, node: relax.Expr, scope: _Scope, span: Span | None) -> None:
        """A value that must stand without being computed: a variable, a constant, a tuple of such."""
        if not isinstance(node, LEAVES):
            kind = node.__class__.__name__
            what = (
                "an operator stands where a value is needed"
                if isinstance(node, relax.Op)
                else f"a `{kind}` must be bound to a variable first"
            )
            self.report("RLX0437" if isinstance(node, relax.Op) else "RLX0434", what, node.span or span)
            return
        self.value(node, scope, span)

    def value(self, node: relax.Expr, scope: _Scope, span: Span | None) -> None:
        """What a variable is bound to."""
        span = node.span or span
        if isinstance(node, relax.Var):
            if node not in scope.vars:
                self._unseen(node, span)
        elif isinstance(node, relax.Tuple):
            for field in node.fields:
                self.leaf(field, scope, span)
        elif isinstance(node, relax.Call):
            self.call(node, scope, span)
        elif isinstance(node, relax.TupleGetItem):
            self.leaf(node.tuple_value, scope, span)
        elif isinstance(node, relax.If):
            self.conditional(node, scope, span)
        elif isinstance(node, relax.GlobalVar):
            if node.name not in self.mod:
                self.report("RLX0101", f"the module has no function `{node.name}`", span)
        elif isinstance(node, (relax.ShapeExpr, relax.PrimValue)):
            self.scalars(free_vars(node.values if isinstance(node, relax.ShapeExpr) else (node.value,)), scope, span)
        elif isinstance(node, relax.Op):
            self.report("RLX0437", "an operator stands where a value is needed", span)

    def _unseen(self, var: relax.Var, span: Span | None) -> None:
        if isinstance(var, relax.DataflowVar) and var in self.bound:
            self.report("RLX0432", f"the dataflow variable `{var.name}` is used outside its block", span,
                        help=f"add it to the block's outputs: `R.output({var.name})`")  # fmt: skip
        else:
            self.report("RLX0438", f"`{var.name}` is used before it is bound", span)

    def call(self, node: relax.Call, scope: _Scope, span: Span | None) -> None:
        """A call: its parts, and whether it may stand here."""
        if not isinstance(node.op, relax.Op):
            self.leaf(node.op, scope, span)
        elif not (node.op.name in CORE_OPS or self.operators.has(node.op.name)):
            self.report("RLX0103", f"there is no operator `R.{node.op.name}`", span)
        for arg in node.args:
            self.leaf(arg, scope, span)
        for info in node.sinfo_args:
            self.info(info, scope, span)
        if self.in_dataflow and isinstance(node.op, relax.GlobalVar) and node.op.name == self.current:
            self.report("RLX0439", "a function calls itself in a dataflow block", span)
        if (self.in_dataflow or self.pure) and not self.is_pure(node):
            place = "a dataflow block" if self.in_dataflow else "a pure function"
            if not (self.in_dataflow and not self.pure and self._forced()):
                self.report(
                    "RLX0440",
                    f"{place} calls {_callee(node)}, which has side effects",
                    span,
                    help="end the dataflow block before it"
                    if self.in_dataflow
                    else "mark the function `@R.function(pure=False)`",
                )

    def _forced(self) -> bool:
        function = self.mod.functions.get(self.current)
        return isinstance(function, relax.Function) and bool(function.attrs.get("relax.force_pure", False))

    def is_pure(self, node: relax.Call) -> bool:
        """Whether a call is free of side effects, as far as its callee tells."""
        if isinstance(node.op, relax.Op) and node.op.name not in CORE_OPS and not self.operators.has(node.op.name):
            return True  # reported as unknown
        if isinstance(node.op, relax.Op) and node.op.name in CORE_OPS and CORE_OPS[node.op.name].quiet:
            return True
        return is_pure_call(node, self.mod, self.operators)

    def conditional(self, node: relax.If, scope: _Scope, span: Span | None) -> None:
        """A conditional; what its branches bind is not seen outside."""
        if self.in_dataflow:
            self.report("RLX0403", "a dataflow block has no conditionals", span)
        self.leaf(node.condition, scope, span)
        for branch in (node.true_branch, node.false_branch):
            if not isinstance(branch, relax.SeqExpr):
                self.report("RLX0434", "a branch must be a `SeqExpr`", span)
            else:
                self.seq(branch, _Scope(scope))

    # --- struct info --------------------------------------------------------------------------------------------------
    def scalars(self, used: Iterable[prim.Var], scope: _Scope, span: Span | None) -> None:
        """Symbolic variables must be defined where they are used; each is reported once."""
        for var in used:
            if var not in scope.scalars:
                scope.scalars.add(var)
                self.report(
                    "RLX0441",
                    f"the symbolic variable `{var.name}` is not defined here",
                    span,
                    help="a variable is defined by standing alone as a dimension of a parameter or of a `R.match_cast`",
                )

    def info(self, info: StructInfo, scope: _Scope, span: Span | None, *, check_scalars: bool = True) -> None:
        """A struct info must be consistent, and mention only what is in scope."""
        if isinstance(info, TupleStructInfo):
            for field in info.fields:
                self.info(field, scope, span, check_scalars=check_scalars)
            return
        if isinstance(info, FuncStructInfo):
            self._function_info(info, scope, span)
            return
        if isinstance(info, TensorStructInfo):
            self._tensor_info(info, scope, span)
        if isinstance(info, ShapeStructInfo) and info.values is not None and info.ndim != len(info.values):
            self.report("RLX0442", f"`ndim` is {info.ndim} and the shape has {len(info.values)} dimensions", span)
        if check_scalars:
            self.scalars(_free(info), scope, span)

    def _tensor_info(self, info: TensorStructInfo, scope: _Scope, span: Span | None) -> None:
        if info.dims is not None and info.ndim != len(info.dims):
            self.report("RLX0442", f"`ndim` is {info.ndim} and the shape has {len(info.dims)} dimensions", span)
        if info.dtype is not None and info.dtype.lanes != 1:
            self.report("RLX0443", f"the elements of a tensor are scalars, and not `{info.dtype}`", span)
        if info.shape is not None and info.dims is None:
            if not isinstance(info.shape, relax.Var) or not isinstance(
                info.shape.struct_info or OBJECT, (ShapeStructInfo, type(OBJECT))
            ):
                self.report(
                    "RLX0444", "the shape of a tensor is a list of dimensions or a variable that holds a shape", span
                )
            elif info.shape not in scope.vars:
                self._unseen(info.shape, span)

    def _function_info(self, info: FuncStructInfo, scope: _Scope, span: Span | None) -> None:
        if info.params is not None and info.derive_func is not None:
            self.report("RLX0445", "a function's struct info has either parameters or `derive_func`", span)
        inner = _Scope(scope)
        inner.scalars.update(bound_vars(info.params or ()))
        for param in info.params or ():
            self.info(param, inner, span)
        self.info(info.ret, inner, span, check_scalars=False)


def _callee(node: relax.Call) -> str:
    op = node.op
    return f"`R.{op.name}`" if isinstance(op, relax.Op) else f"`{getattr(op, 'name', 'a function')}`"


def _free(info: StructInfo) -> list[prim.Var]:
    """The scalar variables of a struct info, those that a function's own parameters define left out."""
    if isinstance(info, FuncStructInfo):
        return []
    if isinstance(info, TupleStructInfo):
        return [v for f in info.fields for v in _free(f)]
    if isinstance(info, PrimStructInfo):
        return free_vars((info.value,)) if info.value is not None else []
    return free_vars(info)
