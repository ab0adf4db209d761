"""Migration: spellings of each release, what a release cannot say, comments that come along."""

import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.source import Source
from relaxlang.driver import parse_source
from relaxlang.syntax.migrate import RELEASES, migrate
from relaxlang.syntax.migrate.releases import KEYWORDS, LIVES, NEVER, Life


def migrated(text: str, dialect: str) -> str:
    source = Source("x.rlx", text)
    module = parse_source(source)
    made = migrate(source, module, dialect)
    relaxlang.assert_structural_equal(relaxlang.parse(made), module)
    return made


def lacking(text: str, dialect: str) -> list[tuple[int, str]]:
    source = Source("x.rlx", text)
    with pytest.raises(DiagnosticError) as caught:
        migrate(source, parse_source(source), dialect)
    assert {d.code for d in caught.value.diagnostics} == {"RLX0160"}
    assert all(d.span.source is source for d in caught.value.diagnostics)
    return [(d.span.line, d.message.partition(": ")[2]) for d in caught.value.diagnostics]


OLD = '''# header
from tvm.script import tir as T, relax as R

@tvm.script.ir_module
class Mod:  # the class
    # before the kernel
    @T.prim_func
    def k(a: T.handle, b: T.handle):  # a kernel
        """Adds one.

        Everywhere."""
        n = T.var("int64")  # the batch
        A = T.match_buffer(a, (n, 4), "float32")
        B = T.match_buffer(b, (n, 4), "float32")
        # the loops
        for i, j in T.grid(n, 4):  # both axes
            with T.block("add"):
                vi, vj = T.axis.remap("SS", [i, j])  # axes
                B[vi, vj] = A[vi, vj] + T.float32(1)  # add
                # the end of the block

    @R.function
    def main(x: R.Tensor[(n, 4), "float32"]):
        # with dataflow
        with R.dataflow():
            y = R.call_tir(k, (x,), (n, 4), dtype="float32")  # call
            # done
            R.outputs(y)
        return y
# at the end
'''


def test_to_the_newest():
    assert (
        migrated(OLD, "tvm-0.27")
        == """from typing import TypeVar

from tvm.script import ir as I, relax as R, tirx as T

n = TypeVar("n")

# header
@I.ir_module
class Mod:  # the class
    # before the kernel
    @T.prim_func(s_tir=True)
    def k(A: T.Buffer((n, 4), "float32"), B: T.Buffer((n, 4), "float32")):  # a kernel
        # Adds one.
        #
        # Everywhere.
        # the batch
        # the loops
        for i, j in T.grid(n, 4):  # both axes
            with T.sblock("add"):
                vi, vj = T.axis.remap("SS", [i, j])  # axes
                B[vi, vj] = A[vi, vj] + T.float32(1.0)  # add
                # the end of the block

    @R.function
    def main(x: R.Tensor((n, 4), "float32")):
        cls = Mod
        # with dataflow
        with R.dataflow():
            y = R.call_tir(cls.k, (x,), out_ty=R.Tensor((n, 4), "float32"))  # call
            # done
            R.output(y)
        return y
# at the end
"""
    )


def test_there_and_back():
    new = migrated(OLD, "tvm-0.27")
    middle = migrated(new, "tvm-0.22")
    assert 'with T.block("add"):' in middle and "n = T.int64()" in middle and 'R.Tensor(("n", 4)' in middle
    assert "out_sinfo=" in middle and "# axes" in middle and "tir as T" in middle
    assert migrated(middle, "tvm-0.27") == new


@pytest.mark.parametrize("release", RELEASES)
def test_every_release(release):
    kernel = """@T.prim_func
def k(A: T.Buffer((4,), "float32")):
    for i in range(4):  # all
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            A[vi] = T.exp(A[vi])
"""
    made = migrated(kernel, release)
    assert "class" not in made and "  # all" in made
    number = int(release.rpartition(".")[2])
    assert ("T.sblock" in made) == (number >= 24) and ("s_tir=True" in made) == (number >= 26)
    assert ('T.Buffer[(4,), "float32"]' in made) == (number <= 11)


def test_memory():
    text = """@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    for i in range(4):
        data = T.allocate([1], "float32", "local")
        B = T.decl_buffer((1,), data=data, scope="local")
        B[0] = A[i]
        A[i] = B[0]
"""
    made = migrated(text, "tvm-0.27")
    assert 'B = T.decl_buffer((1,), "float32", scope="local")' in made and "allocate" not in made
    plain = text.replace("T.decl_buffer", "T.Buffer")
    made = migrate(Source("x", plain), relaxlang.parse(plain), "tvm-0.24")
    assert 'data = T.decl_buffer((1,), "float32", scope="local")' in made and "data=data.data" in made
    conditional = text.replace('"local")\n        B', '"local", condition=i < 2)\n        B', 1)
    assert lacking(conditional, "tvm-0.24") == [(4, "`T.allocate` went away with TVM 0.24")]


def test_what_a_release_lacks():
    text = """@I.ir_module
class M:
    @R.function
    def f(x: R.Tensor((4,), "float32")):
        y = R.atan2(x, x)
        return R.trunc(y)

    @T.prim_func(private=True)
    def g(A: T.Buffer((4,), "int32")):
        for i in T.serial(0, 4, step=2):
            if A[i] > 0:
                break
        T.ptx_commit_group(dtype="")
"""
    assert lacking(text, "tvm-0.20") == [
        (5, "`R.atan2` came with TVM 0.24"),
        (6, "`R.trunc` came with TVM 0.21"),
        (10, "`step=` came with TVM 0.23"),
        (12, "`break` came with TVM 0.22"),
    ]
    assert lacking(text, "tvm-0.25") == [(13, "`T.ptx_commit_group` went away with TVM 0.25")]
    assert lacking(text, "tvm-0.15")[0] == (3, "`R.function` came with TVM 0.16")


def test_sugar_and_templates_come_out_expanded():
    text = """N = I.param(int, 4)
@R.function
def f(x: R.Tensor((N, N), "float32")):
    return x @ x  # product
"""
    made = migrated(text, "tvm-0.22")
    assert "R.matmul(x, x" in made and "R.Tensor((4, 4)" in made and "# product" in made and "I.param" not in made


def test_unknown_release():
    with pytest.raises(DiagnosticError) as caught:
        migrate(Source("x", ""), relaxlang.parse("@R.function\ndef f(x: R.Object):\n    return x\n"), "tvm-0.72")
    assert caught.value.diagnostics[0].code == "RLX0161" and "tvm-0.2" in caught.value.diagnostics[0].help


def test_lives():
    assert Life("tvm-0.17", "tvm-0.25").text("x") == "`x` came with TVM 0.17 and went away with TVM 0.25"
    assert not any(NEVER.covers(release) for release in RELEASES)
    for life in (*LIVES.values(), *KEYWORDS.values()):
        assert {life.since, life.until} - {None} <= set(RELEASES)


def test_targets_are_objects():
    text = """@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    T.func_attr({"target": T.target("llvm -mcpu=generic"), "a": "b"})
    A[0] = T.float32(0)
"""
    assert '{"target": T.target("llvm -mcpu=generic"), "a": "b"}' in migrated(text, "tvm-0.22")


def test_comments_above_python_functions():
    text = """@I.ir_module
class M:
    # above
    @I.pyfunc
    def helper(self, x):
        return x  # inside

    # of main
    @R.function
    def main(x: R.Object) -> R.Object:
        return x
"""
    made = migrated(text, "tvm-0.27")
    assert made.index("# above") < made.index("@I.pyfunc") < made.index("# inside") < made.index("# of main")
