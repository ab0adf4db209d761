"""Normal form: every operand a leaf, every value bound to a variable, every struct info filled in."""

from __future__ import annotations

from collections.abc import Callable

from relaxlang.builder.infer import Inference
from relaxlang.ir import relax
from relaxlang.ir.module import AnyFunc
from relaxlang.ir.struct_info import OBJECT, StructInfo
from relaxlang.ir.visit import Rewriter, on
from relaxlang.ops import Operators

# What may stand as an operand; tuples of leaves count as leaves too.
LEAVES = (
    relax.Var, relax.GlobalVar, relax.ExternFunc, relax.Op, relax.UnknownOp, relax.Constant, relax.ShapeExpr,
    relax.PrimValue,
    relax.StringImm, relax.DataTypeImm,
)  # fmt: skip


class Normalizer(Rewriter):
    """Brings functions into normal form: nested expressions are bound to new variables before the binding they stand
    in, and expressions without struct info get theirs. `unique` makes the names of new variables from hints."""

    def __init__(
        self, functions: dict[str, AnyFunc], operators: Operators, unique: Callable[[str], str] = lambda hint: hint
    ) -> None:
        self.unique = unique
        self.infer = Inference(functions, operators)
        self.pending: list[relax.Binding] = []
        self.in_dataflow = False
        self.renamed: dict[relax.Var, relax.Var] = {}
        self.made: dict[int, tuple[relax.Expr, relax.Expr]] = {}

    def bind(self, value: relax.Expr) -> relax.Expr:
        """`value` as an operand: itself when it is a leaf, else a new variable bound to it."""
        if isinstance(value, LEAVES):
            return value
        if isinstance(value, relax.Tuple):
            return self.fields(value)
        kind, hint = (relax.DataflowVar, "lv") if self.in_dataflow else (relax.Var, "gv")
        var = kind(self.unique(hint), self.infer(value), span=value.span)
        self.pending.append(relax.VarBinding(var, value, span=value.span))
        return var

    def operand(self, value: relax.Expr) -> relax.Expr:
        """An expression as an operand; an object that occurs twice is one value, and bound once."""
        if isinstance(value, LEAVES):
            return self.renamed.get(value, value) if isinstance(value, relax.Var) else value
        known = self.made.get(id(value))
        if known is None:
            known = self.made[id(value)] = (value, self.bind(self(value)))
        return known[1]

    def fields(self, value: relax.Tuple) -> relax.Tuple:
        """A tuple whose fields are operands."""
        fields = tuple(self.operand(f) for f in value.fields)
        return value if all(a is b for a, b in zip(fields, value.fields)) else relax.Tuple(fields, span=value.span)

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> relax.Var:
        """A variable, or the one that took its place when its struct info became known."""
        return self.renamed.get(node, node)

    @on(relax.Tuple)
    def tuple_value(self, node: relax.Tuple) -> relax.Tuple:
        """A tuple whose fields are operands."""
        return self.fields(node)

    @on(relax.TupleGetItem)
    def item(self, node: relax.TupleGetItem) -> relax.Expr:
        """A field of an operand; of a tuple that is written out, the field itself."""
        value = self.operand(node.tuple_value)
        if value is node.tuple_value:
            return node
        return relax.TupleGetItem(value, node.index, span=node.span)

    @on(relax.Call)
    def call(self, node: relax.Call) -> relax.Call:
        """A call of operands, with its struct info."""
        op = self.operand(node.op)
        args = tuple(self.operand(a) for a in node.args)
        changed = op is not node.op or any(a is not b for a, b in zip(args, node.args))
        made = node.replace(op=op, args=args) if changed else node
        return made.replace(struct_info=self.infer(made)) if changed or made.struct_info is None else made

    @on(relax.If)
    def conditional(self, node: relax.If) -> relax.If:
        """A conditional on an operand, with its struct info."""
        made = node.replace(
            condition=self.operand(node.condition),
            true_branch=self(node.true_branch),
            false_branch=self(node.false_branch),
        )
        return made.replace(struct_info=self.infer(made)) if made is not node or node.struct_info is None else node

    @on(relax.SeqExpr)
    def sequence(self, node: relax.SeqExpr) -> relax.SeqExpr:
        """A sequence whose value is an operand."""
        outer, self.pending = self.pending, []
        was, self.in_dataflow = self.in_dataflow, False
        made = dict(self.made)
        blocks = [self(block) for block in node.blocks]
        body = self.operand(node.body)
        extra, self.pending = self.pending, outer
        self.in_dataflow, self.made = was, made
        if extra:
            if blocks and type(blocks[-1]) is relax.BindingBlock:
                blocks[-1] = blocks[-1].replace(bindings=(*blocks[-1].bindings, *extra))
            else:
                blocks.append(relax.BindingBlock(tuple(extra)))
        if body is node.body and len(blocks) == len(node.blocks) and all(a is b for a, b in zip(blocks, node.blocks)):
            return node
        return relax.SeqExpr(tuple(b for b in blocks if b.bindings), body, span=node.span)

    @on(relax.BindingBlock, relax.DataflowBlock)
    def block(self, node: relax.BindingBlock) -> relax.BindingBlock:
        """A block in which every binding is in normal form."""
        outer, self.pending = self.pending, []
        was, self.in_dataflow = self.in_dataflow, isinstance(node, relax.DataflowBlock)
        made: list[relax.Binding] = []
        for binding in node.bindings:
            new = self.binding(binding)
            made += [*self.pending, new]
            self.pending = []
        self.pending, self.in_dataflow = outer, was
        if len(made) == len(node.bindings) and all(a is b for a, b in zip(made, node.bindings)):
            return node
        return node.replace(bindings=tuple(made))

    def binding(self, node: relax.Binding) -> relax.Binding:
        """One binding; a variable of which nothing was known takes the struct info of its value."""
        value = self(node.value)
        if isinstance(node, relax.MatchCast):
            return node if value is node.value else node.replace(value=value)
        var = node.var
        info: StructInfo = self.infer(value)
        if var.struct_info is OBJECT and info is not OBJECT:
            var = self.renamed[var] = var.replace(struct_info=info)
        return node if value is node.value and var is node.var else node.replace(var=var, value=value)

    @on(relax.Function)
    def function(self, node: relax.Function) -> relax.Function:
        """A function with its body in normal form; a result that was not declared is the body's."""
        body = self(node.body)
        ret = node.ret_struct_info
        if ret is None and body.struct_info is not None:
            from relaxlang.syntax.struct_info import bound_vars, erase

            ret = erase(body.struct_info, bound_vars(tuple(p.struct_info for p in node.params)))
        return (
            node if body is node.body and ret is node.ret_struct_info else node.replace(body=body, ret_struct_info=ret)
        )
