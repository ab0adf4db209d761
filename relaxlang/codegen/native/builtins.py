"""Fast paths of the builtins that make shapes, memory, tensors and tuples, and the table of all fast paths."""

from __future__ import annotations

from relaxlang.base.dtype import dtype
from relaxlang.codegen.native import checks, kernels, table
from relaxlang.codegen.native.checks import DONE
from relaxlang.codegen.native.emitter import Emitter, FastPath
from relaxlang.codegen.native.frame import UNLIKELY
from relaxlang.codegen.native.kinds import (
    BLOCK,
    BOOL,
    INT,
    NOTHING,
    OBJECT,
    Block,
    Bool,
    Bound,
    Heap,
    Int,
    Object,
    Reference,
    Shape,
    Tensor,
    Tuple,
    Value,
)
from relaxlang.runtime.builtins import MakeShapeCode
from relaxlang.runtime.executable import VOID, Call, Func, KernelFunction, PackedFunction, VMFunction

_HEAP_USERS = frozenset({
    "vm.builtin.match_shape", "vm.builtin.make_shape", "vm.builtin.match_prim_value", "vm.builtin.make_prim_value",
    "vm.builtin.check_bounds",
})  # fmt: skip
_MOST_HEAP = 4096  # int64 on the stack
_MOST_FIELDS = 256


# --- shapes -----------------------------------------------------------------------------------------------------------
def alloc_shape_heap(em: Emitter, call: Call) -> Value | None:
    """`(vm, size)`: on the stack, when nobody but the builtins and kernels of this function sees it."""
    size = em.literal(call.args[1])
    if type(size) is not int or not 0 < size <= _MOST_HEAP or call.dst == VOID:
        return None
    for at in em.flow.uses.get(call.dst.index, ()):
        user = em.code[at]
        function = em.executable.functions[user.func] if isinstance(user, Call) else None
        if not isinstance(function, KernelFunction) and not (
            isinstance(function, PackedFunction) and function.name in _HEAP_USERS
        ):
            return None
    place = em.at.alloca(f"alloca [{size} x i64]")
    em.at.effect(f"store [{size} x i64] zeroinitializer, ptr {place}")
    return Value(Heap(size), (place,))


def make_shape(em: Emitter, call: Call) -> Value | None:
    """`(heap, ndim, (code, reg)…)`."""
    ndim, pairs = em.literal(call.args[1]), [em.literal(a) for a in call.args[2:]]
    if type(ndim) is not int or len(pairs) != 2 * ndim or not all(type(v) is int for v in pairs):
        return None
    heap = em.operand(call.args[0])
    loads = [reg for code, reg in zip(pairs[::2], pairs[1::2]) if code]
    if loads and not (isinstance(heap.kind, Heap) and all(0 <= reg < heap.kind.size for reg in loads)):
        return None
    dims = []
    for code, reg in zip(pairs[::2], pairs[1::2]):
        dims.append(em.heap_load(heap, reg) if code else str(reg))
    return Value(Shape(ndim), tuple(dims))


def make_prim_value(em: Emitter, call: Call) -> Value | None:
    """`(heap, code, reg)`."""
    code, reg = em.literal(call.args[1]), em.literal(call.args[2])
    if type(reg) is not int:
        return None
    if code != MakeShapeCode.LOAD_SHAPE:
        return Value(INT, (str(reg),))
    heap = em.operand(call.args[0])
    if not isinstance(heap.kind, Heap) or not 0 <= reg < heap.kind.size:
        return None
    return Value(INT, (em.heap_load(heap, reg),))


def shape_of(em: Emitter, call: Call) -> Value | None:
    """`(tensor)`."""
    value = em.operand(call.args[0])
    return Value(Shape(value.kind.ndim), value.dims) if isinstance(value.kind, Tensor) else None


# --- memory -----------------------------------------------------------------------------------------------------------
def alloc_storage(em: Emitter, call: Call) -> Value | None:
    """`(vm, shape, device, dtype, scope)`: a block, when it is used for nothing but tensors."""
    element = em.element(call.args[3]) if len(call.args) > 3 else None
    shape = em.operand(call.args[1])
    if element is None or not isinstance(shape.kind, Shape) or call.dst == VOID or not _only_for_tensors(em, call):
        return None
    size, good = _bytes(em, shape.dims, dtype(element).itemsize)
    em.require(good, table.refuse_storage(element), _words(shape.dims))
    block = em.at.call("ptr", em.program.take(), ("i64", size))
    return Value(BLOCK, (em.checked(block), size))


