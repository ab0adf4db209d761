"""The answers to an editor's questions about a document."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from pathlib import Path

from lsprotocol import types as lsp

from relaxlang.base.codes import CODES
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError
from relaxlang.base.resources import resource_dir
from relaxlang.base.source import Source, Span
from relaxlang.lsp.document import Document
from relaxlang.lsp.names import Definition
from relaxlang.lsp.positions import offset, position, range_of, whole
from relaxlang.ops.definition import OpDef
from relaxlang.repl.scope import members, open_call, written_signature

_SEVERITY = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
_SYMBOLS = {"function": lsp.SymbolKind.Function, "variable": lsp.SymbolKind.Variable}
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")
_WORD = re.compile(r"[A-Za-z_][\w.]*\Z")
_LONGEST_HINT = 80
_SPACES = {"R": "operators of Relax", "T": "TensorIR", "I": "modules"}


# --- diagnostics ------------------------------------------------------------------------------------------------------
def diagnostics(document: Document, uri: str) -> list[lsp.Diagnostic]:
    """What is wrong, with the other places of each fault."""
    return [_diagnostic(d, document, uri) for d in document.diagnostics]


def _diagnostic(d: Diagnostic, document: Document, uri: str) -> lsp.Diagnostic:
    here = d.span is not None and d.span.source.name == document.source.name
    at = range_of(d.span) if here and d.span is not None else lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    text = d.message + (f": {d.label}" if d.label else "")
    text += "".join(f"\n{note}" for note in d.notes) + (f"\nhelp: {d.help}" if d.help else "")
    related = [
        lsp.DiagnosticRelatedInformation(
            lsp.Location(_uri(label.span, document, uri), range_of(label.span)), label.text
        )
        for label in d.labels
    ]
    return lsp.Diagnostic(at, text, _SEVERITY[d.level], d.code, source="relaxlang", related_information=related or None)


def code_actions(document: Document, uri: str, at: lsp.Range) -> list[lsp.CodeAction]:
    """The fixes of the diagnostics in a range."""
    first, last = offset(document.source, at.start), offset(document.source, at.end)
    made = []
    for found in document.diagnostics:
        if found.span is None or found.span.end < first or found.span.start > last:
            continue
        for fix in found.fixes:
            edit = lsp.WorkspaceEdit({uri: [lsp.TextEdit(range_of(fix.span), fix.replacement)]})
            shown = [_diagnostic(found, document, uri)]
            made.append(lsp.CodeAction(fix.message, lsp.CodeActionKind.QuickFix, shown, edit=edit, is_preferred=True))
    return made


# --- what stands under the cursor -------------------------------------------------------------------------------------
def hover(document: Document, place: lsp.Position) -> lsp.Hover | None:
    """The struct info of a variable, the signature and documentation of an operator or function, the meaning of a code
    in a comment."""
    at = offset(document.source, place)
    operator = document.names.operator_at(at)
    if operator is not None:
        found = document.operators.find(operator.name.removeprefix("R.")) if operator.name.startswith("R.") else None
        return _markdown(_operator_text(operator.name, found), operator.span) if found is not None else None
    definition = document.names.at(at)
    if definition is None:
        return None
    return _markdown(_definition_text(document, definition), _under(definition, at))


def _operator_text(name: str, found: OpDef) -> str:
    signature = written_signature(name, found)
    return f"```python\n{signature}\n```\n{found.doc.strip()}"


def _definition_text(document: Document, definition: Definition) -> str:
    known = document.struct_infos.get(definition.span.start)
    if known is not None:
        return f"```python\n{definition.name}: {known[1]}\n```"
    if definition.kind == "function" and document.module is not None and definition.name in document.module.functions:
        from relaxlang.ir.module import function_info

        info = function_info(document.module.functions[definition.name])
        return f"```python\n{definition.name}: {info}\n```"
    return f"`{definition.name}`: {definition.kind}"


def _markdown(text: str, span: Span) -> lsp.Hover:
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), range_of(span))


def _under(definition: Definition, at: int) -> Span:
    return next(s for s in (definition.span, *definition.uses) if s.start <= at <= s.end)


def definition(document: Document, uri: str, place: lsp.Position) -> lsp.Location | None:
    """Where a name is defined: in the text, or for an operator in the standard library."""
    at = offset(document.source, place)
    operator = document.names.operator_at(at)
    if operator is not None:
        found = document.operators.find(operator.name.removeprefix("R.")) if operator.name.startswith("R.") else None
        if found is None or found.span is None:
            return None
        return lsp.Location(_uri(found.span, document, uri), range_of(found.span))
    known = document.names.at(at)
    return lsp.Location(uri, range_of(known.span)) if known is not None else None


def references(document: Document, uri: str, place: lsp.Position, declaration: bool = True) -> list[lsp.Location]:
    """Every place where the name under the cursor stands for the same thing."""
    at = offset(document.source, place)
    operator = document.names.operator_at(at)
    if operator is not None:
        return [lsp.Location(uri, range_of(o.span)) for o in document.names.operators if o.name == operator.name]
    known = document.names.at(at)
    if known is None:
        return []
    spans = [*([known.span] if declaration else []), *known.uses]
    return [lsp.Location(uri, range_of(s)) for s in spans]


def prepare_rename(document: Document, place: lsp.Position) -> lsp.Range | None:
    """The name that renaming at a position would change."""
    at = offset(document.source, place)
    known = document.names.at(at) if document.names.operator_at(at) is None else None
    return range_of(_under(known, at)) if known is not None else None


def rename(document: Document, uri: str, place: lsp.Position, name: str) -> lsp.WorkspaceEdit | None:
    """Another name for a definition and its uses. ValueError, with the reason, for a name that cannot be."""
    known = document.names.at(offset(document.source, place))
    if known is None:
        return None
    if not _IDENTIFIER.match(name):
        raise ValueError(f"`{name}` is no name")
    if keyword.iskeyword(name) or name in _SPACES:
        raise ValueError(f"`{name}` is a word of the language")
    if any(d.name == name and _same_scope(d.scope, known.scope) for d in document.names.definitions):
        raise ValueError(f"there is a `{name}` already")
    edits = [lsp.TextEdit(range_of(s), name) for s in (known.span, *known.uses)]
    return lsp.WorkspaceEdit({uri: edits})


def _same_scope(a: str, b: str) -> bool:
    return a == b or a.startswith(b + ".") or b.startswith(a + ".") or not a or not b


def _uri(span: Span, document: Document, uri: str) -> str:
    if span.source.name == document.source.name:
        return uri
    path = Path(span.source.name)
    if path.parts[:1] == ("stdlib",):
        path = resource_dir("stdlib").joinpath(*path.parts[1:])
    return path.resolve().as_uri()


# --- while typing -----------------------------------------------------------------------------------------------------
def completion(document: Document, place: lsp.Position) -> list[lsp.CompletionItem]:
    """What may stand at the cursor: members of a namespace after its dot, else names in scope."""
    before = document.source.text[: offset(document.source, place)]
    found = _WORD.search(before)
    word = found[0] if found else ""
    head, dot, last = word.rpartition(".")
    if dot and head.split(".")[0] in ("R", "T", "I"):
        kind = lsp.CompletionItemKind.Function
        return [
            lsp.CompletionItem(c.text, kind=kind, detail=c.meta or None)
            for c in members(document.operators, head, last)
        ]
    functions = [d for d in document.names.definitions if d.kind == "function"]
    if dot:
        return [lsp.CompletionItem(d.name, kind=lsp.CompletionItemKind.Function) for d in functions]
    at = len(before)
    known = {d.name: d for d in document.names.definitions if d.span.end < at}
    made = [
        lsp.CompletionItem(name, kind=lsp.CompletionItemKind.Variable, detail=_detail(document, d))
        for name, d in known.items()
    ]
    module = lsp.CompletionItemKind.Module
    return [*made, *(lsp.CompletionItem(n, kind=module, detail=text) for n, text in _SPACES.items())]


def _detail(document: Document, known: Definition) -> str:
    info = document.struct_infos.get(known.span.start)
    return str(info[1]) if info is not None else known.kind


def signature_help(document: Document, place: lsp.Position) -> lsp.SignatureHelp | None:
    """The signature of the operator whose call the cursor stands in."""
    before = document.source.text[: offset(document.source, place)]
    name = open_call(before[-2000:])
    found = document.operators.find(name[2:]) if name.startswith("R.") else None
    if found is None:
        return None
    text = written_signature(name, found)
    return lsp.SignatureHelp([lsp.SignatureInformation(text, documentation=found.doc.strip().split("\n")[0])])


def inlay_hints(document: Document, at: lsp.Range) -> list[lsp.InlayHint]:
    """The struct info of variables for which none is written, in a range."""
    first, last = offset(document.source, at.start), offset(document.source, at.end)
    written = _annotated(document.source, document)
    made = []
    for start, (name, info) in document.struct_infos.items():
        text = str(info)
        if first <= start <= last and start not in written and document.source.text.startswith(name, start):
            shown = text if len(text) <= _LONGEST_HINT else text[: _LONGEST_HINT - 1] + "…"
            place = position(document.source, start + len(name))
            made.append(lsp.InlayHint(place, f": {shown}", kind=lsp.InlayHintKind.Type, tooltip=text))
    return made


def _annotated(source: Source, document: Document) -> set[int]:
    """Where variables stand whose struct info is written."""
    text = source.text
    return {
        d.span.start
        for d in document.names.definitions
        if d.kind == "parameter" or text[d.span.end :].lstrip()[:1] == ":"
    }


# --- the whole text ---------------------------------------------------------------------------------------------------
def symbols(document: Document) -> list[lsp.DocumentSymbol]:
    """The functions of a text with their variables."""
    made: list[lsp.DocumentSymbol] = []
    bodies = {s.name: s.span for s in _functions(document)}
    for known in document.names.definitions:
        if known.kind == "function" and not known.scope:
            whole_span = bodies.get(known.name) or known.span
            inside = [
                lsp.DocumentSymbol(
                    d.name, _SYMBOLS["variable"], range_of(d.span), range_of(d.span), _detail(document, d)
                )
                for d in document.names.definitions
                if d.kind == "variable" and d.scope == f".{known.name}"
            ]
            around = range_of(Span(known.span.source, min(whole_span.start, known.span.start), whole_span.end))
            made.append(
                lsp.DocumentSymbol(known.name, _SYMBOLS["function"], around, range_of(known.span), children=inside)
            )
    return made


def _functions(document: Document) -> Iterable[Named]:
    from relaxlang.syntax import tree

    waiting = list(document.surface.body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, tree.ClassDef):
            waiting += one.body
        elif isinstance(one, tree.FunctionDef) and one.span is not None:
            last = one.body[-1].span if one.body and one.body[-1].span is not None else one.span
            yield Named(one.name, Span(one.span.source, one.span.start, max(one.span.end, last.end)))


class Named:
    """A function and the text that it takes up."""

    def __init__(self, name: str, span: Span) -> None:
        self.name = name
        self.span = span


def formatting(document: Document) -> list[lsp.TextEdit]:
    """The edit that formats the text; none when it is well formatted, or has errors."""
    from relaxlang.syntax.format import format_source

    try:
        text = format_source(document.source)
    except DiagnosticError:
        return []
    return [lsp.TextEdit(whole(document.source), text)] if text != document.source.text else []


def explain(code: str) -> str:
    """The explanation of a diagnostic code; empty for one that does not exist."""
    info = CODES.get(code)
    return f"{info.title}\n\n{info.explanation}" if info is not None else ""
