"""Gradient operators against numpy."""

import numpy as np
import pytest
from calls import CALLS, Call
from harness import run

NLL = [one for one in CALLS if one[0] == "grad.nll_loss_backward"]


@pytest.mark.parametrize("one", NLL, ids=lambda one: str(one[2]))
def test_nll_loss_backward(one: Call) -> None:
    name, (grad, predictions, targets, weights), attrs = one
    kept = targets >= 0
    share = grad / weights[targets[kept]].sum() if attrs["reduction"] == "mean" else grad
    expected = np.zeros_like(predictions)
    for at in np.argwhere(kept):
        label = targets[tuple(at)]
        expected[(at[0], label, *at[1:])] = -weights[label] * (share if np.ndim(share) == 0 else share[tuple(at)])
    np.testing.assert_allclose(run(name, *one[1], **attrs), expected, rtol=1e-5)
