"""`:why-not`: each question on programs with different causes."""

from __future__ import annotations

import pytest

from relaxlang.repl.session import Session


def answer(program: str, *inputs: str) -> str:
    """What the last input says; all must succeed."""
    session = Session()
    for text in (program, *inputs):
        result = session.execute(text)
        assert result.ok, (text, [d.message for d in result.diagnostics])
    return result.text


HEAD = """@R.function
def main({params}):
    with R.dataflow():
{body}
        R.output({out})
    return {out}
"""


def function(params: str, *body: str, out: str = "z") -> str:
    """A function of these parameters and bindings."""
    return HEAD.format(params=params, body="\n".join(f"        {line}" for line in body), out=out)


X, W = 'x: R.Tensor((n, 64), "float32")', 'w: R.Tensor((64, 64), "float32")'
TWO_MATMULS = function(f"{X}, {W}", "y = R.matmul(x, w)", "z = R.matmul(y, w)")
USED_OUTSIDE = """@R.function
def main(x: R.Tensor((n, 64), "float32")):
    with R.dataflow():
        y = R.exp(x)
        z = R.exp(y)
        R.output(y, z)
    return (y, z)
"""
TRANSPOSED = function(f"{X}, {W}", "y = R.matmul(x, w)", "z = R.permute_dims(y)")
FUSED = function(f"{X}, {W}", "y = R.matmul(x, w)", "z = R.nn.relu(y)")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (TWO_MATMULS, "(rule NOT_ELEMENTWISE)"),
        (USED_OUTSIDE, "`y` is needed outside its dataflow block"),
        (TRANSPOSED, "only what reads it elementwise"),
        (FUSED, "`y` and `z` are computed together"),
    ],
)
def test_fuse(program: str, said: str) -> None:
    assert said in answer(program, ":why-not fuse y z")


def test_fuse_by_the_names_of_kernels() -> None:
    said = answer(TRANSPOSED, ":apply legalize-ops", ":why-not fuse permute_dims matmul")
    assert said == answer(TRANSPOSED, ":why-not fuse y z")


TWO_SIZES = function('a: R.Tensor((n,), "float32"), b: R.Tensor((m,), "float32")', "z = R.concat((a, b))")
FOUND = """@R.function
def main(a: R.Tensor((n,), "float32"), b: R.Tensor(ndim=1, dtype="float32")):
    z = R.match_cast(b, R.Tensor((k,), "float32"))
    return R.concat((a, z))
"""
BOUNDED = TWO_SIZES.replace("    with", '    R.func_attr({"tir_var_upper_bound": {"n": 4, "m": 4}})\n    with')


@pytest.mark.parametrize(
    ("program", "question", "said"),
    [
        (TWO_SIZES, "n m", ["not proved equal", "`m` is dimension 0 of the parameter `b`", "n = 0, m = 1: 0 and 1"]),
        (TWO_SIZES, "n//4*4, n", ["not proved equal", "they differ for n = 1: 0 and 1"]),
        (FOUND, "n k", ["`k` is found at run time, by the match_cast of `z`", "check with `R.match_cast`"]),
        (TWO_SIZES, "n + 1, n", ["are never equal: their difference is 1"]),
        (TWO_SIZES, "n*4 2*n+n*2", ["are equal: both are `n * 4`"]),
        (BOUNDED, "n//8, 0", ["are equal: both are `0`"]),
        (BOUNDED, "n m", ["`n` is dimension 0 of the parameter `a`; at least 0, at most 4"]),
        (TWO_SIZES, "n*n%3*(n*n%3-1), 0", ["equal for all 11 sizes that were tried, but the analyzer finds no proof"]),
    ],
)
def test_equal(program: str, question: str, said: list[str]) -> None:
    text = answer(program, f":why-not equal {question}")
    assert all(part in text for part in said), text


CHAIN = """@R.function
def main(x: R.Tensor(({n}, 64), "float32"), w: R.Tensor((64, {m}), "float32")):
    a = R.matmul(x, w)
    b = R.permute_dims(a)
    c = R.matmul(b, x)
    d = R.sum(c, axis=0)
    e = R.matmul({last})
    return e
"""
UNFUSED = ":pipeline legalize-ops,to-non-dataflow,call-tir-rewrite,static-plan-block-memory"


