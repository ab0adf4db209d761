"""The small C functions that generated code calls, each written out only where it is used.

`helper(kind, of)` gives the name, the text and what it needs, for an operation on a dtype.
"""

from __future__ import annotations

from collections.abc import Callable

from relaxlang.base.dtype import DType, dtype
from relaxlang.base.record import record
from relaxlang.codegen.c.types import value_type
from relaxlang.codegen.narrow import FORMATS

PREFIX = "rl_"


@record
class Helper:
    """A C function: its name, its text, the helpers that it calls."""

    name: str
    text: str
    needs: tuple[Helper, ...] = ()


def helper(kind: str, of: DType) -> Helper:
    """The helper of a kind for a dtype (its scalar)."""
    of = of.scalar
    name = f"{PREFIX}{kind}_{of.name}"
    return _KINDS[kind](name, of)


def _wrap(op: str) -> Callable[[str, DType], Helper]:
    def make(name: str, of: DType) -> Helper:
        t, u = value_type(of), f"uint{of.bits}_t"
        return Helper(name, f"static {t} {name}({t} a, {t} b) {{ return ({t})(({u})a {op} ({u})b); }}")

    return make


def _divide(floor: bool, remainder: bool) -> Callable[[str, DType], Helper]:
    def make(name: str, of: DType) -> Helper:
        t, lines = value_type(of), ["if (b == 0) return 0;"]
        if of.is_int:
            edge = "0" if remainder else f"({t})(0 - (uint{max(of.bits, 8)}_t)a)"
            lines.append(f"if (b == -1) return {edge};")
        if not floor or not of.is_int:
            lines.append(f"return ({t})(a {'%' if remainder else '/'} b);")
        elif remainder:
            lines += [f"{t} r = ({t})(a % b);", f"return ({t})(r != 0 && (r ^ b) < 0 ? r + b : r);"]
        else:
            lines += [f"{t} r = ({t})(a % b);", f"return ({t})(a / b - (r != 0 && (r ^ b) < 0));"]
        body = "\n".join("  " + line for line in lines)
        return Helper(name, f"static {t} {name}({t} a, {t} b) {{\n{body}\n}}")

    return make


def _extremum(op: str) -> Callable[[str, DType], Helper]:
    def make(name: str, of: DType) -> Helper:
        t = value_type(of)
        nan = "a != a || " if of.is_float else ""  # NaN is kept, from either side
        return Helper(name, f"static {t} {name}({t} a, {t} b) {{ return {nan}a {op} b ? a : b; }}")

    return make


def _from_float(name: str, of: DType) -> Helper:
    """A double truncated to an integer; what does not fit, and NaN, as on x86: the lowest number, low bits kept."""
    t = value_type(of)
    if of.bits < 32 or (of.bits == 32 and of.is_int):
        value = "x >= -2147483648.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN"
        return Helper(name, f"static {t} {name}(double x) {{ return ({t})({value}); }}")
    wide = "x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN"
    if of.is_int:
        return Helper(name, f"static {t} {name}(double x) {{ return {wide}; }}")
    if of.bits == 32:
        low = "x >= -2147483648.0 && x < 2147483648.0 ? (uint32_t)(int32_t)x : (uint32_t)INT32_MIN"
        return Helper(name, f"static {t} {name}(double x) {{\n  if (x >= 2147483648.0) return (uint32_t)({wide});\n"
                            f"  return {low};\n}}")  # fmt: skip
    lines = f"  if (x >= 18446744073709551616.0) return 0;\n" \
            f"  if (x >= 9223372036854775808.0) return (uint64_t)x;\n  return (uint64_t)({wide});"  # fmt: skip
    return Helper(name, f"static {t} {name}(double x) {{\n{lines}\n}}")


