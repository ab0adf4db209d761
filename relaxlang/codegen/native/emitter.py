"""One Relax function from instructions to LLVM text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaxlang.base.dtype import DType
from relaxlang.base.record import record
from relaxlang.codegen.native import table
from relaxlang.codegen.native.flow import Flow, is_register, jump_target
from relaxlang.codegen.native.frame import LIKELY, Frame
from relaxlang.codegen.native.kinds import (
    BOOL,
    BORROWED,
    INT,
    NOTHING,
    OBJECT,
    Bool,
    Int,
    Reference,
    Shape,
    Tensor,
    Value,
    references,
)
from relaxlang.codegen.native.program_text import ProgramText
from relaxlang.runtime.builtins import read_if_cond
from relaxlang.runtime.executable import (
    VM,
    VOID,
    Arg,
    Call,
    Constant,
    Executable,
    Goto,
    If,
    Immediate,
    KernelFunction,
    PackedFunction,
    Register,
    Ret,
    VMFunction,
)
from relaxlang.runtime.kernel_signature import KernelSignature
from relaxlang.runtime.linkage import MAX_DEPTH
from relaxlang.runtime.ndarray import NDArray, ShapeTuple, dtype_name
from relaxlang.runtime.params import prologue

FastPath = Callable[["Emitter", Call], "Value | None"]
"""Emits a builtin or kernel and gives its result; None when these operands have no fast path (nothing was emitted)."""


@record
class FastPaths:
    """How builtins, by name, and kernels are called without Python."""

    builtins: Mapping[str, FastPath]
    kernel: Callable[[Emitter, Call, KernelSignature, Sequence[Arg]], Value | None]


_WORD_RANGE = range(-(1 << 63), 1 << 63)


class Emitter(Frame):
    """Writes one function. `pc` is the instruction that is being written."""

    def __init__(
        self, program: ProgramText, executable: Executable, index: int, paths: FastPaths, nested: bool
    ) -> None:
        """`nested` functions are called by others of the program, perhaps without end."""
        function = executable.functions[index]
        assert isinstance(function, VMFunction)
        super().__init__(program, len(function.params))
        self.executable = executable
        self.function = function
        self.index = index
        self.nested = nested
        self.paths = paths
        self.code = executable.code_of(function)
        self.flow = Flow(self.code, function.registers)
        self.prologue = prologue(executable, function)
        self.pc = 0
        self._rechecked = False
        self.sizes: dict[tuple[tuple[str, ...], int], tuple[str, str]] = {}
        self._heap: dict[tuple[str, int], str] = {}

    def emit(self) -> None:
        """Write the function into the module."""
        if self.nested:
            self._check_depth()
        for at, instruction in enumerate(self.code):
            self.pc = at
            if at in self.flow.leaders and not self._arrive(at):
                continue
            if not self.at.open:
                continue
            self.keep_only(self.flow.live[at])
            if isinstance(instruction, Call):
                self._call(instruction)
            elif isinstance(instruction, If):
                self._branch(at, instruction)
            elif isinstance(instruction, Goto):
                self._goto(at, instruction)
            else:
                self._return(instruction)
        if self._rechecked:
            self._recheck()
        self.at.start("fail")
        self._release_frame()
        self.at.finish("ret ptr null")
        self._declare_places()
        head = f"define internal ptr {symbol_of(self.index)}(ptr %args, i64 %depth, i64 %limit, i1 %ready)"
        self.program.module.add(self.at.text(head))

    def _declare_places(self) -> None:
        """The frame and the scratch space, whose sizes are known now."""
        slots = (f"  %slot{k} = getelementptr inbounds ptr, ptr %frame, i64 {k}" for k in range(self.size))
        self.at.entry[:0] = [
            f"  %frame = alloca [{self.size} x ptr]",
            f"  %scratch = alloca [{self.scratch} x i64]",
            f"  store [{self.size} x ptr] zeroinitializer, ptr %frame",
            *slots,
        ]

    def _release_frame(self) -> None:
        self.at.call("void", self.program.function("rlx_release"), ("ptr", "%frame"), ("i64", str(self.size)))

    def _check_depth(self) -> None:
        """What a function that others call begins with: recursion must end in an error, and Ctrl-C must reach it."""
        here = self.at.call("ptr", self.program.module.declare("llvm.frameaddress.p0", "ptr", ["i32"]), ("i32", "0"))
        low = self.at.value(f"icmp ult i64 {self.at.value(f'ptrtoint ptr {here} to i64')}, %limit")
        deep = self.at.value(f"icmp ugt i64 %depth, {MAX_DEPTH}")
        shallow = self.at.value(f"xor i1 {self.at.value(f'or i1 {low}, {deep}')}, true")
        self.require(shallow, table.too_deep(self.function.name), [])
        self.check_signals()

    def check_signals(self) -> None:
        """Let Ctrl-C through."""
        status = self.at.call("i32", self.program.function("PyErr_CheckSignals"))
        self.unless(self.at.value(f"icmp ne i32 {status}, 0"))

    # --- control flow -------------------------------------------------------------------------------------------------
    def _arrive(self, at: int) -> bool:
        """Begin the block of instruction `at`; False when no path leads there."""
        self.sizes.clear()
        self._proved = {"true"}
        live = self.flow.live[at]
        self.heap_changed()
        if self.at.open:
            self.jump(at, live)
        return self.meet(at, live, at in self.flow.loops)

    def _goto(self, at: int, instruction: Goto) -> None:
        target = jump_target(at, instruction)
        if target <= at:
            self.check_signals()
        self.jump(target, self.flow.live[target])

    def _branch(self, at: int, instruction: If) -> None:
        target = jump_target(at, instruction)
        condition = self.truth(self.read(instruction.cond.index))
        then, other = self.at.label("then"), self.at.label("else")
        self.at.branch_if(condition, then, other)
        self.jump(target, self.flow.live[target], other)
        self.at.start(then)

    def truth(self, value: Value) -> str:
        """A condition as an i1."""
        if isinstance(value.kind, Bool):
            return value.parts[0]
        if isinstance(value.kind, Int):
            return self.at.value(f"icmp ne i64 {value.parts[0]}, 0")
        made = self.checked(self.call_python(table.fixed(read_if_cond), [value]))
        yes = self.at.value(f"icmp eq ptr {made}, {self.object(table.fixed(True))}")
        self.release(Reference(made, False))
        return yes

    def _return(self, instruction: Ret) -> None:
        result = self.box(self.operand(instruction.value))
        self.keep_only(0)
        self.at.finish(f"ret ptr {result}")

    # --- operands -----------------------------------------------------------------------------------------------------
    def literal(self, arg: Arg) -> Any:
        """The Python value of an immediate or a constant; None for other operands."""
        if isinstance(arg, Immediate):
            return arg.value
        return self.executable.constants[arg.index] if isinstance(arg, Constant) else None

    def operand(self, arg: Arg) -> Value:
        """Any operand as a value. Constants and functions are borrowed."""
        if isinstance(arg, Register) and arg != VM:
            return self.read(arg.index)
        literal = self.literal(arg)
        if isinstance(literal, bool):
            return Value(BOOL, ("true" if literal else "false",))
        if isinstance(literal, int) and literal in _WORD_RANGE:
            return Value(INT, (str(literal),))
        if isinstance(literal, ShapeTuple) and all(d in _WORD_RANGE for d in literal):
            return Value(Shape(len(literal)), tuple(map(str, literal)))
        if isinstance(arg, Constant) and literal is None:
            return Value(NOTHING)
        held = self.object(table.operand(arg))
        if isinstance(literal, NDArray):
            kind = Tensor(dtype_name(literal.dtype), literal.ndim, False, exact=True, borrowed=True)
            data = self.at.value(self.program.load(table.data_of(arg)))
            return Value(kind, (data, held, *map(str, literal.shape)))
        return Value(BORROWED, (held,))

    def element(self, arg: Arg) -> str | None:
        """The dtype that a constant operand names, as tensors store it; None for any other operand."""
        literal = self.literal(arg)
        return literal.name if isinstance(literal, DType) and literal.bits else None

    # --- calls --------------------------------------------------------------------------------------------------------
    def _call(self, call: Call) -> None:
        function = self.executable.functions[call.func]
        if isinstance(function, VMFunction):
            result = self.call_relax(call.func, [self.operand(a) for a in call.args])
        else:
            result = self._fast(call, function) or self.step(call)
        if call.dst == VOID:
            for reference in references(result):
                self.release(reference)
        else:
            self.write(call.dst.index, result)

    def _fast(self, call: Call, function: KernelFunction | PackedFunction) -> Value | None:
        if isinstance(function, KernelFunction):
            return self.paths.kernel(self, call, function.signature, call.args)
        fast = self.paths.builtins.get(function.name)
        return None if fast is None else fast(self, call)

    def step(self, call: Call) -> Value:
        """An instruction done in Python."""
        self.heap_changed()
        given = [self.operand(a) for a in call.args if is_register(a)]
        return Value(OBJECT, (self.checked(self.call_python(table.step(self.index, self.pc), given)),))

    def in_python_unless(self, good: str, call: Call) -> None:
        """Where a condition does not hold, do the instruction in Python, for its errors and effects. Among the checks
        that a function begins with there is one place for all of them."""
        if self.pc < self.prologue:
            go = self.at.label("good")
            self.at.branch_if(good, go, "recheck", LIKELY)
            self.at.start(go)
            self._rechecked = True
            return
        slow, go = self.at.label("slow"), self.at.label("fast")
        self.at.branch_if(good, go, slow, LIKELY)
        self.at.start(slow)
        self.release(Reference(self.step(call).parts[0], False))
        self.at.start(go)

    def _recheck(self) -> None:
        """A check of an argument failed. When the arguments come right from a caller they are converted, and the
        function begins again on what that gives; else something is wrong with them."""
        self.at.start("recheck")
        raw, bound = self.object(table.slow(self.index)), self.object(table.prologue(self.index))
        function = self.at.value(f"select i1 %ready, ptr {bound}, ptr {raw}")
        count = str(len(self.function.params))
        call = self.program.function("PyObject_Vectorcall")
        result = self.at.call("ptr", call, ("ptr", function), ("ptr", "%args"), ("i64", count), ("ptr", "null"))
        self._release_frame()
        self.at.finish(f"ret ptr {result}")

    # --- the shape heap -----------------------------------------------------------------------------------------------
    def heap_store(self, heap: Value, place: int, word: str) -> None:
        """Put an integer into the shape heap."""
        self.at.effect(f"store i64 {word}, ptr {self._heap_place(heap, place)}")
        self._heap[heap.parts[0], place] = word

    def heap_load(self, heap: Value, place: int) -> str:
        """An integer of the shape heap; the operand that was stored or loaded before, while it is known."""
        known = self._heap.get((heap.parts[0], place))
        if known is None:
            known = self.at.value(f"load i64, ptr {self._heap_place(heap, place)}")
            self._heap[heap.parts[0], place] = known
        return known

    def heap_changed(self) -> None:
        """Somebody else wrote to the shape heap."""
        self._heap.clear()

    def _heap_place(self, heap: Value, place: int) -> str:
        return self.at.value(f"getelementptr inbounds i64, ptr {heap.parts[0]}, i64 {place}")

    def call_relax(self, index: int, values: list[Value]) -> Value:
        """A call of the Relax function at place `index`, on boxed arguments."""
        count = ("i64", str(len(values)))
        args = self.array([self.box(v) for v in values])
        depth, limit = ("i64", self.at.value("add i64 %depth, 1")), ("i64", "%limit")
        function = ("ptr", symbol_of(index))
        made = self.at.call("ptr", self.program.call_relax(), function, ("ptr", args), count, depth, limit)
        return Value(OBJECT, (self.checked(made),))


def symbol_of(index: int) -> str:
    """The symbol of the function at a place of the function table."""
    return f"@relax.{index}"
