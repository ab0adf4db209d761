"""How much memory a function needs for its intermediates, and when."""

from __future__ import annotations

from collections.abc import Mapping

from relaxlang.analysis.alias import FOREIGN, Aliases
from relaxlang.analysis.liveness import last_uses
from relaxlang.analysis.sizes import Sizes
from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record, replace
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import IntImm, PrimExpr
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.ops import default_operators

_ALLOCATIONS = {"builtin.alloc_tensor": 1, "memory.alloc_storage": 3, "vm.alloc_storage": 2}
"""Operators that allocate, with the place of the element type among their arguments; the first is the shape."""
_TENSORS = ("memory.alloc_tensor", "vm.alloc_tensor")
"""Operators that place a tensor in memory that is allocated already; the shape and dtype are arguments 2 and 3."""


@record
class MemoryUse:
    """Bytes of one function: `allocated`, all it allocates, and `peak`, the most that is needed at one time.

    Of the branches of a conditional the larger counts; functions that it calls, inputs and constants do not.
    """

    allocated: int
    peak: int


@record
class Interval:
    """A piece of memory: the variable that stands for it, its bytes, the bindings (by number) at which it is made and
    needed last, and the variables whose values lie in it, one after another. `gaps` are bindings of the other branch in
    between, first and last of each."""

    name: str
    size: int
    first: int
    last: int
    holds: tuple[str, ...]
    gaps: tuple[tuple[int, int], ...] = ()

    def needed(self, step: int) -> bool:
        """Whether the memory is needed at a binding."""
        return self.first <= step <= self.last and not any(low <= step <= high for low, high in self.gaps)


@record
class Timeline:
    """The memory of one function: `steps` are its bindings by name, those of branches among them, `intervals` the
    pieces of memory in the order in which they are made.

    `allocated` is what it allocates, `tensors` the bytes of all tensors as if none shared memory (both counting the
    larger branch of a conditional), `held` the bytes of parameters and of constants, as far as they are known.
    """

    function: str
    steps: tuple[str, ...]
    intervals: tuple[Interval, ...]
    allocated: int
    tensors: int
    held: tuple[int, int]

    def alive(self, step: int) -> tuple[Interval, ...]:
        """The pieces of memory that are needed at a step."""
        return tuple(i for i in self.intervals if i.needed(step))

    @property
    def usage(self) -> tuple[int, ...]:
        """The bytes that are needed at each step."""
        change = [0] * (len(self.steps) + 2)
        for interval in self.intervals:
            change[interval.first] += interval.size
            change[interval.last + 1] -= interval.size
            for low, high in interval.gaps:
                change[low] -= interval.size
                change[high + 1] += interval.size
        made, total = [], 0
        for at in range(max(len(self.steps), 1)):
            total += change[at]
            made.append(total)
        return tuple(made)

    @property
    def peak(self) -> int:
        """The most bytes that are needed at one time."""
        return max(self.usage)

    @property
    def peak_step(self) -> int:
        """The first step at which most bytes are needed."""
        usage = self.usage
        return usage.index(max(usage))


def memory_use(mod: IRModule, name: str = "main", dims: Mapping[str, int] | None = None) -> MemoryUse:
    """What a function allocates after `call-tir-rewrite`, before and after planning.

    `dims` gives values to symbolic dimensions, by name; those without one count with the upper bound that the function
    states for them. RLX3112 when there is neither.
    """
    made = timeline(mod, name, dims)
    return MemoryUse(made.allocated, made.peak)


def timeline(mod: IRModule, name: str = "main", dims: Mapping[str, int] | None = None) -> Timeline:
    """When a function needs which memory, after `call-tir-rewrite`, before and after planning. `dims` and errors as of
    `memory_use`."""
    func = mod[name]
    if not isinstance(func, relax.Function):
        fail("RLX3112", f"`{name}` is no Relax function, it allocates nothing", func.span)
    walk = _Walk(func, Aliases(func, mod, default_operators(mod)), dims or {})
    allocated, tensors = walk.sequence(func.body)
    return Timeline(name, tuple(walk.steps), walk.intervals(), allocated, tensors, walk.held())


