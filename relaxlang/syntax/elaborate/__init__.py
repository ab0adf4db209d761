"""Elaboration: from the surface tree to the IR.

In: the tree of a file, an operator table, compile-time values. Out: an `IRModule`, and diagnostics. Names are resolved,
compile-time parts are evaluated, Relax is brought to normal form and every binding gets its struct info.

Read `unit` (what one parse shares), `module` (the file), `namespaces` (what `T`, `R`, `I` hold), then TensorIR:
`tir_function`, `tir_body`, `tir_values`, with the builtins in `scalars`, `buffers`, `tir_names`; then Relax:
`relax_function`, `relax_body`, with the builtins in `relax_names`, `relax_calls`, `annotations`. `dims` finds symbolic
dimensions, `native` checks the arguments of builtins.
"""
