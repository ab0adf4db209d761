"""`build`: what it takes, and what it writes onto the module."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang import CompilerConfig, Executor, Runtime, Target
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen.compilers import register_compiler
from relaxlang.codegen.executors import register_executor
from relaxlang.codegen.vm_module import build_vm
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.configuration.frozen import freeze_attrs
from relaxlang.ir.configuration.kinds import Kind, Option
from relaxlang.ir.module import IRModule
from relaxlang.passes.base import Pass, PassContext, PassInstrument
from relaxlang.passes.pipelines import pipeline, register_pass, register_pipeline
from relaxlang.runtime.module import VMExecutorFactory

STATIC = relaxlang.parse("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
        y = R.call_tir(Module.double, (R.add(x, w),), out_sinfo=R.Tensor((4,), "float32"))
        return y

    @T.prim_func
    def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)
""")
KERNEL = relaxlang.parse("""
@T.prim_func
def double(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
    for i in range(n):
        B[i] = A[i] * T.float32(2)
""")
X = np.arange(4, dtype=np.float32)
W = np.ones(4, np.float32)


def failure(function: Any, *args: Any, **named: Any) -> str:
    with pytest.raises(DiagnosticError) as caught:
        function(*args, **named)
    return str(caught.value)


class Watch(PassInstrument):
    """Notes the configuration that each pass can read."""

    def __init__(self) -> None:
        self.seen: list[CompilerConfig] = []

    def after(self, mod: IRModule, step: Pass) -> None:
        self.seen.append(CompilerConfig.of(mod))


@pytest.mark.parametrize("executor", ["vm", "graph", Executor("graph", {"link-params": True})])
def test_every_argument(executor: Any) -> None:
    watch = Watch()
    context = PassContext(config={"mine": [1, "two"], "other": object()}, instruments=[watch], disabled=["merge-loops"])
    built = relaxlang.build(
        STATIC, Target("llvm -num-cores=1"), "llvm", executor, Runtime("cpp"), {"w": W}, "net", "default", context
    )
    np.testing.assert_array_equal(built["main"](X), 2 * (X + W))
    config = CompilerConfig.of(built.ir_module)
    assert config.executor == Executor(executor) and config.mod_name == "net" and config.primitive_target.num_cores == 1
    assert len(watch.seen) > 10 and all(seen == config for seen in watch.seen)
    assert config.pass_context == Attrs(
        {"opt_level": 2, "disabled": ["merge-loops"], "config": {"mine": [1, "two"], "other": "<object>"}}
    )
    assert context.target is None and context.evaluate is None, "a context serves for many compilations"
    again = relaxlang.build(relaxlang.parse(built.ir_module.script()))
    assert type(again) is type(built) and CompilerConfig.of(again.ir_module).executor == config.executor
    np.testing.assert_array_equal(again["main"](X), 2 * (X + W))


@pytest.mark.parametrize("executor", ["vm", "graph"])
def test_modules_of_kernels_alone_have_no_executor(executor: str) -> None:
    built = relaxlang.build(KERNEL, executor=executor)
    out = np.zeros(4, np.float32)
    built["double"](X, out)
    np.testing.assert_array_equal(out, 2 * X)
    assert built.function_names == ["double"] and "create_executor" not in built
    assert "RLX6008" in failure(built.create_executor)
    assert CompilerConfig.of(built.ir_module).executor.kind == executor


@pytest.mark.parametrize("executor", ["vm", "graph"])
def test_kernels_of_a_mixed_module(executor: str) -> None:
    built, out = relaxlang.build(STATIC, executor=executor), np.zeros(4, np.float32)
    built["double"](X, out)
    np.testing.assert_array_equal(out, 2 * X)
    machine = built["default"](relaxlang.cpu())
    np.testing.assert_array_equal(machine["main"](X, W), 2 * (X + W))
    machine["double"](W, out)
    np.testing.assert_array_equal(out, 2 * W)


def test_targets_of_functions() -> None:
    text = STATIC.script().replace(
        "cls = Module", 'R.func_attr({"target": {"kind": "llvm", "mcpu": "x86-64-v2"}})\n        cls = Module'
    )
    built = relaxlang.build(relaxlang.parse(text), {"default": "llvm -mcpu=x86-64"})
    assert {o.cpu for o in built.executable.objects} == {"x86-64-v2", "x86-64"}
    np.testing.assert_array_equal(built["main"](X, W), 2 * (X + W))


def test_shapes_are_computed_on_the_host() -> None:
    text = '@R.function\ndef main(x: R.Tensor((n, m), "float32")):\n    return R.reshape(x, (n * m,))\n'
    built = relaxlang.build(relaxlang.parse(text), "llvm -mcpu=x86-64-v2", "llvm -mcpu=x86-64")
    names = [k.name for k in built.executable.kernel_signatures()]
    cpus = dict(zip(names, (o.cpu for o in built.executable.objects), strict=True))
    assert set(cpus.values()) == {"x86-64", "x86-64-v2"} and cpus["shape_func"] == "x86-64"
    np.testing.assert_array_equal(built["main"](np.ones((2, 3), np.float32)), np.ones(6))


@pytest.mark.parametrize("executor", ["graph", "vm"])
def test_every_stage_of_lowering_builds(executor: str) -> None:
    passes = pipeline("default").passes
    for end in range(len(passes) + 1):
        lowered = relaxlang.lower(STATIC, passes[:end])
        built = relaxlang.build(lowered, executor=executor, pipeline="minimum")
        np.testing.assert_array_equal(built["main"](X, W), 2 * (X + W), str(end))


