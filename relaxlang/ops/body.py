"""The evaluator of operator bodies: tensor computations become stages, other operators are inlined.

`T.compute(shape, lambda *i: …)` makes a tensor; `T.reduce_axis(n)` with `T.sum(…, axis=k)` a reduction, as in TE. The
stages are turned into a PrimFunc by `ops.kernel`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from relaxlang.arith import Analyzer, Bound
from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.struct_info import TensorStructInfo, tensor_info
from relaxlang.ir.visit import walk
from relaxlang.ops.functions import BodyEvaluator
from relaxlang.ops.values import UNKNOWN, Dim, Erased, TensorValue, Unknown, as_dim, refusal
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Closure, Scope, Value, as_dtype, error, negate, plain_binary


class Stage(Value):
    """A computation over spatial `axes` (block variables with their extents) that fills `outputs`, one body each."""

    kind = "stage"

    def __init__(
        self,
        axes: tuple[tuple[str, prim.Var, PrimExpr], ...],
        bodies: tuple[PrimExpr, ...],
        outputs: tuple[Computed, ...],
    ) -> None:
        self.axes = axes
        self.bodies = bodies
        self.outputs = outputs

    def reads(self) -> Iterator[tir.Buffer]:
        """The buffers that are read."""
        for body in self.bodies:
            yield from (n.buffer for n in walk(body) if isinstance(n, prim.BufferLoad))

    def expressions(self) -> Iterator[tuple[PrimExpr, ...]]:
        """The expressions of the computation, in groups."""
        yield self.bodies

    def bound(self) -> Iterator[prim.Var]:
        """The variables that have their meaning inside the computation."""
        yield from (var for _, var, _ in self.axes)
        for body in self.bodies:
            if isinstance(body, prim.Reduce):
                yield from (*body.combiner.lhs, *body.combiner.rhs)


class Computed(TensorValue):
    """A tensor that a stage computes."""

    stage: Stage
    named = False


class OpEvaluator(BodyEvaluator):
    """Runs the body of one operator, and of those it calls."""

    def __init__(self, analyzer: Analyzer | None = None) -> None:
        super().__init__()
        self.analyzer = analyzer or Analyzer()
        self.fresh: dict[prim.Var, None] = {}
        self.scalars: dict[prim.Var, relax.Expr] = {}
        self.extents: dict[prim.Var, PrimExpr] = {}
        self.reduce_axes: dict[prim.Var, tir.Range] = {}
        self.computed: list[Computed] = []
        self.handed: dict[Computed, relax.Var] = {}
        self.operator = ""
        self.tensors: list[TensorValue] = []
        self.call_span: Span | None = None
        self.inline: Callable[[str, list[Any], dict[str, Any], Span | None], Any] | None = None

    # --- what is known of dimensions ----------------------------------------------------------------------------------
    def fresh_dim(self, name: str) -> prim.Var:
        """A dimension that is not known while compiling."""
        var = prim.Var(name, INT64)
        self.fresh[var] = None
        return var

    def runtime_scalar(self, name: str, dtype: DType, expr: relax.Expr) -> prim.Var:
        """A scalar argument whose value is known only at run time."""
        var = prim.Var(name, dtype)
        self.scalars[var] = expr
        return var

    def scalar_tensor(self, name: str, value: PrimExpr) -> Computed:
        """A scalar argument where a tensor may stand: a tensor without dimensions that holds it."""
        made = Computed(name, (), value.dtype)
        made.stage = Stage((), (value,), (made,))
        self.computed.append(made)
        return made

    def handed_on(self, tensor: Computed) -> relax.Var:
        """A tensor of this body as an argument of the packed call that finishes the operator."""
        if tensor not in self.handed:
            dims = tensor.buffer.shape
            self.handed[tensor] = relax.Var(tensor.name, tensor_info(dims, tensor.buffer.dtype))
        return self.handed[tensor]

    def same(self, a: Any, b: Any) -> bool:
        """Whether two dimensions are provably equal."""
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            raise Erased
        if not isinstance(a, PrimExpr) and not isinstance(b, PrimExpr):
            return bool(a == b)
        left, right = as_dim(a), as_dim(b)
        return bool(left == right) or self.analyzer.can_prove_equal(left, right)

    def differ(self, a: Any, b: Any) -> bool:
        """Whether two dimensions are provably different."""
        if not isinstance(a, PrimExpr) and not isinstance(b, PrimExpr):
            return bool(a != b)
        return self.analyzer.can_prove(prim.NE(as_dim(a), as_dim(b)))

    # --- hooks --------------------------------------------------------------------------------------------------------
    def named(self, name: str, value: Any) -> None:
        if isinstance(value, Computed) and not value.named:
            value.name, value.named = name, True

    def define_kernel(self, function: tree.FunctionDef, scope: Scope) -> Any:
        from relaxlang.ops.nested import define_kernel

        return define_kernel(self, function, scope)

    def failed_assert(self, message: str, span: Span | None) -> Exception:
        where = (f"stated at {span}",) if span else ()
        return refusal("RLX0210", f"`R.{self.operator}`: {message}", self.call_span, self.tensors, notes=where)

    def binary(self, op: str, a: Any, b: Any, span: Span | None) -> Any:
        if type(a) is int and type(b) is int:
            return plain_binary(op, a, b, span)
        if (
            op in ("==", "!=")
            and isinstance(a, (int, PrimExpr))
            and isinstance(b, (int, PrimExpr))
            and not _is_data(a, b)
        ):
            # Dimensions: what can be decided is decided.
            with suppress(Erased):
                if self.same(a, b):
                    return op == "=="
                if self.differ(a, b):
                    return op == "!="
        if (isinstance(a, DType) or isinstance(b, DType)) and op in ("==", "!="):
            if isinstance(a, Unknown) or isinstance(b, Unknown):
                raise Erased
            return (str(a) == str(b)) == (op == "==")
        return super().binary(op, a, b, span)

    def unary(self, op: str, a: Any, span: Span | None) -> Any:
        # 0 - x would lose the sign of a zero.
        return (
            negate(a, span)
            if op == "-" and isinstance(a, PrimExpr) and a.dtype.is_float
            else super().unary(op, a, span)
        )

    def truth(self, value: Any, span: Span | None) -> bool:
        if value is True or value is False:
            return value
        if isinstance(value, Unknown):
            raise Erased
        return super().truth(value, span)

    def iterate(self, value: Any, span: Span | None) -> list[Any]:
        if isinstance(value, Unknown):
            raise Erased
        return super().iterate(value, span)

    # --- struct info that is known in part ------------------------------------------------------------------------
    def call_node(self, node: tree.Call, scope: Scope) -> Any:
        return self.tensor_info(node, scope) if _is_tensor_info(node.func) else super().call_node(node, scope)

    def tensor_info(self, node: tree.Call, scope: Scope) -> TensorStructInfo:
        """`R.Tensor(shape, dtype, ndim=…)`; each part that is not known is left open by itself."""
        named = {k.name: k.value for k in node.keywords}
        shape = self.maybe(node.args[0] if node.args else named.get("shape"), scope)
        kind = self.maybe(node.args[1] if len(node.args) > 1 else named.get("dtype"), scope)
        of = None if kind is None else as_dtype(kind, node.span)
        if shape is None:
            ndim = self.maybe(named.get("ndim"), scope)
            return tensor_info(None, of, -1 if ndim is None else ndim)
        if any(isinstance(d, Unknown) for d in shape):
            return tensor_info(None, of, len(shape))
        return tensor_info(tuple(as_dim(d) for d in shape), of)

    def maybe(self, node: tree.Expr | None, scope: Scope) -> Any:
        """The value of an expression; None when it is absent or not known."""
        if node is None:
            return None
        try:
            value = self.expr(node, scope)
        except Erased:
            return None
        return None if isinstance(value, Unknown) else value

    # --- tensor computations ------------------------------------------------------------------------------------------
    def compute(self, shape: Any, function: Any, name: str, span: Span | None) -> Any:
        """`T.compute`: a tensor (or a tuple of tensors, for reductions of several values at once)."""
        if isinstance(shape, Unknown):
            raise Erased
        dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        if not isinstance(function, Closure):
            raise error("RLX0135", "`T.compute` needs a lambda over the indices", span)
        axes = []
        for hint, dim in zip(_axis_names(function, len(dims), span), dims):
            var = prim.Var(f"v_{hint}", INT64)
            self.runs_over(var, as_dim(dim))
            axes.append((hint, var, as_dim(dim)))
        value = ev_call(self, function, [var for _, var, _ in axes], span)
        bodies = tuple(self.element(v, span) for v in (value if isinstance(value, (tuple, list)) else (value,)))
        for body in bodies:
            self.check_reductions(body, span)
        outputs = tuple(
            Computed(name if len(bodies) == 1 else f"{name}_{k}", dims, b.dtype) for k, b in enumerate(bodies)
        )
        stage = Stage(tuple(axes), bodies, outputs)
        for output in outputs:
            output.stage = stage
        self.computed.extend(outputs)
        return outputs if isinstance(value, (tuple, list)) else outputs[0]

    def reduce_axis(self, extent: Any, name: str = "k") -> prim.Var:
        """`T.reduce_axis`: a variable that runs over `range(extent)`."""
        if isinstance(extent, Unknown):
            raise Erased
        var = prim.Var(f"v_{name}", INT64)
        self.runs_over(var, as_dim(extent))
        self.reduce_axes[var] = tir.Range(prim.IntImm(INT64, 0), as_dim(extent))
        return var

    def runs_over(self, var: prim.Var, extent: PrimExpr) -> None:
        """Note that a new variable runs over `range(extent)`.

        Of an extent that is a symbol nothing may be concluded here: it may be 0.
        """
        self.extents[var] = extent
        if isinstance(extent, prim.IntImm) and extent.value > 0:
            self.analyzer.update(var, Bound(0, extent.value - 1))

    def element(self, value: Any, span: Span | None) -> PrimExpr:
        """What a compute's lambda gave, as a scalar expression."""
        if isinstance(value, (PrimExpr, bool, int, float)):
            return prim.as_prim(value)
        raise error("RLX0136", "an element must be a scalar expression", span)

    def check_reductions(self, body: PrimExpr, span: Span | None) -> None:
        """A reduction is the whole element, and its axes occur within it alone."""
        if not self.reduce_axes:
            return
        within = {axis.var for axis in body.axis} if isinstance(body, prim.Reduce) else set()
        for part in walk(body):
            if isinstance(part, prim.Reduce) and part is not body:
                what = "a reduction must be all that the lambda computes"
            elif isinstance(part, prim.Var) and part in self.reduce_axes and part not in within:
                what = "an axis of a reduction has no meaning outside of it"
            else:
                continue
            raise error("RLX0136", what, span, help="compute the reduction first, and from it the rest")

    def extent(self, index: PrimExpr) -> PrimExpr | None:
        """The extent of a loop variable of this body, when `index` is one."""
        return self.extents.get(index) if isinstance(index, prim.Var) else None


