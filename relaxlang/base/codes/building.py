"""Codes of programs that are built or rewritten by Python code: 045x."""

from relaxlang.base.codes.info import CodeInfo

BUILDING: dict[str, CodeInfo] = {
    "RLX0450": CodeInfo(
        "a builder used out of order",
        "`BlockBuilder.emit` and its like need an open `with bb.function(…)`; outputs of a dataflow block an open "
        "`with bb.dataflow()`; a function ends with one `emit_func_output`, after its last dataflow block.",
    ),
    "RLX0451": CodeInfo(
        "a value that a builder can't take",
        "Emitted are expressions of Relax, and Python values that stand for one: numbers, strings, numpy arrays, "
        "tuples. A tensor computation takes tensors of known rank and element type.",
    ),
    "RLX0452": CodeInfo(
        "a rewriting that does not end",
        "What a rewriting makes matches its own pattern again, each time. Let the pattern exclude it, or rewrite once.",
    ),
    "RLX0453": CodeInfo(
        "not a rewriting rule",
        "A rule is a class under `@R.rewriter` with two functions, `pattern` and `replacement`, that take the same "
        "number of parameters and give the same number of results. A pattern computes its results from all its "
        "parameters, by calls of operators and functions without branches.",
    ),
    "RLX0454": CodeInfo(
        "an argument of the wrong kind",
        "A function of the Python API was given something else than its signature says: the message names the "
        "parameter, what it takes and what was given. `help(function)` shows the signature.",
    ),
}
