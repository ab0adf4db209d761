"""Targets: what they accept, how they print, and code for other processors."""

import numpy as np
import pytest
from compiled import compiled, prim_func

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen import Target, asm_text, object_bytes

ADD = prim_func(
    'A: T.Buffer((n,), "float32"), C: T.Buffer((n,), "float16")',
    'for i in range(n):\n    C[i] = T.Cast("float16", T.exp(A[i]) + T.float32(1))',
)


def test_texts_and_mappings_mean_the_same() -> None:
    text = Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu znver4 -num-cores=2")
    mapping = Target(
        {"kind": "llvm", "mcpu": "znver4", "mtriple": "x86_64-unknown-linux-gnu", "num-cores": 2, "host": "llvm"}
    )
    assert str(text) == "llvm -mcpu=znver4 -mtriple=x86_64-unknown-linux-gnu -num-cores=2"
    assert str(mapping) == str(text) and mapping.host == Target()
    assert (text.mcpu, text.num_cores, text.is_host) == ("znver4", 2, False)
    assert Target(None) == Target("llvm") and Target().is_host and "+" in Target().mattr
    assert Target(text) == text and hash(Target(text)) == hash(text)


@pytest.mark.parametrize(
    "spec, code, words",
    [
        ("lvm", "RLX5001", "`llvm`"), ("cuda -arch=sm_90", "RLX5001", "target kinds are `llvm`, `c`"),
        ("llvm -mcup=x", "RLX5002", "`mcpu`"),
        ("llvm -num-cores=two", "RLX5003", "whole number"), ("llvm mcpu", "RLX5003", "no option"),
        ({"kind": "llvm", "cpu": 3}, "RLX5002", "`mcpu`"), (3, "RLX5003", "int"), ("llvm -mcpu='x", "RLX5003", "quot"),
    ],
)  # fmt: skip
def test_what_is_no_target(spec: object, code: str, words: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        Target(spec)
    assert caught.value.diagnostics[0].code == code and words in str(caught.value)


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v3", "llvm -opt-level=0", None])
def test_processors_of_this_family_compute_the_same(target: str | None) -> None:
    x = np.random.default_rng(0).uniform(-9, 9, 77).astype("float32")
    made = np.zeros(77, "float16")
    compiled(ADD, target)(x, made)
    np.testing.assert_array_equal(made, (np.exp(x.astype("float64")) + 1).astype("float32").astype("float16"))


def test_code_for_other_platforms() -> None:
    arm = "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=cortex-a72"
    assert object_bytes(ADD["f"], arm)[:4] == b"\x7fELF"
    assert "fmla" in asm_text(ADD["f"], arm)
    assert object_bytes(ADD["f"], "llvm -mtriple=riscv64-unknown-linux-gnu")[:4] == b"\x7fELF"


def test_platforms_and_processors_that_do_not_exist() -> None:
    for target in ("llvm -mtriple=nonsense-machine", "llvm -mcpu=znver44"):
        with pytest.raises(DiagnosticError, match="RLX5004"):
            object_bytes(ADD["f"], target)
