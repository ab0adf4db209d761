"""What the analyzer finds out, by example."""

from __future__ import annotations

from math import inf

import pytest

from relaxlang.arith import Analyzer, Bound
from relaxlang.base.dtype import dtype
from relaxlang.ir import prim
from relaxlang.ir.prim import (
    EQ,
    INT32,
    INT64,
    NE,
    And,
    BufferLoad,
    Call,
    Cast,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    PrimExpr,
    Select,
    SizeVar,
    Var,
)
from relaxlang.ir.tir import Buffer, Range

P, Q, R = (Var(name) for name in "ijk")
N, M = SizeVar("n"), SizeVar("m")
X, Y = Var("x"), Var("y")


def imm(value: int) -> IntImm:
    return IntImm(INT32, value)


def loops(i: int = 64, j: int = 8, k: int = 4) -> Analyzer:
    analyzer = Analyzer()
    for var, extent in ((P, i), (Q, j), (R, k)):
        analyzer.bind(var, Range(imm(0), imm(extent)))
    return analyzer


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ((P * 8 + Q) // 8, P),
        ((P * 8 + Q) % 8, Q),
        (P // 8 * 8 + P % 8, P),
        (P - P % 8, P // 8 * 8),
        (P // 4 % 8 + P // 32 * 8, P // 4),
        (P % 36 // 3 * 3 % 9, P // 3 % 3 * 3),  # a quotient keeps its scale
        ((P * 16 + Q) // 32, P // 2),
        ((N * 4 + 3) // 4, N),
        (N * M * 4 // 4, N * M),
        (N * M - M * N, imm(0)),
        ((P + Q) % 8 + (P + Q) // 8 * 8, P + Q),
        (P // 4 // 2, P // 8),
        ((P * 2 + Q * 2) * 3 - P * 6, Q * 6),
        ((N + 1) * (M + 1), (N + 1) * (M + 1)),
        (Min(Max(P, Q), P), P),
        (Max(P, imm(0)), P),
        (Min(X + 3, X + 5), X + 3),
        (Min(X * 4 + Y, Y), Min(X * 4 + Y, Y)),
        (Min(X * -5, imm(-10)), Max(X, imm(2)) * -5),  # a negative factor turns the minimum round
        (And(P < 3, P < 5), P < 3),
        (Or(X < 3, X >= 3), prim.as_prim(True)),
        (Not(X < Y), Y <= X),
        (EQ(X // 8 * 8, X), EQ(X % 8, imm(0))),
        (X // 8 < 4, X < 32),
        (X * 2 < 8, X < 4),
        (X + 3 < Y + 3, X < Y),
        (X + Y + 3 < N + 3, X + Y + 3 < N + 3),  # X + Y may overflow where X + Y + 3 does not
        (N + 1 < M + 1, N < M),
        (Select(X < Y, X, X), X),
        (FloorDiv(X, imm(0)), FloorDiv(X, imm(0))),
        (FloorMod(imm(7), imm(0)), FloorMod(imm(7), imm(0))),
        (X // -1, X // -1),  # wrong for the smallest integer
        (FloorDiv(N, imm(-1)), N * -1),
        (prim.Div(N, imm(4)), N // 4),
        (prim.Div(X, imm(4)), prim.Div(X, imm(4))),
        (Let(X, N + 1, X + X), Let(X, N + 1, X * 2)),
        (Let(X, N, X + X), N * 2),
    ],
    ids=str,
)
def test_simplify(expr: PrimExpr, expected: PrimExpr) -> None:
    assert loops().simplify(expr) == expected


def test_nothing_to_do_gives_the_same_object() -> None:
    for expr in (P * 8 + Q, N // 4, X % Y, And(X < Y, Y < 3), Min(X, Y) + 1):
        assert loops().simplify(expr) is expr


def test_symbolic_loops() -> None:
    analyzer = Analyzer()
    analyzer.bind(P, Range(imm(0), N))
    analyzer.bind(Q, Range(imm(0), M))
    assert analyzer.simplify((P * M + Q) // M) == P
    assert analyzer.simplify((P * M + Q) % M) == Q
    assert analyzer.can_prove(P < N)
    assert analyzer.can_prove(P * M + Q < N * M)
    assert not analyzer.can_prove(P * M + Q < N * M - 1)


def test_bounds() -> None:
    analyzer = loops()
    assert analyzer.const_int_bound(P * 8 + Q) == (0, 511)
    assert analyzer.const_int_bound(N * M) == (0, inf)
    assert analyzer.const_int_bound(X) == (-inf, inf)
    assert analyzer.const_int_bound(X % 8) == (0, 7)
    assert analyzer.const_int_bound((P * 448 + 127) % 128) == (63, 127)
    assert analyzer.const_int_bound(Min(X, imm(5))) == (-inf, 5)
    assert analyzer.const_int_bound(Cast(INT64, P)) == (0, 63)
    analyzer.update(X, Bound(-3, inf))
    assert analyzer.const_int_bound(X * -2) == (-inf, 6)


def test_modular_sets() -> None:
    analyzer = Analyzer()
    assert analyzer.modular_set(X * 8 + 4) == (8, 4)
    assert analyzer.modular_set(X * 8 + Y * 12 + 1) == (4, 1)
    assert analyzer.modular_set(imm(5)) == (0, 5)
    assert analyzer.modular_set(Min(X * 8, Y * 8 + 4)) == (4, 0)
    assert analyzer.can_prove(NE(X * 4 + 1, Y * 2))


def test_assumptions_end_with_their_scope() -> None:
    analyzer = Analyzer()
    goal = N < M + 1
    assert not analyzer.can_prove(goal)
    with analyzer.assuming(N < M, EQ(N % 4, imm(0))):
        assert analyzer.can_prove(goal)
        assert analyzer.simplify(N // 4 * 4) == N
        assert analyzer.simplify(N % 4) == imm(0)
        assert analyzer.simplify(N % M) == N
        with analyzer.assuming(EQ(M, imm(8))):
            assert analyzer.simplify(M + 1) == imm(9)
            assert analyzer.can_prove(N <= 4)  # a multiple of 4 below 8
        assert analyzer.simplify(M + 1) == M + 1
    assert not analyzer.can_prove(goal)
    assert analyzer.simplify(N % 4) == N % 4


def test_inequalities_are_combined() -> None:
    analyzer = Analyzer()
    with analyzer.assuming(X < Y, Y < N, N <= M):
        assert analyzer.can_prove(X + 2 <= M)
        assert not analyzer.can_prove(X + 3 <= M)
        assert analyzer.can_prove(NE(X, M))


def test_nonnegative_variables() -> None:
    analyzer = Analyzer(nonnegative=[X, Y])
    assert analyzer.can_prove(X * Y >= 0)
    assert analyzer.can_prove(Max(X, Y) <= X + Y)
    assert not analyzer.can_prove(X * Y >= X)
    with analyzer.assuming(Y >= 1):
        assert analyzer.can_prove(X * Y >= X)


def test_division_by_a_symbol_wants_it_not_zero() -> None:
    analyzer = Analyzer()
    assert analyzer.simplify(N * M // M) == N * M // M
    with analyzer.assuming(M > 0):
        assert analyzer.simplify(N * M // M) == N
        assert analyzer.simplify((N * M + M) % M) == imm(0)
    with analyzer.assuming(NE(X, imm(0))):
        assert analyzer.simplify(Y * X // X) == Y


def test_shapes() -> None:
    analyzer = Analyzer(nonnegative=[X])
    assert analyzer.can_prove_equal(X * 224, 224 * X)
    assert analyzer.can_prove_equal((X + 1) * (X + 1), X * X + 2 * X + 1)
    assert analyzer.can_prove_equal((X + 2 - 3) // 1 + 1, X)
    assert analyzer.can_prove((X + 7) // 8 * 8 >= X)
    assert analyzer.can_prove(X // 2 + X % 2 <= X)
    assert not analyzer.can_prove_equal(X // 2 * 2, X)


def load(of: str, name: str = "A") -> PrimExpr:
    return BufferLoad(Buffer(name, (imm(8),), dtype(of), Var(f"{name}_data", dtype("handle"))), (imm(0),))


def test_data_may_wrap_around() -> None:
    analyzer = Analyzer()
    a, b = load("int32"), load("int32", "B")
    assert not analyzer.can_prove(a < a + 1)
    kept = a * 2 + b * 2 - 1 < b * -1
    assert analyzer.simplify(kept) == kept
    assert analyzer.simplify(a * 8 // 8) == a * 8 // 8
    assert analyzer.simplify(a + b - a) == b  # modulo 2**32 this always holds
    small = load("int8")
    assert analyzer.const_int_bound(Cast(INT32, small) * 2) == (-256, 254)
    assert analyzer.can_prove(Cast(INT32, small) < Cast(INT32, small) + 1)


def test_effects_stay() -> None:
    call = Call(INT32, "call_extern", (prim.StringImm("f"),))
    analyzer = Analyzer()
    for expr in (Mul(call, imm(0)), prim.Sub(call, call), FloorMod(call, imm(1))):
        assert analyzer.simplify(expr) == expr
    assert analyzer.simplify(prim.Add(call, prim.Add(imm(1), imm(2)))) == prim.Add(call, imm(3))
    assert not analyzer.can_prove(EQ(call, call))


def test_shifts_out_of_range_are_kept() -> None:
    analyzer = loops()
    for amount in (-1, 32, 33):
        expr = Call(INT32, "shift_right", (P, imm(amount)))
        assert analyzer.simplify(expr) == expr
    assert analyzer.simplify(Call(INT32, "shift_right", (X, imm(3)))) == X // 8


def test_wide_numbers_do_not_overflow() -> None:
    analyzer = loops()
    big = IntImm(INT64, 1 << 40)
    wide = Cast(INT64, P) * big
    assert analyzer.const_int_bound(wide) == (0, 63 << 40)
    assert analyzer.simplify(wide // big) == Cast(INT64, P)
    assert analyzer.simplify(prim.Add(prim.Add(X, imm(2**31 - 1)), imm(2**31 - 1))) != X - 2


def test_casts_that_keep_values_are_looked_through() -> None:
    analyzer = Analyzer()
    assert analyzer.can_prove_equal(Cast(INT64, X + 1), Cast(INT64, X) + 1)
    assert not analyzer.can_prove_equal(Cast(dtype("int8"), X), X)


def test_narrow_integers_wrap_around_where_no_variable_is_left() -> None:
    narrow = dtype("int8")
    zero = Call(narrow, "bitwise_and", (IntImm(narrow, 0), IntImm(narrow, 126)))
    expr = prim.Sub(IntImm(narrow, 122), prim.Sub(IntImm(narrow, -65), zero))  # 187 is -69
    low, high = Analyzer().const_int_bound(expr)
    assert low <= -69 <= high <= 127


@pytest.mark.parametrize("dims", [(N, M), (Var("n", INT64), Var("m", INT64), Var("k", INT64))])
@pytest.mark.parametrize("tile", [1, 16])
def test_a_fused_loop_is_a_flat_index(dims: tuple[Var, ...], tile: int) -> None:
    analyzer = Analyzer(dims)
    size = dims[0]
    for dim in dims[1:]:
        size = size * dim
    fused = Var("f", size.dtype)
    index, inner = IntImm(size.dtype, 0), IntImm(size.dtype, 1)
    for dim in reversed(dims):  # the position along each axis, times the sizes of those after it
        index = index + FloorMod(FloorDiv(fused, inner), dim) * inner if dim is not dims[0] else index + (
            FloorDiv(fused, inner) * inner
        )  # fmt: skip
        inner = inner * dim
    with analyzer.within(fused, Range(IntImm(size.dtype, 0), FloorDiv(size + (tile - 1), IntImm(size.dtype, tile)))):
        assert analyzer.simplify(index) == fused
    assert analyzer.simplify(index) != fused  # a size of 0 has no index


def test_a_loop_is_not_known_to_run_after_its_body() -> None:
    analyzer = Analyzer([N])
    with analyzer.within(P, Range(IntImm(INT32, 0), N)):
        assert analyzer.can_prove(N > 0)
    assert not analyzer.can_prove(N > 0)
