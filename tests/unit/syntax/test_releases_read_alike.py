"""What a release of TVM reads of a print for it is what it reads of the source; the print here reads back as equal."""

import pytest

from relaxlang import parse, structural_equal
from relaxlang.ir.tir import For
from relaxlang.ir.visit import walk
from relaxlang.syntax.spellings import DIALECTS

NEWEST = "tvm-0.27"


def printed(text: str, dialect: str = NEWEST) -> str:
    """The print of a program for a release, after it was checked to read back as the same module."""
    module = parse(text)
    made: str = module.script(dialect=dialect)
    assert structural_equal(parse(made), module), made
    return made


def kernel(body: str) -> str:
    lines = "\n".join("    " + line for line in body.splitlines())
    return f'@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float16")):\n{lines}\n'


# --- Relax ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("result", ["", ' -> R.Tensor((4,), "float32")'])
def test_only_a_declared_result_is_printed(result: str) -> None:
    """A release infers the other one, and may know less: what calls the function depends on it."""
    text = f'@R.function\ndef f(x: R.Tensor((4,), "float32") # (->\n      ){result}:\n    return R.exp(x)\n'
    assert ("->" in printed(text)) == bool(result)
    assert "->" in parse(text).script()


def test_numbers_as_arguments() -> None:
    """Plain numbers are int64 and float64, truth values too; `R.prim_value(True)` is a bool."""
    head = "@R.function(pure=False)\ndef f(x: R.Object):\n    "
    text = head + 'return R.call_packed("f", x, True, 0.1, R.prim_value(True))\n'
    assert '"f",\n        x,\n        R.prim_value(1),' in printed(text) or "x, R.prim_value(1), " in printed(text)
    assert "R.prim_value(T.float64(0.1))" in printed(text) and "R.prim_value(T.bool(True))" in printed(text)


# --- TensorIR ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("line", "there"),
    [
        ("x = T.int32(3)", "x: T.int32 = 3"),
        ("x: T.int32 = 3", "x: T.int32 = 3"),
        ("x: T.let[T.int32] = 3", "x: T.let[T.int32] = 3"),
        ("x = T.bind(3)", "x: T.let[T.int32] = 3"),
    ],
)
def test_variables_and_lets(line: str, there: str) -> None:
    """Since TVM 0.26 what is assigned is memory, and what is bound is a let."""
    assert there in printed(kernel(f"{line}\nA[x] = T.float32(1)"))
    assert "x: T.let[T.int32] = 3" in printed(kernel(f"{line}\nA[x] = T.float32(1)"), "tvm-0.24")


@pytest.mark.parametrize(
    ("loop", "there"),
    [
        ('range(8, annotations={"a": 1})', 'T.serial(8, annotations={"a": 1})'),
        ("T.serial(8, unroll=True)", 'annotations={"pragma_unroll": True}'),
        ("T.serial(8, unroll=False)", 'annotations={"disable_unroll": True}'),
        ("range(8, unroll=4)", 'annotations={"pragma_unroll": 4}'),
        ('T.serial(8, dtype="uint32")', "range(T.uint32(8))"),
        ("T.serial(2, 8, step=3)", "T.serial(2, 8, step=3)"),
    ],
)
def test_keywords_of_loops(loop: str, there: str) -> None:
    assert there in printed(kernel(f"for i in {loop}:\n    A[i] = T.float32(1)"))


def test_a_pair_in_a_grid_is_a_start_and_an_extent() -> None:
    loops = list(walk(parse(kernel("for i, j in T.grid(4, (2, 6)):\n    A[i] = B[j]"))["main"].body))
    assert [(str(n.min), str(n.extent)) for n in loops if isinstance(n, For)] == [("0", "4"), ("2", "6")]


def test_constants_take_the_type_of_their_buffer() -> None:
    assert "A[0] = T.float32(1.5)" in printed(kernel("A[0] = T.float16(1.5)"))
    assert 'A[0] = T.Cast("float32", T.float16(1.5))' in printed(kernel('A[0] = T.Cast("float32", T.float16(1.5))'))


def test_minus_is_times_minus_one() -> None:
    assert "A[0] = A[1] * T.float32(-1.0)" in printed(kernel("A[0] = -A[1]"))
    assert "A[i * -1 + 7]" in printed(kernel("for i in range(8):\n    A[-i + 7] = T.float32(0)"))


def test_the_offset_of_a_matched_buffer() -> None:
    """With `offset_factor=` it may lie anywhere: its first element is a variable that the buffer defines."""
    text = printed(
        kernel(
            """for i in range(2):
    with T.block("b"):
        vi = T.axis.spatial(2, i)
        C = T.match_buffer(A[vi * 4:vi * 4 + 4], (4,), "float32", offset_factor=4)
        T.evaluate(T.call_extern("int32", "f", C.data, C.elem_offset // 4))"""
        )
    )
    assert "C.data, C.elem_offset // 4)" in text and "elem_offset=" not in text


