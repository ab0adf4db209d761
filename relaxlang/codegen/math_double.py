"""float32 functions computed in float64 and rounded once: within about half a ulp, without care for cancellation.

The double-precision kernels below (`log`, `exp`, `atan`, `sin`, `cos`) are good to some 1e-12, which is all that a
float32 result needs. Their arguments are float32 values or come from such.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from relaxlang.codegen.algebra import Num
from relaxlang.codegen.math_single import clamp

if TYPE_CHECKING:
    from fractions import Fraction

_ROUND = 1.5 * 2.0**52
_EXP = tuple(1.0 / math.factorial(k) for k in range(12))
_LOG = tuple(2.0 / (2 * k + 1) for k in range(9))
_SIN = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(8))
_COS = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(9))
# (atan(t) - t) / t**3 in t**2, for t <= tan(pi / 8)
_ATAN = (-0.3333333333333325, 0.19999999999902202, -0.14285714266627514, 0.11111109665820741, -0.09090853371964268,
         0.07691068006633894, -0.06649733696568372, 0.05736989620863417, -0.04485286113803635,
         0.02277473934916112)  # fmt: skip


def through_double(function: Callable[..., Num]) -> Callable[..., Num]:
    """The float32 function that converts, computes `function` in double, and rounds."""

    def single(*args: Num) -> Num:
        return function(*(a.convert("fpext", "double") for a in args)).convert("fptrunc", "float")

    return single


# --- kernels ----------------------------------------------------------------------------------------------------------
def _exp(x: Num) -> Num:
    """e**x, for results that float32 can tell from 0 and infinity."""
    x = clamp(x, -200.0, 200.0)
    t = x * math.log2(math.e) + _ROUND
    r = x - (t - _ROUND) * math.log(2)
    exponent = (t.bits("i64") + 1023) << 52
    return r.polynomial(_EXP) * exponent.bits("double")


def _log(x: Num) -> Num:
    """The natural logarithm; the argument is no subnormal double."""
    bits = x.bits("i64")
    above = bits - 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
    exponent = above.op(f"ashr {above.type} {above.ref}, {above.num(52).ref}")
    m = (bits - (exponent << 52)).bits("double")
    s = (m - 1.0) / (m + 1.0)
    made = exponent.convert("sitofp", "double") * math.log(2) + (s * s).polynomial(_LOG) * s
    made = x.equals(math.inf).where(x, made)
    made = x.equals(0.0).where(-math.inf, made)
    return x.compare("uge", 0.0).where(x.is_nan().where(x, made), math.nan)


def _atan(x: Num) -> Num:
    size = x.abs()
    large = size > 1.0
    t = large.where(1.0 / size, size)
    middle = t > math.tan(math.pi / 8)
    t = middle.where((t - 1.0) / (t + 1.0), t)
    square = t * t
    made = square.polynomial(_ATAN) * square * t + t + middle.where(x.num(math.pi / 4), 0.0)
    made = large.where(math.pi / 2 - made, made)
    return x.is_nan().where(x, made.copysign(x))


def _sqrt(x: Num) -> Num:
    return x.call("llvm.sqrt")


# --- exponentials, logarithms -----------------------------------------------------------------------------------------
exp2 = through_double(lambda x: _exp(x * math.log(2)))
exp10 = through_double(lambda x: _exp(x * math.log(10)))
log2 = through_double(lambda x: _log(x) * math.log2(math.e))
log10 = through_double(lambda x: _log(x) * math.log10(math.e))
asin = through_double(lambda x: _atan(x / _sqrt((1.0 - x) * (x + 1.0))))
acos = through_double(lambda x: _atan(_sqrt((1.0 - x) / (x + 1.0))) * 2.0)
atan = through_double(_atan)
cosh = through_double(lambda x: (_exp(x) + _exp(-x)) * 0.5)


def _near_zero(series: tuple[float, float, float], function: Callable[[Num], Num]) -> Callable[..., Num]:
    """`function`, replaced for |x| < 1e-3, where it cancels, by x (c0 + c1 x**2 + c2 x**4)."""

    def double(x: Num) -> Num:
        near = (x * x).polynomial(series) * x
        return (x.abs() < 1e-3).where(near, function(x))

    return through_double(double)


sinh = _near_zero((1.0, 1 / 6, 1 / 120), lambda x: (_exp(x) - _exp(-x)) * 0.5)
atanh = _near_zero((1.0, 1 / 3, 1 / 5), lambda x: _log((x + 1.0) / (1.0 - x)) * 0.5)


def _asinh(x: Num) -> Num:
    size = x.abs()
    return _log(size + _sqrt(size * size + 1.0)).copysign(x)


asinh = _near_zero((1.0, -1 / 6, 3 / 40), _asinh)
acosh = through_double(lambda x: _log(x + _sqrt(x - 1.0) * _sqrt(x + 1.0)))


def _log1p(x: Num) -> Num:
    near = x.polynomial((1.0, -1 / 2, 1 / 3, -1 / 4)) * x
    return (x.abs() < 1e-4).where(near, _log(x + 1.0))


log1p = through_double(_log1p)


def _hypot(x: Num, y: Num) -> Num:
    infinite = x.abs().equals(math.inf) | y.abs().equals(math.inf)
    return infinite.where(math.inf, _sqrt(x * x + y * y))


hypot = through_double(_hypot)


def _atan2(y: Num, x: Num) -> Num:
    tall, wide = y.abs(), x.abs()
    steep = tall > wide
    low, high = steep.where(wide, tall), steep.where(tall, wide)
    ratio = low.equals(high).where(high.equals(0.0).where(low.num(0.0), 1.0), low / high)
    angle = _atan(ratio)
    angle = steep.where(math.pi / 2 - angle, angle)
    angle = (x.bits("i64") < 0).where(math.pi - angle, angle)
    return (x.is_nan() | y.is_nan()).where(x + y, angle.copysign(y))


atan2 = through_double(_atan2)


def _pow(x: Num, y: Num) -> Num:
    size = x.abs()
    made = _exp(_log(size) * y)
    half = y * 0.5
    whole = y.call("llvm.floor").equals(y)
    odd = whole & half.call("llvm.floor").differs(half) & (y.abs() < 2.0**53)
    negative = x.bits("i64") < 0
    made = (negative & odd).where(-made, made)
    undefined = (x < 0.0) & (x > -math.inf) & (whole ^ 1)
    made = undefined.where(math.nan, made)
    unit = x.equals(1.0) | y.equals(0.0) | (x.equals(-1.0) & y.abs().equals(math.inf))
    return unit.where(1.0, made)


power = through_double(_pow)


def ldexp(x: Num, exponent: Num) -> Num:
    """x * 2**exponent for a float32 and an i32: one rounding, in the conversion from double."""
    low = (exponent < -400).where(-400, exponent)
    n = (low > 400).where(400, low).convert("sext", "i64")
    return (x.convert("fpext", "double") * ((n + 1023) << 52).bits("double")).convert("fptrunc", "float")


# --- circular functions -----------------------------------------------------------------------------------------------
_FIRST = 127 + 20
"""Biased exponent of the float32 numbers from which the reduction goes by table."""


def _inverse_half_pi() -> Fraction:
    """2 / pi to some 320 bits, by Machin's formula."""
    from fractions import Fraction

    def arccot(n: int) -> Fraction:
        total, sign, power, scale = 0, 1, (1 << 400) // n, 1
        while power:
            total += sign * (power // scale)
            sign, power, scale = -sign, power // (n * n), scale + 2
        return Fraction(total, 1 << 400)

    return 2 / (16 * arccot(5) - 4 * arccot(239))


def reduction_table() -> bytes:
    """For each exponent e from `_FIRST` to 254: 2**(e - 150) * 2/pi modulo 4 as two doubles, of which the first is a
    multiple of 2**-27, so that its product with a 24-bit mantissa is exact."""
    from fractions import Fraction

    ratio, table = _inverse_half_pi(), bytearray()
    for exponent in range(_FIRST, 255):
        value = ratio * Fraction(2) ** (exponent - 150) % 4
        high = Fraction(math.floor(value * 2**27), 2**27)
        table += struct.pack("<2d", float(high), float(value - high))
    return bytes(table)


def _reduce(x: Num) -> tuple[Num, Num]:
    """A float32 as n * pi/2 + r: r as a double with |r| < 1, n as i64, of which the low two bits count."""
    wide = x.convert("fpext", "double")
    t = wide * (2 / math.pi) + _ROUND
    n = t - _ROUND
    near = (wide - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11
    # Payne and Hanek: the quotient by pi/2 modulo 4, from the mantissa and a tabulated power of two.
    bits = x.bits("i32")
    exponent = (bits >> 23) & 255
    index = ((exponent - _FIRST).call("llvm.smax", 0)).call("llvm.smin", 254 - _FIRST)
    mantissa = ((bits & 0x7FFFFF) | 0x800000).convert("sitofp", "double")
    high, low = lookup_pair(index, x.at.module.data(reduction_table()))
    whole = mantissa * high + _ROUND
    far = (mantissa * high - (whole - _ROUND) + mantissa * low) * (math.pi / 2)
    negative = bits < 0
    far = negative.where(-far, far)
    turns = whole.bits("i64") & 3
    turns = negative.where(0 - turns, turns)
    big = exponent.compare("sge", _FIRST)
    r = big.where(far, near)
    return exponent.equals(255).where(math.nan, r), big.where(turns, t.bits("i64"))


def lookup_pair(index: Num, table: str) -> tuple[Num, Num]:
    """Two neighbouring doubles of a table of pairs."""
    made = []
    for offset in (0, 1):
        position = index * 2 + offset
        if index.type == "i32":
            place = index.at.value(f"getelementptr inbounds double, ptr {table}, i32 {position.ref}")
            made.append(Num(index.at, index.at.value(f"load double, ptr {place}, align 8"), "double"))
            continue
        pointers, doubles, truth = index.like("ptr"), index.like("double"), index.like("i1")
        place = index.at.value(f"getelementptr inbounds double, ptr {table}, {index.type} {position.ref}")
        lanes = index.type[1:].split(" ")[0]
        gather = f"llvm.masked.gather.v{lanes}f64.v{lanes}p0"
        function = index.at.module.declare(gather, doubles, [pointers, "i32", truth, doubles])
        args = ((pointers, place), ("i32", "8"), (truth, "splat (i1 true)"), (doubles, "zeroinitializer"))
        made.append(Num(index.at, index.at.call(doubles, function, *args), doubles))
    return made[0], made[1]


def _circular(x: Num, quarter: int) -> Num:
    """sin(x + quarter * pi/2) as a double."""
    r, n = _reduce(x)
    square = r * r
    sine, cosine = square.polynomial(_SIN) * r, square.polynomial(_COS)
    n = n + quarter
    made = (n & 1).equals(0).where(sine, cosine)
    return (n & 2).equals(0).where(made, -made)


def sin(x: Num) -> Num:
    """The sine."""
    return x.equals(0.0).where(x, _circular(x, 0).convert("fptrunc", "float"))


def cos(x: Num) -> Num:
    """The cosine."""
    return _circular(x, 1).convert("fptrunc", "float")


def tan(x: Num) -> Num:
    """The tangent."""
    r, n = _reduce(x)
    square = r * r
    sine, cosine = square.polynomial(_SIN) * r, square.polynomial(_COS)
    even = (n & 1).equals(0)
    made = even.where(sine, -cosine) / even.where(cosine, sine)
    return x.equals(0.0).where(x, made.convert("fptrunc", "float"))
