"""Codes of the REPL (71): what was asked of the prompt, and not what is in a program."""

from relaxlang.base.codes.info import CodeInfo

PROMPT: dict[str, CodeInfo] = {
    "RLX7101": CodeInfo(
        "unknown command",
        "A line that begins with a colon is a command of `relax-repl`; any beginning that only one command has will "
        "do. `:help` lists them. Everything else is the language itself: definitions, assignments, expressions.",
    ),
    "RLX7102": CodeInfo(
        "wrong argument of a command",
        "The command lacks an argument, has one too many, or takes only certain words or numbers. `:help COMMAND` "
        "shows how it is written.",
    ),
    "RLX7103": CodeInfo(
        "nothing to do that with",
        "The command needs something that is not there: a module, a step to go back to, a program that has stopped "
        "at a breakpoint, a file that the module came from.",
    ),
    "RLX7104": CodeInfo(
        "statement that cannot stand at the prompt",
        "The prompt takes definitions (`@R.function`, `@T.prim_func`, `@I.ir_module`), assignments of one name "
        "(`x = rand(2, 3)`) and expressions. Other statements stand in functions.",
    ),
    "RLX7105": CodeInfo(
        "value with which nothing can be computed here",
        "At the prompt tensors, numbers, shapes, texts and tuples of them are values. Files of arrays give tensors by "
        "`load`; a function is a value only where it is called.",
    ),
    "RLX7106": CodeInfo(
        "results differ",
        "Compiled code and the reference interpreter gave different results for the same arguments, by more than "
        "rounding explains. That is a fault of a pass or of relaxlang, never of the program.",
    ),
}
