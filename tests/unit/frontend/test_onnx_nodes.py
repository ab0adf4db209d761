"""A sample of the ONNX package's own node tests; `onnx_nodes.py` runs them all."""

import pytest
from onnx_nodes import cases, check, compiled, interpreted

pytestmark = pytest.mark.extra("onnx")

SHARE = 0.85
"""Of the sample; the rest are operators and types that the importer lacks."""


def test_sample() -> None:
    sample = cases()[::17]
    failed = {case.name: outcome for case in sample if (outcome := check(case, interpreted)) not in ("", "constants")}
    assert len(failed) <= (1 - SHARE) * len(sample), failed
    assert not [name for name, outcome in failed.items() if "differ" in outcome], failed


@pytest.mark.parametrize(
    "word", ["test_conv_with_strides_padding", "test_gru_defaults", "test_layer_normalization_2d_axis1"]
)
def test_compiled(word: str) -> None:
    for case in cases(word):
        assert check(case, compiled) in ("", "constants")
