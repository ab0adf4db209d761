"""Every row of the rule tables: it fires, and both sides have the same value wherever the left one has one."""

from __future__ import annotations

import ast
import zlib
from random import Random

import numpy as np
import pytest
from int_evaluate import evaluate

from relaxlang.arith import Analyzer, classify
from relaxlang.arith.rewrite_rules import TABLES
from relaxlang.arith.rule import Op, Rule, Tree, compiled, parse, variants
from relaxlang.base.dtype import DType, dtype
from relaxlang.ir import prim
from relaxlang.ir.prim import BOOL, FLOAT32, Call, FloatImm, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Range

INT8 = dtype("int8")
_TRUTHS = {"EQ", "NE", "LT", "LE", "And", "Or", "Not"}
_RANGES = [(-128, 256), (0, 128), (1, 127), (-20, 41), (0, 9), (1, 8), (-9, 9), (3, 4)]


def _same_type_as_written(one: Rule, domain: str) -> bool:
    """Whether the row can be typed so: a choice between True and False is one of bools."""
    names = {node.id for node in ast.walk(ast.parse(one.pattern)) if isinstance(node, ast.Name)}
    constants = {node.value for node in ast.walk(ast.parse(one.pattern)) if isinstance(node, ast.Constant)}
    choice = bool({"select", "if_then_else", "likely"} & names)
    return domain == "bool" or not choice or ("likely" not in names and constants != {True, False})


ROWS = [
    (domain, one)
    for domains, table in TABLES
    for one in table
    for domain in domains
    if domain in ("int", "bool") and _same_type_as_written(one, domain)
]


class Instance:
    """A pattern with variables and constants put in: random, but such that the rule may fire."""

    def __init__(self, rng: Random, of: DType) -> None:
        self.rng, self.of = rng, of
        self.made: dict[str, PrimExpr] = {}
        self.ranges: dict[Var, tuple[int, int]] = {}

    def build(self, tree: Tree, of: DType) -> PrimExpr:
        if isinstance(tree, bool):
            return IntImm(BOOL, int(tree))
        if isinstance(tree, float):
            return FloatImm(FLOAT32, tree)
        if isinstance(tree, int):
            return IntImm(of, tree)
        if isinstance(tree, str):
            if tree not in self.made:
                self.made[tree] = self.leaf(tree, of)
            return self.made[tree]
        assert isinstance(tree, Op)
        return self.node(tree, of)

    def leaf(self, name: str, of: DType) -> PrimExpr:
        if name[0] == "c" and name[1:].isdigit():
            return IntImm(
                of, self.rng.choice((0, 1, 2, 3, 4, 6, self.rng.randint(-12, 12), self.rng.randint(-127, 127)))
            )
        var = Var(name, of)
        self.ranges[var] = (0, 2) if of.is_bool else self.rng.choice(_RANGES)
        return var

    def node(self, tree: Op, of: DType) -> PrimExpr:
        if tree.name in ("And", "Or", "Not"):
            args = [self.build(arg, BOOL) for arg in tree.args]
        elif tree.name in _TRUTHS:
            args = [self.build(arg, INT8) for arg in tree.args]
        elif tree.name in ("Select", "if_then_else"):
            args = [self.build(tree.args[0], BOOL), *(self.build(arg, of) for arg in tree.args[1:])]
        else:
            args = [self.build(arg, of) for arg in tree.args]
        if hasattr(prim, tree.name):
            made: PrimExpr = getattr(prim, tree.name)(*args)
            return made
        return Call(of, tree.name, tuple(args))

    def analyzer(self) -> Analyzer:
        analyzer = Analyzer()
        for var, (low, extent) in self.ranges.items():
            if not var.dtype.is_bool and not var.dtype.is_float and extent < 256:
                analyzer.bind(var, Range(IntImm(var.dtype, low), IntImm(var.dtype, extent)))
        return analyzer

    def values(self, count: int) -> dict[Var, np.ndarray]:
        random = np.random.default_rng(self.rng.randrange(1 << 30))
        small = {
            v: random.integers(max(low, -9), max(low, min(low + n - 1, 9)) + 1, count // 2)
            for v, (low, n) in self.ranges.items()
        }
        wide = {v: random.integers(low, low + n, count // 2) for v, (low, n) in self.ranges.items()}
        made = {v: np.concatenate([small[v], wide[v]]) for v in self.ranges}
        return made or {Var("none", INT8): np.zeros(1, np.int64)}


def _operand_type(domain: str) -> DType:
    return {"int": INT8, "bool": BOOL, "float": FLOAT32}[domain]


@pytest.mark.parametrize("index", [True, False], ids=["index", "data"])
@pytest.mark.parametrize(("domain", "one"), ROWS, ids=lambda v: getattr(v, "pattern", v))
def test_rule(domain: str, one: Rule, index: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if index:
        monkeypatch.setattr(classify, "INDEX_BITS", frozenset({1, 8}))
    rng = Random(zlib.crc32(repr(one).encode()))
    pattern, _ = parse(one)
    fired = 0
    for _ in range(3000):
        instance = Instance(rng, _operand_type(domain))
        before = instance.build(pattern, _operand_type(domain))
        simplifier = instance.analyzer()._strict
        after = next((r for f in compiled_rule(one) if (r := f(before, simplifier)) is not None), None)
        if after is None:
            continue
        fired += 1
        env = instance.values(4000)
        left, right = evaluate(before, env), evaluate(after, env)
        matters = left.defined & left.exact if index else left.defined
        wrong = matters & (~right.defined | (left.value != right.value))
        assert not wrong.any(), (one, [int(env[v][np.argmax(wrong)]) for v in env])
        assert after.dtype is before.dtype
        if fired == 12:
            break
    assert fired or not index, "the rule never fired"


_compiled: dict[Rule, list] = {}


def compiled_rule(one: Rule) -> list:
    if one not in _compiled:
        _compiled[one] = compiled(variants(one))
    return _compiled[one]


_FLOATS = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.1, 1e-45, -3e38, 7.5], np.float32)
_FLOAT_OPERATIONS = {prim.Mul: np.multiply, prim.Div: np.divide, prim.Sub: np.subtract, prim.Add: np.add,
                     prim.Min: np.minimum, prim.Max: np.maximum}  # fmt: skip


def _float_value(expr: PrimExpr) -> np.ndarray:
    if isinstance(expr, Var):
        return _FLOATS
    if isinstance(expr, FloatImm):
        return np.full(len(_FLOATS), expr.value, np.float32)
    assert isinstance(expr, prim.BinaryOp)
    return _FLOAT_OPERATIONS[type(expr)](_float_value(expr.a), _float_value(expr.b))


@pytest.mark.parametrize("one", [one for domains, table in TABLES if domains == ("float",) for one in table], ids=str)
def test_float_rule_holds_bit_by_bit(one: Rule) -> None:
    pattern, _ = parse(one)
    before = Instance(Random(0), FLOAT32).build(pattern, FLOAT32)
    after = next(r for f in compiled_rule(one) if (r := f(before, Analyzer()._strict)) is not None)
    left, right = _float_value(before), _float_value(after)
    same = (left.view(np.int32) == right.view(np.int32)) | (np.isnan(left) & np.isnan(right))
    assert same.all()


@pytest.mark.parametrize("text", ["x + 0.0", "x * 0.0", "x - x", "x / x", "0.0 - x"])
def test_what_floats_must_not_do(text: str) -> None:
    pattern, _ = parse(Rule(text, "x"))
    before = Instance(Random(0), FLOAT32).build(pattern, FLOAT32)
    assert Analyzer().simplify(before) is before
