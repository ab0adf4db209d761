"""Targets, executors and runtimes, and the configuration that they are together."""

import json
from typing import Any

import pytest

import relaxlang
from relaxlang import CompilerConfig, Executor, Runtime, Target
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.configuration.configure import configure
from relaxlang.ir.configuration.executor import EXECUTORS
from relaxlang.ir.configuration.function_targets import without_target
from relaxlang.ir.configuration.kinds import Codes, Kind, Kinds, Option
from relaxlang.ir.configuration.target import list_tags, read_targets, register_tag
from relaxlang.ir.module import IRModule

TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((8,), "float32")):
        R.func_attr({"target": MAIN})
        return R.call_tir(Module.double, (x,), out_sinfo=R.Tensor((8,), "float32"))

    @R.function
    def other(x: R.Tensor((8,), "float32")):
        R.func_attr({"target": OTHER})
        return R.call_tir(Module.double, (x,), out_sinfo=R.Tensor((8,), "float32"))

    @T.prim_func(private=True)
    def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] * T.float32(2)
"""


def module(main: str = "", other: str = "") -> IRModule:
    """A module of two functions that call one kernel, each with a target, or with none."""
    text = TEXT
    for place, target in (("MAIN", main), ("OTHER", other)):
        text = text.replace(f'        R.func_attr({{"target": {place}}})\n', "" if not target else
                            f'        R.func_attr({{"target": {target}}})\n')  # fmt: skip
    return relaxlang.parse(text)


def failure(function: Any, *args: Any, **named: Any) -> str:
    """Code, message and help of the error that a call raises."""
    with pytest.raises(DiagnosticError) as caught:
        function(*args, **named)
    fault = caught.value.diagnostics[0]
    return f"{fault.code} {fault.message} | {fault.help}"


# --- executors and runtimes -------------------------------------------------------------------------------------------
def test_executors_and_runtimes_have_all_their_options() -> None:
    assert Executor({"kind": "aot", "unpacked-api": True}) == Executor("aot", {"unpacked_api": 1})
    assert Executor("aot").options == {
        "unpacked-api": False, "interface-api": "packed", "workspace-byte-alignment": 16,
        "constant-byte-alignment": 16, "link-params": True,
    }  # fmt: skip
    assert not Executor("graph").flag("link-params") and Runtime("c++").kind == "cpp" and Runtime("crt").kind == "c"
    assert {"vm", "graph", "aot"} <= set(Executor.list_registered()) and Runtime.list_registered() == ["c", "cpp"]
    assert Executor.list_registered_options("aot")["workspace-byte-alignment"] == "int"
    assert Runtime.list_registered_options("crt") == {"system-lib": "bool", "link-params": "bool"}
    assert Executor("aot") != Runtime("c") and hash(Executor("vm")) == hash(Executor("vm"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Executor("gaph"), "RLX5022 unknown executor kind `gaph` | did you mean `graph`?"),
        (lambda: Runtime("rust"), "RLX5022 unknown runtime kind `rust` | runtime kinds are `cpp`, `c`"),
        (lambda: Executor({"unpacked-api": True}), "RLX5022 no executor kind is named"),
        (lambda: Executor("graph", {"unpacked-api": True}), "its options: `link-params` (bool)"),
        (lambda: Runtime("c", {"link_parms": True}), "did you mean `link-params`?"),
        (lambda: Executor("aot", {"unpacked-api": "yes"}), "RLX5024 the executor option `unpacked-api` takes a truth"),
        (lambda: Executor("aot", {"workspace-byte-alignment": -1}), "takes a whole number, not `-1`"),
        (lambda: Executor("aot", {"interface-api": "rust"}), "takes `packed` or `c`, not `rust`"),
        (lambda: Executor(3), "RLX5024 the executor is a name or a mapping"),
        (lambda: EXECUTORS.register(Kind("vm", "mine")), "RLX5025 executor `vm` exists already"),
    ],
)  # fmt: skip
def test_what_is_no_executor(make: Any, words: str) -> None:
    assert words in failure(make)


def test_kinds_of_ones_own() -> None:
    kinds = Kinds("engine", Codes("RLX5022", "RLX5023", "RLX5024"), ())
    kinds.register(Kind("steam", "hot", (Option("valves", int, None, "how many"),), ("old",)))
    assert kinds.names() == ["steam"] and kinds.find("old").name == "steam"
    assert kinds.read(kinds.find("steam"), {}) == {} and kinds.option_types("steam") == {"valves": "int"}
    kinds.register(Kind("steam", "hotter"), override=True)
    assert kinds.find("steam").help == "hotter"


# --- targets ----------------------------------------------------------------------------------------------------------
def test_forms_of_a_target() -> None:
    target = Target("llvm -mcpu=znver4 -num-cores=2", host="llvm -mcpu=x86-64")
    assert Target(target.to_json()) == Target(target.export()) == Target(target.to_attrs()) == target
    assert json.loads(target.to_json())["host"] == {"kind": "llvm", "mcpu": "x86-64"}
    assert Target({"kind": "llvm", "mattr": ["+avx2", "-fma"]}).options["mattr"] == "+avx2,-fma"
    assert str(target.without("num-cores")) == "llvm -mcpu=znver4" and target.without("mcpu").host == target.host
    with target:
        assert Target.current() == target
    assert Target.current() is None
    assert "RLX5003" in failure(Target, "{kind: llvm}") and "RLX5003" in failure(
        Target, '{"kind": "llvm", "opt-level": 1.5}'
    )


def test_tags() -> None:
    pi = Target("raspberry-pi/4b-aarch64 -num-cores=2")
    assert (pi.mcpu, pi.mtriple, pi.num_cores) == ("cortex-a72", "aarch64-linux-gnu", 2)
    assert "wasm/wasm32" in list_tags() and list_tags()["x86/v3"].mcpu == "x86-64-v3"
    register_tag("test/mine", {"kind": "llvm", "mcpu": "generic"}, override=True)
    assert Target("test/mine").mcpu == "generic" and "RLX5025" in failure(register_tag, "x86/v3", {"kind": "llvm"})


def test_old_targets_are_executors_and_runtimes() -> None:
    with pytest.deprecated_call(match="`-executor`, `-unpacked-api`"):
        old = Target("c -executor=aot -unpacked-api")
    assert old == Target("c")
    config = configure(module(), old)
    assert config.executor == Executor("aot", {"unpacked-api": True}) and config.runtime == Runtime("cpp")
    with pytest.deprecated_call():
        older = Target("llvm -runtime=c -system-lib=1 -link-params")
    assert configure(module(), older).runtime == Runtime("c", {"system-lib": True, "link-params": True})
    assert configure(module(), old, executor="vm").executor == Executor("vm")


def test_several_targets() -> None:
    assert read_targets("llvm") == read_targets(["llvm"]) == {"default": Target()}
    assert read_targets({"kind": "llvm", "mcpu": "x86-64"}) == {"default": Target("llvm -mcpu=x86-64")}
    listed = read_targets(["llvm -mcpu=x86-64 -default", "wasm/wasm32", "llvm -mcpu=znver4"])
    assert list(listed) == ["default", "wasm/wasm32", "llvm -mcpu=znver4"] and listed["default"].mcpu == "x86-64"
    assert "RLX5027 2 targets of the list are marked" in failure(
        read_targets, ["llvm -default", "llvm -mcpu=x -default"]
    )
    assert "RLX5003 the list of targets is empty" in failure(read_targets, [])


# --- targets of functions ---------------------------------------------------------------------------------------------
def test_functions_without_a_target_are_listed() -> None:
    assert without_target(module('"llvm"')) == ["other"]
    assert without_target(module()) == ["main", "other", "double"]
    assert "RLX5027 no target is given, and these functions have none: `other`" in failure(configure, module('"llvm"'))
    both = {"target": ["llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v3"]}
    assert "no default, and these functions have none: `main`, `other`, `double`" in failure(
        configure, module(), **both
    )
    assert configure(module('"llvm"'), "llvm").primitive_target == Target()
    assert configure(module('"x86/v2"', '"x86/v3"')).primitive_target is None


# --- the configuration on the module ----------------------------------------------------------------------------------
def test_configuration_lies_on_the_module() -> None:
    config = configure(module(), "llvm -mcpu=x86-64-v3", "llvm", {"kind": "graph", "link-params": True}, "cpp", "net")
    mod = config.put_on(module())
    assert CompilerConfig.of(mod) == config and CompilerConfig.of(module()) == CompilerConfig()
    assert dict(mod.attrs["Executor"]) == {"kind": "graph", "link-params": True}
    assert mod.attrs["targets"]["default"] == {"kind": "llvm", "mcpu": "x86-64-v3", "host": {"kind": "llvm"}}
    rest = mod.attrs["CompilerConfig"]
    assert rest["mod_name"] == "net" and rest["shape_target"] == rest["residual_target"] == {"kind": "llvm"}
    read = relaxlang.parse(mod.script())
    assert relaxlang.structural_equal(read, mod) and CompilerConfig.of(read) == config
    assert configure(mod) == config, "what the module says counts where no argument does"
    assert configure(mod, executor="vm").executor.kind == "vm"
    assert config.put_on(mod).attrs["frozen_attrs"] == mod.attrs["frozen_attrs"]


def test_host_by_both_ways() -> None:
    by_argument = configure(module(), "llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v2")
    in_target = configure(module(), Target("llvm -mcpu=x86-64", host="llvm -mcpu=x86-64-v2"))
    assert by_argument == in_target and by_argument.host_target == Target("llvm -mcpu=x86-64-v2")


@pytest.mark.parametrize(
    ("attrs", "code"),
    [
        ({"Executor": 3}, "RLX5024"), ({"Executor": {"kind": "x"}}, "RLX5022"), ({"targets": 3}, "RLX5003"),
        ({"CompilerConfig": 3}, "RLX5036"), ({"CompilerConfig": {"pass_context": 3}}, "RLX5036"),
        ({"frozen_attrs": 3}, "RLX3141"), ({"frozen_attrs": ["missing"]}, "RLX3141"),
    ],
)  # fmt: skip
def test_malformed_attributes(attrs: dict[str, Any], code: str) -> None:
    mod = module().with_attrs(Attrs(attrs))
    assert code in failure(lambda: configure(mod).put_on(mod))


def test_names_that_a_module_cannot_have() -> None:
    assert "RLX5036" in failure(configure, module(), mod_name="a b") and "RLX5036" in failure(
        relaxlang.build, module(), mod_name=""
    )
    assert "RLX5003" in failure(relaxlang.build, module("3", "3"))


def test_targets_on_a_module_may_be_a_list() -> None:
    mod = module().with_attrs(Attrs({"targets": ["llvm -mcpu=x86-64"]}))
    assert CompilerConfig.of(mod).primitive_target == Target("llvm -mcpu=x86-64")


@pytest.mark.parametrize(
    "target, host",
    [("llvm -mtriple=aarch64-linux-gnu", "llvm -mtriple=x86_64-linux-gnu"), ("llvm", "llvm -mtriple=wasm32-unknown")],
)
def test_a_host_of_another_architecture(target: str, host: str) -> None:
    assert "RLX5028" in failure(configure, module(), target, host)
    assert "RLX5028" in failure(configure, module(), Target(target, host=host))
    assert configure(module(), "c", host).targets["default"].kind == "c"
