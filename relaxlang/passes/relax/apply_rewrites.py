"""ApplyRewrites: rewrite rules from a file."""

from __future__ import annotations

from dataclasses import dataclass

from relaxlang.base.diagnostics import fail
from relaxlang.builder.dpl.rules import apply_rules, read_rules
from relaxlang.ir.module import IRModule
from relaxlang.passes.base import Pass, PassContext
from relaxlang.syntax.parser import decode_source


@dataclass(frozen=True)
class ApplyRewrites(Pass):
    """Apply the rules that a file states under `@R.rewriter`, in order: `apply-rewrites{file=rules.rlx}`.

    `rounds` is how often the rules are applied at most; applying ends when nothing changes. With the rule

        @R.rewriter
        class DoubleIsAdd:
            @R.function
            def pattern(x: R.Tensor((n,), "float32")):
                y = R.multiply(x, R.const(2, "float32"))
                return y

            @R.function
            def replacement(x: R.Tensor((n,), "float32")):
                y = R.add(x, x)
                return y

    Before:

        @R.function(private=True)
        def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            two = R.const(2, "float32")
            y = R.exp(x)
            z = R.multiply(y, two)
            return z

    After:

        @R.function(private=True)
        def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            y = R.exp(x)
            z = R.add(y, y)
            return z
    """

    file: str = ""
    rounds: int = 1

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        if not self.file:
            fail("RLX3103", "`apply-rewrites` needs a file of rules", help="write `apply-rewrites{file=rules.rlx}`")
        try:
            with open(self.file, "rb") as file:
                data = file.read()
        except OSError as fault:
            fail("RLX0017", f"`{self.file}` can't be read: {fault.strerror or fault}")
        return apply_rules(mod, read_rules(decode_source(self.file, data)), self.rounds)
