"""Portable C99 from TensorIR: readable, with no dependency but the C library's headers and `math.h`.

In: PrimFuncs. Out: one C source file; `c_source(funcs)` is the way in. The functions have the kernel signature of
`codegen.function`: buffers as pointers, symbols as int64, scalars; they return 0, or k when assertion k failed.
Numbers mean what they mean elsewhere: integers wrap, division floors and is defined for every divisor, extrema keep
NaN, small floats are rounded after every operation.

Reading order: `source` (the file), `function`, `stmt`, `expr`, `intrinsics`; `types` and `helpers` (the small functions
in C that they call) below them.
"""

from relaxlang.codegen.c.source import c_source

__all__ = ["c_source"]
