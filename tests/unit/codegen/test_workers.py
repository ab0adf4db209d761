"""Kernels compiled by a thread and by several processes."""

import threading

import pytest
from compiled import module, prim_func

from relaxlang.base.config import config
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen import cache, compile, workers
from relaxlang.codegen.kernel import build_kernels, emit_kernels
from relaxlang.codegen.target import Target

FUNCS = {
    name: func
    for k in range(6)
    for name, func in module(
        f"""
        @T.prim_func
        def f{k}(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
            for i in range(n):
                B[i] = A[i] * T.float32({k})
        """
    ).prim_funcs()
}


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(workers, "_processors", lambda: 2)
    assert str(config.cache_dir) == str(tmp_path)


@pytest.fixture
def compiled_here(monkeypatch):
    """The texts that this process compiles itself."""
    texts: list[str] = []
    object_code = compile.object_code
    monkeypatch.setattr(compile, "object_code", lambda text, target: (texts.append(text), object_code(text, target))[1])
    return texts


def test_a_thread_compiles_what_is_written(monkeypatch, compiled_here):
    names, object_code = [], compile.object_code
    monkeypatch.setattr(
        compile, "object_code", lambda *job: (names.append(threading.current_thread().name), object_code(*job))[1]
    )
    made = build_kernels(FUNCS)
    assert len(compiled_here) == len(set(compiled_here)) == 6 and all(k.code for k in made.values())
    assert any(name.startswith("relaxlang-llvm") for name in names)
    assert not any(t.name.startswith("relaxlang-llvm") for t in threading.enumerate())


def test_what_cannot_be_written_ends_the_thread_and_the_process(monkeypatch, processes):
    monkeypatch.setattr(workers, "WORTHWHILE", 0.0)
    wrong = prim_func('A: T.Buffer((8,), "float32")', "for i in T.parallel(8):\n    if A[i] > 3:\n        break")
    with pytest.raises(DiagnosticError):
        build_kernels({**FUNCS, **dict(wrong.prim_funcs())})
    assert not any(t.name.startswith("relaxlang-llvm") for t in threading.enumerate())
    assert [process.poll() is not None for process in processes] == [True]


@pytest.fixture
def processes(monkeypatch):
    """The workers that were started."""
    started = []
    start = workers.Crew._start
    monkeypatch.setattr(workers.Crew, "_start", lambda crew: (start(crew), started.append(crew._process))[0])
    return started


@pytest.fixture
def busy_thread(monkeypatch):
    """A thread that does not begin until everything was handed out."""
    gate, add, finish = threading.Event(), workers.Crew.add, workers.Crew.finish
    monkeypatch.setattr(workers.Crew, "add", lambda crew, job, here: add(crew, job, lambda: (gate.wait(60), here())[1]))
    monkeypatch.setattr(workers.Crew, "finish", lambda crew: (gate.set(), finish(crew))[1])


def test_a_process_takes_a_part(monkeypatch, compiled_here, processes, busy_thread):
    monkeypatch.setattr(workers, "WORTHWHILE", 0.02)
    monkeypatch.setattr(workers, "_START", 0.0)
    made = build_kernels(FUNCS)
    assert 2 <= len(compiled_here) <= 4 and all(cache.has(k.llvm, k.target) for k in made.values())
    assert [process.returncode for process in processes] == [0]
    assert all(k.code for k in made.values())
    compiled_here.clear()
    processes.clear()
    build_kernels(FUNCS)
    assert not compiled_here and not processes


def test_little_work_is_done_here(compiled_here, processes):
    build_kernels(FUNCS)
    assert len(compiled_here) == 6 and not processes


def test_without_a_cache_there_is_no_process(monkeypatch, compiled_here, processes):
    monkeypatch.setenv("RELAXLANG_CACHE", "0")
    monkeypatch.setattr(workers, "WORTHWHILE", 0.0)
    build_kernels(FUNCS)
    assert len(compiled_here) == 6 and not processes


@pytest.mark.parametrize("program", ["/bin/false", "/bin/cat"])
def test_what_a_worker_does_not_do_is_done_here(monkeypatch, compiled_here, processes, busy_thread, program):
    monkeypatch.setattr(workers, "WORTHWHILE", 0.02)
    monkeypatch.setattr(workers.sys, "executable", program)
    made = build_kernels(FUNCS)
    assert len(compiled_here) == 6 and all(k.code for k in made.values()) and processes


def test_no_process_can_be_started(monkeypatch, compiled_here, busy_thread, tmp_path):
    monkeypatch.setattr(workers, "WORTHWHILE", 0.02)
    monkeypatch.setattr(workers.sys, "executable", str(tmp_path / "nothing"))
    made = build_kernels(FUNCS)
    assert len(compiled_here) == 6 and all(k.code for k in made.values())


def test_estimates():
    assert 0.01 < workers.estimate((emit_kernels(FUNCS)["f0"].llvm, Target())) < 0.1
