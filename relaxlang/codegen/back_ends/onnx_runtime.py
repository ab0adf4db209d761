"""ONNX Runtime: whole parts of programs, as ONNX models (extra `ort`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.builder.dpl.making import is_op
from relaxlang.codegen.back_ends.onnx_export import OPERATORS, NotInOnnx, Writer, emit, to_onnx
from relaxlang.ir import relax
from relaxlang.ir.struct_info import TensorStructInfo
from relaxlang.passes.back_end import CompositePattern, Match
from relaxlang.runtime.onnx_runtime import RUN, version


class OnnxRuntime:
    """ONNX Runtime on the CPU, as a back end. The model of a part travels with the program as a constant."""

    name = "onnx_runtime"
    takes_whole_functions = True

    def patterns(self) -> Sequence[CompositePattern]:
        """Every operator that ONNX says in the same way, one by one."""
        return [
            CompositePattern(f"{self.name}.{op.removeprefix('nn.')}", is_op(op)(varg_default_wildcard=True), _fits)
            for op in OPERATORS
        ]

    def version(self) -> str:
        """The library and its release."""
        return f"onnxruntime {version()}"

    def generate(self, name: str, func: relax.Function, options: Mapping[str, Any]) -> relax.Function:
        """A function that runs the model of its body. RLX3152 without the package `onnx`."""
        if find_spec("onnx") is None:
            fail(
                "RLX3152", "the back end `onnx_runtime` needs the package `onnx`", help="`pip install 'relaxlang[ort]'`"
            )
        try:
            content = to_onnx(func)
        except NotInOnnx:
            fail("RLX3152", f"the back end `onnx_runtime` cannot say `{name}` in ONNX", func.span)
        info = func.ret_struct_info
        assert info is not None
        model = relax.Constant(np.frombuffer(content, np.uint8))
        tensors = [p for p in func.params if isinstance(p.struct_info, TensorStructInfo)]
        args = (relax.ExternFunc(RUN), relax.Tuple((model, *tensors)))
        call = relax.Call(relax.Op("call_dps_packed"), args, sinfo_args=(info,), struct_info=info, span=func.span)
        result = relax.Var("result", info)
        block = relax.DataflowBlock((relax.VarBinding(result, call),))
        return func.replace(body=func.body.replace(blocks=(block,), body=result))


def _fits(match: Match) -> bool:
    """Whether ONNX says a call in the same way."""
    try:
        emit(Writer(), match.bindings[-1].value)
    except NotInOnnx:
        return False
    return True
