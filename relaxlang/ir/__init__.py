"""The IR: what a program is, on both levels.

Plain immutable records with a span. Read `prim` (scalar expressions), `tir` (buffers, statements, blocks, PrimFuncs),
`struct_info` and `relax` (graph level), `module`; then `visit` (walking and rewriting), `fresh` (copies that share no
variables), `structural` (equality), `intrinsics` (the table of TensorIR's intrinsics), `printing` (the slot that the
printer fills).
"""
