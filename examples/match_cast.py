"""Runs match_cast.rlx: the multiplication table of the different values in a vector."""

from pathlib import Path

import numpy as np

import relaxlang

vm = relaxlang.VirtualMachine(relaxlang.build(relaxlang.load(Path(__file__).with_suffix(".rlx"))), relaxlang.cpu())

for values in ([3, 1, 3, 2], [5, 5, 5], [1, 2, 3, 4, 5, 6]):
    x = np.array(values, "float32")
    table = vm["main"](x)
    different = np.unique(x)
    assert np.array_equal(table, different[:, None] * different)
    print(f"{values}: {len(different)} different values, table of shape {table.shape}")
