"""The spellings of the language, of all its eras, in one table; parser and printer read it.

TVMScript has changed its words at nearly every release. A *concept* is named by its canonical spelling, that of TVM
0.11 to 0.22: `T.block` also stands for what TVM 0.24 calls `T.sblock`. The parser turns any accepted name into its
concept (`canonical_name`), the printer turns a concept into the name that a dialect reads (`name_in`).

Eras: E0 2021 to 2022 (`Tensor[...]`, bare operators), E1 TVM 0.10 and the RFC text of August 2022 (`R.Tensor[...]`,
`R.match_shape`), E2 TVM 0.11 to 0.22, E3 TVM 0.23 to 0.25 (`tirx`, `T.sblock`), E4 TVM 0.26 and 0.27 (`out_ty`,
`R.Any`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from relaxlang.ir import prim

LOST_KEYWORDS = {"axis_separators": "tvm-0.26", "input_axis_separators": "tvm-0.26"}
"""Keywords of Relax operators that releases no longer take, and since when. An empty one says nothing."""

# --- eras -------------------------------------------------------------------------------------------------------------
ERAS: dict[str, tuple[str, ...]] = {
    "E0": ("rfc-2021",),
    "E1": ("rfc-2022", "tvm-0.10"),
    "E2": tuple(f"tvm-0.{n}" for n in range(11, 23)),
    "E3": ("tvm-0.23", "tvm-0.24", "tvm-0.25"),
    "E4": ("tvm-0.26", "tvm-0.27"),
}
"""Each era and its dialects (what `script(dialect=…)` takes), both from old to new."""

DIALECTS: tuple[str, ...] = tuple(dialect for dialects in ERAS.values() for dialect in dialects)
CANONICAL = "tvm-0.22"
_ORDER = {dialect: at for at, dialect in enumerate(DIALECTS)}

NAMESPACES: dict[str, str] = {
    "R": "R", "relax": "R", "rx": "R", "tvm.relax": "R", "tvm.script.relax": "R",
    "T": "T", "tir": "T", "tirx": "T", "ty": "T", "tvm.tir": "T", "tvm.script.tir": "T", "tvm.script.ty": "T",
    "I": "I", "ir": "I", "tvm.ir": "I", "tvm.script": "I", "tvm.script.ir": "I", "script": "I",
}  # fmt: skip
"""The names, dotted ones included, under which scripts of all eras reach the three namespaces."""


class Spelling(NamedTuple):
    """How one concept is written.

    `concept` is the canonical spelling, with its namespace (`T.block`); keyword arguments have none (`out_sinfo`).
    `since` says what a dialect and all later ones write instead: `{"tvm-0.24": "T.sblock"}`; None where that release
    and later ones cannot say it with one name. `aliases` are further names that the parser accepts.
    """

    concept: str
    since: Mapping[str, str | None] = {}
    aliases: tuple[str, ...] = ()

    def in_dialect(self, dialect: str | None) -> str | None:
        """The name that `dialect` (None: the canonical text) uses; None when it has none."""
        found: str | None = self.concept
        if dialect is not None:
            for first, name in self.since.items():
                if _ORDER[first] <= _ORDER[dialect]:
                    found = name
        return found


# --- the table --------------------------------------------------------------------------------------------------------
_TABLE = (
    # modules and decorators
    Spelling("I.ir_module", aliases=("tvm.script.ir_module", "script.ir_module")),
    Spelling("R.function", aliases=("R.func", "R.script")),
    Spelling("T.prim_func", aliases=("tvm.script.tir",)),
    Spelling("T.macro", {"tvm-0.25": "T.inline"}, ("T.inline",)),
    # struct info
    Spelling("R.Object", {"tvm-0.26": "R.Any"}, ("R.Any",)),
    Spelling("R.Tensor", aliases=("R.DynTensorType", "R.TensorType")),
    Spelling("R.Callable", aliases=("R.FuncType",)),
    Spelling("out_sinfo", {"tvm-0.26": "out_ty"}, ("out_ty",)),
    Spelling("sinfo_args", {"rfc-2021": "type_args", "tvm-0.11": "sinfo_args", "tvm-0.26": "ty_args"},
             ("ty_args", "type_args")),
    # Relax statements
    Spelling("R.output", aliases=("R.outputs",)),
    Spelling("R.func_attr", aliases=("R.func_attrs",)),
    Spelling("R.emit_with_sinfo", {"tvm-0.26": "R.emit_with_ty"}, ("R.emit_with_ty", "R.emit_with_type")),
    Spelling("R.func_ret_struct_info", {"tvm-0.26": "R.func_ret_ty"}, ("R.func_ret_ty", "R.func_ret_type")),
    Spelling("R.call_dps_packed", aliases=("R.call_dps",)),
    # TensorIR: functions, buffers
    Spelling("T.alloc_buffer", {"tvm-0.24": "T.sblock_alloc_buffer"}, ("T.sblock_alloc_buffer",)),
    Spelling("T.decl_buffer", aliases=("T.buffer_decl",)),
    Spelling("T.match_buffer", aliases=("T.match_buffer_region",)),
    Spelling("T.allocate", {"tvm-0.24": None}),
    Spelling("T.allocate_const", {"tvm-0.24": None}, ("T.alloc_const",)),
    Spelling("T.realize", {"tvm-0.24": None}),
    Spelling("T.SizeVar", {"tvm-0.26": None}),
    Spelling("T.handle", aliases=("T.Ptr",)),
    # TensorIR: blocks, loops
    Spelling("T.block", {"tvm-0.24": "T.sblock"}, ("T.sblock",)),
    Spelling("T.block_attr", {"tvm-0.24": "T.sblock_attr"}, ("T.sblock_attr",)),
    Spelling("T.axis.spatial", aliases=("T.axis.S",)),
    Spelling("T.axis.reduce", aliases=("T.axis.R",)),
    Spelling("T.unroll", aliases=("T.unrolled",)),
    Spelling("T.vectorized", aliases=("T.vectorize",)),
    Spelling("T.LetStmt", {"tvm-0.24": "T.bind"}, ("T.bind", "T.Bind")),
    Spelling("T.buffer_store", aliases=("T.BufferStore",)),
    Spelling("T.attr", aliases=("T.AttrStmt",)),
    Spelling("T.Assert", aliases=("T.AssertStmt",)),
    Spelling("T.evaluate", aliases=("T.Evaluate",)),
    Spelling("break", {"tvm-0.22": "T.break_loop", "tvm-0.25": "break"}, ("T.Break",)),
    Spelling("continue", {"tvm-0.22": "T.continue_loop", "tvm-0.25": "continue"}, ("T.Continue",)),
    # TensorIR: expressions
    Spelling("T.Ramp", aliases=("T.ramp",)),
    Spelling("T.Broadcast", aliases=("T.broadcast",)),
    Spelling("T.Shuffle", aliases=("T.shuffle",)),
    Spelling("T.pow", aliases=("T.power",)),
    Spelling("T.bool", aliases=("T.boolean",)),
    Spelling("T.shift_left", aliases=("T.LShift",)),
    Spelling("T.shift_right", aliases=("T.RShift",)),
    Spelling("T.bitwise_and", aliases=("T.BitwiseAnd",)),
    Spelling("T.bitwise_or", aliases=("T.BitwiseOr",)),
    Spelling("T.bitwise_xor", aliases=("T.BitwiseXor",)),
    Spelling("T.bitwise_not", aliases=("T.BitwiseNot",)),
)  # fmt: skip

_CONCEPTS: dict[str, Spelling] = {spelling.concept: spelling for spelling in _TABLE}
_CANONICAL_NAMES: dict[str, str] = {
    name: spelling.concept
    for spelling in _TABLE
    for name in (*spelling.aliases, *(n for n in spelling.since.values() if n), spelling.concept)
    if name not in _CONCEPTS or name == spelling.concept
}


def names_for(concept: str) -> tuple[str, ...]:
    """Every name that the parser accepts for a concept, the canonical one first."""
    spelling = _CONCEPTS.get(concept)
    if spelling is None:
        return (concept,)
    others = (*(n for n in spelling.since.values() if n), *spelling.aliases)
    return tuple(dict.fromkeys((concept, *(n for n in others if _CANONICAL_NAMES[n] == concept))))


def canonical_name(namespace: str, attr: str) -> str:
    """The concept that `namespace.attr` names: `canonical_name("T", "sblock") == "T.block"`.

    `attr` may have dots (`axis.S`). With the empty namespace `attr` is a keyword argument (`out_ty`). A name that the
    table does not know is its own concept.
    """
    name = f"{namespace}.{attr}" if namespace else attr
    return _CANONICAL_NAMES.get(name, name)


def name_in(concept: str, dialect: str | None = None) -> str | None:
    """The name of a concept in a dialect (None: the canonical text); None when that release cannot say it."""
    spelling = _CONCEPTS.get(concept)
    return concept if spelling is None else spelling.in_dialect(dialect)


def at_least(dialect: str | None, first: str) -> bool:
    """Whether `dialect` (None: the canonical one) is `first` or later."""
    return _ORDER[dialect or CANONICAL] >= _ORDER[first]


# --- bare names, subscripts, keys -------------------------------------------------------------------------------------
BARE_NAMES: dict[str, str] = {
    "Tensor": "R.Tensor", "Shape": "R.Shape", "Tuple": "R.Tuple", "Callable": "R.Callable", "Object": "R.Object",
    "match_shape": "R.match_shape", "dataflow": "R.dataflow", "output": "R.output", "call_tir": "R.call_tir",
    "call_packed": "R.call_packed", "const": "R.const",
}  # fmt: skip
"""Names that E0 wrote without a namespace; any other bare callee of E0 is an operator (`add(x, y)` is `R.add`)."""

SUBSCRIPTED: frozenset[str] = frozenset({"R.Tensor", "R.Shape", "R.Tuple", "R.Callable", "T.Buffer", "T.match_buffer"})
"""Constructors that old scripts also write with brackets: `R.Tensor[(n, m), "float32"]`, `T.Buffer[(16,), "int8"]`."""

METADATA_KEYS: frozenset[str] = frozenset({"relax.expr.Constant", "relay.Constant", "ir.GenericConst"})
"""Keys of the `metadata[...]` section under which a tensor constant is found."""


def attribute_key(key: str, dialect: str | None = None) -> str:
    """A function attribute's key as `dialect` writes it: `tir.noalias` is `tirx.noalias` since TVM 0.23."""
    return "tirx." + key[4:] if key.startswith("tir.") and at_least(dialect, "tvm-0.23") else key


