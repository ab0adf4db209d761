"""Kernels compiled by a thread and by several processes."""

import threading
from contextlib import nullcontext

import pytest
from compiled import module, prim_func

from relaxlang.base.config import config
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen import cache, compile, kernel, workers
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


@pytest.fixture
def no_thread(monkeypatch):
    monkeypatch.setattr(kernel, "beside", lambda jobs: nullcontext())


def test_a_thread_compiles_what_is_written(monkeypatch, compiled_here):
    names, object_code = [], compile.object_code
    monkeypatch.setattr(
        compile, "object_code", lambda *job: (names.append(threading.current_thread().name), object_code(*job))[1]
    )
    made = build_kernels(FUNCS)
    assert len(compiled_here) == len(set(compiled_here)) == 6 and all(k.code for k in made.values())
    assert any(name.startswith("relaxlang-llvm") for name in names)
    assert not any(t.name.startswith("relaxlang-llvm") for t in threading.enumerate())


def test_what_cannot_be_written_ends_the_thread():
    wrong = prim_func('A: T.Buffer((8,), "float32")', "for i in T.parallel(8):\n    if A[i] > 3:\n        break")
    with pytest.raises(DiagnosticError):
        build_kernels({**FUNCS, **dict(wrong.prim_funcs())})
    assert not any(t.name.startswith("relaxlang-llvm") for t in threading.enumerate())


def test_two_processes_share_the_work(monkeypatch, no_thread, compiled_here):
    monkeypatch.setattr(workers, "WORTHWHILE", 0.01)
    made = build_kernels(FUNCS)
    assert len(compiled_here) == 3 and all(cache.has(k.llvm, k.target) for k in made.values())
    compiled_here.clear()
    build_kernels(FUNCS)
    assert not compiled_here


def test_little_work_is_done_here(monkeypatch, compiled_here):
    monkeypatch.setattr(workers, "_start", None)
    build_kernels(FUNCS)
    assert len(compiled_here) == 6


def test_what_a_worker_does_not_do_is_done_here(monkeypatch, no_thread, compiled_here):
    monkeypatch.setattr(workers, "WORTHWHILE", 0.01)
    monkeypatch.setattr(workers.sys, "executable", "/bin/false")
    made = build_kernels(FUNCS)
    assert len(compiled_here) == 6 and all(k.code for k in made.values())


def test_shares_take_about_as_long():
    jobs = {(f"{k}\n" * k, Target()): float(k) for k in range(1, 9)}
    shares = workers._shares(jobs, 2)
    assert [sum(jobs[j] for j in share) for share in shares] == [18, 18]
    kernels = emit_kernels(FUNCS)
    assert 0.01 < workers.estimate((kernels["f0"].llvm, Target())) < 0.1
