"""Tensor intrinsics: what a piece of hardware (or of hand-written code) computes, and how it is made to."""

from __future__ import annotations

from relaxlang.base.diagnostics import fail
from relaxlang.base.fingerprint import note_addition
from relaxlang.base.record import record
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir.tir import PrimFunc

_registered: dict[str, TensorIntrin] = {}


@record
class TensorIntrin:
    """Two PrimFuncs of the same parameters, buffers of constant shape: `desc` says in loops what `impl` does.

    TensorIntrin.register("dot_4x16", desc, impl)
    sch.tensorize(loop, "dot_4x16")
    """

    desc: PrimFunc
    impl: PrimFunc

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> None:
        """Give an intrinsic a name, for `Schedule.tensorize`. RLX1013: it is taken, or the parameters differ."""
        if name in _registered and not override:
            fail("RLX1013", f"there is an intrinsic `{name}` already", help="`override=True` replaces it")
        shapes = [[f.buffer_map[p].shape for p in f.params if p in f.buffer_map] for f in (desc, impl)]
        if shapes[0] != shapes[1] or any(len(s) != len(f.params) for s, f in zip(shapes, (desc, impl))):
            fail("RLX1013", f"the description and the implementation of `{name}` differ in their parameters")
        _registered[name] = TensorIntrin(desc, impl)
        note_addition(name)

    @staticmethod
    def get(name: str) -> TensorIntrin:
        """The intrinsic of that name. RLX1001: there is none."""
        found = _registered.get(name)
        if found is None:
            near = did_you_mean(name, list(_registered))
            fail("RLX1001", f"there is no intrinsic `{name}`", help=f"did you mean `{near}`?" if near else "")
        return found
