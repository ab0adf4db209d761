"""What the names of `T`, `R` and `I` are while Python runs: values that accept whatever is done with them.

Python evaluates annotations, decorators and class bodies; what it makes of them is thrown away, since the decorators
read the text. So `R.Tensor((n, 4), "float32")` only has to be harmless.
"""

from __future__ import annotations

from typing import Any


class Anything:
    """A part of a program that Python runs over: attributes, calls, subscripts and operators give another such part."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(f"{self._path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Anything(f"{self._path}(…)")

    def __getitem__(self, index: Any) -> Anything:
        return Anything(f"{self._path}[…]")

    def _operator(self, *other: Any) -> Anything:
        return Anything("…")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _operator
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __or__ = __ror__ = __neg__ = _operator

    def __repr__(self) -> str:
        return f"<{self._path}: part of a program, and no value of Python>"


def lookup(prefix: str, name: str) -> Anything:
    """The name of a namespace, for a module's `__getattr__`."""
    if name.startswith("__"):
        raise AttributeError(f"`{prefix}` has no attribute `{name}`")
    return Anything(f"{prefix}.{name}")
