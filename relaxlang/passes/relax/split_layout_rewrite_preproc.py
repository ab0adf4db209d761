"""SplitLayoutRewritePreproc: constants are brought into the order that kernels want before these are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from relaxlang.analysis.uses import expressions
from relaxlang.base.record import record
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.prim import BOOL, BufferLoad, IntImm, Var
from relaxlang.ir.struct_info import tensor_info
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferStore, PrimFunc, SeqStmt, Stmt, seq
from relaxlang.ir.visit import Rewriter, on, walk
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.bindings import BindingRewriter
from relaxlang.schedule.rules.analysis import LAYOUT_REWRITE
from relaxlang.schedule.stmts import walk_stmts


@record
class SplitLayoutRewritePreproc(Pass):
    """A stage of a kernel that only brings a parameter into another order, which a schedule marks with the annotation
    `meta_schedule.layout_rewrite_preproc`, becomes a kernel of its own, called before. When the kernel uses the
    parameter otherwise too, it takes both.

    Where the argument is a constant, `fold-constant` then does it while compiling, however large the result.

    Before:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def f(A: T.Buffer((4,), "float32"), W: T.Buffer((4, 2), "float32"), B: T.Buffer((4,), "float32")):
                P = T.alloc_buffer((2, 4), "float32")
                for i, j in T.grid(2, 4):
                    with T.block("P"):
                        T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                        vi, vj = T.axis.remap("SS", [i, j])
                        P[vi, vj] = W[vj, vi]
                for i in range(4):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        B[vi] = A[vi] + P[0, vi] * P[1, vi]

            @R.function
            def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4, 2), "float32")) -> R.Tensor((4,), "float32"):
                cls = Module
                y = R.call_tir(cls.f, (x, w), out_sinfo=R.Tensor((4,), "float32"))
                return y

    After:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def f(A: T.Buffer((4,), "float32"), P: T.Buffer((2, 4), "float32"), B: T.Buffer((4,), "float32")):
                for i in range(4):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        B[vi] = A[vi] + P[0, vi] * P[1, vi]

            @T.prim_func(private=True)
            def f_layout(W: T.Buffer((4, 2), "float32"), P: T.Buffer((2, 4), "float32")):
                T.func_attr({"meta_schedule.layout_rewrite_preproc": True})
                for i, j in T.grid(2, 4):
                    with T.block("P"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        P[vi, vj] = W[vj, vi]

            @R.function
            def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4, 2), "float32")) -> R.Tensor((4,), "float32"):
                cls = Module
                P = R.call_tir(cls.f_layout, (w,), out_sinfo=R.Tensor((2, 4), "float32"))
                y = R.call_tir(cls.f, (x, P), out_sinfo=R.Tensor((4,), "float32"))
                return y
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        changed: dict[str, AnyFunc] = dict(mod.functions)
        splits: dict[str, _Split] = {}
        called = only_called(mod)
        for name, func in mod.prim_funcs():
            found = _split(func) if name in called else None
            if found is not None:
                splits[name] = found
                changed[name] = found.main
        made = mod.with_functions(changed) if splits else mod
        for name, split in splits.items():
            split.name = made.unique_name(f"{name}_layout")
            made = made.with_function(split.name, split.before)
        for name, caller in mod.relax_functions() if splits else ():
            made = made.with_function(name, _Calls(made, splits)(caller))
        return made


@record(frozen=False)
class _Split:
    """A kernel in two: what runs before, under `name`, makes `buffer` of the parameter at `place`; and the rest, which
    takes that in the parameter's place, or after it when it is `shared`: used by the rest too."""

    before: PrimFunc
    main: PrimFunc
    place: int
    buffer: Buffer
    shared: bool
    name: str = ""


def only_called(mod: IRModule) -> dict[str, list[relax.Call]]:
    """The private PrimFuncs that Relax functions use with `call_tir` alone, with these calls."""
    calls: dict[str, list[relax.Call]] = {}
    uses: dict[str, int] = {}
    for _, caller in mod.relax_functions():
        for node in expressions(caller):
            if isinstance(node, relax.GlobalVar):
                uses[node.name] = uses.get(node.name, 0) + 1
            call = _plain_call(node)
            if call is not None:
                calls.setdefault(call[0].name, []).append(call[2])
    private = {name for name, func in mod.prim_funcs() if "global_symbol" not in func.attrs}
    for _, func in mod.prim_funcs():
        private -= {
            n.op.name for n in walk(func.body) if isinstance(n, prim.Call) and isinstance(n.op, relax.GlobalVar)
        }
    return {name: found for name, found in calls.items() if name in private and uses[name] == len(found)}