def _shift(left: bool) -> Callable[[str, DType], Helper]:
    def make(name: str, of: DType) -> Helper:
        t, u, n = value_type(of), f"uint{max(of.bits, 8)}_t", of.bits
        inside = f"by >= 0 && by < {n}" if of.is_int else f"by < {n}"
        if left:
            value = f"{inside} ? ({t})(({u})a << by) : 0"
            return Helper(name, f"static {t} {name}({t} a, {t} by) {{ return {value}; }}")
        if not of.is_int:
            return Helper(name, f"static {t} {name}({t} a, {t} by) {{ return by < {n} ? ({t})(a >> by) : 0; }}")
        return Helper(name, f"static {t} {name}({t} a, {t} by) {{ return ({t})(a >> ({inside} ? by : {n - 1})); }}")

    return make


def _sign_extend(name: str, of: DType) -> Helper:
    """The low bits of a byte as an integer of fewer than 8 bits."""
    t, gap = value_type(of), 8 - of.bits
    if of.is_uint:
        return Helper(name, f"static {t} {name}(int x) {{ return ({t})(x & {(1 << of.bits) - 1}); }}")
    return Helper(name, f"static {t} {name}(int x) {{ return ({t})((int8_t)(uint8_t)(x << {gap}) >> {gap}); }}")


def _power(name: str, of: DType) -> Helper:
    t, u = value_type(of), f"uint{max(of.bits, 8)}_t"
    negative = "  if (n < 0) return (t)(a == 1 || a == -1 ? (n & 1 ? a : 1) : 0);\n".replace("(t)", f"({t})")
    text = f"static {t} {name}({t} a, {t} n) {{\n"
    text += negative if of.is_int else ""
    text += f"  {u} base = ({u})a, total = 1;\n  for (; n > 0; n >>= 1) {{\n"
    text += (
        f"    if (n & 1) total = ({u})(total * base);\n    base = ({u})(base * base);\n  }}\n  return ({t})total;\n}}"
    )
    return Helper(name, text)


def _popcount(name: str, of: DType) -> Helper:
    u = f"uint{max(of.bits, 8)}_t"
    return Helper(name, f"static int32_t {name}({u} x) {{\n  int32_t n = 0;\n  for (; x; x &= ({u})(x - 1)) ++n;\n"
                        "  return n;\n}")  # fmt: skip


def _clz(name: str, of: DType) -> Helper:
    u = f"uint{max(of.bits, 8)}_t"
    return Helper(name, f"static int32_t {name}({u} x) {{\n  int32_t n = {of.bits};\n  for (; x; x >>= 1) --n;\n"
                        "  return n;\n}")  # fmt: skip


def _fixed_point(name: str, of: DType) -> Helper:
    return Helper(
        name,
        f"""static int32_t {name}(int32_t x, int32_t y, int32_t q, int32_t s) {{
  int32_t left = s > 0 ? s : 0, right = (s < 0 ? -s : 0) + q;
  int64_t half = right > 0 ? (int64_t)((uint64_t)1 << (right - 1)) : 0;
  int64_t product = (int64_t)((uint64_t)(int64_t)x << left) * y;
  return (int32_t)((product + half) >> right);
}}""",
    )


def _dp4a(first: str, second: str) -> Callable[[str, DType], Helper]:
    """The sum of the products of four bytes each, which are signed (`int8_t`) or not."""
    return lambda name, of: Helper(
        name,
        f"""static int32_t {name}(uint32_t a, uint32_t b, int32_t sum) {{
  for (int i = 0; i < 32; i += 8)
    sum = (int32_t)((uint32_t)sum + (uint32_t)(({first})(a >> i) * ({second})(b >> i)));
  return sum;
}}""",
    )


def _bits(name: str, of: DType) -> Helper:
    """The bits of a float as an integer."""
    t, u = value_type(of), f"uint{max(of.bits, 32)}_t"
    return Helper(
        name, f"static {u} {name}({t} x) {{\n  {u} bits;\n  memcpy(&bits, &x, sizeof bits);\n  return bits;\n}}"
    )


