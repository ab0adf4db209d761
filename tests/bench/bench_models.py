"""Whole models against installed peers: time of a call, compile time cold and warm, memory.

    python tests/bench/bench_models.py [name…] [--peers onnxruntime,openvino,tvm] [--seconds 2.0] [--threads 2]
                                       [--only run|build|memory]

It runs on purpose, not with the tests. All contenders of a model take turns in one process, and the median of each
one's CPU time counts (the least stands behind it); on several threads wall time counts, so the machine has to be quiet.
TVM is built as it builds by default, and measured when it is asked for: a call of GPT-2 takes it half a minute. Ratios
are best peer / relaxlang: above 1 relaxlang is faster. Text
to runnable is CPU time of a new process, from a `.rlx` file with its side file to a function that may be called,
without the start of Python and imports of numpy; with an empty cache folder, and again with what that left there.
Memory is the peak of a process that loads the model from a file and runs it a few times: relaxlang the text, with an
empty cache folder and again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from settling import settle

# The libraries read their settings when they are imported.
THREADS = int(sys.argv[sys.argv.index("--threads") + 1]) if "--threads" in sys.argv[:-1] else 1
for variable in ("OMP", "OPENBLAS", "MKL", "RELAXLANG", "TVM"):
    os.environ[f"{variable}_NUM_THREADS"] = str(THREADS)

import numpy as np  # noqa: E402
from models import BUILT, LENGTHS, MODELS, Array, Feeds  # noqa: E402

Run = Callable[[Feeds], Array]
CLOCK = time.process_time if THREADS == 1 else time.perf_counter

_TEXT_TO_RUNNABLE = """
import json, resource, sys, time
import numpy
start, wall = time.process_time(), time.perf_counter()
import relaxlang
relaxlang.build(relaxlang.load(sys.argv[1]))["main"]
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.process_time() - start + spent.ru_utime + spent.ru_stime, time.perf_counter() - wall]))
"""


def with_relaxlang(model: bytes) -> Run:
    """relaxlang: the graph imported, weights constants of the module."""
    import onnx

    import relaxlang
    from relaxlang.frontend.onnx import from_onnx

    return _run_of(relaxlang.build(from_onnx(onnx.load_model_from_string(model)))["main"])


def from_text(path: str) -> Run:
    """relaxlang: the text of the model, weights beside it."""
    import relaxlang

    return _run_of(relaxlang.build(relaxlang.load(path))["main"])


def _run_of(call: Callable[..., Any]) -> Run:
    def run(feeds: Feeds) -> Array:
        made = call(*feeds.values())
        return np.asarray(made[0] if isinstance(made, (tuple, list)) else made)

    return run


def with_onnxruntime(model: bytes | str) -> Run:
    """ONNX Runtime; a model or its file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = THREADS, 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda feeds: np.asarray(session.run(None, feeds)[0])


def with_openvino(model: bytes | str) -> Run:
    """OpenVINO; a model or its file."""
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_NUM_THREADS": THREADS, "NUM_STREAMS": 1,
                                  "INFERENCE_PRECISION_HINT": "f32"})  # fmt: skip
    request = compiled.create_infer_request()
    return lambda feeds: np.asarray(request.infer(feeds, share_inputs=True, share_outputs=True)[0])


def with_tvm(model: bytes) -> Run:
    """TVM with its default pipeline, for this processor, weights constants of the module."""
    import onnx
    import tvm
    from llvmlite import binding
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    target = tvm.target.Target({"kind": "llvm", "mcpu": binding.get_host_cpu_name()})
    machine = relax.VirtualMachine(relax.build(from_onnx(onnx.load_model_from_string(model)), target), tvm.cpu())

    def run(feeds: Feeds) -> Array:
        made = machine["main"](*(tvm.runtime.tensor(array) for array in feeds.values()))
        return np.asarray((made if isinstance(made, tvm.runtime.Tensor) else made[0]).numpy())

    return run


CONTENDERS: dict[str, Callable[[Any], Run]] = {
    "relaxlang": with_relaxlang, "onnxruntime": with_onnxruntime, "openvino": with_openvino, "tvm": with_tvm,
}  # fmt: skip


def contenders(model: bytes, peers: list[str]) -> dict[str, Run]:
    """Whoever can run a model; peers that are not installed are left out."""
    found: dict[str, Run] = {}
    for name in ("relaxlang", *peers):
        try:
            found[name] = CONTENDERS[name](model)
        except ImportError:
            continue
    return found


def measure(runs: Mapping[str, Run], feeds: Feeds, seconds: float) -> dict[str, list[float]]:
    """Seconds of calls of each contender, sorted; they take turns. Who gives other values than relaxlang is left
    out, with a word about it."""
    wanted = np.array(runs["relaxlang"](feeds))
    near = 2e-3 * float(np.abs(wanted).max())
    wrong = [n for n, run in runs.items() if not np.allclose(run(feeds), wanted, atol=near)]
    if wrong:
        print("other values than relaxlang's, so not measured:", *wrong)
        runs = {n: run for n, run in runs.items() if n not in wrong}
    found: dict[str, list[float]] = {n: [] for n in runs}
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds * len(runs) or len(found["relaxlang"]) < 5:
        for name, run in runs.items():
            if THREADS > 1:
                settle()
                run(feeds)
            start, times = CLOCK(), 0
            while times == 0 or CLOCK() - start < 0.002:
                run(feeds)
                times += 1
            found[name].append((CLOCK() - start) / times)
    return {n: sorted(t) for n, t in found.items()}


