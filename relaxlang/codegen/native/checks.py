"""Fast paths of the builtins that check arguments and match shapes. What fails is done again in Python, which raises
the error."""

from __future__ import annotations

from relaxlang.base.dtype import DType
from relaxlang.codegen.native import layout, table
from relaxlang.codegen.native.emitter import Emitter
from relaxlang.codegen.native.frame import LIKELY
from relaxlang.codegen.native.kinds import (
    BOOL,
    INT,
    NOTHING,
    Bool,
    Heap,
    Int,
    Object,
    Shape,
    Tensor,
    Tuple,
    Value,
)
from relaxlang.runtime.builtins import MatchShapeCode
from relaxlang.runtime.executable import VM, Call, Register

DONE = Value(NOTHING)
_MOST = 64  # dimensions of arrays that numpy makes, and of shapes that are matched here


def check_tensor_info(em: Emitter, call: Call) -> Value | None:
    """`(value, ndim, dtype, context)`: an object becomes a tensor whose data and dimensions are at hand."""
    if len(call.args) < 3 or not isinstance(call.args[0], Register) or call.args[0] == VM:
        return None
    ndim, dtype = em.literal(call.args[1]), em.literal(call.args[2])
    if not isinstance(ndim, int) or not (dtype is None or isinstance(dtype, DType)) or ndim > _MOST:
        return None
    name = dtype.name if dtype is not None and dtype.bits else None
    value = em.read(call.args[0].index)
    if isinstance(value.kind, Tensor):
        right = (name is None or value.kind.dtype == name) and ndim in (-1, value.kind.ndim)
        return DONE if right else None
    if not isinstance(value.kind, Object) or ndim < 0 or (dtype is not None and dtype.is_handle):
        return None
    element = "null" if name is None else em.object(table.element_type(name))
    good = em.at.call("i1", em.program.is_array(), ("ptr", value.parts[0]), ("ptr", element), ("i32", str(ndim)))
    em.in_python_unless(good, call)
    kind = Tensor(name, ndim, False, exact=True, borrowed=value.kind.borrowed)
    em.refine(call.args[0].index, read_array(em, value.parts[0], kind))
    return DONE


def read_array(em: Emitter, array: str, kind: Tensor) -> Value:
    """An array object as a tensor."""
    first = em.load_field(array, layout.DIMS) if kind.ndim else ""
    dims = [em.load_field(first, 8 * axis, "i64") for axis in range(kind.ndim)]
    return Value(kind, (em.load_field(array, layout.DATA), array, *dims))


def check_shape_info(em: Emitter, call: Call) -> Value | None:
    """`(value, ndim, context)`."""
    value, ndim = em.operand(call.args[0]), em.literal(call.args[1])
    fits = isinstance(value.kind, Shape) and isinstance(ndim, int) and ndim in (-1, value.kind.ndim)
    return DONE if fits else None


def check_tuple_info(em: Emitter, call: Call) -> Value | None:
    """`(value, size, context)`."""
    value = em.operand(call.args[0])
    fits = isinstance(value.kind, Tuple) and len(value.kind.fields) == em.literal(call.args[1])
    return DONE if fits else None


def check_prim_value_info(em: Emitter, call: Call) -> Value | None:
    """`(value, dtype, context)`: after the check an integer or truth value is at hand without its object."""
    dtype = em.literal(call.args[1]) if len(call.args) > 1 else None
    if not isinstance(call.args[0], Register) or call.args[0] == VM or not isinstance(dtype, DType):
        return None
    register = call.args[0].index
    value = em.read(register)
    if (isinstance(value.kind, Int) and dtype.name == "int64") or (isinstance(value.kind, Bool) and dtype.is_bool):
        return DONE
    if not isinstance(value.kind, Object) or not value.kind.borrowed or dtype.bits > 64:
        return None
    held = value.parts[0]
    if dtype.is_bool:
        yes = em.at.value(f"icmp eq ptr {held}, {em.object(table.fixed(True))}")
        no = em.at.value(f"icmp eq ptr {held}, {em.object(table.fixed(False))}")
        em.in_python_unless(em.at.value(f"or i1 {yes}, {no}"), call)
        em.refine(register, Value(BOOL, (yes,)))
    elif dtype.is_float:
        em.in_python_unless(is_float(em, held), call)
    elif dtype.is_integer and (dtype.bits < 64 or dtype.is_int):
        number, good = _read_int(em, held, dtype)
        em.in_python_unless(good, call)
        em.refine(register, Value(INT, (number,)))
    else:
        return None
    return DONE


