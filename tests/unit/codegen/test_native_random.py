"""Random bytecode does the same as native code and by the bytecode machine: results, kinds, and the words of errors."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import programs
import pytest
from programs import F32, U8

import relaxlang.codegen  # noqa: F401 - makes native programs
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.runtime import registry
from relaxlang.runtime.exec_builder import VM, VOID, ExecBuilder
from relaxlang.runtime.executable import Executable
from relaxlang.runtime.ndarray import ShapeTuple
from relaxlang.runtime.vm import VirtualMachine

X = np.arange(8, dtype="float32").reshape(2, 4)
SHAPES = [ShapeTuple(dims) for dims in ([2, 4], [1, 4], [3, 4], [0, 4])]
ARGUMENTS = [(X, X + 1), ((np.ones((3, 4), "float32"), 5), (2, 4)), (X.reshape(8), None)]
_asked = [0]


@pytest.fixture(autouse=True)
def packed_functions() -> Iterator[None]:
    def condition() -> bool:
        _asked[0] += 1
        return _asked[0] % 3 == 0 or _asked[0] > 30  # so that loops end

    def fill(tensor: Any) -> None:
        tensor[...] = 3

    registry.register_func("test.random.first", lambda *values: values[0] if values else None)
    registry.register_func("test.random.condition", condition)
    registry.register_func("test.random.fill", fill)
    yield
    for name in ("first", "condition", "fill"):
        del registry._FUNCTIONS[f"test.random.{name}"]


class Writer:
    """Writes random functions `f0`, `f1`, …, of which each may call later ones."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.b = ExecBuilder()
        for signature in programs.SIGNATURES:
            self.b.declare_kernel(signature)

    def executable(self) -> Executable:
        count = self.rng.randrange(1, 4)
        for index in range(count):
            with self.b.function(f"f{index}", ["p", "q"]):
                self.body([f"f{k}" for k in range(index + 1, count)])
        return self.b.get()

    def body(self, later: list[str]) -> None:
        b, rng = self.b, self.rng
        self.later = later
        self.registers = [b.param(0), b.param(1), *(b.register() for _ in range(3))]
        self.heap = b.emit_call("vm.builtin.alloc_shape_heap", [VM, 3])
        self.labels = [b.label() for _ in range(3)]
        common = [self.move, self.pair, self.null, self.tensor, self.jump, self.jump, self.packed, self.call]
        rare = [self.item, self.match, self.add, self.reshape, self.shape_of, self.word, self.shape_function]
        for _ in range(rng.randrange(4, 18)):
            rng.choice(common if rng.random() < 0.9 else rare)()
        for label in self.labels:
            if label.at is None:
                b.place(label)
            b.emit_call("vm.builtin.copy", [rng.choice([0, None])])
        b.emit_ret(self.register())

    def register(self) -> Any:
        return self.rng.choice(self.registers)

    def value(self) -> Any:
        literals = [3, ShapeTuple([2, 4]), ShapeTuple([8]), X, "text", None, 1.5, True, (1, "a")]
        return self.register() if self.rng.random() < 0.4 else self.rng.choice(literals)

    def emit(self, name: str, args: list[Any], dst: Any = None) -> Any:
        return self.b.emit_call(f"vm.builtin.{name}", args, dst)

    def move(self) -> None:
        self.emit("copy", [self.value()], self.register())

    def pair(self) -> None:
        self.emit("make_tuple", [self.value() for _ in range(self.rng.randrange(4))], self.register())

    def null(self) -> None:
        self.emit("null_value", [], self.register())

    def item(self) -> None:
        self.emit("tuple_getitem", [self.register(), self.rng.randrange(3)], self.register())

    def word(self) -> None:
        self.emit("make_prim_value", [self.heap, self.rng.randrange(2), self.rng.randrange(3)], self.register())

    def shape_of(self) -> None:
        self.emit("shape_of", [self.register()], self.register())

    def shape_function(self) -> None:
        self.b.emit_call("shape_func", [self.heap], VOID)

    def reshape(self) -> None:
        shape = self.rng.choice([ShapeTuple([4, 2]), ShapeTuple([8]), self.register()])
        self.emit("reshape", [self.register(), shape], self.register())

    def match(self) -> None:
        self.emit("match_shape", [self.register(), self.heap, 2, 1, 0, 1, 1, "here"], VOID)
        self.emit("make_shape", [self.heap, 2, 1, self.rng.randrange(3), 0, 4], self.register())

    def tensor(self) -> None:
        shape, dst = self.rng.choice(SHAPES), self.register()
        size, of = self.rng.choice([(shape, F32), (ShapeTuple([64]), U8), (ShapeTuple([40]), F32)])
        storage = self.emit("alloc_storage", [VM, size, 0, of, "global"])
        self.emit("alloc_tensor", [storage, self.rng.choice([0, 0, 16]), shape, F32], dst)
        self.b.emit_call("test.random.fill", [dst], VOID)

    def add(self) -> None:
        x, y = self.register(), self.register()
        for value, code in ((x, 1), (y, 3)):
            self.emit("check_tensor_info", [value, 2, F32, "here"], VOID)
            self.emit("match_shape", [value, self.heap, 2, code, 0, 0, 4, "here"], VOID)
        shape = self.emit("make_shape", [self.heap, 2, 1, 0, 0, 4])
        storage = self.emit("alloc_storage", [VM, shape, 0, F32, "global"])
        out = self.emit("alloc_tensor", [storage, 0, shape, F32])
        self.b.emit_call("add", [x, y, out], VOID)
        self.emit("copy", [out], self.register())

    def packed(self) -> None:
        values = [self.value() for _ in range(self.rng.randrange(3))]
        self.b.emit_call("test.random.first", values, self.register())

    def call(self) -> None:
        if not self.later:
            return
        name = self.rng.choice(self.later)
        if self.rng.random() < 0.5:
            self.b.emit_call(name, [self.value(), self.value()], self.register())
        else:
            closure = self.emit("make_closure", [self.b.func(name), self.value()])
            self.emit("invoke_closure", [VM, closure, self.value()], self.register())

    def jump(self) -> None:
        label = self.rng.choice(self.labels)
        if label.at is None and self.rng.random() < 0.25:
            self.b.place(label)
        condition = self.b.emit_call("test.random.condition", [])
        self.b.emit_if(self.emit("read_if_cond", [condition]), label)


def described(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.shape, value.tolist(), value.flags.writeable
    return tuple(described(v) for v in value) if type(value) is tuple else (type(value), repr(value))


def outcome(vm: VirtualMachine, args: tuple[Any, ...]) -> Any:
    _asked[0] = 0
    try:
        return described(vm["f0"](*args))
    except DiagnosticError as error:
        return error.diagnostics[0].code, str(error)


@pytest.mark.parametrize("seed", range(40))
def test_random_bytecode_runs_alike(seed):
    executable = Writer(seed).executable()
    machines = [VirtualMachine(executable, mod=programs.kernels(), exec_mode=m) for m in ("native", "bytecode")]
    assert machines[0].exec_mode == "native"
    for args in ARGUMENTS:
        mine, theirs = (outcome(vm, args) for vm in machines)
        assert mine == theirs
