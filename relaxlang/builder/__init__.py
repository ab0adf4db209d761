"""Building and rewriting Relax in Python.

In: expressions, struct info as text, tensor computations, patterns. Out: functions in normal form, kernels, rewritten
functions. Read `infer` (the struct info of any expression), `normalize` (normal form), `construct` (leaves), `te`
(kernels from Python functions), `block_builder`; `dpl` is the pattern language.
"""
