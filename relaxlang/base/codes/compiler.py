"""Codes of what the compiler and the run-time system report: 10 schedules, 31 passes, 50 code generation and targets,
60 run time, 90 faults of relaxlang itself."""

from relaxlang.base.codes.info import CodeInfo

COMPILER: dict[str, CodeInfo] = {
    # 10: schedules
    "RLX1001": CodeInfo(
        "no such block or function",
        "A schedule looks for a block by a name that the function does not have, or for a function that the module does not "
        "have. `print(sch.mod)` shows the names.",
    ),
    "RLX1002": CodeInfo(
        "block or loop that is gone",
        "A block or loop was replaced by an earlier instruction: `split`, `fuse` and others give the new ones.",
    ),
    "RLX1003": CodeInfo(
        "loops that are not nested as needed",
        "`fuse` takes loops that stand directly in each other, `reorder` those of one chain, in which each loop is alone in "
        "the one around it.",
    ),
    "RLX1004": CodeInfo(
        "block that is neither complete nor a reduction",
        "A complete block has spatial axes only, is the only one that writes its output, and does not read it. A reduction "
        "block has an init and also reduction axes, which do not change where it writes. Primitives that move blocks or "
        "change what they write take such blocks alone: others may depend on the order they run in.",
    ),
    "RLX1005": CodeInfo(
        "factors that do not fit the loop",
        "The factors of `split` are positive, at most one of them is `None`, and together they make at least as many "
        "iterations as the loop has.",
    ),
    "RLX1006": CodeInfo(
        "kind of loop that a primitive does not take",
        "`split` and `fuse` take serial loops from 0 without annotations; `vectorize` takes loops of a constant extent.",
    ),
    "RLX1007": CodeInfo(
        "iterations that depend on each other",
        "The iterations of a loop that is reordered, vectorised or parallel must be independent: none may add to what "
        "another one adds to, or read what another one writes.",
    ),
    "RLX1008": CodeInfo(
        "no such buffer of a block",
        "Buffers of a block are numbered in the order of its `T.reads` and `T.writes`.",
    ),
    "RLX1009": CodeInfo(
        "block that cannot be inlined",
        "`compute_inline` takes a block that stores one expression at its axes, each used once, to a buffer that the "
        "function allocates; `reverse_compute_inline` one that reads each element of its only producer once.",
    ),
    "RLX1010": CodeInfo(
        "place where a block cannot be computed",
        "`compute_at` needs all consumers of the block below the loop; `reverse_compute_at` needs a producer below the loop "
        "that finishes, in each iteration, what the block reads in it.",
    ),
    "RLX1011": CodeInfo(
        "reduction that cannot be taken apart",
        "`decompose_reduction` takes the outermost loop of the reduction or one around it; `rfactor` a loop that drives "
        "reduction axes alone, of a sum, product, minimum or maximum.",
    ),
    "RLX1012": CodeInfo(
        "buffer whose memory is the caller's",
        "Layout and storage scope of a parameter are known to the caller. `cache_read` and `cache_write` make buffers of "
        "the function's own. A map of `transform_layout` sends different indices to different places.",
    ),
    "RLX1013": CodeInfo(
        "argument that an instruction of a schedule does not take",
        "A number, key or decision is out of range, or of another kind than the instruction takes.",
    ),
    "RLX1014": CodeInfo(
        "text that is no schedule",
        "The text of a schedule is a list of calls, one a line, such as `l1, l2 = sch.split(l0, factors=[None, 8])`.",
    ),
    "RLX1015": CodeInfo(
        "bounds that depend on another loop",
        "A loop whose bounds mention another one cannot go outside of it, nor be fused with it.",
    ),
    "RLX1017": CodeInfo(
        "loop that cannot become a block",
        "`blockize` takes a chain of loops around one block whose axes are divided there into tiles.",
    ),
    "RLX1018": CodeInfo(
        "computation that an intrinsic does not describe",
        "`tensorize` takes a tile whose loops, in number and extent, and whose block do what the intrinsic's description "
        "says, on parts of buffers that its parameters can stand for.",
    ),
    "RLX1050": CodeInfo(
        "an index map without an inverse",
        "Two indices have the same image under the map, or it leaves gaps that are no padding. An invertible map takes each "
        "index apart by `//` and `%` with divisors that divide its extent, and puts the parts together without overlap: for `j` below 16 "
        "`lambda i, j: (i * 16 + j,)` has an inverse, and `lambda i, j: (i + j,)` has none.",
    ),
    "RLX1051": CodeInfo(
        "wrong number of indices for an index map", "An index map takes as many indices as the buffer has dimensions."
    ),
    # 31: passes
    "RLX3101": CodeInfo(
        "no such pass or pipeline",
        "The text of a pipeline names a pass or a pipeline that does not exist. `relaxc --list=passes` and "
        "`--list=pipelines` show them all.",
    ),
    "RLX3102": CodeInfo(
        "no such option of a pass",
        "The pass has no option of that name. `relaxc --describe PASS` shows what it has.",
    ),
    "RLX3103": CodeInfo("wrong value of a pass's option", "The option takes a value of another type."),
    "RLX3104": CodeInfo(
        "no such operator in a pass's option",
        "The option names operators, and this name is none: neither of the standard library (`relaxc --list=ops`) nor "
        "of the module.",
    ),
    "RLX3105": CodeInfo(
        "a lowering that gives no expression",
        "A function of `customize_legalize_map` takes the block builder and the call, and returns the expression that "
        "stands for the call; the call itself leaves it as it is.",
    ),
    "RLX3106": CodeInfo(
        "name of a pass that is taken",
        "`register_pass` gives a pass of one's own a name in pipelines, which no other pass may have; `override=True` puts "
        "it in the other's place.",
    ),
    "RLX3110": CodeInfo(
        "an output that can't be allocated",
        "The result of a `call_tir`-like call needs a dtype and a shape, so that memory can be made for it.",
    ),
    "RLX3111": CodeInfo(
        "a scalar that can't be computed at run time",
        "Scalars that are computed from symbolic dimensions are integers.",
    ),
    "RLX3112": CodeInfo(
        "nothing to bind there",
        "The function has no parameter or symbolic dimension of that name, or the array does not fit the parameter.",
    ),
    "RLX3113": CodeInfo(
        "no such pair to fuse",
        "Fusion looks at kernels in one dataflow block of which one uses the other's result.",
    ),
    "RLX3140": CodeInfo(
        "a pass lost a frozen attribute",
        "The attributes of a module that `frozen_attrs` lists must survive every pass unchanged; a build freezes those "
        "that hold its configuration. A pass that makes a new module keeps the attributes of the old one.",
    ),
    "RLX3141": CodeInfo("attribute that cannot be frozen", "The module has no attribute of that name."),
    "RLX3130": CodeInfo(
        "a pass changes what the program computes",
        "`relaxc --check-passes` interprets the program after every pass. The result, or a rule of the language, did not "
        "survive this one: the fault is in the pass. `--reduce` makes the program small.",
    ),
    "RLX3131": CodeInfo(
        "nothing to reduce",
        "`relaxc --reduce` needs a program that shows a fault: it does not compile, a pass changes its result, or the "
        "command of `--reduce=COMMAND` succeeds on it.",
    ),
    "RLX3120": CodeInfo(
        "a view that does not fit its source",
        "`T.match_buffer` in a block names a region of another buffer. The view must have the buffer's dtype and at most "
        "as many dimensions as the region.",
    ),
    "RLX3121": CodeInfo(
        "a block that is not opaque yet",
        "`lower-opaque-block` takes blocks without axes, init and match buffers: the passes before it remove these. "
        "`flatten-buffer` takes functions whose blocks are gone.",
    ),
    "RLX3122": CodeInfo(
        "wrong number of indices",
        "A buffer is accessed with another number of indices than it has dimensions.",
    ),
    "RLX3150": CodeInfo(
        "no such back end",
        "Patterns and code come from a back end by its name: `blas` and `onnx_runtime` are there, and others are given to "
        "`PassContext(back_ends=…)`.",
    ),
    "RLX3151": CodeInfo(
        "something that is no pattern of a back end",
        "`FuseOpsByPattern` takes `CompositePattern`s, or tuples of a name such as `blas.matmul`, a dataflow pattern, and "
        "if wanted a function that looks at a match and says whether it counts.",
    ),
    "RLX3152": CodeInfo(
        "back end that cannot do its work",
        "What the back end stands on is not installed, or a function that was made for it has something in it that it "
        "cannot express.",
    ),
    # 50: code generation and targets
    "RLX5021": CodeInfo(
        "variable that is not defined in lowered code",
        "Code generation found a use of a variable that no binding before it defines. Parsed modules are checked for this; "
        "a pass that moves or removes bindings may have broken it. `relaxc --check` on the printed module finds the place.",
    ),
    "RLX5022": CodeInfo(
        "unknown executor or runtime",
        "`relaxlang.build` takes the executors that `relaxc --list=executors` shows and the runtimes of "
        '`relaxc --list=runtimes`, by name or as mappings: `{"kind": "aot", "unpacked-api": True}`.',
    ),
    "RLX5023": CodeInfo(
        "unknown option of an executor or runtime",
        "The kind has no option of that name; the message lists those it has. Options of the executor are not options of "
        "the runtime or of the target.",
    ),
    "RLX5024": CodeInfo(
        "wrong value of an option of an executor or runtime",
        "Options are truth values, whole numbers or one of a few words.",
    ),
    "RLX5025": CodeInfo(
        "name that is registered already",
        "Kinds of targets, executors and runtimes, their aliases, and tags of targets have one meaning each; "
        "`override=True` gives a name another.",
    ),
    "RLX5026": CodeInfo(
        "executor without a back end",
        "The kind of executor is known, but nothing makes code for it: `register_executor` takes the kind together with "
        "its back end.",
    ),
    "RLX5027": CodeInfo(
        "target of a function is not clear",
        'With several targets every function states its own, by `R.func_attr({"target": …})`, or there is one default: '
        "the target that is called `default`, or the one of a list that is marked by `-default`. When no target is given "
        "and some functions state one, all of them must.",
    ),
    "RLX5028": CodeInfo(
        "settings of a build that do not go together",
        "An executor needs a target and a runtime that it can work with: `vm` and `graph` run in this process, on the "
        "runtime `cpp`, with code that LLVM makes; C source and code for programs without Python are made by `aot`.",
    ),
    "RLX5030": CodeInfo(
        "no linker for a shared library",
        "A shared library is linked by `cc`, `gcc` or `clang`, or by the `ziglang` package, which brings its own linker and "
        "also links for other platforms: `pip install ziglang`. An `.rlxe` file needs no linker.",
    ),
    "RLX5031": CodeInfo("linking failed", "The linker could not make a shared library; its own words follow."),
    "RLX5032": CodeInfo(
        "intermediate whose size is known only at run time",
        "Code that may not allocate while it runs has a workspace of a fixed size, so the shapes of all intermediates must "
        "be constants: give symbolic dimensions values first, by `bind-symbolic-vars`.",
    ),
    "RLX5033": CodeInfo(
        "unknown compiler of a function",
        '`R.func_attr({"target": {"kind": "llvm", "compiler": "graph"}})` has one function compiled by another '
        "compiler than the rest of its module; `register_compiler` adds compilers to `vm`, `graph` and `interpreter`.",
    ),
    "RLX5036": CodeInfo(
        "malformed configuration of a module",
        "`mod_name` is a name that C allows, and the attributes `Executor`, `Runtime`, `targets` and `CompilerConfig` of a "
        "module are mappings as `relaxlang.build` writes them.",
    ),
    "RLX5034": CodeInfo(
        "workspace over its limit",
        "The option `workspace-byte-limit` of the executor says how many bytes the intermediates of a function may take; "
        "after planning they take more. The message says by how much, and what is alive when most is needed: smaller "
        "shapes, element types or tiles, or another order of operations help there.",
    ),
    "RLX5029": CodeInfo(
        "program that an executor cannot run",
        "The executors `graph` and `aot` run a fixed list of kernel calls: every shape is a number, there is no control "
        "flow, no closure, and no call that makes its result itself. The message names the binding that needs more; "
        '`executor="vm"` runs every program.',
    ),
    "RLX5001": CodeInfo(
        "unknown target kind",
        "A target begins with its kind. Code for processors is made by `llvm`, as in `llvm -mcpu=znver4`.",
    ),
    "RLX5002": CodeInfo("unknown target option", "The target has no option of that name."),
    "RLX5003": CodeInfo(
        "malformed target",
        "A target is a text such as `llvm -mcpu=znver4 -num-cores=2`, or a mapping with `kind` and options.",
    ),
    "RLX5004": CodeInfo(
        "platform that LLVM cannot make code for",
        "The triple or the processor of the target is not among those that LLVM was built with.",
    ),
    "RLX5010": CodeInfo(
        "shift amount out of range",
        "An integer is shifted by a constant that is negative or not less than its width. (An amount that is computed at "
        "run time may be: all bits are shifted out then.) Where the program itself writes such a constant it is RLX0308; "
        "here a pass found it.",
    ),
    "RLX5011": CodeInfo(
        "a parallel loop carries a reduction",
        "Iterations of a parallel loop update the same element, so that threads would race for it and the result would "
        "change from run to run. Make the loop serial, or let every iteration have a partial result of its own (the "
        "schedule primitive `rfactor` does that).",
        """
        @T.prim_func
        def total(A: T.Buffer((1000,), "float32"), O: T.Buffer((1,), "float32")):
            for k in T.parallel(1000):
                O[0] = O[0] + A[k]
        """,
        """
        @T.prim_func
        def total(A: T.Buffer((1000,), "float32"), O: T.Buffer((1,), "float32")):
            for k in range(1000):
                O[0] = O[0] + A[k]
        """,
    ),
    "RLX5012": CodeInfo(
        "statement that a processor cannot run",
        "Loops over GPU threads have no meaning on a processor; `break` and `T.ret` cannot leave a parallel loop.",
    ),
    "RLX5013": CodeInfo(
        "call that has no code",
        "The intrinsic is not available on this target, or its arguments are not what it takes.",
    ),
    "RLX5014": CodeInfo(
        "symbol not found",
        "A kernel calls a C function by `T.call_extern` that is not loaded into this process.",
    ),
    "RLX5015": CodeInfo(
        "variable without a value",
        "A kernel gets its variables from parameters, loops, `let`, and from dimensions of parameters in which they stand "
        "alone. From the shape `(n * 2,)` alone `n` is not known.",
    ),
    "RLX5016": CodeInfo(
        "type that an operation does not take",
        "The operation is not defined for values of this dtype, or for values of different dtypes.",
    ),
    "RLX5017": CodeInfo(
        "nested too deeply",
        "Expressions or statements are nested so deeply that code cannot be made for them.",
    ),
    "RLX5018": CodeInfo(
        "code for another machine",
        "The executable holds machine code for another kind of processor, or for one with features that this one lacks. "
        "Build it for this machine, or for a processor that both are compatible with (`-mcpu=x86-64`).",
    ),
    "RLX5019": CodeInfo(
        "call of a function that does not fit",
        "A call within TensorIR names no PrimFunc of the module, or passes arguments that its parameters do not take.",
    ),
    "RLX5020": CodeInfo(
        "LLVM rejects generated code",
        "The code that relaxlang made for LLVM is not valid. The fault is in relaxlang and not in the program.",
    ),
    # 60: run time
    "RLX6001": CodeInfo(
        "wrong number of arguments",
        "A compiled function was called with more or fewer arguments than it has parameters.",
    ),
    "RLX6002": CodeInfo(
        "wrong kind of argument",
        "An argument or a result is of a kind that cannot be used there: a string where a tensor is expected, a "
        "tensor on another device, an array of a dtype that the language lacks, a tuple of another length.",
    ),
    "RLX6003": CodeInfo(
        "dtype differs at run time",
        "A tensor or scalar has another dtype than the function declares. Nothing is converted silently: convert the "
        "argument with `.astype`.",
    ),
    "RLX6004": CodeInfo(
        "rank differs at run time",
        "A tensor or shape has another number of dimensions than declared.",
    ),
    "RLX6005": CodeInfo(
        "dimension differs at run time",
        "A dimension of a tensor or shape, or a scalar, has another value than declared. A symbolic dimension such "
        "as `n` takes the value that it has where it occurs first; every further occurrence must agree.",
    ),
    "RLX6006": CodeInfo(
        "memory cannot be allocated",
        "A tensor's size is negative, overflows, or is more than the memory that the system has left.",
    ),
    "RLX6007": CodeInfo(
        "a packed function raised",
        "A Python function that the program calls by name raised an exception, which is the cause of this error.",
    ),
    "RLX6008": CodeInfo(
        "unknown function",
        "There is no function of that name in the module, or no packed function registered under it.",
    ),
    "RLX6009": CodeInfo(
        "assertion failed at run time",
        "An `R.assert_op` or a `T.Assert` of the program did not hold.",
    ),
    "RLX6010": CodeInfo(
        "recursion too deep at run time",
        "Relax functions call each other too deeply, most likely without end.",
    ),
    "RLX6011": CodeInfo(
        "damaged executable file",
        "The file is no executable, is cut off, or its checksum does not fit. Build it again.",
    ),
    "RLX6012": CodeInfo(
        "executable file of a newer version",
        "The file was written by a newer relaxlang in a format that this one does not know.",
    ),
    "RLX6013": CodeInfo(
        "text that is no executable",
        "The text form of an executable (`as_text`) has a line that cannot be read.",
    ),
    "RLX6014": CodeInfo(
        "malformed executable",
        "The bytecode refers to a register, constant, function or instruction that does not exist, or an instruction "
        "was given values that it cannot take.",
    ),
    "RLX6015": CodeInfo(
        "output array is read-only",
        "A kernel writes to the array that was passed for this parameter, but the array does not allow it.",
    ),
    "RLX6016": CodeInfo("no such device", "The device does not exist; this release runs on the CPU only."),
    "RLX6017": CodeInfo(
        "packed function cannot be registered",
        "The name is taken (pass `override=True` to replace the function), or what was given is no function.",
    ),
    "RLX6018": CodeInfo(
        "value cannot be used at run time",
        "A value of the right kind has content that the operation cannot take: a reshape to another number of "
        "elements, a condition that is no scalar, a format with more places than values.",
    ),
    "RLX6019": CodeInfo(
        "executable file cannot be read or written",
        "The file is missing, is a directory, may not be read, has an unknown suffix, or holds no relaxlang "
        "executable.",
    ),
    "RLX6020": CodeInfo(
        "kernels cannot be linked",
        "The executable holds machine code and no linker is installed.",
    ),
    "RLX6021": CodeInfo(
        "text that is no graph",
        "A graph is JSON as `get_graph_json` writes it: its numbers must lead to tensors and storages that are there, and "
        "its parameters must be those that it was made for.",
    ),
    "RLX6030": CodeInfo(
        "index out of bounds",
        "The reference interpreter checks every load and store: each index must be from 0 to the extent of its "
        "dimension, less one. `T.if_then_else(inside, A[i], 0)` loads only when the condition holds; `T.Select` loads "
        "always.",
    ),
    "RLX6031": CodeInfo(
        "buffer does not fit the region it stands for",
        "A buffer of `T.match_buffer` in a block has another rank, shape, stride or offset than the region.",
    ),
    "RLX6032": CodeInfo(
        "variable or buffer without a value",
        "A symbolic variable is used before any argument or `R.match_cast` gives it a value, or a buffer is used whose "
        "memory was never allocated.",
    ),
    "RLX6033": CodeInfo(
        "operation without a result",
        "The operation has no value for operands of this type: the difference of two truth values, a reinterpretation "
        "as a type of another size.",
    ),
    "RLX6034": CodeInfo(
        "construct that the interpreter cannot run",
        "The reference interpreter has no meaning for it: an intrinsic of the processor, a device instruction, a "
        "reduction expression outside of a tensor computation, nesting beyond what Python's stack holds.",
    ),
    "RLX6035": CodeInfo(
        "assumption does not hold", "The condition of a `T.assume` is false where the program gets to it."
    ),
    "RLX6036": CodeInfo(
        "dimension out of its bounds",
        "A symbolic dimension is larger than the function's attribute `tir_var_upper_bound` says, smaller than its "
        "`tir_var_lower_bound`, or negative although `tir_non_negative_var` names it. Memory was planned with these bounds.",
    ),
    "RLX6037": CodeInfo(
        "signature of a C function that can't be read",
        "A signature is the result and the parameters of a C function in its order, as in `void(i32 N, f32 alpha, "
        "f32[N] x, out f32[N] y)`: tensors with their dimensions, sizes by the names of dimensions, fixed numbers, and "
        "numbers of the call. `help(relaxlang.register_c_function)` tells more.",
    ),
    "RLX6038": CodeInfo(
        "library or symbol that is not there",
        "A program calls a C function, or a library that an extra brings, and this machine has no such library, or the "
        "library has no such symbol. It is looked for when the function is declared, and when a program that needs it is "
        "loaded, before anything runs.",
    ),
    "RLX6039": CodeInfo(
        "C function that failed",
        "A C function whose result is declared as `status` returned another number than 0: its documentation tells what "
        "the number means.",
    ),
    # 90: faults of relaxlang itself
    "RLX9001": CodeInfo(
        "internal error",
        "relaxlang met a state that it holds to be impossible. The fault is in relaxlang and not in the program: "
        "please report it, with the program and the command that led to it.",
    ),
    "RLX9002": CodeInfo(
        "nested too deeply to be printed",
        "A program made by a pass or through the Python API has expressions or statements nested tens of thousands "
        "deep. Text that deep could not be read back. Bind parts of the expression to variables.",
    ),
    "RLX9003": CodeInfo(
        "formatting would change the program",
        "`relaxc --fmt` reads its own result back before it writes anything, and found another program than the one it "
        "was given. The file is left alone. The fault is in relaxlang: please report it, with the file.",
    ),
}
