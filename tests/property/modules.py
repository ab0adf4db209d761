"""Random well-formed modules: functions of both levels, packed functions, attributes, global infos."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from relaxlang.base.dtype import dtype
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import AnyFunc, DummyGlobalInfo, IRModule, VDevice
from relaxlang.ir.prim import BOOL, HANDLE, INT64, IntImm
from tests.property import random_values as values
from tests.property.choices import Choices, Draw, drawn
from tests.property.random_functions import Functions
from tests.property.random_prim_funcs import PrimFuncs

NAMES = ("main", "f", "g", "f.g", "1st", "two words", "class", "é", "fused_add_relu", "R", "x", "", "helper", 'q"uote')
FUEL = 60


def module(c: Choices) -> IRModule:
    """A module of one to four functions."""
    devices = c.some(lambda: device(c), 0, 2) if c.chance(3) else ()
    infos: dict[str, tuple[Any, ...]] = {}
    if devices:
        infos["vdevice"] = devices
    if c.chance(4):
        infos["dummy"] = (DummyGlobalInfo(), DummyGlobalInfo())
    functions: dict[str, AnyFunc] = {}
    kernels = {}
    for rank in range(c.number(0, 2)):
        kernels[f"copy{rank}"] = rank
        functions[f"copy{rank}"] = copy(rank)
    relaxed = Functions(c, devices, kernels)
    for _ in range(c.number(1, 3)):
        name = unused(c, functions)
        attrs = {"global_symbol": name} if c.chance(4) is False else {}
        attrs |= {k: v for k, v in values.attributes(c).items() if k != "relax.force_pure"}
        kind = c.number(0, 5)
        if kind == 5:
            functions[name] = relax.ExternFunc(c.pick(values.TEXTS))
        elif kind <= 1:
            callees = tuple([(n, f.ret_type) for n, f in functions.items() if isinstance(f, tir.PrimFunc)])
            functions[name] = PrimFuncs(c, callees).function(Attrs(attrs))
        else:
            made = functions[name] = relaxed.function(Attrs(attrs))
            relaxed.others[name] = made
    return IRModule(functions, Attrs(values.attributes(c)), infos, c.pick(("Module", "M", "R", "x", "main")))


def unused(c: Choices, taken: dict[str, AnyFunc]) -> str:
    """A function's name that the module does not have."""
    free = [name for name in NAMES if name not in taken]
    return c.pick(free)


def device(c: Choices) -> VDevice:
    """A virtual device."""
    target = c.pick(("llvm", "cuda -arch=sm_80", Attrs({"kind": "llvm", "mcpu": "x"}), "metal"))
    return VDevice(target, c.number(0, 2), c.pick(("global", "local")))


def copy(rank: int) -> tir.PrimFunc:
    """A kernel that copies a float32 tensor of any shape of that rank."""
    of, dims = dtype("float32"), tuple([prim.Var(f"n{k}", INT64) for k in range(rank)])
    made = [tir.Buffer(n, dims, of, prim.Var(n, HANDLE, prim.PointerType(of))) for n in ("A", "B")]
    params = tuple([prim.Var(n, HANDLE) for n in ("a", "b")])
    axes = tuple(
        [tir.IterVar(prim.Var(f"v{k}", INT64), tir.Range(IntImm(INT64, 0), n), "spatial") for k, n in enumerate(dims)]
    )
    loops = tuple([prim.Var(f"i{k}", INT64) for k in range(rank)])
    at = tuple([axis.var for axis in axes])
    store = tir.BufferStore(made[1], prim.BufferLoad(made[0], at), at)
    true = IntImm(BOOL, 1)
    body: tir.Stmt = tir.BlockRealize(loops, true, tir.Block(axes, None, None, "copy", store))
    for var, n in reversed(list(zip(loops, dims))):
        body = tir.For(var, IntImm(INT64, 0), n, "serial", body)
    root = tir.BlockRealize((), true, tir.Block((), (), (), "root", body))
    return tir.PrimFunc(params, root, dict(zip(params, made)), None, Attrs({}))


@st.composite
def modules(draw: Draw, fuel: int = FUEL) -> IRModule:
    """Well-formed modules."""
    return module(drawn(draw, fuel))
