"""VMShapeLower: symbolic shapes become a heap of integers, checks and the instructions that read and write it."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.analysis.dimension_bounds import dimension_bounds
from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import dtype
from relaxlang.base.record import record
from relaxlang.base.source import Span
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.module import AnyFunc, IRModule, function_info
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.struct_info import (
    OBJECT,
    VOID_TUPLE,
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    lone_var,
    tensor_info,
)
from relaxlang.ir.visit import free_vars, on, substitute, walk
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.bindings import BindingRewriter, promised_pure
from relaxlang.passes.lower.to_non_dataflow import ToNonDataflow
from relaxlang.passes.relax.lambda_lift import LambdaLift
from relaxlang.runtime.checks import err_ctx

# What `vm.builtin.match_shape` and `make_shape` do with an operand: see `relaxlang.runtime.builtins`.
ASSERT_EQUAL_TO_IMM, STORE_TO_HEAP, NO_OP, ASSERT_EQUAL_TO_LOAD = range(4)
USE_IMM, LOAD_SHAPE = range(2)
FLOAT64 = dtype("float64")
HEAP_INFO = tensor_info(None, INT64, 1)


@record
class VMShapeLower(Pass):
    """Check every parameter at the start of a function, keep symbolic dimensions in a heap, compute further ones by a
    `shape_func` of TensorIR, and build shapes from the heap.

    `emit_err_ctx` keeps the texts that name function, parameter and annotation in errors. Inner functions are lifted
    first.

    Before:

        @I.ir_module
        class Module:
            @R.function(pure=False)
            def main(x: R.Tensor((n, 4), "float32")) -> R.Shape([n, 4]):
                s = R.shape([n, 4])
                return s

    After:

        @I.ir_module
        class Module:
            @R.function(pure=False)
            def main(x: R.Tensor((n, 4), "float32")) -> R.Shape([n, 4]):
                R.func_attr({"vm.shape_lowered": True})
                shape_heap: R.Tensor(dtype="int64", ndim=1) = R.call_builtin_with_ctx(
                    "vm.builtin.alloc_shape_heap", (R.prim_value(1),), sinfo_args=R.Tensor(dtype="int64", ndim=1)
                )
                _ = R.call_packed(
                    "vm.builtin.check_tensor_info",
                    x,
                    R.prim_value(2),
                    R.dtype("float32"),
                    R.str("parameter `x` of `main`: R.Tensor((n, 4), \\"float32\\")"),
                )
                _1 = R.call_packed(
                    "vm.builtin.match_shape",
                    x,
                    shape_heap,
                    R.prim_value(2),
                    R.prim_value(1),
                    R.prim_value(0),
                    R.prim_value(0),
                    R.prim_value(4),
                    R.str("parameter `x` of `main`: R.Tensor((n, 4), \\"float32\\")"),
                )
                s: R.Shape([n, 4]) = R.call_packed(
                    "vm.builtin.make_shape",
                    shape_heap,
                    R.prim_value(2),
                    R.prim_value(1),
                    R.prim_value(0),
                    R.prim_value(0),
                    R.prim_value(4),
                    sinfo_args=R.Shape([n, 4]),
                )
                return s
    """

    emit_err_ctx: bool = True

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        # The result is plain blocks, in which a dataflow variable has no place.
        mod = ToNonDataflow().run(LambdaLift().run(mod, ctx), ctx)
        functions: dict[str, AnyFunc] = dict(mod.functions)
        for name, func in mod.relax_functions():
            if not _is_lowered(func):
                functions[name] = _ShapeLowerer(name, functions, self.emit_err_ctx).lower(func)
        return mod.with_functions(functions)


def _is_lowered(func: relax.Function) -> bool:
    """Whether nothing is left to do: the function was lowered, and no pass has brought in new symbolic shapes since."""
    if not func.attrs.get("vm.shape_lowered"):
        return False
    for node in walk(func.body):
        values = (
            node.values
            if isinstance(node, relax.ShapeExpr)
            else (node.value,)
            if isinstance(node, relax.PrimValue)
            else ()
        )
        if any(not isinstance(v, (prim.IntImm, prim.FloatImm, prim.StringImm)) for v in values):
            return False
    return True


@record(frozen=False)
class _Match:
    """A shape or scalar still to be compared with the dimensions that its struct info states."""

    value: relax.Expr
    dims: tuple[PrimExpr, ...]
    context: str
    is_prim: bool
    span: Span | None


class _ShapeLowerer(BindingRewriter):
    """Lowers one function; `functions` receives the shape functions it needs."""

    def __init__(self, name: str, functions: dict[str, AnyFunc], contexts: bool) -> None:
        super().__init__()
        self.name = name
        self.functions = functions
        self.contexts = contexts
        self.slots: dict[PrimExpr, int] = {}
        self.known: set[PrimExpr] = set()
        self.heap = relax.Var("shape_heap", HEAP_INFO)
        self.shapes: dict[tuple[PrimExpr, ...], relax.Var] = {}
        self.span: Span | None = None  # of the function, for what passes made without a place

    def lower(self, func: relax.Function) -> relax.Function:
        """The function with its checks in front; unchanged code when nothing in it is symbolic."""
        self.span = func.span
        matches: list[_Match] = []
        for param in func.params:
            self.check(param, param.struct_info, f"parameter `{param.name}` of `{self.name}`", matches, param.span)
        self.match_all(matches, func.span)
        self.check_bounds(func)
        checks, self.pending = self.pending, []
        body: relax.SeqExpr = self(func.body)
        result = self.atom(body.body)
        tail, self.pending = self.pending, []
        bindings = [*checks, *(b for block in body.blocks for b in block.bindings), *tail]
        if self.slots:
            size = relax.PrimValue(prim.IntImm(INT64, len(self.slots)))
            args = (relax.ExternFunc("vm.builtin.alloc_shape_heap"), relax.Tuple((size,)))
            allocate = relax.Call(relax.Op("call_builtin_with_ctx"), args, EMPTY, (HEAP_INFO,), HEAP_INFO)
            bindings.insert(0, relax.VarBinding(self.heap, allocate))
        attrs = func.attrs.set("vm.shape_lowered", True)
        return promised_pure(func.replace(body=relax.seq_expr(bindings, result), attrs=attrs))

    # --- checks -------------------------------------------------------------------------------------------------------
    def check_bounds(self, func: relax.Function) -> None:
        """Emit the checks of what the function's attributes promise of its dimensions."""
        for var, (low, high) in dimension_bounds(func).items():
            if var in self.known:
                lowest = 0 if low is None else low
                bounds = (_int(lowest), _int(lowest - 1 if high is None else high))
                said = (relax.StringImm(var.name), relax.StringImm(f"a parameter of `{self.name}`"))
                self.builtin("check_bounds", (self.heap, _int(self.slots[var]), *bounds, *said), func.span)

    def check(self, value: relax.Expr, info: StructInfo, place: str, matches: list[_Match], span: Span | None) -> None:
        """Emit the checks of kind, dtype and rank; what is to be compared with dimensions is left in `matches`."""
        context = err_ctx(place, str(info) if self.contexts else "")
        said = relax.StringImm(context)
        if isinstance(info, TensorStructInfo):
            self.builtin(
                "check_tensor_info", (value, _int(info.ndim), relax.DataTypeImm(info.dtype or prim.VOID), said), span
            )
            if info.dims is not None:
                matches.append(_Match(value, info.dims, context, False, span))
            elif isinstance(info.shape, relax.Var):
                self.builtin("check_shape_value", (value, self(info.shape), said), span)
        elif isinstance(info, ShapeStructInfo):
            self.builtin("check_shape_info", (value, _int(info.ndim), said), span)
            if info.values is not None:
                matches.append(_Match(value, info.values, context, False, span))
        elif isinstance(info, PrimStructInfo):
            self.builtin("check_prim_value_info", (value, relax.DataTypeImm(info.dtype), said), span)
            if info.value is not None and info.dtype.is_integer:
                matches.append(_Match(value, (info.value,), context, True, span))
        elif isinstance(info, TupleStructInfo):
            self.builtin("check_tuple_info", (value, _int(len(info.fields)), said), span)
            for k, field in enumerate(info.fields):
                if not isinstance(field, type(OBJECT)):
                    get = relax.TupleGetItem(value, k)
                    item = self.emit("item", get, get.struct_info or OBJECT, span)
                    self.check(item, field, f"element {k} of {place}", matches, span)
        elif isinstance(info, FuncStructInfo):
            self.builtin("check_func_info", (value, said), span)

    def match_all(self, matches: list[_Match], span: Span | None) -> None:
        """Compare shapes with dimensions. A variable is defined where it first stands alone; an expression is compared
        as soon as all its variables are known, at the latest after the last shape."""
        waiting: list[_Match] = []
        for match in matches:
            self.match(match, define=True)
            if any(self.code(d)[0] == NO_OP for d in match.dims):
                waiting.append(match)
        for match in waiting:
            missing = [v.name for d in match.dims for v in free_vars(d) if v not in self.known]
            if missing:
                fail(
                    "RLX0404",
                    f"`{missing[0]}` is used but never stands alone as a dimension, so nothing defines it",
                    match.span or span,
                )
            self.compute([d for d in match.dims if self.is_expression(d)], match.span)
            self.match(match, define=False)

    def match(self, match: _Match, define: bool) -> None:
        """Emit one comparison. What is not known yet is skipped (and defined, where a variable stands alone)."""
        operands: list[relax.Expr] = []
        for dim in match.dims:
            code, reg = self.code(dim)
            var = lone_var(dim)
            if define and var is not None and var not in self.known:
                code, reg = STORE_TO_HEAP, self.slot(var)
                self.known.add(var)
            operands += [_int(code), _int(reg)]
        said = relax.StringImm(match.context)
        if match.is_prim:
            self.builtin("match_prim_value", (match.value, self.heap, *operands, said), match.span)
        else:
            # Without symbolic dimensions the heap is not looked at.
            symbolic = any(not isinstance(d, prim.IntImm) for d in match.dims)
            heap = self.heap if symbolic else _int(0)
            self.builtin("match_shape", (match.value, heap, _int(len(match.dims)), *operands, said), match.span)

    def code(self, dim: PrimExpr) -> tuple[int, int]:
        """How a dimension is compared: with a constant, with a place of the heap, or not yet."""
        if isinstance(dim, prim.IntImm):
            return ASSERT_EQUAL_TO_IMM, dim.value
        return (ASSERT_EQUAL_TO_LOAD, self.slots[dim]) if dim in self.known else (NO_OP, 0)

    @staticmethod
    def is_expression(dim: PrimExpr) -> bool:
        """Whether a dimension has to be computed."""
        return not isinstance(dim, (prim.IntImm, prim.Var))

    # --- the heap -----------------------------------------------------------------------------------------------------
    def slot(self, dim: PrimExpr) -> int:
        """The place of a variable or expression."""
        return self.slots.setdefault(dim, len(self.slots))

    def compute(self, dims: list[PrimExpr], span: Span | None) -> None:
        """Emit the computation of the expressions that are not in the heap yet: a call of a function over the heap."""
        todo = [d for d in dict.fromkeys(dims) if d not in self.known]
        if not todo:
            return
        used = list(dict.fromkeys(v for d in todo for v in free_vars(d)))
        for var in used:
            if var not in self.known:
                fail("RLX0404", f"the symbolic dimension `{var.name}` is not defined here", span or self.span)
        places = [self.slot(d) for d in todo]
        data = prim.Var("heap", prim.HANDLE, prim.PointerType(INT64))
        # The heap may still grow after this, so its size is a variable.
        buffer = tir.Buffer("heap", (prim.Var("heap_size", INT64),), INT64, data)
        values = {v: prim.cast(prim.BufferLoad(buffer, (prim.IntImm(INT64, self.slots[v]),)), v.dtype) for v in used}
        stores = [
            tir.BufferStore(buffer, prim.cast(substitute(d, values), INT64), (prim.IntImm(INT64, at),))
            for d, at in zip(todo, places)
        ]
        func = tir.PrimFunc(
            (handle := prim.Var("heap", prim.HANDLE),),
            _checked([(d, substitute(d, values)) for d in todo], tir.seq(*stores)),
            {handle: buffer},
            None,
            Attrs({"tir.is_host_func": True}),
        )
        name = _unique("shape_func", self.functions)
        self.functions[name] = func
        self.known.update(todo)
        callee = relax.GlobalVar(name, function_info(func))
        self.emit("_", relax.Call(callee, (self.heap,), EMPTY, (), VOID_TUPLE, span=span), VOID_TUPLE, span)

    # --- uses ---------------------------------------------------------------------------------------------------------
    def make_shape(self, values: tuple[PrimExpr, ...], span: Span | None) -> relax.Expr:
        """A shape value read from the heap; a constant when nothing in it is symbolic."""
        if all(isinstance(v, prim.IntImm) for v in values):
            return relax.ShapeExpr(values, span=span)
        self.compute([v for v in values if self.is_expression(v)], span)
        operands: list[relax.Expr] = []
        for value in values:
            if isinstance(value, prim.IntImm):
                operands += [_int(USE_IMM), _int(value.value)]
            else:
                operands += [_int(LOAD_SHAPE), _int(self.place(value, span))]
        info = ShapeStructInfo(values, len(values))
        callee = relax.ExternFunc("vm.builtin.make_shape")
        return relax.Call(callee, (self.heap, _int(len(values)), *operands), EMPTY, (info,), info, span=span)

    def make_prim(self, value: PrimExpr, span: Span | None) -> relax.Expr:
        """A scalar read from the heap; a constant as it is."""
        if isinstance(value, (prim.IntImm, prim.FloatImm, prim.StringImm)):
            return relax.PrimValue(value, span=span)
        if not value.dtype.is_integer and not value.dtype.is_bool:
            fail("RLX3111", f"a scalar computed at run time must be an integer, not {value.dtype}", span)
        self.compute([value] if self.is_expression(value) else [], span)
        info = PrimStructInfo(value.dtype, value)
        operands = (self.heap, _int(LOAD_SHAPE), _int(self.place(value, span)))
        return relax.Call(relax.ExternFunc("vm.builtin.make_prim_value"), operands, EMPTY, (info,), info, span=span)

    def place(self, value: PrimExpr, span: Span | None) -> int:
        """Where a known dimension is."""
        if value not in self.known:
            fail("RLX0404", f"the symbolic dimension `{value}` is not defined here", span or self.span)
        return self.slots[value]

    def atom(self, value: relax.Expr) -> relax.Expr:
        """A symbolic shape or scalar inside another expression, bound to a variable first."""
        if isinstance(value, relax.Tuple):
            fields = tuple(self.atom(f) for f in value.fields)
            return value if all(a is b for a, b in zip(fields, value.fields)) else relax.Tuple(fields, span=value.span)
        if isinstance(value, relax.ShapeExpr) and value.values in self.shapes:
            return self.shapes[value.values]
        made = self.symbolic(value)
        if made is value:
            return value
        hint = "shape" if isinstance(value, relax.ShapeExpr) else "value"
        var = self.emit(hint, made, made.struct_info or OBJECT, value.span)
        if isinstance(value, relax.ShapeExpr):
            self.shapes[value.values] = var
        return var

    def symbolic(self, value: relax.Expr) -> relax.Expr:
        """A symbolic shape or scalar as the call that makes it; anything else as it is."""
        made = value
        if isinstance(value, relax.ShapeExpr):
            made = self.make_shape(value.values, value.span)
        elif isinstance(value, relax.PrimValue):
            made = self.make_prim(value.value, value.span)
        return value if isinstance(made, type(value)) else made

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        if isinstance(binding, relax.MatchCast):
            return self.match_cast(binding)
        value = binding.value
        if isinstance(value, (relax.ShapeExpr, relax.PrimValue)):
            return (binding.replace(value=self.symbolic(value)),)
        if isinstance(value, relax.Tuple):
            return (binding.replace(value=self.atom(value)),)
        if isinstance(value, relax.Call):
            args = tuple(self.atom(a) for a in value.args)
            if any(a is not b for a, b in zip(args, value.args)):
                value = value.replace(args=args)
            return (binding.replace(value=value),)
        return (binding,)

    def match_cast(self, binding: relax.MatchCast) -> Iterable[relax.Binding]:
        """The checks that a match_cast states; the variable is another name for the value."""
        value = self.atom(binding.value)
        matches: list[_Match] = []
        place = f"match_cast of `{binding.value}` in `{self.name}`"
        if isinstance(value, relax.Tuple):
            value = self.emit("value", value, value.struct_info or OBJECT, binding.span)
        self.check(value, binding.struct_info, place, matches, binding.span)
        self.match_all(matches, binding.span)
        # Code generation takes a match_cast for a move; as text it still says what is known, so that it parses back.
        return (binding.replace(value=value),)

    def branch(self, branch: relax.SeqExpr) -> relax.SeqExpr:
        """A branch, with its own value made inside it."""
        body: relax.SeqExpr = self(branch)
        outer, self.pending = self.pending, []
        result = self.atom(body.body)
        extra, self.pending = self.pending, outer
        if result is body.body:
            return body
        bindings = [*(b for block in body.blocks for b in block.bindings), *extra]
        return relax.seq_expr(bindings, result).replace(span=body.span)

    @on(relax.If)
    def scoped(self, node: relax.If) -> relax.If:
        """What one branch computes the other does not know, nor does what follows."""
        condition = self.atom(self(node.condition))
        known, shapes = set(self.known), dict(self.shapes)
        true_branch = self.branch(node.true_branch)
        self.known, self.shapes = set(known), dict(shapes)
        false_branch = self.branch(node.false_branch)
        self.known, self.shapes = known, shapes
        return node.replace(condition=condition, true_branch=true_branch, false_branch=false_branch)

    def builtin(self, name: str, args: tuple[relax.Expr, ...], span: Span | None) -> None:
        """Emit a call of a builtin for its effect."""
        call = relax.Call(relax.ExternFunc(f"vm.builtin.{name}"), args, EMPTY, (), OBJECT, span=span)
        self.emit("_", call, OBJECT, span)


def _checked(dims: list[tuple[PrimExpr, PrimExpr]], body: tir.Stmt) -> tir.Stmt:
    """A computation, behind checks that no product overflows; `dims` says what is computed, and how."""
    for said, dim in reversed(dims):
        if dim.dtype.is_integer and any(isinstance(n, prim.Mul) for n in walk(dim)):
            size = prim.Call(FLOAT64, "abs", (_as_float(dim),))
            body = tir.AssertStmt(size < prim.FloatImm(FLOAT64, 2.0**63), f"the dimension `{said}` overflows", body)
    return body


def _as_float(expr: PrimExpr) -> PrimExpr:
    """Sums and products as those of float64 numbers, which say how large the true result is."""
    if isinstance(expr, prim.Add | prim.Sub | prim.Mul):
        return type(expr)(_as_float(expr.a), _as_float(expr.b))
    return prim.cast(expr, FLOAT64)


def _int(value: int) -> relax.PrimValue:
    return relax.PrimValue(prim.IntImm(INT64, value))


def _unique(hint: str, functions: dict[str, AnyFunc]) -> str:
    name, n = hint, 0
    while name in functions:
        n += 1
        name = f"{hint}{n}"
    return name
