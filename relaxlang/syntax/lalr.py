"""The loop that runs an LALR(1) table: shift, reduce, call back, and go on after an error.

It differs from lark's own loop in two points. A callback gets the span of its rule, brackets included. And a chain of
`?rule`s that only hand a value on, fifteen of them from a name up to an expression, is one step, remembered per (state
below, state, token), and with the rule whose value it is per (state below, rule, token): 2,000 dense lines take less
than half the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from relaxlang.base.diagnostics import Diagnostic
from relaxlang.base.source import Source, Span
from relaxlang.syntax.lexer import Lexer, Token
from relaxlang.syntax.tables import CALL, LIST, PASS, Rule, Tables

MAX_NESTING = 200
MAX_ERRORS = 50

# Terminals that nest what follows them one level deeper, as states on the stack.
_NESTING = frozenset({"(", "[", "{", "not", "-", "+", "~", "**", "lambda", "else"})
_EDGES = ("_INDENT", "_DEDENT", "$END")


class Parser:
    """One run of `tables` over the tokens of `lexer`, from the rule `start`.

    `callbacks` has a method for each callback of the grammar; it is called with the span and the kept values.
    `explain(parser, token)` words the error at a token that does not fit.
    """

    def __init__(
        self,
        tables: Tables,
        start: str,
        lexer: Lexer,
        callbacks: object,
        explain: Callable[[Parser, Token], Diagnostic],
    ) -> None:
        self.tables = tables
        self.lexer = lexer
        self.source: Source = lexer.source
        self.explain = explain
        self.report = lexer.report
        self.callbacks: list[Any] = [
            getattr(callbacks, rule.callback) if rule.kind == CALL else None for rule in tables.rules
        ]
        self.states = [tables.starts[start]]
        self.values: list[Any] = []
        self.starts: list[int] = []
        self.last = Token("", "", lexer.start, lexer.start)  # the last token shifted
        self.errors = 0
        self._nesting = frozenset(name for word, name in tables.words.items() if word in _NESTING)

    def run(self) -> Any:
        """The value of the start rule; None when the text is beyond recovery (an error was reported then)."""
        stream: Iterator[Token] | None = self.lexer.tokens()
        while stream is not None:
            failed = self.drive(stream)
            if failed is None:
                return self.values[0]
            stream = self._recover(failed, stream)
        return None

    def drive(self, stream: Iterator[Token]) -> Token | None:
        """Consume tokens up to the end (None) or to the one that does not fit."""
        states, values, starts = self.states, self.values, self.starts
        rows, rules, skips, gotos = self.tables.rows, self.tables.rules, self.tables.skips, self.tables.gotos
        for token in stream:
            kind = token.type
            while True:
                action = rows[states[-1]].get(kind)
                if action is None:
                    return token
                if action > 0:
                    break
                rule = rules[~action]
                if rule.kind == PASS:
                    chained = (states[-2], states[-1], kind)
                    target = skips.get(chained)
                    if target is None:
                        target = skips[chained] = self._skip(*chained)
                    states[-1] = target
                    continue
                self._reduce(rule, ~action)
                below = states[-1]
                reduced = (below, action, kind)
                target = gotos.get(reduced)
                if target is None:
                    target = gotos[reduced] = self._skip(below, rows[below][rule.origin] - 1, kind)
                states.append(target)
            states.append(action - 1)
            values.append(token)
            starts.append(token.start)
            self.last = token
            if len(states) > MAX_NESTING and kind in self._nesting and self._nested() > MAX_NESTING:
                return Token("TOO_DEEP", token.text, token.start, token.end)
        return None

    def _skip(self, below: int, state: int, kind: str) -> int:
        """The state after all the pass-on rules that reduce in `state` on `kind`."""
        rows, rules = self.tables.rows, self.tables.rules
        while True:
            action = rows[state].get(kind, 0)
            if action >= 0 or rules[~action].kind != PASS:
                return state
            state = rows[below][rules[~action].origin] - 1

    def _reduce(self, rule: Rule, number: int) -> None:
        """Put the value of a rule in the place of those of its symbols; the state is the caller's to add."""
        states, values, starts = self.states, self.values, self.starts
        _, size, kind, _, keep, picks = rule
        end = self.last.end
        if size:
            parts = values[-size:]
            start = starts[-size]
            del states[-size:], values[-size:], starts[-size:]
        else:
            parts, start = [], end
        if picks is not None:
            kept = parts if len(picks) == size else [parts[at] for at in picks]
        else:
            kept = _kept(parts, keep)
        if kind == CALL:
            values.append(self.callbacks[number](Span(self.source, start, end), *kept))
        else:
            values.append(kept if kind == LIST else kept[0])
        starts.append(start)

    # --- errors -------------------------------------------------------------------------------------------------------
    def _nested(self) -> int:
        """How many levels of brackets, prefix operators and the like are open in this statement."""
        symbols, states, rows = self.tables.symbols, self.states, self.tables.rows
        count = 0
        for at in range(len(states) - 1, 0, -1):
            if "_statement" in rows[states[at]]:
                break
            binary = symbols[states[at - 1]] == "sum"  # a minus after a sum nests nothing: the tree leans left
            count += symbols[states[at]] in self._nesting and not binary
        return count

    def _recover(self, token: Token, stream: Iterator[Token]) -> Iterator[Token] | None:
        """Report `token`, drop its statement, put `_ERROR` there, and return the tokens from the end of the line on.

        None when there is no statement to drop (a lone expression), or after too many errors.
        """
        if token.type != "UNREADABLE":
            self.report(self.explain(self, token))
        self.errors += 1
        broke_off = False  # whether the statement ends before this line: a header without block, a lone decorator
        if not self.accepts("_ERROR"):
            at = self.statement_base()
            if at is None:
                return None
            broke_off = self.last.type == "_NEWLINE"
            del self.states[at + 1 :], self.values[at:], self.starts[at:]
        if self.errors == MAX_ERRORS:
            place = Span(self.source, token.start, token.end)
            message = f"the text below has not been read, after {MAX_ERRORS} syntax errors above"
            self.report(Diagnostic("RLX0008", message, place, level="note"))
            return None
        error, stop = (Token(kind, "", token.start, token.start) for kind in ("_ERROR", "_NEWLINE"))
        if broke_off or token.type in _EDGES:
            return chain((error, stop, token), stream)
        self.lexer.quiet = True
        while token.type != "_NEWLINE" and token.type not in _EDGES:
            line = self.begins_line_outside(token)
            if line is not None:
                stream = self.lexer.resume(line)
                token = stop
            else:
                token = next(stream)
        self.lexer.quiet = False
        return chain((error, token) if token.type == "_NEWLINE" else (error, stop, token), stream)

    def statement_base(self) -> int | None:
        """The index in `states` of the state that the current statement began in; None inside a lone expression."""
        rows, states = self.tables.rows, self.states
        return next((at for at in range(len(states) - 1, -1, -1) if "_statement" in rows[states[at]]), None)

    def begins_line_outside(self, token: Token) -> int | None:
        """The start of `token`'s line, if it is a line that the open brackets cannot be meant to hold.

        That is one whose first word stands no further right than the statement itself: some bracket is not closed.
        """
        lexer = self.lexer
        if not lexer.brackets or token.text in (")", "]", "}") or not lexer.first_on_line(token.start):
            return None
        line = self.source.text.rfind("\n", 0, token.start) + 1
        width = len(self.source.text[line : token.start].expandtabs(8))
        if line <= lexer.brackets[0].start or width > lexer.indents[-1][0]:
            return None
        return line

    def accepts(self, kind: str) -> bool:
        """Whether a token of this terminal could come next. Looks through the pending reductions."""
        rows, rules = self.tables.rows, self.tables.rules
        states = list(self.states)
        while True:
            action = rows[states[-1]].get(kind)
            if action is None:
                return False
            if action > 0:
                return True
            rule = rules[~action]
            if rule.size:
                del states[-rule.size :]
            states.append(rows[states[-1]][rule.origin] - 1)

    def expected(self) -> list[str]:
        """The terminals that could come next."""
        terminals = (s for s in self.tables.rows[self.states[-1]] if s.lstrip("_").isupper() or s == "$END")
        return [kind for kind in terminals if self.accepts(kind)]


def _kept(parts: list[Any], keep: tuple[tuple[int, bool], ...]) -> list[Any]:
    """The values that a rule keeps, those of lists among them one by one."""
    kept: list[Any] = []
    for at, splice in keep:
        if not splice:
            kept.append(parts[at] if at >= 0 else None)
        elif kept:
            kept += parts[at]
        else:
            kept = parts[at]  # the list of a left-recursive rule grows in place
    return kept
