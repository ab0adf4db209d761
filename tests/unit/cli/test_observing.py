"""Watching a compilation and a run: levels, statistics, verification after each pass, traces, profiles, comparison."""

import json
import pathlib
import re

import ml_dtypes
import numpy as np
import pytest

import relaxlang
from relaxlang.analysis.well_formed import well_formed
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.cli import run as running
from relaxlang.cli.instruments import COUNTS, counts
from relaxlang.cli.options import read_command_line
from relaxlang.passes.base import Pass
from relaxlang.passes.pipelines import LEVELS, PIPELINES, pipeline
from relaxlang.passes.relax.fuse_ops import FuseOps

ROWS = re.compile(r"^(\S+) +(\d+) +([\d.]+) +([\d.]+)% +([\d.]+|) +([\d.]+) +([\d.]+|) +(\S.*)$", re.MULTILINE)


# --- levels -----------------------------------------------------------------------------------------------------------
def test_levels(run):
    for level in LEVELS:
        assert run("--dump-pipeline", f"-{level}").out == ",".join(PIPELINES[level]) + "\n" or level == "O0"
    assert run("--dump-pipeline", "-O0").out == run("--dump-pipeline", "-p", "minimum").out
    assert run("--dump-pipeline", "-O", "2").out == run("--dump-pipeline").out
    assert "fuse-ops" not in run("--dump-pipeline", "-O1").out
    kernels = {lv: run("mlp.rlx", f"-{lv}", "--emit=llvm").out.count("define i32 @rlx_") for lv in LEVELS}
    assert kernels == {"O0": 2, "O1": 2, "O2": 1, "O3": 1}
    done = run("mlp.rlx", "-O1", "-p", "minimum")
    assert done.code == 2 and "--pipeline=O1,…" in done.err
    assert "merge-loops" in run("--dump-pipeline", "-p", "O1,merge-loops").out


@pytest.mark.parametrize("level", LEVELS)
def test_levels_compute_the_same(level, run):
    wanted = run("mlp.rlx", "--run", "--random=1", "--dim=n=3", "--save-result=y.npy")
    done = run(
        "mlp.rlx", f"-{level}", "--verify-each", "--run", "--random=1", "--dim=n=3", "--expect=y.npy", "--rtol=1e-4"
    )
    assert (wanted.code, done.code, done.err) == (0, 0, "")


# --- passes -----------------------------------------------------------------------------------------------------------
def test_counts():
    mod = relaxlang.parse(
        "@I.ir_module\nclass M:\n    @R.function\n    def main(x: R.Tensor((2,), 'float32')):\n"
        "        y = R.add(x, x)\n        z = R.exp(y)\n        return z\n"
    )
    assert counts(mod)[:3] == (1, 2, 0) and counts(pipeline("legalize-ops")(mod))[:3] == (1, 2, 2)


def test_statistics(run):
    done = run("mlp.rlx", "--emit=tir", "--stats", "--stop-after=fuse-tir")
    head, first, *rows = [re.split(r"  +", row) for row in done.err.splitlines()]
    assert head == ["mlp.rlx", *COUNTS] and first[:4] == ["(input)", "1", "2", "0"]
    found = {row[0]: row[1:] for row in rows}
    assert next(iter(found)) == "legalize-ops" and list(found)[-1] == "fuse-tir"
    assert (
        found["legalize-ops"][2] == "2 (+2)" and found["fuse-ops"][0] == "2 (+1)" and found["fuse-tir"][0] == "1 (-1)"
    )
    both = run("mlp.rlx", "kernel.rlx", "--emit=none", "--stats").err
    assert "\nkernel.rlx " in both and both.startswith("mlp.rlx ")


def test_the_pass_that_breaks_a_rule_is_named(run, monkeypatch):
    def broken(self, mod, ctx):
        main = mod["main"]
        block = main.body.blocks[0]
        body = main.body.replace(blocks=(block.replace(bindings=block.bindings[1:]), *main.body.blocks[1:]))
        return mod.with_functions({**mod.functions, "main": main.replace(body=body)})

    assert run("mlp.rlx", "--emit=none", "--verify-each") == (0, "", "")
    monkeypatch.setattr(FuseOps, "run", broken)
    assert isinstance(FuseOps(), Pass)
    done = run("mlp.rlx", "--emit=none", "--verify-each")
    assert done.code == 1 and "RLX0438" in done.err and "the pass `fuse-ops` made this" in done.err


