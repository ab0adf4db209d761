"""What passes share that move kernels which belong together into one."""

from __future__ import annotations

from collections import Counter

from relaxlang.analysis.alias import overwritten
from relaxlang.analysis.uses import variable_uses
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ops import default_operators
from relaxlang.passes.base import PassContext
from relaxlang.passes.relax.fuse_ops import Outliner
from relaxlang.passes.relax.fuse_tir import FuseTIR


class Joiner(Outliner):
    """Moves kernels of dataflow blocks together. `uses`: how often the variables of the function at hand are used."""

    def __init__(self, mod: IRModule, ctx: PassContext) -> None:
        super().__init__(mod)
        self.mod = mod
        self.ctx = ctx
        self.uses: Counter[relax.Var] = Counter()

    def joined(self) -> IRModule:
        """The module with one kernel for each group; itself when there is none."""
        for name, func in self.mod.relax_functions():
            self.uses = variable_uses(func)
            self.written = overwritten(func, self.mod, default_operators(self.mod))
            self.functions[name] = self(func)
        return FuseTIR().run(self.mod.with_functions(self.functions), self.ctx) if self.made else self.mod