def canonical_attribute_key(key: str) -> str:
    """The canonical key of a function attribute: `tir.noalias` for `tirx.noalias`."""
    return "tir." + key[5:] if key.startswith("tirx.") else key


# --- operators on scalars ---------------------------------------------------------------------------------------------
class Infix(NamedTuple):
    """A binary node of TensorIR: its `symbol` (empty: written as a call), its binding strength `level`, the name of its
    `constructor`, which never folds: `T.Add(1, 2)`."""

    node: type[prim.BinaryOp] | type[prim.CmpOp]
    symbol: str
    level: int
    constructor: str


# Python's levels of binding, loosest first.
OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, POWER, ATOM = range(1, 14)

INFIX: dict[type, Infix] = {
    row.node: row
    for row in (
        Infix(prim.Or, "or", OR, "T.Or"),
        Infix(prim.And, "and", AND, "T.And"),
        Infix(prim.EQ, "==", COMPARE, "T.EQ"),
        Infix(prim.NE, "!=", COMPARE, "T.NE"),
        Infix(prim.LT, "<", COMPARE, "T.LT"),
        Infix(prim.LE, "<=", COMPARE, "T.LE"),
        Infix(prim.GT, ">", COMPARE, "T.GT"),
        Infix(prim.GE, ">=", COMPARE, "T.GE"),
        Infix(prim.Add, "+", SUM, "T.Add"),
        Infix(prim.Sub, "-", SUM, "T.Sub"),
        Infix(prim.Mul, "*", PRODUCT, "T.Mul"),
        Infix(prim.Div, "/", PRODUCT, "T.Div"),
        Infix(prim.FloorDiv, "//", PRODUCT, "T.FloorDiv"),
        Infix(prim.FloorMod, "%", PRODUCT, "T.FloorMod"),
        Infix(prim.Mod, "", ATOM, "T.Mod"),
        Infix(prim.Min, "", ATOM, "T.Min"),
        Infix(prim.Max, "", ATOM, "T.Max"),
    )
}
FOLDING: dict[type, str] = {prim.Min: "T.min", prim.Max: "T.max", prim.Mod: "T.truncmod", prim.Div: "T.truncdiv"}
"""Calls that build a node with conversion and folding, as the operators do; `T.truncdiv` is `/` on integers."""

INFIX_CALLS: dict[str, tuple[str, int]] = {
    "bitwise_and": ("&", BIT_AND), "bitwise_or": ("|", BIT_OR), "bitwise_xor": ("^", BIT_XOR),
    "shift_left": ("<<", SHIFT), "shift_right": (">>", SHIFT),
}  # fmt: skip
"""Intrinsics that are written as operators: symbol and level. `bitwise_not` is the prefix `~`."""
