"""Control flow of a function's instructions: where blocks begin, and which registers are alive."""

from __future__ import annotations

from collections.abc import Sequence

from relaxlang.runtime.executable import VM, VOID, Arg, Call, Goto, If, Instruction, Register, Ret


class Flow:
    """`leaders` are the instructions at which several paths may meet, `loops` those of them that a later instruction
    jumps to. `live[i]` has bit r set when the value that register r holds before instruction i is used by it or later;
    the last entry stands for the end. `uses` are the instructions that read a register."""

    def __init__(self, code: Sequence[Instruction], registers: int) -> None:
        self.code = code
        self.leaders: set[int] = set()
        self.loops: set[int] = set()
        for at, instruction in enumerate(code):
            if isinstance(instruction, (If, Goto)):
                target = jump_target(at, instruction)
                self.leaders.add(target)
                if target <= at:
                    self.loops.add(target)
        self.uses: dict[int, list[int]] = {}
        for at, instruction in enumerate(code):
            for register in read_registers(instruction):
                self.uses.setdefault(register, []).append(at)
        self.live = self._liveness()

    def _liveness(self) -> list[int]:
        live = [0] * (len(self.code) + 1)
        changed = True
        while changed:
            changed = False
            for at in range(len(self.code) - 1, -1, -1):
                before = self._before(at, live)
                # Only a jump backwards can make another round change anything.
                changed |= before != live[at] and bool(self.loops)
                live[at] = before
        return live

    def _before(self, at: int, live: list[int]) -> int:
        instruction = self.code[at]
        if isinstance(instruction, Ret):
            after = 0
        elif isinstance(instruction, Goto):
            after = live[jump_target(at, instruction)]
        elif isinstance(instruction, If):
            after = live[at + 1] | live[jump_target(at, instruction)]
        else:
            after = live[at + 1]
        if isinstance(instruction, Call) and instruction.dst != VOID:
            after &= ~(1 << instruction.dst.index)
        for register in read_registers(instruction):
            after |= 1 << register
        return after


def jump_target(at: int, instruction: If | Goto) -> int:
    """The instruction that a jump leads to."""
    return at + (instruction.false_offset if isinstance(instruction, If) else instruction.offset)


def is_register(arg: Arg) -> bool:
    """Whether an operand is a register of the function."""
    return isinstance(arg, Register) and arg != VM


def read_registers(instruction: Instruction) -> list[int]:
    """The registers that an instruction reads."""
    if isinstance(instruction, Call):
        return [a.index for a in instruction.args if isinstance(a, Register) and a != VM]
    if isinstance(instruction, Ret):
        return [instruction.value.index] if is_register(instruction.value) else []
    return [instruction.cond.index] if isinstance(instruction, If) and is_register(instruction.cond) else []
