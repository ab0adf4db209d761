"""Native programs: each Relax function of an executable becomes one LLVM function, called from Python without ctypes.

In: an `Executable` (the lowered functions as bytecode, whatever wrote it) and its kernels. Out: a `NativeProgram`,
whose functions check their arguments, keep shapes in registers, take memory from a caching allocator and call kernels
by address. What has no fast path is a call of the same Python builtin that the bytecode machine calls, so both machines
give the same results and the same errors.

Values are unboxed where their kind is known from the instructions alone (tensors on planned storage, shapes, scalars,
conditions, tuples of these) and references to Python objects elsewhere. The code runs under the interpreter's lock,
which is also the lock of the allocator; it is let go around kernels that touch much memory.

Reading order: `layout` (what is read of CPython's and numpy's objects, verified), `support` (the allocator and what
else every program calls, compiled once per process; its LLVM text is in `allocator_text` and `support_text`), `kinds`
(how values are held), `table` (what code refers to that only exists in a process) and `program_text`, `flow` (blocks
and live registers), `frame` (registers, ownership, where paths meet), `emitter` (a function, instruction by
instruction) with the fast paths of `checks`, `kernels` and `builtins`, `entry` (the functions that Python calls),
`helpers` (what runs in Python), `writing` (all of it for an executable) or `stored` (from the cache), `program`
(linking).
"""
