"""Migration: a script of any era as the script of a release of TVM.

In: a source text and the module that was made from it. Out: the text that the release reads as the same module, with
the comments of the source; or, when the release cannot say some of it, an error that names each such construct.

The text is printed from the IR. Rewriting the source word by word would keep more of its layout, and it is not enough:
releases differ in what must be declared where (symbolic dimensions in the body, quoted in the signature, or as
`TypeVar`), in how memory is allocated, in which calls state shapes. The printer knows all that, for every release, and
its round trip is tested; a second mechanism beside it would have to know it again. What the IR does not hold, comments
and docstrings, is carried over by the places that nodes and the printer keep. Templates, macros and sugar, which no
release of TVM has, come out expanded.

Reading order: `releases` (which release knows which name), `unsayable`, `comments`, this module.
"""

from __future__ import annotations

import re
from typing import Any

from relaxlang.base.diagnostics import DiagnosticError, Diagnostics, fail
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Source
from relaxlang.base.suggest import suggestion
from relaxlang.ir import relax, tir
from relaxlang.ir.module import IRModule
from relaxlang.syntax import tree
from relaxlang.syntax.migrate.comments import with_comments
from relaxlang.syntax.migrate.unsayable import unsayable
from relaxlang.syntax.parser import parse_surface
from relaxlang.syntax.printer import render_node
from relaxlang.syntax.spellings import DIALECTS, at_least

__all__ = ["RELEASES", "migrate"]

RELEASES: tuple[str, ...] = tuple(dialect for dialect in DIALECTS if dialect.startswith("tvm-"))
"""What scripts can be migrated to, from old to new."""

_TYPE_VAR = re.compile(r"^\w+ = TypeVar\(", re.MULTILINE)
_SCRIPT = re.compile(r"#?\s*(?:from|import)\s+(?:tvm|relaxlang)\b")


def migrate(source: Source, module: IRModule, dialect: str) -> str:
    """The text of `module`, which was made from `source`, for a release: `"tvm-0.27"`.

    Raises DiagnosticError (RLX0160) that names every construct which the release does not know.
    """
    if dialect not in RELEASES:
        fail("RLX0161", f"there is no release `{dialect}` to migrate to", **suggestion(dialect, RELEASES))
    diagnostics = Diagnostics()
    with deep_recursion():
        surface = parse_surface(source, diagnostics)
        diagnostics.check()
        root, name = _root(surface, module)
        rendered = render_node(root, positions=True, dialect=dialect, name=name)
        lacking = unsayable(rendered, surface, source, dialect)
        if lacking:
            raise DiagnosticError(lacking)
        text = with_comments(rendered, surface, source)
        return _header(surface, text, dialect) + text


def _root(surface: tree.Module, module: IRModule) -> tuple[Any, str | None]:
    """What is printed: the module; or its only function, and the name of that, where the source has no class either."""
    alone = len(module.functions) == 1 and not any(isinstance(s, tree.ClassDef) for s in surface.body)
    if alone and not module.attrs and not module.global_infos:
        name, function = next(iter(module.functions.items()))
        if isinstance(function, (relax.Function, tir.PrimFunc)) and name.isidentifier():
            return function, name
    return module, None


def _header(surface: tree.Module, text: str, dialect: str) -> str:
    """The imports of a Python script, where the source has some: as statements, or as the comment that TVM prints."""
    tir = "tirx" if at_least(dialect, "tvm-0.23") else "tir"
    line = f"from tvm.script import ir as I, relax as R, {tir} as T\n\n"
    if any(isinstance(s, tree.Import) and _SCRIPT.match(s.text) for s in surface.body):
        return ("from typing import TypeVar\n\n" if _TYPE_VAR.search(text) else "") + line
    return f"# {line}" if any(_SCRIPT.match(c.text) for c in surface.comments) else ""
