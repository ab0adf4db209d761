"""The parser against Python's own: same tree, same places, on everything that both languages have."""

from __future__ import annotations

import ast

import pytest
from oracle import FromAst, from_tree

from relaxlang.base.diagnostics import DiagnosticError, Diagnostics
from relaxlang.base.node import Node
from relaxlang.base.source import Source
from relaxlang.syntax import tree
from relaxlang.syntax.decode import decode_source
from relaxlang.syntax.parser import parse_expression, parse_quoted, parse_surface


def parse(text: str) -> tree.Module:
    diagnostics = Diagnostics()
    module = parse_surface(Source("test.rlx", text), diagnostics)
    diagnostics.check()
    return module


def expression(text: str) -> tree.Expr:
    diagnostics = Diagnostics()
    value = parse_expression(Source("test", text), diagnostics)
    diagnostics.check()
    assert value is not None
    return value


PROGRAM = '''# a header comment
from tvm.script import ir as I, relax as R, tir as T
import a.b.c as d, e

@I.ir_module(check_well_formed=False)
class Module(Base, other.Base):
    """Doc."""
    I.module_attrs({"k": 1, **more})
    @R.function(pure=False)
    @other
    def main(x: R.Tensor(("n", 4), "float32"), *xs, y=1, z: int = 2, **kw) -> R.Tuple(R.Tensor, R.Shape([n, 4])):
        n = T.int64()  # a dimension
        with R.dataflow():
            lv0: R.Tensor((n, 4), dtype="float32") = R.add(x, R.const(1.0, "float32"))
            a, (b, [c, *rest]) = d = lv0[0], f(*args, k=1, **kw)
            R.output(lv0)

        if n > 3 and not (m or k):
            w = x; v = y;
        elif (n
              == 2):
            pass
        else:
            return x, *y
        while i < 10: i += 1; continue
        for i, j in T.grid(2, 3):
            with T.block("b") as [vi, vj], T.init():
                C[vi, vj:vj + 4, ::2, ...] = T.float32(0) if vi == 0 else -C[vi, *vj]
                break
        assert x is not None, "message"
        return

    @R.rewriter
    class Rule:
        def pattern(a): return a
'''

STATEMENTS = [
    "",
    "\n\n  # only a comment\n",
    "x",
    "x = y = (z, w) = 1, 2",
    "x,  = *y, 3",
    "x: int",
    "a.b: int = 3, 4",
    "a[i] += b, c",
    *(f"x {op}= y" for op in "+ - * / // % ** @ & | ^ << >>".split()),
    "def f(a, b: int, c=1, d: int = 2, *args: T, e, f=3, **kw: U): pass",
    "def f(a, *, b): pass",
    "def f(\n    a,\n    *b,\n): pass",
    "def f() -> None: return",
    "@a.b(c)[0]\n@d\ndef f():\n  pass",
    "class A: pass",
    "class A(): x = 1",
    "with a, b as c, d as (e, f): pass",
    "with (a, b as c, d): pass",
    "with (a as b): pass",
    "with (a, b): pass",
    "with (a, b) as c: pass",
    "with (a): pass",
    "with (a)[0] as b.c, (d).e: pass",
    "for x in *a, b: pass",
    "for *a, b in c: pass",
    "for a.b, c[0] in d: pass",
    "if a: pass\nelif b: pass\nelif c: pass",
    "if a:\n  if b:\n    c\n  else:\n    d\ne",
    "if a:\n\tb\n\tif c:\n\t\td\n",
    "if a:\n        b\n        # comment\n    # at odd depth\n        c",
    "x = 1; y = 2;",
    "x = 1 + \\\n    2",
    "x = [\n  1,\n\n  # why\n  2,\n]\ny",
    "if x:\n    y = (1,\n2)\nz",
    "from . import a",
    "from ...a.b import *",
    "from .... import (a as b, c,)",
    "assert (yes), 'no'",
    "return_ = match = type = case = _ = 1",
    "x = 1\r\nif x:\r\n    y = 2\r\n",
    "x = 1\n\f\ny = 2",
]  # fmt: skip

