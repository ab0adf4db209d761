"""Choices. `select` evaluates both values, `if_then_else` only the one that is chosen."""

from relaxlang.arith.rule import Rule, rule

RULES: list[Rule] = [
    rule("select(True, x, y)", "x"),
    rule("select(False, x, y)", "y"),
    rule("select(p, x, x)", "x"),
    rule("select(not p, x, y)", "select(p, y, x)"),
    rule("select(p, select(p, x, y), z)", "select(p, x, z)"),
    rule("select(p, x, select(p, y, z))", "select(p, x, z)"),
    rule("select(p, True, False)", "p"),
    rule("select(p, False, True)", "not p"),
    rule("if_then_else(True, x, y)", "x"),
    rule("if_then_else(False, x, y)", "y"),
    rule("if_then_else(p, x, x)", "x"),
    rule("if_then_else(not p, x, y)", "if_then_else(p, y, x)"),
    rule("if_then_else(p, if_then_else(p, x, y), z)", "if_then_else(p, x, z)"),
    rule("if_then_else(p, x, if_then_else(p, y, z))", "if_then_else(p, x, z)"),
    rule("if_then_else(p, if_then_else(q, x, y), y)", "if_then_else(p and q, x, y)"),
    rule("if_then_else(p, True, False)", "p"),
    rule("if_then_else(p, False, True)", "not p"),
    rule("likely(True)", "True"),
    rule("likely(False)", "False"),
    rule("likely(likely(x))", "likely(x)"),
]