def _only_for_tensors(em: Emitter, call: Call) -> bool:
    for at in em.flow.uses.get(call.dst.index, ()):
        user = em.code[at]
        function = em.executable.functions[user.func] if isinstance(user, Call) else None
        if function is None or function.name != "vm.builtin.alloc_tensor" or not isinstance(user, Call):
            return False
        if user.args.count(call.dst) != 1 or user.args[0] != call.dst:
            return False
    return True


def _words(dims: tuple[str, ...]) -> list[tuple[str, str]]:
    return [("i64", d) for d in dims]


def _bytes(em: Emitter, dims: tuple[str, ...], itemsize: int) -> tuple[str, str]:
    """The bytes of a shape, and the condition under which that is a number of 63 bits; literals where they can be."""
    known = em.sizes.get((dims, itemsize))
    if known is None:
        known = em.sizes[dims, itemsize] = _new_bytes(em, dims, itemsize)
    return known


def _new_bytes(em: Emitter, dims: tuple[str, ...], itemsize: int) -> tuple[str, str]:
    fixed, moving = itemsize, []
    for dim in dims:
        if dim.lstrip("-").isdigit():
            fixed *= int(dim)
        else:
            moving.append(dim)
    if not 0 <= fixed < 1 << 63 or any(d.startswith("-") for d in dims):
        return "0", "false"
    if not moving:
        return str(fixed), "true"
    total = em.at.value(f"mul i64 {fixed}, {moving[0]}") if fixed != 1 else moving[0]
    good = em.at.value(f"icmp ule i64 {moving[0]}, {((1 << 63) - 1) // max(1, fixed)}")
    multiply = em.program.module.declare("llvm.umul.with.overflow.i64", "{ i64, i1 }", ["i64", "i64"])
    for dim in moving[1:]:
        pair = em.at.call("{ i64, i1 }", multiply, ("i64", total), ("i64", dim))
        total = em.at.value(f"extractvalue {{ i64, i1 }} {pair}, 0")
        over = em.at.value(f"extractvalue {{ i64, i1 }} {pair}, 1")
        small = em.at.value(f"icmp sge i64 {em.at.value(f'or i64 {total}, {dim}')}, 0")
        fits = em.at.value(f"and i1 {small}, {em.at.value(f'xor i1 {over}, true')}")
        good = em.at.value(f"and i1 {good}, {fits}")
    return total, good


def alloc_tensor(em: Emitter, call: Call) -> Value | None:
    """`(storage, offset, shape, dtype, …)`."""
    if len(call.args) < 4:
        return None
    storage, offset, shape = (em.operand(a) for a in call.args[:3])
    element = em.element(call.args[3])
    if element is None or not isinstance(storage.kind, Block) or not isinstance(shape.kind, Shape):
        return None
    if not isinstance(offset.kind, Int) or shape.kind.ndim > 64:
        return None
    block, available = storage.parts
    start = offset.parts[0]
    size, good = _bytes(em, shape.dims, dtype(element).itemsize)
    if size != available or start != "0":
        room = em.at.value(f"sub i64 {available}, {start}")
        conditions = [f"icmp sge i64 {start}, 0", f"icmp sle i64 {start}, {available}", f"icmp ule i64 {size}, {room}"]
        for condition in conditions if start != "0" else conditions[2:]:
            good = em.at.value(f"and i1 {good}, {em.at.value(condition)}")
    em.require(good, table.refuse_tensor(element), [("i64", available), ("i64", start), *_words(shape.dims)])
    em.retain(Reference(block, True))
    data = block if start == "0" else em.at.value(f"getelementptr i8, ptr {block}, i64 {start}")
    return Value(Tensor(element, shape.kind.ndim, True), (data, block, *shape.dims))


def reshape(em: Emitter, call: Call) -> Value | None:
    """`(tensor, shape)`: the same data."""
    value, shape = em.operand(call.args[0]), em.operand(call.args[1])
    kind = value.kind
    if not isinstance(kind, Tensor) or kind.dtype is None or not isinstance(shape.kind, Shape) or shape.kind.ndim > 64:
        return None
    had, _ = _bytes(em, value.dims, 1)
    wanted, good = _bytes(em, shape.dims, 1)
    if had != wanted:
        same = em.at.value(f"icmp eq i64 {had}, {wanted}")
        good = same if good == "true" else em.at.value(f"and i1 {same}, {good}")
    em.require(good, table.refuse_reshape(kind.dtype, kind.ndim), _words((*value.dims, *shape.dims)))
    copied = em.copy(Value(Tensor(kind.dtype, kind.ndim, kind.on_block, False, kind.borrowed), value.parts))
    made = Tensor(kind.dtype, shape.kind.ndim, kind.on_block)
    return Value(made, (*copied.parts[:2], *shape.dims))


# --- values -----------------------------------------------------------------------------------------------------------
def copy(em: Emitter, call: Call) -> Value | None:
    """`(value)`."""
    return em.copy(em.operand(call.args[0]))


