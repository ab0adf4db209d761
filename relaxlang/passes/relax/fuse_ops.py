"""FuseOps: kernels that are better computed together become one function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from relaxlang.analysis.alias import overwritten
from relaxlang.analysis.fusion import MAX_DEPTH, Graph, Kernels, Node, Partition, Rule, scalar_constant
from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.base.suggest import did_you_mean
from relaxlang.builder.operands import operands
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.equal_functions import EqualFunctions
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.struct_info import OBJECT, StructInfo, TensorStructInfo, TupleStructInfo, shape_info
from relaxlang.ir.visit import Rewriter, Visitor, free_vars, on
from relaxlang.ops import default_operators
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.bindings import BindingRewriter, Specialize
from relaxlang.passes.relax.convert_to_dataflow import ConvertToDataflow
from relaxlang.passes.relax.legalize_ops import LegalizeOps
from relaxlang.syntax.struct_info import bound_vars

UNITS = frozenset({"Primitive", "Composite", "Codegen"})
"""Attributes of functions that are units of their own: nothing is fused in them, none is inlined."""
PRIMITIVE = "Primitive"
"""The attribute of a function that is one kernel to be."""
LONGEST_NAME = 80


@record
class FuseOps(Pass):
    """Group the kernels of dataflow blocks; each group becomes a function of its own, with the attribute `Primitive`.

    Elementwise, broadcasting and injective kernels join what uses them; elementwise kernels follow reductions and
    contractions (bias, activation, residual). `analysis.fusion` has the rules, and says why two kernels stay apart. A
    group has at most `max_depth` kernels. Constants of one element go into the function, others are arguments, so that
    groups that differ only in them share one. Equal groups share one function.

    Before:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def exp(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
                T.func_attr({"op_pattern": 0})
                for i in range(n):
                    with T.block("exp"):
                        vi = T.axis.spatial(n, i)
                        B[vi] = T.exp(A[vi])

            @R.function
            def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                cls = Module
                with R.dataflow():
                    a = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n,), "float32"))
                    b = R.call_tir(cls.exp, (a,), out_sinfo=R.Tensor((n,), "float32"))
                    R.output(b)
                return b

    After:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def exp(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
                T.func_attr({"op_pattern": 0})
                for i in range(n):
                    with T.block("exp"):
                        vi = T.axis.spatial(n, i)
                        B[vi] = T.exp(A[vi])

            @R.function
            def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                cls = Module
                with R.dataflow():
                    b = cls.fused_exp_exp(x)
                    R.output(b)
                return b

            @R.function(private=True)
            def fused_exp_exp(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                R.func_attr({"Primitive": True})
                cls = Module
                with R.dataflow():
                    a = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n,), "float32"))
                    b = R.call_tir(cls.exp, (a,), out_sinfo=R.Tensor((n,), "float32"))
                    R.output(b)
                return b
    """

    max_depth: int = MAX_DEPTH

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        fuse = _Fuser(mod, self.max_depth)
        for name, func in mod.relax_functions():
            if not UNITS & func.attrs.keys():
                fuse.written = overwritten(func, mod, default_operators(mod))
                fuse.functions[name] = fuse(func)
        return mod.with_functions(fuse.functions)


class Outliner(BindingRewriter):
    """Moves groups of bindings to functions of their own: `functions` are the module's with those that it made.

    `written` are variables that calls in place write to: what reads them stays where it is.
    """

    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self.kernels = Kernels(mod)
        self.functions: dict[str, AnyFunc] = dict(mod.functions)
        self.made = EqualFunctions()
        self.written: set[relax.Expr] = set()
        self._callees: dict[object, relax.GlobalVar] = {}

    def outlined(self, members: Sequence[relax.VarBinding]) -> relax.VarBinding:
        """The call of a function that computes the members of a group; the function is new, or an equal one."""
        args: tuple[relax.Expr, ...] = tuple(_inputs(members))
        looks = _looks(members, args)
        callee = self._callees.get(looks)
        if callee is None:
            func, args = outline(members)
            name = self.add(func, [_kernel_name(b) for b in members])
            callee = self._callees[looks] = relax.GlobalVar(name, func.struct_info)
        last = members[-1]
        call = relax.Call(callee, args, EMPTY, (), last.var.struct_info, span=last.value.span)
        return last.replace(value=call)

    def add(self, func: relax.Function, parts: Iterable[str]) -> str:
        """The name of a function: of an equal one, or a new one made of the kernels' names."""
        known = self.made.find(func)
        if known is not None:
            return known
        hint = "_".join(["fused", *filter(None, parts)])
        if len(hint) > LONGEST_NAME:
            hint = f"{hint[:LONGEST_NAME].rstrip('_')}_and_more"
        name, n = hint, 0
        while name in self.functions:
            n += 1
            name = f"{hint}_{n}"
        self.functions[name] = func
        self.made.add(name, func)
        return name


