"""Structural equality and hash: two programs are equal when they differ in names of variables and in spans alone.

Variables and buffers are matched where they are defined (parameters, bindings, loops, blocks, the dimensions of a
parameter's struct info); free ones are equal only to themselves, except in modules, which are closed: there they are
matched where they first occur. Names of functions count, their order does not; names of buffers do not count, names of
blocks do. Constants are compared bit by bit. Struct info counts on variables; what was inferred for calls and
conditionals does not. Nothing here recurses.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.base.node import Node
from relaxlang.ir import prim, relax, tir
from relaxlang.ir import struct_info as si
from relaxlang.ir.module import IRModule
from relaxlang.ir.printing import script

# --- how the fields of a class take part ------------------------------------------------------------------------------
# use: compare. define (`+`): match the variables in the field. bind (`*`): match buffers, and the scalar variables that
# are free in a struct info or a buffer's shape. param (`@`): match variables of Relax, and bind in their struct info.
# function: as use, and what was matched in another function of the module is forgotten. forget: what was matched since
# a local function or the struct info of a function began, whose variables are its own, is forgotten.
Mode = Literal["use", "define", "bind", "param", "function", "forget"]
_MODES: dict[str, Mode] = {"+": "define", "*": "bind", "@": "param"}
_Order = tuple[tuple[Mode, str], ...]


def _steps(text: str) -> _Order:
    return tuple([(_MODES.get(word[0], "use"), word.lstrip("+*@")) for word in text.split()])


_ORDER: dict[type, tuple[tuple[Mode, str], ...]] = {
    prim.Let: _steps("value +var body"),
    prim.CommReducer: _steps("+lhs +rhs result identity"),
    prim.Reduce: _steps("+axis combiner source condition init value_index"),
    tir.IterVar: _steps("dom +var kind thread_tag"),
    tir.For: _steps("min extent step kind annotations thread_binding +loop_var body"),
    tir.LetStmt: _steps("value +var body"),
    tir.AttrStmt: _steps("node key value body"),
    tir.Allocate: _steps("dtype extents condition annotations +buffer_var body"),
    tir.AllocConst: _steps("dtype extents data annotations +buffer_var body"),
    tir.DeclBuffer: _steps("*buffer body"),
    tir.BufferRealize: _steps("*buffer bounds condition body"),
    tir.MatchBufferRegion: _steps("source *buffer"),
    tir.Block: _steps("iter_vars name_hint *alloc_buffers match_buffers reads writes annotations init body"),
    tir.BlockRealize: _steps("iter_values predicate block"),
    tir.PrimFunc: _steps("+params *buffer_map ret_type attrs body"),
    relax.VarBinding: _steps("value +var"),
    relax.MatchCast: _steps("value *struct_info +var"),
    relax.Function: _steps("@params ret_struct_info is_pure attrs body"),
    relax.Call: _steps("op args attrs sinfo_args"),
    relax.If: _steps("condition true_branch false_branch"),
    relax.GlobalVar: _steps("name"),
    si.FuncStructInfo: _steps("*params ret purity derive_func"),
}
_BUFFER_FIELDS = ("data", "shape", "dtype", "strides", "elem_offset", "scope", "align", "offset_factor", "layout")
_SCOPES = (si.FuncStructInfo, relax.Function)
_RECURSIVE = _steps("+var value")  # a local function sees its own name


def _order(node: Node) -> _Order:
    cls = node.__class__
    if isinstance(node, relax.VarBinding) and isinstance(node.value, relax.Function):
        return _RECURSIVE
    found = _ORDER.get(cls)
    if found is None:
        found = _ORDER[cls] = tuple([("use", name) for name in cls.FIELDS])
    return found


def _flat_text(node: Any) -> str:
    """All that a number, or the struct info of a tensor or shape of known dimensions says; empty for anything else.
    Programs are full of them, so they are not taken apart."""
    cls = node.__class__
    if cls is prim.IntImm:
        return f"{node.of} {node.value!r}"
    if cls is si.TensorStructInfo and node.ground:
        return f"tensor {_dims_text(node.shape)} {node.dtype} {node.ndim}"
    return f"shape {_dims_text(node.values)} {node.ndim}" if cls is si.ShapeStructInfo and node.ground else ""


def _dims_text(dims: Any) -> str:
    return "none" if dims is None else " ".join([f"{d.of.name} {d.value!r}," for d in dims])


# --- the first difference ---------------------------------------------------------------------------------------------
class Difference(NamedTuple):
    """Where and how two programs differ: the access `path` (`main.body.blocks[0].bindings[2].value`), the `reason`, the
    two parts, and the nodes around each, innermost first."""

    path: str
    reason: str
    left: Any
    right: Any
    left_nodes: tuple[Any, ...]
    right_nodes: tuple[Any, ...]


class StructuralDifference(RelaxlangError):
    """Two programs that should be equal are not; `difference` says where."""

    def __init__(self, difference: Difference, left: Any, right: Any) -> None:
        self.difference = difference
        where = f" at `{difference.path}`" if difference.path else ""
        super().__init__(
            f"the two differ{where}: {difference.reason}\n\n"
            f"left:\n{script(left, underline=difference.left_nodes, context=2)}\n\n"
            f"right:\n{script(right, underline=difference.right_nodes, context=2)}"
        )


class _Path(NamedTuple):
    """A step from a parent to a part of it; a chain that ends at None."""

    parent: _Path | None
    label: str
    left: Any
    right: Any


class _Comparison:
    """The state of one comparison: which variable stands for which."""

    def __init__(self, map_free_vars: bool) -> None:
        self.map_free_vars = map_free_vars
        self.to_right: dict[Any, Any] = {}
        self.to_left: dict[Any, Any] = {}
        self.matched: list[tuple[Any, Any]] = []
        self.only_same = True  # so far every variable was matched with itself
        self.work: list[tuple[Mode, Any, Any, _Path]] = []

    def run(self, a: Any, b: Any) -> tuple[str, _Path] | None:
        """The reason and the place of the first difference."""
        self.work.append(("use", a, b, _Path(None, "", a, b)))
        while self.work:
            mode, x, y, path = self.work.pop()
            if mode == "forget":
                self._forget(x)
                continue
            if mode == "function":
                self.to_right, self.to_left, self.only_same, mode = {}, {}, True, "use"
            reason = self.compare(mode, x, y, path)
            if reason is not None:
                return reason, path
        return None

    def push(self, mode: Mode, a: Any, b: Any, label: str, path: _Path) -> None:
        """Compare two parts later, before what was pushed earlier."""
        self.work.append((mode, a, b, _Path(path, label, a, b)))

    def later(self, mode: Mode, a: Any, b: Any, name: str, path: _Path) -> None:
        """Compare one field later."""
        self.push(mode, getattr(a, name), getattr(b, name), f".{name}", path)

    def compare(self, mode: Mode, a: Any, b: Any, path: _Path) -> str | None:
        if a is b and self.only_same and mode == "use":
            return None
        cls = a.__class__
        if cls is not b.__class__:
            return f"{_kind(a)} against {_kind(b)}"
        flat = _flat_text(a)
        if flat and flat == _flat_text(b):
            return None
        if isinstance(a, (prim.Var, relax.Var)):
            return self._variable(mode, a, b, path)
        if isinstance(a, tir.Buffer):
            return self._buffer(mode, a, b, path)
        if isinstance(a, relax.Constant):
            return None if a.content is b.content else _arrays(a.data, b.data)
        if isinstance(a, prim.FloatImm):
            same = a.of is b.of and _bits(a.value) == _bits(b.value)
            return None if same else f"{a.of} {a.value!r} against {b.of} {b.value!r}"
        if isinstance(a, Node):
            if isinstance(a, _SCOPES):
                self.work.append(("forget", len(self.matched), None, path))
            if isinstance(a, tir.PrimFunc):
                return self._prim_func(a, b, path)
            for step, name in reversed(_order(a)):
                self.later("bind" if mode == "bind" and step == "use" else step, a, b, name, path)
            return None
        return self._plain(mode, a, b, path)

    def _plain(self, mode: Mode, a: Any, b: Any, path: _Path) -> str | None:
        if a.__class__ is tuple or a.__class__ is list:
            if len(a) != len(b):
                return f"{len(a)} against {len(b)} elements"
            for at in range(len(a) - 1, -1, -1):
                self.push(mode, a[at], b[at], f"[{at}]", path)
            return None
        if isinstance(a, Mapping):
            return self._mapping(mode, a, b, path)
        if isinstance(a, IRModule):
            return self._module(a, b, path)
        if isinstance(a, float):
            return None if _bits(a) == _bits(b) else f"{a!r} against {b!r}"
        if hasattr(a, "tobytes"):
            return _arrays(a, b)
        return None if a == b else f"{_short(a)} against {_short(b)}"

    def _mapping(self, mode: Mode, a: Mapping[str, Any], b: Mapping[str, Any], path: _Path) -> str | None:
        missing = [k for k in a if k not in b] + [k for k in b if k not in a]
        if missing:
            return f"only the {'left' if missing[0] in a else 'right'} has `{missing[0]}`"
        for key in sorted(a, key=str, reverse=True):
            self.push(mode, a[key], b[key], f'["{key}"]', path)
        return None

    def _module(self, a: IRModule, b: IRModule, path: _Path) -> str | None:
        self.map_free_vars = True  # a module is closed: what is free in it belongs to nobody outside
        missing = sorted(set(a.functions) ^ set(b.functions))
        if missing:
            return f"only the {'left' if missing[0] in a.functions else 'right'} has the function `{missing[0]}`"
        self.later("use", a, b, "rules", path)
        self.later("use", a, b, "python", path)
        self.later("use", a, b, "operators", path)
        self.later("use", a, b, "global_infos", path)
        self.later("use", a, b, "attrs", path)
        for name in sorted(a.functions, reverse=True):
            self.push("function", a.functions[name], b.functions[name], f".{name}", path)
        return None

    def _prim_func(self, a: tir.PrimFunc, b: tir.PrimFunc, path: _Path) -> str | None:
        """The buffers are matched by the place of their parameters."""
        if len(a.params) == len(b.params):
            for at, (x, y) in enumerate(zip(a.params, b.params)):
                if (x in a.buffer_map) != (y in b.buffer_map):
                    return f"only the {'left' if x in a.buffer_map else 'right'} has a buffer for parameter {at}"
        left = tuple(a.buffer_map[v] for v in a.params if v in a.buffer_map)
        right = tuple(b.buffer_map[v] for v in b.params if v in b.buffer_map)
        for step, name in reversed(_ORDER[tir.PrimFunc]):
            if name == "buffer_map":
                self.push(step, left, right, ".buffer_map", path)
            else:
                self.later(step, a, b, name, path)
        return None

    # --- variables ----------------------------------------------------------------------------------------------------
    def _variable(self, mode: Mode, a: Any, b: Any, path: _Path) -> str | None:
        known = self.to_right.get(a)
        if mode == "use" or mode == "bind":
            if known is not None or b in self.to_left:
                return None if known is b else f"the variable `{a.name}` against another one, `{b.name}`"
            if not self.map_free_vars and (mode == "use" or isinstance(a, relax.Var)):
                return None if a is b else f"the free variable `{a.name}` against another one, `{b.name}`"
        self._match(a, b)
        if isinstance(a, relax.Var):
            self.later("bind" if mode == "param" else "use", a, b, "struct_info", path)
            return None
        if a.dtype is not b.dtype:
            return f"a variable of {a.dtype} against one of {b.dtype}"
        self.later("use", a, b, "pointer", path)
        return None

    def _buffer(self, mode: Mode, a: tir.Buffer, b: tir.Buffer, path: _Path) -> str | None:
        known = self.to_right.get(a)
        if mode == "use":
            if known is not None or b in self.to_left:
                return None if known is b else f"the buffer `{a.name}` against another one, `{b.name}`"
            if a is b:
                return None
            # Lowered code uses buffers that nothing declares; the memory they lie in says which they are.
            if not self.map_free_vars and self.to_right.get(a.data) is not b.data:
                return f"the free buffer `{a.name}` against another one, `{b.name}`"
        self._match(a, b)
        for name in reversed(_BUFFER_FIELDS):
            self.later("bind", a, b, name, path)
        return None

    def _match(self, a: Any, b: Any) -> None:
        """From here on `a` stands for `b`; a second definition replaces the first."""
        old_right, old_left = self.to_right.get(a), self.to_left.get(b)
        if old_right is not None:
            self.to_left.pop(old_right, None)
        if old_left is not None:
            self.to_right.pop(old_left, None)
        self.to_right[a], self.to_left[b] = b, a
        self.matched.append((a, b))
        self.only_same = self.only_same and a is b

    def _forget(self, since: int) -> None:
        """Undo what was matched after the first `since` matches."""
        for a, b in self.matched[since:]:
            if self.to_right.get(a) is b:
                del self.to_right[a], self.to_left[b]
        del self.matched[since:]


def _bits(value: float) -> bytes:
    return struct.pack("<d", value)


def _arrays(a: Any, b: Any) -> str | None:
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"an array of {a.dtype} {a.shape} against {b.dtype} {b.shape}"
    return None if a.tobytes() == b.tobytes() else "arrays of other values"


def _kind(value: Any) -> str:
    return f"`{value.__class__.__name__}`" if isinstance(value, Node) else _short(value)


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, Node) else repr(value)
    return f"`{text if len(text) <= 60 else text[:57] + '...'}`"


# --- what others call -------------------------------------------------------------------------------------------------
def first_difference(a: Any, b: Any, map_free_vars: bool = False) -> Difference | None:
    """The first place, in reading order, where two nodes, modules or plain values differ; None when they are equal."""
    found = _Comparison(map_free_vars).run(a, b)
    if found is None:
        return None
    reason, end = found
    steps = list(_chain(end))
    path = "".join(step.label for step in reversed(steps)).removeprefix(".")
    left = tuple(step.left for step in steps if isinstance(step.left, Node))
    right = tuple(step.right for step in steps if isinstance(step.right, Node))
    return Difference(path, reason, end.left, end.right, left, right)


def _chain(end: _Path) -> Iterator[_Path]:
    step: _Path | None = end
    while step is not None:
        yield step
        step = step.parent


def structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> bool:
    """Whether two nodes or modules are equal up to names of variables and spans.

    `map_free_vars`: variables that nothing defines are matched where they first occur, as parameters are.
    """
    return _Comparison(map_free_vars).run(a, b) is None


def assert_structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> None:
    """Raise `StructuralDifference`, which shows the place in both texts, unless the two are equal."""
    difference = first_difference(a, b, map_free_vars)
    if difference is not None:
        raise StructuralDifference(difference, a, b)


def same_struct_info(a: si.StructInfo | None, b: si.StructInfo | None) -> bool:
    """Whether two struct infos in one scope say the same, of the same variables."""
    return a is b or structural_equal(a, b)


# --- the hash ---------------------------------------------------------------------------------------------------------
def structural_hash(node: Any, *, elements: bool = True) -> int:
    """A 64-bit hash that equal nodes share; the same in every process (free variables count by their names). Without
    `elements` only the dtype and shape of arrays count: for tables whose entries are compared anyway."""
    return _Hash(elements).run(node)


class _Hash:
    """The state of one hash: variables are numbered where they are matched, anew each time."""

    def __init__(self, elements: bool) -> None:
        self.elements = elements
        self.numbers: dict[Any, int] = {}
        self.matched = 0
        self.work: list[tuple[Mode, Any]] = []
        self.closed = False

    def run(self, node: Any) -> int:
        """The hash of a node."""
        digest = blake2b(digest_size=8)
        self.work.append(("use", node))
        while self.work:
            mode, value = self.work.pop()
            if mode == "forget":
                self.numbers = {k: v for k, v in self.numbers.items() if v < value}
                continue
            digest.update(self.token(mode, value))
            digest.update(b"\0")
        return int.from_bytes(digest.digest(), "little")

    def token(self, mode: Mode, value: Any) -> bytes:
        """What a value itself adds to the hash; its parts are put on the stack."""
        name: str = value.__class__.__name__
        flat = _flat_text(value)
        if flat:
            return flat.encode()
        if mode == "function":
            self.numbers, mode = {}, "use"
        if isinstance(value, (prim.Var, relax.Var, tir.Buffer)):
            return self.variable(mode, value)
        if isinstance(value, relax.Constant):
            return self.array(value.data if self.elements else value.content)
        if isinstance(value, prim.FloatImm):
            return f"{value.of}".encode() + _bits(value.value)
        if isinstance(value, (tuple, list)):
            self.work.extend([(mode, item) for item in reversed(value)])
            return f"({len(value)}".encode()
        if isinstance(value, Mapping):
            for key in sorted(value, key=str, reverse=True):
                self.work += [(mode, value[key]), ("use", str(key))]
            return f"{{{len(value)}".encode()
        if isinstance(value, (Node, IRModule)):
            self.parts(mode, value)
            return name.encode()
        if isinstance(value, float):
            return b"float" + _bits(value)
        if hasattr(value, "tobytes"):
            return self.array(value)
        return f"{name}{value}".encode(errors="surrogatepass")

    def parts(self, mode: Mode, value: Node | IRModule) -> None:
        """Put the parts of a node or module on the stack."""
        if isinstance(value, IRModule):
            self.closed = True
            for key in sorted(value.functions, reverse=True):
                self.work += [("function", value.functions[key]), ("use", key)]
            self.work += [("use", value.rules), ("use", value.python), ("use", value.operators)]
            self.work += [("use", value.global_infos), ("use", value.attrs)]
        elif isinstance(value, tir.PrimFunc):
            buffers = tuple([value.buffer_map.get(v) for v in value.params])
            self.work += [("use", value.body), ("use", value.attrs), ("use", value.ret_type), ("bind", buffers)]
            self.work.append(("define", value.params))
        else:
            if isinstance(value, _SCOPES):
                self.work.append(("forget", self.matched))
            for step, name in reversed(_order(value)):
                self.work.append(("bind" if mode == "bind" and step == "use" else step, getattr(value, name)))

    def variable(self, mode: Mode, value: Any) -> bytes:
        """A number for a variable or buffer that is matched, the name of one that is free."""
        kind: str = value.__class__.__name__
        known = self.numbers.get(value)
        is_buffer = isinstance(value, tir.Buffer)
        looks_up = mode == "use" or (mode == "bind" and not is_buffer)
        if looks_up and known is not None:
            return f"{kind}#{known}".encode()
        if looks_up and not is_buffer and not self.closed and (mode == "use" or isinstance(value, relax.Var)):
            return f"{kind} {value.name}".encode(errors="surrogatepass")
        self.numbers[value] = self.matched
        self.matched += 1
        if is_buffer:
            self.work.extend([("bind", getattr(value, name)) for name in reversed(_BUFFER_FIELDS)])
        elif isinstance(value, relax.Var):
            self.work.append(("bind" if mode == "param" else "use", value.struct_info))
        else:
            self.work += [("use", value.pointer), ("use", value.dtype)]
        return f"{kind}+".encode()

    def array(self, array: Any) -> bytes:
        """What an array adds."""
        data: bytes = array.tobytes() if self.elements else b""
        return f"{array.dtype}{array.shape}".encode() + data
