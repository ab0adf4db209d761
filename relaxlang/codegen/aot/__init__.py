"""Ahead of time: a module of static shapes as one C function over a static workspace, for programs without Python.

In: a lowered module. Out: a library: its entry as a PrimFunc that calls the kernels, C source or machine code of it, a
header. Nothing is allocated while it runs, and there is no runtime.

Reading order: `plan` (where in the workspace everything lies), `entry` (the function that calls the kernels),
`interface` (header and C entry points), `llvm_interface` (the same entry points for machine code), `library` (the
whole).
"""