def _is_tensor_info(func: tree.Expr) -> bool:
    return (
        isinstance(func, tree.Attribute)
        and func.attr == "Tensor"
        and isinstance(func.value, tree.Name)
        and func.value.id == "R"
    )


def _is_data(*values: Any) -> bool:
    return any(isinstance(v, PrimExpr) and not v.dtype.is_integer for v in values)


def _axis_names(function: Closure, count: int, span: Span | None) -> list[str]:
    """A name for each index, after the lambda's parameters; `*i` gives `i0`, `i1`, …"""
    params = function.node.params
    star = next((k for k, p in enumerate(params) if p.kind == "*"), None)
    if star is None:
        if len(params) != count:
            raise error(
                "RLX0135",
                f"the lambda takes {len(params)} indices, the shape has {count} dimensions",
                function.node.span or span,
            )
        return [p.name for p in params]
    middle = count - (len(params) - 1)
    if middle < 0:
        raise error(
            "RLX0135", f"the lambda takes at least {len(params) - 1} indices, the shape has {count} dimensions", span
        )
    names = [p.name for p in params[:star]] + [f"{params[star].name}{k}" for k in range(middle)]
    return names + [p.name for p in params[star + 1 :]]


def ev_call(ev: OpEvaluator, function: Closure, args: list[Any], span: Span | None) -> Any:
    """Call a lambda with values."""
    return function.call(ev, args, {}, tree.Call(function.node, (), (), span=span))


def scope_of_fresh(values: tuple[Dim, ...], fresh: dict[prim.Var, None]) -> bool:
    """Whether any dimension mentions one that is not known."""
    from relaxlang.ir.visit import free_vars

    return any(v in fresh for d in values if isinstance(d, PrimExpr) for v in free_vars(d))


__all__ = ["Computed", "OpEvaluator", "Scope", "Stage", "UNKNOWN", "ev_call", "scope_of_fresh"]
