"""Programs on disk: what is found again, what is not, and what is no longer as it was."""

import copy
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import relaxlang
from relaxlang.base import fingerprint, store
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen import build_cache
from relaxlang.passes.base import PassContext, PassTiming
from relaxlang.syntax.side_file import side_file_bytes

TEXT = """
@R.function
def main(x: R.Tensor(("n", 64, 64), "float32")) -> R.Tensor(("n", 64, 64), "float32"):
    w = R.const(I.array("{digest}", "float32", (64, 64)))
    with R.dataflow():
        y = R.nn.relu(R.add(x, w))
        R.output(y)
    return y
"""
WEIGHT = np.random.default_rng(0).standard_normal((64, 64), dtype="float32")
X = np.random.default_rng(1).standard_normal((3, 64, 64), dtype="float32")
EXPECTED = np.maximum(X + WEIGHT, 0)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder; everything is worth keeping, and nothing has been added to the compiler."""
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("RELAXLANG_CACHE", raising=False)
    monkeypatch.delenv("RELAXLANG_CHECK", raising=False)
    monkeypatch.setattr(build_cache, "WORTHWHILE", 0.0)
    monkeypatch.setattr(fingerprint, "_additions", set())
    return tmp_path / "cache" / "builds"


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A file with a large constant beside it, written some time ago."""
    path = tmp_path / "model.rlx"
    write_model(path, WEIGHT)
    return str(path)


def write_model(path: Path, weight: np.ndarray) -> None:
    from relaxlang.syntax.scalars import array_digest

    digest = array_digest(weight)
    path.write_text(TEXT.format(digest=digest))
    side = path.with_suffix(".weights.npz")
    side.write_bytes(side_file_bytes({digest: weight}))
    settle(side)


def settle(side: Path) -> None:
    """Let so much time pass that a change of the file shows in its times."""
    while time.time_ns() - side.stat().st_ctime_ns < 150_000_000:
        time.sleep(0.01)


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.entry"))


def data_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.data"))


def build(path: str, **options):
    return relaxlang.build(relaxlang.load(path), **options)


def check(built) -> None:
    np.testing.assert_array_equal(built["main"](X), EXPECTED)


def is_found(path: str, **options) -> bool:
    """Whether the program comes from the cache, right in any case."""
    mod = relaxlang.load(path)
    built = relaxlang.build(mod, **options)
    check(built)
    return not mod.is_read


def test_the_second_build_reads_nothing_and_gives_the_same(model: str, folder: Path) -> None:
    read = relaxlang.load(model)
    first = relaxlang.build(read)
    check(first)
    assert read.is_read and len(entries(folder)) == len(data_files(folder)) == 1
    mod = relaxlang.load(model)
    second = relaxlang.build(mod)
    check(second)
    assert not mod.is_read and second.executable == first.executable
    assert second.exec_mode == "native" and second.function_names == first.function_names
    assert relaxlang.structural_equal(second.ir_module, first.ir_module)
    assert relaxlang.structural_equal(mod, read)


def test_constants_are_mapped(model: str) -> None:
    build(model)
    (constant,) = (c for c in build(model).executable.constants if isinstance(c, np.ndarray) and c.ndim)
    assert not constant.flags.writeable and not constant.flags.owndata
    assert constant.dtype is np.dtype("float32") and constant._address % 64 == 0
    with pytest.raises(ValueError):
        constant.flags.writeable = True


def test_a_module_that_is_not_read_behaves_like_one_that_is(model: str) -> None:
    first = relaxlang.load(model)
    relaxlang.build(first)
    for use in (
        lambda mod: list(mod),
        lambda mod: mod.script(),
        lambda mod: str(mod["main"]),
        lambda mod: mod.with_name("other").script(),
        lambda mod: copy.copy(mod).script(),
        lambda mod: relaxlang.structural_hash(mod),
        lambda mod: relaxlang.interpret(mod, "main", X).tolist(),
    ):
        mod = relaxlang.load(model)
        assert not mod.is_read
        assert use(mod) == use(first)
    mod = relaxlang.load(model)
    with pytest.raises(AttributeError):
        _ = mod.no_such_thing
    assert isinstance(mod, relaxlang.IRModule) and not mod.is_read


