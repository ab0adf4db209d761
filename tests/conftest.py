"""What all tests share: the `.rlx` collectors and golden files of `relaxlang.testing`, and the marker `extra`."""

import math
from importlib.util import find_spec

import pytest

from relaxlang.codegen import build_cache

# Tests build what they test: some change the compiler in ways that no cache of programs can know of.
build_cache.WORTHWHILE = math.inf

pytest_plugins = ["relaxlang.testing.plugin", "pytester"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `extra("tvm")` where that module is not installed; CI has a step that installs all of them."""
    for mark in item.iter_markers("extra"):
        for module in mark.args:
            if find_spec(module) is None:
                pytest.skip(f"needs {module}")