def _plain_call(node: object) -> tuple[relax.GlobalVar, relax.Tuple, relax.Call] | None:
    """The kernel and the arguments of a `call_tir`, and the call; None for other nodes."""
    if not isinstance(node, relax.Call) or not isinstance(node.op, relax.Op) or node.op.name != "call_tir":
        return None
    callee, args = node.args[:2]
    if not isinstance(callee, relax.GlobalVar) or not isinstance(args, relax.Tuple):
        return None
    return callee, args, node


def _split(func: PrimFunc) -> _Split | None:
    """A kernel in two; None when no stage of it is marked."""
    root = func.body
    if not isinstance(root, BlockRealize) or root.block.iter_vars or func.attrs.get("tir.is_scheduled"):
        return None
    stages = root.block.body.seq if isinstance(root.block.body, SeqStmt) else (root.block.body,)
    for stage in stages:
        marked = [s for s in walk_stmts(stage) if isinstance(s, Block)]
        if len(marked) != 1 or LAYOUT_REWRITE not in marked[0].annotations:
            continue
        own = set(marked[0].alloc_buffers)
        sources = {n.buffer for n in walk(stage) if isinstance(n, BufferLoad)} - own
        targets = {n.buffer for n in walk(stage) if isinstance(n, BufferStore)} - own
        rest = seq(*(s for s in stages if s is not stage))
        params = {buffer: k for k, p in enumerate(func.params) if (buffer := func.buffer_map.get(p)) is not None}
        if len(sources) != 1 or len(targets) != 1:
            continue
        source, target = sources.pop(), targets.pop()
        shared = any(isinstance(n, (BufferLoad, BufferStore)) and n.buffer is source for n in walk(rest))
        known = all(isinstance(d, IntImm) for d in (*target.shape, *source.shape))
        if source in params and target in root.block.alloc_buffers and known:
            return _halves(func, root, stage, rest, params[source], target, shared)
    return None


def _halves(
    func: PrimFunc, root: BlockRealize, stage: Stmt, rest: Stmt, place: int, target: Buffer, shared: bool
) -> _Split:  # fmt: skip
    param = func.params[place]
    made = Var(target.name, param.dtype)
    before = PrimFunc(
        (param, made), BlockRealize((), IntImm(BOOL, 1), Block((), (), (), "root", _Unmarked()(stage))),
        buffer_map={param: func.buffer_map[param], made: target}, attrs=Attrs({LAYOUT_REWRITE: True}),
    )  # fmt: skip
    kept = tuple(b for b in root.block.alloc_buffers if b is not target)
    taken = (param, made) if shared else (made,)
    params = (*func.params[:place], *taken, *func.params[place + 1 :])
    buffers = {**func.buffer_map, made: target}
    main = func.replace(
        params=params,
        buffer_map={p: buffers[p] for p in params if p in buffers},
        body=root.replace(block=root.block.replace(body=rest, alloc_buffers=kept)),
    )
    return _Split(before, main, place, target, shared)


class _Unmarked(Rewriter):
    """Removes the annotation."""

    @on(Block)
    def block(self, node: Block) -> Block:
        """The marked block."""
        return node.replace(annotations=Attrs(node.annotations).without(LAYOUT_REWRITE))


class _Calls(BindingRewriter):
    """Calls what runs before, and the rest with its result."""

    def __init__(self, mod: IRModule, splits: Mapping[str, _Split]) -> None:
        super().__init__()
        self.mod = mod
        self.splits = splits

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        found = _plain_call(binding.value)
        if found is None or found[0].name not in self.splits:
            return (binding,)
        (callee, given, call), split = found, self.splits[found[0].name]
        fields = given.fields
        info = tensor_info(tuple(prim.cast(d, prim.INT64) for d in split.buffer.shape), split.buffer.dtype)
        args = (self.mod.global_var(split.name), relax.Tuple((fields[split.place],)))
        before = relax.Call(relax.Op("call_tir"), args, EMPTY, (info,), info, span=call.span)
        made = self.emit(split.buffer.name, before, info, call.span)
        taken = (fields[split.place], made) if split.shared else (made,)
        changed = relax.Tuple((*fields[: split.place], *taken, *fields[split.place + 1 :]))
        args = (self.mod.global_var(callee.name), changed)
        return (binding.replace(value=call.replace(args=(*args, *call.args[2:]))),)
