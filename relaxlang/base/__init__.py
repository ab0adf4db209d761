"""What everything else stands on, and what knows nothing of tensors or programs.

In: texts, settings, paths. Out: spans into texts, diagnostics and their rendering, records for trees, element types.

Reading order: `source` (texts and spans), `diagnostics` (findings as data, the exceptions), `codes` (the table of what
can be wrong), `render` and `excerpt` (findings as text), `node` (immutable records, the stuff of all trees), `dtype`;
then the small ones: `config` (the environment), `resources` (grammar, stdlib, cache), `files`, `colors`, `suggest`,
`recursion`, `collection`.
"""
