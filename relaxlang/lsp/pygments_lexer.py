"""A Pygments lexer, which uses the language's own: `pygmentize -l rlx`, Sphinx, notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String, Text

from relaxlang.lsp.names import NAMESPACES
from relaxlang.syntax.interactive import TokenClass, tokens

_TOKENS: dict[TokenClass, Any] = {
    "keyword": Keyword, "constant": Keyword.Constant, "name": Name, "number": Number, "string": String,
    "comment": Comment.Single, "operator": Operator, "bracket": Punctuation, "error": Error,
}  # fmt: skip


class RelaxLexer(Lexer):  # type: ignore[misc]
    """Tokens of `.rlx` texts."""

    name = "Relax"
    aliases: ClassVar[list[str]] = ["rlx", "relax"]
    filenames: ClassVar[list[str]] = ["*.rlx"]
    mimetypes: ClassVar[list[str]] = ["text/x-rlx"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """The offset, kind and text of every token, blanks included."""
        at, before = 0, ""
        for token in tokens(text):
            if at < token.start:
                yield at, Text, text[at : token.start]
            word, kind = text[token.start : token.end], _TOKENS[token.kind]
            if kind is Name:
                kind = Name.Function if before == "def" else Name.Class if before == "class" else kind
                kind = Name.Namespace if word in NAMESPACES else kind
            elif word == "@" and text[: token.start].rstrip(" \t")[-1:] in ("", "\n"):
                kind = Name.Decorator
            yield token.start, kind, word
            at, before = token.end, word
        if at < len(text):
            yield at, Text, text[at:]
