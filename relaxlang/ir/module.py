"""Modules: named functions of both levels, attributes, global infos."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from relaxlang.base.arguments import checked
from relaxlang.base.diagnostics import RelaxlangError, fail
from relaxlang.base.node import Node, node
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.printing import Printable
from relaxlang.ir.relax import ExternFunc, Function, GlobalVar
from relaxlang.ir.struct_info import OBJECT, FuncStructInfo, StructInfo, tensor_info
from relaxlang.ir.tir import PrimFunc

AnyFunc = Function | PrimFunc | ExternFunc


@node
class VDevice(Node):
    """A virtual device: a target (text or mapping), an index, a memory scope."""

    target: Any
    vdevice_id: int = 0
    memory_scope: str = "global"


@node
class DeviceMesh(Node):
    """A mesh of devices over which tensors are spread: its shape, and the device at each of its points."""

    shape: tuple[int, ...]
    devices: tuple[int, ...]


@node
class DummyGlobalInfo(Node):
    """A global info without content."""


UNCHECKED = "check_well_formed"
"""The attribute, False, of a module that is faulty on purpose: it is read and printed as `check_well_formed=False`."""


class Origin(Protocol):
    """Where a module comes from."""

    def read(self) -> IRModule:
        """The module, made now."""


class IRModule(Printable):
    """An immutable module: functions by name, in order; `attrs`; `global_infos` (lists by name); `operators`, the text
    of the operators that it defines and of the compile-time functions which they use, by name; `python`, the text of
    functions of Python that are carried along and never run, by name; `rules`, the rewrite rules of its file, each a
    module with a function `pattern` and a function `replacement`, by name.

    `mod["main"]` is a function; the `with_…` methods return changed copies. `origin` is where the module was read from,
    None for one that was made. One that was not read so far is read when somebody looks at it.
    """

    __slots__ = (*(_FIELDS := ("functions", "attrs", "global_infos", "name", "operators", "python", "rules")), "origin")

    @checked
    def __init__(
        self,
        functions: Mapping[str, AnyFunc],
        attrs: Attrs = EMPTY,
        global_infos: Mapping[str, tuple[Any, ...]] | None = None,
        name: str = "Module",
        operators: Mapping[str, str] | None = None,
        python: Mapping[str, str] | None = None,
        rules: Mapping[str, IRModule] | None = None,
    ) -> None:
        self.functions: dict[str, AnyFunc] = dict(functions)
        self.attrs = attrs
        self.global_infos: dict[str, tuple[Any, ...]] = dict(global_infos or {})
        self.name = name
        self.operators: dict[str, str] = dict(operators or {})
        self.python: dict[str, str] = dict(python or {})
        self.rules: dict[str, IRModule] = dict(rules or {})
        self.origin: Origin | None = None

    @classmethod
    def unread(cls, origin: Origin) -> IRModule:
        """The module that an origin gives, not read yet."""
        made = cls.__new__(cls)
        made.origin = origin
        return made

    @property
    def is_read(self) -> bool:
        """Whether the module was read already, or made."""
        return any(_has(self, field) for field in self._FIELDS)

    if not TYPE_CHECKING:  # which would take any name for a field otherwise

        def __getattr__(self, name: str) -> Any:
            """A field of a module that was not read so far."""
            if name not in self._FIELDS or self.origin is None:
                raise AttributeError(f"a module has no `{name}`", name=name, obj=self)
            read = self.origin.read()
            for field in self._FIELDS:
                if not _has(self, field):
                    setattr(self, field, getattr(read, field))
            return object.__getattribute__(self, name)

    def __getitem__(self, name: str | GlobalVar) -> AnyFunc:
        name = name.name if isinstance(name, GlobalVar) else name
        if not isinstance(name, str) or name not in self.functions:
            from relaxlang.base.suggest import did_you_mean

            near = did_you_mean(name, self.functions)
            fail("RLX0101", f"the module has no function `{name}`", help=f"did you mean `{near}`?" if near else "")
        return self.functions[name]

    def __contains__(self, name: object) -> bool:
        return (name.name if isinstance(name, GlobalVar) else name) in self.functions

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def relax_functions(self) -> Iterator[tuple[str, Function]]:
        """The Relax functions, by name."""
        return ((n, f) for n, f in self.functions.items() if isinstance(f, Function))

    def prim_funcs(self) -> Iterator[tuple[str, PrimFunc]]:
        """The TensorIR functions, by name."""
        return ((n, f) for n, f in self.functions.items() if isinstance(f, PrimFunc))

    @checked
    def global_var(self, name: str) -> GlobalVar:
        """The variable that refers to a function, with the function's struct info."""
        return GlobalVar(name, function_info(self[name]))

    @checked
    def unique_name(self, hint: str) -> str:
        """`hint`, with a number where the module has that name already."""
        name, n = hint, 0
        while name in self.functions:
            n += 1
            name = f"{hint}{n}" if not hint[-1:].isdigit() else f"{hint}_{n}"
        return name

    @checked
    def with_function(self, name: str, function: AnyFunc) -> IRModule:
        """A copy with one function added or changed."""
        if self.functions.get(name) is function:
            return self
        return self._copy({**self.functions, name: function}, self.attrs, self.name)

    @checked
    def with_functions(self, functions: Mapping[str, AnyFunc]) -> IRModule:
        """A copy with these functions; the module itself when each is the one it has."""
        if list(functions) == list(self.functions) and all(functions[n] is f for n, f in self.functions.items()):
            return self
        return self._copy(functions, self.attrs, self.name)

    @checked
    def with_attrs(self, attrs: Attrs) -> IRModule:
        """A copy with other attributes."""
        return self._copy(self.functions, attrs, self.name)

    def with_name(self, name: str) -> IRModule:
        """A copy with another name."""
        return self._copy(self.functions, self.attrs, name)

    def _copy(self, functions: Mapping[str, AnyFunc], attrs: Attrs, name: str) -> IRModule:
        made = IRModule.__new__(IRModule)  # of what was checked already
        made.functions, made.attrs, made.name = dict(functions), attrs, name
        made.global_infos, made.operators = dict(self.global_infos), dict(self.operators)
        made.python, made.rules, made.origin = dict(self.python), dict(self.rules), None
        return made

    def __str__(self) -> str:
        return self.script()

    def __repr__(self) -> str:
        return f"IRModule({', '.join(self.functions)})"


