"""Devices: where tensors live and kernels run. This release knows the host's processor only."""

from __future__ import annotations

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record


@record
class Device:
    """A device by `kind` (`cpu`) and `index` (from 0); `str()` gives `cpu:0`."""

    kind: str
    index: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"


def cpu(index: int = 0) -> Device:
    """The host's processor. Every index from 0 names the same one; RLX6016 for anything else."""
    if type(index) is not int or index < 0:
        fail("RLX6016", f"`{index!r}` is no device index", help="an index is a whole number from 0")
    return Device("cpu", index)


def as_device(value: object) -> Device:
    """The device that `value` means: a `Device`, a list of them (the first counts), or None for `cpu()`.

    Raises RLX6016 for anything else and for a device other than the CPU.
    """
    if value is None:
        return cpu()
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    if not isinstance(value, Device):
        fail("RLX6016", f"`{value!r}` is no device", help="use `relaxlang.cpu()`")
    if value.kind != "cpu":
        fail("RLX6016", f"there is no device `{value}`", help="this release runs on `cpu` only")
    return value