def null_value(em: Emitter, call: Call) -> Value | None:
    """`()`."""
    return DONE


def make_tuple(em: Emitter, call: Call) -> Value | None:
    """`(*values)`."""
    if len(call.args) > _MOST_FIELDS:
        return None
    fields = [em.copy(em.operand(a)) for a in call.args]
    return Value(Tuple(tuple(f.kind for f in fields)), tuple(p for f in fields for p in f.parts))


def tuple_getitem(em: Emitter, call: Call) -> Value | None:
    """`(values, index)`."""
    value, index = em.operand(call.args[0]), em.literal(call.args[1])
    if type(index) is not int or index < 0:
        return None
    if isinstance(value.kind, Tuple) and index < len(value.kind.fields):
        return em.copy(value.fields()[index])
    if not isinstance(value.kind, Object) or value.kind.borrowed:
        return None
    at = em.at
    item = at.call("ptr", em.program.function("rlx_item"), ("ptr", value.parts[0]), ("i64", str(index)))
    before, slow, go = at.block, at.label("slow"), at.label("got")
    at.branch_if(at.value(f"icmp eq ptr {item}, null"), slow, go, UNLIKELY)
    at.start(slow)
    other = em.step(call).parts[0]
    after = at.block
    at.start(go)
    return Value(OBJECT, (at.value(f"phi ptr [ {item}, %{before} ], [ {other}, %{after} ]"),))


def make_closure(em: Emitter, call: Call) -> Value | None:
    """`(function, *captured)`."""
    target = call.args[0]
    if not isinstance(target, Func) or not isinstance(em.executable.functions[target.index], VMFunction):
        return None
    fields = [em.copy(em.operand(a)) for a in call.args[1:]]
    kind = Bound(target.index, tuple(f.kind for f in fields))
    return Value(kind, tuple(p for f in fields for p in f.parts))


def invoke_closure(em: Emitter, call: Call) -> Value | None:
    """`(vm, closure, *args)`: directly where the function is known."""
    closure = em.operand(call.args[1]) if len(call.args) > 1 else Value(NOTHING)
    if not isinstance(closure.kind, Bound):
        return None
    values = [*(em.operand(a) for a in call.args[2:]), *closure.fields()]
    callee = em.executable.functions[closure.kind.function]
    if not isinstance(callee, VMFunction) or len(callee.params) != len(values):
        return None
    return em.call_relax(closure.kind.function, values)


def read_if_cond(em: Emitter, call: Call) -> Value | None:
    """`(value)`: of a 0-d tensor the element is looked at."""
    value = em.operand(call.args[0])
    kind = value.kind
    if isinstance(kind, (Bool, Int)):
        return Value(BOOL, (em.truth(value),))
    if not isinstance(kind, Tensor) or kind.ndim or kind.dtype is None:
        return None
    of = dtype(kind.dtype)
    if of.is_float and of.bits in (32, 64):
        word = "float" if of.bits == 32 else "double"
        held = em.at.value(f"load {word}, ptr {value.parts[0]}, align {of.itemsize}")
        return Value(BOOL, (em.at.value(f"fcmp une {word} {held}, 0.0"),))
    if of.is_bool or (of.is_integer and of.bits in (8, 16, 32, 64)):
        word = f"i{of.itemsize * 8}"
        held = em.at.value(f"load {word}, ptr {value.parts[0]}, align {of.itemsize}")
        return Value(BOOL, (em.at.value(f"icmp ne {word} {held}, 0"),))
    return None


def call_tir_dyn(em: Emitter, call: Call) -> Value | None:
    """`(kernel, *buffers, shape)`: the shape has the kernel's scalars."""
    target = call.args[0]
    function = em.executable.functions[target.index] if isinstance(target, Func) else None
    if not isinstance(function, KernelFunction) or len(call.args) < 2:
        return None
    shape = em.operand(call.args[-1])
    if not isinstance(shape.kind, Shape):
        return None
    return kernels.call_kernel(em, call, function.signature, call.args[1:-1], shape.dims)


FAST: dict[str, FastPath] = {
    f"vm.builtin.{function.__name__}": function
    for function in (
        alloc_shape_heap, make_shape, make_prim_value, shape_of, alloc_storage, alloc_tensor, reshape, copy, null_value,
        make_tuple, tuple_getitem, make_closure, invoke_closure, read_if_cond, call_tir_dyn, checks.check_tensor_info,
        checks.check_shape_info, checks.check_tuple_info, checks.check_prim_value_info, checks.check_shape_value,
        checks.check_bounds, checks.match_shape, checks.match_prim_value,
    )
}  # fmt: skip
"""The builtins that have a fast path."""
