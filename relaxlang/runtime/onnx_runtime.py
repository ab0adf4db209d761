"""Models run by ONNX Runtime: `relaxlang.onnx_runtime.run`, which the back end `onnx_runtime` calls (extra `ort`).

    relaxlang.onnx_runtime.run        (model, input…, output…)

`model` is an ONNX file as a uint8 tensor, whose session is made at its first use and kept. Results are written to the
outputs, which have the shapes that the model gives.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from relaxlang.base.config import config
from relaxlang.base.diagnostics import fail
from relaxlang.runtime import checks
from relaxlang.runtime.registry import LinkedFunction, register_func

RUN = "relaxlang.onnx_runtime.run"
SESSIONS = 64
"""How many sessions are kept: those that were used last."""


def _library() -> Any:
    """The package `onnxruntime`; RLX6038 without it."""
    try:
        import onnxruntime
    except ImportError as fault:
        fail("RLX6038", f"a part of the program runs on ONNX Runtime, which can't be loaded: {fault}",
             help="`pip install 'relaxlang[ort]'`")  # fmt: skip
    return onnxruntime


def version() -> str:
    """The release of ONNX Runtime; RLX6038 when it is not there."""
    return str(_library().__version__)


class _Run(LinkedFunction):
    """Runs models. Any number of threads may call it at once."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[int, int], tuple[Any, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def link(self) -> None:
        """See to it that there is ONNX Runtime; RLX6038 else."""
        _library()

    def __call__(self, *args: Any) -> None:
        """Run the model of the first argument. RLX600x for arguments that do not fit it, RLX6039 for what the library
        says."""
        if not args or not isinstance(args[0], np.ndarray) or args[0].dtype != np.uint8:
            checks.wrong_kind(f"parameter `model` of `{RUN}`", "a uint8 tensor", args[0] if args else None)
        session, inputs, outputs = self._session(args[0])
        if len(args) != 1 + len(inputs) + len(outputs):
            checks.wrong_count(RUN, ("model", *inputs, *outputs), 1 + len(inputs) + len(outputs), len(args))
        given = dict(zip(inputs, map(np.ascontiguousarray, args[1:])))
        try:
            results = session.run(outputs, given)
        except _faults() as fault:
            fail("RLX6039", f"ONNX Runtime failed: {fault}")
        for name, target, made in zip(outputs, args[1 + len(inputs) :], results, strict=True):
            if target.shape != made.shape:
                fail("RLX6005", f"the model gives `{name}` the shape {made.shape}, expected {target.shape}")
            np.copyto(target, made)

    def _session(self, model: Any) -> tuple[Any, list[str], list[str]]:
        """The session of a model, known by where the model lies in memory: it is kept beside it."""
        key = (model.ctypes.data, model.nbytes)
        with self._lock:
            known = self._sessions.get(key)
            if known is None:
                known = self._sessions[key] = (model, _open(model))
                if len(self._sessions) > SESSIONS:
                    self._sessions.popitem(last=False)
            self._sessions.move_to_end(key)
        made: tuple[Any, list[str], list[str]] = known[1]
        return made


def _open(model: Any) -> tuple[Any, list[str], list[str]]:
    """A new session, and the names of its inputs and outputs."""
    library = _library()
    options = library.SessionOptions()
    options.intra_op_num_threads = config.num_threads
    # Its threads would otherwise go on spinning after a run, on the cores where relaxlang's own then work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        session = library.InferenceSession(model.tobytes(), options, providers=["CPUExecutionProvider"])
    except _faults() as fault:
        fail("RLX6039", f"ONNX Runtime cannot load the model: {fault}")
    return session, [i.name for i in session.get_inputs()], [o.name for o in session.get_outputs()]


def _faults() -> tuple[type[Exception], ...]:
    """What ONNX Runtime raises."""
    state = _library().capi.onnxruntime_pybind11_state
    names = ("Fail", "InvalidArgument", "InvalidProtobuf", "InvalidGraph", "NotImplemented", "RuntimeException")
    return (ValueError, RuntimeError, *(getattr(state, n) for n in names if hasattr(state, n)))


register_func(RUN, _Run())
