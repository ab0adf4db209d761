"""Random Relax programs as text, with arguments: operators on symbolic shapes, branches, closures, casts, kernels."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

KERNEL = """
@T.prim_func(private=True)
def scale(A: T.Buffer((p,), "float32"), B: T.Buffer((p,), "float32")):
    for i in range(p):
        with T.block("scale"):
            vi = T.axis.spatial(p, i)
            B[vi] = A[vi] * T.float32(2) + T.float32(1)

@R.function(private=True)
def helper(x: R.Tensor((h,), "float32")) -> R.Tensor((h,), "float32"):
    y = R.nn.relu(x)
    z = R.subtract(y, x)
    return z
"""
UNARY = "nn.relu tanh negative sigmoid abs sin nn.silu square".split()
BINARY = "add multiply subtract maximum minimum".split()


class Tensor(NamedTuple):
    """A float32 variable: its name, its dimensions as text, their values."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


class Program:
    """One program: `text` of its module, `args` for `main`."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = 0
        self.lines: list[str] = []
        self.sizes = {name: self.random.choice((0, 1, 1, 2, 3, 5)) for name in "nmk"}
        rng = np.random.default_rng(seed)
        params, self.args = [], []
        self.scope: list[Tensor] = []
        for at in range(self.random.randint(2, 4)):
            dims = tuple(
                self.random.choice(("n", "n", "m", "k", "1", "3", "4")) for _ in range(self.random.randint(0, 3))
            )
            made = Tensor(f"x{at}", dims, tuple(self.sizes.get(d) if d in self.sizes else int(d) for d in dims))
            self.scope.append(made)
            params.append(f'{made.name}: R.Tensor({_shape(dims)}, "float32")')
            self.args.append(rng.standard_normal(made.shape).astype(np.float32))
        params.append('flag: R.Tensor((), "bool")')
        self.args.append(np.array(bool(seed % 2)))
        for _ in range(self.random.randint(2, 5)):
            self.block()
        result = self.random.sample(self.scope, min(len(self.scope), self.random.randint(1, 3)))
        names = ", ".join(t.name for t in result)
        self.lines.append(f"return ({names})" if len(result) > 1 else f"return {names}")
        body = "\n".join(self.lines)
        main = f"@R.function\ndef main({', '.join(params)}):\n    cls = Module\n" + indent(body, "    ")
        self.text = "@I.ir_module\nclass Module:\n" + indent(KERNEL + "\n" + main, "    ") + "\n"

    # --- statements ---------------------------------------------------------------------------------------------------
    def block(self) -> None:
        """A dataflow block, or bindings outside of one."""
        if self.random.random() < 0.6:
            lines, self.lines = self.lines, []
            outer = list(self.scope)
            for _ in range(self.random.randint(1, 5)):
                self.binding(pure=True)
            made = [t for t in self.scope if t not in outer]
            kept = self.random.sample(made, self.random.randint(1, len(made))) if made else []
            self.scope = outer + kept
            inner, self.lines = self.lines, lines
            if kept:
                inner.append(f"R.output({', '.join(t.name for t in kept)})")
                self.lines += ["with R.dataflow():", *(f"    {line}" for line in inner)]
        else:
            self.binding(pure=False)

    def binding(self, pure: bool) -> None:
        """One or a few bindings."""
        kinds = [*self.SIMPLE * 3, *(self.CONTROL if not pure else ())]
        for _ in range(10):
            if self.random.choice(kinds)(self):
                return

    def emit(self, value: str, dims: tuple[str, ...], shape: tuple[int, ...]) -> bool:
        """Bind a tensor."""
        if int(np.prod(shape, dtype=np.int64)) > 4000 or len(shape) > 5:
            return False
        made = self.fresh(dims, shape)
        self.lines.append(f"{made.name} = {value}")
        self.scope.append(made)
        return True

    def fresh(self, dims: tuple[str, ...], shape: tuple[int, ...]) -> Tensor:
        """A new variable."""
        self.names += 1
        return Tensor(f"v{self.names}", dims, shape)

    def any(self, least: int = 0) -> Tensor | None:
        """A variable of a rank."""
        found = [t for t in self.scope if len(t.dims) >= least]
        return self.random.choice(found) if found else None

    def unary(self) -> bool:
        x = self.random.choice(self.scope)
        return self.emit(f"R.{self.random.choice(UNARY)}({x.name})", x.dims, x.shape)

    def binary(self) -> bool:
        """Of shapes that broadcast: provably, or because of the values that the symbols have."""
        x = self.random.choice(self.scope)
        fitting = [t for t in self.scope if _broadcast(x, t) is not None]
        y = self.random.choice(fitting)
        dims, shape = _broadcast(x, y) or ((), ())
        return self.emit(f"R.{self.random.choice(BINARY)}({x.name}, {y.name})", dims, shape)

    def scalar(self) -> bool:
        x = self.random.choice(self.scope)
        return self.emit(f'R.multiply({x.name}, R.const(0.5, "float32"))', x.dims, x.shape)

    def reduce(self) -> bool:
        x = self.any(1)
        if x is None:
            return False
        axis, keep = self.random.randrange(len(x.dims)), self.random.random() < 0.5
        name = self.random.choice(("sum", "mean", "max") if x.shape[axis] else ("sum",))
        dims = tuple(_kept(x.dims, axis, keep, "1"))
        return self.emit(
            f"R.{name}({x.name}, axis={axis}, keepdims={keep})", dims, tuple(_kept(x.shape, axis, keep, 1))
        )

    def softmax(self) -> bool:
        x = self.any(1)
        if x is None:
            return False
        axis = self.random.randrange(-len(x.dims), len(x.dims))
        return self.emit(f"R.{self.random.choice(('nn.softmax', 'cumsum'))}({x.name}, axis={axis})", x.dims, x.shape)

    def transpose(self) -> bool:
        x = self.any(2)
        if x is None:
            return False
        order = self.random.sample(range(len(x.dims)), len(x.dims))
        return self.emit(f"R.permute_dims({x.name}, axes={order})", *_ordered(x, order))

    def flatten(self) -> bool:
        x = self.random.choice(self.scope)
        product = " * ".join(f"({d})" for d in x.dims) or "1"
        how = self.random.choice(("(-1,)", f"({product},)"))
        if how == "(-1,)" and not x.size:
            return False
        return self.emit(f"R.reshape({x.name}, {how})", (product,), (x.size,))

    def expand(self) -> bool:
        x = self.random.choice(self.scope)
        axis = self.random.randint(0, len(x.dims))
        dims, shape = list(x.dims), list(x.shape)
        dims.insert(axis, "1")
        shape.insert(axis, 1)
        return self.emit(f"R.expand_dims({x.name}, axis={axis})", tuple(dims), tuple(shape))

    def concat(self) -> bool:
        x = self.any(1)
        if x is None:
            return False
        axis = self.random.randrange(len(x.dims))
        dims = (*x.dims[:axis], f"({x.dims[axis]}) * 2", *x.dims[axis + 1 :])
        shape = (*x.shape[:axis], x.shape[axis] * 2, *x.shape[axis + 1 :])
        return self.emit(f"R.concat(({x.name}, {x.name}), axis={axis})", dims, shape)

    def matmul(self) -> bool:
        pairs = [(a, b) for a in self.scope for b in self.scope
                 if len(a.dims) == 2 and len(b.dims) == 2 and a.dims[1] == b.dims[0]]  # fmt: skip
        if not pairs:
            return False
        a, b = self.random.choice(pairs)
        return self.emit(f"R.matmul({a.name}, {b.name})", (a.dims[0], b.dims[1]), (a.shape[0], b.shape[1]))

    def take_half(self) -> bool:
        x = self.any(1)
        if x is None:
            return False
        axis = self.random.randrange(len(x.dims))
        dims = (*x.dims[:axis], f"({x.dims[axis]}) // 2", *x.dims[axis + 1 :])
        shape = (*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :])
        value = f"R.strided_slice({x.name}, axes=[{axis}], begin=[0], end=[({x.dims[axis]}) // 2])"
        return self.emit(value, dims, shape)

    def cast(self) -> bool:
        """A new symbol for a dimension, checked at run time."""
        x = self.any(1)
        if x is None:
            return False
        axis = self.random.randrange(len(x.dims))
        symbol = f"s{self.names}"
        self.lines.append(f"{symbol} = T.int64()")
        dims = (*x.dims[:axis], symbol, *x.dims[axis + 1 :])
        return self.emit(f'R.match_cast({x.name}, R.Tensor({_shape(dims)}, "float32"))', dims, x.shape)

    def pair(self) -> bool:
        x, y = self.random.choice(self.scope), self.random.choice(self.scope)
        self.names += 1
        self.lines.append(f"t{self.names} = ({x.name}, {y.name})")
        return self.emit(f"t{self.names}[1]", y.dims, y.shape)

    def kernel(self) -> bool:
        found = [t for t in self.scope if len(t.dims) == 1]
        if not found:
            return False
        x = self.random.choice(found)
        if self.random.random() < 0.3:
            return self.emit(f"cls.helper({x.name})", x.dims, x.shape)
        info = f'R.Tensor({_shape(x.dims)}, "float32")'
        return self.emit(f"R.call_tir(cls.scale, ({x.name},), out_sinfo={info})", x.dims, x.shape)

    def data(self) -> bool:
        """The elements above 0, a number that depends on the data; then their sum."""
        found = [t for t in self.scope if len(t.dims) == 1]
        if not found:
            return False
        x, symbol = self.random.choice(found), f"s{self.names}"
        self.names += 1
        at = f"u{self.names}"
        self.lines += [
            f'{at}_c = R.greater({x.name}, R.const(0, "float32"))',
            f"{at}_n = R.nonzero({at}_c)",
            f"{symbol} = T.int64()",
            f'{at}_m = R.match_cast({at}_n, R.Tensor((1, {symbol}), "int64"))',
            f"{at}_f = R.reshape({at}_m, ({symbol},))",
            f"{at}_t = R.take({x.name}, {at}_f, axis=0)",
        ]
        return self.emit(f"R.sum({at}_t)", (), ())

    def branch(self) -> bool:
        """Two ways to one shape."""
        x = self.random.choice(self.scope)
        made = self.fresh(x.dims, x.shape)
        ways = [f"R.{self.random.choice(UNARY)}({x.name})" for _ in range(2)]
        self.lines += ["if flag:", f"    {made.name}a = {ways[0]}", f"    {made.name} = R.add({made.name}a, {x.name})",
                       "else:", f"    {made.name} = {ways[1]}"]  # fmt: skip
        self.scope.append(made)
        return True

    def closure(self) -> bool:
        """A nested function that captures a variable."""
        x, y = self.random.choice(self.scope), self.random.choice(self.scope)
        found = _broadcast(x, y)
        if found is None:
            return False
        self.names += 1
        name = f"inner{self.names}"
        self.lines += ["@R.function", f'def {name}(a: R.Tensor({_shape(y.dims)}, "float32")):',
                       f"    b = R.add({x.name}, a)", "    return b"]  # fmt: skip
        return self.emit(f"{name}({y.name})", *found)

    SIMPLE: tuple[Callable[[Any], bool], ...] = (
        unary, binary, scalar, reduce, softmax, transpose, flatten, expand, concat, matmul, take_half, cast, pair,
        kernel, data,
    )  # fmt: skip
    CONTROL: tuple[Callable[[Any], bool], ...] = (branch, closure) * 3


def _shape(dims: tuple[str, ...]) -> str:
    return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"


def _kept(values: tuple[Any, ...], axis: int, keep: bool, one: Any) -> tuple[Any, ...]:
    return (*values[:axis], *((one,) if keep else ()), *values[axis + 1 :])


def _ordered(x: Tensor, order: list[int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return tuple(x.dims[k] for k in order), tuple(x.shape[k] for k in order)


def _broadcast(x: Tensor, y: Tensor) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
    """Dimensions and values of the broadcast shape; None when the values do not fit."""
    dims, shape = [], []
    for k in range(1, max(len(x.dims), len(y.dims)) + 1):
        a, p = (x.dims[-k], x.shape[-k]) if k <= len(x.dims) else ("1", 1)
        b, q = (y.dims[-k], y.shape[-k]) if k <= len(y.dims) else ("1", 1)
        if a == b or b == "1":
            dims.append(a)
            shape.append(p)
        elif a == "1":
            dims.append(b)
            shape.append(q)
        elif p == q or 1 in (p, q):  # decided at run time
            dims.append(f"T.Select(({a}) == 1, {b}, {a})")
            shape.append(q if p == 1 else p)
        else:
            return None
    return tuple(reversed(dims)), tuple(reversed(shape))
