from relaxlang.base.diagnostics import Diagnostic
from relaxlang.base.source import Span
def explain(parser, token):
    return Diagnostic("RLX0008", f"unexpected {token.text or token.type} {token.type} expected {parser.expected()}", Span(parser.source, token.start, token.end))