EXPRESSIONS = [
    "a + b - c * d / e // f % g @ h",
    "-a ** -b ** c",
    "not a == b",
    "+-~a",
    "a << b | c & d ^ e >> f",
    "a < b <= c == d != e > f >= g in h not in i is j is not k",
    "a or b and not c or d",
    "a if b else c if d else e",
    "lambda: 0",
    "lambda *b, i, j: x[*b, i, j]",
    "lambda a, b=1, *c, d=2, **e: (a, b)",
    "lambda a, *, b: a",
    "f()", "f(a, *b, c=1, *d, **e, f=2)", "f(a for a in b)", "f((a for a in b), c)", "f(a,)", "f(x)(y)[z].w",
    "a[1]", "a[1,]", "a[1, 2]", "a[:]", "a[::]", "a[1:]", "a[:2]", "a[1:2:3]", "a[::3, ..., 1:]", "a[*b]",
    "a[*b, 1]", "a[()]",
    "()", "(a,)", "(a, b)", "(a, b,)", "(a)", "((a))", "[]", "[a]", "[a, *b,]", "(*a, b)", "{}", "{a: b}",
    "{a: b, **c, d: e,}",
    "[a for b in c]", "[a for b, *c in d if e if f for g in h]", "{a for b in c}", "{a: b for c, d in e.items()}",
    "(a for b in c or d)",
    "None", "True", "False", "...",
    "0", "00", "1_000", "0xFf", "0X_f", "0o17", "0b1_01", "123456789012345678901234567890",
    "1.", ".5", "1.5", "1e3", "1E-3", "1_0.0_1e+1_0", "1.e2", "1e400",
    "1if a else 2", "1 .real", "1..real",
    "'a'", '"a"', "'''a\n'b'\n'''", '"""a "b" \\""""', "''", '""', "r'\\n'", "R'a\\'b'", "u'a'", "'a' \"b\" '''c'''",
    "'a' \\\n 'b'",
    r"'\n\r\t\\\'\"\a\b\f\v\0\12\1234\x41\u00e9\U0001F600\N{GREEK SMALL LETTER ALPHA}'", r"'\d\ \8'",
    "'a\\\nb'", "'''a\\\nb'''",
    "'é' + ünïcödé + 变量", "ﬁ", "'𝔘' + x", "f(\n  a\n)", "(a\n+ b)",
]  # fmt: skip


@pytest.mark.parametrize("text", [PROGRAM, *STATEMENTS])
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_statements_agree_with_python(text: str) -> None:
    if text.startswith("return"):
        text = text.replace("return_", "r")
    assert from_tree(parse(text)) == FromAst(text)(ast.parse(text))


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_expressions_agree_with_python(text: str) -> None:
    assert from_tree(parse(text)) == FromAst(text)(ast.parse(text))
    if "\n" not in text:
        assert from_tree(expression(text)) == FromAst(text)(ast.parse(text, mode="eval").body)


def test_every_node_has_a_span_inside_its_parent() -> None:
    def check(node: Node, outer: tuple[int, int]) -> None:
        assert node.span is not None
        start, end = node.span.start, node.span.end
        assert outer[0] <= start <= end <= outer[1], node
        for field in node.FIELDS:
            value = getattr(node, field)
            for child in value if isinstance(value, tuple) else (value,):
                if isinstance(child, Node) and not isinstance(child, tree.Comment):
                    check(child, (start, end))

    check(parse(PROGRAM), (0, len(PROGRAM)))


def test_type_parameters_and_the_place_of_a_name() -> None:
    (function,) = parse("def f[n, m: int](x): pass").body
    assert isinstance(function, tree.FunctionDef)
    assert function.type_params == ("n", "m")
    assert str(function.name_span) == "test.rlx:1:5"


def test_constants_keep_how_they_were_written() -> None:
    texts = ["0x1F", "1e3", "'a' \"b\"", "r'\\d'", "..."]
    assert [value.text for value in map(expression, texts) if isinstance(value, tree.Constant)] == texts


