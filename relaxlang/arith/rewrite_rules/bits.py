"""Bit operations and shifts of integers. A shift by a negative amount or by the width and more is left as it is."""

from relaxlang.arith.rule import Rule, rule

RULES: list[Rule] = [
    rule("bitwise_and(x, 0)", "0"),
    rule("bitwise_and(x, x)", "x"),
    rule("bitwise_and(x, -1)", "x"),
    rule("bitwise_or(x, 0)", "x"),
    rule("bitwise_or(x, x)", "x"),
    rule("bitwise_xor(x, 0)", "x"),
    rule("bitwise_not(bitwise_not(x))", "x"),
    rule("shift_left(x, 0)", "x"),
    rule("shift_right(x, 0)", "x"),
    # x >> c floors, for negative x as well.
    rule("shift_right(x, c1)", "x // (2 ** c1)", "0 <= c1 and width(x, c1 + 1)"),
    rule("shift_left(x, c1)", "x * (2 ** c1)", "0 <= c1 and width(x, c1 + 1)"),
]
