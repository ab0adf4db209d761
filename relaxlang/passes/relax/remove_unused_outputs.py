"""RemoveUnusedOutputs: private functions give back only what is used."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.analysis.call_sites import CallSites
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import AnyFunc, IRModule, function_info
from relaxlang.ir.struct_info import OBJECT, TupleStructInfo
from relaxlang.ir.visit import Visitor, on
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.bindings import BindingRewriter


@record
class RemoveUnusedOutputs(Pass):
    """Remove the fields of a private function's result that no caller takes out; a single one is returned by itself.

    What computed them is left to dead code elimination.

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                cls = Module
                both = cls.both(x)
                r = both[1]
                return r

            @R.function(private=True)
            def both(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
                a = R.exp(x)
                b = R.sin(x)
                return (a, b)

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                cls = Module
                both = cls.both(x)
                r = both
                return r

            @R.function(private=True)
            def both(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                a = R.exp(x)
                b = R.sin(x)
                return b
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        private = CallSites(mod).private(mod)
        used = _FieldUses(mod, private).used
        kept: dict[str, tuple[int, ...]] = {}
        for name, func in private.items():
            info, fields = func.ret_struct_info, used.get(name)
            if isinstance(info, TupleStructInfo) and fields and len(fields) < len(info.fields):
                kept[name] = tuple(sorted(fields))
        if not kept:
            return mod
        functions: dict[str, AnyFunc] = dict(mod.functions)
        for name, places in kept.items():
            functions[name] = _shorten(private[name], places)
        rewrite = _Callers(functions, kept)
        for name, old in functions.items():
            if isinstance(old, relax.Function):
                functions[name] = rewrite(old)
        return mod.with_functions(functions)


class _FieldUses(Visitor):
    """`used`: the fields of each function's result that are taken out; None when the result is used as a whole."""

    def __init__(self, mod: IRModule, private: dict[str, relax.Function]) -> None:
        self.private = private
        self.used: dict[str, set[int] | None] = {}
        self.results: dict[relax.Var, str] = {}
        for _, func in mod.relax_functions():
            self(func)

    @on(relax.VarBinding)
    def binding(self, node: relax.VarBinding) -> None:
        """A call, bound to a variable."""
        name = _callee(node.value)
        if name in self.private:
            self.results[node.var] = name
            self.used.setdefault(name, set())
            self.below(node.value)
        else:
            self(node.value)

    @on(relax.MatchCast)
    def cast(self, node: relax.MatchCast) -> None:
        """The variable is bound here and not used."""
        self(node.value)

    @on(relax.Call)
    def call(self, node: relax.Call) -> None:
        """A call that is not bound to a variable by itself."""
        if _callee(node) in self.private:
            self.used[_callee(node)] = None
        self.below(node)

    @on(relax.TupleGetItem)
    def item(self, node: relax.TupleGetItem) -> None:
        """A field."""
        name = self.results.get(node.tuple_value) if isinstance(node.tuple_value, relax.Var) else None
        fields = self.used.get(name) if name is not None else None
        if fields is not None:
            fields.add(node.index)
        else:
            self(node.tuple_value)

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> None:
        """The whole result."""
        if node in self.results:
            self.used[self.results[node]] = None


def _callee(value: relax.Expr) -> str:
    return value.op.name if isinstance(value, relax.Call) and isinstance(value.op, relax.GlobalVar) else ""


def _shorten(func: relax.Function, kept: tuple[int, ...]) -> relax.Function:
    """The function with the kept fields as its result."""
    blocks, value = list(func.body.blocks), func.body.body
    fields: list[relax.Expr] = []
    items: list[relax.Binding] = []
    for k in kept:
        if isinstance(value, relax.Tuple):
            fields.append(value.fields[k])
            continue
        item = relax.TupleGetItem(value, k)
        var = relax.Var("item", item.struct_info or OBJECT)
        items.append(relax.VarBinding(var, item))
        fields.append(var)
    if items and blocks and type(blocks[-1]) is relax.BindingBlock:
        blocks[-1] = blocks[-1].replace(bindings=(*blocks[-1].bindings, *items))
    elif items:
        blocks.append(relax.BindingBlock(tuple(items)))
    result = fields[0] if len(fields) == 1 else relax.Tuple(tuple(fields), span=value.span)
    ret = func.ret_struct_info
    assert isinstance(ret, TupleStructInfo)
    infos = tuple(ret.fields[k] for k in kept)
    body = relax.SeqExpr(tuple(blocks), result, span=func.body.span)
    return func.replace(body=body, ret_struct_info=infos[0] if len(infos) == 1 else TupleStructInfo(infos))


class _Callers(BindingRewriter):
    """Calls with the new result; fields at their new places."""

    def __init__(self, functions: dict[str, AnyFunc], kept: dict[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.functions = functions
        self.kept = kept
        self.places: dict[relax.Expr, tuple[int, ...]] = {}

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        value, name = binding.value, _callee(binding.value)
        if name in self.kept and isinstance(value, relax.Call):
            assert isinstance(value.op, relax.GlobalVar)
            info = value.struct_info
            if isinstance(info, TupleStructInfo):
                infos = tuple(info.fields[k] for k in self.kept[name])
                info = infos[0] if len(infos) == 1 else TupleStructInfo(infos)
            callee = value.op.replace(struct_info=function_info(self.functions[name]))
            var = binding.var.replace(struct_info=info or OBJECT)
            self.replaced[binding.var] = var
            self.places[var] = self.kept[name]
            return (relax.VarBinding(var, value.replace(op=callee, struct_info=info), span=binding.span),)
        if isinstance(value, relax.TupleGetItem) and value.tuple_value in self.places:
            places = self.places[value.tuple_value]
            if len(places) == 1:
                return (binding.replace(value=value.tuple_value),)
            return (binding.replace(value=value.replace(index=places.index(value.index))),)
        return (binding,)
