"""One function while it is written: registers and what they own, boxing, calls of Python, where paths meet."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.base.record import record
from relaxlang.codegen.native import layout, table
from relaxlang.codegen.native.helpers import bind_closure, heap_view, make_shape
from relaxlang.codegen.native.kinds import (
    BORROWED,
    NOTHING,
    OBJECT,
    Bool,
    Bound,
    Heap,
    Int,
    Kind,
    Nothing,
    Object,
    Reference,
    Shape,
    Tensor,
    Tuple,
    Value,
    join,
    parts_of,
    references,
)
from relaxlang.codegen.native.program_text import ProgramText
from relaxlang.codegen.native.table import Entry
from relaxlang.codegen.text import FunctionText
from relaxlang.runtime.executable import Func

ARGUMENT = ""
"""Stands for the object and the data of an argument that is loaded when it is read."""
LIKELY, UNLIKELY = ", !prof !0", ", !prof !1"


@record(frozen=False)
class _Edge:
    """A path into a block: the label at which its part begins, and what the registers hold there."""

    label: str
    values: dict[int, Value]
    slots: dict[int, list[int]]


class Frame:
    """The registers of a function and its text.

    A reference that a register owns also stands in a slot of the frame on the stack, from which it is released when
    the function fails. `values` has the registers that hold something else than None.
    """

    def __init__(self, program: ProgramText, params: int) -> None:
        self.program = program
        self.at = FunctionText(program.module)
        self.values: dict[int, Value] = {}
        self.slots: dict[int, list[int]] = {}
        self.size = self.scratch = 1
        self._proved = {"true"}
        self._edges: dict[int, list[_Edge]] = {}
        self._headers: dict[int, dict[int, tuple[str, int]]] = {}
        for index in range(params):
            self.values[index] = Value(BORROWED, (ARGUMENT,))

    # --- registers ----------------------------------------------------------------------------------------------------
    def read(self, register: int) -> Value:
        """What a register holds. An argument is loaded here, so that it need not be in a machine register before."""
        value = self.values.get(register, Value(NOTHING))
        if not value.parts or value.parts[0] is not ARGUMENT:
            return value
        place = self.at.value(f"getelementptr inbounds ptr, ptr %args, i64 {register}")
        held = self.at.value(f"load ptr, ptr {place}")
        if isinstance(value.kind, Object):
            return Value(BORROWED, (held,))
        return Value(value.kind, (self.load_field(held, layout.DATA), held, *value.dims))

    def load_field(self, pointer: str, offset: int, kind: str = "ptr") -> str:
        """What stands some bytes behind a pointer."""
        if offset:
            pointer = self.at.value(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        return self.at.value(f"load {kind}, ptr {pointer}")

    def write(self, register: int, value: Value) -> None:
        """Put a value, whose references the register takes over, into a register."""
        self.drop(register)
        if not isinstance(value.kind, Nothing):
            self.values[register] = value
        owned = references(value)
        if owned:
            self.slots[register] = self._take(len(owned))
            self._store(self.slots[register], owned)

    def refine(self, register: int, value: Value) -> None:
        """The same value, with the same references, in another form."""
        if self.values[register].parts[0] is ARGUMENT and isinstance(value.kind, Tensor):
            value = Value(value.kind, (ARGUMENT, ARGUMENT, *value.dims))
        self.values[register] = value

    def drop(self, register: int) -> None:
        """Release what a register holds."""
        old = self.values.pop(register, None)
        if old is None:
            return
        for slot in self.slots.pop(register, ()):
            self.at.effect(f"store ptr null, ptr {self._slot(slot)}")
        for reference in references(old):
            self.release(reference)

    def keep_only(self, live: int) -> None:
        """Release what registers hold that are not in the bit set `live`."""
        for register in [r for r in self.values if not live >> r & 1]:
            self.drop(register)

    def _take(self, count: int) -> list[int]:
        used = {s for slots in self.slots.values() for s in slots}
        found: list[int] = []
        slot = 0
        while len(found) < count:
            if slot not in used:
                found.append(slot)
            slot += 1
        self.size = max(self.size, slot)
        return found

    def _slot(self, slot: int) -> str:
        return f"%slot{slot}"

    def _store(self, slots: list[int], owned: list[Reference]) -> None:
        for slot, reference in zip(slots, owned, strict=True):
            pointer = reference.pointer
            if reference.to_block:
                pointer = self.at.value(f"getelementptr i8, ptr {pointer}, i64 1")
            self.at.effect(f"store ptr {pointer}, ptr {self._slot(slot)}")

    # --- references ---------------------------------------------------------------------------------------------------
    def release(self, reference: Reference) -> None:
        """Give a reference back."""
        name = "rlx_drop" if reference.to_block else "Py_DecRef"
        self.at.call("void", self.program.function(name), ("ptr", reference.pointer))

    def retain(self, reference: Reference) -> None:
        """One more reference to the same thing."""
        if not reference.to_block:
            self.at.call("void", self.program.function("Py_IncRef"), ("ptr", reference.pointer))
            return
        count = self.at.value(f"getelementptr i8, ptr {reference.pointer}, i64 -64")
        more = self.at.value(f"add i64 {self.at.value(f'load i64, ptr {count}')}, 1")
        self.at.effect(f"store i64 {more}, ptr {count}")

    def copy(self, value: Value) -> Value:
        """The value with references of its own."""
        kind = value.kind
        if kind == BORROWED:
            return Value(OBJECT, (self.checked(self.box(value)),))
        if isinstance(kind, (Tuple, Bound)):
            fields = [self.copy(field) for field in value.fields()]
            kinds = tuple(f.kind for f in fields)
            made = Tuple(kinds) if isinstance(kind, Tuple) else Bound(kind.function, kinds)
            return Value(made, tuple(p for f in fields for p in f.parts))
        if isinstance(kind, Tensor) and kind.borrowed:
            if kind.exact:
                owner = self.checked(self.box(value))
                owned = Tensor(kind.dtype, kind.ndim, False, True)
                return Value(owned, (value.parts[0], owner, *value.dims))
            self.retain(Reference(value.parts[1], False))
            return Value(Tensor(kind.dtype, kind.ndim, False), value.parts)
        for reference in references(value):
            self.retain(reference)
        return value

    # --- boxing -------------------------------------------------------------------------------------------------------
    def box(self, value: Value) -> str:
        """A new reference to the Python object that a value is; null when it cannot be made."""
        at, kind = self.at, value.kind
        if isinstance(kind, Object):
            return self._own(value.parts[0], kind.borrowed)
        if isinstance(kind, Tensor):
            return self._box_tensor(value, kind)
        if isinstance(kind, Int):
            return at.call("ptr", self.program.function("PyLong_FromLongLong"), ("i64", value.parts[0]))
        if isinstance(kind, Bool):
            yes, no = self.object(table.fixed(True)), self.object(table.fixed(False))
            return self._own(at.value(f"select i1 {value.parts[0]}, ptr {yes}, ptr {no}"), False)
        if isinstance(kind, Shape):
            return self.call_python(table.fixed(make_shape), [Value(Int(), (d,)) for d in value.parts])
        if isinstance(kind, Tuple):
            items = self.array([self.box(field) for field in value.fields()])
            return at.call("ptr", self.program.function("rlx_tuple"), ("ptr", items), ("i64", str(len(kind.fields))))
        if isinstance(kind, Heap):
            where = at.value(f"ptrtoint ptr {value.parts[0]} to i64")
            return self.call_python(table.fixed(heap_view), [Value(Int(), (where,)), Value(Int(), (str(kind.size),))])
        if isinstance(kind, Bound):
            function = Value(OBJECT, (self.object(table.operand(Func(kind.function))),))
            return self.call_python(table.fixed(bind_closure), [function, *value.fields()])
        if isinstance(kind, Nothing):
            return self._own(self.object(table.fixed(None)), False)
        data, size = value.parts
        return self._box_tensor(Value(Tensor("uint8", 1, True), (data, data, size)), Tensor("uint8", 1, True))

    def _own(self, pointer: str, borrowed: bool) -> str:
        """A new reference to an object; an argument that is a plain array becomes an NDArray."""
        if borrowed:
            return self.at.call("ptr", self.program.own_argument(), ("ptr", pointer))
        self.at.call("void", self.program.function("Py_IncRef"), ("ptr", pointer))
        return pointer

    def _box_tensor(self, value: Value, kind: Tensor) -> str:
        data, owner = value.parts[:2]
        if kind.exact:
            return self._own(owner, kind.borrowed)
        assert kind.dtype is not None
        args = [("ptr", self.object(table.element_type(kind.dtype))), ("i32", str(kind.ndim)),
                ("ptr", self.words(value.dims)), ("ptr", data), ("ptr", owner)]  # fmt: skip
        if kind.on_block:
            self.retain(Reference(owner, True))
        return self.at.call("ptr", self.program.function("rlx_array" if kind.on_block else "rlx_view"), *args)

    def words(self, values: Iterable[str]) -> str:
        """A place on the stack with these int64."""
        return self._laid_out("i64", list(values))

    def array(self, pointers: list[str]) -> str:
        """A place on the stack with these pointers."""
        return self._laid_out("ptr", pointers)

    def _laid_out(self, kind: str, values: list[str]) -> str:
        # One place for all: whoever is given it has read it before the next one is laid out.
        self.scratch = max(self.scratch, len(values))
        for index, value in enumerate(values):
            to = self.at.value(f"getelementptr inbounds {kind}, ptr %scratch, i64 {index}")
            self.at.effect(f"store {kind} {value}, ptr {to}")
        return "%scratch"

    # --- Python -------------------------------------------------------------------------------------------------------
    def object(self, key: Entry) -> str:
        """An object of the program's table (borrowed)."""
        return self.at.value(self.program.load(key))

    def call_python(self, function: Entry, args: list[Value]) -> str:
        """Call a Python function of the table: a new reference to its result, null when it raised."""
        boxed = self.array([self.box(a) for a in args])
        called = self.object(function)
        name = self.program.function("rlx_call")
        return self.at.call("ptr", name, ("ptr", called), ("ptr", boxed), ("i64", str(len(args))))

    def checked(self, pointer: str) -> str:
        """The pointer; where it is null an exception is set and the function fails."""
        self.unless(self.at.value(f"icmp eq ptr {pointer}, null"))
        return pointer

    def drop_result(self, value: Value) -> None:
        """Give back what nobody wants."""
        for reference in references(value):
            self.release(reference)

    def unless(self, failed: str) -> None:
        """Fail, with the exception that is set, where a condition holds."""
        go = self.at.label("ok")
        self.at.branch_if(failed, "fail", go, UNLIKELY)
        self.at.start(go)

    def refuse(self, function: Entry, args: list[tuple[str, str]]) -> None:
        """Call a Python function that raises on integers (`i64`) and objects (`ptr`), and fail. Ends the block."""
        self.at.call("void", self.program.raiser(function, [kind for kind, _ in args]), *args)
        self.at.branch("fail")

    def require(self, good: str, function: Entry, args: list[tuple[str, str]]) -> None:
        """`refuse` where a condition does not hold."""
        if good in self._proved:
            return
        go, bad = self.at.label("good"), self.at.label("bad")
        self.at.branch_if(good, go, bad, LIKELY)
        self.at.start(bad)
        self.refuse(function, args)
        self.at.start(go)
        self._proved.add(good)

    # --- where paths meet ---------------------------------------------------------------------------------------------
    def jump(self, target: int, live: int, label: str | None = None) -> str:
        """Note a path to instruction `target`, from here or from `label`; returns the label at which it begins."""
        begin = label or self.at.label("to")
        if label is None:
            self.at.branch(begin)
        if target in self._headers:
            self._enter_loop(target, _Edge(begin, dict(self.values), dict(self.slots)), live)
        else:
            self._edges.setdefault(target, []).append(_Edge(begin, dict(self.values), dict(self.slots)))
        return begin

    def meet(self, target: int, live: int, loop: bool) -> bool:
        """Begin the block of instruction `target`; False when nothing leads there."""
        edges = self._edges.pop(target, [])
        if not edges:
            return False
        registers = sorted({r for e in edges for r in e.values if live >> r & 1})
        if loop:
            self._begin_loop(target, live, edges)
            return True
        kinds: dict[int, Kind] = {r: join([e.values.get(r, Value(NOTHING)).kind for e in edges]) for r in registers}
        arrived: list[tuple[str, dict[int, Value]]] = []
        slots: dict[int, list[int]] = {}
        for edge in edges:
            self._begin(edge, live)
            for register in registers:
                if self.read(register).kind != kinds[register]:
                    self.write(register, Value(OBJECT, (self.checked(self.box(self.read(register))),)))
            if not arrived:
                slots = dict(self.slots)
            self._align(slots)
            arrived.append((self.at.block, dict(self.values)))
            self.at.branch(f"at{target}")
        self.at.start(f"at{target}")
        self.slots = slots
        self.values = {r: self._phi(kinds[r], [(label, v[r]) for label, v in arrived if r in v]) for r in registers}
        return True

    def _begin(self, edge: _Edge, live: int) -> None:
        self.at.start(edge.label)
        self.values, self.slots = dict(edge.values), dict(edge.slots)
        self.keep_only(live)

    def _align(self, wanted: dict[int, list[int]]) -> None:
        """Move references to the slots that they have on the other paths."""
        moved = {r: s for r, s in wanted.items() if self.slots.get(r) != s}
        for register in moved:
            for slot in self.slots.get(register, ()):
                self.at.effect(f"store ptr null, ptr {self._slot(slot)}")
        for register, slots in moved.items():
            self._store(slots, references(self.values[register]))
            self.slots[register] = slots

    def _phi(self, kind: Kind, arrived: list[tuple[str, Value]]) -> Value:
        if len(arrived) == 1:
            return arrived[0][1]
        parts = []
        for index, part in enumerate(parts_of(kind)):
            if len({value.parts[index] for _, value in arrived}) == 1:
                parts.append(arrived[0][1].parts[index])
                continue
            sources = ", ".join(f"[ {value.parts[index]}, %{label} ]" for label, value in arrived)
            parts.append(self.at.value(f"phi {part} {sources}"))
        return Value(kind, tuple(parts))

    def _begin_loop(self, target: int, live: int, edges: list[_Edge]) -> None:
        """A block that later instructions jump back to: every register alive there becomes an object in memory."""
        header: dict[int, tuple[str, int]] = {}
        taken = 0
        for register in range(live.bit_length()):
            if live >> register & 1:
                header[register] = (self.at.alloca("alloca ptr"), taken)
                taken += 1
        self.size = max(self.size, taken)
        self._headers[target] = header
        for edge in edges:
            self._enter_loop(target, edge, live)
        self.at.start(f"at{target}")
        self.values = {r: Value(OBJECT, (self.at.value(f"load ptr, ptr {place}"),)) for r, (place, _) in header.items()}
        self.slots = {r: [slot] for r, (_, slot) in header.items()}

    def _enter_loop(self, target: int, edge: _Edge, live: int) -> None:
        before = self.values, self.slots
        self._begin(edge, live)
        header = self._headers[target]
        for register in header:
            if self.read(register).kind != OBJECT:
                self.write(register, Value(OBJECT, (self.checked(self.box(self.read(register))),)))
        self._align({register: [slot] for register, (_, slot) in header.items()})
        for register, (place, _) in header.items():
            self.at.effect(f"store ptr {self.values[register].parts[0]}, ptr {place}")
        self.at.branch(f"at{target}")
        self.values, self.slots = before
