"""Our proofs against apache-tvm's (the full comparison: `arith_compare.py`)."""

import pytest


@pytest.mark.extra("tvm")
def test_proofs_agree_with_tvm() -> None:
    from arith_compare import compare

    found, _, _ = compare(400, seed=1)
    assert found["our contradictions"] == 0
    assert found["ours"] >= found["tvm"]
    assert found["tvm only"] <= 4
