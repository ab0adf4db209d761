"""Floating point: only what holds for every value, NaN, infinities and -0.0 included.

So not x + 0.0 (which is 0.0 for -0.0), x * 0.0 or x - x (NaN), nor any change of the order of operations.
"""

from relaxlang.arith.rule import Rule, rule

RULES: list[Rule] = [
    rule("x * 1.0", "x"),
    rule("1.0 * x", "x"),
    rule("x / 1.0", "x"),
    rule("x - 0.0", "x"),
    rule("x * -1.0 * -1.0", "x"),
    rule("min(x, x)", "x"),
    rule("max(x, x)", "x"),
]
