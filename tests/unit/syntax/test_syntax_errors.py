"""What the parser says about text that is wrong: codes, places, words, and no second report for one cause."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaxlang import parse
from relaxlang.base.codes import CODES
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Diagnostics
from relaxlang.base.source import Source
from relaxlang.syntax import tree
from relaxlang.syntax.parser import parse_surface


def errors(text: str) -> list[Diagnostic]:
    diagnostics = Diagnostics()
    parse_surface(Source("x", text), diagnostics)
    return diagnostics.items


def show(text: str) -> list[str]:
    return [f"{d.span.line}:{d.span.column} {d.code[3:]} {d.message}" for d in errors(text) if d.span is not None]


EXPECTED: list[tuple[str, list[str]]] = [
    # characters, strings, numbers
    ("x = a $ b", ["1:7 0001 unexpected character `$`"]),
    ("x = a − b", ["1:7 0001 unexpected minus sign `−`"]),
    ("x = a \\ b", ["1:7 0001 a backslash joins two lines only as the last character of a line"]),
    ("x² = 1", ["1:1 0001 unexpected character `²` in a name"]),
    ("x = f('a)\ny = 1", ["1:7 0002 unterminated string"]),
    ('x = """a\ny = 1', ["1:5 0002 unterminated triple-quoted string"]),
    ("x = 12ab", ["1:5 0003 `12ab` is not a number"]),
    ("x = 0129", ["1:5 0003 a decimal number cannot begin with 0: `0129`"]),
    ("x = 1j", ["1:5 0003 complex numbers are not part of the language"]),
    ("x = " + "1" * 4301, ["1:5 0003 an integer of 4301 digits is too long"]),
    (r"x = 'ab\xg'", [r"1:8 0003 `\x` is not an escape sequence: `\x` needs 2 hexadecimal digits"]),
    (r"x = '\N{no such}'", [r"1:6 0003 `\N{no such}` is not an escape sequence: no character is named `no such`"]),
    (r"x = '\U00110000'", [r"1:6 0003 `\U00110000` is not an escape sequence: there is no such character"]),
    # brackets
    ("y = f(x\nz = 1\nreturn z", ["1:6 0004 `(` is never closed"]),
    ("y = f(x, g[1\ndef f(x):\n  return x x", ["1:11 0004 `[` is never closed",
                                             "3:12 0008 expected an operator, the end of the line or `,`, found `x`"]),
    ("y = f(x,\n\n@T.prim_func\ndef g(x): pass", ["1:6 0004 `(` is never closed"]),
    ("y = f(x", ["1:6 0004 `(` is never closed"]),
    ("y = f(x))", ["1:9 0005 unmatched `)`"]),
    ("y = f(x[1)", ["1:10 0005 `)` does not close `[`"]),
    ("y = [1, 2)\nz = )", ["1:10 0005 `)` does not close `[`", "2:5 0005 unmatched `)`"]),
    # indentation
    ("x = 1\n  y = 2\nz = 3", ["2:1 0006 unexpected indent"]),
    ("if x:\ny = 1", ["2:1 0006 expected an indented block after `if`"]),
    ("if x:\n    y\n  z\n    w\nv", ["3:1 0006 unindent matches no outer block"]),
    ("if x:\n        y\n\tz", ["3:1 0007 tabs and spaces are mixed in the indentation"]),
    # words that do not fit
    ("def f(x)\n    return x x", ["1:9 0008 expected `:` after the parameter list, found the end of the line",
                                  "2:14 0008 expected an operator, the end of the line or `,`, found `x`"]),
    ("def f(x) -> T\n    pass", ["1:14 0008 expected `:` after the return type, found the end of the line"]),
    ("while x\n    pass", ["1:8 0008 expected `:` after the condition, found the end of the line"]),
    ("with R.dataflow() x:\n    pass", ["1:19 0008 expected `:` after the `with` items, found `x`"]),
    ("f(a b)", ["1:5 0008 expected an operator, `)` or `,`, found `b`"]),
    ("f(a\n  b\n  c)", ["2:3 0008 expected an operator, `)` or `,`, found `b`"]),
    ("x = ", ["1:4 0008 expected an expression, found the end of the line"]),
    ("x = a if b", ["1:11 0008 expected `else`, found the end of the line"]),
    ("if x = 3:\n    y = 1\nelse:\n    z = 1", ["1:6 0008 unexpected `=` in a condition"]),
    ("x = a && b", ["1:7 0008 `&&` is not an operator"]),
    ("@f\nx = 1", ["2:1 0008 expected `def` or `class` after a decorator"]),
    ("else:\n    x = 1", ["1:1 0008 `else` belongs to no `if`"]),
    ("for i in x:\n    y\nelse:\n    z", ["3:1 0008 `else` belongs to no `if`"]),
    ("class :\n    x", ["1:7 0008 expected a name, found `:`"]),
    # what cannot be assigned to, and what the language leaves out
    ("f(x) = 1", ["1:1 0010 cannot assign to a call"]),
    ("a, b + 1 = c", ["1:4 0010 cannot assign to an operation"]),
    ("*a = b", ["1:1 0010 a starred name stands only in a list or tuple of names"]),
    ("*a, *b = c", ["1:5 0010 only one name can be starred"]),
    ("for f() in x: pass", ["1:5 0010 cannot assign to a call"]),
    ("with a as 1: pass", ["1:11 0010 cannot assign to a literal"]),
    ("[a for 1 in b]", ["1:8 0010 cannot assign to a literal"]),
    ("a, b += 1", ["1:1 0010 only a name, an attribute or an element can stand before `+=`"]),
    ("try:\n    x x\nexcept E:\n    y", ["1:1 0011 `try` is not part of the language",
                                       "2:7 0008 expected an operator, the end of the line or `,`, found `x`",
                                       "3:1 0011 `except` is not part of the language"]),
    ("(a := 1)", ["1:4 0011 `:=` is not part of the language"]),
    ("x = {1, 2}", ["1:5 0011 set literals are not part of the language"]),
    ("x = b'a' + f'b'", ["1:5 0011 byte strings are not part of the language",
                          "1:12 0011 f-strings are not part of the language"]),
    ("def f[n: T](x): pass", ["1:10 0011 a type parameter is a dimension: its bound can only be `int`"]),
    ("class A(metaclass=B): pass", ["1:9 0011 a class takes no keyword arguments"]),
    # arguments and parameters
    ("f(a=1, b)", ["1:8 0014 a positional argument follows a keyword argument"]),
    ("f(x for x in y, 1)", ["1:3 0014 a generator beside other arguments needs parentheses"]),
    ("f(a=1, a=2)", ["1:8 0015 keyword argument `a` is given twice"]),
    ("def f(a, a): pass", ["1:10 0016 duplicate parameter `a`"]),
    ("def f(a=1, b): pass", ["1:12 0016 parameter `b` without a default follows one with a default"]),
    ("def f(**a, b): pass", ["1:12 0016 no parameter can follow `**`"]),
    ("def f(*a, *b): pass", ["1:11 0016 only one parameter can have a `*`"]),
    ("def f(*): pass", ["1:7 0016 a name must follow `*` alone"]),
    ("x = 1\0", ["1:6 0012 `x` is not text"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), EXPECTED)
