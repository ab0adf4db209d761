"""Quotients and remainders beyond those of linear forms by constants, which `arith/division.py` does."""

from relaxlang.arith.rule import Rule, rule

RULES: list[Rule] = [
    # Truncation is flooring where nothing is negative.
    rule("truncdiv(x, y)", "x // y", "nonneg(x) and nonneg(y)"),
    rule("truncmod(x, y)", "x % y", "nonneg(x) and nonneg(y)"),
    rule("truncdiv(x, 1)", "x"),
    rule("truncmod(x, 1)", "0"),
    rule("truncdiv(x * c1, c2)", "x * (c1 // c2)", "c2 > 0 and c1 % c2 == 0"),
    rule("truncmod(x * c1, c2)", "0", "c2 > 0 and c1 % c2 == 0"),
    rule("truncdiv(truncdiv(x, c1), c2)", "truncdiv(x, c1 * c2)", "c1 > 0 and c2 > 0"),
    rule("truncmod(truncmod(x, c1), c2)", "truncmod(x, c2)", "c1 > 0 and c2 > 0 and c1 % c2 == 0"),
    rule("truncdiv(x, x)", "1", "nonzero(x)"),
    rule("truncmod(x, x)", "0", "nonzero(x)"),
    # Symbolic divisors.
    rule("x % y % y", "x % y"),
    rule("x % y // y", "0", "positive(y)"),
    rule("x // y // c1", "x // (y * c1)", "c1 > 0 and positive(y)"),
    rule("min(x, y) // y", "min(x // y, 1)", "positive(y)"),
    rule("max(x, y) // y", "max(x // y, 1)", "positive(y)"),
]
