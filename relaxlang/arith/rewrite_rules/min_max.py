"""Minima and maxima of integers. What the difference of the operands decides is not here but in `arith/compare.py`."""

from relaxlang.arith.rule import Rule, rule

RULES: list[Rule] = [
    # An operand again: absorption.
    rule("min(min(x, y), x)", "min(x, y)"),
    rule("max(max(x, y), x)", "max(x, y)"),
    rule("min(max(x, y), x)", "x"),
    rule("max(min(x, y), x)", "x"),
    rule("min(min(min(x, y), z), x)", "min(min(x, y), z)"),
    rule("max(max(max(x, y), z), x)", "max(max(x, y), z)"),
    rule("min(min(x, y), max(x, z))", "min(x, y)"),
    rule("max(max(x, y), min(x, z))", "max(x, y)"),
    rule("min(min(x, y), min(x, z))", "min(min(x, y), z)"),
    rule("max(max(x, y), max(x, z))", "max(max(x, y), z)"),
    rule("min(max(x, y), max(x, z))", "max(x, min(y, z))"),
    rule("max(min(x, y), min(x, z))", "min(x, max(y, z))"),
    # Constants meet.
    rule("min(min(x, c1), c2)", "min(x, min(c1, c2))"),
    rule("max(max(x, c1), c2)", "max(x, max(c1, c2))"),
    rule("min(min(x, c1), min(y, c2))", "min(min(x, y), min(c1, c2))"),
    rule("max(max(x, c1), max(y, c2))", "max(max(x, y), max(c1, c2))"),
    rule("min(min(x, c1), y)", "min(min(x, y), c1)"),
    rule("max(max(x, c1), y)", "max(max(x, y), c1)"),
    rule("min(max(x, c1), c2)", "c2", "c2 <= c1"),
    rule("max(min(x, c1), c2)", "c2", "c1 <= c2"),
    rule("max(min(max(x, c1), c2), c3)", "min(max(x, c3), c2)", "c1 <= c3 <= c2"),
    rule("min(max(min(x, c1), c2), c3)", "max(min(x, c3), c2)", "c2 <= c3 <= c1"),
    # A common factor or divisor moves out; common terms do so in `arith/compare.py`.
    rule("min(x * c1, y * c1)", "min(x, y) * c1", "c1 > 0"),
    rule("max(x * c1, y * c1)", "max(x, y) * c1", "c1 > 0"),
    rule("min(x * c1, y * c1)", "max(x, y) * c1", "c1 < 0"),
    rule("max(x * c1, y * c1)", "min(x, y) * c1", "c1 < 0"),
    rule("min(x * c1, c2)", "min(x, c2 // c1) * c1", "c1 > 0 and c2 % c1 == 0"),
    rule("max(x * c1, c2)", "max(x, c2 // c1) * c1", "c1 > 0 and c2 % c1 == 0"),
    rule("min(x * c1, c2)", "max(x, c2 // c1) * c1", "c1 < 0 and c2 % c1 == 0"),
    rule("max(x * c1, c2)", "min(x, c2 // c1) * c1", "c1 < 0 and c2 % c1 == 0"),
    rule("min(x // c1, y // c1)", "min(x, y) // c1", "c1 > 0"),
    rule("max(x // c1, y // c1)", "max(x, y) // c1", "c1 > 0"),
    rule("min(x // c1, y // c1)", "max(x, y) // c1", "c1 < -1"),
    rule("max(x // c1, y // c1)", "min(x, y) // c1", "c1 < -1"),
    # A shift of one operand of a nested one.
    rule("min(min(x, y + c1), y)", "min(x, y + c1)", "c1 <= 0"),
    rule("min(min(x, y - c1), y)", "min(x, y - c1)", "c1 >= 0"),
    rule("min(min(x, y + c1), y)", "min(x, y)", "c1 >= 0"),
    rule("min(min(x, y - c1), y)", "min(x, y)", "c1 <= 0"),
    rule("max(max(x, y + c1), y)", "max(x, y + c1)", "c1 >= 0"),
    rule("max(max(x, y - c1), y)", "max(x, y - c1)", "c1 <= 0"),
    rule("max(max(x, y + c1), y)", "max(x, y)", "c1 <= 0"),
    rule("max(max(x, y - c1), y)", "max(x, y)", "c1 >= 0"),
]
