"""What all tests share: the `.rlx` collectors and golden files of `relaxlang.testing`, and the marker `extra`."""

import math
import os
from importlib.util import find_spec

import pytest
from hypothesis import settings

from relaxlang.codegen import build_cache

# Tests build what they test: some change the compiler in ways that no cache of programs can know of.
build_cache.WORTHWHILE = math.inf

# The same examples in every run, so that a change is judged by what it changes; RELAXLANG_NEW_EXAMPLES=1 draws others.
settings.register_profile("repeatable", derandomize="RELAXLANG_NEW_EXAMPLES" not in os.environ)
settings.load_profile("repeatable")

pytest_plugins = ["relaxlang.testing.plugin", "pytester"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `extra("tvm")` where that module is not installed; CI has a step that installs all of them."""
    for mark in item.iter_markers("extra"):
        for module in mark.args:
            if find_spec(module) is None:
                pytest.skip(f"needs {module}")