def is_float(em: Emitter, value: str) -> str:
    """Whether an object is a float and nothing derived from it."""
    return em.at.value(f"icmp eq ptr {em.load_field(value, layout.TYPE)}, {em.object(table.fixed(float))}")


def _read_int(em: Emitter, value: str, dtype: DType) -> tuple[str, str]:
    """The integer that an object is, and the condition under which it is one that fits a dtype."""
    word = em.words(["0"])
    good = em.at.call("i1", em.program.function("rlx_int"), ("ptr", value), ("ptr", word))
    number = em.at.value(f"load i64, ptr {word}")
    if dtype.bits == 64:
        return number, good
    extend, narrow = "sext" if dtype.is_int else "zext", em.at.value(f"trunc i64 {number} to i{dtype.bits}")
    fits = em.at.value(f"icmp eq i64 {number}, {em.at.value(f'{extend} i{dtype.bits} {narrow} to i64')}")
    return number, em.at.value(f"and i1 {good}, {fits}")


def check_shape_value(em: Emitter, call: Call) -> Value | None:
    """`(tensor, shape, context)`."""
    value, shape = em.operand(call.args[0]), em.operand(call.args[1])
    if not isinstance(value.kind, Tensor) or not isinstance(shape.kind, Shape) or value.kind.ndim != shape.kind.ndim:
        return None
    pairs = zip(value.dims, shape.dims)
    _require(em, call, [em.at.value(f"icmp eq i64 {a}, {b}") for a, b in pairs])
    return DONE


def check_bounds(em: Emitter, call: Call) -> Value | None:
    """`(heap, reg, low, high, name, context)`."""
    heap = em.operand(call.args[0])
    reg, low, high = (em.literal(a) for a in call.args[1:4])
    if not isinstance(heap.kind, Heap) or not all(isinstance(v, int) for v in (reg, low, high)):
        return None
    if not 0 <= reg < heap.kind.size:
        return None
    value = em.heap_load(heap, reg)
    conditions = [em.at.value(f"icmp sge i64 {value}, {low}")]
    if high >= low:
        conditions.append(em.at.value(f"icmp sle i64 {value}, {high}"))
    _require(em, call, conditions)
    return DONE


def match_shape(em: Emitter, call: Call) -> Value | None:
    """`(value, heap, ndim, (code, reg)…, context)`."""
    if len(call.args) < 3:
        return None
    value, ndim = em.operand(call.args[0]), em.literal(call.args[2])
    pairs = [em.literal(a) for a in call.args[3:-1]]
    if not isinstance(ndim, int) or len(pairs) != 2 * ndim or ndim > _MOST or not _integers(pairs):
        return None
    heap = em.operand(call.args[1]) if pairs else Value(NOTHING)
    codes = list(zip(pairs[::2], pairs[1::2]))
    on_heap = [
        reg for code, reg in codes if code in (MatchShapeCode.STORE_TO_HEAP, MatchShapeCode.ASSERT_EQUAL_TO_LOAD)
    ]
    if on_heap and not (isinstance(heap.kind, Heap) and all(0 <= reg < heap.kind.size for reg in on_heap)):
        return None
    if isinstance(value.kind, (Tensor, Shape)):
        if value.kind.ndim != ndim:
            return None
        _require(em, call, _matches(em, heap, codes, value.dims))
        _note_dims(em, call, value, heap, codes)
        return DONE
    if not isinstance(value.kind, Object):
        return None
    _match_object(em, call, value, heap, codes)
    return DONE


