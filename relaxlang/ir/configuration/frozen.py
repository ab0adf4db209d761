"""Frozen attributes: those of a module that passes must leave as they are.

The attribute `frozen_attrs` lists their names, itself among them; the pass context compares them after every pass.
"""

from __future__ import annotations

from typing import NoReturn

from relaxlang.base.diagnostics import fail
from relaxlang.ir.module import IRModule

FROZEN = "frozen_attrs"


def freeze_attrs(mod: IRModule, *names: str) -> IRModule:
    """The module with some more of its attributes frozen. RLX3141 for one that it does not have."""
    for name in names:
        if name not in mod.attrs:
            fail("RLX3141", f"the module has no attribute `{name}` to freeze")
    listed = tuple(dict.fromkeys((*frozen_names(mod), *names)))
    return mod.with_attrs(mod.attrs.set(FROZEN, listed))


def frozen_names(mod: IRModule) -> tuple[str, ...]:
    """The names of a module's frozen attributes. RLX3141 when the list of them is none."""
    listed = mod.attrs.get(FROZEN, ())
    if not isinstance(listed, tuple) or not all(isinstance(name, str) for name in listed):
        fail("RLX3141", f"`{FROZEN}` is a list of names, not `{listed}`")
    return listed


def check_frozen(before: IRModule, after: IRModule, step: str) -> None:
    """RLX3140 when a pass dropped or changed a frozen attribute."""
    if after.attrs is before.attrs or FROZEN not in before.attrs:
        return
    from relaxlang.ir.structural import structural_equal

    listed = frozen_names(before)
    for name in listed:
        if name not in after.attrs:
            _stop(step, "drops", name)
        old, new = before.attrs.get(name), after.attrs.get(name)
        if old is not new and not structural_equal(old, new):
            _stop(step, "changes", name)
    if not set(listed) <= set(frozen_names(after)):
        _stop(step, "changes", FROZEN)


def _stop(step: str, does: str, name: str) -> NoReturn:
    fail(
        "RLX3140",
        f"the pass `{step}` {does} the attribute `{name}`, which is frozen",
        help="a pass that makes a new module keeps the attributes of the old one: `mod.with_functions(…)`",
    )
