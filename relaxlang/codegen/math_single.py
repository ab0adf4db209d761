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
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4  # the sum is ln 2; the first has so few bits that n * it is exact
# (e**r - 1 - r) / r**2 for |r| <= ln(2) / 2
_EXP = (0.49999993412261073, 0.16666520105546245, 0.04166839425915813, 0.008368780622226546,
        0.0013814464752011332)  # fmt: skip
# the same for |r| <= ln(2) / 2 + 0.0125
_EXP_WIDE = (0.49999991059303284, 0.1666649729013443, 0.041668668389320374, 0.008371495641767979,
        0.001380884787067771)  # fmt: skip
# (log(1 + f) - f + f**2 / 2) / f**3 for sqrt(1/2) <= 1 + f <= sqrt(2)
_LOG = (0.3333331037301476, -0.24999986546758599, 0.20002231545709218, -0.16669257615325261, 0.14218555762351726,
        -0.12384154470167956, 0.11873586313287907, -0.11791310119349716, 0.06915804609425316)  # fmt: skip
# (tanh(x) - x) / x**3 in x**2, for x <= 0.66
_TANH = (-0.33333252502628613, 0.1333062287469476, -0.053670534295421, 0.020412914643621077, -0.005453494239545463)
# erf(x) / x - 1 in x**2, for x <= 1
_ERF = (0.1283791670631582, -0.3761263848380982, 0.11283782747209432, -0.026865445821799484, 0.005221074878994723,
        -0.0008484711459759737, 0.00011270544552557349, -9.680136537410524e-06)  # fmt: skip
# normcdf(-x) * exp(x**2 / 2) / t in t - 0.625, where t = 1 / (1 + x / 4), for x <= 14.5; the first in two parts
_NORMAL_LOW = 5.8533586866360565e-09
_NORMAL = (0.2336530238389969, 0.42016860842704773, 0.5506201982498169, 0.500662088394165, 0.26289841532707214,
           0.0033358074724674225, -0.0923866406083107, -0.029232433065772057, 0.03055659309029579,
           0.016892287880182266)  # fmt: skip
# -log(1 - erf(x)) / x for 0.95 <= x <= 4.1
_ERFC = (1.128567892863217, 0.6355514870456328, 0.1054041690894052, -0.02282154681686137, 0.0030202576081321195,
         -8.187678193640522e-05, -3.930087118994662e-05, 4.426928517933293e-06)  # fmt: skip


def exp(x: Num) -> Num:
    """e**x = e**r * 2**n, with n from a sum that leaves n + 254 in its low bits."""
    x = clamp(x, -104.0, 89.0)
    t = x * math.log2(math.e) + _EXPONENT
    n = t - _EXPONENT
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    made = r.polynomial((1.0, 1.0, *_EXP))
    if x.at.module.scales:
        return made.ldexp(n.convert("fptosi", "i32"))
    first, second = _powers(t)
    return made * first * second


def exp_in_parts(x: Num, rest: Num | None = None) -> tuple[Num, Num, Num, Num]:
    """e**(x + rest) as a number between 1/2 and 2, what that lacks by its last rounding, and two powers of two to
    multiply with, which end in a subnormal number or infinity with one rounding. `rest` is small (below 0.0125) while
    `x` may be far from 0: their sum is not rounded.

    It is computed as in `exp`; what 1 + r loses by rounding is added to the small terms.
    """
    x = clamp(x, -104.0, 89.0)
    t = x * math.log2(math.e) + _EXPONENT
    n = t - _EXPONENT
    high, low = x - n * _LN2_HIGH, n * _LN2_LOW
    if rest is not None:
        low = low - rest
    r = high - low
    one = high + 1.0
    small = r.polynomial(_EXP_WIDE) * (r * r) - low + (high - (one - 1.0))
    made = one + small
    return made, small - (made - one), *_powers(t)


def _powers(t: Num) -> tuple[Num, Num]:
    """Two powers of two whose product is 2**n, from a number with n + 254 in its low bits. One alone could not make a
    subnormal number."""
    doubled = t.bits("i32")
    half = doubled >> 1
    return (half << 23).bits("float"), ((doubled - half) << 23).bits("float")


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
    """1 / (1 + e**-x)."""
    made, low, first, second = exp_in_parts(-x.abs())
    e, low = made * first * second, low * first * second
    total = e + 1.0
    below = x < 0.0
    top = below.where(e, 1.0)
    quotient = top / total
    # What the quotient lacks: a line stands for 1 / total on [1, 2].
    lost = top - quotient * total - quotient * (e - (total - 1.0) + low) + below.where(low, 0.0)
    made = quotient + lost * (1.5 - total * 0.5)
    return x.is_nan().where(x, made)


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

    The polynomial is three times as steep as its argument, and it is the first of several factors: what rounding takes
    from the quotient, from the last step of the polynomial and from its product is added in the end.
    """
    size = x.abs()
    size = (size > 14.5).where(14.5, size)
    top = (size.bits("i32") & -4096).bits("float")  # its square is exact
    decay, low, first, second = exp_in_parts(top * top * -0.5, (size + top) * (size - top) * -0.5)
    quarter = size * 0.25
    steep = quarter > 1.0
    divisor = quarter + 1.0
    lost = steep.where(1.0, quarter) - (divisor - steep.where(quarter, 1.0))
    t = 1.0 / divisor
    error = (1.0 - t * divisor - t * lost) * t.polynomial((0.987, 0.92, 1.311))
    offset = t - 0.625
    inner = offset.polynomial(_NORMAL[1:])
    rise = offset * inner
    q = rise + _NORMAL[0]
    base = q - rise
    lost = offset.lost(inner, rise) + ((rise - (q - base)) + (_NORMAL[0] - base + _NORMAL_LOW))
    part = t * q
    lost = t.lost(q, part) + (lost * t + error * part)
    whole = decay * part
    tail = (whole + (decay.lost(part, whole) + low * part + decay * lost)) * first * second
    return x.is_nan().where(x, (x < 0.0).where(tail, 1.0 - tail))
