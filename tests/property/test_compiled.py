"""Random kernels: compiled code gives what the interpreter gives, bit for bit where the type is exact."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_tir import arguments, kernels

from relaxlang.codegen.kernel import build_kernels, load_kernels
from relaxlang.interp import Interpreter
from relaxlang.ir.module import IRModule

RANDOM = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


@RANDOM
@given(kernels(), st.integers(0, 9))
def test_compiled_code_agrees_with_the_interpreter(mod: IRModule, seed: int) -> None:
    wanted, given_ = arguments(mod, seed), arguments(mod, seed)
    Interpreter(mod).run("f", *wanted)
    load_kernels(build_kernels(dict(mod.prim_funcs())))["f"](*given_)
    for mine, theirs in zip(wanted, given_):
        np.testing.assert_array_equal(theirs, mine, strict=True)