class _Fuser(Outliner):
    def __init__(self, mod: IRModule, max_depth: int) -> None:
        super().__init__(mod)
        self.max_depth = max_depth

    @on(relax.DataflowBlock)
    def dataflow_block(self, node: relax.DataflowBlock) -> relax.DataflowBlock:
        """A dataflow block: each group becomes a call, where its last member stood."""
        graph = Graph(node, self.kernels, self.written)
        partition = Partition(graph, self.max_depth)
        calls: dict[relax.Binding, relax.Binding | None] = {}
        for members in partition.groups().values():
            inside = _kernels_inside(members)
            if sum(isinstance(b.value, relax.Call) for b in inside) > 1:
                calls.update(dict.fromkeys(inside))
                calls[inside[-1]] = self.outlined(inside)
        if not calls:
            return node
        kept = [calls.get(b, b) for b in node.bindings]
        return node.replace(bindings=tuple(b for b in kept if b is not None))


def _kernels_inside(members: Sequence[Node]) -> list[relax.VarBinding]:
    """The bindings of a group; fields of tuples that are made outside stay outside."""
    inside: dict[relax.Expr, relax.VarBinding] = {}
    for node in members:
        value = node.binding.value
        if not isinstance(value, relax.TupleGetItem) or value.tuple_value in inside:
            inside[node.binding.var] = node.binding
    return list(inside.values())


def _kernel_name(binding: relax.VarBinding) -> str:
    call = binding.value
    return call.args[0].name if isinstance(call, relax.Call) and isinstance(call.args[0], relax.GlobalVar) else ""


# --- functions --------------------------------------------------------------------------------------------------------
def outline(
    members: Sequence[relax.VarBinding],
    attrs: Attrs = Attrs({PRIMITIVE: True}),  # noqa: B008 - immutable
    outputs: Sequence[relax.Var] = (),
    bind_constants: bool = False,
) -> tuple[relax.Function, tuple[relax.Expr, ...]]:
    """A function that computes `outputs` (none: the last) of some bindings from what these need, and the arguments for
    its call; with several outputs it gives a tuple.

    Symbolic dimensions that no argument defines are handed over as one shape. Constants are arguments, unless they are
    of one element or `bind_constants` is set.
    """
    inputs = _inputs(members, bind_constants)
    infos = tuple(arg.struct_info or OBJECT for arg in inputs)
    symbols = _Symbols()
    for binding in members:
        symbols(binding.value)
        symbols.found.update(dict.fromkeys(free_vars(binding.var.struct_info)))
    symbols.found.update(dict.fromkeys(free_vars(infos)))
    defined = set(bound_vars(infos))
    missing = tuple(v for v in symbols.found if v not in defined)
    copy = Specialize({v: type(v)(v.name, v.of) for v in symbols.found})
    params = [relax.Var(_name(arg), copy.value(info)) for arg, info in zip(inputs, infos)]
    replaced = _Arguments(copy, dict(zip(inputs, params)))
    body: list[relax.Binding] = []
    for binding in members:
        kind = relax.Var if binding is members[-1] and len(outputs) < 2 else relax.DataflowVar
        value = replaced(binding.value)
        var = kind(binding.var.name, copy.value(binding.var.struct_info), span=binding.var.span)
        replaced.names[binding.var] = var
        body.append(relax.VarBinding(var, value, span=binding.span))
    args: tuple[relax.Expr, ...] = tuple(inputs)
    if missing:
        params.append(relax.Var("symbols", shape_info(tuple(copy.value(missing)))))
        args += (relax.ShapeExpr(missing),)
    if len(outputs) > 1:
        fields = relax.Tuple(tuple(replaced.names[v] for v in outputs))
        body.append(relax.VarBinding(relax.Var("results", fields.struct_info or OBJECT), fields))
    result = body[-1].var
    seq = relax.SeqExpr((relax.DataflowBlock(tuple(body)),), result)
    span = members[-1].span
    return relax.Function(tuple(params), seq, result.struct_info, True, attrs, span=span), args


def _inputs(members: Sequence[relax.VarBinding], bind_constants: bool = False) -> dict[relax.Expr, None]:
    """The variables and constants that a group needs, in order; but for constants that go into its function."""
    own = {b.var for b in members}
    found: dict[relax.Expr, None] = {}
    for binding in members:
        for arg in operands(binding.value):
            inside = isinstance(arg, relax.Constant) and (bind_constants or scalar_constant(arg))
            if arg not in own and isinstance(arg, (relax.Var, relax.Constant)) and not inside:
                found[arg] = None
    return found


def _looks(members: Sequence[relax.VarBinding], inputs: Sequence[relax.Expr]) -> object:
    """Something that is equal for groups of kernels whose functions are equal: what they take, and of each kernel its
    name, operands and result. For a group in which there is anything but kernels of known dimensions it is unique."""
    places: dict[relax.Expr, int] = {arg: at for at, arg in enumerate(inputs)}
    parts = [_extent(arg.struct_info) for arg in inputs]
    for binding in members:
        value = binding.value
        if isinstance(value, relax.TupleGetItem):
            looks: object = _operand(value.tuple_value, places), value.index
        elif isinstance(value, relax.Call) and value.op == relax.Op("call_tir") and not value.attrs:
            _, packed, *symbols = value.args
            fields = packed.fields if isinstance(packed, relax.Tuple) and not symbols else (packed,)
            made = tuple(map(_extent, value.sinfo_args))
            looks = _kernel_name(binding) or object(), tuple([_operand(f, places) for f in fields]), made
        else:
            looks = object()
        parts += [looks, _extent(binding.var.struct_info)]
        places[binding.var] = len(places)
    return tuple(parts)


