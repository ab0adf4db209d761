"""The rules of the house that no linter knows: layers, sizes, names, documentation, start-up, forbidden words.

Everything is read from the source files, so that a module with a missing optional dependency is checked too.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from relaxlang.base.codes import CODES

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "relaxlang"
FILES = sorted(PACKAGE.rglob("*.py"))

FILE_LINES = 500
FUNCTION_LINES = 60
TYPE_IGNORES = 45
IMPORT_SECONDS = 0.25

GRAMMAR_ACTIONS = (PACKAGE / "syntax" / "actions.py",)
"""Files whose methods are named after the grammar's rules, which document them."""

STRUCTURAL = frozenset({
    # Calls that are part of the IR and not operators of the library: who calls what, and how.
    "call_tir", "call_tir_inplace", "call_tir_with_grad", "call_tir_dyn", "call_packed", "call_pure_packed",
    "call_inplace_packed", "call_dps_packed", "call_builtin_with_ctx", "invoke_closure", "invoke_pure_closure",
    "make_closure", "null_value", "print", "assert_op",
    # Shapes as values and explicit memory, which the lowering passes introduce.
    "shape_of", "tensor_to_shape", "shape_to_tensor", "memory.alloc_storage", "memory.alloc_tensor",
    "memory.kill_storage", "memory.kill_tensor", "builtin.alloc_tensor", "builtin.stop_lift_params",
    "vm.alloc_storage", "vm.alloc_tensor", "vm.kill_object", "vm.call_tir_dyn",
    # Device placement, and how a tensor is spread over devices.
    "to_vdevice", "hint_on_device", "dist.annotate_sharding",
    # What the attributes of a tensor (`x.strides[i]`) stand for.
    "inspect.tensor_stride_i",
})  # fmt: skip
"""Names that Python code may mention although stdlib may define them."""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def where(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def nothing(found: list[str]) -> None:
    """Fail when something was found, with a line for each."""
    assert not found, "\n" + "\n".join(found)


def functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


# -- layers


def layers() -> dict[str, int]:
    """The height of each top-level module, from import-linter's contract; equal for modules that share a layer."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    rows = next(c for c in settings["contracts"] if c["type"] == "layers")["layers"]
    return {name.strip(" ()"): -i for i, row in enumerate(rows) for name in re.split("[:|]", row)}


def imported(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Every module that a file imports, at whatever depth, `importlib.import_module("…")` included."""
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parts, base]).rstrip(".")
            yield from ((f"{base}.{alias.name}", node) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            if node.args and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value), node


def test_imports_point_downwards() -> None:
    height = layers()
    wrong = []
    for path in FILES:
        own = module_name(path).split(".")[1:2]
        if not own or own[0] == "__main__":
            continue
        for target, node in imported(path):
            parts = target.split(".")
            if parts[0] != "relaxlang":
                continue
            if len(parts) == 1 or parts[1] not in height:
                # The package itself re-exports everything, so only the top layer may lean on it.
                if height[own[0]] < 0:
                    wrong.append(f"{where(path, node)} imports {target}")
            elif height[parts[1]] > height[own[0]]:
                wrong.append(f"{where(path, node)} imports {target}")
    nothing(wrong)


def test_runtime_stands_on_base_alone() -> None:
    targets = {
        t.split(".")[1] for p in (PACKAGE / "runtime").rglob("*.py") for t, _ in imported(p) if "relaxlang." in t
    }
    assert targets <= {"runtime", "base"}


@pytest.mark.parametrize(("library", "most", "folder"), [("prompt_toolkit", 1, "repl"), ("llvmlite", 99, "codegen")])
def test_libraries_stay_in_their_place(library: str, most: int, folder: str) -> None:
    users = [p for p in FILES if any(target.split(".")[0] == library for target, _ in imported(p))]
    assert len(users) <= most and all(p.parent == PACKAGE / folder for p in users), users


def test_the_environment_is_read_in_base() -> None:
    readers = [p.name for p in FILES if re.search(r"\bos\.(environ|getenv)\b", p.read_text(encoding="utf-8"))]
    assert set(readers) <= {"config.py", "colors.py"}


# -- sizes


def test_files_stay_short() -> None:
    lengths = [(p.relative_to(ROOT), len(p.read_text(encoding="utf-8").splitlines())) for p in FILES]
    long = [f"{path}: {lines} lines" for path, lines in lengths if lines > FILE_LINES]
    nothing(long)


