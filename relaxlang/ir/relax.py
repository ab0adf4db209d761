"""Relax: expressions, bindings, blocks and functions.

Every expression has a `struct_info`: of variables it is part of their identity, of the others it was inferred when they
were made (None in a module that was parsed without checking). Structural equality looks at variables' only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from relaxlang.base.dtype import DType
from relaxlang.base.node import Node, node
from relaxlang.base.stored_array import StoredArray
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.printing import Printable
from relaxlang.ir.struct_info import (
    OBJECT,
    FuncStructInfo,
    PrimStructInfo,
    StructInfo,
    TupleStructInfo,
    shape_info,
    tensor_info,
)

if TYPE_CHECKING:
    import numpy as np


class Expr(Node):
    """An expression of Relax."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def struct_info(self) -> StructInfo | None:
            """What is known about the value."""

    def __str__(self) -> str:
        from relaxlang.ir.printing import script

        return script(self)


# --- leaves -----------------------------------------------------------------------------------------------------------
@node
class Var(Expr):
    """A variable, with an identity of its own."""

    name: str
    struct_info: StructInfo = OBJECT


@node
class DataflowVar(Var):
    """A variable that lives only inside its dataflow block."""


@node
class GlobalVar(Expr):
    """A function of the module, by name; two of one name are equal."""

    name: str
    struct_info: StructInfo | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalVar) and other.name == self.name

    def __hash__(self) -> int:
        return hash(("GlobalVar", self.name))


@node
class ExternFunc(Expr):
    """A packed function, by name."""

    name: str
    struct_info: StructInfo = FuncStructInfo(None, OBJECT, False)


@node
class Op(Expr):
    """An operator, by name (`add`, `nn.relu`); two of one name are equal. Only ever in callee position."""

    name: str
    struct_info: ClassVar[None] = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and other.name == self.name

    def __hash__(self) -> int:
        return hash(("Op", self.name))


@node
class UnknownOp(Op):
    """An operator that relaxlang does not know, in a module that was read without checking: its call is printed as it
    was written, with numbers and strings bare."""


def _constant_info(content: Any) -> StructInfo:
    from relaxlang.base.dtype import from_numpy
    from relaxlang.ir.prim import INT64, IntImm

    return tensor_info(tuple(IntImm(INT64, int(n)) for n in content.shape), from_numpy(content.dtype))


@node
class Constant(Expr):
    """A tensor constant: a numpy array that nobody writes to, or one that is in a file as yet. `data` reads it; its
    `shape`, `dtype`, `size` and `nbytes` can be had of `content` in any case."""

    content: np.ndarray[Any, Any] | StoredArray
    if TYPE_CHECKING:
        struct_info: ClassVar[StructInfo]
    DERIVED: ClassVar[dict[str, str]] = {"struct_info": "_constant_info(content)"}

    @property
    def data(self) -> np.ndarray[Any, Any]:
        """The array. DiagnosticError when the file that it is in has changed."""
        content = self.content
        return content.read() if isinstance(content, StoredArray) else content


@node
class ShapeExpr(Expr):
    """A shape value; every dimension is an int64 expression."""

    values: tuple[PrimExpr, ...]
    if TYPE_CHECKING:
        struct_info: ClassVar[StructInfo]
    DERIVED: ClassVar[dict[str, str]] = {"struct_info": "shape_info(values)"}


@node
class PrimValue(Expr):
    """A scalar value."""

    value: PrimExpr
    if TYPE_CHECKING:
        struct_info: ClassVar[StructInfo]
    DERIVED: ClassVar[dict[str, str]] = {"struct_info": "PrimStructInfo(value.dtype, value)"}


@node
class StringImm(Expr):
    """A string value."""

    value: str
    struct_info: ClassVar[StructInfo] = OBJECT


@node
class DataTypeImm(Expr):
    """An element type as a value."""

    value: DType
    struct_info: ClassVar[StructInfo] = OBJECT


# --- compound ---------------------------------------------------------------------------------------------------------
def _tuple_info(fields: tuple[Expr, ...]) -> StructInfo | None:
    infos = [f.struct_info for f in fields]
    known = tuple(i for i in infos if i is not None)
    return TupleStructInfo(known) if len(known) == len(infos) else None


@node
class Tuple(Expr):
    """A tuple of values."""

    fields: tuple[Expr, ...]
    if TYPE_CHECKING:
        struct_info: ClassVar[StructInfo | None]
    DERIVED: ClassVar[dict[str, str]] = {"struct_info": "_tuple_info(fields)"}


