"""Expressions: from PrimExpr to C.

A vector expression is written lane by lane: `lane` is the number, or the loop variable, of the lane at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from relaxlang.arith import Analyzer
from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType
from relaxlang.base.node import Node
from relaxlang.codegen.c.types import declare, floating, integer, memory_type, value_type
from relaxlang.codegen.c.writer import (
    AND,
    EQUAL,
    OR,
    ORDER,
    PRIMARY,
    PRODUCT,
    SUM,
    TERNARY,
    UNARY,
    C,
    FileNeeds,
    Lines,
    call,
    cast,
    infix,
)
from relaxlang.codegen.lltypes import is_narrow
from relaxlang.ir import prim
from relaxlang.ir.prim import PrimExpr, Var
from relaxlang.ir.tir import Buffer
from relaxlang.ir.visit import LEAVES, children

_COMPARE = {prim.EQ: "==", prim.NE: "!=", prim.LT: "<", prim.LE: "<=", prim.GT: ">", prim.GE: ">="}
_SIGN = {prim.Add: ("+", "add", SUM), prim.Sub: ("-", "sub", SUM), prim.Mul: ("*", "mul", PRODUCT)}
_QUOTIENT = {prim.Div: "truncdiv", prim.Mod: "truncmod", prim.FloorDiv: "floordiv", prim.FloorMod: "floormod"}


class ExprWriter:
    """Writes expressions into a function.

    `env` gives the C text of each variable in scope; of a vector variable, the array that holds its lanes.
    """

    def __init__(self, needs: FileNeeds) -> None:
        self.needs = needs
        self.out = Lines(needs)
        self.env: dict[Var, str] = {}
        self.kinds: dict[Var, str] = {}  # of pointers: the C type of what they point to
        self.analyzer = Analyzer()
        self.lane = "0"
        self.indexing = False
        self.place: Node | None = None
        self._memo: dict[tuple[int, str], tuple[C, PrimExpr]] = {}
        self._shared: set[int] = set()
        self._kept: list[PrimExpr] = []
        self._data: dict[int, tuple[bool, PrimExpr]] = {}

    def fail(self, code: str, message: str, node: Node | None = None, *, help: str = "") -> NoReturn:
        """Raise a diagnostic at the node, or at the statement that is being written."""
        span = getattr(node, "span", None) or getattr(self.place, "span", None)
        fail(code, message, span, help=help, node=self.place if node is None else node)

    def begin(self, place: Node) -> None:
        """Start a statement: what earlier ones computed is not reused."""
        self.place = place
        self._memo, self._shared, self._kept = {}, set(), []

    def root(self, e: PrimExpr) -> C:
        """A whole expression of a statement; what occurs in it more than once is computed once."""
        seen: set[int] = set()
        pending = [e]
        while pending:
            one = pending.pop()
            if id(one) in seen:
                self._shared.add(id(one))
                continue
            seen.add(id(one))
            if one.__class__ not in LEAVES:
                pending.extend(child for child in children(one) if isinstance(child, PrimExpr))
        self._kept.append(e)  # so that the identities stay taken
        return self.expr(e)

    def expr(self, e: PrimExpr) -> C:
        """The C of an expression (of its lane at hand)."""
        key = (id(e), self.lane if e.dtype.lanes > 1 else "")
        known = self._memo.get(key)
        if known is not None:
            return known[0]
        write = _TABLE.get(e.__class__)
        if write is None:
            self.fail("RLX5013", f"a {type(e).__name__} cannot stand in code", e)
        made = write(self, e)
        if id(e) in self._shared and made.level != PRIMARY and not self.indexing:
            made = self.keep(made, e.dtype)
        self._memo[key] = (made, e)
        return made

    def keep(self, value: C, of: DType, hint: str = "t") -> C:
        """A value in a variable of its own."""
        name = self.out.name(hint)
        self.out.add(f"const {declare(value_type(of), name)} = {value.text};")
        return C(name)

    def index(self, e: PrimExpr) -> C:
        """An expression that says where: it does not overflow, so that it may be written plainly."""
        outer, self.indexing = self.indexing, True
        made = self.expr(e)
        self.indexing = outer
        return made

    def at_lane(self, lane: str, e: PrimExpr) -> C:
        """The C of one lane of an expression."""
        outer, self.lane = self.lane, lane
        made = self.expr(e)
        self.lane = outer
        return made

    # --- memory -------------------------------------------------------------------------------------------------------
    def pointer(self, var: Var) -> str:
        """The pointer of a buffer's data."""
        made = self.env.get(var)
        if made is None:
            self.fail("RLX5015", f"the memory of `{var.name}` is not defined here")
        return made

    def data(self, buffer: Buffer) -> str:
        """The pointer to a buffer's elements."""
        made, kind = self.pointer(buffer.data), memory_type(buffer.dtype)
        return made if self.kinds.get(buffer.data, kind) == kind else f"(({kind} *){made})"

    def element(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> C:
        """An element of a flat buffer as an lvalue, of its lane at hand."""
        if len(indices) != 1:
            self.fail("RLX9001", f"`{buffer.name}` is accessed with {len(indices)} indices after flattening")
        index, lanes = indices[0], buffer.dtype.lanes
        if lanes == 1:
            return C(f"{self.data(buffer)}[{self.index(index).text}]")
        inner, outer = self.split_lane(lanes)
        where = self.at_lane(outer, index) if index.dtype.lanes > 1 else self.index(index)
        return C(f"{self.data(buffer)}[{where.at(PRODUCT)} * {lanes} + {inner}]")

    def split_lane(self, per: int) -> tuple[str, str]:
        """The lane at hand as one of groups of `per` lanes: the lane in its group, the group."""
        if self.lane.isdigit():
            return str(int(self.lane) % per), str(int(self.lane) // per)
        return f"{self.lane} % {per}", f"{self.lane} / {per}"

    def from_memory(self, stored: C, of: DType) -> C:
        """A value as it was in memory, as expressions have it."""
        if is_narrow(of):
            return call(self.needs.helper("decode", of), stored)
        if of.is_bool:
            return C(f"{stored.at(EQUAL)} != 0", EQUAL)
        return call(self.needs.helper("fit", of), stored) if of.is_integer and of.bits < 8 else stored

    def to_memory(self, value: C, of: DType) -> C:
        """A value as expressions have it, as it goes to memory."""
        return call(self.needs.helper("encode", of), value) if is_narrow(of) else value

    # --- values -------------------------------------------------------------------------------------------------------
    def wrapped(self, value: C, of: DType) -> C:
        """The result of an operation in C's `int`, as an integer of fewer bits."""
        if not of.is_integer or of.bits >= 32:
            return value
        return call(self.needs.helper("fit", of), value) if of.bits < 8 else cast(value_type(of), value)

    def rounded(self, value: C, of: DType) -> C:
        """A float32 rounded to the type."""
        return call(self.needs.helper("round", of), value) if is_narrow(of) else value

    def convert(self, value: C, source: DType, to: DType, node: PrimExpr) -> C:
        """`value`, of type `source`, as type `to`."""
        source, to = source.scalar, to.scalar
        if source is to:
            return value
        if (
            "void" in (source.name, to.name)
            or {source.is_handle, to.is_float} == {True}
            or (source.is_float and to.is_handle)
        ):
            self.fail("RLX5016", f"a {source} cannot be converted to {to}", node)
        if to.is_bool:
            return C(f"{value.at(EQUAL)} != 0", EQUAL)
        if source.is_float and to.is_float:
            return self._float_to_float(value, source, to)
        if source.is_float:
            return (
                self.wrapped(call(self.needs.helper("from_float", to), value), to)
                if to.bits < 8
                else call(self.needs.helper("from_float", to), value)
            )
        if to.is_float:
            return self.rounded(cast(value_type(to), value), to)
        if source.is_handle or to.is_handle:
            return cast(value_type(to), cast("uintptr_t", value))
        if to.bits < 8:
            return call(self.needs.helper("fit", to), cast("int", value))
        return cast(value_type(to), value)

    def _float_to_float(self, value: C, source: DType, to: DType) -> C:
        if to.bits == 64:
            return cast("double", value)
        if is_narrow(to):
            if source.bits == 64:
                value = (
                    cast("float", value) if to.kind == "bfloat" else call(self.needs.helper("to_odd", source), value)
                )
            return self.rounded(value, to)
        return cast("float", value) if source.bits == 64 else value

    def choose(self, condition: C, yes: Callable[[], C], no: Callable[[], C], of: DType) -> C:
        """`yes()` or `no()`, each evaluated only when it is wanted."""
        (a, above), (b, below) = self._apart(yes), self._apart(no)
        if not above and not below:
            return C(f"{condition.at(OR)} ? {a.at(OR)} : {b.at(TERNARY)}", TERNARY)
        name = self.out.name("chosen")
        self.out.add(f"{declare(value_type(of), name)};")
        with self.out.braces(f"if ({condition.text})", "} else {"):
            self.out.lines += above
            self.out.add(f"{name} = {a.text};")
        self.out.depth += 1
        self.out.lines += below
        self.out.add(f"{name} = {b.text};")
        self.out.depth -= 1
        self.out.add("}")
        return C(name)

    def _apart(self, write: Callable[[], C]) -> tuple[C, list[str]]:
        """What `write` gives, and the lines that it needs before, at one level further in."""
        lines, memo, names = self.out.lines, self._memo, set(self.out.names)
        self.out.lines, self._memo = [], dict(memo)
        self.out.depth += 1
        made, above = write(), self.out.lines
        self.out.depth -= 1
        self.out.lines, self._memo, self.out.names = lines, memo, names
        return made, above

    def remembered(self) -> dict[tuple[int, str], tuple[C, PrimExpr]]:
        """What has been computed up to here; `recall` it where a block ends."""
        return dict(self._memo)

    def recall(self, memo: dict[tuple[int, str], tuple[C, PrimExpr]]) -> None:
        """Forget what was computed since `memo` was taken."""
        self._memo = memo

    def reads_memory(self, e: PrimExpr) -> bool:
        """Whether an expression depends on data; one that does not says where or how much, and does not overflow."""
        known = self._data.get(id(e))
        if known is None:
            found = e.__class__ in (prim.BufferLoad, prim.Call)
            if not found and e.__class__ not in LEAVES:
                found = any(self.reads_memory(c) for c in children(e) if isinstance(c, PrimExpr))
            known = self._data[id(e)] = (found, e)
        return known[0]


# --- the table --------------------------------------------------------------------------------------------------------
def _var(w: ExprWriter, e: Var) -> C:
    made = w.env.get(e)
    if made is None:
        w.fail("RLX5015", f"`{e.name}` has no value here", e, help="a kernel gets it from a parameter or a shape")
    return C(f"{made}[{w.lane}]") if e.dtype.lanes > 1 else C(made)


def _integer(w: ExprWriter, e: prim.IntImm) -> C:
    if e.of.is_bool:
        return C("true" if e.value else "false")
    return C(integer(e.value, e.of), UNARY if e.value < 0 else PRIMARY)


def _float(w: ExprWriter, e: prim.FloatImm) -> C:
    text = floating(_value(e), e.of)
    return C(text, UNARY if text.startswith("-") else PRIMARY)


def _value(e: prim.FloatImm) -> float:
    if not is_narrow(e.of):
        return float(e.value)
    return float(e.of.scalar.numpy.type(e.value))


def _arith(w: ExprWriter, e: prim.BinaryOp) -> C:
    op, kind, level = _SIGN[type(e)]
    a, b, of = w.expr(e.a), w.expr(e.b), e.dtype.scalar
    if of.is_handle:
        w.fail("RLX5016", f"`{kind}` of handles is not defined", e, help="use `T.address_of(buffer[index])`")
    if of.is_bool:
        if kind == "sub":
            return infix(a, "!=", b, EQUAL)
        return infix(a, *(("||", b, OR) if kind == "add" else ("&&", b, AND)))
    if of.is_int and of.bits >= 32 and not w.indexing and w.reads_memory(e):
        return call(w.needs.helper(kind, of), a, b)
    if of.is_uint and of.bits == 16 and kind == "mul":
        a = cast("uint32_t", a)
    return w.rounded(w.wrapped(infix(a, op, b, level), of), of)


def _divide(w: ExprWriter, e: prim.BinaryOp) -> C:
    a, b, of = w.expr(e.a), w.expr(e.b), e.dtype.scalar
    if of.is_float:
        return _float_divide(w, e, a, b, of)
    if of.is_bool:
        return C("false") if isinstance(e, (prim.Mod, prim.FloorMod)) else infix(a, "&&", b, AND)
    divisor = e.b.value if isinstance(e.b, prim.Broadcast) else e.b
    if isinstance(divisor, prim.IntImm) and divisor.value > 0 and (of.is_uint or _never_negative(w, e.a)):
        op = "%" if isinstance(e, (prim.Mod, prim.FloorMod)) else "/"
        return w.wrapped(infix(a, op, b, PRODUCT), of)
    return call(w.needs.helper(_QUOTIENT[type(e)], of), a, b)


def _float_divide(w: ExprWriter, e: prim.BinaryOp, a: C, b: C, of: DType) -> C:
    if isinstance(e, prim.Div):
        return w.rounded(infix(a, "/", b, PRODUCT), of)
    if isinstance(e, prim.Mod):
        return w.rounded(call("fmod" if of.bits == 64 else "fmodf", a, b), of)
    single = of if of.bits >= 32 else prim.FLOAT32
    return w.rounded(call(w.needs.helper(_QUOTIENT[type(e)], single), a, b), of)


def _never_negative(w: ExprWriter, e: PrimExpr) -> bool:
    if e.dtype.lanes > 1:
        return False
    return w.analyzer.const_int_bound(e).min >= 0


def _extremum(w: ExprWriter, e: prim.BinaryOp) -> C:
    a, b, of = w.expr(e.a), w.expr(e.b), e.dtype.scalar
    largest = isinstance(e, prim.Max)
    if of.is_bool:
        return infix(a, *(("||", b, OR) if largest else ("&&", b, AND)))
    single = prim.FLOAT32 if is_narrow(of) else of
    return call(w.needs.helper("max" if largest else "min", single), a, b)


def _compare(w: ExprWriter, e: prim.CmpOp) -> C:
    level = EQUAL if isinstance(e, (prim.EQ, prim.NE)) else ORDER
    a, b = w.expr(e.a), w.expr(e.b)
    # An operand that is a comparison itself stands in parentheses: gcc asks for them.
    a, b = (C(x.text, TERNARY) if x.level in (EQUAL, ORDER) else x for x in (a, b))
    return infix(a, _COMPARE[type(e)], b, level)


def _logic(w: ExprWriter, e: prim.CmpOp) -> C:
    both = isinstance(e, prim.And)
    a = w.expr(e.a)
    b, above = w._apart(lambda: w.expr(e.b))
    if above:
        yes, no = (lambda: w.expr(e.b)), (lambda: C("false"))
        return w.choose(a, yes, no, e.dtype) if both else w.choose(a, lambda: C("true"), yes, e.dtype)
    level = AND if both else OR
    a, b = (C(x.text, TERNARY) if x.level in (AND, OR) and x.level != level else x for x in (a, b))
    return C(f"{a.at(level)} {'&&' if both else '||'} {b.at(level)}", level)


def _not(w: ExprWriter, e: prim.Not) -> C:
    if not e.dtype.is_bool:
        w.fail("RLX5016", f"`not` of {e.dtype} is not defined", e, help="compare with 0 first")
    return C(f"!{w.expr(e.a).at(UNARY)}", UNARY)


def _cast(w: ExprWriter, e: prim.Cast) -> C:
    return w.convert(w.expr(e.value), e.value.dtype, e.of, e)


def _select(w: ExprWriter, e: prim.Select) -> C:
    return w.choose(w.expr(e.condition), lambda: w.expr(e.true_value), lambda: w.expr(e.false_value), e.dtype)


def _let(w: ExprWriter, e: prim.Let) -> C:
    bind(w, e.var, e.value)
    return w.expr(e.body)


def bind(w: ExprWriter, var: Var, value: PrimExpr) -> None:
    """Write the definition of a variable: of a vector, an array."""
    if var.dtype.lanes > 1:
        w.env[var] = spread(w, value, var.name)
        return
    made = w.expr(value)
    name = w.out.name(var.name)
    if var.dtype.is_handle:
        element = var.pointer.element if var.pointer is not None else None
        of = memory_type(element) if element is not None and element.name != "void" else "void"
        kind, w.kinds[var] = f"{of} *", of
        w.out.add(f"{declare(kind, name)} = ({kind}){made.at(UNARY)};")
    else:
        w.out.add(f"const {declare(value_type(var.dtype), name)} = {made.text};")
    w.env[var] = name


def spread(w: ExprWriter, value: PrimExpr, hint: str) -> str:
    """A vector expression in an array: its name."""
    name, lane, memo = w.out.name(hint), w.out.name("lane"), w.remembered()
    w.out.add(f"{value_type(value.dtype)} {name}[{value.dtype.lanes}];")
    with w.out.braces(f"for (int {lane} = 0; {lane} < {value.dtype.lanes}; ++{lane})"):
        w.out.add(f"{name}[{lane}] = {w.at_lane(lane, value).text};")
    w.recall(memo)
    return name


def _call(w: ExprWriter, e: prim.Call) -> C:
    from relaxlang.codegen.c.intrinsics import write_call

    return write_call(w, e)


def _string(w: ExprWriter, e: prim.StringImm) -> C:
    return C(string_literal(e.value))


def string_literal(text: str) -> str:
    """A string as C writes it."""
    return '"' + "".join(_ESCAPES.get(c) or (c if 32 <= c < 127 else f"\\{c:03o}") if isinstance(c, str) else
                         _ESCAPES.get(chr(c)) or (chr(c) if 32 <= c < 127 else f"\\{c:03o}")
                         for c in text.encode()) + '"'  # fmt: skip


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "?": "\\?"}


def _load(w: ExprWriter, e: prim.BufferLoad) -> C:
    of = e.buffer.dtype.scalar
    if e.predicate is None:
        return w.from_memory(w.element(e.buffer, e.indices), of)
    zero = C("0")
    return w.choose(w.expr(e.predicate), lambda: w.from_memory(w.element(e.buffer, e.indices), of), lambda: zero, of)


def _ramp(w: ExprWriter, e: prim.Ramp) -> C:
    inner, outer = w.split_lane(e.base.dtype.lanes)
    base = w.at_lane(inner, e.base) if e.base.dtype.lanes > 1 else w.expr(e.base)
    step = w.at_lane(inner, e.stride) if e.stride.dtype.lanes > 1 else w.expr(e.stride)
    number = C(outer if e.base.dtype.lanes > 1 else w.lane, PRODUCT)
    if step.text == "1":
        return infix(base, "+", number, SUM)
    return infix(base, "+", infix(C(f"({number.text})") if " " in number.text else number, "*", step, PRODUCT), SUM)


def _broadcast(w: ExprWriter, e: prim.Broadcast) -> C:
    if e.value.dtype.lanes == 1:
        return w.expr(e.value)
    return w.at_lane(w.split_lane(e.value.dtype.lanes)[0], e.value)


def _shuffle(w: ExprWriter, e: prim.Shuffle) -> C:
    sources = [(v, i) for v in e.vectors for i in range(v.dtype.lanes)]
    order = [i.value if isinstance(i, prim.IntImm) else -1 for i in e.indices]
    if any(not 0 <= i < len(sources) for i in order):
        w.fail("RLX5013", f"the indices of a shuffle are constants from 0 to {len(sources) - 1}", e)
    if not w.lane.isdigit():
        # The lane is a variable of a loop: all elements go to an array first.
        name = w.out.name("shuffled")
        w.out.add(f"{value_type(e.dtype)} {name}[{len(order)}];")
        for position, index in enumerate(order):
            vector, lane = sources[index]
            w.out.add(f"{name}[{position}] = {w.at_lane(str(lane), vector).text};")
        return C(f"{name}[{w.lane}]")
    vector, lane = sources[order[int(w.lane)]]
    return w.at_lane(str(lane), vector) if vector.dtype.lanes > 1 else w.expr(vector)


_TABLE: dict[type, Callable[[Any, Any], C]] = {
    prim.Var: _var, prim.SizeVar: _var, prim.StringImm: _string, prim.IntImm: _integer, prim.FloatImm: _float,
    **dict.fromkeys(_SIGN, _arith), **dict.fromkeys(_QUOTIENT, _divide), prim.Min: _extremum, prim.Max: _extremum,
    **dict.fromkeys(_COMPARE, _compare), prim.And: _logic, prim.Or: _logic, prim.Not: _not, prim.Cast: _cast,
    prim.Select: _select, prim.Let: _let, prim.Call: _call, prim.BufferLoad: _load, prim.Ramp: _ramp,
    prim.Broadcast: _broadcast, prim.Shuffle: _shuffle,
}  # fmt: skip