def _match_object(em: Emitter, call: Call, value: Value, heap: Value, codes: list[tuple[int, int]]) -> None:
    """A shape that is only known as an object. What is no array and no ShapeTuple is left to Python altogether."""
    place = em.words(["0"] * len(codes))
    count = ("i64", str(len(codes)))
    has = em.at.call("i64", em.program.function("rlx_shape"), ("ptr", value.parts[0]), ("ptr", place), count)
    read, python, done = em.at.label("read"), em.at.label("python"), em.at.label("matched")
    em.at.branch_if(em.at.value(f"icmp eq i64 {has}, {len(codes)}"), read, python, LIKELY)
    em.at.start(read)
    dims = [em.load_field(place, 8 * axis, "i64") for axis in range(len(codes))]
    good = _all(em, _matches(em, heap, codes, dims))
    em.at.branch_if(good, done, python, LIKELY)
    em.at.start(python)
    em.drop_result(em.step(call))
    em.at.start(done)
    em.heap_changed()


def _matches(em: Emitter, heap: Value, codes: list[tuple[int, int]], dims: list[str] | tuple[str, ...]) -> list[str]:
    """Store and compare dimensions; the conditions that must hold."""
    conditions = []
    for (code, reg), dim in zip(codes, dims, strict=True):
        if code == MatchShapeCode.ASSERT_EQUAL_TO_IMM:
            conditions.append(em.at.value(f"icmp eq i64 {dim}, {reg}"))
            continue
        if code == MatchShapeCode.STORE_TO_HEAP:
            em.heap_store(heap, reg, dim)
        elif code == MatchShapeCode.ASSERT_EQUAL_TO_LOAD:
            conditions.append(em.at.value(f"icmp eq i64 {dim}, {em.heap_load(heap, reg)}"))
    return conditions


def _note_dims(em: Emitter, call: Call, value: Value, heap: Value, codes: list[tuple[int, int]]) -> None:
    """From here on a matched tensor's dimensions are known to be what they were compared with."""
    register = call.args[0]
    if not isinstance(value.kind, Tensor) or not isinstance(register, Register) or not value.kind.borrowed:
        return
    dims = []
    for (code, reg), dim in zip(codes, value.dims):
        if code == MatchShapeCode.ASSERT_EQUAL_TO_IMM:
            dim = str(reg)
        elif code == MatchShapeCode.ASSERT_EQUAL_TO_LOAD:
            dim = em.heap_load(heap, reg)
        dims.append(dim)
    em.refine(register.index, Value(value.kind, (*value.parts[:2], *dims)))


def match_prim_value(em: Emitter, call: Call) -> Value | None:
    """`(value, heap, code, reg, context)`."""
    value, heap = em.operand(call.args[0]), em.operand(call.args[1])
    code, reg = em.literal(call.args[2]), em.literal(call.args[3])
    if not isinstance(value.kind, Int) or not isinstance(code, int) or not isinstance(reg, int):
        return None
    stored = code in (MatchShapeCode.STORE_TO_HEAP, MatchShapeCode.ASSERT_EQUAL_TO_LOAD)
    if stored and not (isinstance(heap.kind, Heap) and 0 <= reg < heap.kind.size):
        return None
    _require(em, call, _matches(em, heap, [(code, reg)], value.parts))
    return DONE


def _integers(values: list[object]) -> bool:
    return all(type(v) is int for v in values)


def _all(em: Emitter, conditions: list[str]) -> str:
    good = "true"
    for condition in conditions:
        good = condition if good == "true" else em.at.value(f"and i1 {good}, {condition}")
    return good


def _require(em: Emitter, call: Call, conditions: list[str]) -> None:
    if conditions:
        em.in_python_unless(_all(em, conditions), call)
