"""`Schedule`: a program, and the primitives that transform it without changing what it computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from relaxlang.analysis.index_ranges import require_in_range
from relaxlang.arith.index_map import IndexMap
from relaxlang.base.arguments import checked_methods
from relaxlang.base.diagnostics import fail
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import INT64, PrimExpr, Var
from relaxlang.ir.tir import BlockRealize, PrimFunc
from relaxlang.schedule import checks
from relaxlang.schedule.primitives import (
    annotate,
    blockize,
    cache,
    compute_at,
    compute_inline,
    decompose_reduction,
    fuse,
    loop_kind,
    pad_einsum,
    reorder,
    rfactor,
    sampling,
    split,
    tensorize,
    tile,
    transform_layout,
)
from relaxlang.schedule.state import State, normalized
from relaxlang.schedule.trace import BlockRV, ExprRV, Instruction, LoopRV, Trace

_T = TypeVar("_T")
Factor = int | ExprRV | PrimExpr | None
Target = BlockRV | LoopRV | str


@checked_methods
class Schedule:
    """A schedule of the PrimFuncs of a module, as TVM's `Schedule`.

        sch = relaxlang.Schedule(mod)
        i, j, k = sch.get_loops("matmul")
        io, ii = sch.split(i, [None, 8])
        sch.parallel(io)
        print(sch.mod)

    `mod` is the program as it stands, `trace` what led there, `undo()` takes the last instruction back. A primitive
    that does not apply raises a diagnostic RLX10xx and changes nothing. Wherever a block is wanted, its name will do.
    """

    INSTRUCTIONS = frozenset(
        "get_block get_loops get_child_blocks get_producers get_consumers get_output_blocks split fuse reorder "
        "parallel vectorize unroll compute_at reverse_compute_at compute_inline reverse_compute_inline cache_read "
        "cache_write reindex decompose_reduction rfactor transform_layout blockize annotate unannotate set_scope "
        "storage_align pad_einsum tile tensorize sample_perfect_tile sample_categorical work_on".split()
    )
    LISTS = frozenset(
        "get_loops get_child_blocks get_producers get_consumers get_output_blocks split tile "
        "sample_perfect_tile".split()
    )

    def __init__(self, mod: IRModule | PrimFunc, *, seed: int = 0) -> None:
        if isinstance(mod, PrimFunc):
            name = str(mod.attrs.get("global_symbol", "main"))
            mod = IRModule({name: mod})
        self.mod = mod
        self.trace = Trace()
        self._random = sampling.Samples(int(seed))
        self._states: dict[str, State] = {}
        functions = [name for name, _ in mod.prim_funcs()]
        self._working = functions[0] if functions and "main" not in functions else "main"
        self._blocks: dict[BlockRV, tuple[str, str]] = {}
        self._loops: dict[LoopRV, tuple[str, Var]] = {}
        self._history: list[tuple[Any, ...]] = []

    @classmethod
    def of_sound(cls, func: PrimFunc) -> Schedule:
        """A schedule of a `main` that a rule made of a function without indices out of range: nobody looks again."""
        made = cls(IRModule({"main": func}))
        made._states["main"] = State(normalized(func), "main")
        return made

    # --- state --------------------------------------------------------------------------------------------------------
    @property
    def func_working_on(self) -> str:
        """The PrimFunc in which names are looked up."""
        return self._working

    def work_on(self, func_name: str) -> None:
        """Look names up in this PrimFunc from now on."""
        self._state(func_name)
        self._note("work_on", (func_name,), {}, ())
        self._working = func_name

    @property
    def state(self) -> State:
        """The PrimFunc that names are looked up in, with its blocks and loops."""
        return self._state(self._working)

    def _state(self, name: str) -> State:
        if name not in self._states:
            func = self.mod.functions.get(name)
            if not isinstance(func, PrimFunc):
                near = did_you_mean(name, [n for n, _ in self.mod.prim_funcs()])
                fail("RLX1001", f"the module has no PrimFunc `{name}`", help=f"did you mean `{near}`?" if near else "")
            require_in_range((func,))
            self._states[name] = State(normalized(func), name)
        return self._states[name]

    def _advance(self, state: State) -> None:
        self._states[state.name] = state
        self.mod = self.mod.with_function(state.name, state.func)

    def _note(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], results: Sequence[Any]) -> None:
        self._history.append((self.mod, dict(self._states), dict(self._blocks), self.trace, self._working))
        self.trace = self.trace + Instruction(method, args, kwargs, tuple(results), method in self.LISTS)

    def undo(self) -> None:
        """Take the last instruction back; RLX1013 when there is none."""
        if not self._history:
            fail("RLX1013", "there is nothing to undo: the schedule has no instructions")
        self.mod, self._states, self._blocks, self.trace, self._working = self._history.pop()

    def copy(self) -> Schedule:
        """An independent schedule in the same state; its results are those of this one."""
        made: Schedule = object.__new__(Schedule)
        copied = (dict, list, sampling.Samples)
        made.__dict__.update({k: v.copy() if isinstance(v, copied) else v for k, v in self.__dict__.items()})
        return made

    def adopt(self, other: Schedule) -> None:
        """Take over the state of a copy."""
        self.__dict__.update(other.__dict__)

    def seed(self, value: int) -> None:
        """Start the sampling anew from a number."""
        self._random = sampling.Samples(int(value))

    def fork_seed(self) -> int:
        """A number to seed another schedule with."""
        return self._random.source.getrandbits(30)

    def show(self) -> None:
        """Print the module and the trace."""
        print(f"{self.mod}\n{self.trace}")

    def get(self, rv: Any) -> Any:
        """What a result stands for now: a `Block`, a `For`, or a number."""
        if isinstance(rv, BlockRV):
            state, name = self._block(rv)
            return state.blocks[name].block
        if isinstance(rv, LoopRV):
            loop_state, var = self._loop(rv)
            return loop_state.loops[var]
        return rv.value if isinstance(rv, ExprRV) else rv

    def get_sref(self, rv: Any) -> Any:
        """As `get`: nodes are immutable, so that the node itself is the reference."""
        return self.get(rv)

    # --- results ------------------------------------------------------------------------------------------------------
    def _new_block(self, state: State, name: str) -> BlockRV:
        made = BlockRV()
        self._blocks[made] = (state.name, name)
        return made

    def _new_loop(self, state: State, var: Var) -> LoopRV:
        made = LoopRV()
        self._loops[made] = (state.name, var)
        return made

    def _block(self, of: BlockRV | str) -> tuple[State, str]:
        if isinstance(of, str):
            return self._named(self._state(self._working), of)
        if of not in self._blocks:
            fail("RLX1002", "this block belongs to another schedule")
        home, name = self._blocks[of]
        state = self._state(home)
        if name not in state.blocks:
            fail("RLX1002", f"the block `{name}` is no longer there", help="an instruction has removed it")
        return state, name

    def _named(self, state: State, name: str) -> tuple[State, str]:
        if name not in state.blocks:
            near = did_you_mean(name, state.blocks)
            have = ", ".join(f"`{b}`" for b in state.blocks if b != "root")
            help = f"did you mean `{near}`?" if near else f"its blocks are {have}" if have else "it has no blocks"
            fail("RLX1001", f"`{state.name}` has no block `{name}`", state.func.span, help=help)
        return state, name

    def _loop(self, of: LoopRV) -> tuple[State, Var]:
        if of not in self._loops:
            fail("RLX1002", "this loop belongs to another schedule")
        home, var = self._loops[of]
        state = self._state(home)
        if var not in state.loops:
            fail("RLX1002", f"the loop `{var.name}` is no longer there", help="use what `split` or `fuse` returned")
        return state, var

    def known_loop(self, var: Var) -> LoopRV | None:
        """The result of an instruction that stands for a loop of the PrimFunc worked on; None when none gave it."""
        given = {result for one in self.trace.instructions for result in one.results}
        at = (self._working, var)
        return next((rv for rv, place in self._loops.items() if place == at and rv in given), None)

    def _run(
        self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], state: State, made: Sequence[Any] = ()
    ) -> None:
        """Note an instruction and take its state."""
        self._note(method, args, kwargs, made)
        self._advance(state)

    # --- queries ------------------------------------------------------------------------------------------------------
    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of that name. RLX1001 when there is none."""
        state, name = self._named(self._state(func_name or self._working), name)
        made = self._new_block(state, name)
        self._note("get_block", (name,), {"func_name": func_name} if func_name else {}, (made,))
        return made

    get_sblock = get_block

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops between a block and the block around it, outermost first."""
        state, name = self._block(block)
        made = [self._new_loop(state, s.loop_var) for s in state.loops_around(state.blocks[name])]
        self._note("get_loops", (block,), {}, made)
        return made

    def _query(self, method: str, of: Any, state: State, found: Sequence[BlockRealize]) -> list[BlockRV]:
        made = [self._new_block(state, b.block.name_hint) for b in found]
        self._note(method, (of,), {}, made)
        return made

    def get_child_blocks(self, of: BlockRV | LoopRV | str) -> list[BlockRV]:
        """The blocks directly in a block, or below a loop."""
        if isinstance(of, LoopRV):
            state, var = self._loop(of)
            return self._query("get_child_blocks", of, state, state.blocks_under(state.loops[var]))
        state, name = self._block(of)
        return self._query("get_child_blocks", of, state, state.blocks_under(state.blocks[name]))

    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks that write what a block reads."""
        state, name = self._block(block)
        return self._query("get_producers", block, state, checks.producers(state, state.blocks[name]))

    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks that read what a block writes."""
        state, name = self._block(block)
        return self._query("get_consumers", block, state, checks.consumers(state, state.blocks[name]))

    def get_output_blocks(self, scope: BlockRV | str = "root") -> list[BlockRV]:
        """The blocks in a block that write what it does not allocate."""
        state, name = self._block(scope)
        found = [b for b in state.blocks_under(state.blocks[name]) if checks.is_output(state, b)]
        return self._query("get_output_blocks", scope, state, found)

    # --- sampling -----------------------------------------------------------------------------------------------------
    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """One of the candidates by their probabilities; `decision` is the index of the one to take."""
        index = sampling.categorical(candidates, probs, decision, self._random.source)
        made = ExprRV(candidates[index])
        self._note("sample_categorical", (list(candidates), list(probs)), {"decision": index}, (made,))
        return made

    def sample_perfect_tile(
        self, loop: LoopRV, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
    ) -> list[ExprRV]:
        """`n` factors whose product is the loop's extent, the last one at most `max_innermost_factor`."""
        state, var = self._loop(loop)
        found = sampling.perfect_tile(state, var, n, max_innermost_factor, decision, self._random.source)
        made = [ExprRV(f) for f in found]
        kwargs = {"max_innermost_factor": max_innermost_factor, "decision": found}
        self._note("sample_perfect_tile", (loop, n), kwargs, made)
        return made

    # --- loops --------------------------------------------------------------------------------------------------------
    def split(
        self,
        loop: LoopRV,
        factors: Sequence[Factor],
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
    ) -> list[LoopRV]:
        """Nested loops with these extents, outermost first, in place of one; None is computed.

        Blocks below get a condition where the factors make more iterations than there were; not so with
        `disable_predication`, where the caller answers for the rest.
        """
        state, var = self._loop(loop)
        state, variables = split.split(state, var, [self.get(f) for f in factors], disable_predication)
        made = [self._new_loop(state, v) for v in variables]
        kwargs = {"disable_predication": True} if disable_predication else {}
        self._run("split", (loop,), {"factors": list(factors), **kwargs}, state, made)
        return made

    def tile(self, x_parent: LoopRV, y_parent: LoopRV, x_factor: Factor, y_factor: Factor) -> list[LoopRV]:
        """Rectangles of two nested loops: the outer loop of x, that of y, the inner one of x, that of y."""
        state, x = self._loop(x_parent)
        _, y = self._loop(y_parent)
        state, variables = tile.tile(state, x, y, self.get(x_factor), self.get(y_factor))
        made = [self._new_loop(state, v) for v in variables]
        self._run("tile", (x_parent, y_parent, x_factor, y_factor), {}, state, made)
        return made

    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """One loop in place of several that stand directly in each other."""
        state, variables = self._several(loops)
        state, var = fuse.fuse(state, variables)
        made = self._new_loop(state, var)
        self._run("fuse", loops, {}, state, (made,))
        return made

    def reorder(self, *loops: LoopRV) -> None:
        """The given loops of one chain, in the given order."""
        state, variables = self._several(loops)
        self._run("reorder", loops, {}, reorder.reorder(state, variables))

    def _several(self, loops: Sequence[LoopRV]) -> tuple[State, list[Var]]:
        if not loops:
            fail("RLX1003", "no loops are given")
        found = [self._loop(one) for one in loops]
        return found[0][0], [var for _, var in found]

    def parallel(self, loop: LoopRV) -> None:
        """Threads share the iterations of the loop."""
        state, var = self._loop(loop)
        self._run("parallel", (loop,), {}, loop_kind.parallel(state, var))

    def vectorize(self, loop: LoopRV) -> None:
        """The iterations of the loop become lanes of vectors."""
        state, var = self._loop(loop)
        self._run("vectorize", (loop,), {}, loop_kind.vectorize(state, var))

    def unroll(self, loop: LoopRV) -> None:
        """The loop is written out."""
        state, var = self._loop(loop)
        self._run("unroll", (loop,), {}, loop_kind.unroll(state, var))

    # --- where blocks are computed ------------------------------------------------------------------------------------
    def compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Compute a block in a loop, as much as its consumers there read in one iteration."""
        self._move("compute_at", compute_at.compute_at, block, loop, preserve_unit_loops, index)

    def reverse_compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Compute a block in a loop, on what its producers there made in one iteration."""
        self._move("reverse_compute_at", compute_at.reverse_compute_at, block, loop, preserve_unit_loops, index)

    def _move(
        self, method: str, run: Callable[..., State], block: BlockRV | str, loop: LoopRV, unit: bool, index: int
    ) -> None:
        state, name = self._block(block)
        _, var = self._loop(loop)
        kwargs: dict[str, Any] = {"preserve_unit_loops": True} if unit else {}
        if index != -1:
            kwargs["index"] = index
        self._run(method, (block, loop), kwargs, run(state, name, var, unit, index))

    def compute_inline(self, block: BlockRV | str) -> None:
        """Compute what a block writes where it is read."""
        state, name = self._block(block)
        self._run("compute_inline", (block,), {}, compute_inline.compute_inline(state, name))

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Compute a block where its only input is written."""
        state, name = self._block(block)
        self._run("reverse_compute_inline", (block,), {}, compute_inline.reverse_compute_inline(state, name))

    # --- copies -------------------------------------------------------------------------------------------------------
    def cache_read(
        self, block: BlockRV | str, read_buffer_index: int | str, storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:  # fmt: skip
        """The block reads a copy of a buffer in another storage scope; the block that copies."""
        return self._cached("cache_read", cache.cache_read, block, read_buffer_index, storage_scope, consumer_blocks)

    def cache_write(
        self, block: BlockRV | str, write_buffer_index: int | str, storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:  # fmt: skip
        """The block writes a buffer in another storage scope, which is copied out; the block that copies."""
        return self._cached("cache_write", cache.cache_write, block, write_buffer_index, storage_scope, consumer_blocks)

    def _cached(
        self, method: str, run: Callable[..., tuple[State, str]], block: BlockRV | str, index: int | str, scope: str,
        users: Sequence[BlockRV | str] | None,
    ) -> BlockRV:  # fmt: skip
        state, name = self._block(block)
        names = None if users is None else [self._block(u)[1] for u in users]
        state, copy = run(state, name, index, scope, names)
        made = self._new_block(state, copy)
        kwargs = {} if users is None else {"consumer_blocks": list(users)}
        self._run(method, (block, index, scope), kwargs, state, (made,))
        return made

    def reindex(self, block: BlockRV | str, buffer: tuple[str, int | str]) -> BlockRV:
        """The block uses a copy of `("read" | "write", index)` that is indexed by its axes; the block that copies."""
        state, name = self._block(block)
        kind, index = cache.kind_and_index(buffer)
        state, copy = cache.reindex(state, name, kind, index)
        made = self._new_block(state, copy)
        self._run("reindex", (block, buffer), {}, state, (made,))
        return made

    # --- reductions ---------------------------------------------------------------------------------------------------
    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """The init of a reduction runs before the loop; the block that does it. The rest is then `<name>_update`."""
        state, name = self._block(block)
        _, var = self._loop(loop)
        home = state.name
        state, init, update = decompose_reduction.decompose_reduction(state, name, var)
        made = self._new_block(state, init)
        self._run("decompose_reduction", (block, loop), {}, state, (made,))
        self._blocks = {rv: (home, update) if at == (home, name) else at for rv, at in self._blocks.items()}
        return made

    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Each iteration of a reduction's loop has a partial result; the block that computes them."""
        state, var = self._loop(loop)
        state, name = rfactor.rfactor(state, var, factor_axis)
        made = self._new_block(state, name)
        self._run("rfactor", (loop, factor_axis), {}, state, (made,))
        return made

    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int], repeat: Sequence[int] = ()) -> None:
        """The axes of a sum of products get the next multiples of these numbers as extents, one an axis: its inputs are
        copied with zeros beyond their ends (along the spatial axes `repeat`: with their last elements), and what is
        wanted is copied out of a larger output."""
        state, name = self._block(block)
        factors = [self.get(p) for p in padding]
        after = pad_einsum.pad_einsum(state, name, factors, repeat)
        self._run("pad_einsum", (block, list(padding)), {"repeat": list(repeat)} if repeat else {}, after)

    # --- blocks -------------------------------------------------------------------------------------------------------
    def blockize(self, target: LoopRV, preserve_unit_iters: bool = True) -> BlockRV:
        """What is below a loop, the loop included, as one block; that block."""
        state, var = self._loop(target)
        state, name = blockize.blockize(state, var)
        made = self._new_block(state, name)
        self._run("blockize", (target,), {}, state, (made,))
        return made

    def tensorize(self, block_or_loop: Target, tensor_intrin: str, preserve_unit_iters: bool = True) -> None:
        """What is below a loop, or in a block, is done by a `TensorIntrin` of that name."""
        state, at = self._place(block_or_loop)
        self._run("tensorize", (block_or_loop, tensor_intrin), {}, tensorize.tensorize(state, at, tensor_intrin))

    # --- layout and annotations ---------------------------------------------------------------------------------------
    def transform_layout(
        self, block: BlockRV | str, buffer: tuple[str, int | str], index_map: IndexMap | Callable[..., Any],
        *, assume_injective_transform: bool = False,
    ) -> None:  # fmt: skip
        """The buffer `("read" | "write", index)` of a block has its elements where `index_map` sends their indices."""
        state, name = self._block(block)
        kind, index = cache.kind_and_index(buffer)
        dims = cache.buffer_of(state, name, index, kind).shape
        made = transform_layout.traced(index_map, dims[0].dtype if dims else INT64)
        after = transform_layout.transform_layout(state, name, kind, index, made, assume_injective_transform)
        kwargs = {"assume_injective_transform": True} if assume_injective_transform else {}
        self._run("transform_layout", (block, buffer, made), kwargs, after)

    def set_scope(self, block: BlockRV | str, buffer_index: int | str, storage_scope: str) -> None:
        """The buffer that a block writes lives in another storage scope."""
        state, name = self._block(block)
        after = annotate.set_scope(state, name, buffer_index, storage_scope)
        self._run("set_scope", (block, buffer_index, storage_scope), {}, after)

    def storage_align(self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int) -> None:
        """The stride of a dimension of what a block writes is to be `offset` modulo `factor`."""
        state, name = self._block(block)
        after = annotate.storage_align(state, name, buffer_index, axis, factor, offset)
        self._run("storage_align", (block, buffer_index, axis, factor, offset), {}, after)

    def annotate(self, block_or_loop: Target, ann_key: str, ann_val: Any) -> None:
        """Note something about a block or a loop."""
        state, at = self._place(block_or_loop)
        after = annotate.annotate(state, at, ann_key, self.get(ann_val))
        self._run("annotate", (block_or_loop, ann_key, ann_val), {}, after)

    def unannotate(self, block_or_loop: Target, ann_key: str) -> None:
        """Remove a note about a block or a loop."""
        state, at = self._place(block_or_loop)
        self._run("unannotate", (block_or_loop, ann_key), {}, annotate.unannotate(state, at, ann_key))

    def _place(self, of: Target) -> tuple[State, str | Var]:
        return self._loop(of) if isinstance(of, LoopRV) else self._block(of)
