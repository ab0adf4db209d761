"""What rules need to know of a processor."""

from __future__ import annotations

from typing import Any

from relaxlang.base.record import record
from relaxlang.ir.tir import Buffer

_WIDE = ("x86-64-v4", "znver4", "znver5", "skylake-avx512", "cascadelake", "icelake", "sapphirerapids", "graniterapids")


@record
class Processor:
    """`vector_bytes`: the width of a vector register; `registers`: how many there are; `constants`: the parameters that
    hold the same in every call, whose layout can be changed beforehand; `dots`: whether it multiplies vectors of
    four bytes each, unsigned by signed, and adds the products up in one instruction."""

    vector_bytes: int = 64
    registers: int = 32
    constants: frozenset[Buffer] = frozenset()
    dots: bool = False

    @property
    def has_masks(self) -> bool:
        """Whether loads and stores of a part of a vector are as fast as whole ones."""
        return self.vector_bytes >= 64

    def lanes(self, itemsize: int) -> int:
        """How many values of a size are in a vector."""
        return max(1, self.vector_bytes // max(1, itemsize))


def processor_of(target: Any) -> Processor:
    """The processor of a target of the code generator (None: one with AVX-512)."""
    if target is None:
        return Processor()
    features, cpu, triple = str(target.mattr), str(target.mcpu), str(target.mtriple)
    if triple.startswith(("aarch64", "arm64")):
        return Processor(16, 32)
    if "+avx512f" in features or cpu.startswith(_WIDE):
        return Processor(64, 32, dots=target.has_dots)
    if "+avx2" in features or cpu in ("x86-64-v3", "haswell", "znver1", "znver2", "znver3"):
        return Processor(32, 16)
    return Processor(16, 16)
