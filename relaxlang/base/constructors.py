"""Constructors of classes that list their fields as annotations, for `base.node` and `base.record`.

Compiling a text takes Python 50 to 100 µs, and the classes that one build imports are three hundred. Constructors that
differ in nothing but the names of the fields therefore share one compiled code, which each has with its own names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import CodeType, FunctionType
from typing import Any


def declared_fields(cls: type) -> list[str]:
    """The fields that the body of a class declares."""
    return [name for name, kind in cls.__dict__.get("__annotations__", {}).items() if "ClassVar" not in str(kind)]


def constructor(
    cls: type,
    fields: Sequence[str],
    defaults: Mapping[str, Any],
    body: Callable[[Sequence[str]], list[str]],
    keywords: Sequence[str] = (),
    shared: bool = True,
) -> FunctionType:
    """An `__init__` whose parameters are `fields`, by position or by name, and `keywords`, by name only and None unless
    given.

    `body` makes its statements, which see the globals of the class's module, from the names of the fields; where the
    code is `shared` these are placeholders, so that it must not know the names otherwise.
    """
    order = [name for name in fields if name not in defaults] + [name for name in fields if name in defaults]
    alias = {name: f"_{at}" if shared else name for at, name in enumerate(fields)}
    head = ", ".join(["self", *(alias[name] for name in order), *(["*", *keywords] if keywords else [])])
    code = _compiled(f"def __init__({head}):\n    " + "\n    ".join(body([*alias.values()]) or ["pass"]))
    if shared:
        own = {placeholder: name for name, placeholder in alias.items()}
        code = code.replace(
            co_varnames=tuple([own.get(name, name) for name in code.co_varnames]),
            co_names=tuple([own.get(name, name) for name in code.co_names]),
            co_consts=tuple([own.get(value, value) for value in code.co_consts]),
        )
    given = tuple([defaults[name] for name in order if name in defaults])
    made = FunctionType(code, vars(sys.modules[cls.__module__]), "__init__", given)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__kwdefaults__ = dict.fromkeys(keywords)
    return made


@cache
def _compiled(text: str) -> CodeType:
    """The code of the only function in a text."""
    module = compile(text, "<constructor>", "exec")
    return next(value for value in module.co_consts if isinstance(value, CodeType))
