"""Damaged programs: pieces of real `.rlx` files, and prints of random modules, with tokens and bytes deleted, doubled,
swapped and replaced.

A piece is what stands between two blank lines at the left margin, so that one input takes a few milliseconds. The same
seed gives the same inputs.
"""

from __future__ import annotations

import keyword
import random
import re
from functools import cache
from pathlib import Path

from tests.property.choices import seeded
from tests.property.modules import module

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("examples", "stdlib", "tests/rlx")
LARGEST = 2500
_TOKEN = re.compile(r"\s+|\w+|\"[^\"\n]*\"|#[^\n]*|[^\w\s]")
_FUNCTION = re.compile("@R.function|@T.prim_func|@I.ir_module")

_OPERATORS = tuple("+-*/%@<>=&|^~")
NUMBERS = ("0", "1", "2", "3", "64", "2147483648", "9" * 30, "1.5", "1e999", "0x10", "4611686018427387904", "1j")
STRINGS = ('"float32"', '"int8"', '"float8_e4m3fn"', '"bool"', '"handle"', '"n + "', '"n * 2"', '"(" ', '""', '"x y"',
           '"int8x4"', '"void"', '"inf"', '"nan"', '"llvm:0"', '"SSR"', '"threadIdx.x"', '"i,j->ij"')  # fmt: skip
WORDS = (
    "R", "T", "I", "cls", "self", "None", "True", "lambda", "for", "if", "else", "while", "with", "as", "def", "class",
    "return", "in", "not", "and", "or", "is", "*", "**", "@", ":", ":=", ",", "(", ")", "[", "]", "{", "}", "=", "==",
    "+=", "->", ".", "...", "\\", '"', "'", '"""', 'f"{x}"', 'b"x"', "#", "\n", "\n    ", "\t", "0", "1", "-1",
    "1e999", "9" * 30, "0x", "1j", "2 ** 9999", "R.Tensor", "R.Tuple", "R.Callable", "R.Shape", "R.Prim", "R.const",
    "R.call_tir", "R.match_cast", "R.dataflow()", "R.output", "T.Buffer", "T.handle", "T.grid", "T.block",
    "T.axis.remap", "T.int64()", "T.match_buffer", "T.alloc_buffer", "T.launch_thread", "T.float8_e4m3fn", "T.macro",
    "T.Let", "T.Ramp", "I.ir_module", "I.param(int)", "I.include", "I.array", "metadata", "range(10 ** 12)",
    "[0] * 10 ** 9", '"float32"', '"int33"', '"n + "', "é", "λ", "\u2028", "\ufeff", "\x00", "\x1b[0m", "(" * 300,
    "[" * 150 + "]" * 150, "-" * 500, " + 1" * 2000,
)  # fmt: skip


@cache
def pieces() -> tuple[list[str], list[str]]:
    """What damage starts from: small files, and parts of larger ones that stand alone; functions, and the rest."""
    functions: list[str] = []
    others: list[str] = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.rlx")):
            for block in re.split(r"\n{2,}(?=[@#\w])|\n(?=# ---)", path.read_text(encoding="utf-8")):
                for piece in _parts(block):
                    (functions if _FUNCTION.search(piece) else others).append(piece + "\n")
    functions += [module(seeded(f"fuzz {n}", 25)).script() for n in range(60)]
    return functions, others


def _parts(block: str) -> list[str]:
    """The block itself, and, when it is a module, modules of one or two of its members each."""
    head, *members = re.split(r"\n{2,}(?=    [@#a-zA-Z])", block)
    found = [block]
    if members:
        first, _, rest = head.partition(":\n")
        members.insert(0, rest)
        found += [f"{first}:\n" + "\n\n".join(members[at : at + 2]) for at in range(len(members))]
    return [piece for piece in found if 0 < len(piece) <= LARGEST]


