"""Comparisons of integers whose operands are no sums. `a > b` is `b < a` by now; what bounds decide is decided."""

from relaxlang.arith.rule import Rule, rule

RULES: list[Rule] = [
    # A minimum or maximum against one of its operands.
    rule("min(x, y) <= x", "True"),
    rule("x <= max(x, y)", "True"),
    rule("x < min(x, y)", "False"),
    rule("max(x, y) < x", "False"),
    rule("min(x, y) < x", "y < x"),
    rule("x < max(x, y)", "x < y"),
    rule("x <= min(x, y)", "x <= y"),
    rule("max(x, y) <= x", "y <= x"),
    rule("min(x, y) == x", "x <= y"),
    rule("max(x, y) == x", "y <= x"),
    rule("min(x, y) != x", "y < x"),
    rule("max(x, y) != x", "x < y"),
    rule("min(x, y) <= max(x, z)", "True"),
    rule("max(x, z) < min(x, y)", "False"),
    # Against constants.
    rule("min(x, c1) < c2", "x < c2", "c2 <= c1"),
    rule("min(x, c1) < c2", "True", "c1 < c2"),
    rule("min(x, c1) <= c2", "x <= c2", "c2 < c1"),
    rule("max(x, c1) < c2", "x < c2", "c1 < c2"),
    rule("max(x, c1) <= c2", "x <= c2", "c1 <= c2"),
    rule("c2 < min(x, c1)", "c2 < x", "c2 < c1"),
    rule("c2 <= min(x, c1)", "c2 <= x", "c2 <= c1"),
    rule("c2 < max(x, c1)", "c2 < x", "c1 <= c2"),
    rule("c2 <= max(x, c1)", "c2 <= x", "c1 < c2"),
    rule("min(x, c1) == c2", "x == c2", "c2 < c1"),
    rule("max(x, c1) == c2", "x == c2", "c1 < c2"),
    rule("min(x, c1) != c2", "x != c2", "c2 < c1"),
    rule("max(x, c1) != c2", "x != c2", "c1 < c2"),
    rule("x * y == 0", "x == 0 or y == 0"),
    rule("x * y != 0", "x != 0 and y != 0"),
    # Quotients against constants: x // c < k is x < c*k, c > 0.
    rule("x // c1 < c2", "x < c1 * c2", "c1 > 0"),
    rule("x // c1 <= c2", "x < c1 * (c2 + 1)", "c1 > 0"),
    rule("c2 < x // c1", "c1 * (c2 + 1) - 1 < x", "c1 > 0"),
    rule("c2 <= x // c1", "c1 * c2 <= x", "c1 > 0"),
    rule("x // c1 == 0", "0 <= x and x < c1", "c1 > 0 and not nonneg(x)"),
    rule("x // c1 == 0", "x < c1", "c1 > 0 and nonneg(x)"),
    rule("x // c1 * c1 == x", "x % c1 == 0", "c1 > 0"),
    rule("x // c1 * c1 != x", "x % c1 != 0", "c1 > 0"),
    rule("x // c1 * c1 < x", "x % c1 != 0", "c1 > 0"),
    rule("x <= x // c1 * c1", "x % c1 == 0", "c1 > 0"),
    # Remainders: never at or above the divisor.
    rule("x % y < y", "True", "positive(y)"),
    rule("y <= x % y", "False", "positive(y)"),
    rule("0 <= x % y", "True", "positive(y)"),
    # The smallest remainder is 0, so >= 1 is != 0.
    rule("x % c1 <= 0", "x % c1 == 0", "c1 > 0"),
    rule("0 < x % c1", "x % c1 != 0", "c1 > 0"),
    rule("x % c1 < 1", "x % c1 == 0", "c1 > 0"),
    rule("1 <= x % c1", "x % c1 != 0", "c1 > 0"),
    # A choice between constants.
    rule("select(p, c1, c2) == c3", "p", "c1 == c3 and c2 != c3"),
    rule("select(p, c1, c2) == c3", "not p", "c1 != c3 and c2 == c3"),
    rule("select(p, c1, c2) != c3", "not p", "c1 == c3 and c2 != c3"),
    rule("select(p, c1, c2) != c3", "p", "c1 != c3 and c2 == c3"),
]
