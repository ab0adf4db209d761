"""CheckWorkspace: a program whose memory has a limit fits, or is refused with what takes the room."""

from __future__ import annotations

from typing import NoReturn

from relaxlang.analysis.memory import timeline
from relaxlang.analysis.memory_report import alive_text
from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.base.source import Span
from relaxlang.ir.configuration.compiler_config import CompilerConfig
from relaxlang.ir.configuration.executor import WORKSPACE_LIMIT
from relaxlang.ir.module import IRModule
from relaxlang.passes.base import Pass, PassContext


@record
class CheckWorkspace(Pass):
    """Refuse functions whose intermediates take more than `limit` bytes at one time; 0 means the limit of the module's
    executor, if it has one. Symbolic dimensions count with their upper bounds.

    Before:

        @R.function(private=True)
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"relax.force_pure": True})
            a = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0), R.str("global"))
            _ = R.call_packed("f", x, a)
            return a

    After:

        @R.function(private=True)
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"relax.force_pure": True})
            a = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0), R.str("global"))
            _ = R.call_packed("f", x, a)
            return a
    """

    limit: int = 0

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        executor = CompilerConfig.of(mod).executor
        planned_later = executor.kind in ("graph", "aot")  # they lay out memory themselves, and look at it then
        limit = self.limit or (0 if planned_later else int(executor.options.get(WORKSPACE_LIMIT, 0)))
        for name, func in mod.relax_functions() if limit else ():
            made = timeline(mod, name)
            if made.peak > limit:
                refuse_workspace(name, made.peak, limit, alive_text(made), func.span)
        return mod


def refuse_workspace(name: str, size: int, limit: int, alive: tuple[str, ...], span: Span | None = None) -> NoReturn:
    """RLX5034: a function's workspace is larger than its limit; `alive` is what is needed when most is, a line each."""
    fail(
        "RLX5034",
        f"the workspace of `{name}` is {size:,} bytes, {size - limit:,} more than its limit of {limit:,}",
        span,
        notes=(f"alive when most is needed: {len(alive)}", *alive),
        help="`relaxc --emit=memory` shows when what is needed",
    )
