"""What the functions of one kernel share while they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from relaxlang.base.dtype import DType
from relaxlang.base.node import Node
from relaxlang.codegen.lltypes import memory_type
from relaxlang.codegen.target import Target
from relaxlang.codegen.text import FunctionText, ModuleText
from relaxlang.ir import prim
from relaxlang.ir.prim import Var
from relaxlang.ir.tir import PrimFunc

if TYPE_CHECKING:
    from relaxlang.codegen.debug_lines import DebugLines
    from relaxlang.codegen.function import KernelText
    from relaxlang.codegen.shared_bodies import SharedBodies
    from relaxlang.codegen.stmt import StmtEmitter


VECTORS = "; loops are in vector form\n"
"""The first line of a module that LLVM need not look for vectors in."""
_LIKELY = '!0 = !{!"branch_weights", i32 1000000, i32 1}\n'


class KernelContext:
    """The module text of a kernel, its failure messages, and the functions it may call.

    Status k > 0 stands for `messages[k - 1]`. `derived` are pointers that may overlap with others: computed from
    them (`T.address_of`), or given as bare handles. `shared` knows the loops that other kernels have too, `bodies` are
    the functions of such loops that this one calls, by their symbols.
    """

    likely = ", !prof !0"

    def __init__(
        self,
        target: Target,
        functions: Mapping[str, PrimFunc],
        threads: bool = True,
        debug: DebugLines | None = None,
        shared: SharedBodies | None = None,
    ) -> None:
        self.target = target
        self.functions = functions
        self.module = ModuleText()
        self.module.fused = _is_fused(target)
        self.module.scales = _is_wide(target) and _knows_scaling()
        self.module.dots = target.has_dots
        self.messages: list[str] = []
        self.derived: set[Var] = set()
        self.callees: dict[str, str] = {}
        self.stack = 0
        self.threads = threads and target.num_cores != 1
        self.result: DType | None = None
        self.debug = debug
        self.shared = shared
        self.bodies: dict[str, KernelText] = {}
        self.scalar_loops = False  # whether there is a loop that LLVM may be able to vectorise

    def status(self, message: str) -> str:
        """The status that stands for a message; the same one for the same text."""
        if message not in self.messages:
            self.messages.append(message)
        return str(self.messages.index(message) + 1)

    def emit_return(self, em: StmtEmitter, call: prim.Call) -> None:
        """`T.ret(value)`: the status 0, after the value went to where the caller wants it."""
        if em.parallel:
            em.fail("RLX5012", "`T.ret` cannot stand in a parallel loop", call)
        if self.result is None:
            em.leave("0")
            return
        value = em.num(prim.cast(call.args[0], self.result))
        stored = em.to_memory(value.ref, self.result)
        em.at.effect(f"store {memory_type(self.result)} {stored}, ptr %result, align {self.result.itemsize}")
        em.leave("0")

    @property
    def width_attribute(self) -> str:
        """The function attribute that asks for whole 512-bit vectors where LLVM would take half ones."""
        return ' "prefer-vector-width"="512"' if _is_wide(self.target) else ""

    def text(self, triple: str, layout: str) -> str:
        """The whole module's text."""
        head = "" if self.scalar_loops else VECTORS
        tail = self.debug.text() if self.debug is not None else ""
        return head + self.module.text(triple, layout) + _LIKELY + tail

    def function(self, name: str, place: Node) -> FunctionText:
        """The text of a new function of the module, which begins at a place of the program."""
        at = FunctionText(self.module)
        if self.debug is not None:
            at.scope = self.debug.function(name)
            at.location = self.debug.location(at.scope, place)
        return at

    def attribute(self, at: FunctionText) -> str:
        """What stands at the end of the head of a function: its debug information."""
        return "" if at.scope is None else f" !dbg !{at.scope}"


def _is_fused(target: Target) -> bool:
    """Whether multiplication and addition are one instruction."""
    named = target.mcpu in ("x86-64-v3", "x86-64-v4")
    return named or "+fma" in target.mattr.split(",") or target.mtriple.startswith(("aarch64", "arm64"))


def _is_wide(target: Target) -> bool:
    """Whether there are vectors of 512 bits."""
    named = target.mcpu in ("x86-64-v4", "skylake-avx512", "icelake-server", "sapphirerapids")
    return named or "+avx512f" in target.mattr.split(",")


def _knows_scaling() -> bool:
    """Whether LLVM has the instruction of AVX-512 for `ldexp`; it calls the C library before release 22."""
    from llvmlite import binding

    return bool(binding.llvm_version_info >= (22,))