def _from_bits(name: str, of: DType) -> Helper:
    t, u = value_type(of), f"uint{max(of.bits, 32)}_t"
    return Helper(name, f"static {t} {name}({u} bits) {{\n  {t} x;\n  memcpy(&x, &bits, sizeof x);\n  return x;\n}}")


_FLOAT32 = dtype("float32")


def _decode(name: str, of: DType) -> Helper:
    """The float of a small float's code. With the mantissa in place, a multiplication mends the bias."""
    made = helper("from_bits", _FLOAT32)
    needs = (made,)
    head = f"static float {name}(uint32_t code) {{\n"
    if of.name == "bfloat16":
        return Helper(name, head + f"  return {made.name}(code << 16);\n}}", needs)
    if of.name == "float8_e8m0fnu":
        body = f"  return {made.name}(code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : code << 23);\n}}"
        return Helper(name, head + body, needs)
    form = FORMATS[of.name]
    lines = [
        f"uint32_t magnitude = code & 0x{form.sign - 1:x}u;",
        f"float value = {made.name}(magnitude << {23 - form.mantissa}) * 0x1p{127 - form.bias}f;",
    ]
    if form.top == "ieee":
        kept = f"magnitude & 0x{(1 << form.mantissa) - 1:x}u"
        lines.append(f"if (magnitude >= 0x{form.infinity:x}u) value = {kept} ? NAN : INFINITY;")
    elif form.top == "fn":
        lines.append(f"if (magnitude == 0x{form.nan:x}u) value = NAN;")
    elif form.top == "fnuz":
        lines.append(f"if (code == 0x{form.nan:x}u) return NAN;")
    lines.append(f"return code & 0x{form.sign:x}u ? -value : value;")
    return Helper(name, head + "".join(f"  {line}\n" for line in lines) + "}", needs)


def _encode(name: str, of: DType) -> Helper:
    """The code of a float rounded to a small float, half to even."""
    bits = helper("bits", _FLOAT32)
    u = f"uint{of.itemsize * 8}_t"
    head = f"static {u} {name}(float x) {{\n  uint32_t bits = {bits.name}(x), code;\n"
    if of.name == "float8_e8m0fnu":
        body = "  code = bits < (1u << 23) ? bits > 0x400000u : (bits >> 23) + ((bits & 0x7fffffu) >= 0x400000u);\n"
        return Helper(name, head + body + f"  return ({u})(!(x > 0) || code >= 255 ? 255 : code);\n}}", (bits,))
    form = FORMATS[of.name]
    drop = 23 - form.mantissa
    shift = (form.bias - 127) << 23
    adjust = f"{'-' if shift < 0 else '+'} 0x{abs(shift):x}u " if shift else ""
    top = {"ieee": form.infinity, "finite": form.largest}.get(form.top, form.nan)
    lines = [
        f"uint32_t magnitude = bits & 0x7fffffffu, sign = bits >> {32 - form.width} & 0x{form.sign:x}u;",
        f"code = (magnitude {adjust}+ 0x{(1 << drop - 1) - 1:x}u + (magnitude >> {drop} & 1)) >> {drop};",
    ]
    if of.name != "bfloat16":
        # Below the smallest normal number, an addition in float32 rounds to multiples of the smallest subnormal.
        magic = f"0x1p{1 - form.bias - form.mantissa + 23}f"
        lines.append(f"if (fabsf(x) < 0x1p{1 - form.bias}f) "
                     f"code = {bits.name}(fabsf(x) + {magic}) - {bits.name}({magic});")  # fmt: skip
    lines.append(f"if (code > 0x{form.largest:x}u) code = 0x{top:x}u;")
    if form.top == "fnuz":
        lines.append("if (code == 0) sign = 0;")
        nan = f"0x{form.nan:x}u"
        keep = "(code & 0xffu) == 0x80u ? code : code | sign"
    else:
        nan = f"sign ^ 0x{form.nan:x}u" if form.top == "finite" else f"sign | 0x{form.nan:x}u"
        keep = "code | sign"
    lines.append(f"return ({u})(x != x ? {nan} : {keep});")
    return Helper(name, head + "".join(f"  {line}\n" for line in lines) + "}", (bits,))


