"""From text to tokens: the terminals of the grammar, brackets, and indentation as tokens.

The lexer reports what it cannot read and puts an `UNREADABLE` token in its place; no rule of the grammar takes one,
so the parser goes on from there as after any error, without a second report. Nothing here raises.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable, Iterator

from relaxlang.base.diagnostics import Diagnostic, Fix, Label
from relaxlang.base.source import Source, Span
from relaxlang.syntax.python_text import begins_python, end_of_python
from relaxlang.syntax.tables import Tables

MAX_BLOCKS = 100

_PAIRS = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_PAIRS.values())
_LONE = "()[]{},;~"  # marks that no other mark or number begins with
# A line inside brackets that begins with one of these words shows that a bracket was never closed.
_STATEMENT_WORDS = frozenset("def class return with while assert pass break continue import from".split())
_LOOKALIKES = {  # what word processors and input methods write instead
    "\u201c": '"',
    "\u201d": '"',
    "\u2018": "'",
    "\u2019": "'",
    "\u2212": "-",
    "\u2013": "-",
    "\u00d7": "*",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2260": "!=",
    "\u2192": "->",
    "\uff08": "(",
    "\uff09": ")",
    "\uff0c": ",",
    "\uff1a": ":",
    "\u00a0": " ",
    "\u3000": " ",
}
_SPACES = re.compile(r"[ \t\f]*")
_QUOTE = re.compile(r"[A-Za-z]{0,2}(\"\"\"|'''|\"|')")
_WORD = re.compile(r"\w+")


class Token:
    """A word of the text: its terminal, how it is written, and its place (offsets)."""

    __slots__ = ("type", "text", "start", "end")

    def __init__(self, type: str, text: str, start: int, end: int) -> None:
        self.type = type
        self.text = text
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"Token({self.type}, {self.text!r}, {self.start})"


class Vocabulary:
    """A grammar as the lexer sees it: one expression that matches any terminal, and the words.

    `names` maps keywords to terminals, and Python's other keywords to `RESERVED`; `marks` maps punctuation. `kinds` has
    the terminal of each group of `match`.
    """

    def __init__(self, tables: Tables) -> None:
        reserved = {word: "RESERVED" for word in keyword.kwlist if word not in tables.words}
        self.names = reserved | {word: name for word, name in tables.words.items() if word.isidentifier()}
        self.marks = {word: name for word, name in tables.words.items() if not word.isidentifier()}
        patterns = dict(tables.patterns)
        blank = patterns.pop("BLANK", r"\s+")
        words = [*patterns.items(), ("MARK", "|".join(map(re.escape, sorted(self.marks, key=len, reverse=True))))]
        # Most words are names that no quote follows, and marks that begin no other word: they are tried first.
        if "NAME" in patterns:
            words.insert(0, ("NAME", rf"(?:{patterns['NAME']})(?![\w\"'])"))
        words.insert(0, ("MARK", "[" + re.escape("".join(m for m in self.marks if m in _LONE)) + "]"))
        any_word = "|".join(f"(?P<_{k}>{pattern})" for k, (_, pattern) in enumerate(words))
        self.blank = re.compile(f"(?:{blank})?")
        pattern = re.compile(rf"(?:{blank})?(?:{any_word}|(?P<_{len(words)}>\n))")
        self.match = pattern.match
        kinds = [*(kind for kind, _ in words), "NEWLINE"]
        self.kinds = {number: kinds[int(name[1:])] for name, number in pattern.groupindex.items()}


class Lexer:
    """Tokens of `source.text[start:end]`, one after another.

    `comments` collects the spans of all comments passed. With `nested` the text is the inside of a bracket: line
    breaks mean nothing and there is no indentation (the text of an expression).
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        source: Source,
        report: Callable[[Diagnostic], None],
        start: int = 0,
        end: int | None = None,
        nested: bool = False,
    ) -> None:
        self.vocabulary = vocabulary
        self.source = source
        self.report = report
        self.quiet = False  # set while the parser skips the rest of a bad statement
        self.start = start
        self.end = len(source.text) if end is None else end
        self.nested = nested
        self.unfinished = False  # set when the text ends inside a bracket or string, or after a backslash
        self.comments: list[Span] = []
        self.brackets: list[Token] = []
        self._tabs_reported = False
        self._slipped: tuple[int, int] | None = None  # the indentation before an unindent that matches nothing
        self.indents: list[tuple[int, int]] = [(0, 0)]

    def tokens(self) -> Iterator[Token]:
        """Every token, ending in `$END`."""
        return self._scan(self.start) if self.nested else self.resume(self.start)

    def resume(self, at: int) -> Iterator[Token]:
        """Tokens from the start of a line on, with no bracket open: the parser's way out of an unclosed bracket."""
        self.brackets.clear()
        at, edges = self._begin_line(at, at)
        yield from edges
        yield from self._scan(at)

    def _scan(self, at: int) -> Iterator[Token]:
        """Tokens from the offset `at` on, which is past the indentation of its line."""
        text, end, brackets, nested = self.source.text, self.end, self.brackets, self.nested
        words = self.vocabulary
        match, kinds, names, marks = words.match, words.kinds, words.names, words.marks
        line = last = at  # where the first token of this line is due; where the last token ended
        while True:
            found = match(text, at, end)
            if found is None:
                at = _end_of(words.blank, text, at, end)
                if at >= end:
                    if "\\" in text[max(line, last) : end]:
                        yield self._joined_with_nothing(last)
                    break
                token, at = self._unreadable(at)
                last = token.end
                yield token
                continue
            group = found.lastindex or 0  # every alternative is a group; the type checker cannot know
            kind = kinds[group]
            start, at = found.span(group)
            word = text[start:at]
            if kind == "NAME":
                kind = names.get(word, kind)
                if brackets and word in _STATEMENT_WORDS and self.first_on_line(start):
                    self._report_unclosed()
                    yield Token("UNREADABLE", "", last, last)
                    yield Token("_NEWLINE", "", last, last)
                    at, edges = self._begin_line(text.rfind("\n", 0, start) + 1, last)
                    yield from edges
                    line = at
                    continue
                if not word.isascii():
                    kind, word = self._unicode_name(kind, word, start)
            elif kind == "MARK":
                kind = marks[word]
                if word in _PAIRS:
                    brackets.append(Token("", word, start, at))
                elif word in _CLOSING:
                    kind = kind if self._closes(word, start) else "UNREADABLE"
                elif word == "@" and not brackets and self.first_on_line(start) and begins_python(text, start, end):
                    at = end_of_python(text, start, end)
                    kind, word = "PYTHON", text[start:at]
            elif kind == "NEWLINE":
                if brackets or nested:
                    continue
                if last > line:
                    yield Token("_NEWLINE", "", last, last)
                at, edges = self._begin_line(at, last)
                yield from edges
                line = at
                continue
            elif kind == "COMMENT":
                self.comments.append(Span(self.source, start, at))
                continue
            elif kind in ("INT", "FLOAT") and at < end and (text[at].isalnum() or text[at] == "_"):
                kind, at = self._glued_number(kind, start, at)
            last = at
            yield Token(kind, word, start, at)
        yield from self._finish(line, last)

    def _finish(self, line: int, last: int) -> Iterator[Token]:
        if self.brackets:
            self.unfinished = True
            self._report_unclosed()
            yield Token("UNREADABLE", "", last, last)
        if not self.nested:
            if last > line:
                yield Token("_NEWLINE", "", last, last)
            for _ in self.indents[1:]:
                yield Token("_DEDENT", "", last, last)
        yield Token("$END", "", last, last)

    def _report(self, diagnostic: Diagnostic) -> None:
        if not self.quiet:
            self.report(diagnostic)

    # --- lines and indentation ----------------------------------------------------------------------------------------
    def first_on_line(self, at: int) -> bool:
        """Whether only blanks stand before `at` on its line."""
        text = self.source.text
        while at > self.start and text[at - 1] in " \t\f":
            at -= 1
        return at == self.start or text[at - 1] == "\n"

    def _begin_line(self, at: int, last: int) -> tuple[int, list[Token]]:
        """Pass empty lines, and compare the next line's indentation with the open blocks.

        Returns where its first word is due, and the `_INDENT` or `_DEDENT` tokens that come before.
        """
        text, end = self.source.text, self.end
        if at == 0 and text.startswith("\ufeff"):
            at = 1
        while True:
            line, at = at, _end_of(_SPACES, text, at, end)
            if text.startswith("#", at):
                stop = text.find("\n", at, end)
                stop = end if stop < 0 else stop
                self.comments.append(Span(self.source, at, stop - text.startswith("\r", stop - 1)))
                at = stop
            if at >= end:
                return at, []
            if text.startswith("\n", at):
                at += 1
            elif text.startswith("\r\n", at):
                at += 2
            else:
                return at, self._edges(line, at, last)

    def indentation(self, line: int) -> tuple[int, int]:
        """The indentation of the line that begins at an offset, as an entry of `indents`."""
        return self._width(line, _end_of(_SPACES, self.source.text, line, self.end)) if line else (0, 0)

    def _width(self, line: int, at: int) -> tuple[int, int]:
        # As in Python, two measures of a tab: when they order two lines differently, the indentation is ambiguous.
        prefix = self.source.text[line:at].rpartition("\f")[2]
        return (len(prefix.expandtabs(8)), len(prefix)) if "\t" in prefix else (len(prefix), len(prefix))

    def _edges(self, line: int, at: int, last: int) -> list[Token]:
        indents, here = self.indents, self._width(line, at)
        if here == indents[-1]:
            return []
        if here[0] > indents[-1][0]:
            if here == self._slipped and not self.source.text.endswith(":", 0, last):
                return []
            if here[1] <= indents[-1][1]:
                self._report_tabs(line, at)
            indents.append(here)
            if len(indents) == MAX_BLOCKS + 2:
                self._report(
                    Diagnostic(
                        "RLX0009",
                        f"more than {MAX_BLOCKS} nested blocks",
                        Span(self.source, line, at),
                        help="move the inner blocks into functions",
                    )
                )
            return [Token("_INDENT", "", at, at)]
        edges = []
        while here[0] < indents[-1][0]:
            closed = indents.pop()
            edges.append(Token("_DEDENT", "", last, last))  # a block ends with its last word
        if here[0] > indents[-1][0]:
            self._report(
                Diagnostic(
                    "RLX0006",
                    "unindent matches no outer block",
                    Span(self.source, line, at),
                    label=f"{here[0]} columns",
                    help=f"indent by {indents[-1][0]} or {closed[0]} columns",
                )
            )
            indents.append(here)  # most likely a slip within the block that seemed to end
            self._slipped = closed
            edges.pop()
        elif here[1] != indents[-1][1]:
            self._report_tabs(line, at)
        return edges

    def _report_tabs(self, line: int, at: int) -> None:
        if self._tabs_reported:  # one line says what is wrong with all of them
            return
        self._tabs_reported = True
        self._report(
            Diagnostic(
                "RLX0007",
                "tabs and spaces are mixed in the indentation",
                Span(self.source, line, at),
                help="indent with spaces only",
                notes=["how wide a tab is would decide which block this line belongs to"],
            )
        )

    # --- brackets -----------------------------------------------------------------------------------------------------
    def _closes(self, word: str, start: int) -> bool:
        """Close a bracket; False, after a report, when none or another one is open: which ones are is guessed then."""
        brackets = self.brackets
        if brackets and _PAIRS[brackets[-1].text] == word:
            brackets.pop()
            return True
        span = Span(self.source, start, start + 1)
        if not brackets:
            self._report(Diagnostic("RLX0005", f"unmatched `{word}`", span, label="no bracket is open here"))
            return False
        opened = brackets[-1]
        self._report(
            Diagnostic(
                "RLX0005",
                f"`{word}` does not close `{opened.text}`",
                span,
                label=f"expected `{_PAIRS[opened.text]}`",
                labels=[Label(Span(self.source, opened.start, opened.end), "opened here")],
            )
        )
        if not any(_PAIRS[b.text] == word for b in brackets[:-1]):
            brackets.pop()  # most likely the wrong kind of bracket
        else:
            while _PAIRS[brackets.pop().text] != word:
                pass
        return False

    def unclosed(self) -> Diagnostic:
        """The error that the innermost open bracket is never closed."""
        opened = self.brackets[-1]
        more = len(self.brackets) - 1
        return Diagnostic(
            "RLX0004",
            f"`{opened.text}` is never closed",
            Span(self.source, opened.start, opened.end),
            label="opened here",
            notes=[f"{more} more {'bracket is' if more == 1 else 'brackets are'} open around it"] if more else [],
        )

    def _report_unclosed(self) -> None:
        self._report(self.unclosed())
        self.brackets.clear()

    # --- what is no token ---------------------------------------------------------------------------------------------
    def _unreadable(self, at: int) -> tuple[Token, int]:
        """Report the text at `at`, which begins no token; a token that covers it, and where to go on."""
        text, end = self.source.text, self.end
        quote = _QUOTE.match(text, at, end)
        if quote is not None:
            return self._unterminated(at, quote[1], quote.end())
        char = text[at]
        span = Span(self.source, at, at + 1)
        like = _LOOKALIKES.get(char)
        if char == "\\":
            self.unfinished = at + 1 == end
            self._report(
                Diagnostic("RLX0001", "a backslash joins two lines only as the last character of a line", span)
            )
        elif like is not None:
            name = unicodedata.name(char, "character").lower()
            fix = Fix(span, like, f"write `{like}`")
            self._report(
                Diagnostic("RLX0001", f"unexpected {name} `{char}`", span, help=f"write `{like}`", fixes=[fix])
            )
        else:
            shown = f"`{char}`" if char.isprintable() else f"U+{ord(char):04X}"
            self._report(Diagnostic("RLX0001", f"unexpected character {shown}", span))
        stop = at + 1
        while stop < end and text[stop] == char:
            stop += 1
        return Token("UNREADABLE", char, at, stop), stop

    def _joined_with_nothing(self, last: int) -> Token:
        self.unfinished = True
        at = self.source.text.rfind("\\", last, self.end)
        self._report(Diagnostic("RLX0001", "a backslash joins this line with nothing", Span(self.source, at, at + 1)))
        return Token("UNREADABLE", "", last, last)

    def _unterminated(self, at: int, quote: str, inside: int) -> tuple[Token, int]:
        text = self.source.text
        stop = self.end
        if len(quote) > 1:
            self.unfinished = True
        else:
            stop = text.find("\n", inside, self.end)
            while stop > 0 and text[stop - 1] == "\\" and stop < self.end:  # a joined line belongs to the string
                stop = text.find("\n", stop + 1, self.end)
            stop = self.end if stop < 0 else stop
        self.brackets.clear()  # what would close them is inside the string
        self._report(
            Diagnostic(
                "RLX0002",
                f"unterminated {'triple-quoted ' if len(quote) > 1 else ''}string",
                Span(self.source, at, inside),
                label="begins here",
                help=f"close it with `{quote}`",
            )
        )
        return Token("UNREADABLE", quote, at, stop), stop

    def _unicode_name(self, kind: str, word: str, start: int) -> tuple[str, str]:
        """Python's rule: names are compared in their normal form NFKC."""
        if word.isidentifier():
            word = unicodedata.normalize("NFKC", word)
            return self.vocabulary.names.get(word, kind), word
        bad = next((c for c in word if not ("a" + c).isidentifier()), word[0])
        self._report(
            Diagnostic(
                "RLX0001", f"unexpected character `{bad}` in a name", Span(self.source, start, start + len(word))
            )
        )
        return "UNREADABLE", word

    def _glued_number(self, kind: str, start: int, at: int) -> tuple[str, int]:
        """`1if` is a number and a keyword; `1x` and `0b12` are nothing."""
        stop = _end_of(_WORD, self.source.text, at, self.end)
        rest = self.source.text[at:stop]
        if rest in self.vocabulary.names:
            return kind, at
        written = self.source.text[start:stop]
        complex_ = rest in ("j", "J")
        self._report(
            Diagnostic(
                "RLX0003",
                "complex numbers are not part of the language" if complex_ else f"`{written[:40]}` is not a number",
                Span(self.source, start, stop),
                help="" if complex_ else "a name cannot begin with a digit",
            )
        )
        return "UNREADABLE", stop


def _end_of(pattern: re.Pattern[str], text: str, at: int, end: int) -> int:
    """Where a match of `pattern` at `at` ends; `at` itself when there is none."""
    found = pattern.match(text, at, end)
    return at if found is None else found.end()
