"""Did-you-mean as an edit, and edits applied."""

from relaxlang.base.diagnostics import Diagnostic, Fix
from relaxlang.base.fixes import apply_fixes
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import did_you_mean, place_of, suggestion


def span(text: str) -> Span:
    source = Source("x", text)
    return Span(source, 0, len(text))


def mended(word: str, candidates: list[str], text: str) -> str | None:
    fixes = suggestion(word, candidates, span(text))["fixes"]
    return text[: fixes[0].span.start] + fixes[0].replacement + text[fixes[0].span.end :] if fixes else None


def test_one_near_candidate_is_certain():
    assert mended("blok", ["block", "grid", "serial"], "T.blok") == "T.block"
    assert mended("Relu", ["nn.relu", "nn.gelu"], "R.Relu") == "R.nn.relu"
    assert mended("axs", ["axis", "keepdims"], "R.sum(x, axs=1)") == "R.sum(x, axis=1)"
    assert mended("flot32", ["float16", "float32", "int32"], 'R.Tensor((2,), "flot32")') == 'R.Tensor((2,), "float32")'


def test_what_is_not_certain_is_only_said():
    assert suggestion("int3", ["int8", "int32", "uint32"], span("int3"))["help"] != ""
    assert mended("x1", ["x2", "x3"], "x1") is None  # two are equally near
    assert mended("relu", ["nn.relu", "vision.relu"], "R.relu") is None
    assert mended("foo", ["foo_bar_baz_long"], "foo") is None
    assert mended("ab", ["abc"], "f(ab, ab)") is None  # which of the two?
    assert mended("ab", ["abc"], "abx") is None
    assert suggestion("qqqq", ["block"], span("qqqq")) == {"help": "", "fixes": ()}
    assert suggestion("blok", ["block"], None, "T.") == {"help": "did you mean `T.block`?", "fixes": ()}


def test_the_fewest_changed_letters_win():
    assert did_you_mean("exq", ["EQ", "exp", "erf"]) == "exp"
    assert did_you_mean("softmx", ["nn.softmax", "nn.log_softmax", "max"]) == "nn.softmax"


def test_the_caret_stands_at_the_word():
    call = span("R.sum(x, axs=1)")
    assert str(place_of("axs", call)) == "x:1:10"
    assert place_of("nowhere", call) is call
    assert place_of("axs", None) is None


def test_fixes_that_do_not_overlap_are_applied():
    source = Source("x", "abcdef")

    def fault(start: int, end: int, new: str, of: Source = source) -> Diagnostic:
        return Diagnostic("RLX0101", "", fixes=[Fix(Span(of, start, end), new, "")])

    faults = [
        fault(4, 5, "E"),
        fault(0, 2, "AB!"),
        fault(1, 3, "no"),
        fault(4, 5, "E"),
        fault(6, 6, "."),
        fault(6, 6, "?"),
    ]
    assert apply_fixes(source, faults) == ("AB!cdEf.", 3)
    assert apply_fixes(source, [fault(0, 1, "z", Source("y", "abcdef")), Diagnostic("RLX0101", "")]) == ("abcdef", 0)
