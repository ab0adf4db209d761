"""The language server: what an editor shows of a `.rlx` file while it is written.

In: texts as the editor has them, open files and positions. Out: diagnostics with fixes, struct info and documentation
under the cursor, definitions (into the standard library too), references, renaming, completion, formatting, and the
shapes that nobody wrote as hints. Nothing is compiled or run.

Reading order: `positions`, `names` (what each name of a text refers to), `document` (a text and what is known of it),
`features` (answers to questions), `server` (the protocol, by pygls: the extra `lsp`).
"""
