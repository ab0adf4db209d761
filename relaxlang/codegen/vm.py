"""Lowered Relax functions to the instructions of the virtual machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.runtime.exec_builder import VM, VOID, ExecBuilder
from relaxlang.runtime.executable import Register
from relaxlang.runtime.ndarray import ShapeTuple

# Operators that stand for a builtin of the machine, which takes the machine itself as its first argument.
_WITH_MACHINE = {"vm.alloc_storage": "vm.builtin.alloc_storage"}
_PLAIN = {"vm.alloc_tensor": "vm.builtin.alloc_tensor", "vm.call_tir_dyn": "vm.builtin.call_tir_dyn"}


Note = Callable[[str, relax.Binding, Any, int], None]
"""Is told of each binding: the function, the binding, its operand, and how many instructions of the function compute it
and what stands before it."""


def emit_functions(mod: IRModule, builder: ExecBuilder, note: Note | None = None) -> None:
    """Emit every Relax function of a lowered module; its PrimFuncs must be declared as kernels already."""
    for name, func in mod.relax_functions():
        with builder.function(name, [p.name for p in func.params]):
            _FunctionEmitter(mod, builder, func, name, note).emit()


class _FunctionEmitter:
    """Emits one function: each variable is a register."""

    def __init__(self, mod: IRModule, builder: ExecBuilder, func: relax.Function, name: str, note: Note | None) -> None:
        self.mod = mod
        self.builder = builder
        self.func = func
        self.name = name
        self.note = note
        self.values: dict[relax.Var, Any] = {p: builder.param(k) for k, p in enumerate(func.params)}

    def emit(self) -> None:
        """Emit the body and the return of its value."""
        self.builder.emit_ret(self.sequence(self.func.body))

    def sequence(self, seq: relax.SeqExpr) -> Any:
        """Emit the bindings of a sequence; the operand that holds its value."""
        for block in seq.blocks:
            for binding in block.bindings:
                operand = self.values[binding.var] = self.bound(binding)
                if self.note is not None:
                    self.note(self.name, binding, operand, self.builder.position)
        return self.operand(seq.body)

    def bound(self, binding: relax.Binding) -> Any:
        """The operand that holds a bound value."""
        if isinstance(binding, relax.VarBinding) and isinstance(binding.value, relax.Call):
            return self.call(binding.value, wanted=binding.var.name != "_")
        return self.operand(binding.value)

    def operand(self, value: relax.Expr) -> Any:
        """The operand for a value: a register, a constant, an immediate, a function."""
        emit = _OPERAND.get(value.__class__)
        if emit is None:
            fail("RLX5020", f"`{type(value).__name__}` must be lowered before code generation", value.span)
        return emit(self, value)

    # --- values -------------------------------------------------------------------------------------------------------
    def var(self, value: relax.Var) -> Any:
        if value not in self.values:
            fail("RLX5021", f"the variable `{value.name}` is not defined here", value.span)
        return self.values[value]

    def shape(self, value: relax.ShapeExpr) -> Any:
        dims = [d.value for d in value.values if isinstance(d, prim.IntImm)]
        if len(dims) != len(value.values):
            fail("RLX5020", f"the shape `{value}` is symbolic: run `vm-shape-lower` before code generation", value.span)
        return self.builder.convert_constant(ShapeTuple(dims))

    def prim_value(self, value: relax.PrimValue) -> Any:
        node = value.value
        if isinstance(node, prim.IntImm):
            return (
                self.builder.convert_constant(bool(node.value)) if node.dtype.is_bool else self.builder.imm(node.value)
            )
        if isinstance(node, (prim.FloatImm, prim.StringImm)):
            return self.builder.convert_constant(node.value)
        fail("RLX5020", f"the value `{node}` is symbolic: run `vm-shape-lower` before code generation", value.span)

    def tuple_value(self, value: relax.Tuple) -> Register:
        return self.builder.emit_call("vm.builtin.make_tuple", [self.operand(f) for f in value.fields])

    def item(self, value: relax.TupleGetItem) -> Register:
        return self.builder.emit_call("vm.builtin.tuple_getitem", [self.operand(value.tuple_value), value.index])

    def global_var(self, value: relax.GlobalVar) -> Any:
        target = self.mod.functions.get(value.name)
        if isinstance(target, relax.ExternFunc):
            return self.builder.func(target.name)
        return self.builder.func(value.name)

    def conditional(self, value: relax.If) -> Register:
        builder = self.builder
        otherwise, end, result = builder.label(), builder.label(), builder.register()
        builder.emit_if(builder.emit_call("vm.builtin.read_if_cond", [self.operand(value.condition)]), otherwise)
        before = dict(self.values)
        builder.emit_call("vm.builtin.copy", [self.sequence(value.true_branch)], dst=result)
        builder.emit_goto(end)
        builder.place(otherwise)
        self.values = dict(before)
        builder.emit_call("vm.builtin.copy", [self.sequence(value.false_branch)], dst=result)
        builder.place(end)
        self.values = before
        return result

    # --- calls --------------------------------------------------------------------------------------------------------
    def call(self, call: relax.Call, wanted: bool = True) -> Any:
        """Emit a call; its result goes to a register unless nobody wants it."""
        dst = None if wanted else VOID
        op = call.op
        if isinstance(op, relax.Op):
            return self.op_call(op.name, call, dst)
        args = [self.operand(a) for a in call.args]
        if isinstance(op, relax.ExternFunc):
            return self.builder.emit_call(op.name, args, dst)
        if isinstance(op, relax.GlobalVar):
            target = self.mod.functions.get(op.name)
            if isinstance(target, PrimFunc) and target.ret_type is None:
                return self.builder.emit_call(op.name, args, VOID)
            return self.builder.emit_call(self.global_var(op), args, dst)
        callee = self.operand(op)
        return self.builder.emit_call("vm.builtin.invoke_closure", [VM, callee, *args], dst)

    def op_call(self, name: str, call: relax.Call, dst: Register | None) -> Any:
        if name == "call_builtin_with_ctx":
            callee, args = call.args
            assert isinstance(callee, relax.ExternFunc) and isinstance(args, relax.Tuple)
            return self.builder.emit_call(callee.name, [VM, *(self.operand(a) for a in args.fields)], dst)
        if name == "vm.kill_object":
            killed = self.operand(call.args[0])
            if isinstance(killed, Register):
                self.builder.emit_call("vm.builtin.null_value", [], killed)
            return self.builder.emit_call("vm.builtin.null_value", [], dst)
        if name in _WITH_MACHINE:
            return self.builder.emit_call(_WITH_MACHINE[name], [VM, *(self.operand(a) for a in call.args)], dst)
        if name in _PLAIN:
            return self.builder.emit_call(_PLAIN[name], [self.operand(a) for a in call.args], dst)
        fail(
            "RLX5020",
            f"the operator `R.{name}` must be lowered before code generation",
            call.span,
            help='build with `pipeline="minimum"`, or run `call-tir-rewrite` and `vm-memory-lower`',
        )


def _constant(emitter: _FunctionEmitter, value: Any) -> Any:
    return emitter.builder.convert_constant(value.data)


def _literal(emitter: _FunctionEmitter, value: Any) -> Any:
    held: DType | str = value.value
    return emitter.builder.convert_constant(held)


_OPERAND: dict[type, Callable[[_FunctionEmitter, Any], Any]] = {
    relax.Var: _FunctionEmitter.var,
    relax.DataflowVar: _FunctionEmitter.var,
    relax.Constant: _constant,
    relax.StringImm: _literal,
    relax.DataTypeImm: _literal,
    relax.ShapeExpr: _FunctionEmitter.shape,
    relax.PrimValue: _FunctionEmitter.prim_value,
    relax.Tuple: _FunctionEmitter.tuple_value,
    relax.TupleGetItem: _FunctionEmitter.item,
    relax.GlobalVar: _FunctionEmitter.global_var,
    relax.ExternFunc: lambda emitter, value: emitter.builder.func(value.name),
    relax.If: _FunctionEmitter.conditional,
    relax.Call: _FunctionEmitter.call,
    relax.SeqExpr: _FunctionEmitter.sequence,
}
