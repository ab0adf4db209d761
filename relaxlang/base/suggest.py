"""Did-you-mean: the known name that a misspelt one most likely stands for, and the edit that puts it there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypedDict

from relaxlang.base.diagnostics import Fix
from relaxlang.base.source import Span

_ALIKE = 0.75  # how alike a misspelt name must be to what it is replaced by, and
_AHEAD = 0.08  # how much more alike than the next candidate


class Hint(TypedDict):
    """What a diagnostic says about a misspelt name: `Diagnostic(…, **suggestion(…))`."""

    help: str
    fixes: tuple[Fix, ...]


def suggestion(word: str, candidates: Iterable[str], span: Span | None = None, prefix: str = "") -> Hint:
    """`help` names the nearest candidate (with `prefix` before it: `R.`), if there is one.

    `fixes` replaces the word where it stands in the text of `span`. There is none unless the candidate is the only near
    one and the word stands there once, so that `relaxc --fix` changes only what is certain.
    """
    known = set(candidates)
    near = did_you_mean(word, known)
    if near is None:
        return {"help": "", "fixes": ()}
    help = f"did you mean `{prefix}{near}`?"
    place = _only_place(word, span) if span is not None and _is_certain(word, near, known) else None
    return {"help": help, "fixes": (Fix(place, near, help),) if place is not None else ()}


def place_of(word: str, span: Span | None) -> Span | None:
    """Where a word stands in the text of a span, so that the caret stands there; the whole span unless it does once."""
    return (_only_place(word, span) if span is not None else None) or span


def _only_place(word: str, span: Span) -> Span | None:
    """Where the word stands in the text of a span, if it stands there once."""
    found = list(re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", span.text))
    return Span(span.source, span.start + found[0].start(), span.start + found[0].end()) if len(found) == 1 else None


def _is_certain(word: str, near: str, known: set[str]) -> bool:
    """Whether no other candidate could be meant as well."""
    from difflib import SequenceMatcher

    wanted, others = _fold(word), known - {word, near}
    for view in (_fold, _last):
        if view(near) == view(word):
            return all(view(other) != view(word) for other in others)
    ratio = {name: SequenceMatcher(None, wanted, _fold(name)).ratio() for name in {near, *others}}
    best = ratio.pop(near)
    return best >= _ALIKE and all(best - other >= _AHEAD for other in ratio.values())


def did_you_mean(word: object, candidates: Iterable[str]) -> str | None:
    """The candidate closest to `word`, or None when none is close enough to be worth a suggestion.

    Differences of case, `-`, `_` and a missing namespace (`relu` for `nn.relu`) count less than wrong letters. What is
    no text, as in `mod[3]`, is close to nothing.
    """
    if not isinstance(word, str):
        return None
    from difflib import get_close_matches  # 4 ms, needed on errors only

    known = sorted(set(candidates) - {word})
    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(_fold(name), name)
    wanted = _fold(word)
    if wanted in folded:
        return folded[wanted]
    last = wanted.rpartition(".")[2]
    for name in known:
        if last and _fold(name).rpartition(".")[2] == last:
            return name
    close = get_close_matches(wanted, folded, n=8, cutoff=0.6 if len(wanted) > 3 else 0.5)
    # what is alike by its letters in a row comes first by how few of them have to change: `exp` for `exq`, not `EQ`
    return min((folded[name] for name in close), key=lambda name: _edits(word, name), default=None)


def _edits(word: str, name: str) -> tuple[int, int]:
    """How many letters are to be changed, added or removed, case aside, and then with it."""
    return _distance(_fold(word), _fold(name)), _distance(word, name)


def _distance(left: str, right: str) -> int:
    """Levenshtein's distance of two short words."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        above, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (a != b))
    return row[-1]


def _last(name: str) -> str:
    return _fold(name).rpartition(".")[2]


def _fold(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