def test_comments_and_imports_are_kept_as_text() -> None:
    module = parse("# one\nimport a . b\nif x:  # two\n    y = [1,  # three\n  ]\n    # four\r\n# five")
    assert [c.text for c in module.comments] == ["# one", "# two", "# three", "# four", "# five"]
    (imported, _) = module.body
    assert isinstance(imported, tree.Import) and imported.text == "import a . b"


def test_an_expression_inside_a_string_has_its_place_in_the_file() -> None:
    (statement,) = parse('x = f("n  * 2")').body
    assert isinstance(statement, tree.Assign) and isinstance(statement.value, tree.Call)
    (literal,) = statement.value.args
    assert isinstance(literal, tree.Constant)
    diagnostics = Diagnostics()
    shape = parse_quoted(literal, diagnostics)
    diagnostics.check()
    assert isinstance(shape, tree.BinOp) and str(shape.span) == "test.rlx:1:8"
    assert str(shape.right.span) == "test.rlx:1:13"


@pytest.mark.parametrize(
    ("literal", "code", "column"),
    [('"n *"', "RLX0008", 5), (r'"n\x20"', "RLX0013", 1), ('"a" "b"', "RLX0013", 1), ('""', "RLX0008", 2)]
)  # fmt: skip
def test_what_a_quoted_expression_cannot_be(literal: str, code: str, column: int) -> None:
    value = expression(literal)
    assert isinstance(value, tree.Constant)
    diagnostics = Diagnostics()
    assert parse_quoted(value, diagnostics) is None
    (found,) = diagnostics.items
    assert found.span is not None and (found.code, found.span.column) == (code, column)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    (statement,) = parse("\ufeffx = 1").body
    assert statement.span is not None and statement.span.text == "x = 1"


def test_files_are_utf8_with_any_line_break() -> None:
    source = decode_source("a.rlx", b"\xef\xbb\xbfx = '\xc3\xa9'\r\ny = 1\rz = 2\n")
    assert source.text == "x = 'é'\ny = 1\nz = 2\n"


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"x = 1\ny = '\xe9'\n", 2, "byte 0xe9 is not valid UTF-8"),
        (b"x = 1\n\xff\xfe\x00\x01", 2, "`a.rlx` is not text"),
        (b"x = 1\n\n\0", 3, "`a.rlx` is not text"),
        ("x = 1".encode("utf-16"), 0, "`a.rlx` is UTF-16"),
    ],
)
def test_what_is_no_text(data: bytes, line: int, words: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        decode_source("a.rlx", data)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, caught.value.line) == ("RLX0012", words, line)


def test_long_chains_and_lines_are_fine() -> None:
    (statement,) = parse("x = " + " + ".join(["a"] * 10_000)).body
    assert isinstance(statement, tree.Assign)
    node, depth = statement.value, 0
    while isinstance(node, tree.BinOp):
        node, depth = node.left, depth + 1
    assert depth == 9_999
    (statement,) = parse("x = '" + "a" * 5_000_000 + "'").body
    assert isinstance(statement, tree.Assign) and isinstance(statement.value, tree.Constant)
    assert len(str(statement.value.value)) == 5_000_000


@pytest.mark.parametrize("levels", [200, 201])
@pytest.mark.parametrize(
    ("before", "after"),
    [("(", ")"), ("[", "]"), ("f(a - ", ")"), ("-", ""),
     ("not ", ""), ("a ** ", ""), ("lambda: ", ""), ("a if b else ", "")]
)  # fmt: skip
def test_nesting_is_limited(before: str, after: str, levels: int) -> None:
    diagnostics = Diagnostics()
    parse_surface(Source("x", before * levels + "x" + after * levels + "\ny = 1"), diagnostics)
    assert [d.code for d in diagnostics.items] == ["RLX0009"] * (levels > 200)


def test_blocks_and_elifs_are_limited() -> None:
    for text in ("".join(" " * i + "if x:\n" for i in range(102)) + " " * 102 + "y", "if a: b\n" + "elif a: b\n" * 201):
        diagnostics = Diagnostics()
        parse_surface(Source("x", text), diagnostics)
        assert [d.code for d in diagnostics.items] == ["RLX0009"]
