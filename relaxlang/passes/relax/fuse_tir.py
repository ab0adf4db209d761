"""FuseTIR: the kernels of a fused function become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from relaxlang.analysis.fusion import scalar_constant
from relaxlang.analysis.stages import stages_of
from relaxlang.base.record import record
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.equal_functions import EqualFunctions
from relaxlang.ir.fresh import Renew, renewed
from relaxlang.ir.module import AnyFunc, IRModule, function_info
from relaxlang.ir.prim import BOOL, HANDLE, IntImm, PointerType, PrimExpr
from relaxlang.ir.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ir.tir import Block, BlockRealize, Buffer, PrimFunc, Stmt
from relaxlang.ir.visit import on
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.bindings import BindingRewriter
from relaxlang.passes.relax.fuse_ops import PRIMITIVE
from relaxlang.passes.tir.inline_blocks import inline_blocks


@record
class FuseTIR(Pass):
    """Make one PrimFunc of every function with the attribute `Primitive`, and `call_tir` of the calls.

    Its kernels follow each other, with buffers between them; then what is elementwise or injective is computed where it
    is used (`inline-blocks`). Constants of one element become numbers. A function with anything else in it than kernels
    of plain loops stays a function.

    Before:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def exp(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
                for i in range(n):
                    with T.block("exp"):
                        vi = T.axis.spatial(n, i)
                        B[vi] = T.exp(A[vi])

            @R.function
            def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                cls = Module
                b = cls.fused_exp_exp(x)
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

    After:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def exp(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
                for i in range(n):
                    with T.block("exp"):
                        vi = T.axis.spatial(n, i)
                        B[vi] = T.exp(A[vi])

            @R.function
            def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                cls = Module
                b = R.call_tir(cls.fused_exp_exp, (x,), out_sinfo=R.Tensor((n,), "float32"))
                return b

            @T.prim_func(private=True)
            def fused_exp_exp(x: T.Buffer((n,), "float32"), b: T.Buffer((n,), "float32")):
                T.func_attr({"tir.noalias": True})
                for i in range(n):
                    with T.block("exp"):
                        vi = T.axis.spatial(n, i)
                        b[vi] = T.exp(T.exp(x[vi]))
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        functions: dict[str, AnyFunc] = dict(mod.functions)
        fused: dict[str, _Fused] = {}
        kernels = EqualFunctions()
        for name, func in mod.relax_functions():
            made = _fuse(func, mod) if func.attrs.get(PRIMITIVE) else None
            if made is None:
                continue
            # Groups that differed in what they are made of may be the same loops now.
            equal = kernels.find(made.kernel)
            if equal is not None:
                del functions[name]
                fused[name] = _Fused(equal, made.kernel, made.explicit)
            else:
                functions[name] = made.kernel
                kernels.add(name, made.kernel)
                fused[name] = _Fused(name, made.kernel, made.explicit)
        if not fused:
            return mod
        calls = _Calls(fused)
        for name, old in functions.items():
            if isinstance(old, relax.Function):
                functions[name] = calls(old)
        return mod.with_functions(functions)


@record
class _Fused:
    """A kernel, and what its calls hand over explicitly: (place of a shape argument, index in that shape)."""

    name: str
    kernel: PrimFunc
    explicit: tuple[tuple[int, int], ...]


class _Calls(BindingRewriter):
    def __init__(self, fused: Mapping[str, _Fused]) -> None:
        super().__init__()
        self.fused = fused
        self._callees: dict[str, relax.GlobalVar] = {}

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        call = binding.value
        if (
            not isinstance(call, relax.Call)
            or not isinstance(call.op, relax.GlobalVar)
            or call.op.name not in self.fused
        ):
            return (binding,)
        made, info = self.fused[call.op.name], call.struct_info
        assert info is not None
        tensors = tuple(a for a in call.args if isinstance(a.struct_info, TensorStructInfo))
        callee = self._callees.get(call.op.name)
        if callee is None:
            callee = self._callees[call.op.name] = relax.GlobalVar(made.name, function_info(made.kernel))
        args: tuple[relax.Expr, ...] = callee, relax.Tuple(tensors)
        if made.explicit:
            args += (relax.ShapeExpr(tuple(_shape(call.args[k])[i] for k, i in made.explicit)),)
        value = relax.Call(relax.Op("call_tir"), args, EMPTY, (info,), info, span=call.span)
        return (binding.replace(value=value),)


def _shape(arg: relax.Expr) -> tuple[PrimExpr, ...]:
    assert isinstance(arg, relax.ShapeExpr)
    return arg.values


# --- one function -----------------------------------------------------------------------------------------------------
def _fuse(func: relax.Function, mod: IRModule) -> _Fused | None:
    """The kernel that a function is, or None."""
    merge = _Merge(mod)
    for param in func.params:
        info = param.struct_info
        if isinstance(info, TensorStructInfo) and info.dims is not None and info.dtype is not None:
            merge.inputs.append(merge.declare(param, param.name, info))
        elif not isinstance(info, ShapeStructInfo) or info.values is None:
            return None
    bindings = [b for block in func.body.blocks for b in block.bindings]
    if not all(merge.add(b) for b in bindings):
        return None
    result = merge.values.get(func.body.body)
    outputs = result if isinstance(result, tuple) else (result,)
    if any(not isinstance(b, Buffer) or b in merge.inputs for b in outputs) or len(set(outputs)) != len(outputs):
        return None
    built = merge.build([b for b in outputs if isinstance(b, Buffer)])
    defined = {d for b in built.buffer_map.values() for d in b.shape if isinstance(d, prim.Var)}
    explicit = [v for v in _free(built) if v not in defined]
    places = {v: (k, i) for k, p in enumerate(func.params) for v, i in _named(p.struct_info)}
    if any(v not in places for v in explicit):
        return None
    kernel = renewed(inline_blocks(built.replace(params=(*built.params, *explicit))))
    return _Fused("", kernel, tuple(places[v] for v in explicit))


def _named(info: StructInfo) -> list[tuple[prim.Var, int]]:
    """The variables that a shape parameter defines, with their places in it."""
    values = info.values if isinstance(info, ShapeStructInfo) else None
    return [(v, i) for i, v in enumerate(values or ()) if isinstance(v, prim.Var)]


def _free(func: PrimFunc) -> list[prim.Var]:
    """The integer variables that a kernel uses and nothing in it defines, the shapes of its buffers aside."""
    bound: set[prim.Var] = set(func.params)
    used: dict[prim.Var, None] = {}
    scan = _Scan(bound, used)
    scan.value((tuple(func.buffer_map.values()), func.body))
    return [v for v in used if v not in bound and not v.dtype.is_handle]


class _Scan(Renew):
    """Collects variables; rewrites nothing that anybody keeps."""

    def __init__(self, bound: set[prim.Var], used: dict[prim.Var, None]) -> None:
        super().__init__()
        self.bound = bound
        self.used = used

    @on(prim.Var, prim.SizeVar)
    def var(self, node: prim.Var) -> PrimExpr:
        """A use."""
        self.used[node] = None
        return node

    @on(tir.For, tir.LetStmt, prim.Let, tir.IterVar)
    def binder(self, node: tir.For | tir.LetStmt | prim.Let | tir.IterVar) -> object:
        """What defines a variable."""
        self.bound.add(node.loop_var if isinstance(node, tir.For) else node.var)
        return self.below(node)


Value = Buffer | tuple[Buffer, ...] | PrimExpr


class _Merge:
    """Collects the stages of the kernels of a function. `values`: the buffer, or number, of each variable."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.inputs: list[Buffer] = []
        self.values: dict[relax.Expr, Value] = {}
        self.asserts: list[tir.AssertStmt] = []
        self.stages: list[Stmt] = []
        self.buffers: list[Buffer] = []
        self.names: set[str] = set()

    def declare(self, var: relax.Expr | None, name: str, info: TensorStructInfo) -> Buffer:
        """A buffer for a tensor."""
        assert info.dims is not None and info.dtype is not None
        unique, n = name, 0
        while unique in self.names:
            n += 1
            unique = f"{name}_{n}"
        self.names.add(unique)
        buffer = Buffer(unique, info.dims, info.dtype, prim.Var(unique, HANDLE, PointerType(info.dtype)))
        if var is not None:
            self.values[var] = buffer
        return buffer

    def add(self, binding: relax.Binding) -> bool:
        """Take a binding in; False when it is none of a kernel."""
        value = binding.value
        if isinstance(value, relax.TupleGetItem):
            fields = self.values.get(value.tuple_value)
            if not isinstance(fields, tuple) or value.index >= len(fields):
                return False
            self.values[binding.var] = fields[value.index]
            return True
        if not isinstance(value, relax.Call) or value.op != relax.Op("call_tir"):
            return False
        func = self.mod.functions.get(value.args[0].name) if isinstance(value.args[0], relax.GlobalVar) else None
        found = stages_of(func) if isinstance(func, PrimFunc) else None
        if not isinstance(func, PrimFunc) or found is None or not isinstance(value.args[1], relax.Tuple):
            return False
        given: list[Value | None] = [self.operand(a) for a in value.args[1].fields]
        info = value.sinfo_args[0]
        infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
        if any(not isinstance(i, TensorStructInfo) or i.dims is None or i.dtype is None for i in infos):
            return False
        outputs = tuple(self.declare(None, binding.var.name, i) for i in infos if isinstance(i, TensorStructInfo))
        self.values[binding.var] = outputs if isinstance(info, TupleStructInfo) else outputs[0]
        extra = value.args[2].values if len(value.args) > 2 and isinstance(value.args[2], relax.ShapeExpr) else ()
        copy = _instance(func, [*given, *outputs, *extra])
        if copy is None:
            return False
        self.buffers += [*outputs, *(copy(b) for b in found.buffers)]
        self.asserts += [copy(a.replace(body=tir.Evaluate(IntImm(BOOL, 0)))) for a in found.asserts]
        self.stages += [copy(stage.nest) for stage in found.stages]
        return True

    def operand(self, arg: relax.Expr) -> Value | None:
        """What an argument is inside the kernel."""
        if scalar_constant(arg) and isinstance(arg, relax.Constant):
            info = arg.struct_info
            assert isinstance(info, TensorStructInfo) and info.dtype is not None
            return prim.const(arg.data.reshape(-1)[0].item(), info.dtype)
        if isinstance(arg, relax.PrimValue):
            return arg.value
        return self.values.get(arg)

    def build(self, outputs: list[Buffer]) -> PrimFunc:
        """The kernel: inputs, outputs; what is between them is allocated."""
        params = [(prim.Var(b.name, HANDLE), b) for b in (*self.inputs, *outputs)]
        buffers = tuple(b for b in self.buffers if b not in outputs)
        body = tir.seq(*self.stages)
        for one in reversed(self.asserts):
            body = one.replace(body=body)
        root = BlockRealize((), IntImm(BOOL, 1), Block((), (), (), "root", body, alloc_buffers=buffers))
        return PrimFunc(tuple(v for v, _ in params), root, dict(params), None, Attrs({"tir.noalias": True}))


def _instance(func: PrimFunc, given: list[Value | None]) -> _Instance | None:
    """A rewriter that puts buffers and numbers in the places of a kernel's parameters; None when they do not fit."""
    if len(given) != len(func.params):
        return None
    mapping: dict[prim.Var, PrimExpr] = {}
    buffers: dict[Buffer, Buffer] = {}
    numbers: dict[Buffer, PrimExpr] = {}
    for param, value in zip(func.params, given):
        buffer = func.buffer_map.get(param)
        if buffer is None:
            if not isinstance(value, PrimExpr):
                return None
            mapping[param] = prim.cast(value, param.dtype)
        elif isinstance(value, Buffer):
            if len(value.shape) != len(buffer.shape) or value.dtype is not buffer.dtype or buffer.strides:
                return None
            buffers[buffer] = value
            for mine, theirs in zip(buffer.shape, value.shape):
                if isinstance(mine, prim.Var):
                    mapping.setdefault(mine, prim.cast(theirs, mine.dtype))
        elif isinstance(value, PrimExpr) and value.dtype is buffer.dtype:
            numbers[buffer] = value
            for mine in buffer.shape:
                if isinstance(mine, prim.Var):
                    mapping.setdefault(mine, IntImm(mine.dtype, 1))
        else:
            return None
    return _Instance(mapping, buffers, numbers)


class _Instance(Renew):
    """A copy of a kernel's statements with other buffers, and numbers in place of buffers of one element."""

    def __init__(
        self, mapping: dict[prim.Var, PrimExpr], buffers: dict[Buffer, Buffer], numbers: dict[Buffer, PrimExpr]
    ) -> None:
        super().__init__(mapping, buffers)
        self.numbers = numbers

    @on(prim.BufferLoad)
    def load(self, node: prim.BufferLoad) -> PrimExpr:
        """A load, or the number."""
        found = self.numbers.get(node.buffer)
        return found if found is not None else self.below(node)

    @on(Block)
    def block(self, node: Block) -> Block:
        """A block; what has become a number is not read any more."""
        if node.reads is not None:
            node = node.replace(reads=tuple(r for r in node.reads if r.buffer not in self.numbers))
        return self.below(node)