def show_times(name: str, runs: Mapping[str, Run], feeds: Feeds, seconds: float) -> None:
    """Measure one input of a model, and print its row."""
    found = measure(runs, feeds, seconds)
    shown = "  ".join(f"{n} {np.median(t) * 1e3:.3f} ({t[0] * 1e3:.3f})" for n, t in found.items())
    mine, others = found.pop("relaxlang"), list(found.values())
    best = min((float(np.median(t)) for t in others), default=float("nan"))
    least = min((t[0] for t in others), default=float("nan"))
    print(f"{name:22} ratio {best / np.median(mine):5.2f} ({least / mine[0]:5.2f})  {shown}", flush=True)


def run_model(name: str, peers: list[str], seconds: float) -> None:
    """Time a call of a model, on each of its inputs."""
    model, feeds = MODELS[name]()
    runs = contenders(model, peers)
    if name != "encoder_dynamic":
        show_times(name, runs, feeds, seconds)
        return
    for length in LENGTHS:
        feeds = {"x": np.resize(feeds["x"], (1, length, feeds["x"].shape[2]))}
        show_times(f"{name}_{length}", runs, feeds, seconds)


def write_text(model: bytes, folder: str) -> str:
    """Write a model as text with its weights beside it; the path of the text."""
    import onnx

    from relaxlang.frontend.onnx import from_onnx

    path = os.path.join(folder, "model.rlx")
    store: dict[str, Array] = {}
    module = from_onnx(onnx.load_model_from_string(model))
    with open(path, "w", encoding="utf-8") as file:
        file.write(module.script(constants="file", store=store))
    np.savez(os.path.join(folder, "model.weights.npz"), **store)
    return path


def build_models(names: list[str]) -> None:
    """Text to runnable of every model, in processes of their own."""
    print("text to runnable, CPU s (wall s):")
    # Modules of Python are compiled by the first run, and found compiled by those that are measured.
    # Kernels are compiled with as many processors as there are.
    compiled = {n: v for n, v in os.environ.items() if n not in ("PYTHONDONTWRITEBYTECODE", "RELAXLANG_NUM_THREADS")}
    for number, name in enumerate(names):
        with tempfile.TemporaryDirectory() as folder:
            path = write_text(BUILT[name]()[0], folder)
            command, shown = [sys.executable, "-c", _TEXT_TO_RUNNABLE, path], []
            if number == 0:
                _output(command, {**compiled, "RELAXLANG_CACHE": "0"})
            for state in ("cold", "warm"):
                cpu, wall = _output(command, {**compiled, "RELAXLANG_CACHE_DIR": os.path.join(folder, "cache")})
                shown.append(f"{state} {cpu:6.2f} ({wall:6.2f})")
        print(f"{name:22} {'  '.join(shown)}", flush=True)


def show_memory(names: list[str], peers: list[str]) -> None:
    """The peak memory of a process for every model and contender."""
    print("peak memory of the process, MB:")
    here = os.path.dirname(os.path.abspath(__file__))
    found = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    for name in names:
        model, feeds = MODELS[name]()
        with tempfile.TemporaryDirectory() as folder:
            write_text(model, folder)
            with open(os.path.join(folder, "model.onnx"), "wb") as file:
                file.write(model)
            np.savez(os.path.join(folder, "feeds.npz"), **feeds)
            place = {**os.environ, "PYTHONPATH": found, "RELAXLANG_CACHE_DIR": os.path.join(folder, "cache")}
            shown = []
            for label, peer in (("cold", "relaxlang"), ("warm", "relaxlang"), *(("", peer) for peer in peers)):
                code = f"import bench_models; bench_models.print_peak({folder!r}, {peer!r})"
                shown.append(f"{peer} {label} {_output([sys.executable, '-c', code], place):.0f}".replace("  ", " "))
        print(f"{name:22} {'  '.join(shown)}", flush=True)


def print_peak(folder: str, peer: str) -> None:
    """Load the model in a folder and run it a few times; print the peak memory of this process in MB (Linux). What
    `getrusage` tells would include the process that started this one."""
    feeds = dict(np.load(os.path.join(folder, "feeds.npz")))
    path = os.path.join(folder, "model.onnx")
    if peer == "relaxlang":
        run = from_text(os.path.join(folder, "model.rlx"))
    elif peer == "tvm":
        with open(path, "rb") as file:
            run = with_tvm(file.read())
    else:
        run = CONTENDERS[peer](path)
    for _ in range(3):
        run(feeds)
    with open("/proc/self/status", encoding="ascii") as file:
        peak = next(line for line in file if line.startswith("VmHWM"))
    print(int(peak.split()[1]) / 1024)


def _output(command: list[str], environment: dict[str, str]) -> Any:
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def main() -> None:
    """Measure the models whose names contain one of the arguments (all without)."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*")
    options.add_argument("--peers", default="onnxruntime,openvino")
    options.add_argument("--seconds", type=float, default=2.0, help="of measuring, for each contender of a model")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--only", choices=("run", "build", "memory"))
    given = options.parse_args()
    peers = given.peers.split(",") if given.peers else []

    def chosen(models: Mapping[str, object]) -> list[str]:
        return [m for m in models if not given.names or any(n in m for n in given.names)]

    print("load:", " ".join(f"{x:.1f}" for x in os.getloadavg()), "on", os.cpu_count(), "processors")
    if given.only in (None, "run"):
        print(f"{'CPU' if THREADS == 1 else 'wall'} ms a call on {THREADS} thread(s), median (least):")
        for name in chosen(MODELS):
            run_model(name, peers, given.seconds)
    if given.only in (None, "build"):
        build_models(chosen(BUILT))
    if given.only in (None, "memory"):
        show_memory([m for m in chosen(MODELS) if m in ("encoder_128", "resnet18")], peers)


if __name__ == "__main__":
    sys.exit(main())
