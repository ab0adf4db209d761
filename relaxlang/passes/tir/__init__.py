"""Passes on TensorIR: from blocks, which schedules work on, to flat loops, which code generation takes.

In: PrimFuncs with blocks. Out: the same functions with plain loops and one index an access. `lowering` has the sequence
that every PrimFunc goes through; `layout` knows where the elements of a buffer are.
"""