def test_functions_stay_short() -> None:
    long = []
    for path in FILES:
        for function in functions(tree(path)):
            lines = (function.end_lineno or 0) - function.lineno + 1
            docstring = function.body[0] if ast.get_docstring(function) else None
            if docstring is not None:
                lines -= (docstring.end_lineno or 0) - docstring.lineno + 1
            if lines > FUNCTION_LINES:
                long.append(f"{where(path, function)} {function.name}: {lines} lines")
    nothing(long)


# -- names


def snake(class_name: str) -> str:
    """`FuseOps` is fuse_ops, `CallTIRRewrite` is call_tir_rewrite."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z]|[A-Z]{2})|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()


def test_pass_names_files_and_classes_correspond() -> None:
    """`PASSES` maps `fuse-ops` to `.relax.fuse_ops:FuseOps`; every file of a pass is in it."""
    from relaxlang import passes

    table: dict[str, str] = getattr(passes, "PASSES", {})
    listed = set()
    for name, place in table.items():
        module, _, class_name = place.partition(":")
        path = PACKAGE.joinpath("passes", *module.removeprefix("relaxlang.passes").strip(".").split(".")).with_suffix(
            ".py"
        )
        assert path.is_file(), f"`{name}` names {place}, which does not exist"
        assert path.stem == snake(class_name) == name.replace("-", "_"), f"{name}, {path.name}, {class_name}"
        assert class_name in {n.name for n in tree(path).body if isinstance(n, ast.ClassDef)}, place
        listed.add(path)
    for path in FILES:
        if path.parent.parent == PACKAGE / "passes" and path not in listed:
            classes = [n for n in tree(path).body if isinstance(n, ast.ClassDef) and snake(n.name) == path.stem]
            assert not classes, f"{path.relative_to(ROOT)} holds a pass that PASSES does not list"


def operators() -> set[str]:
    """The operators that stdlib defines, by the name after `R.`: `@R.op` or `@R.op("nn.relu")` above a `def`."""
    found = set()
    pattern = re.compile(r"""^@R\.op(?:\((?:name=)?["']([\w.]+)["'].*?\))?[^\n]*\n(?:@[^\n]*\n)*def (\w+)""", re.M)
    for path in sorted((ROOT / "stdlib").rglob("*.rlx")):
        for given, plain in pattern.findall(path.read_text(encoding="utf-8")):
            found.add(given or plain)
    return found


def test_no_operator_is_known_by_name() -> None:
    """Parser, operator table, legalisation, lowering and code generation know operators by what their definitions say,
    not by name. (Graph rewrites such as folding a batch norm are about certain operators, back ends take certain
    operators, migration is about names.)

    A bare word such as "max" or "exp" may also be a scalar intrinsic, so only names that are nobody else's count bare;
    with a namespace (`R.exp`, `relax.exp`, `nn.relu`) every name counts.
    """
    from relaxlang.ir.intrinsics import INTRINSICS

    names = operators() - STRUCTURAL
    others = INTRINSICS.keys() | set(SCALAR_WORDS)
    qualified = {f"{space}.{name}" for space in ("R", "relax") for name in names}
    forbidden = qualified | {n for n in names if "." in n} | (names - others)
    found = []
    rewrites = {p for p in (PACKAGE / "passes" / "relax").glob("*.py") if p.stem != "legalize_ops"}
    by_name = rewrites | set((PACKAGE / "syntax" / "migrate").glob("*.py"))
    by_name |= set((PACKAGE / "codegen" / "back_ends").glob("*.py"))
    for folder in ("syntax", "ops", "builder", "analysis", "passes", "codegen"):
        for path in sorted(set((PACKAGE / folder).rglob("*.py")) - by_name):
            for node in ast.walk(tree(path)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in forbidden:
                    found.append(f"{where(path, node)}: {node.value!r}")
    nothing(found)


SCALAR_WORDS = (
    "add", "subtract", "multiply", "divide", "floor_divide", "mod", "floor_mod", "power", "negative", "maximum",
    "minimum", "max", "min", "sum", "prod", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor", "logical_not", "left_shift", "right_shift", "where", "full", "shape",
    "range", "repeat", "split", "size", "take", "print", "astype",
)  # fmt: skip
"""Operators' names that are also words of the scalar language, of loops or of schedules, and mean that there."""


# -- documentation


def test_modules_and_chapters_are_documented() -> None:
    missing = [str(p.relative_to(ROOT)) for p in FILES if not ast.get_docstring(tree(p))]
    chapters = [p for p in FILES if p.name == "__init__.py" and p.parent != PACKAGE]
    missing += [f"{p.parent.name}: no chapter" for p in chapters if len(ast.get_docstring(tree(p)) or "") < 80]
    nothing(missing)


def documented(cls: ast.ClassDef, method: str, classes: dict[str, list[ast.ClassDef]], seen: frozenset[str]) -> bool:
    """Whether `method` has a docstring in the class or in one that it inherits from (by the bases' last names)."""
    if any(f.name == method and ast.get_docstring(f) for f in cls.body if isinstance(f, ast.FunctionDef)):
        return True
    bases = {re.split(r"[.\[]", ast.unparse(b).partition("[")[0])[-1] for b in cls.bases} - seen
    return any(documented(base, method, classes, seen | bases) for b in bases for base in classes.get(b, ()))


def test_public_symbols_are_documented() -> None:
    everywhere = [(p, n) for p in FILES for n in tree(p).body if isinstance(n, ast.ClassDef)]
    classes: dict[str, list[ast.ClassDef]] = {}
    for _, cls in everywhere:
        classes.setdefault(cls.name, []).append(cls)
    missing = []
    for path in FILES:
        for function in tree(path).body:
            if isinstance(function, ast.FunctionDef) and function.name[0] != "_" and not ast.get_docstring(function):
                if "overload" not in {ast.unparse(d).rpartition(".")[2] for d in function.decorator_list}:
                    missing.append(f"{where(path, function)} {function.name}")
    for path, cls in everywhere:
        if cls.name.startswith("_") or path in GRAMMAR_ACTIONS:
            continue
        if not ast.get_docstring(cls):
            missing.append(f"{where(path, cls)} {cls.name}")
        for method in cls.body:
            if not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
                continue
            marks = {ast.unparse(d).rpartition(".")[2] for d in method.decorator_list}
            if not marks & {"overload", "setter", "deleter"} and not documented(cls, method.name, classes, frozenset()):
                missing.append(f"{where(path, method)} {cls.name}.{method.name}")
    nothing(missing)


def test_every_diagnostic_code_is_in_the_table() -> None:
    texts = [*FILES, *ROOT.glob("stdlib/**/*.rlx"), *ROOT.glob("grammar/*.lark"), *ROOT.glob("tests/rlx/**/*.rlx")]
    mentioned = {code: p for p in texts for code in re.findall(r"RLX\d{4}", p.read_text(encoding="utf-8"))}
    nothing([f"{code} in {p.relative_to(ROOT)}" for code, p in sorted(mentioned.items()) if code not in CODES])


# -- start-up


def test_import_is_cheap() -> None:
    script = "import relaxlang, sys, time; print(time.process_time(), *sys.modules)"
    seconds = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        spent, *modules = done.stdout.split()
        seconds.append(float(spent))
        assert not {"llvmlite", "prompt_toolkit"} & set(modules)
    assert min(seconds) < IMPORT_SECONDS


# -- what must not be there


def test_no_error_is_swallowed() -> None:
    """No bare or blanket `except`, unless it raises again (to undo something first)."""
    wrong = []
    for path in [*FILES, *ROOT.glob("tests/**/*.py"), *ROOT.glob("examples/**/*.py")]:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ExceptHandler):
                caught = {ast.unparse(t) for t in getattr(node.type, "elts", [node.type]) if t} or {"everything"}
                last = node.body[-1]
                again = isinstance(last, ast.Raise) and last.exc is None
                if caught & {"everything", "Exception", "BaseException"} and not again:
                    wrong.append(where(path, node))
    nothing(wrong)


def test_type_ignores_are_few_and_say_what_they_ignore() -> None:
    lines = [line for p in FILES for line in p.read_text(encoding="utf-8").splitlines() if "type: ignore" in line]
    assert [line for line in lines if not re.search(r"type: ignore\[[\w, -]+\]", line)] == []
    assert len(lines) <= TYPE_IGNORES, "find the type instead of ignoring it"


def test_no_file_speaks_of_a_place_outside_the_repository() -> None:
    folders = ("relaxlang", "grammar", "stdlib", "tests", "examples", ".ci")
    paths = [p for f in folders for p in (ROOT / f).rglob("*") if "__pycache__" not in p.parts and p.suffix != ".npz"]
    paths += [p for p in ROOT.iterdir() if p.name != "LICENSE"]
    roots = "work home root tmp opt Users mnt srv var".split()
    foreign = re.compile(rf"(?<![\w.}}/$])/(?:{'|'.join(roots)})/|(?<!\w)\.\./shar" + r"ed\b|(?<![\w./])/wor" + r"k\b")
    found = []
    for path in paths:
        if path.is_file() and not path.name.startswith(".coverage"):
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                if foreign.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    nothing(found)