def _round(name: str, of: DType) -> Helper:
    """A float rounded to a small float, as a float."""
    down, up = helper("encode", of), helper("decode", of)
    return Helper(name, f"static float {name}(float x) {{ return {up.name}({down.name}(x)); }}", (down, up))


def _to_odd(name: str, of: DType) -> Helper:
    """A double as a float, rounded to odd: rounding that again, to a smaller float, is as good as rounding once."""
    bits, made = helper("bits", _FLOAT32), helper("from_bits", _FLOAT32)
    return Helper(name, f"""static float {name}(double x) {{
  float near = (float)x;
  uint32_t bits = {bits.name}(near);
  if (x != x || near == x || (bits & 1)) return near;
  return {made.name}(fabs((double)near) < fabs(x) ? bits + 1 : bits - 1);
}}""", (bits, made))  # fmt: skip


def _sigmoid(name: str, of: DType) -> Helper:
    t, s = value_type(of), "" if of.bits == 64 else "f"
    return Helper(name, f"static {t} {name}({t} x) {{\n  {t} tail = exp{s}(-fabs{s}(x));\n"
                        f"  return (x < 0 ? tail : 1) / (1 + tail);\n}}")  # fmt: skip


def _float_floormod(name: str, of: DType) -> Helper:
    t, s = value_type(of), "" if of.bits == 64 else "f"
    return Helper(
        name,
        f"""static {t} {name}({t} a, {t} b) {{
  {t} rest = fmod{s}(a, b);
  if (rest == 0) return copysign{s}(0, b);
  return (rest < 0) != (b < 0) && rest == rest ? rest + b : rest;
}}""",
    )


def _float_floordiv(name: str, of: DType) -> Helper:
    """The quotient that goes with the floored remainder, as numpy computes it."""
    t, s = value_type(of), "" if of.bits == 64 else "f"
    return Helper(
        name,
        f"""static {t} {name}({t} a, {t} b) {{
  {t} rest = fmod{s}(a, b), quotient = (a - rest) / b, whole;
  if (b == 0) return a / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return copysign{s}(0, a / b);
  whole = floor{s}(quotient);
  return quotient - whole > 0.5{s} ? whole + 1 : whole;
}}""",
    )


def _by_type(
    integer: Callable[[str, DType], Helper], real: Callable[[str, DType], Helper]
) -> Callable[[str, DType], Helper]:
    return lambda name, of: (real if of.is_float else integer)(name, of)


_KINDS: dict[str, Callable[[str, DType], Helper]] = {
    "add": _wrap("+"), "sub": _wrap("-"), "mul": _wrap("*"),
    "floordiv": _by_type(_divide(True, False), _float_floordiv),
    "floormod": _by_type(_divide(True, True), _float_floormod),
    "truncdiv": _divide(False, False), "truncmod": _divide(False, True),
    "max": _extremum(">"), "min": _extremum("<"), "from_float": _from_float, "shift_left": _shift(True),
    "shift_right": _shift(False), "fit": _sign_extend, "pow": _power, "popcount": _popcount, "clz": _clz,
    "q_multiply_shift": _fixed_point, "bits": _bits, "from_bits": _from_bits, "decode": _decode, "encode": _encode,
    "round": _round, "to_odd": _to_odd, "sigmoid": _sigmoid,
    "dp4a_ss": _dp4a("int8_t", "int8_t"), "dp4a_su": _dp4a("int8_t", "uint8_t"),
    "dp4a_us": _dp4a("uint8_t", "int8_t"), "dp4a_uu": _dp4a("uint8_t", "uint8_t"),
}  # fmt: skip
