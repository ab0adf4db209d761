"""ApplyRewrites: rewrite rules from a file."""

from __future__ import annotations

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.base.suggest import did_you_mean
from relaxlang.builder.dpl.rules import RewriteRule, apply_rules, read_rules, rules_of
from relaxlang.ir.module import IRModule
from relaxlang.ops import default_operators
from relaxlang.passes.base import Pass, PassContext
from relaxlang.syntax.decode import decode_source


@record
class ApplyRewrites(Pass):
    """Apply the rules that a file states under `@R.rewriter`, in order: `apply-rewrites{file=rules.rlx}`; without a
    file those that the module's own text states.

    `rules` names the ones to apply, in this order (default: all). `rounds` is how often the rules are applied at most;
    applying ends when nothing changes. With the rule

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
    rules: tuple[str, ...] = ()
    rounds: int = 1

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        found = {rule.name: rule for rule in self._found(mod)}
        for name in self.rules:
            if name not in found:
                near = did_you_mean(name, found)
                have = ", ".join(f"`{n}`" for n in found)
                fail(
                    "RLX3103",
                    f"there is no rule `{name}`",
                    help=f"did you mean `{near}`?" if near else f"there are {have}",
                )
        return apply_rules(mod, [found[n] for n in self.rules or found], self.rounds)

    def _found(self, mod: IRModule) -> list[RewriteRule]:
        if not self.file:
            if not mod.rules:
                fail(
                    "RLX3103",
                    "`apply-rewrites` needs rules, and the module states none",
                    help="write `apply-rewrites{file=rules.rlx}`, or a class under `@R.rewriter` beside the module",
                )
            return rules_of(mod)
        try:
            with open(self.file, "rb") as file:
                data = file.read()
        except OSError as fault:
            fail("RLX0017", f"`{self.file}` can't be read: {fault.strerror or fault}")
        return read_rules(decode_source(self.file, data), default_operators(mod))
