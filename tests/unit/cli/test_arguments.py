"""The texts of `--arg`."""

import numpy as np
import pytest

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.source import Source, Span
from relaxlang.cli.arguments import read_argument
from relaxlang.runtime.ndarray import ShapeTuple


def read(text):
    return read_argument(Span(Source("--arg", text), 0, len(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[2,2]=1,2,3,-4.5", np.array([[1, 2], [3, -4.5]], "float32")),
        ("f32[2,2]=[[1, 2], [3, 4]]", np.array([[1, 2], [3, 4]], "float32")),
        ("i8[3]=-128", np.full(3, -128, "int8")),
        ("u64[1]=18446744073709551615", np.array([2**64 - 1], "uint64")),
        ("f64[2]=nan,-inf", np.array([np.nan, -np.inf])),
        ("bool[2]=true,0", np.array([True, False])),
        ("float16[]=0.5", np.array(0.5, "float16")),
        ("f32[0,3]=", np.zeros((0, 3), "float32")),
        ("i32[2]=0x10,7", np.array([16, 7], "int32")),
    ],
)
def test_tensors(text, expected):
    value = read(text).value
    assert value.dtype == expected.dtype
    np.testing.assert_array_equal(value, expected)


def test_small_floats():
    value = read("bf16[2]=1,0.33").value
    assert value.dtype.name == "bfloat16" and value.astype("float32").tolist() == [1.0, 0.330078125]


def test_scalars_shapes_and_names():
    assert read("i64=3").value == 3 and read("bool=true").value is True and read("f32=2").value == 2.0
    assert read("shape[3, 4]").value == ShapeTuple([3, 4]) and read("shape[]").value == ShapeTuple([])
    named = read("w = f32[1]=5")
    assert named.name == "w" and named.value.tolist() == [5.0]
    assert read("f32=3").name == "" and read("n=shape[2]").name == "n"


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("f32[2,4]=1,2,3", 10, "has 8 elements, not 3"),
        ("f32[2]=1,x", 10, "`x` is no float32"),
        ("f33[2]=1,2", 1, "is not a dtype"),
        ("w=f33[2]=1,2", 3, "did you mean `f32`?"),
        ("i8[2]=1,300", 9, "int8 goes from -128 to 127"),
        ("u8=-1", 4, "out of range"),
        ("bool=2", 6, "`2` is no bool"),
        ("f32[2,n]=0", 5, "`n` is no dimension"),
        ("f32[2", 1, "numbers are missing"),
        ("f32[2]", 1, "write `f32[2]=…`"),
        ("f32=1,2", 5, "`float32[2]=…`"),
        ("i32=", 5, "one number, not 0"),
        ("shape=3", 1, "shape[3,4]"),
        ("?", 1, "no argument"),
    ],
)
def test_mistakes(text, column, words):
    with pytest.raises(DiagnosticError) as caught:
        read(text)
    fault = caught.value.diagnostics[0]
    assert fault.code == "RLX7004" and fault.span.column == column
    assert words in f"{fault.message} {fault.label} {fault.help}"


def test_no_text_makes_a_traceback():
    pieces = ["f32", "[", "2", "]", "=", "1", ",", "@", "x", ".npz", ":", "shape", "-", " ", "(", "e", "é", "\0"]
    rng = np.random.default_rng(0)
    for _ in range(2000):
        text = "".join(rng.choice(pieces, rng.integers(1, 9)))
        try:
            read(text)
        except DiagnosticError as fault:
            assert fault.diagnostics[0].code in ("RLX7004", "RLX7006", "RLX6006")


def test_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.save("x.npy", x)
    np.save("fortran.npy", np.asfortranarray(x))
    np.savez("x.npz", w=x, b=x[0])
    np.save("objects.npy", np.array([object()]), allow_pickle=True)
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:90])
    (tmp_path / "cut.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:200])
    for text in ("@x.npy", "@x.npz:w", "@fortran.npy"):
        np.testing.assert_array_equal(read(text).value, x)
    assert set(read("@x.npz").value) == {"w", "b"}
    for text, words in (
        ("@missing.npy", "no such file"),
        ("@.", "directory"),
        ("@x.npz:v", "has no array `v`"),
        ("@objects.npy", "Python objects"),
        ("@text.npy", "no `.npy`"),
        ("@cut.npy", "no `.npy`"),
        ("@cut.npz", "no `.npy`"),
        ("@a\0b", "cannot be read"),
    ):
        with pytest.raises(DiagnosticError, match="RLX7006") as caught:
            read(text)
        assert words in caught.value.diagnostics[0].message
