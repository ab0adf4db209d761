"""ConvertLayout: convolutions in the layouts that the user wants, and what stands between them follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from relaxlang.arith import Analyzer
from relaxlang.arith.index_map import IndexMap
from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.base.suggest import suggestion
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ir.visit import on
from relaxlang.ops import Operators, default_operators
from relaxlang.ops.layouts import is_packed, layout_axes
from relaxlang.ops.rules import Layouts, plain_layout, tensors_in
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.relax.rewriting import OperatorRewriter, dims, without_unused

Desired: TypeAlias = Mapping[str, Sequence[str]]
"""Layouts of the tensors of an operator, by its name: `{"nn.conv2d": ("NHWC", "OHWI")}`."""


@record
class ConvertLayout(FunctionPass):
    """Give calls of some operators other layouts: `ConvertLayout({"nn.conv2d": ["NHWC", "OHWI"]})`, or as text
    `convert-layout{desired_layouts=[[nn.conv2d, NHWC, OHWI]]}`.

    A third layout is that of the result (without it: that of the data). What follows is computed in the layout that its
    tensors are kept in, as long as its operator's layout rule allows it (elementwise operators, pooling, norms,
    reductions, …); tensors are moved (`permute_dims`, for blocks as in "NCHW4c" `layout_transform`) only where an
    operator needs them in another layout. Dimensions are put in blocks only where they provably divide.
    `layout_cb(call)` may give the layouts for single calls. Parameters and results of functions stay as they are.
    RLX3104 for a name that is no operator, RLX0210 for layouts that the operator cannot have.

    Before:

        @R.function
        def main(
            x: R.Tensor((n, 4, 8, 8), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")
        ) -> R.Tensor((n, 4, 4, 4), "float32"):
            a = R.nn.conv2d(x, w)
            b = R.nn.relu(a)
            c = R.nn.conv2d(b, w)
            return c

    After:

        @R.function
        def main(
            x: R.Tensor((n, 4, 8, 8), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")
        ) -> R.Tensor((n, 4, 4, 4), "float32"):
            x1 = R.permute_dims(x, axes=[0, 2, 3, 1])
            w1 = R.permute_dims(w, axes=[0, 2, 3, 1])
            a1 = R.nn.conv2d(x1, w1, data_layout="NHWC", kernel_layout="OHWI", out_layout="NHWC")
            b1 = R.nn.relu(a1)
            c1 = R.nn.conv2d(b1, w1, data_layout="NHWC", kernel_layout="OHWI", out_layout="NHWC")
            c = R.permute_dims(c1, axes=[0, 3, 1, 2])
            return c
    """

    desired_layouts: Desired | tuple[Sequence[str], ...] = ()
    layout_cb: Callable[[relax.Call], Desired] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.desired_layouts
        if isinstance(given, Mapping):  # as rows it can be hashed, and printed as text that is read again
            object.__setattr__(self, "desired_layouts", tuple((name, *layouts) for name, layouts in given.items()))

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        operators = default_operators(mod)
        wanted = self._wanted(operators)
        if not wanted and self.layout_cb is None:
            return func

        def desired(call: relax.Call) -> tuple[str, ...]:
            assert isinstance(call.op, relax.Op)
            own = self.layout_cb(call) if self.layout_cb is not None else {}
            return tuple(own.get(call.op.name, own.get(f"relax.{call.op.name}", wanted.get(call.op.name, ()))))

        converter = _Converter(mod, operators, func, desired)
        made: relax.Function = converter(func)
        return without_unused(made, converter.moves)

    def _wanted(self, operators: Operators) -> dict[str, tuple[str, ...]]:
        """Layouts by operator, without TVM's prefix of names."""
        rows: Iterable[Sequence[str]] = tuple(self.desired_layouts)
        found = {name.removeprefix("relax."): tuple(layouts) for name, *layouts in rows if name}
        for name in found:
            if operators.find(name) is None:
                hint = suggestion(name, operators.names())
                fail("RLX3104", f"`desired_layouts` of `{self.name}`: there is no operator `{name}`", **hint)
        return found


class _Converter(OperatorRewriter):
    """Converts one function.

    `kept`: variables whose values are there in another layout, with it; `forms`: all forms in which tensors are there,
    by layout; `moves`: variables bound to tensors that were only moved, which may turn out to be unused.
    """

    def __init__(
        self,
        mod: IRModule,
        operators: Operators,
        func: relax.Function,
        desired: Callable[[relax.Call], tuple[str, ...]],
    ) -> None:
        super().__init__(mod, operators, func)
        self.desired = desired
        self.kept: dict[relax.Expr, tuple[relax.Expr, tuple[str, ...]]] = {}
        self.forms: dict[tuple[relax.Expr, str], relax.Expr] = {}
        self.moves: set[relax.Var] = set()

    @on(relax.SeqExpr)
    def sequence(self, node: relax.SeqExpr) -> relax.Expr:
        """What is there at the end of a branch is not there after it."""
        forms, kept = dict(self.forms), dict(self.kept)
        made: relax.Expr = self.below(node)
        self.forms, self.kept = forms, kept
        return made

    # --- bindings -----------------------------------------------------------------------------------------------------
    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        value = binding.value
        if not isinstance(binding, relax.VarBinding):
            return (binding,)
        if isinstance(value, relax.TupleGetItem) and value.tuple_value in self.kept:
            whole, layouts = self.kept[value.tuple_value]
            return self.result(binding, relax.TupleGetItem(whole, value.index), (layouts[value.index],))
        if not isinstance(value, relax.Call) or not isinstance(value.op, relax.Op):
            return (binding,)
        if value.op.name == "permute_dims":
            self.note_permutation(binding.var, value)
        found = self.layouts(value)
        if found is None:
            return (binding,)
        moved = {t: self.tensor(t, layout) for t, layout in zip(tensors_in(value), found.tensors)}
        args = tuple(self.argument(a, moved) for a in value.args)
        call = value.replace(args=args, attrs=value.attrs.with_(**found.attrs), struct_info=None)
        if value.op.name == "permute_dims" and list(call.attrs["axes"]) == sorted(call.attrs["axes"]):
            return self.result(binding, call.args[0], found.results)
        return self.result(binding, call.replace(struct_info=self.infer(call)), found.results)

    def note_permutation(self, var: relax.Var, call: relax.Call) -> None:
        """The tensor that is permuted is a form of the result."""
        source, plain = call.args[0], plain_layout(call.struct_info)
        axes = call.attrs["axes"]
        if plain and isinstance(source, relax.Var):
            order = [a % len(plain) for a in axes] if axes is not None else list(range(len(plain)))[::-1]
            self.forms[var, "".join(plain[order.index(k)] for k in range(len(plain)))] = source

    def layouts(self, call: relax.Call) -> Layouts | None:
        """How a call takes its tensors; None when nothing changes."""
        tensors = tensors_in(call)
        plain = [plain_layout(t.struct_info) for t in tensors]
        if not tensors or None in plain:
            return None
        given = [self.kept[t][1][0] if t in self.kept else p or "" for t, p in zip(tensors, plain)]
        assert isinstance(call.op, relax.Op)
        desired = self.desired(call)
        if not desired and given == plain:
            return None
        found = self.operators.layouts(call, given, desired)
        if found is None or not all(divides(layout, dims(t)) for t, layout in zip(tensors, found.tensors)):
            return None
        infos = call.struct_info.fields if isinstance(call.struct_info, TupleStructInfo) else (call.struct_info,)
        if len(infos) != len(found.results) or any(plain_layout(i) is None for i in infos):
            return None
        shapes = [i.dims if isinstance(i, TensorStructInfo) else None for i in infos]
        if not all(divides(layout, shape) for layout, shape in zip(found.results, shapes)):
            return None
        same = all(call.attrs.get(k) == v for k, v in found.attrs.items())
        return None if same and list(found.tensors) == plain else found

    def result(self, binding: relax.VarBinding, value: relax.Expr, layouts: tuple[str, ...]) -> Iterable[relax.Binding]:
        """A binding to a value that is kept in other layouts: the old variable is it, moved back."""
        info = value.struct_info
        assert info is not None
        wanted = binding.var.struct_info
        infos = wanted.fields if isinstance(wanted, TupleStructInfo) else (wanted,)
        if all(layout == plain_layout(i) for layout, i in zip(layouts, infos)):
            return (binding.replace(value=value),)
        made = value if isinstance(value, relax.Var) else self.emit(binding.var.name, value, info, value.span)
        self.kept[binding.var] = made, layouts
        self.moves.add(binding.var)
        if not isinstance(wanted, TupleStructInfo):
            self.forms[binding.var, layouts[0]] = made
            return (binding.replace(value=self.moved(made, layouts[0], plain_layout(wanted) or "")),)
        fields: list[relax.Expr] = []
        for k, (layout, one) in enumerate(zip(layouts, wanted.fields)):
            item = self.noted(binding.var.name, relax.TupleGetItem(made, k))
            plain = plain_layout(one) or ""
            fields.append(item if layout == plain else self.noted(binding.var.name, self.moved(item, layout, plain)))
        return (binding.replace(value=relax.Tuple(tuple(fields))),)

    # --- tensors ------------------------------------------------------------------------------------------------------
    def argument(self, value: relax.Expr, moved: Mapping[relax.Expr, relax.Expr]) -> relax.Expr:
        if isinstance(value, relax.Tuple):
            return value.replace(fields=tuple(moved.get(f, f) for f in value.fields))
        return moved.get(value, value)

    def tensor(self, value: relax.Expr, layout: str) -> relax.Expr:
        """A tensor in some layout."""
        plain = plain_layout(value.struct_info)
        if layout == plain:
            return value
        found = self.forms.get((value, layout))
        if found is None or (not self.in_dataflow and isinstance(found, relax.DataflowVar)):
            source, at = value, plain or ""
            if value in self.kept and not is_packed(layout) and not is_packed(self.kept[value][1][0]):
                source, (at,) = self.kept[value]
            hint = value.name if isinstance(value, relax.Var) else "value"
            found = self.forms[value, layout] = self.noted(hint, self.moved(source, at, layout))
        return found

    def noted(self, hint: str, value: relax.Expr) -> relax.Var:
        """A moved tensor, bound to a variable that goes again when nothing uses it."""
        info: StructInfo | None = value.struct_info
        assert info is not None
        made = self.emit(hint, value, info)
        self.moves.add(made)
        return made

    def moved(self, value: relax.Expr, at: str, to: str) -> relax.Call:
        """A tensor moved from one layout to another; one of the two is plain, or both are without blocks."""
        if not is_packed(at) and not is_packed(to):
            return self.call("permute_dims", value, axes=permutation(at, to), span=value.span)
        there = into_blocks(to) if is_packed(to) else out_of_blocks(at)
        return self.call("layout_transform", value, index_map=there, span=value.span)


# --- layouts ----------------------------------------------------------------------------------------------------------
def permutation(at: str, to: str) -> tuple[int, ...]:
    """The dimensions of a tensor in one layout in the order of another."""
    return tuple(at.index(c) for c in to)


def divides(layout: str, shape: tuple[PrimExpr, ...] | None) -> bool:
    """Whether the blocks of a layout provably fill a tensor of some shape."""
    if not is_packed(layout):
        return True
    zero = prim.const(0, prim.INT64)
    return shape is not None and all(
        Analyzer().can_prove_equal(prim.FloorMod(shape[ord(c) - ord("A")], prim.const(size, prim.INT64)), zero)
        for c, size in layout_axes(layout)
        if size
    )


def into_blocks(layout: str) -> IndexMap:
    """The map from plain tensors to those in a layout."""
    axes = layout_axes(layout)
    block = {c: size for c, size in axes if size}
    variables = {c: prim.Var(f"i{ord(c) - ord('A')}", prim.INT64) for c in sorted({c for c, _ in axes})}

    def index(letter: str, size: int) -> PrimExpr:
        var = variables[letter]
        if letter not in block:
            return var
        factor = prim.const(block[letter], prim.INT64)
        return prim.FloorMod(var, factor) if size else prim.FloorDiv(var, factor)

    return IndexMap(tuple(variables.values()), tuple(index(c, size) for c, size in axes))


def out_of_blocks(layout: str) -> IndexMap:
    """The map from tensors in a layout to plain ones."""
    axes = layout_axes(layout)
    variables = {axis: prim.Var(f"i{k}", prim.INT64) for k, axis in enumerate(axes)}
    block = {c: size for c, size in axes if size}

    def index(letter: str) -> PrimExpr:
        outer = variables[letter, 0]
        if letter not in block:
            return outer
        size = block[letter]
        return prim.Add(prim.Mul(outer, prim.const(size, prim.INT64)), variables[letter, size])

    return IndexMap(tuple(variables.values()), tuple(index(c) for c, size in sorted(axes) if not size))
