"""The language server's protocol, by pygls; `relaxlang-lsp` talks over stdin and stdout."""

from __future__ import annotations

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from relaxlang.base.version import __version__
from relaxlang.lsp import features
from relaxlang.lsp.document import Document


class RelaxServer(LanguageServer):
    """Holds the open documents, each in its latest version."""

    def __init__(self) -> None:
        super().__init__("relaxlang", __version__)
        self._documents: dict[str, tuple[int | None, Document]] = {}

    def document(self, uri: str) -> Document:
        """What is known of an open text, in its latest version."""
        text = self.workspace.get_text_document(uri)
        try:
            source = text.source
        except OSError:  # neither open nor on disk: an empty text
            source = ""
        known = self._documents.get(uri)
        if known is None or known[0] != text.version or known[1].source.text != source:
            known = (text.version, Document(to_fs_path(uri) or uri, source))
            self._documents[uri] = known
        return known[1]

    def publish(self, uri: str) -> None:
        """Send the diagnostics of a text."""
        found = features.diagnostics(self.document(uri), uri)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found))

    def forget(self, uri: str) -> None:
        """A text was closed: nothing is wrong with it any more."""
        self._documents.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))


def make_server() -> RelaxServer:
    """A server that answers; `start_io()` runs it."""
    server = RelaxServer()
    _follow(server)
    _answer(server)
    _complete(server)
    return server


def _follow(server: RelaxServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)


def _answer(server: RelaxServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        return features.hover(server.document(params.text_document.uri), params.position)

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        uri = params.text_document.uri
        return features.definition(server.document(uri), uri, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        uri = params.text_document.uri
        declaration = params.context.include_declaration
        return features.references(server.document(uri), uri, params.position, declaration)

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        return features.symbols(server.document(params.text_document.uri))

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        return features.inlay_hints(server.document(params.text_document.uri), params.range)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]))
    def code_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        return features.code_actions(server.document(uri), uri, params.range)


def _complete(server: RelaxServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["."]))
    def completion(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        return features.completion(server.document(params.text_document.uri), params.position)

    @server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=["(", ","]))
    def signature_help(params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        return features.signature_help(server.document(params.text_document.uri), params.position)

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        return features.formatting(server.document(params.text_document.uri))

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(params: lsp.PrepareRenameParams) -> lsp.Range | None:
        return features.prepare_rename(server.document(params.text_document.uri), params.position)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        uri = params.text_document.uri
        try:
            return features.rename(server.document(uri), uri, params.position, params.new_name)
        except ValueError as error:
            raise JsonRpcInvalidParams(str(error)) from error


def main() -> None:
    """`relaxlang-lsp`: serve one editor until it closes the connection."""
    make_server().start_io()
