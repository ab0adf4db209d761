"""What is said about one diagnostic code."""

from typing import NamedTuple


class CodeInfo(NamedTuple):
    """What a code stands for: a `title` of a few words, an `explanation` in sentences, and a short example each of a
    program that has the fault (`wrong`) and of the same program without it (`right`)."""

    title: str
    explanation: str
    wrong: str = ""
    right: str = ""
