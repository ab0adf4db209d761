"""Codes of elaboration: what is found when the text becomes IR. 01 names, functions and modules, 02 struct info, 03
TensorIR, 04 Relax functions and well-formedness. An example in `wrong` is a whole text that is reported under its
code."""

from relaxlang.base.codes.info import CodeInfo

_HEAD = '@T.prim_func\ndef f(A: T.Buffer((16,), "float32")):\n'
_RELAX = '@R.function\ndef f(x: R.Tensor((4,), "float32")):\n'


def _tir(line: str) -> str:
    """A TensorIR function with these lines as its body."""
    return _HEAD + "".join(f"    {part}\n" for part in line.split("\n"))


def _relax(line: str) -> str:
    """A Relax function with these lines as its body."""
    return _RELAX + "".join(f"    {part}\n" for part in line.split("\n"))


ELABORATION: dict[str, CodeInfo] = {
    # 01: names, functions and modules
    "RLX0103": CodeInfo(
        "no such operator",
        "Operators are defined in the standard library, or by the module itself with `@R.op`. `relaxc "
        "--list=ops` shows "
        "them all.",
        _relax("y = R.expp(x)\nreturn y"),
        _relax("y = R.exp(x)\nreturn y"),
    ),
    "RLX0104": CodeInfo(
        "unknown intrinsic with keyword arguments",
        "An intrinsic that relaxlang does not know is carried as it is written, which it can only do with plain "
        "arguments and `dtype=`.",
    ),
    "RLX0105": CodeInfo(
        "operator outside a Relax function", "Operators of Relax are called in the body of an `@R.function`."
    ),
    "RLX0128": CodeInfo(
        "malformed constant",
        "A constant is made of numbers of one kind; the rows of an array have equal lengths; floats that no "
        "literal can "
        'say are strings: `"inf"`, `"-inf"`, `"nan"`.',
        _relax('y = R.const([[1, 2], [3]], "int32")\nreturn y'),
        _relax('y = R.const([[1, 2], [3, 4]], "int32")\nreturn y'),
    ),
    "RLX0129": CodeInfo(
        "number out of range",
        "The number does not fit its type. A bare integer in TensorIR is int32, or int64 when it needs more bits.",
        _tir("A[T.int32(4294967296)] = T.float32(0)"),
        _tir("A[T.int32(3)] = T.float32(0)"),
    ),
    "RLX0140": CodeInfo(
        "assertion fails while compiling",
        "An `assert` in a Relax function and `T.static_assert` state what must hold while compiling.",
        _relax('assert 1 > 2, "never"\nreturn x'),
        _relax("assert 1 < 2\nreturn x"),
    ),
    "RLX0141": CodeInfo(
        "malformed parameter",
        "A parameter has a name and a type. It has no default: the caller passes every argument, at run time.",
        '@R.function\ndef f(x: R.Tensor((4,), "float32") = None):\n    return x\n',
        '@R.function\ndef f(x: R.Tensor((4,), "float32")):\n    return x\n',
    ),
    "RLX0143": CodeInfo(
        "two modules in a file",
        "A file holds one module: a class under `@I.ir_module`, or functions without a class.",
        "@I.ir_module\nclass A:\n    pass\n\n@I.ir_module\nclass B:\n    pass\n",
        "@I.ir_module\nclass A:\n    pass\n",
    ),
    "RLX0144": CodeInfo(
        "statement has no place in a module",
        "A module holds functions, attributes (`I.module_attrs`), global infos, and compile-time constants.",
        "@I.ir_module\nclass M:\n    while True:\n        pass\n",
        '@I.ir_module\nclass M:\n    I.module_attrs({"version": 1})\n',
    ),
    "RLX0145": CodeInfo(
        "defined twice",
        "The functions and attributes of a module have different names.",
        "@R.function\ndef f(x: R.Object):\n    return x\n\n@R.function\ndef f(x: R.Object):\n    return x\n",
        "@R.function\ndef f(x: R.Object):\n    return x\n\n@R.function\ndef g(x: R.Object):\n    return x\n",
    ),
    "RLX0146": CodeInfo(
        "function without a kind",
        "A decorator says what a function is: `@R.function` (Relax), `@T.prim_func` (TensorIR), `@T.macro`, "
        "`@R.macro`, "
        "`@I.pyfunc`.",
        "def f(x: R.Object):\n    return x\n",
        "@R.function\ndef f(x: R.Object):\n    return x\n",
    ),
    "RLX0147": CodeInfo(
        "module parameter",
        "`N = I.param(int)` declares a value that whoever compiles the module gives: `relaxc -D N=128`, or "
        '`parse(text, values={"N": 128})`. A second argument is the default.',
        'N = I.param(int)\n\n@R.function\ndef f(x: R.Tensor((N,), "float32")):\n    return x\n',
        'N = I.param(int, 8)\n\n@R.function\ndef f(x: R.Tensor((N,), "float32")):\n    return x\n',
    ),
    "RLX0148": CodeInfo(
        "macro without a result",
        "A macro of Relax ends with `return`; what follows it is the value of the call.",
        '@R.macro\ndef twice(x):\n    y = R.add(x, x)\n\n@R.function\ndef f(x: R.Tensor((4,), "float32")):\n'
        "    y = twice(x)\n"
        "    return y\n",
        "@R.macro\ndef twice(x):\n    y = R.add(x, x)\n    return y\n\n@R.function\n"
        'def f(x: R.Tensor((4,), "float32")):\n'
        "    y = twice(x)\n    return y\n",
    ),
    "RLX0149": CodeInfo(
        "private function with a symbol",
        "A global symbol is what makes a function public.",
        '@R.function(private=True)\ndef f(x: R.Object):\n    R.func_attr({"global_symbol": "f"})\n    return x\n',
        "@R.function(private=True)\ndef f(x: R.Object):\n    return x\n",
    ),
    "RLX0117": CodeInfo(
        "value of Python that a program cannot use",
        "A program that is written in a Python file may mention plain data of the Python around it (numbers, strings, "
        "tuples, lists, dicts), arrays, dtypes, and functions and modules of relaxlang. It is never run as Python, so "
        "other objects and Python's own functions mean nothing to it.",
    ),
    "RLX0150": CodeInfo(
        "file cannot be included",
        '`attn = I.include("attn.rlx", HEADS=8)` takes a file, relative to the one it is written in, and values for its '
        "parameters. The file must lie in the folder of the file that is compiled, or in one that `relaxc -I` names.",
        'attn = I.include("no such file.rlx")\n\n\n@R.function\ndef f(x: R.Object):\n    return x\n',
        "@R.function\ndef f(x: R.Object):\n    return x\n",
    ),
    "RLX0151": CodeInfo("files include each other", "A file includes itself, by way of others or directly."),
    "RLX0152": CodeInfo(
        "metadata section that cannot be read",
        "Releases of TVM print arrays as JSON above the module, `metadata = tvm.ir.load_json(…)`, and name them "
        '`metadata["relax.expr.Constant"][0]`. Only arrays are read from there.',
        'metadata = tvm.ir.load_json("[]")\n',
        'y = I.array([1, 2], "int64")\n',
    ),
    "RLX0160": CodeInfo(
        "a release of TVM cannot say this",
        "`relaxc --emit=rlx --dialect=tvm-0.27` writes a script for a release of TVM. This construct came later than that "
        "release, or went away before it, and nothing else says the same there.",
    ),
    "RLX0161": CodeInfo("no such release", "Scripts can be written for the releases of TVM from 0.10 to 0.27."),
    # 02: struct info
    "RLX0201": CodeInfo(
        "annotation contradicts what was inferred",
        "What an annotation states and what follows from the value cannot both hold. Both places are labelled. In a "
        "module that says `check_well_formed=False`, and in one that the first releases wrote (`@tvm.script.ir_module`), "
        "this and other contradictions are warnings; such a module can be read and printed, and not be built.",
        _relax('y: R.Tensor((4,), "int32") = R.exp(x)\nreturn y'),
        _relax('y: R.Tensor((4,), "float32") = R.exp(x)\nreturn y'),
    ),
    "RLX0207": CodeInfo(
        "call with a wrong number of arguments",
        "A call passes as many arguments as the function has parameters; a kernel's results count as arguments.",
        "@R.function\ndef f(x: R.Object) -> R.Object:\n    y = f(x, x)\n    return y\n",
        "@R.function\ndef f(x: R.Object) -> R.Object:\n    y = f(x)\n    return y\n",
    ),
    "RLX0208": CodeInfo(
        "argument does not fit its parameter",
        "The struct info of an argument must imply that of the parameter; equality of symbolic dimensions alone is "
        "checked at run time.",
        '@R.function\ndef f(x: R.Tensor((4,), "float32")) -> R.Object:\n    y = f(R.const([1, 2], "int32"))\n'
        "    return y\n",
        '@R.function\ndef f(x: R.Tensor((4,), "float32")) -> R.Object:\n    y = f(x)\n    return y\n',
    ),
    "RLX0209": CodeInfo(
        "kernel is given another kind of tensor",
        "`R.call_tir` must pass tensors of the element type, rank and constant dimensions of the kernel's buffers.",
        '@I.ir_module\nclass M:\n    @T.prim_func\n    def k(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):\n'
        "        for i in range(4):\n            B[i] = A[i]\n\n    @R.function\n"
        '    def f(x: R.Tensor((4,), "float32")):\n'
        '        y = R.call_tir(M.k, (x,), out_sinfo=R.Tensor((4,), "int32"))\n        return y\n',
        '@I.ir_module\nclass M:\n    @T.prim_func\n    def k(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):\n'
        "        for i in range(4):\n            B[i] = A[i]\n\n    @R.function\n"
        '    def f(x: R.Tensor((4,), "int32")):\n'
        '        y = R.call_tir(M.k, (x,), out_sinfo=R.Tensor((4,), "int32"))\n        return y\n',
    ),
    "RLX0220": CodeInfo(
        "struct info that says more than is known",
        "In IR that a pass or a builder makes, a variable and a function's result say no more than what is inferred for "
        "their value; `R.match_cast` checks the rest at run time. (In a text an annotation that says more than is known "
        "is such a check, too.) The builder also refuses a cast that cannot succeed.",
    ),
    "RLX0221": CodeInfo(
        "malformed shape",
        "A shape is a tuple of dimensions (`(n, 4)`, `(n,)`), and a dimension is an integer expression that is not "
        "negative.",
        '@R.function\ndef f(x: R.Tensor((-4,), "float32")):\n    return x\n',
        '@R.function\ndef f(x: R.Tensor((4,), "float32")):\n    return x\n',
    ),
    "RLX0222": CodeInfo(
        "not an annotation",
        "Relax values are annotated with struct info, parameters of TensorIR functions with `T.Buffer(…)`, "
        "`T.handle` or "
        "a scalar type.",
        "@R.function\ndef f(x: 3):\n    return x\n",
        "@R.function\ndef f(x: R.Object):\n    return x\n",
    ),
    "RLX0223": CodeInfo(
        "no such virtual device",
        '`vdevice="llvm:0"` is the first device of that kind in the module\'s list.',
        '@R.function\ndef f(x: R.Tensor((4,), "float32", vdevice="llvm:0")):\n    return x\n',
        '@I.ir_module\nclass M:\n    I.module_global_infos({"vdevice": [I.vdevice("llvm")]})\n\n    @R.function\n'
        '    def f(x: R.Tensor((4,), "float32", vdevice="llvm:0")):\n        return x\n',
    ),
    "RLX0224": CodeInfo(
        "not something to call",
        "`R.call_tir` takes a TensorIR function of the module (`cls.f`), `R.call_packed` the name of a packed "
        "function.",
        _relax('y = R.call_tir(x[0], (x,), out_sinfo=R.Tensor((4,), "float32"))\nreturn y').replace("x[0]", "3"),
        _relax('y = R.call_dps_packed("f", (x,), out_sinfo=R.Tensor((4,), "float32"))\nreturn y'),
    ),
    "RLX0225": CodeInfo(
        "not a value of Relax",
        "Values of Relax are tensors, shapes, scalars, strings, dtypes, functions and tuples of such.",
        _relax("return R.Tensor"),
        _relax("return x"),
    ),
    "RLX0226": CodeInfo(
        "not a condition",
        "The condition of a conditional is a bool tensor of one element, or a bool scalar.",
        _relax("if x:\n    y = x\nelse:\n    y = x\nreturn y"),
        '@R.function\ndef f(x: R.Object, c: R.Tensor((), "bool")):\n    if c:\n        y = x\n    else:\n'
        "        y = x\n    return y\n",
    ),
    # 03: TensorIR
    "RLX0303": CodeInfo(
        "length of a vector is not known",
        "A slice used as a value, a ramp and a broadcast are vectors, whose length is known while compiling.",
        '@T.prim_func\ndef f(A: T.Buffer((16,), "float32"), n: T.int32):\n    A[0:n] = T.float32(0)\n',
        '@T.prim_func\ndef f(A: T.Buffer((16,), "float32"), n: T.int32):\n    A[n : n + 4] = T.float32(0)\n',
    ),
    "RLX0304": CodeInfo("malformed domain", "A domain is an extent, or a pair (start, stop)."),
    "RLX0305": CodeInfo(
        "not a buffer",
        "Only buffers have elements. A handle parameter becomes one by `T.match_buffer`.",
        "@T.prim_func\ndef f(a: T.handle):\n    a[0] = T.float32(0)\n",
        '@T.prim_func\ndef f(a: T.handle):\n    A = T.match_buffer(a, (16,), "float32")\n    A[0] = T.float32(0)\n',
    ),
    "RLX0308": CodeInfo(
        "shift out of range",
        "A shift by less than 0, or by the width of the type or more, has no defined result.",
        '@T.prim_func\ndef f(A: T.Buffer((16,), "int32")):\n    A[0] = T.shift_left(A[1], 32)\n',
        '@T.prim_func\ndef f(A: T.Buffer((16,), "int32")):\n    A[0] = T.shift_left(A[1], 31)\n',
    ),
    "RLX0309": CodeInfo(
        "bound is no integer",
        "Loops and block axes run over integers.",
        _tir("for i in range(0.5):\n    A[i] = T.float32(0)"),
        _tir("for i in range(5):\n    A[i] = T.float32(0)"),
    ),
    "RLX0310": CodeInfo(
        "malformed block axis",
        "An axis has a domain and a value; `T.axis.remap` takes one letter, S or R, for each loop variable.",
        _tir(
            'for i in range(16):\n    with T.block("b"):\n        vi = T.axis.spatial(16)\n        A[vi] = T.float32(0)'
        ),
        _tir(
            'for i in range(16):\n    with T.block("b"):\n        vi = T.axis.spatial(16, i)\n'
            "        A[vi] = T.float32(0)"
        ),
    ),
    "RLX0311": CodeInfo(
        "outside of a block",
        "Axes, `T.reads`, `T.writes`, `T.where`, `T.init` and `T.block_attr` belong to a block.",
        _tir("T.reads(A[0])\nA[0] = T.float32(0)"),
        _tir('with T.block("b"):\n    T.reads(A[0])\n    A[0] = T.float32(0)'),
    ),
    "RLX0313": CodeInfo(
        "index out of range",
        "The index is beyond the end of the dimension: always, or at the last step of the loops around it. Indices count "
        "from 0, and negative ones do not count from the end. Such a program can be read and printed, with a warning; it "
        "can't be built or scheduled.",
        _tir("A[16] = T.float32(0)"),
        _tir("A[15] = T.float32(0)"),
    ),
    "RLX0314": CodeInfo(
        "stored value has another type",
        "A value is converted to the buffer's type by itself where that keeps the number, as from integers to floats. "
        "From floats to integers it loses the fraction, which is a warning for an element of a buffer and an error for a "
        "variable (`x = 0`, then `x = 0.5`); pointers are never converted.",
        '@T.prim_func\ndef f(A: T.Buffer((16,), "int32")):\n    A[0] = T.float32(1.5)\n',
        '@T.prim_func\ndef f(A: T.Buffer((16,), "int32")):\n    A[0] = T.Cast("int32", T.float32(1.5))\n',
    ),
    "RLX0315": CodeInfo(
        "no statement",
        "The line computes something and does nothing with it.",
        _tir("T.float32\nA[0] = T.float32(0)"),
        _tir("A[0] = T.float32(0)"),
    ),
    "RLX0316": CodeInfo(
        "scalar variable cannot be changed",
        "What `x = value` binds can be changed afterwards, in the same body or below it. Parameters, variables of loops "
        "and axes can't, nor what `T.let` binds.",
        '@T.prim_func\ndef f(A: T.Buffer((16,), "int32"), n: T.int32):\n    while n > 0:\n        n = n - 1\n'
        "        A[n] = n\n",
        '@T.prim_func\ndef f(A: T.Buffer((16,), "int32"), n: T.int32):\n    k = n\n    while k > 0:\n'
        "        k = k - 1\n        A[k] = k\n",
    ),
    "RLX0317": CodeInfo(
        "`with` of something else",
        "In TensorIR `with` opens a block, an `init`, or the scope of a declaration; in Relax a dataflow block.",
        _tir("with T.float32(0):\n    A[0] = T.float32(0)"),
        _tir('with T.block("b"):\n    A[0] = T.float32(0)'),
    ),
    "RLX0318": CodeInfo(
        "stated twice",
        "A block has one init, one predicate, one list of reads and one of writes.",
        _tir('with T.block("b"):\n    T.reads(A[0])\n    T.reads(A[1])\n    A[0] = T.float32(0)'),
        _tir('with T.block("b"):\n    T.reads(A[0], A[1])\n    A[0] = T.float32(0)'),
    ),
    "RLX0319": CodeInfo(
        "outside of a loop",
        "`break` and `continue` belong to a loop.",
        _tir("A[0] = T.float32(0)\nbreak"),
        _tir("for i in range(16):\n    A[i] = T.float32(0)\n    break"),
    ),
    "RLX0320": CodeInfo(
        "statement has no place here",
        "The statement is Python's, and has no meaning in this kind of function.",
        _tir("class B:\n    pass"),
        _tir("A[0] = T.float32(0)"),
    ),
    "RLX0321": CodeInfo(
        "not a scalar",
        "TensorIR computes with scalars: numbers, variables, elements of buffers.",
        _tir("A[0] = [1.0]"),
        _tir("A[0] = 1.0"),
    ),
    "RLX0322": CodeInfo(
        "buffer without indices",
        "A whole buffer is no value. A buffer without dimensions is read as `A[()]`.",
        _tir("A[0] = A"),
        _tir("A[0] = A[1]"),
    ),
    "RLX0323": CodeInfo(
        "intrinsic does not take this type",
        "The intrinsic is defined for another kind of number. `T.Cast` converts.",
        '@T.prim_func\ndef f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "float32")):\n    B[0] = T.exp(A[0])\n',
        '@T.prim_func\ndef f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "float32")):\n'
        '    B[0] = T.exp(T.Cast("float32", A[0]))\n',
    ),
    "RLX0324": CodeInfo(
        "defined twice in a scope",
        "A buffer or block axis has a name of its own in its scope.",
        _tir('B = T.alloc_buffer((4,), "float32")\nB = T.alloc_buffer((4,), "float32")\nA[0] = B[0]'),
        _tir('B = T.alloc_buffer((4,), "float32")\nC = T.alloc_buffer((4,), "float32")\nA[0] = B[0] + C[0]'),
    ),
    "RLX0325": CodeInfo("operands of two types", "Both operands of an operation on scalars have one type."),
    # 04: Relax functions, well-formedness
    "RLX0401": CodeInfo(
        "malformed dataflow block",
        "A dataflow block ends with one `R.output`, which names variables of the block; blocks are not nested.",
        _relax("with R.dataflow():\n    y = R.exp(x)\n    R.output(y)\n    R.output(y)\nreturn y"),
        _relax("with R.dataflow():\n    y = R.exp(x)\n    R.output(y)\nreturn y"),
    ),
    "RLX0402": CodeInfo(
        "malformed conditional",
        "Both branches end with a binding of one name, which is the result.",
        '@R.function\ndef f(x: R.Object, c: R.Tensor((), "bool")):\n    if c:\n        y = x\n    else:\n'
        "        z = x\n    return x\n",
        '@R.function\ndef f(x: R.Object, c: R.Tensor((), "bool")):\n    if c:\n        y = x\n    else:\n'
        "        y = x\n    return y\n",
    ),
    "RLX0403": CodeInfo(
        "conditional in a dataflow block",
        "A dataflow block is straight: no conditionals, no side effects.",
        '@R.function\ndef f(x: R.Object, c: R.Tensor((), "bool")):\n    with R.dataflow():\n        if c:\n'
        "            y = x\n"
        "        else:\n            y = x\n        R.output(y)\n    return x\n",
        '@R.function\ndef f(x: R.Object, c: R.Tensor((), "bool")):\n    if c:\n        y = x\n    else:\n'
        "        y = x\n    return y\n",
    ),
    "RLX0404": CodeInfo(
        "symbolic dimension that nothing defines",
        "A symbolic dimension is defined where it stands alone: as a dimension of a parameter, or of what a `match_cast` "
        "states. From `R.Tensor((n * 2,), …)` alone the value of `n` can't be told. This is found when shapes are lowered, "
        "in modules that a pass or a program made; text is checked when it is parsed.",
    ),
    "RLX0410": CodeInfo(
        "function returns nothing",
        "A Relax function ends with `return value`, unless it is declared as `-> None`.",
        "@R.function\ndef f(x: R.Object) -> R.Object:\n    y = x\n",
        "@R.function\ndef f(x: R.Object) -> R.Object:\n    y = x\n    return y\n",
    ),
    "RLX0411": CodeInfo(
        "unreachable",
        "`return` is the last statement of a function.",
        _relax("return x\ny = R.exp(x)"),
        _relax("y = R.exp(x)\nreturn x"),
    ),
    "RLX0412": CodeInfo(
        "branch returns",
        "Only the function returns. Bind the value in both branches, and return it after them.",
        '@R.function\ndef f(x: R.Object, c: R.Tensor((), "bool")):\n    if c:\n        return x\n    else:\n'
        "        y = x\n    return x\n",
        '@R.function\ndef f(x: R.Object, c: R.Tensor((), "bool")):\n    if c:\n        y = x\n    else:\n'
        "        y = x\n    return y\n",
    ),
    "RLX0413": CodeInfo(
        "loop in a Relax function",
        "Relax has no loops: `for` is over what is known while compiling, and makes its body once for each element. Write "
        "a loop of the run time in a TensorIR function and call it with `R.call_tir`, or write a recursive function.",
        _relax("while x:\n    y = R.exp(x)\nreturn x"),
        _relax("for i in range(4):\n    x = R.exp(x)\nreturn x"),
    ),
    "RLX0414": CodeInfo(
        "assertion about a run-time value",
        "`assert` is decided while compiling. `R.assert_op` checks a value when the program runs.",
        '@R.function\ndef f(c: R.Tensor((), "bool")):\n    assert c\n    return c\n',
        '@R.function\ndef f(c: R.Tensor((), "bool")):\n    assert True\n    return c\n',
    ),
    "RLX0430": CodeInfo("no public function", "Nothing outside can call a module whose functions are all private."),
    "RLX0431": CodeInfo(
        "symbol differs from the name",
        "The `global_symbol` of a public function is its name in the module.",
        "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Object):\n"
        '        R.func_attr({"global_symbol": "g"})\n'
        "        return x\n",
        "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Object):\n        return x\n",
    ),
    "RLX0432": CodeInfo(
        "dataflow variable outside its block",
        "What a dataflow block binds ends with it, except for its outputs.",
        _relax("with R.dataflow():\n    y = R.exp(x)\n    z = R.exp(y)\n    R.output(z)\nreturn y"),
        _relax("with R.dataflow():\n    y = R.exp(x)\n    z = R.exp(y)\n    R.output(y, z)\nreturn y"),
    ),
    "RLX0433": CodeInfo(
        "recursive function without a declared result",
        "What a call of the function gives must be known before its body is.",
        "@R.function\ndef f(x: R.Object):\n    y = f(x)\n    return y\n",
        "@R.function\ndef f(x: R.Object) -> R.Object:\n    y = f(x)\n    return y\n",
    ),
    "RLX0434": CodeInfo(
        "not in normal form",
        "Arguments are variables, constants, shapes or tuples of such; bodies and branches are `SeqExpr`; neighbouring "
        "plain blocks are one. `transform.Normalize` brings a module to this form.",
    ),
    "RLX0435": CodeInfo(
        "result mentions an unknown dimension",
        "A declared result mentions only dimensions that the parameters define.",
        '@R.function\ndef f(x: R.Object) -> R.Tensor(("k",), "float32"):\n    k = T.int64()\n'
        '    y = R.match_cast(x, R.Tensor((k,), "float32"))\n    return y\n',
        '@R.function\ndef f(x: R.Object) -> R.Tensor(ndim=1, dtype="float32"):\n    k = T.int64()\n'
        '    y = R.match_cast(x, R.Tensor((k,), "float32"))\n    return y\n',
    ),
    "RLX0436": CodeInfo(
        "bound twice", "A variable is bound once. In text a second binding of a name makes a new variable."
    ),
    "RLX0437": CodeInfo("operator as a value", "An operator is called; it is no value."),
    "RLX0438": CodeInfo("used before it is bound", "A variable is bound before it is used."),
    "RLX0439": CodeInfo(
        "recursion in a dataflow block",
        "A dataflow block does not call the function that it is in.",
        "@R.function\ndef f(x: R.Object) -> R.Object:\n    with R.dataflow():\n        y = f(x)\n"
        "        R.output(y)\n    return y\n",
        "@R.function\ndef f(x: R.Object) -> R.Object:\n    y = f(x)\n    return y\n",
    ),
    "RLX0440": CodeInfo(
        "side effects in a pure place",
        "Pure functions and dataflow blocks call only what is free of side effects. `pure=False` marks a "
        "function that is "
        'not; the attribute `"relax.force_pure"` vouches for one that is in spite of what it calls.',
        _relax('y = R.call_packed("f", x)\nreturn y'),
        '@R.function(pure=False)\ndef f(x: R.Object):\n    y = R.call_packed("f", x)\n    return y\n',
    ),
    "RLX0441": CodeInfo(
        "symbolic variable is not defined",
        "A symbolic variable is defined by standing alone as a dimension of a parameter, or of the struct info of a "
        "`R.match_cast`.",
        _relax('k = T.int64()\ny = R.zeros((k,), "float32")\nreturn x'),
        '@R.function\ndef f(x: R.Tensor((k,), "float32")):\n    y = R.zeros((k,), "float32")\n    return x\n',
    ),
    "RLX0442": CodeInfo("rank contradicts the shape", "`ndim` is the number of the shape's dimensions."),
    "RLX0443": CodeInfo(
        "elements are vectors",
        "The elements of a tensor are scalars.",
        '@R.function\ndef f(x: R.Tensor((4,), "float32x4")):\n    return x\n',
        '@R.function\ndef f(x: R.Tensor((4, 4), "float32")):\n    return x\n',
    ),
    "RLX0444": CodeInfo(
        "shape of another kind", "The shape of a tensor is a list of dimensions or a variable that holds a shape."
    ),
    "RLX0445": CodeInfo(
        "two rules for a function's result",
        "Struct info of a function has parameters, or a packed function that derives the result; not both.",
    ),
}