def test_memory_without_blocks_is_a_statement() -> None:
    """`T.alloc_buffer` belongs to a block where there is one."""
    alone = '@T.prim_func\ndef f():\n    x = T.alloc_buffer((4,), "int32", scope="local")\n    x[0] = 1\n'
    assert 'x = T.decl_buffer((4,), "int32", scope="local")' in printed(alone)
    block = alone.replace("    x[0] = 1", '    with T.block("b"):\n        x[0] = 1')
    assert 'x = T.sblock_alloc_buffer((4,), "int32", scope="local")' in printed(block)
    written = alone.replace("T.alloc_buffer", "T.sblock_alloc_buffer")
    assert 'with T.block("root"):' in parse(written).script() and "T.sblock_alloc_buffer" in printed(written)
    assert structural_equal(parse(parse(written).script()), parse(written))


def test_one_thread_that_is_launched_twice() -> None:
    body = "    with T.launch_thread(tx, 4):\n        A[tx] = T.float32(1)\n"
    text = '@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    tx = T.env_thread("threadIdx.x")\n' + body * 2
    for dialect in (None, NEWEST):
        made = parse(text).script(dialect=dialect)
        assert 'tx = T.env_thread("threadIdx.x")' in made and made.count("T.launch_thread(tx, 4)") == 2
        assert structural_equal(parse(made), parse(text))


def test_pointers_say_what_they_point_to() -> None:
    text = printed(
        """@T.prim_func(s_tir=True)
def f(A: T.Buffer((8,), "float32")):
    B = T.decl_buffer((4,), "float32", data=T.address_of(A[4]))
    p: T.let[T.handle("int32")] = T.call_extern("handle", "memory")
    q = T.address_of(A[1])
    T.evaluate(T.call_extern("int32", "f", p, q, B.data))
"""
    )
    assert 'B = T.decl_buffer((4,), "float32", data=T.address_of(A[4]))' in text
    assert 'p: T.let[T.handle("int32", "global")] = T.call_extern(T.handle("int32", "global").ty, "memory")' in text
    assert "q = T.address_of(A[1])" in text


def test_a_variable_that_is_bound_again() -> None:
    """`T.bind` is no `with` since TVM 0.24: it lasts to the end of the body."""
    text = parse("@T.prim_func\ndef f():\n    x = T.int32()\n    T.bind(1, var=x)\n    T.evaluate(x)\n").script(
        dialect=NEWEST
    )
    assert "with" not in text and "= 1\n        T.evaluate(x)" in text


def test_what_a_kernel_returns_is_known_above_it() -> None:
    text = printed(
        """@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        A[0] = Module.f(1)

    @T.prim_func(private=True)
    def f(i: T.int32) -> T.float32:
        return T.float32(2)
"""
    )
    assert "A[0] = Module.f(1)" in text


def test_strides_of_regions_are_their_own() -> None:
    lines = """for i in range(2):
    with T.block("b"):
        vi = T.axis.spatial(2, i)
        C = T.match_buffer(A[vi * 4:(vi + 1) * 4], dtype="float32", strides=["s"])
        D = T.match_buffer(A[0:4], (4,), "float32", strides=["s"])
        C[0] = D[0]"""
    text = printed(kernel(lines))
    assert "strides=[s]" in text and "strides=[s_1]" in text and "A[vi * 4:vi * 4 + 4], (4,)" in text


# --- Relax: annotations, casts, calls ---------------------------------------------------------------------------------
def test_annotations_of_the_source_stay() -> None:
    """A release may infer less than is known here."""
    head = '@R.function\ndef f(x: R.Tensor((4,), "float32")):\n    '
    assert 'y: R.Tensor((4,), "float32") = R.exp(x)' in printed(
        head + 'y: R.Tensor((4,), "float32") = R.exp(x)\n    return y\n'
    )
    assert "    y = R.exp(x)" in printed(head + "y = R.exp(x)\n    return y\n")
    inner = '@R.function\n    def g(x: R.Tensor((4,), "float32")):\n        return x\n    return g(x)\n'
    assert "    def g(x" in printed(head + inner)


def test_casts_that_annotations_imply_are_left_out() -> None:
    text = """@R.function
def f(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor((4,), "float32"):
    y: R.Tensor((4,), "float32") = R.exp(x)
    z = R.match_cast(R.abs(x), R.Tensor((2,), "float32"))
    return R.exp(x)
"""
    made = printed(text)
    assert 'y: R.Tensor((4,), "float32") = R.exp(x)' in made and made.count("match_cast") == 1
    assert 'z = R.match_cast(R.abs(x), R.Tensor((2,), "float32"))' in made and "return R.exp(x)" in made
    assert parse(text).script().count("match_cast") == 3


def test_a_number_among_parameters_is_a_dimension() -> None:
    made = printed('@R.function\ndef f(n: R.Prim("int64"), x: R.Tensor(["n", "n + 1"], "float32")):\n    return x\n')
    assert 'n: R.Prim("int64"), x: R.Tensor(("n", "n + 1"), "float32")' in made


