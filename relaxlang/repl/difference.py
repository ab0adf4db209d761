"""How two modules differ, as text. Functions that the two share are not even printed, so large modules stay quick."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from relaxlang.ir.module import IRModule
from relaxlang.ir.structural import structural_equal

HEAD = 2
"""Lines with which the text of a module begins: its decorator and its class."""


def changed_functions(old: IRModule, new: IRModule) -> tuple[list[str], list[str], list[str]]:
    """The functions that only `new` has, that only `old` has, and that differ."""
    added = [n for n in new.functions if n not in old]
    removed = [n for n in old.functions if n not in new]
    both = [n for n in old.functions if n in new and old.functions[n] is not new.functions[n]]
    return added, removed, [n for n in both if not structural_equal(old.functions[n], new.functions[n])]


def summary(old: IRModule, new: IRModule) -> str:
    """How many functions changed, in words."""
    words = []
    for names, verb in zip(changed_functions(old, new), ("added", "removed", "changed")):
        if names:
            shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
            words.append(f"{len(names)} {verb} ({shown})")
    return "; ".join(words) or "no function changed"


def _texts(old: IRModule, new: IRModule, whole: bool) -> tuple[list[str], list[str]]:
    """The lines of the functions that differ; those that one side lacks only when the `whole` difference is wanted, or
    there is no other."""
    added, removed, changed = changed_functions(old, new)
    concerned = {*added, *removed, *changed} if whole or not changed else set(changed)

    def part(module: IRModule) -> list[str]:
        functions = {n: f for n, f in module.functions.items() if n in concerned}
        if not functions:
            return []
        return module.with_functions(functions).script().splitlines()

    return part(old), part(new)


def _each(old: IRModule, new: IRModule, whole: bool) -> Iterator[tuple[list[str], list[str]]]:
    """As `_texts`, function by function: comparing the lines of a large module with all others takes long. The head of
    the module goes with the first of them."""
    added, removed, changed = changed_functions(old, new)
    concerned = {*added, *removed, *changed} if whole or not changed else set(changed)

    def part(module: IRModule, name: str, at: int) -> list[str]:
        if name not in module:
            return []
        lines = module.with_functions({name: module.functions[name]}).script().splitlines()
        return lines if at == 0 else lines[HEAD:]

    for at, name in enumerate(dict.fromkeys(n for n in (*old.functions, *new.functions) if n in concerned)):
        yield part(old, name, at), part(new, name, at)


def diff_text(old: IRModule, new: IRModule, whole: bool = False) -> str:
    """A unified difference with three lines around each change; empty when the modules are equal.

    Of functions that were added or removed beside changed ones, the text is there when the `whole` is asked for.
    """
    first, second = _texts(old, new, whole)
    lines = list(difflib.unified_diff(first, second, "before", "after", lineterm="", n=3))
    return "\n".join(lines[2:])


def side_by_side(old: IRModule, new: IRModule, whole: bool, width: int) -> str:
    """The two texts next to each other: `|` between lines that differ, `<` and `>` by lines that one side lacks."""
    half = (width - 3) // 2
    rows: list[tuple[str, str, str]] = []
    for first, second in _each(old, new, whole):
        rows += _rows(first, second)
    return "\n".join(f"{cut(a, half)} {sign} {cut(b, half)}".rstrip() for a, sign, b in rows)


def cut(line: str, width: int) -> str:
    """A line of exactly so many characters, shortened where it is longer."""
    return line.ljust(width) if len(line) <= width else line[: width - 1] + "…"


def _rows(first: list[str], second: list[str]) -> Iterator[tuple[str, str, str]]:
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        left, right = first[i1:i2], second[j1:j2]
        if kind == "equal":
            yield from ((a, " ", a) for a in left)
            continue
        for k in range(max(len(left), len(right))):
            a, b = left[k] if k < len(left) else "", right[k] if k < len(right) else ""
            yield a, "|" if k < len(left) and k < len(right) else "<" if k < len(left) else ">", b