def test_what_the_input_breaks_is_no_fault_of_a_pass(run):
    kernels = pathlib.Path(__file__).parents[2] / "rlx" / "print" / "tir_buffers.rlx"
    assert [d for d in well_formed(relaxlang.load(kernels)) if d.level == "error"]
    assert run(str(kernels), "--verify-each", "-O2", "--emit=rlx").err == ""


# --- traces -----------------------------------------------------------------------------------------------------------
def test_traces(run):
    assert run("mlp.rlx", "--run", "--random=0", "--dim=n=8", "--trace=t.json").err == ""
    content = json.loads(pathlib.Path("t.json").read_text())
    events = [e for e in content["traceEvents"] if e["ph"] == "X"]
    by_kind = {kind: [e["name"] for e in events if e["cat"] == kind] for kind in ("phase", "pass", "kernel")}
    assert by_kind["phase"][:3] == ["total", "mlp.rlx", "parse"] and by_kind["pass"][0] == "legalize-ops"
    assert by_kind["kernel"] == ["fused_matmul_relu"]
    whole = events[0]
    assert all(0 <= e["ts"] and e["ts"] + e["dur"] <= whole["dur"] + 0.01 for e in events)
    kernel = events[-1]
    assert kernel["args"]["shapes"] == [[8, 4], [4, 3], [8, 3]] and kernel["args"]["bytes"] == 4 * (32 + 12 + 24)
    profile = next(e for e in events if e["name"] == "profile")
    assert profile["ts"] <= kernel["ts"] <= profile["ts"] + profile["dur"] and kernel["tid"] != profile["tid"]
    assert "parse" in run("mlp.rlx", "--check", "--trace=-").out
    assert run("mlp.rlx", "--check", "--trace=./mlp.rlx").code == 2


# --- profiles ---------------------------------------------------------------------------------------------------------
def test_profiles(run):
    done = run("mlp.rlx", "-O1", "--run", "--random=0", "--dim=n=16", "--profile")
    rows = {row[0]: row for row in ROWS.findall(done.err)}
    assert done.code == 0 and set(rows) == {"matmul", "relu"}
    assert rows["matmul"][7] == "mlp.rlx:6 (y)" and rows["relu"][7] == "mlp.rlx:7 (z)"
    assert all(row[1] == "1" and float(row[6]) > 0 for row in rows.values())
    assert abs(sum(float(row[3]) for row in rows.values()) - 100) < 0.3
    told = json.loads(run("mlp.rlx", "--run", "--random=0", "--dim=n=16", "--profile=json").err)
    (kernel,) = told["kernels"]
    assert kernel["kernel"] == "fused_matmul_relu" and kernel["bytes"] == 4 * (16 * 4 + 4 * 3 + 16 * 3)
    assert (
        kernel["flops"] == 2 * 16 * 4 * 3 + 16 * 3 and kernel["share"] == 1 and 0 < kernel["seconds"] < told["seconds"]
    )
    last = done.err.splitlines()[-1]
    assert last.startswith("kernels: ") and "GFLOP/s of float32 a processor" in last


def test_rates_of_a_profile(run, monkeypatch):
    """What the numbers mean: operations and bytes of the call by its time, and the larger of the two shares."""
    from relaxlang.cli import profile
    from relaxlang.codegen import peak
    from relaxlang.runtime.observe import KernelProfile, KernelRun

    def observe(call):
        return KernelProfile((KernelRun("scale", "scale", 0, 1e-6, ((64, 4), (64, 4)), 2048, 1.0),), 2e-6)

    monkeypatch.setattr(profile, "observe", observe)
    monkeypatch.setattr(profile._Work, "parallel", lambda self, kernel: True)
    monkeypatch.setenv("RELAXLANG_NUM_THREADS", "2")
    monkeypatch.setattr(peak, "peak_flops", lambda: 1e9)
    monkeypatch.setattr(peak, "peak_bandwidth", lambda: 20e9)
    done = run("kernel.rlx", "--run=scale", "--arg=f32[64,4]=1", "--arg=f32=3", "--profile")
    assert ROWS.findall(done.err) == [("scale", "1", "1.00", "100.0", "0.3", "2.0", "12.8", "scale:0")]


