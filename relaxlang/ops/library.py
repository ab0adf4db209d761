"""Where operator definitions come from: the files of `stdlib/`, each parsed when one of its operators is needed."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from pathlib import Path

from relaxlang.base.diagnostics import Diagnostics, fail
from relaxlang.base.resources import resource_dir
from relaxlang.base.source import Source
from relaxlang.ops.definition import OpDef, gradient_rules, is_operator, read_definition
from relaxlang.ops.functions import CompileTimeFunction
from relaxlang.ops.namespaces import root_scope
from relaxlang.ops.stored import Statement, parsed
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Scope
from relaxlang.syntax.parser import parse_surface

_OPERATOR = re.compile(r"^@R\.op(?:\(\s*\"([\w.]+)\"[^\n]*\)|\([^\n]*\))?[ \t]*\n(?:@[^\n]*\n)*def (\w+)", re.MULTILINE)
_SUGAR = re.compile(r"@R\.op\([^\n]*\bsugar=\"([^\n\"]+)\"")


class Library:
    """The operators defined in a folder of `.rlx` files; `prelude.rlx` holds the functions that every file may call.

    Thread-safe. The index comes from a scan of the texts for `@R.op`; nothing is parsed before it is needed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        self._texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.rlx"))}
        self._index: dict[str, Path] = {}
        self._sugar: dict[str, str] = {}
        for path, text in self._texts.items():
            for match in _OPERATOR.finditer(text):
                self._index[match[1] or match[2]] = path
                symbol = _SUGAR.match(match[0])
                if symbol is not None:
                    self._sugar[symbol[1]] = match[2]
        self._prefixes = {n[:k] for n in self._index for k, c in enumerate(n) if c == "."}
        self._loaded: dict[str, OpDef] = {}
        self._files: dict[Path, _File] = {}
        self._prelude: Scope | None = None

    def names(self) -> Iterable[str]:
        """All operator names."""
        return self._index.keys()

    def has(self, name: str) -> bool:
        """Whether `name` is an operator or a prefix of one."""
        return name in self._index or name in self._prefixes

    def get(self, name: str) -> OpDef | None:
        """The definition of an operator, which is read when it is first asked for."""
        found = self._loaded.get(name)
        if found is None and name in self._index:
            with self._lock:
                if name not in self._loaded:
                    self._loaded[name] = self._file(self._index[name]).definition(name)
                found = self._loaded[name]
        return found

    def sugar(self, symbol: str) -> str | None:
        """The operator whose definition says `@R.op(sugar="@")`."""
        return self._sugar.get(symbol)

    def path(self, name: str) -> Path:
        """The file that defines an operator."""
        return self._index[name]

    def prelude(self) -> Scope:
        """The functions of `prelude.rlx`."""
        with self._lock:
            if self._prelude is None:
                root = root_scope(self.has, lambda: self._index)
                self._prelude = _File(self._read(self.folder / "prelude.rlx"), root).scope
            return self._prelude

    def _read(self, path: Path) -> list[Statement]:
        name = (Path("stdlib") / path.relative_to(self.folder)).as_posix()
        return parsed(Source(name, self._texts[path]), path, _parse_checked)

    def _file(self, path: Path) -> _File:
        if path not in self._files:
            self._files[path] = _File(self._read(path), self.prelude())
        return self._files[path]


class _File:
    """A file of the library: its compile-time functions, operators and gradients, each read when it is needed."""

    def __init__(self, statements: list[Statement], parent: Scope) -> None:
        self.scope = Scope({}, parent)
        self._operators: dict[str, Statement] = {}
        self._gradients: dict[str, Statement] = {}
        for statement in statements:
            kind, name, operators = statement.defines
            if kind == "function":
                self.scope.names[name] = self._function(statement)
            elif kind == "gradient":
                self._gradients |= dict.fromkeys(operators, statement)
            elif any(self._operators.setdefault(name, statement) is not statement for name in operators):
                definitions([s.tree for s in statements], self.scope)  # says what is wrong

    def _function(self, statement: Statement) -> CompileTimeFunction:
        return CompileTimeFunction(statement.defines.name, lambda: statement.tree, self.scope)

    def definition(self, name: str) -> OpDef:
        """The definition of an operator of the file."""
        function, gradient = self._operators[name].tree, self._gradients.get(name)
        assert isinstance(function, tree.FunctionDef)
        made = read_definition(function, self.scope)
        return made if gradient is None else made.replace(gradient=self._function(gradient))


def _parse_checked(source: Source) -> tree.Module:
    diagnostics = Diagnostics()
    module = parse_surface(source, diagnostics)
    diagnostics.check()
    return module


def definitions(body: Iterable[tree.Stmt], scope: Scope) -> list[OpDef]:
    """The operators that a file or module body defines, with the gradients that stand beside them."""
    body = list(body)
    rules = gradient_rules(body, scope)
    found = [read_definition(s, scope) for s in body if isinstance(s, tree.FunctionDef) and is_operator(s)]
    first: dict[str, OpDef] = {}
    for one in found:
        if first.setdefault(one.name, one) is not one:
            fail(
                "RLX0130",
                f"the operator `{one.name}` is defined twice",
                one.span,
                notes=[f"first at {first[one.name].span}"],
            )
    return [d.replace(gradient=rules.get(d.name)) for d in found]


def file_scope(body: Iterable[tree.Stmt], parent: Scope | None) -> Scope:
    """The compile-time functions of a file: its plain `def`s."""
    scope = Scope({}, parent)
    for stmt in body:
        if isinstance(stmt, tree.FunctionDef) and not stmt.decorators:
            scope.names[stmt.name] = CompileTimeFunction.of(stmt, scope)
    return scope


_standard: list[Library] = []
_standard_lock = threading.Lock()


def standard_library() -> Library:
    """The library in `stdlib/`, read once per process."""
    with _standard_lock:
        if not _standard:
            _standard.append(Library(resource_dir("stdlib")))
        return _standard[0]
