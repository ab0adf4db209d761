"""The words of a syntax error: what was expected, what was found, and what was probably meant."""

from __future__ import annotations

from collections.abc import Sequence

from relaxlang.base.diagnostics import Diagnostic, Fix, Label
from relaxlang.base.source import Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.syntax import tree
from relaxlang.syntax.lalr import MAX_NESTING, Parser
from relaxlang.syntax.lexer import Token

_CALLED = {
    "NAME": "a name",
    "INT": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "WORD": "a word",
    "AUGMENTED": "an assignment",
    "_NEWLINE": "the end of the line",
    "_INDENT": "an indented block",
    "_DEDENT": "the end of the block",
    "$END": "the end of the text",
}
# Terminals that begin an expression, and those that stand between two values, as they are written.
_STARTS = frozenset("( [ { + - ~ * not lambda None True False ...".split())
_BETWEEN = frozenset("+ - * / // % @ ** << >> & | ^ < <= > >= == != and or in not is if for . [ (".split())
_VALUES = ("NAME", "INT", "FLOAT", "STRING")
_STARTS_WORDS = ("not", "lambda", "None", "True", "False")
_HEADERS = {
    "def": "the parameter list",
    "class": "the class name",
    "if": "the condition",
    "elif": "the condition",
    "else": "`else`",
    "while": "the condition",
    "for": "what the loop runs over",
    "with": "the `with` items",
}
_INSTEAD = {
    "try": "there are no exceptions; `assert` states a requirement",
    "except": "there are no exceptions; `assert` states a requirement",
    "finally": "there are no exceptions; `assert` states a requirement",
    "raise": "there are no exceptions; `assert` states a requirement",
    "del": "a value ends with its last use",
    "global": "every name of a module is visible in its functions",
    "nonlocal": "assign to a new name",
    "yield": "`return` gives a value back",
}
_STATEMENTS = tuple("return def class if elif else for while with assert pass break continue import from".split())


def explain(parser: Parser, token: Token) -> Diagnostic:
    """The diagnostic for a token that does not fit where the parser stands."""
    return _Situation(parser, token).explain()


