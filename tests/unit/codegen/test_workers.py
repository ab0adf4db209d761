"""Kernels compiled by several processes."""

import pytest
from compiled import module

from relaxlang.base.config import config
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


def test_two_processes_share_the_work(monkeypatch, compiled_here):
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


def test_what_a_worker_does_not_do_is_done_here(monkeypatch, compiled_here):
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
