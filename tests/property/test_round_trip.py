"""A module's text is the module: `parse(print(m))` is `m` and prints the same again, whatever the module and options.

`RELAXLANG_ROUND_TRIP=20000` asks for so many modules of a seeded generator, beyond those that hypothesis draws.
"""

from __future__ import annotations

import ast
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import relaxlang
from relaxlang.ir import tir
from relaxlang.ir.module import IRModule
from relaxlang.ir.structural import assert_structural_equal, structural_hash
from relaxlang.ir.visit import walk
from tests.property.choices import seeded
from tests.property.modules import FUEL, module, modules

COUNT = int(os.environ.get("RELAXLANG_ROUND_TRIP", "400"))
SHARES = 4
GONE = (tir.Allocate, tir.AllocConst, tir.BufferRealize)
"""What no release since TVM 0.24 can say; since 0.26 there are no `SizeVar`s either."""
DIALECTS = ("tvm-0.11", "tvm-0.17", "tvm-0.22", "tvm-0.24", "tvm-0.27")
RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def check(mod: IRModule, **options: Any) -> None:
    """The round trip, and Python's own parser as a judge of the syntax."""
    text = mod.script(**options)
    ast.parse(text)
    again = relaxlang.parse(text)
    assert_structural_equal(again, mod)
    assert structural_hash(again) == structural_hash(mod)
    assert again.script(**options) == text


@pytest.mark.parametrize("share", range(SHARES))
def test_seeded_modules(share: int) -> None:
    for seed in range(share, COUNT, SHARES):
        mod = module(seeded(seed, FUEL))
        try:
            check(mod)
        except Exception as fault:
            fault.add_note(f"seed {seed}:\n{mod.script()}")
            raise


@given(modules())
@RELAXED
def test_drawn_modules(mod: IRModule) -> None:
    check(mod)


@pytest.mark.parametrize("options", [{"types": "all"}, {"width": 40}], ids=str)
def test_options(options: dict[str, Any]) -> None:
    for seed in range(COUNT // 8):
        check(module(seeded(f"options {seed}", FUEL)), **options)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects_are_read_back(dialect: str) -> None:
    for seed in range(COUNT // 8):
        mod = module(seeded(f"dialects {seed}", FUEL))
        gone = any(isinstance(n, GONE) for _, f in mod.prim_funcs() for n in walk(f))
        if not gone and not (dialect == "tvm-0.27" and "is_size_var" in mod.script()):
            check(mod, dialect=dialect)
