"""Tensor expressions in Python: tensors defined element by element, compiled to a PrimFunc of blocks.

    from relaxlang import te

    n = te.var("n")
    A, B = te.placeholder((n, 128), name="A"), te.placeholder((128, 64), name="B")
    k = te.reduce_axis((0, 128), name="k")
    C = te.compute((n, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    func = te.create_prim_func([A, B, C])

These are the computations that `T.compute` states in the body of an operator, and they become kernels in the same way
(`relaxlang.ops.kernel`). Every scalar function of `T` is here too: `te.exp`, `te.if_then_else`, `te.cast`, ….
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from relaxlang.base.arguments import checked
from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType, dtype
from relaxlang.base.node import node
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.visit import Rewriter, on, walk
from relaxlang.ops.body import Computed, OpEvaluator, Stage
from relaxlang.ops.kernel import Kernel, build_kernel
from relaxlang.ops.namespaces import root_scope
from relaxlang.ops.values import Dim, TensorValue, as_dim
from relaxlang.syntax import tree


@node
class ReduceAxis(prim.Var):
    """What a reduction runs over: an index variable with its range."""

    dom: tir.Range = tir.Range(prim.IntImm(INT64, 0), prim.IntImm(INT64, 1))
    HASHED: ClassVar[bool] = False

    def __hash__(self) -> int:
        return object.__hash__(self)


class Computation(Computed):
    """A computed tensor that keeps alive the computed tensors it reads."""

    producers: tuple[Computation, ...] = ()


# The computed tensors that somebody still holds, by their buffers: what an element that is read belongs to.
_ALIVE: WeakValueDictionary[tir.Buffer, Computation] = WeakValueDictionary()


class Tensor:
    """A tensor: a placeholder (an input), or computed. `A[i, j]` is an element; `A(i, j)` too."""

    def __init__(self, value: TensorValue) -> None:
        self.value = value

    @property
    def name(self) -> str:
        """The name of its buffer."""
        return self.value.name

    @property
    def shape(self) -> tuple[PrimExpr, ...]:
        """The dimensions, int64 expressions."""
        return self.value.buffer.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.value.buffer.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __getitem__(self, indices: Any) -> PrimExpr:
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != self.ndim:
            fail("RLX0301", f"`{self.name}` has {self.ndim} dimensions, {len(given)} indices were given")
        for index in given:
            if isinstance(index, bool) or not (isinstance(index, int) or _is_integer(index)):
                fail("RLX0302", "an index must be an integer")
        return prim.BufferLoad(self.value.buffer, tuple(as_dim(i) for i in given))

    def __call__(self, *indices: Any) -> PrimExpr:
        return self[indices]

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {self.value.described()})"


def _is_integer(value: Any) -> bool:
    return isinstance(value, PrimExpr) and value.dtype.is_integer and not value.dtype.is_bool


# --- leaves -----------------------------------------------------------------------------------------------------------
@checked
def var(name: str = "n", of: DType | str = INT64) -> prim.Var:
    """A scalar variable; a symbolic dimension is one of int64."""
    return prim.Var(name, dtype(of))


@checked
def size_var(name: str = "n", of: DType | str = INT64) -> prim.SizeVar:
    """A scalar variable that is never negative."""
    return prim.SizeVar(name, dtype(of))


@checked
def const(value: int | float | bool, of: DType | str = "int32") -> PrimExpr:
    """A scalar constant."""
    try:
        return prim.const(value, of)
    except (ValueError, OverflowError):
        fail("RLX0129", f"`{value}` is no value of type `{of}`")


@checked
def placeholder(shape: Sequence[Dim] | Dim, of: DType | str = "float32", name: str = "placeholder") -> Tensor:
    """An input tensor."""
    return Tensor(TensorValue(name, _dims(shape), dtype(of)))


def _dims(shape: Sequence[Dim] | Dim) -> tuple[Dim, ...]:
    dims = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    for dim in dims:
        if isinstance(dim, PrimExpr) and not _is_integer(dim):
            fail("RLX0451", f"a dimension is an integer, not `{dim.dtype}`")
        if not isinstance(dim, PrimExpr) and dim < 0:
            fail("RLX0451", f"the dimension {dim} is negative")
    return tuple(d if isinstance(d, PrimExpr) else int(d) for d in dims)


@checked
def reduce_axis(dom: tuple[Dim, Dim] | Dim, name: str = "k") -> ReduceAxis:
    """An axis to reduce over: `(first, end)`, or the number of steps from 0."""
    low, high = dom if isinstance(dom, tuple) else (0, dom)
    first, end = as_dim(low), as_dim(high)
    return ReduceAxis(name, of=INT64, dom=tir.Range(first, end - first))


# --- computations -----------------------------------------------------------------------------------------------------
@checked
def compute(shape: Sequence[Dim] | Dim, function: Callable[..., Any], name: str = "compute") -> Any:
    """A tensor whose element at `i, j, …` is `function(i, j, …)`; several when the function gives a tuple."""
    dims = _dims(shape)
    axes = tuple((hint, prim.Var(f"v_{hint}", INT64), as_dim(d)) for hint, d in zip(_names(function, len(dims)), dims))
    value = function(*(v for _, v, _ in axes))
    several = isinstance(value, (tuple, list))
    values = tuple(value) if several else (value,)
    if not all(isinstance(v, (PrimExpr, bool, int, float)) for v in values):
        fail("RLX0451", f"the function of `{name}` must give scalar expressions")
    fixed = _FixAxes()
    bodies = tuple(fixed(prim.as_prim(v)) for v in values)
    if any(isinstance(n, prim.Reduce) and n is not b for b in bodies for n in walk(b)):
        fail("RLX0451", f"in `{name}` a reduction is part of an expression", help="give it a `te.compute` of its own")
    outputs = tuple(Computation(f"{name}_{k}" if several else name, dims, b.dtype) for k, b in enumerate(bodies))
    stage = Stage(axes, bodies, outputs)
    producers = tuple(_ALIVE[b] for b in dict.fromkeys(stage.reads()) if b in _ALIVE)
    for output in outputs:
        output.stage, output.producers = stage, producers
        _ALIVE[output.buffer] = output
    return tuple(Tensor(o) for o in outputs) if several else Tensor(outputs[0])


def _names(function: Callable[..., Any], count: int) -> list[str]:
    """A name for each index, after the function's parameters; `*i` gives `i0`, `i1`, …"""
    try:
        params = list(inspect.signature(function).parameters.values())
    except ValueError:
        fail("RLX0451", "the indices that the function takes are not known", help="write it as a `lambda i, j: …`")
    star = next((k for k, p in enumerate(params) if p.kind is p.VAR_POSITIONAL), None)
    if star is not None:
        before = [p.name for p in params[:star]]
        return before + [f"{params[star].name}{k}" for k in range(count - len(before))]
    if len(params) != count:
        fail("RLX0135", f"the function takes {len(params)} indices, the shape has {count} dimensions")
    return [p.name for p in params]


