"""A file as a module: declarations first, so that functions may refer to later ones; then TensorIR functions; then
Relax."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import suggestion
from relaxlang.ir import relax, tir
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import UNCHECKED, AnyFunc, IRModule
from relaxlang.ir.relax import ExternFunc, GlobalVar
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Scope, error
from relaxlang.syntax.elaborate.adopt import OtherModule, adopt
from relaxlang.syntax.elaborate.decorators import decorator_name, dotted
from relaxlang.syntax.elaborate.dims import TypeVariable
from relaxlang.syntax.elaborate.macros import define_macro, is_macro
from relaxlang.syntax.elaborate.metadata import metadata_section
from relaxlang.syntax.elaborate.module_ref import ModuleRef
from relaxlang.syntax.elaborate.namespaces import root_scope
from relaxlang.syntax.elaborate.places import head
from relaxlang.syntax.elaborate.purity import with_effects
from relaxlang.syntax.elaborate.relax_function import FunctionElaborator
from relaxlang.syntax.elaborate.tir_function import elaborate_prim_func
from relaxlang.syntax.elaborate.unit import Declared, Unit, poison
from relaxlang.syntax.parser import parse_surface
from relaxlang.syntax.python_text import moved
from relaxlang.syntax.spellings import names_for


def _truth(value: Any) -> bool:
    if isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}[value.lower()]
    return bool(value)


_PARAM_KINDS: dict[str, Callable[[Any], Any]] = {
    "int": lambda v: int(v, 0) if isinstance(v, str) else operator.index(v), "float": float, "bool": _truth, "str": str,
    "dtype": dtype,
}  # fmt: skip


_OPERATOR = ("R.op", "R.grad")
_EARLY = names_for("I.ir_module")[1:]
"""How the first releases write `@I.ir_module`."""


class ModuleEvaluator(Evaluator):
    """Evaluates what stands at module level: attributes, global infos, compile-time constants."""

    def __init__(self, unit: Unit) -> None:
        super().__init__()
        self.unit = unit


def _is_definition(stmt: tree.Stmt) -> bool:
    """Whether a statement is an operator, or a function for operators."""
    if not isinstance(stmt, tree.FunctionDef):
        return False
    return not stmt.decorators or any(decorator_name(d) in _OPERATOR for d in stmt.decorators)


def _definition_texts(body: list[tree.Stmt]) -> dict[str, str]:
    """The texts of the definitions among statements, at the margin, by what they define; overloads stand together."""
    found: dict[str, str] = {}
    for stmt in body:
        if isinstance(stmt, tree.FunctionDef) and _is_definition(stmt):
            assert stmt.span is not None
            text = moved(stmt.span.text, 1 - stmt.span.column).rstrip()
            name = _defined_name(stmt)
            found[name] = f"{found[name]}\n\n\n{text}" if name in found else text
    return found


def _defined_name(stmt: tree.FunctionDef) -> str:
    """What a definition defines: `@R.op("my.gated")` and `@R.grad("my.gated")` name it, else the function does."""
    for decorator in stmt.decorators:
        kind = decorator_name(decorator)
        if kind in _OPERATOR:
            first = decorator.args[0] if isinstance(decorator, tree.Call) and decorator.args else None
            name = first.value if isinstance(first, tree.Constant) else stmt.name
            return f"{name}" if kind == "R.op" else f"{kind} {name}"
    return stmt.name


class ModuleElaborator:
    """Elaborates a file."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.ev = ModuleEvaluator(unit)
        self.outer = Scope(dict(unit.values), root_scope())
        self.scope = Scope({}, self.outer)
        self.order: list[str] = []
        self.extern: dict[str, AnyFunc] = {}
        self.purity_unsaid: list[str] = []
        self.defines_operators = False

    def run(self, module: tree.Module) -> IRModule:
        """The module of a file. Faults go to the diagnostics; what they spoil is left out."""
        classes = [s for s in module.body if isinstance(s, tree.ClassDef) and not _is_rule(s)]
        for extra in classes[1:]:
            self.unit.report(
                error(
                    "RLX0143", "a file holds one module", head(extra), help="put the second class in a file of its own"
                )
            )
        if classes:
            self.unit.name = classes[0].name
            self.unit.verify = not any(_unchecked(d) for d in classes[0].decorators)
            self.unit.early = any(dotted(d) in _EARLY for d in classes[0].decorators)
        self._own_operators([*module.body, *(classes[0].body if classes else ())])
        for stmt in module.body:
            if isinstance(stmt, tree.ClassDef) and _is_rule(stmt):
                self._rule(stmt)
        ref = ModuleRef(self.unit)
        self.outer.names.update({self.unit.name: ref})
        for stmt in module.body:
            if not isinstance(stmt, tree.ClassDef):
                self._guarded(stmt, self.outer)
        if classes:
            for stmt in classes[0].body:
                self._guarded(stmt, self.scope)
        self._adopted()
        for declared in self._declared():
            self._elaborate(declared)
        functions: dict[str, AnyFunc] = {}
        for name in dict.fromkeys((*self.order, *self.unit.functions)):
            made = self.extern.get(name) or self.unit.functions[name].function
            if made is not None:
                functions[name] = made
        if self.unit.tolerated:
            self.unit.attrs[UNCHECKED] = False
        unit = self.unit
        return IRModule(
            functions, Attrs(unit.attrs), unit.global_infos, unit.name, unit.own_operators, unit.python, unit.rules
        )

    def _rule(self, node: tree.ClassDef) -> None:
        """A rule of rewriting holds two Relax functions: what to look for, and what to put in its place."""
        functions = [s for s in node.body if isinstance(s, tree.FunctionDef)]
        kinds = {s.name: [decorator_name(d) for d in s.decorators] for s in functions}
        for name in ("pattern", "replacement"):
            if "R.function" not in kinds.get(name, ()):
                text = f"a rewriter needs a Relax function `{name}`"
                self.unit.report(error("RLX0146", text, head(node), help=f"define `{name}` with `@R.function`"))
        if node.name in self.unit.rules:
            self.unit.report(error("RLX0145", f"the rule `{node.name}` is defined twice", head(node)))
        unit = Unit(self.unit.diagnostics, self.unit.operators, self.unit.values, self.unit.check, self.unit.includer)
        self.unit.rules[node.name] = ModuleElaborator(unit).run(tree.Module((node.replace(decorators=()),)))

    def _own_operators(self, body: list[tree.Stmt]) -> None:
        """Operators that the file itself defines with `@R.op`."""
        if any(
            isinstance(s, tree.FunctionDef) and any(decorator_name(d) in _OPERATOR for d in s.decorators) for s in body
        ):
            try:
                self.unit.operators = self.unit.operators.extended(body)
                self.unit.own_operators.update(_definition_texts(body))
                self.defines_operators = True
            except DiagnosticError as fault:
                self.unit.report(fault)

    def _declared(self) -> Iterator[Declared]:
        functions = list(self.unit.functions.values())
        yield from (d for d in functions if d.is_prim)
        yield from (d for d in functions if not d.is_prim)

    def _elaborate(self, declared: Declared) -> None:
        declared.run(self.unit)

    def _guarded(self, stmt: tree.Stmt, scope: Scope) -> None:
        try:
            self._statement(stmt, scope)
        except DiagnosticError as fault:
            self.unit.report(fault)
            if isinstance(stmt, tree.Assign):
                poison(stmt.targets, scope)

    def _statement(self, stmt: tree.Stmt, scope: Scope) -> None:
        if isinstance(stmt, (tree.Import, tree.Pass)):
            return
        if isinstance(stmt, tree.FunctionDef):
            self._function(stmt, scope)
        elif isinstance(stmt, tree.PythonDef):
            if stmt.name in self.order or stmt.name in self.unit.python:
                raise error("RLX0145", f"`{stmt.name}` is defined twice in the module", stmt.span)
            self.unit.python[stmt.name] = stmt.text
        elif isinstance(stmt, tree.Assign):
            self._assign(stmt, scope)
        elif isinstance(stmt, tree.ExprStmt):
            if not isinstance(stmt.value, tree.Constant):
                self._effect(self.ev.expr(stmt.value, scope), stmt)
        else:
            raise error("RLX0144", "this statement has no place in a module", head(stmt),
                        help="a module holds functions, attributes and compile-time constants")  # fmt: skip

    def _effect(self, value: Any, stmt: tree.ExprStmt) -> None:
        if value is not None:
            raise error("RLX0144", "this expression has no effect", stmt.span)

    def _assign(self, stmt: tree.Assign, scope: Scope) -> None:
        if len(stmt.targets) == 1 and isinstance(stmt.targets[0], tree.Name):
            name = stmt.targets[0].id
            if dotted(stmt.value).rpartition(".")[2] == "TypeVar":
                scope.names[name] = TypeVariable()
                return
            if dotted(stmt.value) in ("I.param", "ir.param") and isinstance(stmt.value, tree.Call):
                scope.names[name] = self._parameter(name, stmt.value, scope)
                return
            if dotted(stmt.value) in ("I.include", "ir.include") and isinstance(stmt.value, tree.Call):
                scope.names[name] = OtherModule(self.unit, name, self._included(stmt.value, scope))
                return
            if dotted(stmt.value).rpartition(".")[2] == "load_json" and isinstance(stmt.value, tree.Call):
                text = self.ev.expr(stmt.value.args[0], scope) if len(stmt.value.args) == 1 else None
                if not isinstance(text, str):
                    raise error("RLX0152", "`load_json` takes the text of a metadata section", stmt.value.span)
                scope.names[name] = metadata_section(text, stmt.value.span)
                return
            value = self.ev.expr(stmt.value, scope)
            if isinstance(value, ExternFunc):
                symbol = self._extern_symbol(stmt.value, scope, name)
                self._declare(symbol, stmt, value)
                value = self.unit.externs[symbol] = GlobalVar(symbol, value.struct_info)
            scope.names[name] = value
            return
        raise error("RLX0144", "only names are bound in a module", stmt.span)

    def _extern_symbol(self, node: tree.Expr, scope: Scope, name: str) -> str:
        """`f_g = R.ExternFunc("f", symbol="f.g")`: the name of the function in the module."""
        words = node.keywords if isinstance(node, tree.Call) else ()
        given = next((self.ev.expr(k.value, scope) for k in words if k.name == "symbol"), name)
        return given if isinstance(given, str) else name

    def _parameter(self, name: str, node: tree.Call, scope: Scope) -> Any:
        """`N = I.param(int, default=4)`: the value that was given for `N`, converted to its kind, or the default."""
        self.unit.parameters.append(name)
        default = node.args[1] if len(node.args) > 1 else None
        for word in node.keywords:
            if word.name != "default" or default is not None:
                raise error("RLX0147", "`I.param` takes a kind and a default", word.span or node.span,
                            help=f"write `{name} = I.param(int, default=4)`")  # fmt: skip
            default = word.value
        kind = node.args[0].id if node.args and isinstance(node.args[0], tree.Name) else "int"
        if kind not in _PARAM_KINDS:
            raise error(
                "RLX0147",
                f"`{kind}` is no kind of a module parameter",
                node.span,
                help=f"kinds are {', '.join(_PARAM_KINDS)}",
            )
        if name in self.unit.values:
            return self._converted(name, kind, self.unit.values[name], node.span)
        if default is not None:
            return self._converted(name, kind, self.ev.expr(default, scope), default.span)
        notes = self._includes()
        ways = f'`relaxc -D {name}=…`, or `parse(text, values={{"{name}": …}})`'
        raise error("RLX0147", f"the module parameter `{name}` was given no value", node.span, notes=notes,
                    help=f"give one: {f'`I.include(…, {name}=…)`' if notes else ways}")  # fmt: skip

    def _converted(self, name: str, kind: str, given: Any, span: Span | None) -> Any:
        """A value for a parameter, as one of its kind."""
        try:
            return _PARAM_KINDS[kind](given)
        except (ValueError, TypeError):
            text = f"the parameter `{name}` is of kind `{kind}`, and was given {given!r}"
            raise error("RLX0147", text, span, notes=self._includes()) from None

    def _includes(self) -> list[str]:
        """Where the file is included, as a note, when it is."""
        spans = () if self.unit.includer is None else self.unit.includer.spans
        return [f"{spans[-1]}: included here"] if spans else []

    def _included(self, node: tree.Call, scope: Scope) -> IRModule:
        """`attn = I.include("attn.rlx", HEADS=8)`: another file, with values for its parameters."""
        path = self.ev.expr(node.args[0], scope) if len(node.args) == 1 else None
        if not isinstance(path, str) or node.span is None or any(k.name is None for k in node.keywords):
            raise error("RLX0150", "`I.include` takes the path of a file, and values for its parameters by name",
                        node.span, help='write `attn = I.include("attn.rlx", HEADS=8)`')  # fmt: skip
        values = {k.name: self.ev.expr(k.value, scope) for k in node.keywords if k.name is not None}
        if self.unit.includer is None:
            raise error("RLX0150", "files cannot be included here", node.span)
        included = self.unit.includer.include(path, values, node.span)
        self._take_operators(included, path, node.span)
        return included

    def _take_operators(self, included: IRModule, path: str, span: Span) -> None:
        """The operators of an included file come along: its functions call them."""
        own = self.unit.own_operators
        for name, text in included.operators.items():
            if own.get(name, text) != text:
                raise error("RLX0145", f"`{path}` defines `{name}` otherwise than this module", span)
        new = [text for name, text in included.operators.items() if name not in own]
        if new:
            source = Source(f"operators of {path}", "\n\n".join(new))
            self.unit.operators = self.unit.operators.extended(parse_surface(source, self.unit.diagnostics).body)
            own.update(included.operators)

    def _adopted(self) -> None:
        """Functions among the compile-time values: they become functions of the module, modules a name for theirs."""
        for name, value in self.unit.values.items():
            if name in self.unit.functions:
                continue
            if isinstance(value, IRModule):
                self.outer.names[name] = OtherModule(self.unit, name, value)
            elif isinstance(value, (tir.PrimFunc, relax.Function)):
                self.outer.names[name] = adopt(self.unit, name, value)

    def _declare(self, name: str, stmt: tree.Stmt, function: AnyFunc) -> None:
        if name in self.order:
            raise error("RLX0145", f"`{name}` is defined twice in the module", stmt.span)
        self.order.append(name)
        self.extern[name] = function

    def _function(self, stmt: tree.FunctionDef, scope: Scope) -> None:
        kinds = [decorator_name(d) for d in stmt.decorators]
        if is_macro(kinds):
            scope.names[stmt.name] = define_macro(self.ev, stmt, scope)
            return
        if any(k in _OPERATOR for k in kinds) or (self.defines_operators and not kinds):
            return  # an operator, or a compile-time function of one
        options = self._options(stmt, scope)
        span = head(stmt)
        if not any(k in ("T.prim_func", "R.function") for k in kinds):
            raise _not_decorated(stmt, kinds)
        name = options.pop("name", stmt.name)
        if scope is self.outer and "R.function" in kinds:
            name = _symbol(stmt) or name
        if options.get("check_well_formed") is False:
            self.unit.verify = False
        if name in self.order:
            first = self.unit.functions.get(name)
            raise error("RLX0145", f"`{name}` is defined twice in the module", span,
                        notes=[f"the first definition is at {first.span}"] if first and first.span else [])  # fmt: skip
        self.order.append(name)
        declared = self.unit.functions[name] = Declared(name, span, stmt)
        scope.names[stmt.name] = declared.var
        if "T.prim_func" in kinds:
            declared.is_prim = True
            declared.elaborate = lambda: elaborate_prim_func(self.unit, stmt, scope, options, name)
        else:
            function = FunctionElaborator(self.unit, stmt, scope, options, name)
            if "pure" not in options:
                self.purity_unsaid.append(name)
            declared.elaborate = function.run
            declared.signature = function.signature

    def _options(self, stmt: tree.FunctionDef, scope: Scope) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for decorator in stmt.decorators:
            for keyword in decorator.keywords if isinstance(decorator, tree.Call) else ():
                if keyword.name is None:
                    continue
                if keyword.name not in _DECORATOR_OPTIONS and self.unit.check:
                    name = dotted(decorator)
                    raise error("RLX0114", f"`{name}` has no option `{keyword.name}`", keyword.span,
                                **suggestion(keyword.name, _DECORATOR_OPTIONS, keyword.span))  # fmt: skip
                options[keyword.name] = self.ev.expr(keyword.value, scope)
        return options


