"""Object files put into memory without LLVM: the same as LLVM's linker does, or nothing."""

import ctypes
import os
import random
import struct

import pytest

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen import compile, jit, placed
from relaxlang.codegen.target import Target

pytestmark = pytest.mark.skipif(not placed.is_possible(), reason="only on x86-64 Linux")

TEXT = """
@word = internal global i64 5
@far = global [3 x i64] [i64 1, i64 2, i64 3], align 64
@table = internal constant [4 x double] [double 1.0, double 2.0, double 4.0, double 8.0], align 32
@pointers = internal global [2 x ptr] [ptr @word, ptr @far]
declare double @erfc(double)
declare i64 @given(i64)
declare i64 @other(i64)

define i64 @count(i64 %by) {
  %old = load i64, ptr @word
  %new = add i64 %old, %by
  store i64 %new, ptr @word
  ret i64 %new
}
define i64 @through_pointers(i64 %i) {
  %place = getelementptr [2 x ptr], ptr @pointers, i64 0, i64 %i
  %p = load ptr, ptr %place
  %v = load i64, ptr %p
  ret i64 %v
}
define i64 @look(i64 %i) {
  %place = getelementptr [4 x double], ptr @table, i64 0, i64 %i
  %v = load double, ptr %place
  %e = call double @erfc(double 0.0)
  %s = fmul double %v, %e
  %r = fptosi double %s to i64
  ret i64 %r
}
define i64 @outside(i64 %x) {
  %a = call i64 @given(i64 %x)
  %b = call i64 @other(i64 %a)
  %c = load i64, ptr getelementptr ([3 x i64], ptr @far, i64 0, i64 2)
  %d = add i64 %b, %c
  ret i64 %d
}
"""
OTHER = """
@word = internal global i64 100
define i64 @other(i64 %x) {
  %w = load i64, ptr @word
  %r = add i64 %x, %w
  ret i64 %r
}
"""
NAMES = ["count", "through_pointers", "look", "outside"]
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def objects(*texts: str) -> list[bytes]:
    head = f'target triple = "{Target().mtriple}"\n'
    return [compile.object_code(head + text, Target()) for text in texts]


@FUNCTION
def given(x: int) -> int:
    return x * 2


PROVIDED = {"given": ctypes.cast(given, ctypes.c_void_p).value or 0}


def run(addresses: dict[str, int]) -> list[int]:
    """What the functions give: memory that is written to starts afresh with each load."""
    count, through, look, outside = (FUNCTION(addresses[name]) for name in NAMES)
    return [count(3), count(4), through(0), through(1), look(0), look(3), outside(7)]


def test_it_does_what_llvm_does() -> None:
    codes = objects(TEXT, OTHER)
    addresses, memory = placed.place(codes, NAMES, PROVIDED)
    assert run(addresses) == [8, 12, 12, 1, 1, 8, 117]
    again, second = placed.place(codes, NAMES, PROVIDED)
    assert run(again) == [8, 12, 12, 1, 1, 8, 117]
    linked = jit._load_by_llvm(codes, NAMES, PROVIDED)
    assert run(linked.addresses) == [8, 12, 12, 1, 1, 8, 117]
    memory.close()
    assert memory.closed and run(again)[0] == 15
    second.close()


def test_alignment() -> None:
    addresses, memory = placed.place(objects(TEXT, OTHER), ["far"], PROVIDED)
    assert addresses["far"] % 64 == 0
    assert ctypes.c_int64.from_address(addresses["far"] + 16).value == 3
    memory.close()


LEFT_TO_LLVM = {
    "missing": "declare i64 @no_such_function(i64)\n"
    "define i64 @f(i64 %x) {\n %r = call i64 @no_such_function(i64 %x)\n ret i64 %r\n}\n",
    "thread-local": "@t = thread_local global i64 1\ndefine i64 @f(i64 %x) {\n %r = load i64, ptr @t\n ret i64 %r\n}\n",
    "common": "@c = common global i64 0\ndefine i64 @f(i64 %x) {\n %r = load i64, ptr @c\n ret i64 %r\n}\n",
}


@pytest.mark.parametrize("text", LEFT_TO_LLVM.values(), ids=LEFT_TO_LLVM)
def test_what_is_left_to_llvm(text: str) -> None:
    with pytest.raises(placed.UnsupportedObject):
        placed.place(objects(text), ["f"], {})


def test_symbols_that_are_missing_or_there_twice() -> None:
    codes = objects(OTHER)
    with pytest.raises(placed.UnsupportedObject, match="no `nothing`"):
        placed.place(codes, ["nothing"], {})
    with pytest.raises(placed.UnsupportedObject, match="twice"):
        placed.place(codes * 2, ["other"], {})
    with pytest.raises(DiagnosticError, match="RLX5014"):
        jit.load(codes, ["nothing"])
    with pytest.raises(DiagnosticError, match="RLX5014"):
        jit.load(objects(TEXT), ["outside"])


def test_damaged_objects_do_no_harm() -> None:
    (code,) = objects(TEXT)
    rng = random.Random(0)
    for cut in (0, 1, 16, 63, 64, len(code) // 2, len(code) - 1):
        with pytest.raises(placed.UnsupportedObject):
            placed.place([code[:cut]], NAMES, {**PROVIDED, "other": 1})
    for _ in range(400):
        bad = bytearray(code)
        for _ in range(rng.randint(1, 4)):
            struct.pack_into("<B", bad, rng.randrange(len(bad)), rng.randrange(256))
        try:
            placed.place([bytes(bad)], NAMES, {**PROVIDED, "other": 1})[1].close()
        except placed.UnsupportedObject:
            continue


def test_a_forked_child_has_memory_of_its_own() -> None:
    memory = placed.Memory(64)
    child = os.fork()
    if not child:
        memory.map[0] = 1
        os._exit(0)
    os.waitpid(child, 0)
    assert memory.map[0] == 0
    memory.close()
