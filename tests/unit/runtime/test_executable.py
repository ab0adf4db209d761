"""Executables as data: builder, validation, text and file."""

import os

import numpy as np
import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError
from relaxlang.base.dtype import dtype
from relaxlang.runtime.exec_builder import VM, VOID, ExecBuilder
from relaxlang.runtime.exec_file import MAGIC
from relaxlang.runtime.executable import (
    Call,
    Constant,
    Executable,
    Func,
    Goto,
    If,
    Immediate,
    ObjectCode,
    PackedFunction,
    Register,
    Ret,
    VMFunction,
)
from relaxlang.runtime.kernel import KernelSignature, ScalarParam
from relaxlang.runtime.ndarray import ShapeTuple, array

CONSTANTS = [
    None, True, False, 0, -5, 1 << 80, 0.1, -0.0, float("inf"), float("nan"), 1e300, "", 'text "quoted"\nñ\u2028\ud800',
    ShapeTuple([]), ShapeTuple([3, -1]), (), (1,), (1, ("a", (None,))), dtype("float32"), dtype("void"),
    array([[1.5, -0.0], [3e-45, 3.4e38]], "float32"), array([np.nan, np.inf], "float64"), array([True, False]),
    array([1, -128], "int8"), array([2**64 - 1], "uint64"), array([0.1] * 100, "float64"), array(7, "int32"),
    array([1.5, 2], "bfloat16"), array([0.5], "float8_e4m3fn"), array(np.zeros((0, 3), "float16")),
    array([0.1], "float16"),
]  # fmt: skip


def loop() -> Executable:
    """All instructions and kinds of operands."""
    b = ExecBuilder()
    b.declare_kernel(programs.AXPB)
    b.declare_kernel(programs.HALF)
    b.declare_kernel(KernelSignature("odd name!", (ScalarParam("out", "int64"),), (), ('say "no"',)))
    with b.function("main", ["x", "n"]):
        start, end = b.label(), b.label()
        b.place(start)
        cond = b.emit_call("vm.builtin.read_if_cond", [b.param(1)])
        b.emit_if(cond, end)
        b.emit_call("half", [b.param(0), b.param(0)], dst=VOID)
        b.emit_call("helper", [b.param(0)], dst=b.param(1))
        b.emit_goto(start)
        b.place(end)
        for value in CONSTANTS:
            b.emit_call("use", [VM, value, b.func("helper"), b.func("half"), 1 << 60, -7], dst=VOID)
        b.emit_ret(b.param(1))
    with b.function("helper", ["x"]):
        b.emit_ret(b.param(0))
    return b.get()


def test_builder():
    ex = loop()
    names = [f.name for f in ex.functions]
    assert names[:3] == ["axpb", "half", "odd name!"] and "use" in names
    main = ex.functions[ex.function_index("main")]
    assert isinstance(main, VMFunction) and main.params == ("x", "n")
    code = ex.instructions
    assert code[1] == If(Register(2), 4) and code[4] == Goto(-4)
    assert code[3] == Call(Register(1), ex.function_index("helper"), (Register(0),))
    assert code[5].args[4] == Constant(ex.constants.index(1 << 60)) and code[5].args[5] == Immediate(-7)
    assert code[5].args[2] == Func(ex.function_index("helper"))


def test_constants_are_shared_by_value_and_type():
    b = ExecBuilder()
    indices = [b.convert_constant(v).index for v in (1, True, 1.0, "1", 1, ShapeTuple([1]), (1,), -0.0, 0.0)]
    assert indices == [0, 1, 2, 3, 0, 4, 5, 6, 7]
    source = np.arange(3)
    assert b.convert_constant(source) == b.convert_constant(source) != b.convert_constant(source.copy())
    source[0] = 9
    assert source.flags.writeable


def test_builder_faults():
    b = ExecBuilder()
    with pytest.raises(DiagnosticError, match="outside of a function"):
        b.emit_ret(b.param(0))
    with pytest.raises(DiagnosticError, match="never placed"), b.function("f", ["x"]):
        b.emit_goto(b.label())
    with b.function("g", []):
        b.emit_ret(1)
    with pytest.raises(DiagnosticError, match="defined twice"), b.function("g", []):
        b.emit_ret(1)


@pytest.mark.parametrize("ex", [loop(), programs.adder()], ids=["loop", "adder"])
def test_text_and_bytes_round_trip(ex):
    text = ex.as_text()
    assert Executable.parse_text(text) == ex
    assert Executable.parse_text(text).as_text() == text
    assert Executable.from_bytes(ex.to_bytes()) == ex
    assert Executable.from_bytes(ex.to_bytes()).to_bytes() == ex.to_bytes()


def test_text_form():
    text = programs.adder().as_text()
    assert text.startswith("@main(x, y) registers 7:\n  call  vm.builtin.alloc_shape_heap in: %vm, i2      dst: %2\n")
    assert "  call  vm.builtin.match_shape in: %1, %2, i2, i3, i0, i0, i4, c[2] dst: %void\n" in text
    assert "  ret   %6\n\n@vm.builtin.alloc_shape_heap packed_func;\n" in text
    assert "@add kernel(a: float32(n, 4), b: float32(n, 4), out c: float32(n, 4); n);\n" in text
    assert "c[0] = dtype float32\n" in text
    assert "if    %2, 4\n" in loop().as_text() and "goto  -4\n" in loop().as_text()


def test_object_code():
    ex = programs.adder().with_objects((ObjectCode(b"\x7fELF\0\xff", "x86_64-linux", "znver4", "+avx512f"),))
    assert Executable.from_bytes(ex.to_bytes()).objects == ex.objects
    assert Executable.parse_text(ex.as_text(objects=True)).objects == ex.objects
    assert "# object code: 6 bytes, x86_64-linux" in ex.as_text() and Executable.parse_text(ex.as_text()) == ex


