"""Elaboration: from the surface tree to the IR.

In: the tree of a file, an operator table, compile-time values. Out: an `IRModule`, and diagnostics. Names are resolved,
compile-time parts are evaluated, Relax is brought to normal form and every binding gets its struct info. A faulty
statement is reported and left out, and what depends on it stays silent.

Expressions are evaluated by `comptime.Evaluator`; `RelaxElaborator` and `BodyElaborator` extend it with the values of
Relax and of TensorIR. Builtins stand in tables of Python functions (`native`).

- The file: `unit` (what one parse shares), `module`, `decorators`, `module_ref`, `module_names` (`I.…`), `metadata`,
  `macros`, `namespaces` (under which names `T`, `R` and `I` are reached), `dims` (symbolic dimensions), `places`.
- TensorIR: `tir_function` (the head), `tir_body` (state and expressions), `tir_statements`, `tir_values`; the builtins
  in `scalars`, `buffers`, `tir_loops`, `tir_names`, `tir_access`.
- Relax: `relax_function` (the head), `relax_body` (state, expressions, calls), `relax_statements`, `relax_closures`,
  `relax_dataflow`; the builtins in `relax_names`, `relax_calls`, `annotations`; `kernel_calls` checks `R.call_tir`.
"""