_DECORATOR_OPTIONS = ("pure", "private", "check_well_formed", "s_tir", "persistent", "name", "metadata")
"""The options of `@R.function` and `@T.prim_func` in all releases."""


def _not_decorated(stmt: tree.FunctionDef, kinds: list[str]) -> DiagnosticError:
    """The error for a function that is none of the language's."""
    if not kinds:
        return error("RLX0146", f"`{stmt.name}` has no decorator", head(stmt), help=_DECORATORS)
    written, span = dotted(stmt.decorators[0]), stmt.decorators[0].span
    hint = suggestion(
        written.rpartition(".")[2], ("function", "prim_func", "macro"), span, kinds[0].partition(".")[0] + "."
    )
    return error("RLX0146", f"`@{written}` is not known", span, help=hint["help"] or _DECORATORS, fixes=hint["fixes"])


_DECORATORS = "a function is `@R.function` or `@T.prim_func`"


def _is_rule(stmt: tree.ClassDef) -> bool:
    """Whether a class is a rewrite rule, which is no part of the module (see `builder.dpl.rules`)."""
    return any(decorator_name(d) == "R.rewriter" for d in stmt.decorators)


def _unchecked(decorator: tree.Expr) -> bool:
    """Whether a decorator says `check_well_formed=False`."""
    words = decorator.keywords if isinstance(decorator, tree.Call) else ()
    return any(
        k.name == "check_well_formed" and isinstance(k.value, tree.Constant) and not k.value.value for k in words
    )


def _symbol(node: tree.FunctionDef) -> str | None:
    """The name that a function without a module gives itself: `R.func_attr({"global_symbol": "main"})`."""
    for stmt in node.body:
        call = stmt.value if isinstance(stmt, tree.ExprStmt) else None
        if not isinstance(call, tree.Call) or dotted(call).rpartition(".")[2] not in ("func_attr", "func_attrs"):
            continue
        if call.args and isinstance(call.args[0], tree.DictExpr):
            for key, value in zip(call.args[0].keys, call.args[0].values):
                if isinstance(key, tree.Constant) and key.value == "global_symbol" and isinstance(value, tree.Constant):
                    return str(value.value)
    return None


def elaborate_module(unit: Unit, module: tree.Module) -> IRModule:
    """The IR of a file's surface tree; faults go to `unit.diagnostics`."""
    elaborator = ModuleElaborator(unit)
    made = elaborator.run(module)
    if (unit.early or unit.bare_names) and not unit.diagnostics.has_errors():
        impure = with_effects(made.functions, elaborator.purity_unsaid, unit.operators)
        if impure:
            unit.restart(impure)
            return ModuleElaborator(unit).run(module)
    return made


Options = Mapping[str, Any]