@pytest.mark.parametrize(
    ("program", "question", "said"),
    [
        (CHAIN.format(n=64, m=64, last="c, a"), "a c", "their lifetimes overlap: `a` is needed until `e` is computed"),
        (CHAIN.format(n=64, m=64, last="c, c"), "a d", "their sizes are too different: 16,384 and 256 bytes"),
        (CHAIN.format(n=64, m=64, last="c, c"), "c e", "`e` leaves the function"),
        (CHAIN.format(n=64, m=64, last="c, c"), "a c", "`c` is put where `a` was"),
        (CHAIN.format(n="n", m="m", last="c, b"), "a c", "`c` is not proved to fit: it takes m * 256 bytes"),
        (CHAIN.format(n="n", m="64", last="c, b"), "a d", "the size of `a`, n * 256 bytes, is not known"),
        (CHAIN.format(n=64, m=64, last="c, b"), "x c", "`x` is a parameter: its memory is the caller's"),
    ],
)
def test_reuse(program: str, question: str, said: str) -> None:
    text = answer(program, UNFUSED, f":why-not reuse {question}").replace("T.int64(256)", "256")
    assert said in text, text


BRANCHES = """@R.function
def main(x: R.Tensor((64, 64), "float32"), c: R.Tensor((), "bool")):
    a = R.matmul(x, x)
    if c:
        p = R.matmul(a, a)
        b = R.matmul(p, p)
    else:
        b = R.exp(a)
    d = R.matmul(b, x)
    return (d, a)
"""


def test_reuse_beside_branches() -> None:
    assert "`a` leaves the function" in answer(BRANCHES, UNFUSED, ":why-not reuse a d")
    assert "a branch, or a function that is called" in answer(BRANCHES, UNFUSED, ":why-not reuse b d")
    session = Session()
    session.execute(BRANCHES)
    assert [d.code for d in session.execute(":why-not reuse a p").diagnostics] == ["RLX3112"]


def test_reuse_of_what_fusion_removed() -> None:
    program = function(f"{X}, {W}", "y = R.matmul(x, w)", "z = R.nn.relu(y)")
    assert "`y` has no memory: the pass `fuse-tir` made it a part" in answer(program, ":why-not reuse y z")


KERNEL = """@T.prim_func
def f(A: T.Buffer((n, 64), "float32"), B: T.Buffer((64, n), "float32"), C: T.Buffer((64,), "float32")):
    for i, j in T.grid(n, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj, vi] = A[vi, vj]
    for k in range(64):
        with T.block("C"):
            vk = T.axis.reduce(64, k)
            C[0] = C[0] + A[0, vk]
    for p in range(64):
        with T.block("D"):
            vp = T.axis.spatial(64, p)
            C[vp] = T.float32(1)
    for q in range(128):
        with T.block("E"):
            vq = T.axis.spatial(128, q)
            B[vq // 2, vq % 2] = T.float32(1)
    for r in T.vectorized(16):
        with T.block("F"):
            vr = T.axis.spatial(16, r)
            C[vr] = T.float32(2)
"""


@pytest.mark.parametrize(
    ("loop", "said"),
    [
        ("i", "the extent of `i`, n, is not known while compiling"),
        ("j", "can be vectorised, but it does not pay: `B` is written in steps of n elements"),
        ("k", "iterations of `k` depend on each other"),
        ("p", "nothing forbids to vectorise `p`"),
        ("q", "`q` has no vector form: it has 128 iterations"),
        ("r", "`r` is vectorised: 16 lanes"),
    ],
)
def test_vectorize(loop: str, said: str) -> None:
    assert said in answer(KERNEL, f":why-not vectorize {loop} f")


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("", "RLX7102"),
        ("sleep", "RLX7102"),
        ("fuse y", "RLX7102"),
        ("fuse y q", "RLX7103"),
        ("fuse x y z", "RLX7102"),
        ("equal n q", "RLX7103"),
        ("equal n", "RLX7102"),
        ("equal n (", "RLX0004"),
        ("reuse y q", "RLX7103"),
        ("vectorize i", "RLX7103"),
        ("vectorize i main", "RLX7103"),
    ],
)
def test_questions_that_make_no_sense(question: str, code: str) -> None:
    session = Session()
    session.execute(TWO_MATMULS)
    result = session.execute(f":why-not {question}")
    assert [d.code for d in result.diagnostics] == [code], result