@pytest.mark.parametrize(
    "options",
    [
        {"target": "llvm -mcpu=x86-64-v2"},
        {"pipeline": "minimum"},
        {"executor": {"kind": "vm", "exec-mode": "bytecode"}},
        {"mod_name": "other"},
        {"pass_context": PassContext(disabled=["fuse-ops"])},
        {"pass_context": PassContext(opt_level=1)},
        {"params": {"x": X}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_everything_that_is_asked_for_counts(model: str, folder: Path, options: dict) -> None:
    build(model)
    built = build(model, **options)
    assert len(entries(folder)) == 2
    again = relaxlang.load(model)
    found = relaxlang.build(again, **options)
    assert not again.is_read and found.exec_mode == built.exec_mode
    arguments = () if "params" in options else (X,)
    np.testing.assert_array_equal(found["main"](*arguments), EXPECTED)


def test_other_parameters_are_another_program(model: str, folder: Path) -> None:
    for scale in (1, 2, 1):
        given = X * np.float32(scale)
        np.testing.assert_array_equal(build(model, params={"x": given})["main"](), np.maximum(given + WEIGHT, 0))
    assert len(entries(folder)) == 2


def test_graph_executors_are_kept_and_libraries_for_c_are_not(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "static.rlx"
    write_model(path, WEIGHT)
    path.write_text(path.read_text().replace('"n"', "3"))
    for executor in ("graph", {"kind": "graph", "link-params": True}):
        first = build(str(path), executor=executor)
        mod = relaxlang.load(path)
        found = relaxlang.build(mod, executor=executor)
        check(found)
        assert not mod.is_read and found.linked == first.linked
        assert (
            found.get_graph_json() == first.get_graph_json() and found.get_params().keys() == first.get_params().keys()
        )
    count = len(entries(folder))
    check(build(str(path), executor="aot"))
    assert len(entries(folder)) == count == 2


def test_values_of_compile_time_parameters_count(tmp_path: Path) -> None:
    path = tmp_path / "scaled.rlx"
    path.write_text(
        "N = I.param(int)\n\n\n@R.function\ndef main(x: R.Tensor((3,), 'float32')):\n"
        "    return x * R.const(float(N), 'float32')\n"
    )
    ones = np.ones(3, "float32")
    for n in (2, 3, 2, 3):
        built = relaxlang.build(relaxlang.load(path, values={"N": n}))
        np.testing.assert_array_equal(built["main"](ones), ones * n)
    assert not relaxlang.load(path, values={"N": 2}).is_read
    assert relaxlang.load(path, values={"N": 4}).is_read


def test_another_text_is_another_program(model: str) -> None:
    build(model)
    text = Path(model).read_text()
    Path(model).write_text(text.replace("R.nn.relu(R.add(x, w))", "R.add(x, w)"))
    np.testing.assert_array_equal(build(model)["main"](X), X + WEIGHT)
    Path(model).write_text(text)
    assert is_found(model)


def test_another_version_of_relaxlang_finds_nothing(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build(model)
    monkeypatch.setattr("relaxlang.syntax.origin.fingerprint", lambda: "another")
    assert not is_found(model)


def test_a_weight_that_was_changed_is_an_error_as_without_a_cache(model: str) -> None:
    build(model)
    side = Path(model).with_suffix(".weights.npz")
    side.write_bytes(side.read_bytes().replace(WEIGHT.tobytes(), (WEIGHT + 1).tobytes()))
    with pytest.raises(DiagnosticError, match="RLX"):
        build(model)
    side.unlink()
    with pytest.raises(DiagnosticError, match="RLX"):
        build(model)


def test_a_side_file_that_was_written_again_is_looked_at_once(model: str) -> None:
    build(model)
    side = Path(model).with_suffix(".weights.npz")
    side.write_bytes(side.read_bytes())
    settle(side)
    assert relaxlang.load(model).is_read
    check(build(model))
    assert is_found(model)


def test_a_side_file_that_was_just_written_is_not_trusted(model: str) -> None:
    side = Path(model).with_suffix(".weights.npz")
    os.utime(side, ns=(time.time_ns(), time.time_ns() + 10**12))
    check(build(model))
    assert relaxlang.load(model).is_read
    check(build(model))


def include(tmp_path: Path) -> tuple[Path, Path]:
    inner, outer = tmp_path / "part" / "inner.rlx", tmp_path / "outer.rlx"
    inner.parent.mkdir()
    inner.write_text(
        "@T.prim_func\ndef one(A: T.Buffer((3,), 'float32'), B: T.Buffer((3,), 'float32')):\n"
        "    for i in range(3):\n        with T.block('b'):\n            v = T.axis.spatial(3, i)\n"
        "            B[v] = A[v] + T.float32(1)\n"
    )
    outer.write_text(
        "part = I.include('part/inner.rlx')\n\n\n@R.function\ndef main(x: R.Tensor((3,), 'float32')):\n"
        "    return R.call_tir(part.one, (x,), out_sinfo=R.Tensor((3,), 'float32'))\n"
    )
    return inner, outer


def test_included_files_count(tmp_path: Path) -> None:
    inner, outer = include(tmp_path)
    zeros = np.zeros(3, "float32")
    assert build(str(outer))["main"](zeros).tolist() == [1, 1, 1]
    mod = relaxlang.load(outer)
    assert relaxlang.build(mod)["main"](zeros).tolist() == [1, 1, 1] and not mod.is_read
    inner.write_text(inner.read_text().replace("T.float32(1)", "T.float32(2)"))
    with pytest.raises(DiagnosticError, match="changed since"):
        mod.script()
    assert build(str(outer))["main"](zeros).tolist() == [2, 2, 2]
    inner.unlink()
    with pytest.raises(DiagnosticError, match="no file"):
        relaxlang.load(outer)


def test_a_file_that_comes_before_an_included_one_counts(tmp_path: Path) -> None:
    inner, outer = include(tmp_path)
    library = tmp_path / "library"
    (library / "part").mkdir(parents=True)
    there = library / "part" / "inner.rlx"
    there.write_text(inner.read_text().replace("T.float32(1)", "T.float32(7)"))
    here = inner.rename(tmp_path / "away.rlx")
    zeros = np.zeros(3, "float32")

    def run() -> list[float]:
        return relaxlang.build(relaxlang.load(outer, roots=[str(library)]))["main"](zeros).tolist()

    assert run() == run() == [7, 7, 7]
    here.rename(inner)
    assert run() == [1, 1, 1]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "a bit": lambda data: data[:-9] + bytes([data[-9] ^ 4]) + data[-8:],
    "longer": lambda data: data + b"x",
    "foreign": lambda data: b"something else altogether",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("which", [entries, data_files])
def test_damage_is_found_out_and_mended(model: str, folder: Path, which, damage: Callable[[bytes], bytes]) -> None:
    build(model)
    (path,) = which(folder)
    times = path.stat()
    path.write_bytes(damage(path.read_bytes()))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as if nobody had touched it
    assert not is_found(model)
    assert is_found(model)
    assert len(entries(folder)) == len(data_files(folder)) == 1


def test_damage_of_what_is_known_of_a_text(model: str, folder: Path) -> None:
    build(model)
    for content in (b"", b"[]", b'{"a": 1}', store.key_of("x").encode()):
        (path,) = entries(folder.parent / "texts")
        path.write_bytes(content)
        assert relaxlang.load(model).is_read
        store.TEXTS.write(path.name.removesuffix(".entry"), content)
        assert relaxlang.load(model).is_read
        check(build(model))
    assert is_found(model)


def test_data_that_is_gone_is_written_again(model: str, folder: Path) -> None:
    build(model)
    data_files(folder)[0].unlink()
    assert not is_found(model) and is_found(model)


def test_a_module_that_was_changed_is_built_as_it_is(model: str) -> None:
    build(model)
    other = relaxlang.parse("@R.function\ndef main(x: R.Tensor((3, 64, 64), 'float32')):\n    return R.negative(x)\n")
    changed = relaxlang.load(model)
    changed.functions["main"] = other["main"]
    np.testing.assert_array_equal(relaxlang.build(changed)["main"](X), -X)
    renewed = relaxlang.load(model).with_function("main", other["main"])
    np.testing.assert_array_equal(relaxlang.build(renewed)["main"](X), -X)
    bare = relaxlang.load(model)
    bare.functions = {"main": other["main"]}
    np.testing.assert_array_equal(relaxlang.build(bare)["main"](X), -X)
    assert is_found(model)


def test_warnings_are_given_each_time(tmp_path: Path) -> None:
    path = tmp_path / "warned.rlx"
    path.write_text(
        "@R.function\ndef main(x: R.Tensor((3,), 'float32')):\n    unused = R.negative(x)\n    return x\n\n\n"
        "@T.prim_func(private=True)\ndef f(A: T.Buffer((3,), 'float32')):\n    for i in range(3):\n"
        "        A[i + 5] = T.float32(0)\n"
    )
    told = []
    for _ in range(2):
        warnings: list = []
        try:
            relaxlang.build(relaxlang.load(path, warnings=warnings.append))
        except DiagnosticError as fault:
            warnings += fault.diagnostics
        told.append([d.code for d in warnings])
    assert told[0] == told[1] and told[0]


def test_what_has_code_of_the_program_is_not_kept(model: str, folder: Path) -> None:
    timing = PassTiming()
    check(build(model, pass_context=PassContext(instruments=[timing])))
    assert timing.rows and not entries(folder)
    check(build(model, pipeline="legalize-ops,default"))
    assert not entries(folder)
    with pytest.deprecated_call():
        check(build(model, target="llvm -executor=vm"))
    assert not entries(folder)
    build(model)
    timing = PassTiming()
    check(build(model, pass_context=PassContext(instruments=[timing])))
    assert timing.rows
    fingerprint.note_addition("a pass of one's own")
    assert not is_found(model)


def test_quick_builds_are_not_kept(model: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_cache, "WORTHWHILE", 1e9)
    check(build(model))
    assert not entries(folder)


@pytest.mark.parametrize("name, value", [("RELAXLANG_CACHE", "0"), ("RELAXLANG_CHECK", "1")])
def test_switches(model: str, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    check(build(model))
    assert not entries(folder) and not is_found(model)


def test_a_folder_that_cannot_be_written_to(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path / "file"))
    check(build(model))
    assert not is_found(model)


def test_data_that_is_too_big_for_the_folder_is_not_kept(model: str, folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(store.BUILDS, "limit", 4 * WEIGHT.nbytes - 4)
    check(build(model))
    assert not entries(folder) and not data_files(folder)


def test_entries_go_with_their_data(model: str, folder: Path) -> None:
    for k, name in enumerate(("a", "b", "c")):
        build(model, mod_name=name)
        newest = max(entries(folder), key=lambda p: p.stat().st_ctime_ns)
        os.utime(newest, (k, k))
    size = sum(p.stat().st_size for p in (*entries(folder), *data_files(folder)))
    store.trim(str(folder), size * 2 // 3 + 1)
    assert len(entries(folder)) == len(data_files(folder)) == 2
    assert sorted(p.stat().st_mtime for p in entries(folder)) == [1, 2]
    orphan = data_files(folder)[0]
    next(p for p in entries(folder) if p.name[:64] == orphan.name[:64]).unlink()
    store.trim(str(folder), 0)
    assert not entries(folder) and not data_files(folder)


def test_everything_can_be_cleared(model: str, folder: Path) -> None:
    build(model)
    assert store.clear() > WEIGHT.nbytes
    assert not entries(folder.parent) and not data_files(folder.parent)
    check(build(model))


def test_programs_go_on_when_their_entry_is_gone(model: str, folder: Path) -> None:
    build(model)
    built = build(model)
    main = built["main"]
    store.clear()
    np.testing.assert_array_equal(main(X), EXPECTED)


def test_processes_share_the_folder(model: str, folder: Path) -> None:
    code = (
        "import sys, numpy as np, relaxlang\n"
        "from relaxlang.codegen import build_cache\n"
        "build_cache.WORTHWHILE = 0.0\n"
        "for _ in range(2):\n"
        "    main = relaxlang.build(relaxlang.load(sys.argv[1]))['main']\n"
        "    print(float(main(np.zeros((1, 64, 64), 'float32')).sum()))\n"
    )
    command = [sys.executable, "-c", code, model]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    told = [process.communicate()[0].split() for process in started]
    assert all(process.returncode == 0 for process in started)
    assert [float(value) for values in told for value in values] == pytest.approx([np.maximum(WEIGHT, 0).sum()] * 6)
    assert entries(folder) and len(entries(folder)) == len(data_files(folder))
