"""Did-you-mean: the known name that a misspelt one most likely stands for."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate closest to `word`, or None when none is close enough to be worth a suggestion.

    Differences of case, `-`, `_` and a missing namespace (`relu` for `nn.relu`) count less than wrong letters.
    """
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
    close = get_close_matches(wanted, folded, n=1, cutoff=0.6 if len(wanted) > 3 else 0.5)
    return folded[close[0]] if close else None


def _fold(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