def damaged(text: str, rng: random.Random, others: list[str]) -> bytes:
    """The program with one to four edits, of tokens mostly, of bytes sometimes."""
    tokens = _TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        kind = rng.random()
        if kind < 0.65:
            _edit_alike(tokens, rng, others)
        elif kind < 0.75 and "".join(tokens).strip():
            _edit_lines(tokens, rng)
        else:
            _edit(tokens, rng, others)
    data = bytearray("".join(tokens).encode("utf-8", "surrogatepass"))
    if rng.random() < 0.05:
        for _ in range(rng.randint(1, 4)):
            _edit_bytes(data, rng)
    return bytes(data)


def _class(token: str) -> str:
    """What may stand where a token stands: `name`, `number`, `string`, or the token's own kind of sign."""
    if token.isidentifier():
        return "keyword" if keyword.iskeyword(token) else "name"
    if token[0].isdigit():
        return "number"
    return "string" if token[0] == '"' else "operator" if token in _OPERATORS else ""


def _edit_alike(tokens: list[str], rng: random.Random, others: list[str]) -> None:
    """Replace a token by one of its class, so that the syntax mostly stands and the meaning breaks."""
    places = [k for k, token in enumerate(tokens) if _class(token)]
    if not places:
        return
    at = rng.choice(places)
    wanted = _class(tokens[at])
    donor = tokens if rng.random() < 0.6 else _TOKEN.findall(rng.choice(others))
    extra = {"number": NUMBERS, "string": STRINGS, "operator": _OPERATORS}.get(wanted, ())
    choices = [token for token in donor if _class(token) == wanted]
    tokens[at] = rng.choice(extra if extra and (not choices or rng.random() < 0.4) else choices or tokens)


def _edit_lines(tokens: list[str], rng: random.Random) -> None:
    """Delete, double or move a line."""
    lines = "".join(tokens).splitlines(keepends=True)
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    line = lines[at]
    kind = rng.randrange(3)
    if kind != 1:
        del lines[at]
    if kind != 0:
        lines.insert(to if kind == 2 else at, line)
    tokens[:] = _TOKEN.findall("".join(lines))


def _edit(tokens: list[str], rng: random.Random, others: list[str]) -> None:
    """Any edit of tokens, most of which break the syntax."""
    at = rng.randrange(len(tokens) + 1)
    kind = rng.randrange(8)
    if kind == 0:
        del tokens[at : at + rng.choice((1, 1, 2, 5, 40))]
    elif kind == 1:
        tokens.insert(at, rng.choice(WORDS))
    elif kind == 2:
        tokens[at : at + 1] = [rng.choice(WORDS)]
    elif kind == 3:
        tokens[at:at] = tokens[at : at + rng.choice((1, 3, 20))] * rng.choice((1, 1, 2, 30))
    elif kind == 4:
        other = rng.randrange(len(tokens) + 1)
        if at < len(tokens) and other < len(tokens):
            tokens[at], tokens[other] = tokens[other], tokens[at]
    elif kind == 5:
        names = [k for k, token in enumerate(tokens) if token.isidentifier()]
        if len(names) > 1:
            tokens[rng.choice(names)] = tokens[rng.choice(names)]
    elif kind == 6:
        donor = _TOKEN.findall(rng.choice(others))
        start = rng.randrange(len(donor))
        tokens[at:at] = donor[start : start + rng.choice((1, 3, 10, 60))]
    else:
        del tokens[at:]


def _edit_bytes(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    kind = rng.randrange(3)
    if kind == 0:
        data[at : at + 1] = bytes((rng.randrange(256),))
    elif kind == 1:
        data[at:at] = rng.randbytes(rng.randint(1, 6))
    else:
        del data[at : at + rng.randint(1, 6)]


def fuzz_input(number: int, seed: int) -> bytes:
    """One of the damaged programs; four of five were functions or modules, the others definitions of operators."""
    rng = random.Random(f"{seed} {number}")
    functions, others = pieces()
    return damaged(rng.choice(functions if rng.random() < 0.8 else others), rng, functions)