class _Situation:
    """Where the parser stands: `before` are the symbols of the unfinished statement, as they are written."""

    def __init__(self, parser: Parser, token: Token) -> None:
        self.parser = parser
        self.token = token
        self.written = {name: word for word, name in parser.tables.words.items()}
        base = parser.statement_base() or 0
        self.before = [
            self.written.get(s, s) for s in map(parser.tables.symbols.__getitem__, parser.states[base + 1 :])
        ]
        self.values = parser.values[base:]
        self.span = Span(parser.source, token.start, token.end)

    def explain(self) -> Diagnostic:
        parser, token = self.parser, self.token
        if token.type == "TOO_DEEP":
            message = f"more than {MAX_NESTING} levels of brackets and operators inside one another"
            return Diagnostic("RLX0009", message, self.span, help="give an inner part a name of its own")
        if token.type == "RESERVED":
            return self.reserved()
        if parser.begins_line_outside(token) is not None or (parser.lexer.brackets and token.type == "$END"):
            return parser.lexer.unclosed()
        if token.type == "_INDENT":
            return Diagnostic(
                "RLX0006", "unexpected indent", self.line_start(), help="only a line that ends with `:` opens a block"
            )
        if parser.last.type == "_NEWLINE" and parser.accepts("_INDENT"):
            return self.missing_block()
        return self.misspelt() or self.special() or self.general()

    def reserved(self) -> Diagnostic:
        word = self.token.text
        return Diagnostic("RLX0011", f"`{word}` is not part of the language", self.span, help=_INSTEAD.get(word, ""))

    def line_start(self) -> Span:
        text, at = self.parser.source.text, self.token.start
        return Span(self.parser.source, text.rfind("\n", 0, at) + 1, at)

    def header(self) -> str | None:
        """The keyword of the header that the parser is in: one that begins a statement, follows a block (`else`) or
        follows decorators; not the `if` of an expression.
        """
        found = None
        for before, word in zip(["block", *self.before], self.before):
            if word in _HEADERS and (before == "block" or before.startswith("__")):  # lark names repetitions `__…`
                found = word
        return found

    def missing_block(self) -> Diagnostic:
        header = self.header() or "this line"
        opened = next((v for s, v in zip(reversed(self.before), reversed(self.values)) if s == header), None)
        labels = []
        if isinstance(opened, Token):
            labels = [Label(Span(self.parser.source, opened.start, opened.end), "its block is missing")]
        return Diagnostic(
            "RLX0006",
            f"expected an indented block after `{header}`",
            self.span,
            labels=labels,
            help="indent what belongs to it, or write `pass` for an empty block",
        )

    # --- what was probably meant --------------------------------------------------------------------------------------
    def misspelt(self) -> Diagnostic | None:
        """A keyword with a wrong letter: `for i inn y`, `retrun x`, `esle:`."""
        token = self.token
        if token.type == "NAME" and self.before and len(token.text) > 1:
            words = [w for w in map(self.written.get, self.parser.expected()) if w is not None and w.isalpha()]
            meant = did_you_mean(token.text, words)
            if meant is not None and abs(len(meant) - len(token.text)) < 2:
                return self.suggest(token.text, meant, self.span)
        first = self.values[0] if self.values else None
        name = first.id if isinstance(first, tree.Name) else first.text if isinstance(first, Token) else ""
        if len(self.values) == 1 and (token.type in _VALUES or self.written.get(token.type) in _STARTS_WORDS):
            candidates = _STATEMENTS
        elif self.before[1:] == [":"] and token.type == "_NEWLINE":
            candidates = ("else",)
        else:
            return None
        meant = did_you_mean(name, candidates) if name.isidentifier() and name not in _STATEMENTS else None
        start = self.parser.starts[-len(self.values)]
        return self.suggest(name, meant, Span(self.parser.source, start, start + len(name))) if meant else None

    def suggest(self, word: str, meant: str, span: Span) -> Diagnostic:
        fix = Fix(span, meant, f"write `{meant}`")
        return Diagnostic("RLX0008", f"unexpected `{word}`", span, help=f"did you mean `{meant}`?", fixes=[fix])

    def special(self) -> Diagnostic | None:
        """Slips with a message of their own."""
        token, last, header = self.token, self.parser.last, self.header()
        if token.text in ("else", "elif") and self.parser.accepts("_ERROR"):
            help = "a loop has no `else`" if "for" in self.before or "while" in self.before else ""
            return Diagnostic("RLX0008", f"`{token.text}` belongs to no `if`", self.span, help=help)
        if self.parser.source.text.startswith(":=", token.start):
            span = Span(self.parser.source, token.start, token.start + 2)
            return Diagnostic("RLX0011", "`:=` is not part of the language", span, help="assign on a line of its own")
        if token.text == "=" and (header in ("if", "elif", "while") or "assert" in self.before):
            fix = Fix(self.span, "==", "compare with `==`")
            message, help = "unexpected `=` in a condition", "`==` compares two values"
            return Diagnostic("RLX0008", message, self.span, help=help, fixes=[fix])
        if token.text in ("&", "|") and last.text == token.text:
            word = "and" if token.text == "&" else "or"
            span = Span(self.parser.source, last.start, token.end)
            return Diagnostic("RLX0008", f"`{token.text * 2}` is not an operator", span, help=f"write `{word}`")
        if self.before and last.type == "_NEWLINE" and self.parser.accepts("DEF"):
            return Diagnostic("RLX0008", "expected `def` or `class` after a decorator", self.span)
        return None

    # --- expected and found -------------------------------------------------------------------------------------------
    def general(self) -> Diagnostic:
        found, expected, header = self.found(), self.expected(), self.header()
        brackets = self.parser.lexer.brackets
        if header is not None and not brackets and self.parser.accepts("COLON"):
            after = "the return type" if "->" in self.before else _HEADERS[header]
            message = f"expected `:` after {after}, found {found}"
        elif expected and len(expected) <= 4:
            message = f"expected {_list(expected)}, found {found}"
        else:
            message = f"unexpected {found}"
        labels = []
        if brackets and brackets[-1].start != self.token.start:
            labels = [Label(Span(self.parser.source, brackets[-1].start, brackets[-1].end), "in this bracket")]
        return Diagnostic("RLX0008", message, self.span, labels=labels)

    def found(self) -> str:
        """The token that does not fit, quoted when it is short."""
        token = self.token
        quoted = token.text and len(token.text) < 40 and "\n" not in token.text
        return f"`{token.text}`" if quoted else _CALLED.get(token.type, "this")

    def expected(self) -> list[str]:
        """What could come next, in a few words."""
        kinds = self.parser.expected()
        words = [self.written[k] for k in kinds if k in self.written]
        named = [k for k in kinds if k not in self.written]
        said: list[str] = []
        if "NAME" in named and "INT" in named:
            said.append("an expression")
            words = [w for w in words if w not in _STARTS]
            named = [k for k in named if k not in ("NAME", "INT", "FLOAT", "STRING")]
        elif ("+" in words and "**" in words) or ("*" in words and "and" in words):
            said.append("an operator")
            words = [w for w in words if w not in _BETWEEN and w not in ("=", ":")]
            named = [k for k in named if k not in ("STRING", "AUGMENTED")]
        words = [w for w in words if w != ";"]
        said += [_CALLED[k] for k in ("WORD", "NAME", "INT", "STRING", "_NEWLINE", "_INDENT", "$END") if k in named]
        return said + [f"`{w}`" for w in sorted(words)]


def _list(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"
