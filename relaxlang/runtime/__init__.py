"""The run time: tensors, packed functions, executables, and the virtual machine that runs them.

In: an `Executable` (made by code generation through `ExecBuilder`, or read from a file) and the kernels it calls.
Out: `vm["main"](x, w)`. The run time needs numpy and `relaxlang.base` only, so a built program runs without the
compiler.

Reading order: `ndarray` (tensors; below it `memory`, the allocator, and `dlpack`;
`draft` is memory in the cache's files), `kernel_signature` and `kernel`
(compiled functions and how they are called; `kernel_args` checks), `executable` (the program as data; `exec_builder`
writes it, `exec_text`/`exec_parse` and `exec_file`/`exec_values` are its two outside forms), `builtins` (what bytecode
calls) with `checks` (the words of its errors), `registry` (packed functions), `c_function` (functions of shared
libraries: `c_signature` reads how they are called, `shared_library` finds them, `elf` looks at them first), `blas` and
`onnx_runtime` (what back ends call), `linkage` (what a program's names stand
for), `params` (conversion of arguments), `outputs` (`out=`), `vm` (the machine as its users see it), which runs native
code (`native` says who makes it) or `bytecode` (`decode` makes it ready), `module` (what `build` returns,
`load_module`), `profile` and `observe` (where time goes). Beside the machine, for programs of
static shape: `graph` (calls over numbered storage, as data and JSON), `graph_executor`, `graph_module`.
"""
