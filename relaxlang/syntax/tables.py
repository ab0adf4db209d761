"""The grammar files as tables: LALR states and rules for the parser, terminals for the lexer.

Lark reads `grammar/*.lark`, resolves the EBNF and builds the LALR(1) table, once; the result is kept beside them as
plain JSON. A later start reads that (a few milliseconds) and does not import lark; a wheel has it from the beginning.
The loop that runs the table is `syntax.lalr`: it passes spans to the callbacks and skips chains of `?rule`s in one
step, for which lark's own loop has no room.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from relaxlang.base.resources import grammar_text, keep_made, made_content, read_made, resource_dir, shipped_place
from relaxlang.base.version import __version__

_FORMAT = "2"  # of the cached JSON; raise it whenever `_to_json` changes

# Grammars: files under `grammar/`, read as one text, and start rules.
LANGUAGE = (("rlx", "expr", "lexical"), ("module", "expression"))
PIPELINE = (("pipeline",), ("pipeline",))

# What a rule does with the values of its symbols.
PASS = 0  # one symbol, handed on: `?sum: product`
PICK = 1  # one of several symbols, handed on: `"(" expr ")"`
LIST = 2  # a list that the rule above splices: `_name`, `x*`, `x+`
CALL = 3  # a callback


class Rule(NamedTuple):
    """One production.

    `keep` lists the symbols whose values count: (position, whether it is a list to splice); position -1 is a None
    that stands for an absent `[x]`. `picks` are the positions where there is neither, as in most rules.
    """

    origin: str
    size: int
    kind: int
    callback: str
    keep: tuple[tuple[int, bool], ...]
    picks: tuple[int, ...] | None


class Tables(NamedTuple):
    """An LALR(1) automaton. `rows[state][symbol]` is `target + 1` for shift and goto, `-1 - rule` for a reduction.

    `patterns` are the regular terminals (name, expression) in the order of trial, `words` maps keywords and
    punctuation to their terminals, `ignored` names what separates tokens, and `symbols[state]` is the symbol that
    leads into a state. `skips` and `gotos` are the parser's memory of chains of rules that only pass a value on.
    """

    rows: list[dict[str, int]]
    rules: list[Rule]
    starts: dict[str, int]
    ends: dict[str, int]
    patterns: list[tuple[str, str]]
    words: dict[str, str]
    ignored: frozenset[str]
    symbols: list[str]
    skips: dict[tuple[int, int, str], int]
    gotos: dict[tuple[int, int, str], int]


@cache
def load_tables(files: tuple[str, ...], starts: tuple[str, ...]) -> Tables:
    """The tables of the grammar in `files` for the given start rules: `LANGUAGE` or `PIPELINE`."""
    origin, grammar, key = _origin(files, starts)
    made = read_made(origin, key)
    if made is None:
        made = _made(grammar, starts)
        keep_made(origin, key, made)
    return _from_json(json.loads(made))


def shipped_tables() -> dict[str, bytes]:
    """The tables that a wheel has: contents of files beside the grammar, by name."""
    found = {}
    for files, starts in (LANGUAGE, PIPELINE):
        origin, grammar, key = _origin(files, starts)
        found[shipped_place(origin).name] = made_content(key, _made(grammar, starts))
    return found


def _origin(files: tuple[str, ...], starts: tuple[str, ...]) -> tuple[Path, str, str]:
    """The file that tables are kept with, the text of the grammar, and all that the tables depend on."""
    grammar = "\n".join(grammar_text(name) for name in files)
    return resource_dir("grammar") / f"{files[0]}.lark", grammar, "\0".join((_FORMAT, __version__, grammar, *starts))


def _made(grammar: str, starts: tuple[str, ...]) -> bytes:
    return json.dumps(_to_json(grammar, starts), separators=(",", ":")).encode()


def _from_json(data: dict[str, Any]) -> Tables:
    names: list[str] = data["names"]
    rows = [dict(zip(map(names.__getitem__, row[::2]), row[1::2], strict=True)) for row in data["rows"]]
    for end in data["ends"].values():
        rows[end]["$END"] = end + 1  # accepting is a shift, after which there are no more tokens
    rules = []
    for origin, size, kind, callback, keep in data["rules"]:
        picks = None if any(at < 0 or splice for at, splice in keep) else tuple(at for at, _ in keep)
        kept = tuple((at, bool(splice)) for at, splice in keep)
        rules.append(Rule(origin, size, kind, callback, kept, picks))
    return Tables(
        rows,
        rules,
        data["starts"],
        data["ends"],
        [(name, pattern) for name, pattern in data["patterns"]],
        data["words"],
        frozenset(data["ignored"]),
        [names[symbol] if symbol >= 0 else "" for symbol in data["symbols"]],
        skips={},
        gotos={},
    )


def _to_json(grammar: str, starts: tuple[str, ...]) -> dict[str, Any]:
    """Build the tables with lark; only lists, dicts, strings and integers."""
    from lark import Lark
    from lark.parsers.lalr_analysis import Shift

    parser: Any = Lark(grammar, parser="lalr", lexer="basic", start=list(starts), maybe_placeholders=True)
    table = parser.parser.parser._parse_table
    numbers = {rule: i for i, rule in enumerate(parser.rules)}
    state_of = {state: i for i, state in enumerate(table.states)}
    names: dict[str, int] = {}
    rows = []
    symbols = [-1] * len(table.states)
    for actions in table.states.values():
        row: list[int] = []
        for symbol, (action, argument) in actions.items():
            number = names.setdefault(symbol, len(names))
            row += (number, state_of[argument] + 1 if action is Shift else -1 - numbers[argument])
            if action is Shift:
                symbols[state_of[argument]] = number
        rows.append(row)
    terminals = sorted(parser.terminals, key=lambda t: -t.priority)
    return {
        "names": list(names),
        "rows": rows,
        "symbols": symbols,
        "rules": [_rule(rule) for rule in parser.rules],
        "starts": {name: state_of[state] for name, state in table.start_states.items()},
        "ends": {name: state_of[state] for name, state in table.end_states.items()},
        "patterns": [[t.name, t.pattern.to_regexp()] for t in terminals if t.pattern.type == "re"],
        "words": {t.pattern.value: t.name for t in terminals if t.pattern.type == "str"},
        "ignored": list(parser.ignore_tokens),
    }


def _rule(rule: Any) -> list[Any]:
    """A production as [origin, size, kind, callback, keep], following lark's conventions for names and options."""
    keep: list[tuple[int, bool]] = []
    absent = "".join("1" if empty else "0" for empty in rule.options.empty_indices or [False] * len(rule.expansion))
    nones = [len(ones) for ones in absent.split("0")]
    for at, symbol in enumerate(rule.expansion):
        keep += [(-1, False)] * nones[at]
        if not symbol.is_term or rule.options.keep_all_tokens or not symbol.filter_out:
            keep.append((at, not symbol.is_term and symbol.name.startswith("_")))
    keep += [(-1, False)] * nones[-1]
    origin: str = rule.origin.name
    if origin.startswith("_"):
        kind = LIST
    elif rule.options.expand1 and not rule.alias and len(keep) == 1 and not keep[0][1]:
        kind = PASS if len(rule.expansion) == 1 else PICK
    else:
        kind = CALL
    return [origin, len(rule.expansion), kind, rule.alias or origin, keep]