class _Walk:
    """Numbers the bindings of a function, those of branches too, and notes what is made and used at each."""

    def __init__(self, func: relax.Function, aliases: Aliases, dims: Mapping[str, int]) -> None:
        self.func = func
        self.aliases = aliases
        self.dims = dims
        self.sizes = Sizes(func)
        self.steps: list[str] = []
        self.made: dict[int, tuple[str, int, int]] = {}
        self.last: dict[int, int] = {}
        self.names: dict[int, dict[str, None]] = {}
        self.constants: dict[int, int] = {}
        self.conditionals: list[tuple[int, int, int]] = []

    def sequence(self, seq: relax.SeqExpr) -> tuple[int, int]:
        """Note a sequence; the bytes that it allocates, and those of its tensors."""
        allocated = tensors = 0
        starts, ends = list[int](), list[int]()
        for block in seq.blocks:
            for binding in block.bindings:
                starts.append(len(self.steps))
                inner = self.binding(binding)
                allocated, tensors = allocated + inner[0], tensors + inner[1]
                ends.append(len(self.steps) - 1)
        ends.append(len(self.steps) - 1 if ends else max(len(self.steps) - 1, 0))
        for var, at in last_uses(seq).items():
            for memory in self.aliases.of(var) - {FOREIGN}:
                if at < len(starts) and memory in self.made and self.made[memory][2] > starts[at]:
                    continue  # made and used within a branch, which has noted that itself
                self.last[memory] = max(self.last.get(memory, 0), ends[at])
        return allocated, tensors

    def binding(self, binding: relax.Binding) -> tuple[int, int]:
        """Note a binding; the bytes that it allocates, and those of the tensors that it makes."""
        at, value = len(self.steps), binding.value
        self.steps.append(binding.var.name)
        self._constants(value)
        if isinstance(value, relax.If):
            branches = [self.sequence(value.true_branch)]
            middle = len(self.steps)
            branches.append(self.sequence(value.false_branch))
            self.conditionals.append((at + 1, middle, len(self.steps)))
            return max(b[0] for b in branches), max(b[1] for b in branches)
        size, tensor = self.allocation(value)
        memories = self.aliases.of(binding.var) - {FOREIGN}
        if size is not None:
            for memory in memories:
                self.made[memory] = (binding.var.name, size, at)
        elif len(memories) == 1 and binding.var.name != "_":
            names = self.names.setdefault(next(iter(memories)), {})
            if isinstance(value, relax.Var):
                names.pop(value.name, None)  # `b = alloc`: the memory's own name says nothing
            names[binding.var.name] = None
        return size or 0, tensor

    def allocation(self, value: relax.Expr) -> tuple[int | None, int]:
        """The bytes that an expression allocates, None for none, and those of the tensor that it makes."""
        if not isinstance(value, relax.Call) or not isinstance(value.op, relax.Op):
            return None, 0
        name = value.op.name
        if name in _TENSORS:
            return None, self.bytes_of(value.args[2], value.args[3])
        if name not in _ALLOCATIONS:
            return None, 0
        size = self.bytes_of(value.args[0], value.args[_ALLOCATIONS[name]])
        return size, size if name == "builtin.alloc_tensor" else 0

    def bytes_of(self, shape: relax.Expr, element: relax.Expr) -> int:
        """The bytes of a shape of elements; RLX3112 when a dimension has neither a value nor an upper bound."""
        if not isinstance(shape, relax.ShapeExpr) or not isinstance(element, relax.DataTypeImm):
            return 0
        dims = tuple(self._valued(d) for d in shape.values)
        size = self.sizes.most(self.sizes.bytes_of(dims, element.value.itemsize))
        if size is None:
            lacking = next(iter(free_vars(dims)), None)
            if lacking is None:
                fail("RLX3112", f"the dimensions of `{shape}` are no numbers")
            fail(
                "RLX3112",
                f"the symbolic dimension `{lacking.name}` needs a value",
                help=f'`dims={{"{lacking.name}": …}}`; on the command line `--dim {lacking.name}=…`',
            )
        return size

    def _valued(self, dim: PrimExpr) -> PrimExpr:
        values: dict[prim.Var, PrimExpr] = {}
        for var in free_vars(dim):
            if var.name in self.dims:
                values[var] = IntImm(var.dtype, self.dims[var.name])
        return substitute(dim, values)

    def _constants(self, value: relax.Expr) -> None:
        parts = value.args if isinstance(value, relax.Call) else (value,)
        for part in parts:
            if isinstance(part, relax.Constant):
                self.constants[id(part.content)] = int(part.content.nbytes)

    def intervals(self) -> tuple[Interval, ...]:
        """What was noted of each piece of memory."""
        found = []
        for memory, (name, size, first) in self.made.items():
            last = max(self.last.get(memory, first), first)
            found.append(Interval(name, size, first, last, tuple(self.names.get(memory, ()))))
        for conditional in self.conditionals:
            found = _exclusive(found, *conditional)
        return tuple(sorted(found, key=lambda i: i.first))

    def held(self) -> tuple[int, int]:
        """The bytes of parameters, as far as they are known, and of constants."""
        total = 0
        for param in self.func.params:
            info = param.struct_info
            dims = getattr(info, "dims", None)
            element = getattr(info, "dtype", None)
            if dims is not None and element is not None:
                size = self.sizes.most(self.sizes.bytes_of(tuple(self._valued(d) for d in dims), element.itemsize))
                total += size or 0
        return total, sum(self.constants.values())


def _exclusive(found: list[Interval], start: int, middle: int, end: int) -> list[Interval]:
    """Intervals of which those of a conditional's branches (`start` to `middle` and `middle` to `end`) exclude each
    other: what leaves the first is not needed in the second, and of what leaves both the larger counts afterwards."""

    def leaving(low: int, high: int) -> list[Interval]:
        return [i for i in found if low <= i.first < high and i.last >= end]

    first, second = leaving(start, middle), leaving(middle, end)
    smaller, bound = (first, middle - 1) if _total(first) < _total(second) else (second, end - 1)
    changed = {id(i): replace(i, gaps=(*i.gaps, (middle, end - 1))) for i in first if middle < end}
    if first and second:
        changed |= {id(i): replace(i, last=max(bound, i.first)) for i in smaller}
    return [changed.get(id(i), i) for i in found]


def _total(intervals: list[Interval]) -> int:
    return sum(i.size for i in intervals)