def _item_info(value: Expr, index: int) -> StructInfo | None:
    of = value.struct_info
    if isinstance(of, TupleStructInfo):
        return of.fields[index] if 0 <= index < len(of.fields) else None
    return None if of is None else OBJECT


@node
class TupleGetItem(Expr):
    """The field `index` of a tuple."""

    tuple_value: Expr
    index: int
    if TYPE_CHECKING:
        struct_info: ClassVar[StructInfo | None]
    DERIVED: ClassVar[dict[str, str]] = {"struct_info": "_item_info(tuple_value, index)"}


@node
class Call(Expr):
    """A call of an operator, a function of the module, a packed function, or a closure.

    `attrs` are the operator's compile-time arguments; `sinfo_args` the struct info passed explicitly (the result of
    `call_tir`, of a packed call, …).
    """

    op: Expr
    args: tuple[Expr, ...]
    attrs: Attrs = EMPTY
    sinfo_args: tuple[StructInfo, ...] = ()
    struct_info: StructInfo | None = None


@node
class If(Expr):
    """A conditional: both branches give a value."""

    condition: Expr
    true_branch: SeqExpr
    false_branch: SeqExpr
    struct_info: StructInfo | None = None


@node
class SeqExpr(Expr):
    """Blocks of bindings, then a value."""

    blocks: tuple[BindingBlock, ...]
    body: Expr
    if TYPE_CHECKING:
        struct_info: ClassVar[StructInfo | None]
    DERIVED: ClassVar[dict[str, str]] = {"struct_info": "body.struct_info"}


# --- bindings ---------------------------------------------------------------------------------------------------------
class Binding(Node):
    """The base of bindings; `var` is what is bound."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def var(self) -> Var:
            """The variable that is bound."""

        @property
        def value(self) -> Expr:
            """What it is bound to."""

    def __str__(self) -> str:
        from relaxlang.ir.printing import script

        return script(self)


@node
class VarBinding(Binding):
    """`var = value`."""

    var: Var
    value: Expr


@node
class MatchCast(Binding):
    """`var` is `value`, known to be (checked at run time) of `struct_info`, whose new variables it defines."""

    var: Var
    value: Expr
    struct_info: StructInfo


@node
class BindingBlock(Node):
    """A straight run of bindings."""

    bindings: tuple[Binding, ...]


@node
class DataflowBlock(BindingBlock):
    """A run of bindings without side effects or control flow; its `DataflowVar`s end with it."""


# --- functions --------------------------------------------------------------------------------------------------------
@node
class Function(Expr, Printable):
    """A function. `ret_struct_info` None: not declared and not inferred."""

    params: tuple[Var, ...]
    body: SeqExpr
    ret_struct_info: StructInfo | None
    is_pure: bool = True
    attrs: Attrs = EMPTY

    @property
    def struct_info(self) -> StructInfo:
        """The function's own struct info."""
        return FuncStructInfo(tuple(p.struct_info for p in self.params), self.ret_struct_info or OBJECT, self.is_pure)

    @property
    def is_private(self) -> bool:
        """Whether the function has no global symbol."""
        return "global_symbol" not in self.attrs


def joined(blocks: Iterable[BindingBlock]) -> tuple[BindingBlock, ...]:
    """Blocks in normal form: those without bindings are left out, and plain ones that meet are one."""
    made: list[BindingBlock] = []
    for block in blocks:
        if not block.bindings:
            continue
        if made and type(made[-1]) is type(block) is BindingBlock:
            made[-1] = made[-1].replace(bindings=(*made[-1].bindings, *block.bindings))
        else:
            made.append(block)
    return tuple(made)


def seq_expr(bindings: Sequence[Binding], body: Expr) -> SeqExpr:
    """One plain block of bindings and a value; no block when there are no bindings."""
    return SeqExpr((BindingBlock(tuple(bindings)),) if bindings else (), body)


__all__ = [
    "Binding", "BindingBlock", "Call", "Constant", "DataTypeImm", "DataflowBlock", "DataflowVar", "Expr",
    "ExternFunc", "Function", "GlobalVar", "If", "MatchCast", "Op", "PrimStructInfo", "PrimValue", "SeqExpr",
    "ShapeExpr", "StringImm", "Tuple", "TupleGetItem", "Var", "VarBinding", "joined", "seq_expr", "shape_info",
]  # fmt: skip
