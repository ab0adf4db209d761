"""Floats narrower than 32 bits: between their bits in memory and the float32 that computes for them.

One algorithm serves every format that has exponent and mantissa: half to even, subnormals, overflow to infinity (or
NaN, or the largest number, as the format has it), NaN kept. `float8_e8m0fnu`, a bare exponent, has its own.
"""

from __future__ import annotations

from typing import Literal

from relaxlang.base.dtype import DType
from relaxlang.base.record import record
from relaxlang.codegen.algebra import Num, inline_call
from relaxlang.codegen.lltypes import is_narrow


@record
class Format:
    """A small float: bits of exponent and mantissa, exponent bias, and what the top codes mean.

    `top`: `ieee` has infinities; `fn` has one NaN per sign and no infinity; `fnuz` has its NaN at minus zero and no
    infinity; `finite` has neither, and saturates.
    """

    exponent: int
    mantissa: int
    bias: int
    top: Literal["ieee", "fn", "fnuz", "finite"] = "ieee"

    @property
    def width(self) -> int:
        """The bits in all."""
        return 1 + self.exponent + self.mantissa

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (self.width - 1)

    @property
    def largest(self) -> int:
        """The code of the largest number."""
        return {"ieee": self.infinity - 1, "fn": self.sign - 2}.get(self.top, self.sign - 1)

    @property
    def infinity(self) -> int:
        """In `ieee`: the code of infinity."""
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def nan(self) -> int:
        """The code of a NaN (for `finite`: of minus zero, as ml_dtypes has it)."""
        if self.top == "ieee":
            return self.infinity | 1 << (self.mantissa - 1)
        return self.sign - 1 if self.top == "fn" else self.sign


FORMATS: dict[str, Format] = {
    "float16": Format(5, 10, 15),
    "bfloat16": Format(8, 7, 127),
    "float8_e3m4": Format(3, 4, 3),
    "float8_e4m3": Format(4, 3, 7),
    "float8_e4m3b11fnuz": Format(4, 3, 11, "fnuz"),
    "float8_e4m3fn": Format(4, 3, 7, "fn"),
    "float8_e4m3fnuz": Format(4, 3, 8, "fnuz"),
    "float8_e5m2": Format(5, 2, 15),
    "float8_e5m2fnuz": Format(5, 2, 16, "fnuz"),
    "float6_e2m3fn": Format(2, 3, 1, "finite"),
    "float6_e3m2fn": Format(3, 2, 3, "finite"),
    "float4_e2m1fn": Format(2, 1, 1, "finite"),
}


def load_bits(bits: Num, of: DType) -> Num:
    """The float32 of a small float's bits (an integer of its width in memory)."""
    name = of.scalar.name
    return inline_call(bits.at, f"rlx.decode.{name}", lambda b: _decode(b, name), bits)


def store_bits(value: Num, of: DType) -> Num:
    """The bits of a float32, rounded to a small float."""
    name = of.scalar.name
    return inline_call(value.at, f"rlx.encode.{name}", lambda v: _encode(v, name, of.scalar.itemsize * 8), value)


def rounded(value: Num, of: DType) -> Num:
    """A float32 or float64 rounded to a small float, as float32; as it is for wider types. One rounding, but for
    float64 to bfloat16, which goes by float32 as in numpy."""
    if not is_narrow(of):
        return value
    if value.scalar == "double":
        value = value.convert("fptrunc", "float") if of.kind == "bfloat" else to_odd(value)
    return load_bits(store_bits(value, of), of)


def to_odd(value: Num) -> Num:
    """A double as a float, rounded to odd: rounding that again, to a smaller float, is as good as rounding once."""
    near = value.convert("fptrunc", "float")
    back = near.convert("fpext", "double")
    bits = near.bits("i32")
    inexact = back.differs(value) & value.equals(value)
    # A result with an even last bit is moved by one towards the exact value: away from zero when that is larger.
    outward = back.abs() < value.abs()
    moved = bits + outward.where(bits.num(1), bits.num(-1))
    use = inexact & (bits & 1).equals(0)
    return use.where(moved, bits).bits("float")


def _decode(bits: Num, name: str) -> Num:
    if name == "float8_e8m0fnu":
        return _decode_e8m0(bits.convert("zext", "i32"))
    form = FORMATS[name]
    wide = bits.convert("zext", "i32")
    if name == "bfloat16":
        return (wide << 16).bits("float")
    code = wide & (form.sign - 1)
    # With the mantissa in place, a multiplication mends the bias, for subnormals too.
    magnitude = (code << (23 - form.mantissa)).bits("float") * 2.0 ** (127 - form.bias)
    result = magnitude.bits("i32")
    if form.top == "ieee":
        result = (code.compare("uge", form.infinity)).where(result | 0x7F800000, result)
    elif form.top == "fn":
        result = code.equals(form.nan).where(0x7FC00000, result)
    result = result | (wide & form.sign) << (32 - form.width)
    if form.top == "fnuz":
        result = (wide & 0xFF).equals(form.nan).where(0x7FC00000, result)
    return result.bits("float")


def _decode_e8m0(code: Num) -> Num:
    exponent = code.equals(0).where(0x00400000, code << 23)  # 2**-127 is subnormal
    return code.equals(255).where(0x7FC00000, exponent).bits("float")


def _encode(value: Num, name: str, width: int) -> Num:
    bits = value.bits("i32")
    if name == "float8_e8m0fnu":
        return _encode_e8m0(bits, value).convert("trunc", "i8")
    form = FORMATS[name]
    magnitude = bits & 0x7FFFFFFF
    drop = 23 - form.mantissa
    odd = (magnitude >> drop) & 1
    code = (magnitude + (form.bias - 127 << 23) + ((1 << drop - 1) - 1) + odd) >> drop
    if name != "bfloat16":
        # Below the smallest normal number, an addition in float32 rounds to multiples of the smallest subnormal.
        magic = 2.0 ** (1 - form.bias - form.mantissa + 23)
        small = magnitude.bits("float")
        subnormal = (small + magic).bits("i32") - small.num(magic).bits("i32")
        code = (small < 2.0 ** (1 - form.bias)).where(subnormal, code)
    top = {"ieee": form.infinity, "finite": form.largest}.get(form.top, form.nan)
    # A code beyond the largest one; an exponent that grew out of the format is beyond it as an unsigned number.
    code = code.compare("ugt", form.largest).where(top, code)
    if form.top != "fnuz":
        code = code | (bits >> (32 - form.width)) & form.sign
        sign = (bits >> (32 - form.width)) & form.sign
        nan = sign ^ form.nan if form.top == "finite" else sign | form.nan
    else:
        nan = bits.num(form.nan)
        negative = (bits < 0) & code.differs(0)
        code = negative.where(code | form.sign, code)
    return value.is_nan().where(nan, code).convert("trunc", f"i{width}")


def _encode_e8m0(bits: Num, value: Num) -> Num:
    # To the nearest power of two, the middle up; what is not positive or not finite has no code but NaN.
    normal = (bits >> 23) + (bits & 0x7FFFFF).compare("uge", 0x400000).convert("zext", "i32")
    code = bits.compare("ult", 1 << 23).where(bits.compare("ugt", 0x400000).convert("zext", "i32"), normal)
    bad = value.is_nan() | (bits <= 0) | code.compare("uge", 255)
    return bad.where(255, code & 255)
