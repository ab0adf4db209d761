"""The layout of documents: what breaks, what stays, and where nodes stand."""

import random

from relaxlang.syntax.document import Mark, bracket, concat, render


def call(name, *args):
    return bracket(f"{name}(", list(args), ")")


def test_a_line_that_fits_is_not_broken():
    doc = concat("x = ", call("f", *["argument"] * 8))
    assert render([(0, doc)]).text == "x = f(" + ", ".join(["argument"] * 8) + ")\n"


def test_a_group_breaks_into_one_item_a_line_with_a_trailing_comma():
    doc = call("function", "a" * 25, call("g", "b" * 20, "c" * 18), "d")
    assert render([(1, doc)], 50).text == (
        "    function(\n"
        f"        {'a' * 25},\n"
        "        g(\n"
        f"            {'b' * 20},\n"
        f"            {'c' * 18},\n"
        "        ),\n"
        "        d,\n"
        "    )\n"
    )


def test_what_follows_a_group_counts():
    doc = concat(call("f", "a" * 30, "b" * 10), " -> ", "c" * 10, ":")
    assert render([(0, doc)], 60).text.count("\n") == 1
    assert render([(0, doc)], 59).text == f"f(\n    {'a' * 30},\n    {'b' * 10},\n) -> cccccccccc:\n"


def test_one_element_tuples_keep_their_comma():
    assert bracket("(", ["x"], ")", lone_comma=True) == "(x,)"
    assert bracket("(", ["x", "y"], ")", lone_comma=True) == "(x, y)"
    assert bracket("(", [], ")", lone_comma=True) == "()"


def test_places_are_offsets_into_the_text():
    inner, outer = object(), object()
    doc = Mark(outer, concat("x = ", Mark(inner, call("f", "a" * 40, "b"))))
    laid = render([(0, "first"), (1, doc)], 30)
    assert laid.text[slice(*laid.find(inner)[1:])].startswith("f(\n        aaa")
    assert laid.line_column(laid.find(outer).start) == (2, 5)
    assert laid.find(object()) is None
    assert laid.underlined(laid.find(inner), context=0).splitlines() == ["...", "    x = f(", "        ^^", "..."]


def test_any_document_reads_the_same_broken_or_not():
    rng = random.Random(7)

    def build(depth):
        if depth == 0 or rng.random() < 0.2:
            return "v" * rng.randint(1, 12)
        return call("n" * rng.randint(1, 6), *[build(depth - 1) for _ in range(rng.randint(0, 5))])

    for _ in range(50):
        doc = build(5)
        wide = "".join(render([(0, doc)], 10**6).text.split())
        narrow = "".join(render([(0, doc)], 30).text.split())
        assert narrow.replace(",)", ")") == wide


def test_deep_nesting_takes_linear_text():
    doc = "x"
    for _ in range(20_000):
        doc = call("f", doc)
    assert len(render([(0, doc)]).text) < 20_000 * 10