def test_targets_that_an_executor_cannot_use() -> None:
    assert "RLX5028" in failure(relaxlang.build, STATIC, "c") and "`llvm`" in failure(relaxlang.build, STATIC, "c")
    assert "RLX5028" in failure(relaxlang.build, STATIC, runtime="c", executor="graph")
    assert "RLX5022" in failure(relaxlang.build, STATIC, executor="gaph")
    assert "RLX5002" in failure(relaxlang.build, STATIC, "llvm -mcup=x")
    foreign = relaxlang.build(STATIC, "riscv/rv64gc")
    assert "RLX5018" in failure(lambda: foreign["main"](X, W))


def test_executors_of_ones_own() -> None:
    seen: list[CompilerConfig] = []

    def back_end(lowered: IRModule, config: CompilerConfig) -> Any:
        seen.append(config)
        return build_vm(lowered, config)

    kind = Kind("mine", "a machine with a name of its own", (Option("speed", int, 3, "how fast"),), ("own",))
    register_executor(kind, back_end, override=True)
    built = relaxlang.build(STATIC, executor={"kind": "own", "speed": 9})
    assert isinstance(built, VMExecutorFactory) and seen[0].executor["speed"] == 9
    assert "mine" in Executor.list_registered()


# --- frozen attributes ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class DropAttrs(Pass):
    """Forgets what it does not know."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_attrs(Attrs({k: v for k, v in mod.attrs.items() if k != "Executor"}))


@dataclass(frozen=True)
class ChangeAttrs(Pass):
    """Changes an attribute."""

    value: int = 0

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_attrs(mod.attrs.set("mine", self.value))


def test_a_pass_that_loses_a_frozen_attribute_is_stopped() -> None:
    assert "RLX3140" in failure(relaxlang.build, STATIC, pipeline=[DropAttrs()])
    assert "the pass `drop-attrs` drops the attribute `Executor`" in failure(
        relaxlang.build, STATIC, pipeline=[DropAttrs()]
    )
    mod = freeze_attrs(STATIC.with_attrs(Attrs({"mine": 1, "free": 2})), "mine")
    assert ChangeAttrs(1)(mod).attrs["mine"] == 1
    assert "the pass `change-attrs` changes the attribute `mine`" in failure(ChangeAttrs(2), mod)
    assert "free" in DropAttrs()(mod).attrs and "RLX3141" in failure(freeze_attrs, mod, "nothing")
    assert relaxlang.parse(mod.script()).attrs["frozen_attrs"] == ("mine",)


# --- compilers of single functions ------------------------------------------------------------------------------------
PARTS = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = Module.part(x)
        b = Module.other(a)
        return R.add(a, b)

    @R.function
    def part(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"target": {"kind": "llvm", "compiler": "graph"}})
        return R.exp(Module.helper(x))

    @R.function(private=True)
    def helper(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.multiply(x, x)

    @R.function
    def other(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"target": {"kind": "llvm", "compiler": "NAME"}})
        return R.negative(x)
"""


@pytest.mark.parametrize("name", ["vm", "interpreter", "test.negate"])
def test_functions_of_one_module_by_different_compilers(name: str) -> None:
    register_compiler("test.negate", lambda mod, name, config, context: lambda x: -np.asarray(x), override=True)
    built = relaxlang.build(relaxlang.parse(PARTS.replace("NAME", name)), "llvm")
    np.testing.assert_allclose(built["main"](X), np.zeros(4), atol=1e-6)
    np.testing.assert_allclose(built["part"](X), np.exp(X * X), rtol=1e-6)
    np.testing.assert_array_equal(built["default"]()["other"](X), -X)
    assert "helper" not in built.ir_module and [*built.imports] == ["part"] + ["other"] * (name != "vm")
    assert "RLX6019" in failure(built.export_library, "x.rlxe")


def test_compilers_that_do_not_exist() -> None:
    mod = relaxlang.parse(PARTS.replace("NAME", "grap"))
    said = failure(relaxlang.build, mod, "llvm")
    assert "RLX5033" in said and "`other`" in said and "did you mean `graph`?" in said and "`interpreter`" in said
    assert "RLX5025" in failure(register_compiler, "vm", lambda *args: None)
    asked = relaxlang.parse(PARTS.replace('"compiler": "NAME"', '"executor": "tensorrt"'))
    assert "the compiler `tensorrt`" in failure(relaxlang.build, asked, "llvm")


# --- pipelines of ones own --------------------------------------------------------------------------------------------
def test_passes_go_where_they_are_wanted() -> None:
    whole = pipeline("default")
    before = whole.insert_before("fuse-ops", ChangeAttrs(1), ChangeAttrs(2))
    after = whole.insert_after("fuse-ops", ChangeAttrs(3)).without("merge-loops")
    names = [step.name for step in before.passes]
    assert names[names.index("fuse-ops") - 2 :][:3] == ["change-attrs", "change-attrs", "fuse-ops"]
    assert "merge-loops" not in str(after) and "fuse-ops,change-attrs{value=3}" in str(after)
    built = relaxlang.build(STATIC, pipeline=before)
    assert built.ir_module.attrs["mine"] == 2
    np.testing.assert_array_equal(built["main"](X, W), 2 * (X + W))
    assert "RLX3101" in failure(whole.insert_before, "fuse-opz", ChangeAttrs())
    assert "RLX3101" in failure(whole.without, "nothing")


def test_names_for_passes_and_pipelines() -> None:
    register_pass(ChangeAttrs, override=True)
    register_pipeline("test-mine", lambda: pipeline("change-attrs{value=7},default"))
    assert relaxlang.build(STATIC, pipeline="test-mine").ir_module.attrs["mine"] == 7
    assert "RLX3102" in failure(pipeline, "change-attrs{speed=1}") and "RLX3106" in failure(register_pass, ChangeAttrs)
