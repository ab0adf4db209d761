"""The printer: the IR as text that reads back as the same IR.

In: any node of the IR. Out: canonical text, with a source map where one is asked for. The canonical spelling is that of
TVM 0.11 to 0.22 (`T.block`, `out_sinfo=`), with symbolic dimensions as bare names in signatures.

Reading order: `core` (the state and the dispatch), `names`, `values` (plain data and constants), `exprs` (scalars),
`stmts`, `blocks`, `prim_funcs` (TensorIR), `types` (struct info), `relax_exprs`, `relax_bindings`, `modules`; `sources`
and `as_written` are what a print for a release of TVM takes from the source. The layout is `syntax.document`'s, the
words of each era `syntax.spellings`'s, numbers and strings `syntax.scalars`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from relaxlang.base.diagnostics import RelaxlangError, fail
from relaxlang.base.node import Node
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir import prim, relax, struct_info, tir
from relaxlang.ir.module import IRModule
from relaxlang.syntax import spellings
from relaxlang.syntax.document import Rendered, render
from relaxlang.syntax.printer import blocks, exprs, modules, prim_funcs, relax_bindings, relax_exprs, stmts, types
from relaxlang.syntax.printer.core import EMITTERS, Options, Printer
from relaxlang.syntax.printer.values import value_doc

__all__ = ["Options", "render_node", "script"]

_PARTS = (blocks, exprs, modules, prim_funcs, relax_bindings, relax_exprs, stmts, types)
"""The modules that register themselves with `core`."""


def script(
    node: Any, *, underline: Sequence[Any] = (), context: int | None = None, color: bool = False, **options: Any
) -> str:
    """The text of a module, a function, or any fragment (its free variables by their names).

    Options:
      underline: nodes; the first of them that stands in the text gets `^^^^` below it
      context: show only so many lines around that one
      color: with the colours of a terminal
      dialect: None for the canonical text, or the release that shall read it, `"tvm-0.22"`, `"tvm-0.27"`, …
      types: `"needed"` annotates a binding only where its value does not imply its struct info, `"all"` every one
      constants: `"inline"`, or `"file"`: large arrays go into `store`, under the digest that the text names
      store: the dictionary for `constants="file"`
      width: columns; a longer line is broken inside its brackets
      header: begin with a comment that names the imports of a Python script
      name: the name of a function that has none (`main`)

    Raises RelaxlangError for an unknown option, or a program nested too deeply.
    """
    rendered = render_node(node, positions=bool(underline), **options)
    for target in underline:
        place = rendered.find(target)
        if place is not None:
            text = rendered.underlined(place, context)
            return _colored(text) if color else text
    text = rendered.text if _is_block(node) else rendered.text.rstrip("\n")
    return _colored(text) if color else text


def _colored(text: str) -> str:
    from relaxlang.syntax.coloring import colored  # it has much to import, and is for people at a terminal

    return colored(text)


def render_node(node: Any, *, positions: bool = False, **options: Any) -> Rendered:
    """The text with, when `positions` is given, the places of all nodes in it."""
    settings = _options(positions, options)
    with deep_recursion(), suppress(RecursionError):
        return render(_lines(node, settings), settings.width)
    fail("RLX9002", "the program is nested too deeply to be printed")


def _lines(node: Any, settings: Options) -> list[Any]:
    p = Printer(settings, node if isinstance(node, IRModule) else None)
    if isinstance(node, (relax.Expr, struct_info.StructInfo, relax.Binding, relax.BindingBlock)):
        p.int_dtype = prim.INT64
    elif isinstance(node, prim.PrimExpr) and node.dtype is prim.INT64:
        p.int_dtype = prim.INT64
    if isinstance(node, relax.Function):
        relax_bindings.emit_function(p, node, _function_name(node, settings), nested=False)
    elif isinstance(node, tir.PrimFunc):
        prim_funcs.emit_prim_func(p, node, _function_name(node, settings))
    elif isinstance(node, relax.If):
        result = relax.Var("result")
        relax_bindings.bind(p, result, node, annotate=False)
    elif node.__class__ in EMITTERS:
        p.emit(node)
    else:
        doc = p.doc(node) if isinstance(node, Node) else value_doc(p, node)
        p.line(doc)
    head = [(0, f'{name} = TypeVar("{name}")') for name in p.type_vars]
    if head:
        head.append((0, ""))
    if settings.header and _is_block(node):
        tir_name = "tirx" if p.since("tvm-0.23") else "tir"
        head = [(0, f"# from tvm.script import ir as I, relax as R, {tir_name} as T"), (0, ""), *head]
    return [*head, *p.flat_lines()]


def _function_name(node: relax.Function | tir.PrimFunc, settings: Options) -> str:
    return settings.name or str(node.attrs.get("global_symbol", "main"))


def _is_block(node: Any) -> bool:
    """Whether the text of a node is whole lines, with a line end after the last."""
    return isinstance(node, (IRModule, relax.Function, tir.PrimFunc))


def _options(positions: bool, options: dict[str, Any]) -> Options:
    known = [name for name in Options.FIELDS if name != "positions"]
    for name in options:
        if name not in known:
            near = did_you_mean(name, known)
            raise RelaxlangError(f"`script` has no option `{name}`" + (f"; did you mean `{near}`?" if near else ""))
    settings = Options(positions=positions, **options)
    _one_of("dialect", settings.dialect, (None, *spellings.DIALECTS))
    _one_of("types", settings.types, ("needed", "all"))
    _one_of("constants", settings.constants, ("inline", "file"))
    if settings.constants == "file" and settings.store is None:
        raise RelaxlangError('`constants="file"` needs `store`, the dictionary that takes the arrays')
    return settings


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if value not in allowed:
        names = [str(a) for a in allowed if a]
        near = did_you_mean(str(value), names)
        hint = f"did you mean `{near}`?" if near else f"it is one of {', '.join(names)}"
        raise RelaxlangError(f"`{name}` of `script` cannot be `{value}`; {hint}")