def test_messages(text: str, expected: list[str]) -> None:
    assert show(text) == expected


@pytest.mark.parametrize(
    ("text", "word", "meant"),
    [
        ("retrun x", "retrun", "return"),
        ("dfe f(x):\n    return x", "dfe", "def"),
        ("whlie x:\n    pass", "whlie", "while"),
        ("if x:\n    pass\nesle:\n    pass", "esle", "else"),
        ("if x:\n    pass\nelsif y:\n    pass", "elsif", "elif"),
        ("for i inn range(3):\n    pass", "inn", "in"),
    ],
)
def test_misspelt_keywords(text: str, word: str, meant: str) -> None:
    (found,) = errors(text)
    assert found.message == f"unexpected `{word}`" and found.help == f"did you mean `{meant}`?"
    assert found.span is not None and found.span.text == word
    assert [fix.replacement for fix in found.fixes] == [meant]


def test_the_opening_bracket_is_labelled() -> None:
    (found,) = errors("y = f(x, [1, 2)")
    assert [(str(label.span), label.text) for label in found.labels] == [("x:1:10", "opened here")]


def test_statements_around_an_error_are_kept() -> None:
    diagnostics = Diagnostics()
    module = parse_surface(Source("x", "a = 1\nif b c:\n    d = 1\nelse:\n    e = = 2\nf = 3\n"), diagnostics)
    assert [d.span.line for d in diagnostics.items if d.span] == [2, 5]
    assert [type(s) for s in module.body] == [tree.Assign, tree.Assign]


def test_errors_end_after_fifty() -> None:
    found = errors("x y\n" * 1000)
    assert len(found) == 51 and found[-1].level == "note"


_WORDS = st.sampled_from(
    "( ) [ ] { } : , = ; @ . -> := ... ** * + - ~ not lambda if else elif for in while with as def class return "
    "import from pass assert try x yy 1 2.5 'a' ''' \"\"\" ' \" \\ # $ é ² \x00 \x01 \r \f f'x' b'y' 0x 1_ "
    "is and or None".split(" ")
)
_SPACES = st.sampled_from(["", "", " ", " ", "\n", "\n    ", "\n        ", "\n\t", "\\\n", "\r\n"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_WORDS, _SPACES), max_size=30))
def test_rubbish_gives_located_diagnostics_only(parts: list[tuple[str, str]]) -> None:
    text = "".join(word + space for word, space in parts)
    for found in errors(text):
        assert found.code in CODES
        assert found.span is not None and 0 <= found.span.start <= found.span.end <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "@R.function\ndef f(x: R.Object):\n    return " + "a" * 100_000,
        '@R.function\ndef f(x: R.Tensor((3,), "' + "f" * 100_000 + '")):\n    return x',
        "@R.function\ndef f(x: R.Object):\n    return R." + "b" * 100_000 + "(x)",
    ],
)
def test_long_words_are_shortened_in_messages(text: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse(text)
    assert len(str(caught.value)) < 2000 and "…" in caught.value.diagnostics[0].message


def test_a_value_for_an_unknown_parameter() -> None:
    text = 'HEADS = I.param(int)\n\n\n@R.function\ndef f(x: R.Tensor((HEADS,), "float32")):\n    return x\n'
    assert str(parse(text, values={"HEADS": 2})["f"].params[0].struct_info) == 'R.Tensor((2,), "float32")'
    with pytest.raises(DiagnosticError, match="no parameter `HEAD`") as caught:
        parse(text, values={"HEADS": 2, "HEAD": 3})
    assert caught.value.diagnostics[0].help == "did you mean `HEADS`?"
