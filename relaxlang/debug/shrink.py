"""Steps that make a module of Relax smaller: each gives candidates, most of which no longer show the fault, or are no
programs at all. Nothing here checks that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.builder.dpl.rewrite import without_unused
from relaxlang.builder.infer import Inference
from relaxlang.debug.shrink_tir import Put
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.struct_info import OBJECT, StructInfo
from relaxlang.ir.visit import Rewriter, Substitute, free_vars, on, walk
from relaxlang.ops import default_operators
from relaxlang.passes.base import PassContext
from relaxlang.passes.lower.to_non_dataflow import ToNonDataflow
from relaxlang.syntax.struct_info import BaseCheck, base_check, bound_vars, erase

Step = Callable[[IRModule], Iterator[IRModule]]


# --- functions --------------------------------------------------------------------------------------------------------
def fewer_functions(mod: IRModule) -> Iterator[IRModule]:
    """Without one of the functions that no other refers to."""
    used = _referenced(mod)
    for name in mod.functions:
        if name not in used and len(mod.functions) > 1:
            yield mod.with_functions({n: f for n, f in mod.functions.items() if n != name})


def _referenced(mod: IRModule) -> set[str]:
    found: set[str] = set()
    for name, function in mod.functions.items():
        for n in walk(function):
            if isinstance(n, relax.GlobalVar) and n.name != name:
                found.add(n.name)
            elif isinstance(n, prim.Call) and isinstance(n.op, relax.GlobalVar):
                found.add(n.op.name)
    return found


def plain_blocks(mod: IRModule) -> Iterator[IRModule]:
    """Without dataflow blocks."""
    made = ToNonDataflow().run(mod, PassContext())
    if made is not mod:
        yield made


# --- bindings ---------------------------------------------------------------------------------------------------------
Edit = tuple[tuple[relax.Var, ...], list[relax.BindingBlock], relax.Expr]
"""Parameters, blocks and result of a function."""


def _edited(mod: IRModule, edits: Callable[[relax.Function, bool], Iterator[Edit]]) -> Iterator[IRModule]:
    """The module with one function edited, its struct info inferred anew. The flag says that nothing calls the
    function, so that its signature may change."""
    used = _referenced(mod)
    for name, func in mod.relax_functions():
        for params, blocks, result in edits(func, name not in used):
            made = relax.SeqExpr(tuple(b for b in blocks if b.bindings), result)
            changed = reinferred(func.replace(params=params, body=made), mod)
            if changed is not None:
                yield mod.with_function(name, without_unused(changed, set(), default_operators(mod)))


def earlier_result(mod: IRModule) -> Iterator[IRModule]:
    """A function that ends at one of its bindings."""

    def edits(func: relax.Function, free: bool) -> Iterator[Edit]:
        if not free:
            return
        blocks = list(func.body.blocks)
        for at, block in enumerate(blocks):
            for k, binding in enumerate(block.bindings):
                if binding.var is func.body.body:
                    continue
                out = relax.Var(binding.var.name, binding.var.struct_info)
                last = block.replace(bindings=(*block.bindings[:k], binding.replace(var=out)))
                yield func.params, [*blocks[:at], last], out

    return _edited(mod, edits)


def part_of_result(mod: IRModule) -> Iterator[IRModule]:
    """A function that gives one field of the tuple that it gave."""

    def edits(func: relax.Function, free: bool) -> Iterator[Edit]:
        result = func.body.body
        if free and isinstance(result, relax.Tuple):
            for field in result.fields:
                yield func.params, list(func.body.blocks), field

    return _edited(mod, edits)


def value_is_operand(mod: IRModule) -> Iterator[IRModule]:
    """A binding whose variable is one of its operands, of the same kind."""

    def edits(func: relax.Function, free: bool) -> Iterator[Edit]:
        for binding in _bindings(func):
            for operand in _operands(binding.value):
                info = operand.struct_info or OBJECT
                if base_check(binding.var.struct_info, info) in (BaseCheck.HOLDS, BaseCheck.PROOF):
                    yield _replaced(func, {binding.var: operand})

    return _edited(mod, edits)


def branch_instead(mod: IRModule) -> Iterator[IRModule]:
    """One branch of a conditional in the place of the conditional."""

    def edits(func: relax.Function, free: bool) -> Iterator[Edit]:
        for at, block in enumerate(func.body.blocks):
            for k, binding in enumerate(block.bindings):
                if not isinstance(binding.value, relax.If):
                    continue
                for branch in (binding.value.true_branch, binding.value.false_branch):
                    inside = [b for inner in branch.blocks for b in inner.bindings]
                    same = relax.VarBinding(binding.var, branch.body)
                    made = block.replace(bindings=(*block.bindings[:k], *inside, same, *block.bindings[k + 1 :]))
                    yield func.params, [*func.body.blocks[:at], made, *func.body.blocks[at + 1 :]], func.body.body

    return _edited(mod, edits)


def value_is_parameter(mod: IRModule) -> Iterator[IRModule]:
    """A binding, or a constant, that becomes a parameter."""

    def edits(func: relax.Function, free: bool) -> Iterator[Edit]:
        if not free:
            return
        known = set(bound_vars(tuple(p.struct_info for p in func.params)))
        for binding in _bindings(func):
            info = binding.var.struct_info
            if info is OBJECT or any(v not in known for v in free_vars(info)):
                continue
            param = relax.Var(binding.var.name, info)
            params, blocks, result = _replaced(func, {binding.var: param})
            yield (*params, param), blocks, result
        for constant in {n: None for n in walk(func.body) if isinstance(n, relax.Constant) and n.content.size > 1}:
            param = relax.Var("constant", constant.struct_info)
            put = Put(constant, param)
            yield (*func.params, param), [put(b) for b in func.body.blocks], put(func.body.body)

    return _edited(mod, edits)


def fewer_parameters(mod: IRModule) -> Iterator[IRModule]:
    """Without a parameter that nothing uses."""

    def edits(func: relax.Function, free: bool) -> Iterator[Edit]:
        used = {n for n in walk(func.body) if isinstance(n, relax.Var)}
        for param in func.params if free else ():
            if param not in used:
                yield tuple(p for p in func.params if p is not param), list(func.body.blocks), func.body.body

    return _edited(mod, edits)


def fewer_bindings(mod: IRModule) -> Iterator[IRModule]:
    """Without a binding that nothing uses, whatever it does; without all that are of no use."""

    def edits(func: relax.Function, free: bool) -> Iterator[Edit]:
        yield func.params, list(func.body.blocks), func.body.body
        mentioned = [n for n in walk(func) if isinstance(n, relax.Var)]
        for binding in _bindings(func):
            if mentioned.count(binding.var) == 1:
                yield _replaced(func, {binding.var: relax.Tuple(())})

    return _edited(mod, edits)


def _bindings(func: relax.Function) -> list[relax.Binding]:
    return [b for block in func.body.blocks for b in block.bindings]


def _operands(value: relax.Expr) -> Iterator[relax.Expr]:
    stack = list(reversed(value.args)) if isinstance(value, relax.Call) else [value]
    while stack:
        node = stack.pop()
        if isinstance(node, relax.Tuple):
            stack += reversed(node.fields)
        elif isinstance(node, (relax.Var, relax.Constant)):
            yield node


def _replaced(func: relax.Function, values: Mapping[relax.Var, relax.Expr]) -> Edit:
    """The function without the bindings of variables, for which values stand."""
    instead = _Instead(values)
    blocks = [
        b.replace(bindings=tuple(instead(x) for x in b.bindings if x.var not in values)) for b in func.body.blocks
    ]
    return func.params, blocks, instead(func.body.body)


class _Instead(Rewriter):
    def __init__(self, values: Mapping[relax.Var, relax.Expr]) -> None:
        self.values = values

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> relax.Expr:
        """What stands for a variable."""
        return self.values.get(node, node)


# --- struct info ------------------------------------------------------------------------------------------------------
def reinferred(func: relax.Function, mod: IRModule) -> relax.Function | None:
    """A function of a module with its struct info inferred anew: variables and result; None when nothing fits."""
    try:
        made: relax.Function = _Reinfer(Inference(mod.functions, default_operators(mod)))(func)
    except DiagnosticError:
        return None
    return made


class _Reinfer(Rewriter):
    def __init__(self, infer: Inference) -> None:
        self.infer = infer
        self.vars: dict[relax.Var, relax.Var] = {}

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> relax.Var:
        """The variable that took the place of one."""
        return self.vars.get(node, node)

    @on(relax.VarBinding)
    def binding(self, node: relax.VarBinding) -> relax.VarBinding:
        """A binding whose variable has what its value is known to be."""
        value = self(node.value)
        if isinstance(value, (relax.Call, relax.If)):
            value = value.replace(struct_info=self.infer(value))
        info: StructInfo = self.infer(value)
        var = self.vars[node.var] = node.var.replace(struct_info=info)
        return node.replace(var=var, value=value)

    @on(relax.MatchCast)
    def match_cast(self, node: relax.MatchCast) -> relax.MatchCast:
        """A match_cast states what it did."""
        var = self.vars[node.var] = node.var.replace(struct_info=node.struct_info)
        return node.replace(var=var, value=self(node.value))

    @on(relax.Function)
    def function(self, node: relax.Function) -> relax.Function:
        """A function; its result is declared as before where that still holds."""
        body: relax.SeqExpr = self(node.body)
        inferred, declared = body.struct_info or OBJECT, node.ret_struct_info
        if declared is None or base_check(declared, inferred) is not BaseCheck.HOLDS:
            declared = erase(inferred, bound_vars(tuple(p.struct_info for p in node.params)), set(node.params))
        return node.replace(body=body, ret_struct_info=declared)


# --- dimensions -------------------------------------------------------------------------------------------------------
def smaller_dimensions(mod: IRModule) -> Iterator[IRModule]:
    """One size smaller everywhere: in shapes, extents and attributes alike; a symbolic dimension a constant."""
    sizes = {n.value for f in mod.functions.values() for n in _dimensions(f) if isinstance(n, prim.IntImm)}
    for size in sorted((s for s in sizes if s > 1), reverse=True):
        for smaller in dict.fromkeys((1, 2, size // 2)):
            if smaller < size:
                yield from _resized(mod, _Resize(size, smaller))
    for name, func in mod.relax_functions():
        for var in bound_vars(tuple(p.struct_info for p in func.params)):
            for smaller in (2, 1):
                fixed = _Fix({var: prim.IntImm(var.dtype, smaller)})
                made = reinferred(fixed(func), mod)
                if made is not None:
                    yield mod.with_function(name, made)


def _dimensions(function: AnyFunc) -> Iterator[prim.PrimExpr]:
    if isinstance(function, tir.PrimFunc):
        for n in walk(function.body):
            if isinstance(n, tir.For):
                yield n.extent
        for buffer in function.buffer_map.values():
            yield from buffer.shape
    elif isinstance(function, relax.Function):
        for param in function.params:
            yield from (n for n in walk(param.struct_info) if isinstance(n, prim.PrimExpr))


def _resized(mod: IRModule, resize: Rewriter) -> Iterator[IRModule]:
    functions: dict[str, AnyFunc] = {}
    for name, function in mod.functions.items():
        made = resize(function)
        if isinstance(made, relax.Function):
            made = reinferred(made, mod.with_functions({**mod.functions, **functions}))
            if made is None:
                return
        functions[name] = made
    yield mod.with_functions(functions)


class _Fix(Substitute):
    """Replaces dimensions, in the struct info of variables too."""

    def __init__(self, dims: Mapping[prim.Var, prim.PrimExpr]) -> None:
        super().__init__(dims)
        self.vars: dict[relax.Var, relax.Var] = {}

    @on(relax.Var, relax.DataflowVar)
    def variable(self, node: relax.Var) -> relax.Var:
        """One new variable for each old one."""
        if node not in self.vars:
            self.vars[node] = node.replace(struct_info=self.value(node.struct_info))
        return self.vars[node]


class _Resize(_Fix):
    """Puts one number in the place of another wherever it is an int64 or int32 constant, a size, or an attribute."""

    def __init__(self, old: int, new: int) -> None:
        super().__init__({})
        self.old, self.new = old, new

    @on(prim.IntImm)
    def number(self, node: prim.IntImm) -> prim.IntImm:
        """A constant."""
        return node if node.value != self.old or node.dtype.is_bool else node.replace(value=self.new)

    @on(relax.PrimValue)
    def scalar(self, node: relax.PrimValue) -> relax.PrimValue:
        """A scalar is no size."""
        return node

    def value(self, value: object) -> object:
        """A field's value; plain numbers are attributes."""
        if value.__class__ is int and value == self.old:
            return self.new
        return super().value(value)


STEPS: tuple[Step, ...] = (
    fewer_functions, earlier_result, part_of_result, plain_blocks, branch_instead, value_is_parameter, value_is_operand,
    fewer_bindings, fewer_parameters, smaller_dimensions,
)  # fmt: skip
