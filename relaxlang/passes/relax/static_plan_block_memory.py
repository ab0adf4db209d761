"""StaticPlanBlockMemory: tensors that are not alive at the same time share memory."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.analysis.alias import FOREIGN, Aliases
from relaxlang.analysis.liveness import last_uses
from relaxlang.analysis.sizes import Sizes
from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType, dtype
from relaxlang.base.record import fresh, record
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import INT64, IntImm, PrimExpr
from relaxlang.ir.struct_info import OBJECT
from relaxlang.ir.visit import walk
from relaxlang.ops import default_operators
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.bindings import BindingRewriter

RANGE = 16
"""A storage of known size is reused for tensors up to this many times smaller or larger (then it grows)."""


@record
class StaticPlanBlockMemory(FunctionPass):
    """Give tensors storages that earlier ones do not need any more, where it is proved that they are large enough.

    A tensor is alive as long as anything that may be in its memory is used: views, tuples, results of calls that were
    given it. One that leaves its function, or the branch that made it, keeps memory of its own. Storages of symbolic
    size are reused for sizes that are equal or provably smaller; the attribute `tir_var_upper_bound` of a function
    makes sizes known. Branches may use what is free where they begin.

    Before:

        @R.function(private=True)
        def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
            R.func_attr({"relax.force_pure": True})
            a = R.builtin.alloc_tensor(R.shape([n, 4]), R.dtype("float32"), R.prim_value(0), R.str("global"))
            _ = R.call_packed("f", x, a)
            b = R.builtin.alloc_tensor(R.shape([4, n]), R.dtype("float32"), R.prim_value(0), R.str("global"))
            _1 = R.call_packed("f", a, b)
            c = R.builtin.alloc_tensor(R.shape([n]), R.dtype("float32"), R.prim_value(0), R.str("global"))
            _2 = R.call_packed("f", b, c)
            d = R.builtin.alloc_tensor(R.shape([n, 4]), R.dtype("float32"), R.prim_value(0), R.str("global"))
            _3 = R.call_packed("f", c, d)
            return d

    After:

        @R.function(private=True)
        def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
            R.func_attr({"relax.force_pure": True})
            storage = R.memory.alloc_storage(R.shape([n, 4]), R.prim_value(0), R.str("global"), R.dtype("float32"))
            a = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
            _ = R.call_packed("f", x, a)
            storage_1 = R.memory.alloc_storage(R.shape([4, n]), R.prim_value(0), R.str("global"), R.dtype("float32"))
            b = R.memory.alloc_tensor(storage_1, R.prim_value(0), R.shape([4, n]), R.dtype("float32"))
            _1 = R.call_packed("f", a, b)
            c = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n]), R.dtype("float32"))
            _2 = R.call_packed("f", b, c)
            d = R.builtin.alloc_tensor(R.shape([n, 4]), R.dtype("float32"), R.prim_value(0), R.str("global"))
            _3 = R.call_packed("f", c, d)
            return d
    """

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        if not any(isinstance(n, relax.Call) and n.op == ALLOC for n in walk(func)):
            return func
        plan = _Plan(func, Aliases(func, mod, default_operators(mod)))
        made: relax.Function = _Rewrite(plan.tokens)(func)
        return made


ALLOC = relax.Op("builtin.alloc_tensor")


@record(frozen=False, eq=False)
class _Token:
    """A storage: for `bytes` bytes where that is known, else for `dims` elements of `dtype`, which are `size` bytes."""

    place: tuple[object, object]
    bytes: int | None
    size: PrimExpr
    dims: tuple[PrimExpr, ...]
    dtype: DType
    var: relax.Var = fresh(factory=lambda: relax.Var("storage", OBJECT))
    made: bool = False


class _Plan:
    """`tokens`: the storage of each planned tensor."""

    def __init__(self, func: relax.Function, aliases: Aliases) -> None:
        self.aliases = aliases
        self.sizes = Sizes(func)
        self.tokens: dict[relax.Var, _Token] = {}
        self.function(func)

    def function(self, func: relax.Function) -> None:
        """A function of its own: it starts with no storage."""
        self.sequence(func.body, [])

    def sequence(self, seq: relax.SeqExpr, free: list[_Token]) -> None:
        """A sequence; `free` are the storages that it may use, and again after it."""
        last: dict[int, int] = {}
        for var, at in last_uses(seq).items():
            for memory in self.aliases.of(var):
                last[memory] = max(at, last.get(memory, 0))
        ends: dict[int, list[_Token]] = {}
        leaves = self.aliases.of(seq.body)
        at = 0
        for block in seq.blocks:
            for binding in block.bindings:
                self.inside(binding.value, free)
                token = self.planned(binding, leaves, free)
                if token is not None:
                    (memory,) = self.aliases.of(binding.var)
                    ends.setdefault(max(at, last.get(memory, at)), []).append(token)
                free += ends.pop(at, ())
                at += 1

    def inside(self, value: relax.Expr, free: list[_Token]) -> None:
        """Branches and inner functions: what they make is theirs."""
        if isinstance(value, relax.If):
            self.sequence(value.true_branch, list(free))
            self.sequence(value.false_branch, list(free))
        elif isinstance(value, relax.Function):
            self.function(value)

    def planned(self, binding: relax.Binding, leaves: frozenset[int], free: list[_Token]) -> _Token | None:
        """The storage of a tensor that a binding allocates; None for other bindings, and for tensors that get none."""
        call = binding.value
        if not isinstance(call, relax.Call) or call.op != ALLOC or self.aliases.of(binding.var) & leaves:
            return None
        shape, of, *rest = call.args
        if not isinstance(shape, relax.ShapeExpr) or not isinstance(of, relax.DataTypeImm):
            return None
        scope = rest[1].value if len(rest) > 1 and isinstance(rest[1], relax.StringImm) else "global"
        device = rest[0].value if rest and isinstance(rest[0], relax.PrimValue) else 0
        size = self.sizes.bytes_of(shape.values, of.value.itemsize)
        need = _Token((scope, device), self.sizes.most(size), size, shape.values, of.value)
        token = self.chosen(need, free)
        if token is need:
            token.var = relax.Var("storage", OBJECT, span=binding.span)
        else:
            free.remove(token)
        self.tokens[binding.var] = token
        return token

    def chosen(self, need: _Token, free: list[_Token]) -> _Token:
        """The free storage that fits best; `need` itself as a new one when none does."""
        there = [t for t in free if t.place == need.place]
        if need.bytes is None:
            equal = [t for t in there if t.bytes is None and t.size == need.size]
            room = equal or [t for t in there if t.bytes is None and self.sizes.fits(need.size, t.size)]
            return room[0] if room else need
        known = [(t.bytes, k) for k, t in enumerate(there) if t.bytes is not None]
        above = [(b, k) for b, k in known if need.bytes <= b <= RANGE * need.bytes]
        below = [(b, k) for b, k in known if b < need.bytes <= RANGE * b]
        if above:
            return there[min(above)[1]]
        if not below:
            return need
        token = there[max(below)[1]]
        token.bytes, token.size, token.dims, token.dtype = need.bytes, need.size, need.dims, need.dtype
        return token


class _Rewrite(BindingRewriter):
    def __init__(self, tokens: dict[relax.Var, _Token]) -> None:
        super().__init__()
        self.tokens = tokens

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        token, call = self.tokens.get(binding.var), binding.value
        if token is None or not isinstance(call, relax.Call):
            return (binding,)
        shape, of, device = call.args[:3]
        if not token.made:
            token.made = True
            scope = call.args[3] if len(call.args) > 3 else relax.StringImm("global")
            args = (*_extent(token, device), scope, relax.DataTypeImm(_element(token)))
            value = relax.Call(relax.Op("memory.alloc_storage"), args, EMPTY, (), OBJECT, span=call.span)
            self.pending.append(relax.VarBinding(token.var, value, span=call.span))
        offset = relax.PrimValue(IntImm(INT64, 0))
        on_it: tuple[relax.Expr, ...] = (token.var, offset, shape, of)
        tensor = relax.Call(relax.Op("memory.alloc_tensor"), on_it, EMPTY, (), call.struct_info, span=call.span)
        return (binding.replace(value=tensor),)


def _extent(token: _Token, device: relax.Expr) -> tuple[relax.Expr, relax.Expr]:
    """The size and the device of a storage. Symbolic sizes stay products of dimensions: whoever allocates multiplies
    them, and notices when that is too much."""
    if token.bytes is None:
        return relax.ShapeExpr(token.dims), device
    return relax.ShapeExpr((prim.const(token.bytes, INT64),)), device


def _element(token: _Token) -> DType:
    return token.dtype if token.bytes is None else dtype("uint8")


# --- why not ----------------------------------------------------------------------------------------------------------
@record
class ReuseAnswer:
    """Whether two variables of a function lie in the same memory after planning, and why, in words."""

    first: str
    second: str
    shared: bool
    reason: str


def explain_reuse(mod: IRModule, a: str, b: str, func_name: str = "main") -> ReuseAnswer:
    """Whether `StaticPlanBlockMemory` gives the variables `a` and `b` of a function the same memory, and if not, why
    not. `mod` is as the pass takes it, after `call-tir-rewrite`. RLX3112 when the function has no such variable.
    """
    func = mod[func_name]
    if not isinstance(func, relax.Function):
        fail("RLX3112", f"`{func_name}` is no Relax function, it allocates nothing", func.span)
    return _Reasons(func, Aliases(func, mod, default_operators(mod))).answer(a, b)


class _Reasons:
    """What planning knows of the variables of a function's outermost sequence: `made` numbers the bindings."""

    def __init__(self, func: relax.Function, aliases: Aliases) -> None:
        self.func = func
        self.aliases = aliases
        self.plan = _Plan(func, aliases)
        self.bindings = [b for block in func.body.blocks for b in block.bindings]
        self.made = {b.var: at for at, b in enumerate(self.bindings)}
        self.allocations = {
            memory: b for b in self.bindings for memory in aliases.of(b.var) if _allocates(b) and memory != FOREIGN
        }
        self.last: dict[int, int] = {}
        for var, at in last_uses(func.body).items():
            for memory in aliases.of(var):
                self.last[memory] = max(at, self.last.get(memory, 0))

    def answer(self, a: str, b: str) -> ReuseAnswer:
        """The answer for two variables, that one first whose memory is made first."""
        one, two = self.memory(a), self.memory(b)
        if isinstance(one, str) or isinstance(two, str):
            return ReuseAnswer(a, b, False, one if isinstance(one, str) else str(two))
        if self.made[self.allocations[one].var] > self.made[self.allocations[two].var]:
            a, b, one, two = b, a, two, one
        if one == two:
            return ReuseAnswer(a, b, True, f"`{b}` lies in the memory of `{a}`: it is another name for it, or a view")
        first, second = self.allocations[one], self.allocations[two]
        tokens = self.plan.tokens
        if first.var in tokens and tokens.get(second.var) is tokens[first.var]:
            return ReuseAnswer(a, b, True, f"`{b}` is put where `{a}` was")
        return ReuseAnswer(a, b, False, self.reason(a, b, first, second))

    def memory(self, name: str) -> int | str:
        """The memory of a variable; when it has none of its own, why, in words."""
        params = [p.name for p in self.func.params]
        if name in params:
            return f"`{name}` is a parameter: its memory is the caller's"
        found = [b for b in self.bindings if b.var.name == name]
        if not found:
            fail("RLX3112", f"the function has no variable `{name}` outside of branches when memory is planned")
        memories = self.aliases.of(found[-1].var)
        own = [m for m in memories if m in self.allocations]
        if len(own) == 1:
            return own[0]
        if own:
            return f"`{name}` may lie in more than one piece of memory"
        return f"`{name}` has no memory that this function plans: a branch, or a function that is called, has made it"

    def reason(self, a: str, b: str, first: relax.Binding, second: relax.Binding) -> str:
        """Why `b`, made later, is not put where `a` was."""
        leaves = self.aliases.of(self.func.body.body)
        for name, binding in ((a, first), (b, second)):
            if self.aliases.of(binding.var) & leaves:
                return f"`{name}` leaves the function: what is given to the caller has memory of its own"
            if binding.var not in self.plan.tokens:
                return f"`{name}` is not planned: its shape is not known where it is made"
        (memory,) = self.aliases.of(first.var)
        last, at = self.last.get(memory, self.made[first.var]), self.made[second.var]
        if last > at:
            user = self.bindings[min(last, len(self.bindings) - 1)]
            until = self._written(user) if user.var.name == "_" else f"`{user.var.name}`"
            return (
                f"their lifetimes overlap: `{a}` is needed until {until} is computed (binding {last}), and the memory "
                f"of `{b}` is made before that (binding {at})"
            )
        return self.misfit(a, b, first, second)

    def _written(self, binding: relax.Binding) -> str:
        """What a call that returns nothing computes: the variable whose memory it is given last."""
        args = binding.value.args if isinstance(binding.value, relax.Call) else ()
        named = [n.name for a in args for n in walk(a) if isinstance(n, relax.Var)]
        memories = [self.aliases.of(n) for a in args for n in walk(a) if isinstance(n, relax.Var)]
        names = {m: b.var.name for b in self.bindings if b.var.name != "_" for m in self.aliases.of(b.var)}
        known = next((names[m] for of in memories[-1:] for m in of if m in names), None)
        return f"`{known or (named[-1] if named else binding.var.name)}`"

    def misfit(self, a: str, b: str, first: relax.Binding, second: relax.Binding) -> str:
        """Why the memory of `a`, which is free by then, does not suit `b`."""
        old, new = self.needed(first), self.needed(second)
        if old.place != new.place:
            return "they lie in different scopes, or on different devices"
        if (old.bytes is None) != (new.bytes is None):
            unknown = a if old.bytes is None else b
            size = old.size if old.bytes is None else new.size
            return (
                f"the size of `{unknown}`, {size} bytes, is not known while compiling, and the other's is: neither is "
                f"used for the other (the attribute `tir_var_upper_bound` of a function makes sizes known)"
            )
        if old.bytes is None or new.bytes is None:
            if not self.plan.sizes.fits(new.size, old.size):
                return f"`{b}` is not proved to fit: it takes {new.size} bytes, and `{a}` has {old.size}"
        elif max(old.bytes, new.bytes) > RANGE * max(1, min(old.bytes, new.bytes)):
            return (
                f"their sizes are too different: {old.bytes:,} and {new.bytes:,} bytes (memory is used again for "
                f"tensors up to {RANGE} times smaller or larger)"
            )
        return self.taken(a, b, first, second)

    def taken(self, a: str, b: str, first: relax.Binding, second: relax.Binding) -> str:
        """What took the memory of `a` instead, or what `b` took."""
        between = self.bindings[self.made[first.var] + 1 : self.made[second.var]]
        token, other = self.plan.tokens[first.var], self.plan.tokens[second.var]
        names = {m: v.var.name for v in self.bindings if v.var.name != "_" for m in self.aliases.of(v.var)}

        def name_of(binding: relax.Binding) -> str:
            return next((names[m] for m in self.aliases.of(binding.var) if m in names), binding.var.name)

        takers = [name_of(x) for x in between if self.plan.tokens.get(x.var) is token]
        if takers:
            return f"the memory of `{a}` went to `{takers[-1]}` first"
        earlier = [name_of(x) for x in self.bindings[: self.made[second.var]] if self.plan.tokens.get(x.var) is other]
        if earlier:
            return f"`{b}` is put where `{earlier[-1]}` was, whose size suits it better"
        return f"the memory of `{a}` is not free yet where `{b}` is made"

    def needed(self, binding: relax.Binding) -> _Token:
        """The storage that a tensor would need by itself."""
        call = binding.value
        assert isinstance(call, relax.Call) and isinstance(call.args[0], relax.ShapeExpr)  # it is planned
        shape, of = call.args[:2]
        assert isinstance(shape, relax.ShapeExpr) and isinstance(of, relax.DataTypeImm)
        size = self.plan.sizes.bytes_of(shape.values, of.value.itemsize)
        place = self.plan.tokens[binding.var].place
        return _Token(place, self.plan.sizes.most(size), size, shape.values, of.value)


def _allocates(binding: relax.Binding) -> bool:
    return isinstance(binding.value, relax.Call) and binding.value.op == ALLOC