class _FixAxes(Rewriter):
    """Puts plain variables in the place of reduction axes, one for each."""

    def __init__(self) -> None:
        self.made: dict[ReduceAxis, prim.Var] = {}

    @on(ReduceAxis)
    def axis(self, axis: ReduceAxis) -> prim.Var:
        """The block variable of an axis."""
        if axis not in self.made:
            self.made[axis] = prim.Var(f"v_{axis.name}", INT64)
        return self.made[axis]


# --- scalar functions -------------------------------------------------------------------------------------------------
@cache
def _functions() -> dict[str, Any]:
    space: Any = root_scope(lambda name: False, lambda: ()).names["T"]
    return {name: space.lookup(name) for name in space.names() if name not in ("compute", "reduce_axis")}


def _call(function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of operator bodies on Python's arguments; `axis` (or the second argument) may be reduction axes."""
    ev = OpEvaluator()
    given = list(args)
    if len(given) == 2 and "axis" not in kwargs and _are_axes(given[1]):
        kwargs = {**kwargs, "axis": given.pop()}
    if "axis" in kwargs:
        axes = tuple(_flat(kwargs["axis"]))
        kwargs = {**kwargs, "axis": axes}
        if not all(isinstance(a, ReduceAxis) for a in axes):
            fail("RLX0138", "`axis` must be what `te.reduce_axis` gave")
        ev.reduce_axes = {a: a.dom for a in axes}
    return function.call(ev, given, kwargs, tree.Call(tree.Name(f"te.{name}"), (), ()))


def _flat(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


def _are_axes(value: Any) -> bool:
    return all(isinstance(v, ReduceAxis) for v in _flat(value))


class Function:
    """A scalar function or reduction: `te.exp(x)`, `te.sum(x, axis=k)`, `te.max(a, b)`."""

    def __init__(self, name: str, builtin: Any) -> None:
        self.__name__ = name
        self._builtin = builtin

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call(self._builtin, self.__name__, args, kwargs)

    def __repr__(self) -> str:
        return f"<te.{self.__name__}>"


@checked
def comm_reducer(combine: Callable[..., Any], identity: Callable[[DType], Any], name: str = "reduce") -> Any:
    """A reduction of one's own, of one value or of several together: `r(x, axis=k)`, `r((x, y), axis=k)`.

    `combine(x, y)` gives the combination (of tuples for several values), `identity(dtype)` (of one dtype for each
    value) what is neutral.
    """

    def reduce(value: Any, axis: Any) -> Any:
        several = isinstance(value, (tuple, list))
        sources = tuple(prim.as_prim(v) for v in _flat(value))
        types = tuple(s.dtype for s in sources)
        if not _are_axes(axis):
            fail("RLX0138", "`axis` must be what `te.reduce_axis` gave")
        lhs = tuple(prim.Var(f"x{k}", t) for k, t in enumerate(types))
        rhs = tuple(prim.Var(f"y{k}", t) for k, t in enumerate(types))
        result = tuple(_flat(combine(lhs, rhs) if several else combine(lhs[0], rhs[0])))
        neutral = tuple(_flat(identity(*types)))
        reducer = prim.CommReducer(
            lhs,
            rhs,
            tuple(prim.cast(prim.as_prim(r, t), t) for r, t in zip(result, types)),
            tuple(prim.cast(prim.as_prim(n, t), t) for n, t in zip(neutral, types)),
        )
        iters = tuple(tir.IterVar(a, a.dom, "reduce") for a in _flat(axis))
        made = tuple(prim.Reduce(reducer, sources, iters, value_index=k) for k in range(len(sources)))
        return made if several else made[0]

    reduce.__name__ = name
    return reduce


def __getattr__(name: str) -> Any:
    found = _functions().get(name)
    if found is None:
        raise AttributeError(f"relaxlang.te has no function {name!r}")
    return Function(name, found)


# --- kernels ----------------------------------------------------------------------------------------------------------
@checked
def create_prim_func(args: Sequence[Tensor | prim.Var]) -> tir.PrimFunc:
    """The PrimFunc with these parameters, in this order: placeholders are read, computed tensors are written.

    Scalar variables that no tensor's shape gives must be among the parameters.
    """
    tensors = [a for a in args if isinstance(a, Tensor)]
    outputs = [t.value for t in tensors if isinstance(t.value, Computation)]
    inputs = [t.value for t in tensors if not isinstance(t.value, Computation)]
    if not outputs:
        fail("RLX0451", "a PrimFunc needs a computed tensor among its parameters")
    kernel, used = _kernel(inputs, outputs, len(outputs) > 1)
    made = list(kernel.func.params)
    buffers = dict(kernel.func.buffer_map)
    params: dict[Any, prim.Var] = dict(zip([*used, *outputs], made))
    params.update(zip(kernel.tir_vars, made[len(params) :]))
    ordered: list[prim.Var] = []
    for arg in args:
        key: Any = arg.value if isinstance(arg, Tensor) else arg
        if key not in params:
            params[key] = prim.Var(arg.name, prim.HANDLE if isinstance(arg, Tensor) else arg.dtype)
            if isinstance(arg, Tensor):
                buffers[params[key]] = arg.value.buffer
        ordered.append(params[key])
    missing = [str(v) for v in kernel.tir_vars if params[v] not in ordered]
    if missing:
        fail("RLX0451", f"`{missing[0]}` is given by no tensor's shape", help="make it a parameter too")
    return kernel.func.replace(params=tuple(ordered), buffer_map=buffers)


def _kernel(inputs: list[TensorValue], outputs: list[Computation], is_tuple: bool) -> tuple[Kernel, list[TensorValue]]:
    """The kernel of computed tensors, and which of the inputs it reads."""
    ev = OpEvaluator()
    reached: set[tir.Buffer] = set()
    order: list[Computed] = []
    work: list[tuple[Computation, bool]] = [(o, False) for o in reversed(outputs)]
    while work:
        tensor, done = work.pop()
        if done:
            order += [t for t in tensor.stage.outputs if t not in order]
        elif tensor.buffer not in reached:
            reached.add(tensor.buffer)
            work.append((tensor, True))
            work += [(p, False) for p in tensor.producers]
    ev.computed = order
    for made in order:
        ev.extents.update({v: extent for _, v, extent in made.stage.axes})
        for body in made.stage.bodies:
            if isinstance(body, prim.Reduce):
                ev.extents.update({axis.var: axis.dom.extent for axis in body.axis})
    read = {b for t in order for b in t.stage.reads()}
    used = [t for t in inputs if t.buffer in read]
    foreign = read - {t.buffer for t in used} - reached - {t.buffer for t in order}
    if foreign:
        fail("RLX0451", f"the tensor `{min(b.name for b in foreign)}` is read and is no parameter")
    return build_kernel(ev, list(inputs), list(outputs), is_tuple), used


# --- from Relax -------------------------------------------------------------------------------------------------------
def kernel_of(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Kernel:
    """The kernel that `function` makes of tensors: values of Relax among its arguments are handed to it as placeholders
    (tensors), tuples of dimensions (shapes) and scalar expressions."""
    inputs: list[TensorValue] = []
    given = [_te_value(a, inputs) for a in args]
    named = {k: _te_value(v, inputs) for k, v in kwargs.items()}
    result = function(*given, **named)
    several = isinstance(result, (tuple, list))
    values = [t.value if isinstance(t, Tensor) else None for t in _flat(result)]
    outputs = [_computed(v) for v in values if v is not None]
    if not outputs or len(outputs) < len(values):
        fail("RLX0451", "a tensor computation gives a tensor, or a tuple of tensors")
    kernel, _ = _kernel(inputs, outputs, several)
    return kernel


def _computed(value: TensorValue) -> Computation:
    """A result; an input that is given back is copied."""
    if isinstance(value, Computation):
        return value
    tensor = Tensor(value)
    copied: Computation = compute(value.buffer.shape, lambda *i: tensor[i], f"{value.name}_copy").value
    return copied


def _te_value(value: Any, inputs: list[TensorValue]) -> Any:
    from relaxlang.ir.struct_info import PrimStructInfo, ShapeStructInfo, TensorStructInfo
    from relaxlang.syntax.struct_info import dims_of

    if isinstance(value, relax.Tuple):
        return tuple(_te_value(f, inputs) for f in value.fields)
    if isinstance(value, (tuple, list)):
        return tuple(_te_value(v, inputs) for v in value)
    if not isinstance(value, relax.Expr):
        return value
    if isinstance(value, (relax.StringImm, relax.DataTypeImm)):
        return value.value
    info = value.struct_info
    if isinstance(info, PrimStructInfo) and info.value is not None:
        return info.value
    if isinstance(info, ShapeStructInfo) and info.values is not None:
        return info.values
    dims = dims_of(info)
    if not isinstance(info, TensorStructInfo) or dims is None or info.dtype is None:
        fail("RLX0451", f"a tensor computation can't take a value of which only `{info}` is known")
    name = value.name if isinstance(value, relax.Var) else f"arg{len(inputs)}"
    made = TensorValue(name, dims, info.dtype, value)
    inputs.append(made)
    return Tensor(made)