def test_packed_functions_with_a_type_are_called() -> None:
    made = printed(
        '@R.function\ndef f(x: R.Object):\n    return R.ExternFunc("g", R.Callable(derive_func="d", purity=True))(x)\n'
    )
    assert 'R.ExternFunc("g", R.Callable(purity=True, derive_func="d"))(x)' in made


def test_an_open_tuple_stays_open() -> None:
    assert "-> R.Tuple:" in printed('@R.function\ndef f(x: R.Tensor((4,), "float32")) -> R.Tuple:\n    return (x, x)\n')


def test_targets_are_targets() -> None:
    made = printed(
        '@T.prim_func\ndef f():\n    T.func_attr({"kTarget": T.target("a/b", host="llvm")})\n    T.evaluate(0)\n'
    )
    assert '"kTarget": T.target("a/b", host="llvm")' in made


def test_kernels_that_are_not_scheduled() -> None:
    """Memory without blocks is a kernel of TVM 0.26 and later where nothing else says `s_tir=True`."""
    text = '@T.prim_func\ndef f():\n    x = T.alloc_buffer((4,), "int32", scope="local")\n    x[0] = 1\n'
    assert "s_tir" not in printed(text)
    assert "s_tir=True" in printed(text.replace("@T.prim_func", "@T.prim_func(s_tir=True)"))
    old = '@T.prim_func\ndef f():\n    p = T.allocate([4], "int32", "local")\n    T.evaluate(p)\n'
    assert "s_tir=True" in parse(old).script(dialect=NEWEST)


def test_operators_fold_and_constructors_do_not() -> None:
    """Nothing is folded here; TVM folds `x + 0` when it reads it, and keeps `T.Add(x, 0)`."""
    text = printed(kernel("for i in range(8):\n    A[i + 0] = A[T.Add(i, 0)]"))
    assert "A[i + 0] = A[T.Add(i, 0)]" in text


def test_pointers_into_buffers() -> None:
    text = printed(
        kernel(
            """T.evaluate(A.access_ptr("r", offset=2, extent=4))
T.evaluate(T.tvm_access_ptr(T.type_annotation("float32"), A.data, 2, 4, 1))
C = T.decl_buffer((8,), "float32", data=A.data)
D = T.decl_buffer((2, 4), "float32", data=C.data)
D[0, 0] = T.float32(1)"""
        )
    )
    assert 'A.access_ptr("r", offset=2, extent=4)' in text and "T.tvm_access_ptr(" in text
    assert "data=C.data" in text


def test_parts_of_messages_are_joined() -> None:
    made = printed(kernel('assert A[0] > T.float32(0), ("TypeError", ["expected ", "1"])\nA[0] = T.float32(1)'))
    assert '"TypeError: expected 1"' in made


def test_a_matched_buffer_without_an_offset() -> None:
    """`elem_offset=None` says that there is none, beside `offset_factor=`."""
    line = 'A = T.match_buffer(a, (8,), "float32", {}offset_factor=4)'
    text = f"@T.prim_func\ndef f(a: T.handle):\n    {line}\n    A[0] = 1.0\n"
    none, some = (parse(text.format(field)) for field in ("elem_offset=None, ", ""))
    (a,), (b,) = (list(module["f"].buffer_map.values()) for module in (none, some))
    assert a.elem_offset is None and b.elem_offset is not None
    assert structural_equal(parse(none.script()), none) and structural_equal(parse(some.script()), some)


MODULE = """@I.ir_module
class Module:
    I.module_attrs({"k": 1})

    @T.prim_func(private=True)
    def double(A: T.Buffer((n, 4), "float32"), B: T.Buffer((n, 4), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in T.serial(n, annotations={"a": 1}):
            for j in T.vectorized(4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    T.block_attr({"b": [1, "x"]})
                    C = T.match_buffer(A[vi, 0:4], (4,), "float32", offset_factor=1)
                    B[vi, vj] = C[vj] * T.float32(-1.5) + T.Cast("float32", T.float16(2))

    @R.function
    def main(x: R.Tensor((n, 4), "float32"), s: R.Shape([n, 4])) -> R.Tensor((n, 4), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n, 4), "float32"))
            z: R.Tensor(ndim=2, dtype="float32") = R.exp(R.add(y, x))
            R.output(z)
        k = R.prim_value(n + 1)
        p = R.call_pure_packed("f", z, k, 0.5, sinfo_args=[R.Tensor((n, 4), "float32")])
        return p

    @R.function(private=True)
    def inferred(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")):
        if c:
            r = R.abs(x)
        else:
            r = x
        t = (r, (x,))
        return t[0]
"""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_release_is_read_back(dialect: str) -> None:
    made = printed(MODULE, dialect)
    assert parse(made).script(dialect=dialect) == made
