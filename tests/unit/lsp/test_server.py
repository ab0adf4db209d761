"""The language server as a process, spoken to over its pipes."""

from __future__ import annotations

import asyncio
import sys

import pytest

pytestmark = pytest.mark.extra("pygls")
pytest.importorskip("pygls")

from lsprotocol import types as lsp  # noqa: E402
from pygls.exceptions import JsonRpcException  # noqa: E402
from pygls.lsp.client import LanguageClient  # noqa: E402

URI = "file:///m.rlx"
TEXT = '@R.function\ndef main(x: R.Tensor((n, 4), "float32")):\n    y = R.add(x, x)\n    return y\n'


async def _conversation() -> tuple[list[lsp.PublishDiagnosticsParams], lsp.Hover | None, str, list[lsp.InlayHint]]:
    client = LanguageClient("test", "1")
    published: list[lsp.PublishDiagnosticsParams] = []
    arrived = asyncio.Event()

    @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def diagnostics(params: lsp.PublishDiagnosticsParams) -> None:
        published.append(params)
        arrived.set()

    await client.start_io(sys.executable, "-m", "relaxlang.lsp")
    answer = await client.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities()))
    assert answer.capabilities.hover_provider and answer.capabilities.rename_provider
    client.initialized(lsp.InitializedParams())
    opened = lsp.TextDocumentItem(URI, lsp.LanguageKind.Python, 1, TEXT.replace("R.add", "R.ad"))
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(opened))
    await arrived.wait()
    arrived.clear()
    change = lsp.TextDocumentContentChangeWholeDocument(TEXT)
    version = lsp.VersionedTextDocumentIdentifier(uri=URI, version=2)
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(version, [change]))
    await arrived.wait()
    document = lsp.TextDocumentIdentifier(URI)
    hover = await client.text_document_hover_async(lsp.HoverParams(document, lsp.Position(2, 4)))
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(9, 0))
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(document, everything)) or ()
    try:
        await client.text_document_rename_async(lsp.RenameParams(document, lsp.Position(2, 4), "1"))
        refused = ""
    except JsonRpcException as error:
        refused = str(error)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return published, hover, refused, list(hints)


def test_a_conversation() -> None:
    published, hover, refused, hints = asyncio.run(asyncio.wait_for(_conversation(), 120))
    assert [len(p.diagnostics) for p in published] == [1, 0]
    assert hover is not None and "R.Tensor((n, 4)" in str(hover.contents)
    assert "`1` is no name" in refused
    assert [h.label for h in hints] == [': R.Tensor((n, 4), "float32")']
