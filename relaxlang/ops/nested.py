"""TensorIR functions inside an operator's body: what `T.compute` cannot say, such as sorting and scans.

    @T.prim_func
    def kernel(X: T.Buffer(S, D), Y: T.Buffer(S, D)): …
    return R.call_tir(kernel, (x,), R.Tensor(S, D))

The function is elaborated with the body's compile-time names in sight, so it may be written for any rank
(`for *b, j in T.grid(*rest, n)`, `X[*b, j]`) and dtype; calling it is one more stage of the operator's kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from relaxlang.base.diagnostics import DiagnosticError, Diagnostics
from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ir.visit import Rewriter, on, walk
from relaxlang.ops.body import Computed, OpEvaluator, Stage
from relaxlang.ops.values import Erased, TensorValue, dims_text, from_dim
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Scope, Value, error
from relaxlang.syntax.elaborate.namespaces import T
from relaxlang.syntax.elaborate.tir_function import elaborate_prim_func
from relaxlang.syntax.elaborate.unit import Unit


class NestedKernel(Value):
    """A `@T.prim_func` of a body, elaborated."""

    kind = "TensorIR function"

    def __init__(self, name: str, func: tir.PrimFunc) -> None:
        self.name = name
        self.func = func


class TirStage(Stage):
    """A stage whose computation is a statement over whole tensors, with scratch memory of its own."""

    def __init__(
        self,
        statement: tir.Stmt,
        scratch: tuple[tir.Buffer, ...],
        inputs: tuple[tir.Buffer, ...],
        outputs: tuple[Computed, ...],
    ) -> None:
        super().__init__((), (), outputs)
        self.statement = statement
        self.scratch = scratch
        self.inputs = inputs

    def reads(self) -> Iterator[tir.Buffer]:
        yield from self.inputs

    def expressions(self) -> Iterator[tuple[PrimExpr, ...]]:
        for buffer in self.scratch:
            yield buffer.shape
        for node in walk(self.statement):
            yield tuple(v for v in (getattr(node, f) for f in node.FIELDS) if isinstance(v, PrimExpr))

    def bound(self) -> Iterator[prim.Var]:
        for node in walk(self.statement):
            if isinstance(node, tir.For):
                yield node.loop_var
            elif isinstance(node, (tir.LetStmt, prim.Let)):
                yield node.var
            elif isinstance(node, tir.Block):
                yield from (axis.var for axis in node.iter_vars)

    def nest(self, name: str) -> tir.Stmt:
        """The statement as a block that reads and writes whole tensors."""
        reads = tuple(_whole(b) for b in self.inputs)
        writes = tuple(_whole(t.buffer) for t in self.outputs)
        block = tir.Block((), reads, writes, name, self.statement, alloc_buffers=self.scratch)
        return tir.BlockRealize((), prim.IntImm(prim.BOOL, 1), block)


def _whole(buffer: tir.Buffer) -> tir.BufferRegion:
    return tir.BufferRegion(buffer, tuple(tir.Range(prim.IntImm(INT64, 0), d) for d in buffer.shape))


class _NoOperators:
    """Operators have no place in TensorIR."""

    def has(self, name: str) -> bool:
        return False

    def names(self) -> Iterable[str]:
        return ()

    def make_call(self, name: str, args: list[Any], kwargs: dict[str, Any], span: Span | None) -> Any:
        raise AssertionError("an operator in a TensorIR function")

    def infer(self, call: Any) -> StructInfo:
        raise AssertionError("an operator in a TensorIR function")

    def is_pure(self, name: str) -> bool:
        return True

    def extended(self, body: Iterable[tree.Stmt]) -> _NoOperators:
        return self

    def sugar(self, symbol: str) -> str | None:
        return None


def define_kernel(ev: OpEvaluator, function: tree.FunctionDef, scope: Scope) -> NestedKernel:
    """The value of a `@T.prim_func` in a body. Raises DiagnosticError with all its faults."""
    diagnostics = Diagnostics()
    unit = Unit(diagnostics, _NoOperators(), {}, True)
    inside = Scope({"T": T}, scope)
    try:
        func = elaborate_prim_func(unit, function, inside, {"private": True}, function.name)
    except DiagnosticError as fault:
        unit.report(fault)
        raise DiagnosticError(diagnostics.items) from None
    diagnostics.check()
    return NestedKernel(function.name, func)


def call_kernel(ev: OpEvaluator, kernel: Any, args: Any, out: Any, node: tree.Call) -> Any:
    """`R.call_tir(kernel, (x, …), out)` in a body: the tensors (a tuple when `out` is one) that it fills."""
    if not isinstance(kernel, NestedKernel):
        raise error("RLX0140", "`R.call_tir` in an operator takes a TensorIR function of its body", node.span)
    infos = out.fields if isinstance(out, TupleStructInfo) else tuple(out) if isinstance(out, (tuple, list)) else (out,)
    inputs = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    single = isinstance(out, TensorStructInfo)
    outputs = tuple(_output(i, kernel.name if single else f"{kernel.name}_{k}", node.span) for k, i in enumerate(infos))
    if not all(isinstance(a, TensorValue) for a in inputs):
        raise error("RLX0140", "the arguments of `R.call_tir` are tensors", node.span)
    func, buffers = kernel.func, [t.buffer for t in (*inputs, *outputs)]
    params = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    if len(params) != len(buffers) or len(func.params) != len(params):
        raise error(
            "RLX0113", f"`{kernel.name}` takes {len(func.params)} tensors, {len(buffers)} were given", node.span
        )
    for param, buffer in zip(params, buffers):
        _check_same(ev, kernel.name, param, buffer, node.span)
    body: tir.Stmt = func.body
    scratch: tuple[tir.Buffer, ...] = ()
    if isinstance(body, tir.BlockRealize) and not body.block.iter_vars:
        root = body.block
        body, scratch = root.body, root.alloc_buffers
    statement = _Rename(dict(zip(params, buffers)))(body)
    stage = TirStage(statement, scratch, tuple(buffers[: len(inputs)]), outputs)
    for output in outputs:
        output.stage = stage
    ev.computed.extend(outputs)
    return outputs[0] if single else outputs


def _output(info: Any, name: str, span: Span | None) -> Computed:
    if not isinstance(info, TensorStructInfo):
        raise error("RLX0140", "the result of `R.call_tir` is a tensor, or a tuple of tensors", span)
    if info.dims is None or info.dtype is None:
        raise Erased
    return Computed(name, tuple(from_dim(d) for d in info.dims), info.dtype)


def _check_same(ev: OpEvaluator, name: str, param: tir.Buffer, buffer: tir.Buffer, span: Span | None) -> None:
    """The tensor has the parameter's dtype and shape; what is not known of that is checked at run time."""
    pairs = list(zip(param.shape, buffer.shape))
    if len(param.shape) != len(buffer.shape) or param.dtype is not buffer.dtype or any(ev.differ(*p) for p in pairs):
        wanted, given = (f"{dims_text(b.shape)} {b.dtype}" for b in (param, buffer))
        raise error("RLX0140", f"`{param.name}` of `{name}` is {wanted}, the tensor given is {given}", span)
    for want, have in pairs:
        if not ev.same(want, have):
            same = prim.fold(prim.EQ, have, prim.cast(want, have.dtype))
            ev.require(same, f"`R.{ev.operator}`: a dimension is {have}, and must be {want}")


class _Rename(Rewriter):
    """Puts the tensors' buffers in the place of the parameters'."""

    def __init__(self, buffers: dict[tir.Buffer, tir.Buffer]) -> None:
        self.buffers = buffers
        self.data = {old.data: new.data for old, new in buffers.items()}

    @on(tir.Buffer)
    def buffer(self, node: tir.Buffer) -> tir.Buffer:
        """The buffer in whose place it stands."""
        return self.buffers.get(node, node)

    @on(prim.Var)
    def var(self, node: prim.Var) -> prim.Var:
        """A data pointer with its buffer."""
        return self.data.get(node, node)