def test_stats():
    lines = programs.adder().stats().split("\n")
    assert lines[1].startswith("  Constant pool (# 5): [float32, ")
    assert lines[2].startswith("  Globals (#9): [main, vm.builtin.alloc_shape_heap")
    assert "  Kernels: 2" in lines and "  Instructions: 12" in lines


def test_equality_is_exact():
    one, other = (loop() for _ in range(2))
    assert one == other and one != programs.adder()
    for a, b in [(0.0, -0.0), (1, True), ((1,), ShapeTuple([1])), (array([0.0]), array([-0.0]))]:
        f = (PackedFunction("f"),)
        assert Executable(f, (), (a,)) != Executable(f, (), (b,))


@pytest.mark.parametrize(
    ("code", "registers", "words"),
    [
        ([Ret(Register(5))], 2, "no register %5"),
        ([Ret(VOID)], 2, "no register"),
        ([Call(Register(2), 1, ()), Ret(Register(0))], 2, "no register %2"),
        ([Call(VOID, 9, ()), Ret(Register(0))], 2, "no function 9"),
        ([Call(VOID, 1, (Constant(3),)), Ret(Register(0))], 2, "no constant"),
        ([Call(VOID, 1, (Func(-1),)), Ret(Register(0))], 2, "no function -1"),
        ([Call(VOID, 1, (Immediate(1 << 60),)), Ret(Register(0))], 2, "56 bits"),
        ([Call(VOID, 0, ()), Ret(Register(0))], 2, "takes 1 arguments"),
        ([Goto(1)], 2, "leaves the function"),
        ([If(Register(0), -1), Ret(Register(0))], 2, "leaves the function"),
        ([Call(VOID, 1, ())], 2, "without a return"),
        ([Ret(Register(0))], 0, "0 registers"),
    ],
)
def test_malformed_code_is_refused(code, registers, words):
    functions = (VMFunction("main", 0, len(code), ("x",), registers), PackedFunction("p"))
    with pytest.raises(DiagnosticError, match=words):
        Executable(functions, tuple(code))


def test_malformed_tables_are_refused():
    with pytest.raises(DiagnosticError, match="defined twice"):
        Executable((PackedFunction("f"), PackedFunction("f")), ())
    with pytest.raises(DiagnosticError, match="no executable can hold"):
        Executable((), (), ([1],))
    with pytest.raises(DiagnosticError, match="lies outside"):
        Executable((VMFunction("main", 0, 2, (), 1),), (Goto(0),))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("@f packed_func;\nrubbish", 2, "expected a function"),
        ("@f packed_func", 1, "expected `;`"),
        ("@main(x) registers 1:\n  call f in: %0 dst: %void\n  ret %0", 2, "there is no function `f`"),
        ("c[1] = 2", 1, "expected the constant c[0]"),
        ("c[0] = tensor float32(2) [1.0]", 1, "has 2 elements, not 1"),
        ("c[0] = tensor float33(2) [1.0]", 1, "is no dtype"),
        ('c[0] = tensor float32(1) base64 "!!"', 1, "no base64"),
        ("c[0] = §", 1, "unexpected character"),
        ("c[0] = " + "(" * 100, 1, "nested too deeply"),
        ("c[0] = " + "9" * 10000, 1, "too many digits"),
    ],
)
def test_faults_of_the_text(text, line, words):
    with pytest.raises(DiagnosticError) as caught:
        Executable.parse_text(text, "a.txt")
    assert caught.value.line == line and words in str(caught.value) and "a.txt" in str(caught.value)


def test_file(tmp_path):
    path, ex = tmp_path / "m.rlxe", programs.adder()
    ex.save(path)
    assert Executable.load(path) == ex and os.listdir(tmp_path) == ["m.rlxe"]
    with pytest.raises(RelaxlangError, match="cannot write"):
        ex.save(tmp_path / "no" / "m.rlxe")
    for bad in (tmp_path, tmp_path / "missing.rlxe"):
        with pytest.raises(DiagnosticError) as caught:
            Executable.load(bad)
        assert caught.value.diagnostics[0].code == "RLX6019"


def test_newer_and_foreign_files():
    data = bytearray(programs.adder().to_bytes())
    data[8] = 99
    with pytest.raises(DiagnosticError, match="format version 99"):
        Executable.from_bytes(bytes(data))
    for junk in (b"", b"hello", bytes(100), MAGIC, MAGIC.replace(b"\r\n", b"\n") + bytes(90)):
        with pytest.raises(DiagnosticError) as caught:
            Executable.from_bytes(junk, "x.rlxe")
        assert caught.value.diagnostics[0].code == "RLX6011" and "`x.rlxe` is damaged" in str(caught.value)


def test_every_truncation_and_flipped_byte_is_noticed():
    data = programs.adder().to_bytes()
    for end in range(0, len(data), 7):
        with pytest.raises(DiagnosticError):
            Executable.from_bytes(data[:end])
    for at in [*range(64), *range(64, len(data), 5)]:
        broken = bytearray(data)
        broken[at] ^= 0x10
        with pytest.raises(DiagnosticError):
            Executable.from_bytes(bytes(broken))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_payload_with_a_right_checksum_but_wrong_content_is_no_crash(data):
    import hashlib

    from relaxlang.runtime import exec_file

    good = loop().to_bytes()[exec_file._HEADER.size :]
    payload = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    head = exec_file._HEADER.pack(MAGIC, 1, 0, len(payload), hashlib.sha256(payload).digest())
    try:
        Executable.from_bytes(head + bytes(payload))
    except RelaxlangError:
        pass
