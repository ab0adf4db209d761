"""What a release of TVM reads of a print for it is what it reads of the source; the print here reads back as equal."""

import pytest

from relaxlang import parse, structural_equal
from relaxlang.ir.tir import For
from relaxlang.ir.visit import walk

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