def _extent(info: StructInfo | None) -> object:
    if isinstance(info, TensorStructInfo) and info.ground:
        return info.dtype, info.shape, info.ndim
    return tuple(map(_extent, info.fields)) if isinstance(info, TupleStructInfo) else object()


def _operand(arg: relax.Expr, places: Mapping[relax.Expr, int]) -> object:
    if isinstance(arg, relax.Constant) and arg not in places:  # one that goes into the function
        return _extent(arg.struct_info), arg.data.tobytes()
    return places.get(arg, object())


def _name(arg: relax.Expr) -> str:
    return arg.name if isinstance(arg, relax.Var) else "const"


class _Symbols(Visitor):
    """`found`: the symbolic variables of expressions, those in shapes and struct info of calls."""

    def __init__(self) -> None:
        self.found: dict[prim.Var, None] = {}

    @on(prim.Var, prim.SizeVar)
    def symbol(self, node: prim.Var) -> None:
        """A symbolic variable."""
        self.found[node] = None


class _Arguments(Rewriter):
    """Puts parameters and new variables in the places of arguments, new dimensions in those of the caller's."""

    def __init__(self, dims: Specialize, names: dict[relax.Expr, relax.Var]) -> None:
        self.dims = dims
        self.names = names

    @on(relax.Var, relax.DataflowVar, relax.Constant)
    def argument(self, node: relax.Expr) -> relax.Expr:
        """A parameter or variable of the new function; a constant of one element as it is."""
        return self.names.get(node, node)

    @on(prim.Var, prim.SizeVar)
    def symbol(self, node: prim.Var) -> prim.PrimExpr:
        """A dimension."""
        return self.dims.var(node)


# --- why not ----------------------------------------------------------------------------------------------------------
@record
class FusionAnswer:
    """Whether a consumer is computed together with a producer; if not, the `rule` that forbids it, and in words."""

    producer: str
    consumer: str
    fused: bool
    rule: Rule | None
    reason: str


def explain_fusion(mod: IRModule, a: str, b: str, func_name: str = "main", max_depth: int = MAX_DEPTH) -> FusionAnswer:
    """Whether `FuseOps` computes the variables `a` and `b` of a function together, and if not, why not.

    Operators are lowered, and dataflow blocks made, where that is not done yet. RLX3113 when there is no such
    pair in one dataflow block.
    """
    for answer in fusion_answers(mod, func_name, max_depth):
        if {answer.producer, answer.consumer} == {a, b}:
            return answer
    known = {
        name for answer in fusion_answers(mod, func_name, max_depth) for name in (answer.producer, answer.consumer)
    }
    for name in (a, b):
        if name not in known:
            near = did_you_mean(name, known)
            fail(
                "RLX3113",
                f"`{name}` is no variable of a kernel in a dataflow block of `{func_name}`",
                help=f"did you mean `{near}`?" if near else "",
            )
    fail("RLX3113", f"neither of `{a}` and `{b}` uses the other, so there is nothing to fuse")


def fusion_answers(mod: IRModule, func_name: str = "main", max_depth: int = MAX_DEPTH) -> list[FusionAnswer]:
    """For every pair of kernels of which one uses the other's result, in order: are they computed together?"""
    lowered = ConvertToDataflow()(LegalizeOps()(mod))
    func = lowered[func_name]
    kernels = Kernels(lowered)
    written = overwritten(func, lowered, default_operators(lowered)) if isinstance(func, relax.Function) else set()
    found: list[FusionAnswer] = []
    for block in _blocks(func):
        graph = Graph(block, kernels, written)
        partition = Partition(graph, max_depth)
        for node in graph.nodes:
            for user in dict.fromkeys(u for u, _ in node.users):
                consumer = graph.nodes[user]
                rule = partition.why_not(node, consumer)
                names = (node.binding.var.name, consumer.binding.var.name)
                reason = "" if rule is None else rule.value.format(a=names[0], b=names[1])
                found.append(FusionAnswer(*names, rule is None, rule, reason))
    return found


def _blocks(func: AnyFunc) -> list[relax.DataflowBlock]:
    """The dataflow blocks of a function, those in branches too."""
    collect = _DataflowBlocks()
    collect(func)
    return collect.found


class _DataflowBlocks(Visitor):
    def __init__(self) -> None:
        self.found: list[relax.DataflowBlock] = []

    @on(relax.DataflowBlock)
    def block(self, node: relax.DataflowBlock) -> None:
        """A block."""
        self.found.append(node)
