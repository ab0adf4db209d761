"""Looking at the module, at every stage on its way to a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from relaxlang.analysis.uses import referenced_functions
from relaxlang.base.diagnostics import fail
from relaxlang.base.source import Source, Span
from relaxlang.ir import prim, relax
from relaxlang.ir.module import AnyFunc, IRModule, function_info
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import walk
from relaxlang.repl.command import Answer, Choice, Command, flags, function_name, prefix_choices, require_module, words
from relaxlang.repl.difference import cut
from relaxlang.repl.drawing import as_dot
from relaxlang.repl.scope import language_choices

if TYPE_CHECKING:
    from relaxlang.codegen.kernel import CompiledKernel
    from relaxlang.repl.session import Session
    from relaxlang.repl.stages import Stages


def list_functions(session: Session, argument: Span) -> Answer:
    """List the functions."""
    require_module(session)
    word = argument.text
    rows = [(n, _kind(f), _size(f), _signature(f)) for n, f in session.module.functions.items() if word in n]
    if not rows:
        fail("RLX7103", f"no function's name contains `{word}`", argument)
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    return Answer("\n".join(_row(row, widths) for row in rows))


def _row(row: tuple[str, str, str, str], widths: list[int]) -> str:
    name, kind, size, signature = row
    return f"{name:{widths[0]}}  {kind:{widths[1]}}  {size:>{widths[2]}}  {signature}"


def _kind(function: AnyFunc) -> str:
    if isinstance(function, PrimFunc):
        return "tir"
    return "packed" if isinstance(function, relax.ExternFunc) else "relax"


def _size(function: AnyFunc) -> str:
    if isinstance(function, relax.Function):
        count = sum(isinstance(n, relax.Binding) for n in walk(function))
        return f"{count} binding{'s' * (count != 1)}"
    return ""


def _signature(function: AnyFunc) -> str:
    if isinstance(function, relax.Function):
        params = ", ".join(f"{p.name}: {p.struct_info}" for p in function.params)
        text = f"({params}) -> {function.ret_struct_info}"
        if len(text) > 90:
            text = f"({', '.join(p.name for p in function.params)}) -> {function.ret_struct_info}"
        return text
    if isinstance(function, PrimFunc):
        parts = []
        for var in function.params:
            buffer = function.buffer_map.get(var)
            dims = ", ".join(dim_text(d) for d in buffer.shape) if buffer is not None else ""
            parts.append(f"{buffer.name}: {buffer.dtype}[{dims}]" if buffer is not None else f"{var.name}: {var.dtype}")
        return f"({', '.join(parts)})"
    return str(function_info(function))


def dim_text(dim: prim.PrimExpr) -> str:
    """A dimension without the type of a constant."""
    return str(dim.value) if isinstance(dim, prim.IntImm) else str(dim)


# --- stages -----------------------------------------------------------------------------------------------------------
def show(session: Session, argument: Span) -> Answer:
    """Show a stage."""
    _, rest = flags(argument, {})
    given = words(rest)
    stages = [w for w in given if w.text in STAGES and w.text not in session.module]
    named = [w for w in given if w not in stages]
    if len(named) > 1:
        fail("RLX7102", "one function is shown at a time", named[1], help=f"usage: `{SHOW_USAGE}`")
    if len(stages) > 2:
        fail("RLX7102", "two stages stand side by side, no more", stages[2], help=f"usage: `{SHOW_USAGE}`")
    require_module(session)
    shown = [STAGES[w.text](session, named[0] if named else None) for w in stages] or [
        _rlx(session, named[0] if named else None)
    ]
    if len(shown) == 1:
        return shown[0]
    return Answer("\n".join(beside(shown[0].text, shown[1].text, session.width)))


def beside(left: str, right: str, width: int) -> Iterator[str]:
    """Two texts next to each other in lines of at most `width` characters; what is longer is cut."""
    half = (width - 3) // 2
    for a, b in zip_longest(left.split("\n"), right.split("\n"), fillvalue=""):
        yield f"{cut(a, half)} │ {cut(b, half)}".rstrip()


def _rlx(session: Session, word: Span | None) -> Answer:
    if word is None:
        return Answer(session.module.script().rstrip("\n"), "rlx")
    return Answer(_script(session.module, [function_name(session, word)]), "rlx")


def _script(module: IRModule, names: Iterable[str]) -> str:
    """The text of some functions of a module."""
    functions = {name: module.functions[name] for name in names}
    return IRModule(functions, name=module.name).script().rstrip("\n")


def _reached(module: IRModule, word: Span | None, kind: type) -> list[str]:
    """The functions of a kind that the named one reaches, itself included; all of them without a name."""
    names = list(module.functions)
    if word is not None:
        if word.text not in module:
            fail("RLX7103", f"the module has no function `{word.text}` at this stage", word)
        found = referenced_functions(module, [word.text])
        names = [n for n in names if n in found]
    names = [n for n in names if isinstance(module.functions[n], kind)]
    if not names:
        fail("RLX7103", "there is no TensorIR function at this stage", word)
    return names


def _stages(session: Session, word: Span | None) -> Stages:
    """The stages of a function and what it calls; of the whole module without one, or for what only a pass makes."""
    return session.stages(word.text if word is not None and word.text in session.module else "")


def _tir(session: Session, word: Span | None) -> Answer:
    module = _stages(session, word).scheduled
    return Answer(_script(module, _reached(module, word, PrimFunc)), "rlx")


def _kernels(session: Session, word: Span | None) -> Iterator[CompiledKernel]:
    stages = _stages(session, word)
    names = _reached(stages.lowered, word, PrimFunc)
    return (stages.kernels[name] for name in names)


def _llvm(session: Session, word: Span | None) -> Answer:
    return Answer("\n".join(f"; {k.name}\n{k.llvm.rstrip()}" for k in _kernels(session, word)), "llvm")


def _asm(session: Session, word: Span | None) -> Answer:
    return Answer("\n".join(f"# {k.name}\n{k.assembly.rstrip()}" for k in _kernels(session, word)), "asm")


def _vm(session: Session, word: Span | None) -> Answer:
    text = _stages(session, word).program.executable.as_text().rstrip("\n")
    if word is None:
        return Answer(text, "vm")
    for block in text.split("\n\n"):
        if block.startswith((f"@{word.text}(", f"@{word.text} ")):
            return Answer(block, "vm")
    fail("RLX7103", f"the program has no function `{word.text}`", word)


def _c(session: Session, word: Span | None) -> Answer:
    from relaxlang.codegen.c import c_source

    module = _stages(session, word).scheduled
    kernels = {name: module.functions[name] for name in _reached(module, word, PrimFunc)}
    return Answer(c_source({n: f for n, f in kernels.items() if isinstance(f, PrimFunc)}).rstrip("\n"), "c")


def _aot(session: Session, word: Span | None) -> Answer:
    from relaxlang import driver
    from relaxlang.codegen.aot.library import AotExecutorFactory

    module = session.stages(relax_function(session, word)).module
    program = driver.build(module, session.state.target or None, executor="aot", pipeline=session.state.pipeline)
    assert isinstance(program, AotExecutorFactory)  # that is what the executor makes
    return Answer(program.get_source().rstrip("\n"), "c")


def _dot(session: Session, word: Span | None) -> Answer:
    name = relax_function(session, word)
    function = session.module.functions[name]
    assert isinstance(function, relax.Function)  # `relax_function` sees to it
    return Answer(as_dot(function, name), "dot")


def _memory(session: Session, word: Span | None) -> Answer:
    from relaxlang.repl.commands.measure import memory

    return memory(session, word if word is not None else Span(Source("<input>", ""), 0, 0))


def relax_function(session: Session, word: Span | None) -> str:
    """The Relax function that a word means; without one, `main` or the only one. RLX7102 when that is not clear."""
    if word is not None:
        name = function_name(session, word)
        if not isinstance(session.module.functions[name], relax.Function):
            fail("RLX7102", f"`{name}` is no Relax function", word, help="`:list` shows what is")
        return name
    require_module(session)
    names = [n for n, _ in session.module.relax_functions()]
    if "main" in names or len(names) == 1:
        return "main" if "main" in names else names[0]
    listed = f"there are {', '.join(f'`{n}`' for n in names[:12])}" if names else "the module has no Relax function"
    fail("RLX7102", "it is not clear which function is meant", word, help=listed)


STAGES: dict[str, Callable[[Session, Span | None], Answer]] = {
    "rlx": _rlx, "tir": _tir, "llvm": _llvm, "asm": _asm, "vm": _vm, "c": _c, "aot": _aot, "dot": _dot,
    "memory": _memory,
}  # fmt: skip
"""What `:show` can show."""

SHOW_USAGE = f":show [{'|'.join(STAGES)}] [STAGE] [FN]"


# --- types ------------------------------------------------------------------------------------------------------------
def type_of(session: Session, argument: Span) -> Answer:
    """Show struct info."""
    if not argument.text:
        fail("RLX7102", "an argument is missing", argument, help="usage: `:type EXPR`")
    bound = bound_variables(session.module, argument.text)
    if bound and argument.text not in session.state.names and argument.text not in session.module:
        return Answer("\n".join(f"{argument.text}: {node.var.struct_info}   in {name}" for name, node in bound))
    calculator = session.calculator()
    return Answer(calculator.kind(calculator.read(argument)), "rlx")


def bound_variables(module: IRModule, name: str) -> list[tuple[str, relax.Binding]]:
    """The bindings of variables of a name, each with the function that it stands in."""
    return [
        (function, node)
        for function, f in module.relax_functions()
        for node in walk(f)
        if isinstance(node, relax.Binding) and node.var.name == name
    ]


def function_choices(session: Session, text: str) -> Iterable[Choice]:
    """Functions of the module."""
    return prefix_choices(text, [(name, _kind(f)) for name, f in session.module.functions.items()])


def show_choices(session: Session, text: str) -> Iterable[Choice]:
    """Stages and functions."""
    stages = [(name, "") for name in STAGES] if " " not in text else []
    return [*prefix_choices(text, stages), *function_choices(session, text)]


COMMANDS: tuple[Command, ...] = (
    Command("list", ":list [WORD]", "list the functions of the module", list_functions, function_choices),
    Command(
        "show",
        SHOW_USAGE,
        "print the module, or a later stage of it\n"
        "rlx: the module as it stands; tir: its kernels after the pipeline's passes; llvm: LLVM IR before LLVM's\n"
        "passes; asm: assembly; vm: bytecode; c: the kernels in C; aot: the whole program in C, as the executor `aot`\n"
        "has it; dot: the graph for Graphviz; memory: as `:mem`. With a function: that one, and the kernels that it\n"
        "calls. With two stages, both side by side.",
        show,
        show_choices,
    ),
    Command(
        "type",
        ":type EXPR",
        "the struct info of an expression, a function, or a variable of the module",
        type_of,
        language_choices,
    ),
)
