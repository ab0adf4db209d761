"""Packed functions by name."""

import pytest

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.runtime.registry import _FUNCTIONS, get_global_func, list_global_func_names, register_func


@pytest.fixture(autouse=True)
def clean():
    before = dict(_FUNCTIONS)
    yield
    _FUNCTIONS.clear()
    _FUNCTIONS.update(before)


def test_both_forms():
    @register_func("test.twice")
    def twice(x):
        return 2 * x

    assert twice(3) == 6 and get_global_func("test.twice") is twice
    register_func("test.half", lambda x: x / 2)
    assert get_global_func("test.half")(3) == 1.5
    assert {"test.half", "test.twice"} <= set(list_global_func_names())


def test_names_are_taken_once():
    register_func("test.f", abs)
    with pytest.raises(DiagnosticError, match="exists already"):
        register_func("test.f", min)
    assert register_func("test.f", min, override=True) is min
    assert get_global_func("test.f") is min


def test_faults():
    assert get_global_func("test.missing", allow_missing=True) is None
    register_func("test.present", abs)
    with pytest.raises(KeyError) as caught:
        get_global_func("test.presen")
    assert "there is no packed function `test.presen`" in str(caught.value) and "`test.present`" in str(caught.value)
    with pytest.raises(DiagnosticError, match="must be a callable"):
        register_func("test.g", 3)
    with pytest.raises(DiagnosticError, match="needs a name"):
        register_func("", abs)