def test_profiles_of_kernels_and_built_programs(run):
    done = run("kernel.rlx", "--run=scale", "--arg=f32[2,4]=1", "--arg=f32=3", "--profile")
    assert [row[0] for row in ROWS.findall(done.err)] == ["scale"]
    run("mlp.rlx", "-o", "m.rlxe")
    done = run("m.rlxe", "--run", "--arg=f32[1,4]=1", "--arg=f32[4,3]=2", "--profile")
    assert "fused_matmul_relu" in done.err and "main:" in done.err and "peak:" not in done.err
    assert run("mlp.rlx", "--profile").code == 2


# --- comparison -------------------------------------------------------------------------------------------------------
def test_comparison(run):
    done = run("mlp.rlx", "--run", "--random=0", "--dim=n=4", "--compare")
    assert (
        done.code == 0 and done.err.startswith("the result is as interpreted: at most ") and "12 elements" in done.err
    )
    done = run("kernel.rlx", "--run=scale", "--arg=f32[1,4]=1,2,3,4", "--arg=f32=3", "--compare")
    assert (done.code, done.out) == (0, "y: float32[1,4]\n[[ 3.  6.  9. 12.]]\n") and "result y is as" in done.err
    done = run("kinds.rlx", "--run", "--random=1", "--dim=n=2", "--dim=m=3", "--compare")
    assert done.code == 0 and "the result 1.0.0 is as interpreted: 12 equal elements" in done.err
    run("mlp.rlx", "-o", "m.rlxe")
    assert "cannot be interpreted" in run("m.rlxe", "--run", "--arg=f32[1,4]=1", "--arg=f32[4,3]=2", "--compare").err


def test_rounding_is_no_difference():
    request = running.read_request(read_command_line(["--run"]))
    wanted = np.array([1000, 1e-3, np.inf, np.nan], np.float32)
    near = wanted + np.array([0, 0.01, 0, 0], np.float32)
    assert "at most 0.01 apart" in running.compare_with([("", near)], [("", wanted)], request)
    for value, want in (
        (wanted + np.float32(0.1), wanted),
        (np.array([1000, 1e-3, 5, np.nan], np.float32), wanted),
        (near.astype(np.float64), wanted.astype(np.float64)),
        (np.array([1, 2]), np.array([1, 3])),
        (wanted[:2], wanted),
    ):
        with pytest.raises(DiagnosticError, match="RLX7007"):
            running.compare_with([("", value)], [("", want)], request)
    half = np.array([1, 2], ml_dtypes.bfloat16)
    assert "apart" in running.compare_with([("", half * half)], [("", np.array([1, 4.05], half.dtype))], request)
    assert "not compared" in running.compare_with([("", None)], [("", None)], request)
    strict = running.read_request(read_command_line(["--run", "--rtol=1e-9"]))
    with pytest.raises(DiagnosticError, match="RLX7007"):
        running.compare_with([("", near)], [("", wanted)], strict)


def test_a_difference_is_told(run, monkeypatch):
    def interpret(c, call):
        return [("", relaxlang.array(np.full((4, 3), 0.5, np.float32)))]

    monkeypatch.setattr(running, "interpret", interpret)
    done = run("mlp.rlx", "--run", "--arg=f32[4,4]=1", "--arg=f32[4,3]=0.125", "--compare")
    assert done.code == 0
    done = run("mlp.rlx", "--run", "--arg=f32[4,4]=1", "--arg=f32[4,3]=0.126", "--compare")
    assert done.code == 3 and "RLX7007" in done.err and "12 of 12 elements differ, first 0.504" in done.err
    assert run("mlp.rlx", "--run", "--arg=f32[4,4]=1", "--arg=f32[4,3]=0.126", "--compare", "--atol=0.01").code == 0


def test_watching_passes_of_which_none_runs_is_told(run):
    for flag in ("--print-ir-after=all", "--stats", "--verify-each"):
        assert "has nothing to show" in run("mlp.rlx", "--emit=rlx", flag).err
        assert "has nothing to show" not in run("mlp.rlx", "--emit=rlx", "-O1", flag).err
