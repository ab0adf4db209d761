"""Calls that commands make: `main(x, w1=rand(64, 128))`, with what is missing made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from relaxlang.base.diagnostics import Diagnostics, fail
from relaxlang.base.record import replace
from relaxlang.base.source import Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.cli.parameters import Filler, Parameter
from relaxlang.cli.run import parameters
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.repl.command import function_name, require_module
from relaxlang.repl.values import is_value
from relaxlang.runtime.ndarray import wrap
from relaxlang.syntax import tree
from relaxlang.syntax.parser import parse_expression

if TYPE_CHECKING:
    from relaxlang.repl.session import Session
    from relaxlang.repl.stages import Stages


class Invocation(NamedTuple):
    """A call of a function: its arguments, the places of those that it writes, and what is to be said about values that
    were made up."""

    function: str
    args: tuple[Any, ...]
    outputs: tuple[int, ...]
    notes: tuple[str, ...]

    def compiled(self, stages: Stages) -> Any:
        """The result of the compiled function."""
        return self._result(stages.machine[self.function], self.fresh())

    def interpret(self, session: Session, module: IRModule, **options: Any) -> Any:
        """The result by the reference interpreter; `options` are its own."""
        from relaxlang.interp import Interpreter

        interpreter = Interpreter(module, session.operators.lower, **options)
        return self._result(lambda *args: interpreter.run(self.function, *args), self.fresh())

    def fresh(self) -> tuple[Any, ...]:
        """The arguments, those that are written as copies."""
        return tuple(np.copy(a) if i in self.outputs else a for i, a in enumerate(self.args))

    def _result(self, function: Any, args: tuple[Any, ...]) -> Any:
        value = function(*args)
        if not self.outputs:
            return value
        written = [wrap(np.ascontiguousarray(args[i])) for i in self.outputs]
        return written[0] if len(written) == 1 else tuple(written)


def invocation(session: Session, argument: Span, module: IRModule) -> Invocation:
    """The call that a text states: `main(x)`, `main`, or nothing for the only function or `main`."""
    require_module(session)
    node = _call(argument) if argument.text else None
    if node is None:
        names = [n for n, _ in module.relax_functions()] or list(module.functions)
        if "main" not in names and len(names) != 1:
            known = ", ".join(f"`{n}`" for n in names[:8])
            fail("RLX7102", "it is not clear which function is meant", argument, help=f"there are {known}")
        return _filled(session, module, "main" if "main" in names else names[0], {})
    name_node = node.func if isinstance(node, tree.Call) else node
    assert isinstance(name_node, tree.Name) and name_node.span is not None  # `_call` sees to it
    name = function_name(session, name_node.span)
    if not isinstance(node, tree.Call):
        return _filled(session, module, name, {})
    return _filled(session, module, name, _values(session, module, name, node))


def sized_invocation(session: Session, name: str, dims: Mapping[str, tuple[int, Span]]) -> Invocation:
    """The call of a function of the module on random values; `dims` has sizes of its symbolic dimensions, by name, and
    where they are stated. RLX7005 for a dimension that it does not have."""
    return _filled(session, session.module, name, {}, dims)


def sizes_of(words: Sequence[Span]) -> dict[str, tuple[int, Span]]:
    """The sizes that words such as `n=512` state. RLX7102 for what states none."""
    dims = {}
    for word in words:
        name, _, text = word.text.partition("=")
        if not name.isidentifier() or not (text.isascii() and text.isdecimal() and len(text) <= 18):
            fail("RLX7102", f"`{word.text}` gives no dimension a size", word, help="write `n=512`")
        dims[name] = (int(text), word)
    return dims


def _call(argument: Span) -> tree.Call | tree.Name | None:
    diagnostics = Diagnostics()
    node = parse_expression(argument.source, diagnostics, argument.start, argument.end)
    diagnostics.check()
    called = node.func if isinstance(node, tree.Call) else node
    if not isinstance(called, tree.Name) or not isinstance(node, (tree.Call, tree.Name)):
        fail("RLX7102", "a call of a function of the module is expected here", argument, help="write `main(x, w)`")
    return node


def _params(session: Session, module: IRModule, name: str) -> list[Parameter]:
    function = module.functions.get(name)
    if isinstance(function, relax.Function):
        return [Parameter(p.name, p.struct_info) for p in function.params]
    return parameters(function, session.stages(name, module).runnable, name)


def _values(session: Session, module: IRModule, name: str, node: tree.Call) -> dict[str, Any]:
    """The values that a call's arguments give to parameters, by name."""
    params = [p.name for p in _params(session, module, name)]
    calculator = session.calculator()
    values: dict[str, Any] = {}
    given: list[tuple[str, Any, Span | None]] = []
    for at, arg in enumerate(node.args):
        if at >= len(params):
            fail("RLX7005", f"`{name}` takes {len(params)} arguments, and this is one more", arg.span)
        given.append((params[at], calculator.concrete(calculator.value(arg), arg.span), arg.span))
    for keyword in node.keywords:
        value = calculator.concrete(calculator.value(keyword.value), keyword.span)
        if keyword.name is not None:
            given.append((keyword.name, value, keyword.span))
        elif isinstance(value, dict):
            given += [(key, v, keyword.span) for key, v in value.items() if key in params]
        else:
            fail("RLX7102", "`**` takes arrays by name, as `load` gives them", keyword.span)
    for param, value, span in given:
        if param not in params:
            near = did_you_mean(param, params)
            help = f"did you mean `{near}`?" if near else ""
            fail("RLX7005", f"`{name}` has no parameter `{param}`", span, help=help)
        if param in values:
            fail("RLX7005", f"the parameter `{param}` has a value already", span)
        if not is_value(value):
            fail("RLX7105", f"this is no value that `{name}` could take", span)
        values[param] = value
    session.state = replace(session.state, draws=calculator.draws)
    return values


def _filled(
    session: Session, module: IRModule, name: str, values: dict[str, Any], dims: Mapping[str, tuple[int, Span]] = {}
) -> Invocation:
    """The call with values made up for the parameters that have none."""
    params = _params(session, module, name)
    filler = Filler(session.state.draws, params, values, dims)
    missing = [p for p in params if p.name not in values]
    for index, param in enumerate(params):
        if param.name not in values:
            values[param.name] = filler.make(param, index, zeros=param.output)
    made_up = [p.name for p in missing if not p.output]
    notes = _notes(made_up, filler.defaulted)
    if made_up:
        session.state = replace(session.state, draws=session.state.draws + 1)
    outputs = tuple(i for i, p in enumerate(params) if p.output)
    return Invocation(name, tuple(values[p.name] for p in params), outputs, notes)


def _notes(made_up: Sequence[str], sizes: dict[str, int]) -> tuple[str, ...]:
    if not made_up:
        return ()
    said = f"random: {', '.join(made_up)}"
    return (said + (f"; {', '.join(f'{n} = {size}' for n, size in sizes.items())}" if sizes else ""),)
