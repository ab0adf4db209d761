"""Kernels compiled by llvmlite and small executables that the tests of the run time share."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from relaxlang.base.dtype import dtype
from relaxlang.runtime.checks import err_ctx
from relaxlang.runtime.exec_builder import VM, VOID, ExecBuilder
from relaxlang.runtime.executable import Executable
from relaxlang.runtime.kernel import BufferParam, Kernel, KernelSignature, ScalarParam

F32, U8 = dtype("float32"), dtype("uint8")

IR = """
define i32 @add(ptr %a, ptr %b, ptr %c, i64 %n) {
entry: br label %head
head:
  %i = phi i64 [0, %entry], [%j, %body]
  %m = mul i64 %n, 4
  %go = icmp slt i64 %i, %m
  br i1 %go, label %body, label %done
body:
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %pc = getelementptr float, ptr %c, i64 %i
  %x = load float, ptr %pa
  %y = load float, ptr %pb
  %z = fadd float %x, %y
  store float %z, ptr %pc
  %j = add i64 %i, 1
  br label %head
done: ret i32 0
}
define i32 @shape_func(ptr %h) {
  %x = load i64, ptr %h
  %y = mul i64 %x, 16
  %p = getelementptr i64, ptr %h, i64 1
  store i64 %y, ptr %p
  ret i32 0
}
define i32 @axpb(ptr %x, ptr %y, float %a, i64 %b, i8 %flag) {
  %v = load float, ptr %x
  %p = fmul float %v, %a
  %i = sitofp i64 %b to float
  %q = fadd float %p, %i
  %on = icmp ne i8 %flag, 0
  %r = select i1 %on, float %q, float 0.0
  store float %r, ptr %y
  ret i32 0
}
define i32 @half(ptr %x, ptr %y, i64 %n) {
  %r = urem i64 %n, 2
  %s = trunc i64 %r to i32
  ret i32 %s
}
define i32 @double_i64(ptr %x, ptr %y) {
  %v = load i64, ptr %x
  %w = mul i64 %v, 2
  store i64 %w, ptr %y
  ret i32 0
}
define i32 @scale(ptr %x, ptr %y, i64 %n) {
  %v = load i64, ptr %x
  %w = mul i64 %v, %n
  store i64 %w, ptr %y
  ret i32 0
}
define i32 @sub_one(ptr %x, ptr %y) {
  %v = load i64, ptr %x
  %w = sub i64 %v, 1
  store i64 %w, ptr %y
  ret i32 0
}
"""

ADD = KernelSignature(
    "add",
    (
        BufferParam("a", "float32", ("n", 4)),
        BufferParam("b", "float32", ("n", 4)),
        BufferParam("c", "float32", ("n", 4), output=True),
    ),
    ("n",),
)
SHAPE_FUNC = KernelSignature("shape_func", (BufferParam("heap", "int64", (None,), output=True),))
AXPB = KernelSignature(
    "axpb",
    (
        BufferParam("x", "float32", ()),
        ScalarParam("a", "float32"),
        ScalarParam("b", "int64"),
        ScalarParam("flag", "bool"),
        BufferParam("y", "float32", (), output=True),
    ),
)
HALF = KernelSignature(
    "half",
    (BufferParam("x", "int8", ("n",)), BufferParam("y", "int8", (("//", "n", 2),), output=True)),
    ("n",),
    ("`n` must be even",),
)
DOUBLE = KernelSignature("double_i64", (BufferParam("x", "int64", ()), BufferParam("y", "int64", (), output=True)))
SUB_ONE = KernelSignature("sub_one", (BufferParam("x", "int64", ()), BufferParam("y", "int64", (), output=True)))
SCALE = KernelSignature(
    "scale", (BufferParam("x", "int64", ()), BufferParam("y", "int64", (), output=True), ScalarParam("n", "int64"))
)
SIGNATURES = (SCALE, ADD, SHAPE_FUNC, AXPB, HALF, DOUBLE, SUB_ONE)


@cache
def kernels() -> dict[str, Kernel]:
    """All kernels, compiled once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(IR), machine)
    engine.finalize_object()
    return {s.name: Kernel(s, engine.get_function_address(s.name), engine) for s in SIGNATURES}


def context(param: str, annotation: str) -> str:
    """The context of a check of a parameter of `main`."""
    return err_ctx(f"parameter `{param}` of `main`", annotation)


def adder() -> Executable:
    """`main(x, y)`: x + y for float32 tensors of shape (n, 4), as VMShapeLower and VMMemoryLower write it."""
    b = ExecBuilder()
    cx, cy = (context(p, 'R.Tensor((n, 4), "float32")') for p in "xy")
    with b.function("main", ["x", "y"]):
        x, y = b.param(0), b.param(1)
        heap = b.emit_call("vm.builtin.alloc_shape_heap", [VM, 2])
        b.emit_call("vm.builtin.check_tensor_info", [x, 2, F32, cx], dst=VOID)
        b.emit_call("vm.builtin.check_tensor_info", [y, 2, F32, cy], dst=VOID)
        b.emit_call("vm.builtin.match_shape", [x, heap, 2, 1, 0, 0, 4, cx], dst=VOID)
        b.emit_call("vm.builtin.match_shape", [y, heap, 2, 3, 0, 0, 4, cy], dst=VOID)
        b.emit_call("shape_func", [heap], dst=VOID)
        size = b.emit_call("vm.builtin.make_shape", [heap, 1, 1, 1])
        storage = b.emit_call("vm.builtin.alloc_storage", [VM, size, 0, U8, "global"])
        shape = b.emit_call("vm.builtin.make_shape", [heap, 2, 1, 0, 0, 4])
        out = b.emit_call("vm.builtin.alloc_tensor", [storage, 0, shape, F32])
        b.emit_call("add", [x, y, out], dst=VOID)
        b.emit_ret(out)
    b.declare_kernel(ADD)
    b.declare_kernel(SHAPE_FUNC)
    return b.get()
