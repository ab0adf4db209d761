"""Codes of what a program says: 00 text and syntax, 01 names and compile-time values, 02 struct info and shapes, 03 TIR
and buffers, 04 well-formedness. An example in `wrong` is a whole text that is reported under its code."""

from relaxlang.base.codes.info import CodeInfo

LANGUAGE: dict[str, CodeInfo] = {
    # 00: text and syntax
    "RLX0001": CodeInfo(
        "unexpected character",
        "The character begins no word of the language. Often it came in by copying: a typographic quote, a dash or a "
        "full-width bracket that looks like the plain one.",
        "x = “text”\n",
        'x = "text"\n',
    ),
    "RLX0002": CodeInfo(
        "unterminated string",
        "A string ends with the quote that it began with, on the same line; one in triple quotes may go over lines.",
        'x = "text\n',
        'x = "text"\n',
    ),
    "RLX0003": CodeInfo(
        "malformed number or string",
        "A number or an escape sequence in a string is not written as the language writes them. As in Python a decimal "
        "number doesn't begin with 0, octal ones begin with `0o`.",
        "x = 0123\n",
        "x = 123\n",
    ),
    "RLX0004": CodeInfo(
        "bracket is never closed",
        "A bracket that is open joins lines, so that the error shows only later, where the program can't go on "
        "inside it.",
        "x = (1 +\n",
        "x = (1 +\n     2)\n",
    ),
    "RLX0005": CodeInfo(
        "bracket closes nothing",
        "A closing bracket has no partner, or closes a bracket of another kind.",
        "x = (1 + 2]\n",
        "x = (1 + 2)\n",
    ),
    "RLX0006": CodeInfo(
        "wrong indentation",
        "As in Python, the lines of a block are indented alike and deeper than the line that opens it with `:`, and a "
        "block ends where a line goes back to the indentation of an outer one. An empty block is written `pass`.",
        "if x:\ny = 1\n",
        "if x:\n    y = 1\n",
    ),
    "RLX0007": CodeInfo(
        "tabs and spaces are mixed",
        "Which block a line belongs to would depend on how wide a tab is. Indent with spaces only.",
        "if x:\n        y = 1\n\tz = 2\n",
        "if x:\n        y = 1\n        z = 2\n",
    ),
    "RLX0008": CodeInfo(
        "unexpected word",
        "The program can't go on with this word here. The message says what could stand there, or what was probably "
        "meant.",
        "def f(x)\n    return x\n",
        "def f(x):\n    return x\n",
    ),
    "RLX0009": CodeInfo(
        "nested too deeply",
        "Brackets, blocks and `elif` chains may be nested only so deep, far deeper than people write, so that hostile "
        "input can't exhaust the machine. Give an inner part a name of its own.",
    ),
    "RLX0010": CodeInfo(
        "not something that can be assigned to",
        "Names, elements (`a[i]`), attributes and tuples of them can be assigned to, and a `*` stands before one "
        "name of a tuple at most.",
        "1 = x\n",
        "x = 1\n",
    ),
    "RLX0011": CodeInfo(
        "not part of the language",
        "The text is Python that the language leaves out: a program describes a computation and is never executed as "
        "Python, so there are no exceptions, generators, sets or formatted strings.",
        "try:\n    x = 1\n",
        "x = 1\n",
    ),
    "RLX0012": CodeInfo(
        "file is not UTF-8 text",
        "A `.rlx` file is text in UTF-8, with or without a byte order mark. The place shown is the first byte that is "
        "none. A file with NUL or other control characters is most likely a binary file.",
    ),
    "RLX0013": CodeInfo(
        "string with an expression is not plain",
        'A shape may be given as a string, such as "n * 2". It must be one literal without escape sequences, so that '
        "every character of the expression has its place in the file.",
    ),
    "RLX0014": CodeInfo(
        "positional argument after a keyword argument",
        "In a call the arguments without a name come first.",
        "y = f(a=1, x)\n",
        "y = f(x, a=1)\n",
    ),
    "RLX0015": CodeInfo(
        "keyword argument given twice",
        "A call names each argument once.",
        "y = f(a=1, a=2)\n",
        "y = f(a=1)\n",
    ),
    "RLX0016": CodeInfo(
        "malformed parameter list",
        "Parameters have different names; those with defaults follow those without; there is one `*` at most, and "
        "nothing follows `**`.",
        "def f(x, x):\n    return x\n",
        "def f(x, y):\n    return x\n",
    ),
    "RLX0017": CodeInfo(
        "file cannot be read", "The file does not exist, is a directory, or its permissions do not allow reading it."
    ),
    "RLX0018": CodeInfo(
        "program without a text",
        "`@I.ir_module`, `@R.function` and `@T.prim_func` of `relaxlang.script` read the text of the Python class or "
        "function below them. It must stand in a file, or in a notebook's cell.",
    ),
    # 01: names and compile-time values
    "RLX0101": CodeInfo(
        "undefined name",
        "Nothing of that name is visible here. A name is looked up among compile-time values, then in the enclosing "
        "functions and the module. A dimension is defined where it first stands alone in the shape of a parameter.",
    ),
    "RLX0102": CodeInfo(
        "no such attribute",
        "The namespace or value has nothing of that name.",
    ),
    "RLX0110": CodeInfo("value cannot be indexed", "Only sequences, tensors and buffers have elements."),
    "RLX0111": CodeInfo(
        "value cannot be called",
        "Functions, operators and types can be called here; the functions of stdlib's prelude only in an operator's "
        "body.",
    ),
    "RLX0112": CodeInfo(
        "operator is not defined for these operands",
        "Arithmetic needs two numbers (or two tensors), and comparison two values of one kind.",
    ),
    "RLX0113": CodeInfo(
        "wrong number of arguments",
        "The call gives more or fewer arguments than there are parameters without a default, or one of them twice. The "
        "note shows the signature.",
    ),
    "RLX0114": CodeInfo("no such parameter", "The call names a parameter that the function or operator doesn't have."),
    "RLX0115": CodeInfo(
        "`*` or a slice stands alone",
        "`*x` unpacks into a call, a list, a tuple or an index; a slice `a:b` stands in an index only.",
    ),
    "RLX0116": CodeInfo(
        "wrong argument of a built-in function",
        "A compile-time function such as `len`, `range` or `max` was given a value that it can't take.",
    ),
    "RLX0120": CodeInfo(
        "compile-time evaluation takes too long",
        "What runs while compiling has a limit of steps, of nested calls and of the size of values, so that a "
        "program can't keep the compiler busy for ever.",
    ),
    "RLX0121": CodeInfo(
        "condition is not known while compiling",
        "An `if`, a conditional expression or an `assert` in a compile-time function decides while compiling. For a "
        "choice at run time there are `T.if_then_else`, `T.Select` and the `if` statement of functions.",
    ),
    "RLX0122": CodeInfo(
        "index is not known while compiling", "A tuple, list or dict is indexed by a value known while compiling."
    ),
    "RLX0123": CodeInfo("index out of range", "The sequence has no such element, or the dict no such key."),
    "RLX0124": CodeInfo(
        "not a sequence known while compiling",
        "A comprehension, a compile-time loop or an unpacking goes over a tuple, list, dict or range whose length is "
        "known.",
    ),
    "RLX0125": CodeInfo("division by zero while compiling", "A compile-time expression divides by zero."),
    "RLX0126": CodeInfo("cannot be bound", "Only names, and tuples of names, are bound by a compile-time assignment."),
    "RLX0127": CodeInfo("wrong number of names", "An unpacking has as many names as there are values."),
    "RLX0130": CodeInfo(
        "malformed operator definition",
        'An operator is a function under `@R.op`, or `@R.op("namespace.name")`; `pure=False` says that it has effects.',
    ),
    "RLX0131": CodeInfo(
        "operator without a result",
        "The return annotation of an operator is its shape rule: it says what a call results in.",
        "@R.op\ndef twice(x: R.Tensor(S, D)):\n    return T.compute(S, lambda *i: x[*i] + x[*i])\n",
        "@R.op\ndef twice(x: R.Tensor(S, D)) -> R.Tensor(S, D):\n    return T.compute(S, lambda *i: x[*i] + x[*i])\n",
    ),
    "RLX0132": CodeInfo(
        "attribute before an argument",
        "In an operator's parameters tensors, shapes and scalars come before attributes.",
    ),
    "RLX0133": CodeInfo(
        "operator parameter without a kind",
        "A parameter's annotation is a pattern (`R.Tensor(S, D)`, `R.Shape(N)`, …) for a value, or a kind (`int`, "
        "`float`, `bool`, `str`, `dtype`, `tuple`) for an attribute.",
    ),
    "RLX0134": CodeInfo(
        "statement has no meaning while compiling",
        "Operators and compile-time functions consist of assignments, `if`, `for`, `assert`, `return` and inner "
        "functions.",
    ),
    "RLX0135": CodeInfo(
        "`T.compute` with a wrong lambda",
        "`T.compute(shape, lambda i, j: …)` takes a lambda with one index for each dimension; `*i` stands for any "
        "number.",
    ),
    "RLX0136": CodeInfo(
        "element is no scalar", "What a `T.compute` computes for one element must be a scalar expression."
    ),
    "RLX0137": CodeInfo(
        "no argument of a packed function",
        "What an operator's body passes to `R.call_packed` is a tensor or shape of the call, a number, a string, a dtype, "
        "or a tuple of such.",
    ),
    "RLX0138": CodeInfo(
        "no axis of a reduction",
        "`axis` of `T.sum`, `T.max`, … is what `T.reduce_axis(n)` gave, or a tuple of such.",
    ),
    "RLX0139": CodeInfo(
        "operator without a tensor", "The body of an operator returns a tensor that it computed, or a tuple of them."
    ),
    "RLX0140": CodeInfo(
        "wrong call of a TensorIR function in an operator",
        "`R.call_tir(kernel, (x, …), R.Tensor(S, D))` in an operator's body takes a `@T.prim_func` of that body, whose "
        "buffers have the shapes and dtypes of the tensors given and of the results.",
    ),
    "RLX0186": CodeInfo(
        "result other than stated",
        "What the body of an operator makes has the rank, the dimensions and the dtype that the annotation of its result "
        "states.",
    ),
    # 02: struct info and shapes
    "RLX0202": CodeInfo(
        "wrong number of dimensions",
        "The operator's signature asks for a tensor with another number of dimensions. The note shows the signature.",
    ),
    "RLX0203": CodeInfo(
        "dimensions that must be equal differ",
        "An operator's signature in stdlib names a dimension twice, so both arguments must agree in it: `S` in "
        "`cross_entropy_with_logits(predictions: R.Tensor(S, D), labels: R.Tensor(S, D))`. Here the two have different "
        "values. Both places are labelled with the value that the dimension has there.",
        "@R.function\n"
        'def main(x: R.Tensor((16, 10), "float32"), w: R.Tensor((16, 9), "float32")):\n'
        "    y = R.nn.cross_entropy_with_logits(x, w)\n"
        "    return y\n",
        "@R.function\n"
        'def main(x: R.Tensor((16, 10), "float32"), w: R.Tensor((16, 10), "float32")):\n'
        "    y = R.nn.cross_entropy_with_logits(x, w)\n"
        "    return y\n",
    ),
    "RLX0204": CodeInfo(
        "dtypes that must be equal differ",
        "The operator's signature wants one dtype for these tensors, or a particular one. Nothing is converted "
        "silently: say `R.astype(x, …)`.",
    ),
    "RLX0205": CodeInfo(
        "not a dtype",
        "A dtype is a name such as `float32`, `int8`, `bool`, `bfloat16`, or a vector of one such as `float32x4`.",
    ),
    "RLX0206": CodeInfo(
        "wrong kind of argument",
        "The operator takes a tensor, a shape, a scalar or an attribute here, and was given another.",
    ),
    "RLX0210": CodeInfo(
        "requirement of an operator does not hold",
        "An `assert` in the operator's definition failed for this call; its words say what is required.",
    ),
    "RLX0211": CodeInfo(
        "too little is known to compile an operator",
        "The kernel of an operator needs the rank and the dtype of its tensors, and some operators a dimension that decides "
        "the rank of their result. `R.match_cast` states them, and checks them when the program runs.",
    ),
    "RLX0212": CodeInfo(
        "operator without a gradient",
        "Differentiation needs a rule for every operator between what is differentiated and the result: a function under "
        '`@R.grad("name")`, beside the operator\'s definition or in a file of your own.',
    ),
    # 03: TIR and buffers
    "RLX0301": CodeInfo(
        "wrong number of indices",
        "A buffer is indexed with one index for each of its dimensions.",
    ),
    "RLX0302": CodeInfo("index is no integer", "An index of a buffer or tensor is an integer expression."),
    "RLX0306": CodeInfo(
        "`/` of integers",
        "In TensorIR `/` is for floating-point numbers. `//` divides integers and rounds down, `T.truncdiv` towards "
        "zero.",
    ),
    # 04: well-formedness
}
