"""`BlockBuilder`: Relax functions made by Python code, binding by binding.

    from relaxlang import BlockBuilder, op

    bb = BlockBuilder()
    x = bb.var("x", 'R.Tensor((n, 784), "float32")')
    w = bb.var("w", 'R.Tensor((784, 128), "float32")')
    with bb.function("main", [x, w]):
        with bb.dataflow():
            h = bb.emit(op.matmul(x, w))
            y = bb.emit_output(op.nn.relu(h))
        bb.emit_func_output(y)
    mod = bb.get()

Nested expressions are bound to variables of their own first, and struct info is inferred, so that what is made is in
normal form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from relaxlang.base.arguments import checked
from relaxlang.base.diagnostics import fail
from relaxlang.base.recursion import deep_recursion
from relaxlang.builder import construct, te
from relaxlang.builder.normalize import Normalizer
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.module import AnyFunc, IRModule, function_info
from relaxlang.ir.struct_info import OBJECT, StructInfo
from relaxlang.ir.structural import structural_equal, structural_hash
from relaxlang.ir.tir import PrimFunc
from relaxlang.ops import Operators, default_operators
from relaxlang.ops.python_api import Namespace
from relaxlang.syntax.struct_info import BaseCheck, base_check, bound_vars, erase


class _Frame:
    """A function in the making: finished blocks, the bindings of the open one, the values of variables."""

    def __init__(self, name: str, params: Sequence[relax.Var] | None) -> None:
        self.name = name
        self.params = None if params is None else tuple(params)
        self.blocks: list[relax.BindingBlock] = []
        self.bindings: list[relax.Binding] = []
        self.dataflow = False
        self.values: dict[relax.Var, relax.Expr] = {}
        self.names: set[str] = {p.name for p in params or ()}
        self.output: relax.Expr | None = None

    def close(self, kind: type[relax.BindingBlock]) -> None:
        """End the open block."""
        if self.bindings:
            self.blocks.append(kind(tuple(self.bindings)))
            self.bindings = []


class BlockBuilder:
    """Builds a module, starting from `mod` when one is given. Not to be shared between threads.

    Names of symbolic dimensions in struct info given as text (`bb.var("x", 'R.Tensor((n, 4), "float32")')`) mean one
    variable each until the next function is finished. Misuse raises `DiagnosticError` RLX0450 or RLX0451.
    """

    @checked
    def __init__(self, mod: IRModule | None = None, operators: Operators | None = None) -> None:
        self._mod = mod if mod is not None else IRModule({})
        self._operators = operators or default_operators(self._mod)
        self._frames: list[_Frame] = []
        self._dims: construct.Dims = {}
        self._kernels: dict[int, list[str]] = {}
        for name, function in self._mod.prim_funcs():
            if function.is_private:
                self._kernels.setdefault(structural_hash(function), []).append(name)

    @property
    def op(self) -> Namespace:
        """The operators as functions, as `relaxlang.op`, those that the module defines included."""
        return Namespace("", self._operators)

    # --- leaves -------------------------------------------------------------------------------------------------------
    @checked
    def dim(self, name: str) -> prim.Var:
        """The symbolic dimension of that name."""
        return self._dims.setdefault(name, construct.dim(name))

    @checked
    def var(self, name: str, info: StructInfo | str = OBJECT) -> relax.Var:
        """A variable, for a parameter; `info` is struct info or its text."""
        return construct.var(name, info, self._dims)

    @checked
    def struct_info(self, info: StructInfo | str) -> StructInfo:
        """Struct info from its text."""
        return construct.struct_info(info, self._dims) if isinstance(info, str) else info

    # --- functions and blocks -----------------------------------------------------------------------------------------
    @checked
    @contextmanager
    def function(
        self,
        name: str,
        params: Sequence[relax.Var] | None = None,
        *,
        pure: bool = True,
        private: bool = False,
        attrs: Mapping[str, Any] | None = None,
        ret: StructInfo | str | None = None,
    ) -> Iterator[relax.GlobalVar]:
        """Open a function; it is added to the module when the block ends.

        `params` may also be given to `emit_func_output`. `ret` declares the result, which a recursive function must;
        the value of the `with` is the variable that stands for the function.
        """
        frame = _Frame(name, params)
        declared = None if ret is None else self.struct_info(ret)
        info = None
        if params is not None:
            infos = tuple(p.struct_info for p in params)
            info = relax.Function(tuple(params), relax.SeqExpr((), relax.Tuple(())), declared, pure).struct_info
            self._dims.update({v.name: v for v in bound_vars(infos) if v.name not in self._dims})
        self._frames.append(frame)
        try:
            yield relax.GlobalVar(name, info)
            self._finish(frame, pure, private, Attrs(attrs), declared)
        finally:
            self._frames.pop()
            if not self._frames:
                self._dims = {}

    def _finish(self, frame: _Frame, pure: bool, private: bool, attrs: Attrs, declared: StructInfo | None) -> None:
        if frame.output is None:
            fail(
                "RLX0450", f"the function `{frame.name}` has no result", help="end it with `bb.emit_func_output(value)`"
            )
        if frame.params is None:
            fail("RLX0450", f"the parameters of `{frame.name}` are not known", help="pass them to `bb.function`")
        frame.close(relax.BindingBlock)
        body = relax.SeqExpr(tuple(frame.blocks), frame.output)
        inferred = body.struct_info or OBJECT
        if declared is not None and base_check(declared, inferred) is not BaseCheck.HOLDS:
            fail("RLX0220", f"the result of `{frame.name}` is declared as `{declared}`, and is `{inferred}`")
        result = declared or erase(inferred, bound_vars(tuple(p.struct_info for p in frame.params)), set(frame.params))
        if not private:
            attrs = Attrs({"global_symbol": frame.name, **attrs})
        made = relax.Function(frame.params, body, result, pure, attrs)
        self._mod = self._mod.with_function(frame.name, made)

    @contextmanager
    def dataflow(self) -> Iterator[None]:
        """Open a dataflow block: what is emitted in it ends with it, what `emit_output` gives does not."""
        frame = self._frame("bb.dataflow")
        if frame.dataflow:
            fail("RLX0450", "a dataflow block has no dataflow block inside")
        frame.close(relax.BindingBlock)
        frame.dataflow = True
        yield
        frame.close(relax.DataflowBlock)
        frame.dataflow = False

    def _frame(self, what: str) -> _Frame:
        if not self._frames:
            fail("RLX0450", f"`{what}` needs an open function", help='write `with bb.function("main", [x]):` around it')
        frame = self._frames[-1]
        if frame.output is not None:
            fail("RLX0450", f"`{what}` after the result of `{frame.name}`")
        return frame

    @contextmanager
    def sequence(self) -> Iterator[list[relax.SeqExpr]]:
        """Open a run of bindings of its own inside of a function, for a branch of `relax.If`.

        It ends with `emit_func_output`; the value of the `with` is a list that then holds the finished expression.
        """
        outer = self._frame("bb.sequence")
        if outer.dataflow:
            fail("RLX0450", "a dataflow block has no branches inside")
        frame = _Frame(outer.name, ())
        frame.names, frame.values = outer.names, outer.values
        self._frames.append(frame)
        finished: list[relax.SeqExpr] = []
        try:
            yield finished
            if frame.output is None:
                fail("RLX0450", "a sequence has no result", help="end it with `bb.emit_func_output(value)`")
            frame.close(relax.BindingBlock)
            finished.append(relax.SeqExpr(tuple(frame.blocks), frame.output))
        finally:
            self._frames.pop()

    # --- bindings -----------------------------------------------------------------------------------------------------
    @checked
    def emit(self, value: Any, name: str | None = None) -> relax.Var:
        """Bind a value to a new variable; `value` may be anything that `construct.as_expr` takes."""
        frame = self._frame("bb.emit")
        return self._bind(value, name, local=frame.dataflow)

    @checked
    def emit_output(self, value: Any, name: str | None = None) -> relax.Var:
        """Bind a value to a variable that outlives the open dataflow block."""
        if not self._frame("bb.emit_output").dataflow:
            fail(
                "RLX0450", "`bb.emit_output` needs an open dataflow block", help="write `with bb.dataflow():` around it"
            )
        return self._bind(value, name, local=False)

    @checked
    def match_cast(self, value: Any, info: StructInfo | str, name: str | None = None) -> relax.Var:
        """State that a value is of struct info, which is checked at run time; new names in it become dimensions."""
        frame = self._frame("bb.match_cast")
        operand = self._operand(value)
        stated = self.struct_info(info)
        if base_check(stated, operand.struct_info or OBJECT) is BaseCheck.NEVER:
            fail("RLX0220", f"a `{operand.struct_info}` can't be cast to `{stated}`")
        var = self._var(name, stated, frame.dataflow)
        frame.bindings.append(relax.MatchCast(var, operand, stated))
        frame.values[var] = operand
        return var

    @checked
    def emit_func_output(self, value: Any, params: Sequence[relax.Var] | None = None) -> relax.GlobalVar:
        """State the result of the open function; a tuple or list is a tuple of values."""
        frame = self._frame("bb.emit_func_output")
        if frame.dataflow:
            fail("RLX0450", "the result of a function is stated after its dataflow block")
        if params is not None:
            frame.params = tuple(params)
        output = self._operand(value)
        for leaf in output.fields if isinstance(output, relax.Tuple) else (output,):
            if isinstance(leaf, relax.DataflowVar):
                fail("RLX0432", f"`{leaf.name}` ends with its dataflow block", help="make it by `bb.emit_output`")
        frame.output = output
        return relax.GlobalVar(frame.name)

    @checked
    def normalize(self, value: Any) -> relax.Expr:
        """An expression with its operands bound to variables and its struct info inferred, not bound itself."""
        frame = self._frame("bb.normalize")
        normalizer = self._normalizer(frame)
        with deep_recursion():
            made: relax.Expr = normalizer(construct.as_expr(value))
        self._take(frame, normalizer)
        return made

    def _operand(self, value: Any) -> relax.Expr:
        """A value as an operand: bound to a variable unless it is a leaf."""
        frame = self._frames[-1]
        normalizer = self._normalizer(frame)
        with deep_recursion():
            operand = normalizer.bind(normalizer(construct.as_expr(value)))
        self._take(frame, normalizer)
        return operand

    def _normalizer(self, frame: _Frame) -> Normalizer:
        normalizer = Normalizer(self._mod.functions, self._operators, self.get_unique_name)
        normalizer.in_dataflow = frame.dataflow
        return normalizer

    def _take(self, frame: _Frame, normalizer: Normalizer) -> None:
        """Append the bindings that a normaliser made."""
        for binding in normalizer.pending:
            frame.bindings.append(binding)
            frame.values[binding.var] = binding.value

    def _bind(self, value: Any, name: str | None, local: bool) -> relax.Var:
        frame = self._frames[-1]
        made = self.normalize(value)
        infer = self._normalizer(frame).infer
        var = self._var(name, made.struct_info or infer(made), local)
        frame.bindings.append(relax.VarBinding(var, made))
        frame.values[var] = made
        return var

    def _var(self, name: str | None, info: StructInfo, local: bool) -> relax.Var:
        kind = relax.DataflowVar if local else relax.Var
        return kind(self.get_unique_name(name or ("lv" if local else "gv")), info)

    @checked
    def get_unique_name(self, hint: str) -> str:
        """`hint`, or `hint1`, `hint2`, … when the open function (or else the module) has it already."""
        if not self._frames:
            return self._mod.unique_name(hint)
        taken, name, n = self._frames[-1].names, hint, 0
        while name in taken:
            n += 1
            name = f"{hint}{n}" if not hint[-1:].isdigit() else f"{hint}_{n}"
        taken.add(name)
        return name

    @checked
    def lookup_binding(self, var: relax.Var) -> relax.Expr | None:
        """What a variable of the open function is bound to; None for parameters and strangers."""
        return self._frame("bb.lookup_binding").values.get(var)

    # --- kernels ------------------------------------------------------------------------------------------------------
    @checked
    def call_te(
        self, function: Callable[..., Any], *args: Any, primfunc_name_hint: str | None = None, **kwargs: Any
    ) -> relax.Call:
        """A `call_tir` of the kernel that `function` makes of tensors (see `relaxlang.te`); the kernel is added to the
        module. Values of Relax among the arguments reach the function as tensors, shapes and scalars."""
        given = [self._argument(a) for a in args]
        kernel = te.kernel_of(function, given, {k: self._argument(v) for k, v in kwargs.items()})
        callee = self.add_func(kernel.func, primfunc_name_hint or _name_of(function))
        values: tuple[relax.Expr, ...] = (callee, relax.Tuple(kernel.args))
        if kernel.tir_vars:
            values += (relax.ShapeExpr(tuple(prim.cast(v, prim.INT64) for v in kernel.tir_vars)),)
        return relax.Call(relax.Op("call_tir"), values, EMPTY, (kernel.out,), kernel.out)

    def _argument(self, value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(self._argument(v) for v in value)
        if isinstance(value, relax.Expr) or hasattr(value, "__array__"):
            return self._operand(value) if self._frames else construct.as_expr(value)
        return value

    @checked
    def emit_te(
        self, function: Callable[..., Any], *args: Any, primfunc_name_hint: str | None = None, **kwargs: Any
    ) -> relax.Var:
        """Emit a `call_te`."""
        return self.emit(self.call_te(function, *args, primfunc_name_hint=primfunc_name_hint, **kwargs))

    # --- the module ---------------------------------------------------------------------------------------------------
    @checked
    def add_func(self, function: AnyFunc, name: str) -> relax.GlobalVar:
        """Add a function, under `name` or, when that is taken, a name like it; a private PrimFunc that equals one of
        the module is that one."""
        if isinstance(function, PrimFunc) and function.is_private:
            same = self._kernels.setdefault(structural_hash(function), [])
            for known in same:
                if structural_equal(self._mod[known], function):
                    return self._mod.global_var(known)
            name = self._mod.unique_name(name)
            same.append(name)
        else:
            name = self._mod.unique_name(name)
            if "global_symbol" in getattr(function, "attrs", {}):
                function = function.replace(attrs=function.attrs.set("global_symbol", name))  # type: ignore[union-attr]
        self._mod = self._mod.with_function(name, function)
        return relax.GlobalVar(name, function_info(function))

    @checked
    def update_func(self, name: relax.GlobalVar | str, function: AnyFunc) -> None:
        """Put a function in the place of one of the module."""
        key = name if isinstance(name, str) else name.name
        _ = self._mod[key]
        self._mod = self._mod.with_function(key, function)
        self._kernels = {h: [n for n in names if n != key] for h, names in self._kernels.items()}

    def get(self) -> IRModule:
        """The module as it is now, without what is still open."""
        return self._mod

    def finalize(self) -> IRModule:
        """The finished module. RLX0450 while a function is open."""
        if self._frames:
            fail("RLX0450", f"the function `{self._frames[-1].name}` is still open")
        return self._mod


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "te_func")
    return name if name.isidentifier() else "te_func"
