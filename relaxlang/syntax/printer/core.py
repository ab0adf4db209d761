"""The printer's state and its dispatch: lines, indentation, names, places where a declaration can still be put.

`@prints(Class)` registers how a class is written inside a line, `@levels(Class)` the same for one whose operators bind
(it also gives the level), `@emits(Class)` how a statement or binding becomes lines. Names of methods that recurse are
called directly, never through `map`, `join` over a generator or `__call__`: a chain of plain Python calls takes no C
stack, so depth costs memory alone.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from relaxlang.base.dtype import DType
from relaxlang.base.node import Node, node
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import free_vars
from relaxlang.syntax import spellings
from relaxlang.syntax.document import Doc, Mark, bracket, concat, render
from relaxlang.syntax.printer.names import RESERVED, Names, legal, member_names
from relaxlang.syntax.scalars import string_text

if TYPE_CHECKING:
    import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])
DOCS: dict[type, Callable[[Printer, Any], Doc]] = {}
LEVELED: dict[type, Callable[[Printer, Any], tuple[Doc, int]]] = {}
EMITTERS: dict[type, Callable[[Printer, Any], None]] = {}


def prints(*classes: type) -> Callable[[_F], _F]:
    """Register `function(printer, node) -> Doc` for classes whose text binds like a name or a call."""
    return _register(DOCS, classes)


def levels(*classes: type) -> Callable[[_F], _F]:
    """Register `function(printer, node) -> (Doc, level)`; the levels are those of `syntax.spellings`."""
    return _register(LEVELED, classes)


def emits(*classes: type) -> Callable[[_F], _F]:
    """Register `function(printer, node) -> None`, which appends lines."""
    return _register(EMITTERS, classes)


def _register(table: dict[type, Any], classes: tuple[type, ...]) -> Callable[[_F], _F]:
    def register(function: _F) -> _F:
        table.update(dict.fromkeys(classes, function))
        return function

    return register


@node
class Options(Node):
    """What `script` can be asked for; its docstring says what each means."""

    dialect: str | None = None
    types: str = "needed"
    constants: str = "inline"
    store: dict[str, np.ndarray[Any, Any]] | None = None
    width: int = 120
    header: bool = False
    name: str | None = None
    positions: bool = False


class Slot(list[tuple[int, Doc]]):
    """A place among the lines where declarations may be put later; slots compare by their order in the text."""

    def __init__(self, order: int, indent: int) -> None:
        super().__init__()
        self.order = order
        self.indent = indent


class Printer:
    """One printing: `lines` grows as nodes are emitted. `int_dtype` is the type that a bare integer has here."""

    def __init__(self, options: Options, module: IRModule | None = None) -> None:
        self.options = options
        self.module = module
        self.module_name = _module_name(module.name) if module is not None else "Module"
        self.members = member_names(module.functions if module is not None else (), self.module_name)
        self.names = Names(self.module_name, (*self.members, *self.members.values()))
        self.lines: list[tuple[int, Doc] | Slot] = []
        self.indent = 0
        self.int_dtype: DType = prim.INT32
        self.head: Slot | None = None
        self.slots: dict[Node, Slot] = {}
        self.uses_module = False
        self.loops: dict[prim.Var, tir.For] = {}
        self.quoting = False
        self.function: relax.Function | None = None
        self.uses: Counter[relax.Var] | None = None
        self.numbers: set[prim.Var] = set()
        self.values: dict[relax.Var, relax.Expr] = {}
        self.type_vars: dict[str, None] = {}
        self.dimension_names: set[str] = set()
        self.lets: set[prim.Var] = set()
        self.escaped: list[prim.Var] = []
        self.declared: dict[str, tir.Buffer] = {}
        self.launched: set[prim.Var] = set()
        self.threads: dict[prim.Var, str] = {}
        self._slot_count = 0
        self._opening: Node | None = None

    # --- lines --------------------------------------------------------------------------------------------------------
    def line(self, doc: Doc) -> None:
        """Append one logical line; the first line of a node stands for the node."""
        if self._opening is not None:
            doc, self._opening = Mark(self._opening, doc), None
        self.lines.append((self.indent, doc))

    def opens(self, node: Node) -> None:
        """The next line is the first of this node."""
        if self.options.positions:
            self._opening = node

    def blank(self) -> None:
        """Append an empty line."""
        self.lines.append((0, ""))

    def slot(self) -> Slot:
        """Append a place for later declarations, at the current indentation."""
        self._slot_count += 1
        made = Slot(self._slot_count, self.indent)
        self.lines.append(made)
        return made

    def flat_lines(self) -> list[tuple[int, Doc]]:
        """All lines, with those that were put into slots."""
        flat: list[tuple[int, Doc]] = []
        for item in self.lines:
            if isinstance(item, Slot):
                flat.extend(item)
            else:
                flat.append(item)
        return flat

    # --- dispatch -----------------------------------------------------------------------------------------------------
    def doc(self, node: Any) -> Doc:
        """How a node is written inside a line, where nothing binds tighter."""
        write = DOCS.get(node.__class__)
        if write is None:
            if node.__class__ in LEVELED:
                return self.operand(node, 0)
            raise TypeError(f"nothing says how a {type(node).__name__} is printed")
        doc = write(self, node)
        return Mark(node, doc) if self.options.positions else doc

    def operand(self, node: Any, level: int) -> Doc:
        """How a node is written as an operand; in parentheses when its own operators bind looser than `level`."""
        write = LEVELED.get(node.__class__)
        if write is None:
            return self.doc(node)
        doc, own = write(self, node)
        if self.options.positions:
            doc = Mark(node, doc)
        return concat("(", doc, ")") if own < level else doc

    def emit(self, node: Any) -> None:
        """Append the lines of a statement, a binding, a function."""
        if self.options.positions and isinstance(node, Node):
            self._opening = node
        EMITTERS[node.__class__](self, node)

    def spell(self, concept: str) -> str:
        """The name of a concept in the dialect that is printed."""
        name = spellings.name_in(concept, self.options.dialect)
        return concept if name is None else name

    def since(self, first: str) -> bool:
        """Whether the text is for release `first` or a later one; never for the canonical text."""
        return self.options.dialect is not None and spellings.at_least(self.options.dialect, first)

    # --- dimensions ---------------------------------------------------------------------------------------------------
    # The canonical text defines a dimension by naming it in a parameter. Releases of TVM declare it in the body and
    # quote it in the signature (`R.Tensor(("n", 4))`); since 0.27 it is a `TypeVar` of the file.
    def implicit(self, var: prim.Var) -> bool:
        """Whether a bare name in a shape defines this variable: an int64, and not one that is known to be >= 0."""
        if self.options.dialect is not None and not self.since("tvm-0.27"):
            return False
        return var.dtype is prim.INT64 and (var.__class__ is prim.Var or self.since("tvm-0.27"))

    def define_dimension(self, var: prim.Var, *, lasting: bool = False) -> None:
        """Name a variable that the text defines here by naming it, if it has no name yet."""
        if self.names.get(var) is None and self.implicit(var):
            name = self.names.define(var, _dimension_hint(var), lasting=lasting)
            self.dimension_names.add(name)
            if self.since("tvm-0.27"):
                self.type_vars[name] = None

    def dimension(self, value: prim.PrimExpr) -> Doc:
        """A dimension, or another scalar that stands alone; a number of the type that numbers have here is bare."""
        if isinstance(value, prim.IntImm) and value.of.is_int:
            return str(value.value) if value.of is self.int_dtype else f"T.{value.of}({value.value})"
        doc = self.doc(value)
        is_type_var = isinstance(value, prim.Var) and self.names.get(value) in self.type_vars
        if self.quoting and not is_type_var and free_vars(value):
            text = render([(0, doc)], sys.maxsize).text.strip()
            return f"'{text}'" if '"' in text else string_text(text)  # an expression in a string has no escapes
        return doc

    # --- names --------------------------------------------------------------------------------------------------------
    def define(self, node: Node, hint: str) -> str:
        """A name for what is defined here."""
        return self.names.define(node, hint)

    def name(self, node: prim.Var) -> str:
        """The name of a scalar variable; one that nothing defines is declared where the function begins."""
        return self.names.get(node) or self._declare_var(node)

    def buffer_name(self, buffer: tir.Buffer) -> str:
        """The name of a buffer; one that nothing defines is declared as soon as what it mentions is known."""
        return self.names.get(buffer) or self._declare_buffer(buffer)

    def _declare_var(self, node: prim.Var) -> str:
        if node in self.lets:
            self.escaped.append(node)
        if self.quoting:
            self.define_dimension(node, lasting=True)
        name = self.names.get(node)
        if name is None:
            hint = _dimension_hint(node)
            # A closure above would see the declaration, where it defines a dimension of its own.
            while self.names.unique(hint, scalar=True) in self.dimension_names:
                hint += "_1"
            name = self.names.define(node, hint, lasting=True)
            if self.head is not None:
                self.head.append((self.head.indent, f"{name} = {self.var_type(node)}"))
        return name

    def var_type(self, node: prim.Var) -> str:
        """The constructor of a variable's type: `T.int64()`, `T.handle("float32", "global")`."""
        if node.pointer is not None:
            return f'T.handle("{node.pointer.element}", "{node.pointer.scope}")'
        return f"T.{node.dtype}({'is_size_var=True' if isinstance(node, prim.SizeVar) else ''})"

    def _declare_buffer(self, buffer: tir.Buffer) -> str:
        name = self.names.define(buffer, buffer.name, lasting=True)
        if self.head is None:
            return name
        # A view of memory is a statement since TVM 0.24.
        word = "T.decl_buffer" if self.since("tvm-0.24") and self.names.get(buffer.data) is not None else "T.Buffer"
        made = concat(f"{name} = {word}", self.buffer_fields(buffer, lasting=True))
        at = self.head
        for var in _mentioned(buffer):
            at = max(at, self.slots.get(var, at), key=_order)
        at.append((at.indent, made))
        return name

    def buffer_fields(
        self,
        buffer: tir.Buffer,
        *,
        first: tuple[Doc, ...] = (),
        last: tuple[Doc, ...] = (),
        data: str | None = None,
        lasting: bool = False,
    ) -> Doc:
        """The arguments, in parentheses, of what declares a buffer: shape, dtype, and what is not as usual. A pointer
        that nothing has defined becomes `NAME.data`; `data` is another way to write one that is known."""
        items: list[Doc] = [*first, self.dims(buffer.shape), f'"{buffer.dtype}"']
        if self.names.get(buffer.data) is None and owns_data(buffer):
            self.names.bind(buffer.data, f"{self.names.get(buffer)}.data", lasting=lasting)
        else:
            items.append(concat("data=", data or self.doc(buffer.data)))
        if buffer.strides:
            items.append(concat("strides=", self.listed(buffer.strides)))
        if buffer.elem_offset is None and first and buffer.offset_factor:
            items.append("elem_offset=None")  # without it, the first element would lie anywhere
        elif buffer.elem_offset is not None and not self._own_offset(buffer, matches=bool(first), lasting=lasting):
            items.append(concat("elem_offset=", self.doc(buffer.elem_offset)))
        if buffer.scope != "global":
            items.append(f'scope="{buffer.scope}"')
        if buffer.align != -1:
            items.append(f"align={buffer.align}")
        if buffer.offset_factor != 0:
            items.append(f"offset_factor={buffer.offset_factor}")
        if isinstance(buffer.layout, prim.Call) and buffer.layout.op == "carried.fields":
            items += [self.doc(field) for field in buffer.layout.args]
        elif buffer.layout is not None:
            items.append(concat("layout=", self.doc(buffer.layout)))
        return bracket("(", [*items, *last], ")")

    def _own_offset(self, buffer: tir.Buffer, *, matches: bool, lasting: bool) -> bool:
        """Whether the offset is a variable that the buffer defines: one that `offset_factor=` alone would make."""
        offset = buffer.elem_offset
        if not matches or not isinstance(offset, prim.Var) or not buffer.offset_factor or self.names.get(offset):
            return False
        if offset.dtype is not (buffer.shape[0].dtype if buffer.shape else prim.INT32):
            return False
        name = self.names.get(buffer)
        if self.options.dialect is None and offset.name != f"{name}_elem_offset":  # what reading would name it
            return False
        self.names.bind(offset, f"{name}.elem_offset", lasting=lasting)
        return True

    def dims(self, values: tuple[prim.PrimExpr, ...]) -> Doc:
        """`(n, 784)`; one dimension keeps its comma."""
        return bracket("(", [self.dimension(v) for v in values], ")", lone_comma=True)

    def listed(self, values: tuple[Any, ...]) -> Doc:
        """`[n, 784]`."""
        return bracket("[", [self.doc(v) for v in values], "]")

    def keywords(self, items: Mapping[str, Any]) -> list[Doc]:
        """`name=value` for each item, values as plain data."""
        from relaxlang.syntax.printer.values import value_doc

        return [concat(key, "=", value_doc(self, value)) for key, value in items.items()]


def owns_data(buffer: tir.Buffer) -> bool:
    """Whether the pointer is what a declaration without `data=` would make."""
    pointer = buffer.data.pointer
    return pointer is not None and pointer.element is buffer.dtype and pointer.scope == buffer.scope


def _module_name(name: str) -> str:
    """A module's name where it is no word of the language, else one like it."""
    text = legal(name)
    return f"{text}_1" if text in RESERVED else text


def _dimension_hint(var: prim.Var) -> str:
    """A name for what a shape or a declaration names; `_` alone says there that nothing is known."""
    return "_1" if var.name == "_" else var.name


def _order(slot: Slot) -> int:
    return slot.order


def _mentioned(buffer: tir.Buffer) -> list[prim.Var]:
    offset = () if buffer.elem_offset is None else (buffer.elem_offset,)
    return [buffer.data, *free_vars((*buffer.shape, *buffer.strides, *offset))]
