"""Codes of the command line (70): what `relaxc` was asked to do, and not what is in the program."""

from relaxlang.base.codes.info import CodeInfo

COMMAND_LINE: dict[str, CodeInfo] = {
    "RLX7001": CodeInfo("unknown option", "`relaxc` has no option of that name. `relaxc --help` shows them all."),
    "RLX7002": CodeInfo(
        "wrong value of an option",
        "The option needs a value and has none, has one and takes none, or takes only certain words or numbers.",
    ),
    "RLX7003": CodeInfo(
        "options that do not go together",
        "Each option is fine by itself, but they ask for different things: one output file for several inputs, a program's "
        "output without running it, a binary file on the terminal.",
    ),
    "RLX7004": CodeInfo(
        "malformed argument text",
        "The text of `--arg` states a tensor as `f32[2,3]=1,2,3,4,5,6` (one number fills the whole tensor), a scalar as "
        "`i64=3` or `bool=true`, a shape as `shape[3,4]`, an array from a file as `@x.npy` or `@x.npz:name`. `w=` before "
        "it names the parameter; without it arguments are taken in order. `@x.npz` alone gives each parameter the array "
        "of its name.",
    ),
    "RLX7005": CodeInfo(
        "arguments do not fit the function",
        "The function that `--run` calls has a parameter without a value, or no parameter for a value. `--random SEED` "
        "fills what no `--arg` states.",
    ),
    "RLX7006": CodeInfo(
        "array file cannot be read",
        "The file is missing, is no `.npy` or `.npz` file, holds Python objects, or has no array of that name.",
    ),
    "RLX7007": CodeInfo(
        "result is not what was expected",
        "The program ran, and its result differs from the array that `--expect` names: in shape, in dtype, or by more "
        "than `--rtol` and `--atol` allow.",
    ),
    "RLX7008": CodeInfo(
        "nothing of that name",
        "`--describe` knows passes, pipelines, operators, TensorIR intrinsics and diagnostic codes; `--list=passes`, "
        "`--list=ops` and so on show them.",
    ),
    "RLX7009": CodeInfo(
        "diagnostics are not those that were announced",
        "With `--verify-diagnostics` a file says in comments what is wrong with it: `# error[RLX0203]: words` stands for an "
        "error of that code on its own line whose message has these words, `# error@+1[RLX0203]` for one on the next "
        "line. Something else was reported, or something announced was not.",
    ),
    "RLX7010": CodeInfo(
        "wrong setting",
        "`pyproject.toml` has under `[tool.relaxlang]`, or the environment in a variable `RELAXLANG_…`, a setting that "
        "`relaxc` does not know or a value that it cannot take. Settings are long options without their dashes, such as "
        "`target`, `pipeline`, `define`, `color`; what says what to do with a file can only be given on the command "
        "line.",
    ),
}
