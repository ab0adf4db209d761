"""What all tests share: the `.rlx` collectors and golden files of `relaxlang.testing`, and the marker `extra`."""

from importlib.util import find_spec

import pytest

pytest_plugins = ["relaxlang.testing.plugin", "pytester"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `extra("tvm")` where that module is not installed; CI has a step that installs all of them."""
    for mark in item.iter_markers("extra"):
        for module in mark.args:
            if find_spec(module) is None:
                pytest.skip(f"needs {module}")
