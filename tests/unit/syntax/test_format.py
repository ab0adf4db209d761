"""The formatter: canonical layout, comments that stay, texts that stay, results that mean the same."""

import pathlib

import pytest

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.source import Source
from relaxlang.syntax import tree
from relaxlang.syntax.format import check, format_source

ROOT = pathlib.Path(__file__).parents[3]


def formatted(text: str, width: int = 120) -> str:
    made = format_source(Source("x.rlx", text), width)
    assert format_source(Source("x.rlx", made), width) == made
    return made


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("x  =  f( a,b )", "x = f(a, b)"),
        ("x = f(a, b,)", "x = f(a, b)"),
        ("x = 'it'", 'x = "it"'),
        ("x = 'say \"it\"'", "x = 'say \"it\"'"),
        ("x = 'a' 'b'", 'x = "a" "b"'),
        ("x = (a+b)*c", "x = (a + b) * c"),
        ("x = a+(b*c)", "x = a + (b * c)"),
        ("x = ((a))", "x = a"),
        ("x = a-(b-c)", "x = a - (b - c)"),
        ("x = -a**-b", "x = -a**-b"),
        ("x = (-a)**b", "x = (-a)**b"),
        ("x = not(a and b)or c", "x = not (a and b) or c"),
        ("x = (a<b)==c", "x = (a < b) == c"),
        ("x = a if(b)else c", "x = a if b else c"),
        ("x = (a if b else c)(d)", "x = (a if b else c)(d)"),
        ("x = [i*2 for i in y if(i)]", "x = [i * 2 for i in y if i]"),
        ("x = {k:v,**d}", "x = {k: v, **d}"),
        ("x = f(*a,k=1,**d)", "x = f(*a, k=1, **d)"),
        ("x = A[i,j:j+4,::2]", "x = A[i, j : j + 4, ::2]"),
        ("x = A[*i]", "x = A[*i]"),
        ("x = A[*(i if c else j)]", "x = A[*(i if c else j)]"),
        ("x = (a,)", "x = (a,)"),
        ("x = a,", "x = a,"),
        ("a , b = b , a", "a, b = b, a"),
        ("(a,b) = c", "(a, b) = c"),
        ("x = (a),b", "x = a, b"),
        ("x = lambda*i,k=2:i", "x = lambda *i, k=2: i"),
        ("x:T.int32=3", "x: T.int32 = 3"),
        ("x+=1;y=2", "x += 1\ny = 2"),
        ("if a:x=1", "if a:\n    x = 1"),
        ("from a import(b,c)", "from a import(b,c)"),
        ("with  a as b , c:\n  pass", "with a as b, c:\n    pass"),
        ("for i,j in T.grid( 2,3 ):\n  pass", "for i, j in T.grid(2, 3):\n    pass"),
        ("assert a ,'no'", 'assert a, "no"'),
        ("x = 1.e3 + 0XF + 1_000", "x = 1.e3 + 0XF + 1_000"),
        ("#comment", "# comment"),
        ("x=1# c", "x = 1  # c"),
        ("#!shebang\n#: kept", "#!shebang\n#: kept"),
    ],
)
def test_lines(written, wanted):
    assert formatted(written + "\n") == wanted + "\n"


def test_long_lines_break_at_brackets():
    assert formatted("result = function(first_argument, second_argument[index_one, index_two], third=3)\n", 50) == (
        "result = function(\n    first_argument,\n    second_argument[index_one, index_two],\n    third=3,\n)\n"
    )
    header = formatted("def function(first: T.int32, second: T.int32, third: T.int32, *rest) -> T.int32:\n  pass\n", 50)
    assert header.startswith(
        "def function(\n    first: T.int32,\n    second: T.int32,\n    third: T.int32,\n    *rest\n) -> T.int32:\n"
    )


def test_what_cannot_break_well_stays():
    text = "x = (\n    first_operand_that_is_long\n    + second_operand_that_is_long\n)\n"
    assert formatted(text, 40) == text


def test_a_whole_file():
    text = '''#header
import tvm


@I.ir_module
class M:

    I.module_attrs({'a':1})
    @R.function(private = True)   # why
    #below a decorator
    def f(x:R.Tensor((n,4),'float32')):
        """Doc.
           More.
        """


        # before
        y = R.add(x,x)#beside

        z = R.call(y, # first
              [1,
               2])
            # deeper than it should be
        if c:
          a=1
          # end of if

        elif d:
            a=2
        # about else
        else:
            a=3
        return z   # fmt: skip
        # end of f
    def g(): pass
# at the end'''
    assert (
        formatted(text)
        == '''# header
import tvm


@I.ir_module
class M:
    I.module_attrs({"a": 1})

    @R.function(private=True)  # why
    # below a decorator
    def f(x: R.Tensor((n, 4), "float32")):
        """Doc.
           More.
        """

        # before
        y = R.add(x, x)  # beside

        z = R.call(y, # first
              [1,
               2])
        # deeper than it should be
        if c:
            a = 1
            # end of if
        elif d:
            a = 2
        # about else
        else:
            a = 3
        return z  # fmt: skip
        # end of f

    def g():
        pass
# at the end
'''
    )


def test_kept_lines_move_as_a_whole():
    text = 'if a:\n  x = f(  # first\n      """text\n   stays""",\n    b)\n'
    assert formatted(text) == 'if a:\n    x = f(  # first\n        """text\n   stays""",\n      b)\n'


def test_empty_files():
    assert formatted("") == "" and formatted("\n\n") == "" and formatted("# a\n\n\n\n# b\n") == "# a\n\n\n# b\n"


def test_long_chains():
    chain = " + ".join(["a"] * 5000)
    assert formatted(f"x = {chain}\n", 100) == f"x = {chain}\n"
    calls = "f" + "(a)[0].b" * 2000
    assert formatted(f"x = {calls}\n") == f"x = {calls}\n"


def test_syntax_errors_are_reported():
    with pytest.raises(DiagnosticError) as caught:
        format_source(Source("x.rlx", "x = (1\n"))
    assert caught.value.diagnostics[0].code == "RLX0004"


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("examples/*.rlx"), *ROOT.glob("stdlib/**/*.rlx")]), ids=lambda p: p.stem
)
def test_programs_of_the_repository(path):
    formatted(path.read_text())


def test_a_wrong_result_is_never_written():
    def surface(text: str) -> tree.Module:
        return check.parse_surface(Source("x", text), check.Diagnostics())

    before = surface("x = a + b  # c\n")
    check.assert_same_program(Source("x", ""), before, "x = (a+b) # c\n")
    for wrong in ("x = a - b  # c\n", "x = a + b\n", "x = a + b  # d\n", "x = (\n"):
        with pytest.raises(DiagnosticError) as caught:
            check.assert_same_program(Source("x", ""), before, wrong)
        assert caught.value.diagnostics[0].code == "RLX9003"
    assert not check.same_tree(surface("x = 1\n"), surface("x = True\n"))
    assert not check.same_tree(surface("x = 1\n"), surface("x = 1.0\n"))
