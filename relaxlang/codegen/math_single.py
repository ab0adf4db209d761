"""float32 functions in float32 arithmetic: those that models spend time in. Errors are below 2 ulp over the whole
range.

Polynomials were fitted by weighted least squares towards the smallest largest relative error; the interval of each is
named. A float32 value near 1.5 * 2**23 has its unit in the last place at 1: adding that number rounds to an integer,
half to even, and leaves the integer in the low bits; for NaN without harm.
"""

from __future__ import annotations

import math

from relaxlang.codegen.algebra import Num

_EXPONENT = 1.5 * 2.0**23 + 254
_EXPONENT_BITS = 0x4B4000FE
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4  # the sum is ln 2; the first has so few bits that n * it is exact
# (e**r - 1 - r) / r**2 for |r| <= ln(2) / 2
_EXP = (0.49999993412261073, 0.16666520105546245, 0.04166839425915813, 0.008368780622226546,
        0.0013814464752011332)  # fmt: skip
# (log(1 + f) - f + f**2 / 2) / f**3 for sqrt(1/2) <= 1 + f <= sqrt(2)
_LOG = (0.3333331037301476, -0.24999986546758599, 0.20002231545709218, -0.16669257615325261, 0.14218555762351726,
        -0.12384154470167956, 0.11873586313287907, -0.11791310119349716, 0.06915804609425316)  # fmt: skip
# (tanh(x) - x) / x**3 in x**2, for x <= 0.66
_TANH = (-0.33333252502628613, 0.1333062287469476, -0.053670534295421, 0.020412914643621077, -0.005453494239545463)
# erf(x) / x - 1 in x**2, for x <= 1
_ERF = (0.1283791670631582, -0.3761263848380982, 0.11283782747209432, -0.026865445821799484, 0.005221074878994723,
        -0.0008484711459759737, 0.00011270544552557349, -9.680136537410524e-06)  # fmt: skip
# normcdf(-x) * exp(x**2 / 2) / t in t - 0.546875, where t = 1 / (1 + x / 4), for x <= 14.5
_NORMAL = (0.20395910739898682, 0.34280237555503845, 0.44283950328826904, 0.41954660415649414, 0.2536998391151428,
           0.04218464717268944, -0.07186725735664368, -0.04477470740675926, 0.018734179437160492,
           0.017166245728731155)  # fmt: skip
# -log(1 - erf(x)) / x for 0.95 <= x <= 4.1
_ERFC = (1.128567892863217, 0.6355514870456328, 0.1054041690894052, -0.02282154681686137, 0.0030202576081321195,
         -8.187678193640522e-05, -3.930087118994662e-05, 4.426928517933293e-06)  # fmt: skip


def exp(x: Num) -> Num:
    """e**x = e**r * 2**n, with n from a sum that leaves n + 254 in its low bits."""
    x = clamp(x, -104.0, 89.0)
    t = x * math.log2(math.e) + _EXPONENT
    n = t - _EXPONENT
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    return _scaled(t, r.polynomial((1.0, 1.0, *_EXP)))


def _scaled(t: Num, value: Num) -> Num:
    """A value times 2**n, from a number with n + 254 in its low bits, rounded once where it ends in a subnormal number.
    Without an instruction for it the power is a product of two: one alone could not be that small."""
    doubled = t.bits("i32")
    if t.at.module.scales:
        return value.ldexp(doubled - _EXPONENT_BITS)
    half = doubled >> 1
    return value * (half << 23).bits("float") * ((doubled - half) << 23).bits("float")


def clamp(x: Num, low: float, high: float) -> Num:
    """x within [low, high]; NaN stays."""
    x = (x < low).where(low, x)
    return (x > high).where(high, x)


def log(x: Num) -> Num:
    """The natural logarithm."""
    tiny = x < 2.0**-126
    bits = tiny.where(x * 2.0**23, x).bits("i32")
    above = bits - 0x3F3504F3  # the bits of sqrt(1/2)
    exponent = above.op(f"ashr {above.type} {above.ref}, {above.num(23).ref}")
    f = (bits - (exponent << 23)).bits("float") - 1.0
    n = exponent.convert("sitofp", "float") + tiny.where(x.num(-23.0), 0.0)
    square = f * f
    tail = f.polynomial(_LOG) * f * square + n * _LN2_LOW
    made = (tail - square * 0.5 + f) + n * _LN2_HIGH
    made = x.equals(math.inf).where(x, made)
    made = x.equals(0.0).where(-math.inf, made)
    return x.compare("uge", 0.0).where(x.is_nan().where(x, made), math.nan)


def tanh(x: Num) -> Num:
    """The hyperbolic tangent."""
    size = x.abs()
    square = x * x
    near = square.polynomial(_TANH) * square * x + x
    far = 1.0 - 2.0 / (exp(size + size) + 1.0)
    return (size < 0.625).where(near, far).copysign(x)


def sigmoid(x: Num) -> Num:
    """1 / (1 + e**-x), with what rounding takes from the sum: a line stands for 1 / total on [1, 2]."""
    e = exp(-x.abs())
    total = e + 1.0
    quotient = (x < 0.0).where(e, 1.0) / total
    return quotient - quotient * (e - (total - 1.0)) * (1.5 - total * 0.5)


def erf(x: Num) -> Num:
    """The error function."""
    size = x.abs()
    square = x * x
    near = square.polynomial(_ERF) * x + x
    size = (size > 4.1).where(4.1, size)
    far = 1.0 - exp(-(size.polynomial(_ERFC) * size))
    return (x.abs() < 0.95).where(near, x.is_nan().where(x, far.copysign(x)))


def normcdf(x: Num) -> Num:
    """The probability that a standard normal value is below x: a polynomial in t = 1 / (1 + |x| / 4), times t and
    e**(-x**2 / 2).

    What rounding takes from the square, from the quotient (the polynomial is three times as steep as its argument) and
    from the first factor is carried along in `lost`, and e**r as 1 + `high` + `small`, so that few roundings are left.
    """
    size = x.abs()
    size = (size > 14.5).where(14.5, size)
    half = size * 0.5
    if x.at.module.fused:
        square = half * size
        rest = half.lost(size, square)
    else:
        top = (size.bits("i32") & -4096).bits("float")  # its square is exact
        square, rest = top * top * 0.5, (size + top) * (size - top) * 0.5
    scale = square * -math.log2(math.e) + _EXPONENT
    n = scale - _EXPONENT
    high, low = n * -_LN2_HIGH - square, n * _LN2_LOW + rest
    r = high - low
    small = r.polynomial(_EXP) * (r * r) - low
    grown = high + small
    divisor = half * 0.5 + 1.0
    t = 1.0 / divisor
    error = 1.0 - t * divisor - t * (half * 0.5 + (1.0 - divisor))
    offset = t - 0.546875
    inner = offset.polynomial(_NORMAL[1:])
    factor = offset * inner + _NORMAL[0]
    part = t * factor
    lost = error * t.polynomial((0.987, 0.92, 1.311)) * part + t.lost(factor, part)
    lost = t * (offset * inner + (_NORMAL[0] - factor)) + lost
    tail = _scaled(scale, part + (part * high + (part * small + (lost * grown + lost))))
    return (x < 0.0).where(tail, 1.0 - tail)
