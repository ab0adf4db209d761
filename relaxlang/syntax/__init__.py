"""The language: from text to IR and back.

In: the text of a `.rlx` file. Out: an `ir.IRModule`, and text again. Nothing here knows an operator by name; what
elaboration needs of operators it gets as an argument (`operators`).

Read in this order:

- `grammar/*.lark`, then `tree`: what a text may say, and the surface tree that holds it. `tables` turns the grammar
  into an LALR(1) table once and caches it; `lexer` makes tokens, `lalr` runs the table over them and goes on after
  errors, `expr_actions` and `actions` build the nodes, `literals` reads numbers and strings, `messages` words the
  errors; `parser` ties them together. `pipeline_text` reads pipelines the same way, and `interactive` answers an
  editor.
- `spellings`: the names of all eras in one table, which reading and printing share.
- `comptime` and `comptime_values`: the compile-time language.
- `elaborate`: from the surface tree to IR. `parse` is the way in: text to checked module.
  `include` finds the files that a file is made of; `side_file` has its large constants, which stay there as
  `side_array`s until somebody looks at them.
- `document`, `scalars` and `printer`: from IR to text.
- `format`: a source laid out anew, from its surface tree. `migrate`: a source as the script of a release of TVM,
  printed from its IR, with its comments.
"""
