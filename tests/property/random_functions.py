"""Random Relax functions: every binding and expression, symbolic shapes, closures, conditionals, dataflow blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.ir import prim, relax
from relaxlang.ir import struct_info as si
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.module import VDevice
from relaxlang.ir.prim import BOOL, INT64, IntImm, PrimExpr
from relaxlang.ops import python_api as op
from relaxlang.syntax.core_ops import CORE_OPS
from relaxlang.syntax.struct_info import BaseCheck, base_check, bound_vars, erase
from tests.property import random_values as values
from tests.property.choices import Choices
from tests.property.random_prim_exprs import Expressions, Scope

ELEMENTS = [t for t in values.SCALARS if t not in values.NARROW]
UNARY = (op.exp, op.nn.relu, op.nn.softmax, op.negative, op.tanh)
BINARY = (op.add, op.multiply, op.subtract, op.maximum, op.divide)


class Functions:
    """Makes the Relax functions of one module: `devices` are its virtual devices, `kernels` the names of PrimFuncs that
    copy a float32 tensor of a rank, `others` functions made before."""

    def __init__(self, c: Choices, devices: tuple[VDevice, ...], kernels: dict[str, int]) -> None:
        self.c = c
        self.devices = devices
        self.kernels = kernels
        self.others: dict[str, relax.Function] = {}
        self.scalars = Expressions(c, plain=True)
        self.pure = True

    def function(self, attrs: Attrs) -> relax.Function:
        """A function of the module with those attributes."""
        self.pure = self.c.chance()
        return self.make(attrs, (), (), 8)

    def make(
        self, attrs: Attrs, outer: tuple[relax.Var, ...], outer_dims: tuple[prim.Var, ...], length: int
    ) -> relax.Function:
        """A function that may use what is around it."""
        c, pure = self.c, self.pure
        dims: list[prim.Var] = []
        params = tuple([
            relax.Var(values.name(c), self.info([*outer_dims, *dims], defining=dims)) for _ in range(c.number(0, 3))
        ])  # fmt: skip
        bound = bound_vars(tuple([p.struct_info for p in params]))
        body = Body(self, [*outer_dims, *bound], [*outer, *params])
        made = body.sequence(length)
        known = made.body.struct_info or si.OBJECT
        result: si.StructInfo = erase(known, [*bound, *outer_dims], set(params)) if c.chance(4) is False else si.OBJECT
        self.pure = pure
        return relax.Function(params, made, result, pure, attrs)

    # --- struct info --------------------------------------------------------------------------------------------------
    def info(self, dims: list[prim.Var], depth: int = 2, defining: list[prim.Var] | None = None) -> si.StructInfo:
        """Struct info over the dimensions that exist; `defining`: where new ones may come into being."""
        c = self.c
        kind = c.number(0, 9 if depth else 6)
        if kind <= 3:
            return self.tensor(dims, defining)
        if kind == 4:
            if c.chance():
                return si.shape_info(None, c.pick((-1, 2)))
            return si.shape_info(tuple([self.dim(dims, defining) for _ in range(c.number(0, 3))]))
        if kind == 5:
            of = c.pick((INT64, dtype("float32"), BOOL, dtype("int32"), dtype("uint8")))
            if c.chance() or not of.is_int:
                return si.PrimStructInfo(of)
            return si.PrimStructInfo(INT64, self.dim(dims, defining))
        if kind == 6:
            return si.OBJECT
        if kind == 7:
            return si.TupleStructInfo(c.some(lambda: self.info(dims, depth - 1, defining), 0, 3))
        if kind == 8:
            tensor = self.tensor(dims, defining, plain=True)
            return si.DTensorStructInfo(tensor, c.pick(("mesh[0]", "m")), c.pick(("S[0], R", "R")))
        return self.callable(depth - 1)

    def tensor(
        self, dims: list[prim.Var], defining: list[prim.Var] | None = None, plain: bool = False
    ) -> si.TensorStructInfo:
        """A tensor of known or unknown shape, type and device."""
        c = self.c
        of = c.pick([None, *ELEMENTS])
        device = c.pick(self.devices) if self.devices and not plain and c.chance(4) else None
        if c.chance(4):
            return si.tensor_info(None, of, c.pick((-1, 0, 3)), device)
        return si.tensor_info(tuple([self.dim(dims, defining) for _ in range(c.number(0, 3))]), of, -1, device)

    def dim(self, dims: list[prim.Var], defining: list[prim.Var] | None = None) -> PrimExpr:
        """One dimension."""
        c = self.c
        if defining is not None and c.chance(3):
            fresh = (prim.SizeVar if c.chance(4) else prim.Var)(values.name(c), INT64)
            defining.append(fresh)
            dims.append(fresh)
            return fresh
        if dims and c.chance():
            return c.pick(dims)
        if dims and c.chance(3):
            made = self.scalars.expr(INT64, Scope(tuple(dims)), 2)
            return made if not isinstance(made, IntImm) or made.value >= 0 else IntImm(INT64, 3)
        return IntImm(INT64, c.pick((1, 2, 4, 0, 784, (1 << 63) - 1)))

    def callable(self, depth: int) -> si.FuncStructInfo:
        """The struct info of a function; its dimensions are its own."""
        c = self.c
        if c.chance(4):
            return si.FuncStructInfo(None, si.OBJECT, c.chance(), c.pick((None, "my.derive")))
        own: list[prim.Var] = []
        params = c.some(lambda: self.info(own, depth, own), 0, 2)
        return si.FuncStructInfo(params, self.info(bound_vars(params), depth), c.chance())


class Body:
    """The bindings of one function, or of a branch: what they may use grows as they are made."""

    def __init__(self, functions: Functions, dims: list[prim.Var], variables: list[relax.Var]) -> None:
        self.of = functions
        self.c = functions.c
        self.dims = dims
        self.vars = variables
        self.dataflow = False

    def sequence(self, length: int) -> relax.SeqExpr:
        """Blocks of bindings, then a value."""
        blocks: list[relax.BindingBlock] = []
        for _ in range(self.c.number(0, 3)):
            kind = self.c.pick((relax.BindingBlock, relax.DataflowBlock))
            if kind is relax.BindingBlock and blocks and blocks[-1].__class__ is kind:
                continue
            blocks.append(self.block(kind, length))
        return relax.SeqExpr(tuple(blocks), self.leaf())

    def block(self, kind: type[relax.BindingBlock], length: int) -> relax.BindingBlock:
        """A block of at least one binding."""
        before, self.dataflow = list(self.vars), kind is relax.DataflowBlock
        made = [self.binding(length) for _ in range(self.c.number(1, max(length // 2, 1)))]
        self.dataflow = False
        self.vars[:] = [*before, *(b.var for b in made if not isinstance(b.var, relax.DataflowVar))]
        return kind(tuple(made))

    def var(self, info: si.StructInfo) -> relax.Var:
        """A new variable, local to the dataflow block or not."""
        kind = relax.DataflowVar if self.dataflow and self.c.chance() else relax.Var
        made: relax.Var = kind(values.name(self.c), info)
        self.vars.append(made)
        return made

    def binding(self, length: int) -> relax.Binding:
        """`y = value`, `y = match_cast(…)`, a conditional or a function."""
        c = self.c
        if c.chance(5) and self.vars:
            return self.match_cast()
        if not self.dataflow and length > 1 and c.spend(4):
            if c.chance(5):
                return self.conditional(length // 2)
            if c.chance(6):
                return self.closure(length // 2)
        value = self.value()
        known = value.struct_info or si.OBJECT
        return relax.VarBinding(self.var(known if c.chance(6) is False else si.OBJECT), value)

    def match_cast(self) -> relax.Binding:
        """A cast that may define dimensions."""
        new: list[prim.Var] = []
        value = self.c.pick(self.vars)
        info = self.of.info(list(self.dims), 1, new)
        if base_check(info, value.struct_info or si.OBJECT) is BaseCheck.NEVER:
            info = si.OBJECT  # a cast that cannot succeed is an error
        self.dims += bound_vars((info,))
        self.dims[:] = list(dict.fromkeys(self.dims))
        return relax.MatchCast(self.var(info), value, info)

    def conditional(self, length: int) -> relax.Binding:
        """Two branches with values of the same struct info."""
        test = relax.Constant(np.array(self.c.chance()))
        info = self.of.info(list(self.dims), 1)
        branches = [self.branch(info, length) for _ in range(2)]
        return relax.VarBinding(self.var(info), relax.If(test, branches[0], branches[1], info))

    def branch(self, info: si.StructInfo, length: int) -> relax.SeqExpr:
        """A branch whose last binding gives a value of that struct info."""
        inner = Body(self.of, list(self.dims), list(self.vars))
        made = inner.sequence(length)
        result = relax.Var(values.name(self.c), info)
        name = relax.ExternFunc("my.make")
        last = relax.VarBinding(result, relax.Call(relax.Op("call_pure_packed"), (name,), EMPTY, (info,), info))
        blocks = list(made.blocks)
        if blocks and blocks[-1].__class__ is relax.BindingBlock:
            blocks[-1] = relax.BindingBlock((*blocks[-1].bindings, last))
        else:
            blocks.append(relax.BindingBlock((last,)))
        return relax.SeqExpr(tuple(blocks), result)

    def closure(self, length: int) -> relax.Binding:
        """A function inside the function."""
        made = self.of.make(EMPTY, tuple(self.vars), tuple(self.dims), length)
        return relax.VarBinding(self.var(made.struct_info), made)

    # --- values -------------------------------------------------------------------------------------------------------
    def leaf(self, depth: int = 2) -> relax.Expr:
        """A value that stands without being computed."""
        c = self.c
        kind = c.number(0, 7 if depth else 5)
        if kind <= 1 and self.vars:
            return c.pick(self.vars)
        if kind == 2:
            return relax.ShapeExpr(tuple([self.of.dim(list(self.dims)) for _ in range(c.number(0, 3))]))
        if kind == 3:
            return relax.PrimValue(self.scalar())
        if kind == 4:
            return relax.StringImm(c.pick(values.TEXTS))
        if kind == 5:
            return relax.DataTypeImm(c.pick([*values.SCALARS, *values.VECTORS]))
        if kind == 6:
            return relax.Tuple(c.some(lambda: self.leaf(depth - 1), 0, 3))
        return relax.Constant(values.array(c))

    def scalar(self) -> PrimExpr:
        """A scalar: a constant of any type, or arithmetic with dimensions."""
        if self.c.chance():
            return self.of.dim(list(self.dims))
        return values.constant(self.c, self.c.pick(values.SCALARS))

    def value(self) -> relax.Expr:
        """What a variable is bound to."""
        c = self.c
        options: list[Callable[[], relax.Expr]] = [self.leaf, self.operator, self.pure_packed, self.item, self.dps]
        if not self.of.pure and not self.dataflow:
            options += [self.packed, self.builtin, self.impure_core]
        if self.of.kernels:
            options.append(self.kernel)
        options += [self.core, self.called, self.make_closure]
        return c.pick(options)()

    def operator(self) -> relax.Expr:
        """A call of an operator of the library, where the variables fit one."""
        tensors = [v for v in self.vars if isinstance(v.struct_info, si.TensorStructInfo)]
        if not tensors:
            return self.leaf()
        a, b = self.c.pick(tensors), self.c.pick(tensors)
        try:
            made: relax.Expr = self.c.pick(UNARY)(a) if self.c.chance() else self.c.pick(BINARY)(a, b)
            if self.c.chance(4):
                made = op.astype(a, self.c.pick(("float32", "int8", "bfloat16", "float8_e4m3fn")))
        except DiagnosticError:
            return self.leaf()
        return made

    def infos(self) -> tuple[si.StructInfo, ...]:
        """What a packed call states about its result."""
        return self.c.some(lambda: self.of.info(list(self.dims), 1), 0, 2)

    def args(self) -> tuple[relax.Expr, ...]:
        """Some arguments."""
        return self.c.some(self.leaf, 0, 3)

    def core_call(
        self, name: str, args: tuple[relax.Expr, ...], attrs: Attrs = EMPTY, infos: tuple[si.StructInfo, ...] = ()
    ) -> relax.Expr:
        """A structural call with its struct info."""
        call = relax.Call(relax.Op(name), args, attrs, infos)
        return call.replace(struct_info=CORE_OPS[name].infer(call))

    def packed(self) -> relax.Expr:
        """`R.call_packed`."""
        infos = self.infos()
        known = si.OBJECT if not infos else infos[0] if len(infos) == 1 else si.TupleStructInfo(infos)
        return relax.Call(relax.ExternFunc(self.c.pick(values.TEXTS)), self.args(), EMPTY, infos, known)

    def pure_packed(self) -> relax.Expr:
        """`R.call_pure_packed`, and the kind that works in place."""
        name = relax.ExternFunc(self.c.pick(values.TEXTS))
        if self.c.chance(4):
            info = self.of.info(list(self.dims), 1)
            attrs = Attrs({"inplace_indices": self.c.pick(((0,), (-1, 0)))})
            return self.core_call("call_inplace_packed", (name, self.leaf(), *self.args()), attrs, (info,))
        return self.core_call("call_pure_packed", (name, *self.args()), EMPTY, self.infos())

    def builtin(self) -> relax.Expr:
        """`R.call_builtin_with_ctx`."""
        name = relax.ExternFunc("vm.builtin.x")
        return self.core_call("call_builtin_with_ctx", (name, relax.Tuple(self.args())), EMPTY, self.infos())

    def dps(self) -> relax.Expr:
        """`R.call_dps_packed`."""
        tensors = self.c.some(lambda: self.of.tensor(list(self.dims), plain=True), 1, 2)
        tensors = tuple([t if t.dims is not None else si.tensor_info((), t.dtype) for t in tensors])
        info: si.StructInfo = tensors[0] if len(tensors) == 1 else si.TupleStructInfo(tensors)
        return self.core_call("call_dps_packed", (relax.ExternFunc("k"), relax.Tuple(self.args())), EMPTY, (info,))

    def kernel(self) -> relax.Expr:
        """`R.call_tir` of a kernel that fits, in place or not."""
        float32 = dtype("float32")
        fits = [
            (v, name) for v in self.vars for name, rank in self.of.kernels.items()
            if isinstance(v.struct_info, si.TensorStructInfo) and v.struct_info.dtype is float32
            and v.struct_info.dims is not None and v.struct_info.ndim == rank and v.struct_info.vdevice is None
        ]  # fmt: skip
        if not fits:
            return self.leaf()
        arg, name = self.c.pick(fits)
        assert isinstance(arg.struct_info, si.TensorStructInfo)
        args = (relax.GlobalVar(name), relax.Tuple((arg,)))
        return self.core_call("call_tir", args, EMPTY, (si.tensor_info(arg.struct_info.dims, float32),))

    def core(self) -> relax.Expr:
        """Structural operators that are called in the plain way."""
        c = self.c
        tensors = [v for v in self.vars if isinstance(v.struct_info, si.TensorStructInfo)]
        kind = c.number(0, 3)
        if kind == 0 or not tensors:
            return self.core_call("null_value", ())
        if kind == 1:
            return self.core_call("shape_of", (c.pick(tensors),))
        if kind == 2 and self.of.devices:
            return self.core_call("to_vdevice", (c.pick(tensors),), Attrs({"dst_vdevice": c.pick(self.of.devices)}))
        attrs = Attrs({"device_type": "cpu", "index": c.number(0, 2), "memory_scope": "global"})
        return self.core_call("hint_on_device", (c.pick(tensors),), attrs)

    def impure_core(self) -> relax.Expr:
        """Closures by name."""
        info = self.infos()
        if not self.vars:
            return self.leaf()
        return self.core_call("invoke_closure", (self.c.pick(self.vars), relax.Tuple(self.args())), EMPTY, info)

    def make_closure(self) -> relax.Expr:
        """A function of the module as a closure."""
        if not self.of.others:
            return self.leaf()
        name = self.c.pick(list(self.of.others))
        callee = relax.GlobalVar(name, self.of.others[name].struct_info)
        return self.core_call("make_closure", (callee, relax.Tuple(())))

    def item(self) -> relax.Expr:
        """A field of a tuple."""
        tuples = [v for v in self.vars if isinstance(v.struct_info, si.TupleStructInfo) and v.struct_info.fields]
        if not tuples:
            return self.leaf()
        of = self.c.pick(tuples)
        assert isinstance(of.struct_info, si.TupleStructInfo)
        return relax.TupleGetItem(of, self.c.number(0, len(of.struct_info.fields) - 1))

    def called(self) -> relax.Expr:
        """A call of a function of the module, or of one that a variable holds, without parameters."""
        fits: list[tuple[relax.Expr, si.FuncStructInfo]] = []
        for name, function in self.of.others.items():
            info = function.struct_info
            if isinstance(info, si.FuncStructInfo):
                fits.append((relax.GlobalVar(name, info), info))
        fits += [(v, v.struct_info) for v in self.vars if isinstance(v.struct_info, si.FuncStructInfo)]
        impure = not self.of.pure and not self.dataflow
        fits = [(f, info) for f, info in fits if info.params == () and (info.purity or impure)]
        if not fits:
            return self.leaf()
        callee, info = self.c.pick(fits)
        return relax.Call(callee, (), EMPTY, (), info.ret)