def _has(mod: IRModule, field: str) -> bool:
    """Whether a field is there, without reading the module for it."""
    try:
        object.__getattribute__(mod, field)
    except AttributeError:
        return False
    return True


def require_module(value: object) -> None:
    """RelaxlangError unless the value is a module."""
    if not isinstance(value, IRModule):
        hint = '; `IRModule({"main": f})` holds a function' if isinstance(value, AnyFunc) else ""
        hint = "; `relaxlang.load` reads a file, `relaxlang.parse` a text" if isinstance(value, str) else hint
        raise RelaxlangError(f"expected an `IRModule`, not `{type(value).__name__}`{hint}")


def function_info(function: AnyFunc) -> StructInfo:
    """The struct info of a function of either level; a PrimFunc takes tensors and returns nothing."""
    if not isinstance(function, PrimFunc):
        return function.struct_info
    from relaxlang.ir.struct_info import VOID_TUPLE, PrimStructInfo

    params: list[StructInfo] = []
    for var in function.params:
        buffer = function.buffer_map.get(var)
        if buffer is not None:
            params.append(tensor_info(buffer.shape, buffer.dtype))
        else:
            params.append(OBJECT if var.dtype.is_handle else PrimStructInfo(var.dtype, var))
    result: StructInfo = VOID_TUPLE if function.ret_type is None else PrimStructInfo(function.ret_type)
    return FuncStructInfo(tuple(params), result, _is_pure(function))


def _is_pure(function: PrimFunc) -> bool:
    """Whether a PrimFunc writes nothing and calls nothing that may have an effect."""
    from relaxlang.ir.intrinsics import INTRINSICS
    from relaxlang.ir.prim import Call
    from relaxlang.ir.tir import BufferStore
    from relaxlang.ir.visit import walk

    for part in walk(function.body):
        if isinstance(part, BufferStore):
            return False
        if isinstance(part, Call):
            row = INTRINSICS.get(part.op) if isinstance(part.op, str) else None
            if row is None or not row.pure:
                return False
    return True
