"""The language server's answers, asked as an editor would."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.extra("pygls")
pytest.importorskip("pygls")

from lsprotocol import types as lsp  # noqa: E402

from relaxlang.lsp import features  # noqa: E402
from relaxlang.lsp.document import Document  # noqa: E402
from relaxlang.lsp.positions import offset, position  # noqa: E402

URI = "file:///m.rlx"
TEXT = """\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 8), "float32"), w: R.Tensor((8, 4), "float32")):
        cls = Module  # 𝔸 product
        h = R.matmul(x, w)
        h = R.nn.relu(h)
        y: R.Tensor((n, 4), "float32") = cls.twice(h)
        return y

    @R.function
    def twice(a: R.Tensor((m, 4), "float32")) -> R.Tensor((m, 4), "float32"):
        return R.add(a, a)
"""


def at(text: str, marker: str, inside: int = 0) -> lsp.Position:
    """The position of a piece of text."""
    document = Document("m.rlx", text)
    return position(document.source, text.index(marker) + inside)


def words(found: list[lsp.Location] | lsp.Location | None, text: str = TEXT) -> list[tuple[int, str]]:
    """Lines, from 1, and texts of locations."""
    document = Document("m.rlx", text)
    places = found if isinstance(found, list) else [found] if found else []
    return [
        (p.range.start.line + 1, text[offset(document.source, p.range.start) : offset(document.source, p.range.end)])
        for p in places
    ]


@pytest.fixture
def document() -> Document:
    return Document("m.rlx", TEXT)


def test_positions_count_utf16_units() -> None:
    source = Document("m.rlx", TEXT).source
    place = position(source, TEXT.index("product"))
    assert (place.line, place.character) == (4, len("        cls = Module  # ") + 2 + 1)
    assert offset(source, place) == TEXT.index("product")
    assert offset(source, lsp.Position(99, 0)) == len(TEXT)
    assert offset(source, lsp.Position(0, 99)) == len("@I.ir_module")


def test_hover_shows_inferred_struct_info(document: Document) -> None:
    shown = features.hover(document, at(TEXT, "h = R.matmul"))
    assert shown is not None and 'h: R.Tensor((n, 4), "float32")' in shown.contents.value  # type: ignore[union-attr]
    shown = features.hover(document, at(TEXT, "matmul", 3))
    assert shown is not None and "R.matmul(x1: R.Tensor" in shown.contents.value  # type: ignore[union-attr]
    shown = features.hover(document, at(TEXT, "cls.twice", 5))
    assert shown is not None and "R.Callable" in shown.contents.value  # type: ignore[union-attr]
    assert features.hover(document, at(TEXT, "class")) is None


def test_definitions_and_references(document: Document) -> None:
    use = at(TEXT, "relu(h)", 5)
    assert words(features.definition(document, URI, use)) == [(6, "h")]
    assert words(features.references(document, URI, at(TEXT, "cls.twice(h)", 10))) == [(7, "h"), (8, "h")]
    assert words(features.definition(document, URI, at(TEXT, "cls.twice", 5))) == [(12, "twice")]
    assert words(features.references(document, URI, at(TEXT, "def twice", 5))) == [(12, "twice"), (8, "twice")]
    assert words(features.references(document, URI, at(TEXT, "(n, 8)", 1))) == [(4, "n"), (8, "n")]


def test_definition_of_an_operator_is_in_the_standard_library(document: Document) -> None:
    found = features.definition(document, URI, at(TEXT, "nn.relu", 4))
    assert found is not None and found.uri.endswith(".rlx") and "/stdlib/" in found.uri


def test_rename(document: Document) -> None:
    edit = features.rename(document, URI, at(TEXT, "w: R.Tensor"), "weights")
    assert edit is not None and edit.changes is not None
    assert [e.range.start.line + 1 for e in edit.changes[URI]] == [4, 6]
    assert features.prepare_rename(document, at(TEXT, "matmul")) is None
    refused = (("x", "there is a `x` already"), ("a b", "no name"), ("for", "a word"), ("R", "a word"))
    for name, reason in refused:
        with pytest.raises(ValueError, match=reason):
            features.rename(document, URI, at(TEXT, "w: R.Tensor"), name)


def test_inlay_hints_only_where_nothing_is_written(document: Document) -> None:
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))
    hints = features.inlay_hints(document, everything)
    assert [(h.position.line + 1, h.label) for h in hints] == [
        (6, ': R.Tensor((n, 4), "float32")'),
        (7, ': R.Tensor((n, 4), "float32")'),
    ]


def test_completion() -> None:
    text = TEXT.replace("R.nn.relu(h)", "R.nn.rel")
    document = Document("m.rlx", text)
    assert "relu" in {c.label for c in features.completion(document, at(text, "R.nn.rel", 8))}
    names = {c.label for c in features.completion(document, at(text, "        h = R.nn", 8))}
    assert {"x", "w", "h", "R", "T"} <= names and "y" not in names
    text = TEXT.replace("cls.twice(h)", "cls.")
    assert "twice" in {c.label for c in features.completion(Document("m.rlx", text), at(text, "cls.", 4))}


def test_signature_help(document: Document) -> None:
    shown = features.signature_help(document, at(TEXT, "matmul(x, w)", 9))
    assert shown is not None and shown.signatures[0].label.startswith("R.matmul(")


def test_diagnostics_and_their_fixes() -> None:
    text = TEXT.replace("R.matmul(x", "R.matmull(x")
    document = Document("m.rlx", text)
    (found,) = features.diagnostics(document, URI)
    assert found.range.start.line == 5 and found.severity == lsp.DiagnosticSeverity.Error
    (action,) = features.code_actions(document, URI, found.range)
    assert action.edit is not None and action.edit.changes is not None
    assert "matmul" in action.edit.changes[URI][0].new_text
    assert features.inlay_hints(document, lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))) == []


def test_both_places_of_a_mismatch_are_told() -> None:
    text = TEXT.replace("(8, 4)", "(9, 4)")
    found = features.diagnostics(Document("m.rlx", text), URI)
    assert found[0].related_information


def test_symbols(document: Document) -> None:
    found = features.symbols(document)
    assert [s.name for s in found] == ["main", "twice"]
    assert [c.name for c in found[0].children or ()] == ["cls", "h", "h", "y"]
    assert all(s.range.start <= s.selection_range.start <= s.range.end for s in found)


def test_formatting() -> None:
    document = Document("m.rlx", "@R.function\ndef f( x:R.Tensor((2,),'float32') ):\n    return  x\n")
    (edit,) = features.formatting(document)
    assert "def f(x: R.Tensor((2,)" in edit.new_text
    assert features.formatting(Document("m.rlx", edit.new_text)) == []
    assert features.formatting(Document("m.rlx", "@R.function\ndef f(:\n")) == []


@pytest.mark.parametrize("text", ["", "(" * 5000, "@R.function\ndef f(x):\n    return " + "(x + " * 3000, "\x00\n'''"])
def test_broken_texts_are_answered(text: str) -> None:
    document = Document("m.rlx", text)
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(9, 0))
    features.diagnostics(document, URI)
    features.hover(document, lsp.Position(0, 0))
    features.completion(document, lsp.Position(0, 1))
    features.symbols(document)
    features.inlay_hints(document, everything)


def test_a_text_that_is_neither_open_nor_on_disk_is_empty() -> None:
    from pygls.workspace import Workspace

    from relaxlang.lsp.server import make_server

    server = make_server()
    server.protocol._workspace = Workspace(None)
    assert server.document("file:///there/is/no/such.rlx").source.text == ""
