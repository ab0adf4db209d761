"""Codes of what the compiler and the run-time system report: 10 schedules, 31 passes, 50 code generation and targets,
60 run time, 90 faults of relaxlang itself."""

from relaxlang.base.codes.info import CodeInfo

COMPILER: dict[str, CodeInfo] = {
    # 10: schedules
    # 31: passes
    # 50: code generation and targets
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
    # 90: faults of relaxlang itself
    "RLX9001": CodeInfo(
        "internal error",
        "relaxlang met a state that it holds to be impossible. The fault is in relaxlang and not in the program: "
        "please report it, with the program and the command that led to it.",
    ),
}
