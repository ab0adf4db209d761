"""Targets: the processor that code is made for.

`Target("llvm -mcpu=znver4 -num-cores=2")`, the same as a mapping or as JSON, a tag (`raspberry-pi/4b-aarch64`), or None
and `llvm` alone for this machine with all its features.
"""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from typing import Any

from relaxlang.base.diagnostics import fail
from relaxlang.base.fingerprint import note_addition
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.configuration.host import this_machine
from relaxlang.ir.configuration.kinds import Codes, Kind, Kinds, Option, Value

_PROCESSOR = (
    Option("mcpu", str, None, "LLVM's name of the processor, as in `znver4`"),
    Option("mtriple", str, None, "the platform, as in `aarch64-linux-gnu`"),
    Option("mattr", str, None, "features to add and leave out: `+avx2,-fma`"),
    Option("num-cores", int, None, "threads that schedules plan for"),
    Option("opt-level", int, None, "how hard LLVM tries, 0 to 3"),
)
_NOTES = (
    Option("vector-width", int, None, "noted only"),
    Option("mabi", str, None, "noted only"),
    Option("mfloat-abi", str, None, "noted only"),
    Option("device", str, None, "noted only"),
    Option("model", str, None, "noted only"),
    Option("keys", str, None, "noted only"),
    Option("libs", str, None, "noted only"),
    Option("tag", str, None, "the tag that the target was named by"),
    Option("default", bool, None, "in a list of targets: the one of functions that name none"),
)
TARGETS = Kinds(
    "target",
    Codes("RLX5001", "RLX5002", "RLX5003"),
    (
        Kind("llvm", "code for every processor that LLVM knows; alone: this machine", (*_PROCESSOR, *_NOTES)),
        Kind("c", "portable C source", (Option("march", str, None, "noted only"), *_PROCESSOR, *_NOTES)),
    ),
)
"""The registry of target kinds."""

_PI = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "num-cores": 4}
_TAGS: dict[str, Mapping[str, Any]] = {
    "raspberry-pi/3b-aarch64": {**_PI, "mcpu": "cortex-a53"},
    "raspberry-pi/4b-aarch64": {**_PI, "mcpu": "cortex-a72"},
    "raspberry-pi/5-aarch64": {**_PI, "mcpu": "cortex-a76"},
    "aws/graviton2": {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1"},
    "aws/graviton3": {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-v1"},
    "arm/cortex-m4": {"kind": "llvm", "mtriple": "thumbv7em-none-eabi", "mcpu": "cortex-m4", "num-cores": 1},
    "arm/cortex-m7": {"kind": "llvm", "mtriple": "thumbv7em-none-eabi", "mcpu": "cortex-m7", "num-cores": 1},
    "riscv/rv64gc": {"kind": "llvm", "mtriple": "riscv64-linux-gnu", "mattr": "+m,+a,+f,+d,+c"},
    "wasm/wasm32": {"kind": "llvm", "mtriple": "wasm32-unknown-unknown", "num-cores": 1},
    "x86/v2": {"kind": "llvm", "mcpu": "x86-64-v2"},
    "x86/v3": {"kind": "llvm", "mcpu": "x86-64-v3"},
    "x86/v4": {"kind": "llvm", "mcpu": "x86-64-v4"},
}

DEFAULT = "default"
"""Among several targets: the name of the one of functions that state none; the option that marks it in a list."""

LEGACY = (
    "executor", "runtime", "unpacked-api", "interface-api", "link-params", "system-lib", "workspace-byte-alignment",
    "constant-byte-alignment",
)  # fmt: skip
"""Options that once stood on targets and are now those of executors and runtimes."""


_current: ContextVar[Target | None] = ContextVar("relaxlang_target", default=None)


_WITH_DOTS = ("znver4", "znver5", "cascadelake", "cooperlake", "icelake", "sapphirerapids", "graniterapids")


class Target:
    """What code is generated for. Immutable.

    `kind` is a registered kind, `options` those that are stated. `mcpu` and `mattr` (comma-separated, `+avx2,-fma`) are
    LLVM's processor and feature names, `mtriple` the platform; where none of them is stated they are this machine's.
    `num_cores` is the number of threads that schedules plan for (0: not stated), `opt_level` LLVM's level, `host` the
    target of code that runs beside. As a context manager it is what `build` takes when no target is given. Unknown
    kinds and options are RLX5001 and RLX5002, wrong values RLX5003.

    `legacy` holds the options of executors and runtimes that old target texts carry, for `build`; they are warned of.
    """

    __slots__ = ("kind", "options", "host", "legacy", "_token")

    def __init__(self, spec: Any = None, host: Any = None) -> None:
        self._token: Token[Target | None] | None = None
        self.legacy: dict[str, Any] = {}
        if isinstance(spec, Target):
            self.kind: str = spec.kind
            self.options: dict[str, Value] = spec.options
            self.host: Target | None = spec.host if host is None else as_target(host)
            self.legacy = spec.legacy
            return
        given = _mapping(spec)
        host = given.pop("host", None) if host is None else (given.pop("host", None), host)[1]
        kind = TARGETS.find(given.pop("kind", "llvm"))
        names = {o.name for o in kind.options}
        for name in LEGACY:
            if name in given and name not in names:
                self.legacy[name] = given.pop(name)
        if self.legacy:
            _warn(self.legacy)
        self.kind = kind.name
        self.options = dict(sorted(TARGETS.read(kind, given).items()))
        self.host = None if host is None else as_target(host)

    # --- the processor ------------------------------------------------------------------------------------------------
    @property
    def mcpu(self) -> str:
        """LLVM's name of the processor; for a target that states none, this machine's."""
        return self._text("mcpu") or ("" if self._text("mtriple") else this_machine().cpu)

    @property
    def mtriple(self) -> str:
        """The platform's triple."""
        return self._text("mtriple") or this_machine().triple

    @property
    def mattr(self) -> str:
        """LLVM's feature list; all features of this machine when no processor, platform or features are stated."""
        return this_machine().features if self.is_host else self._text("mattr")

    @property
    def is_host(self) -> bool:
        """Whether nothing about the processor is stated, so that this machine is meant."""
        return not (self._text("mcpu") or self._text("mtriple") or self._text("mattr"))

    @property
    def has_dots(self) -> bool:
        """Whether vectors of 512 bits of four bytes each, unsigned by signed, are multiplied and added up in one
        instruction (AVX512-VNNI)."""
        features = self.mattr.split(",")
        if not self.mtriple.startswith("x86_64") or {"-avx512vnni", "-avx512f"} & set(features):
            return False
        return "+avx512vnni" in features or self.mcpu.startswith(_WITH_DOTS)

    @property
    def num_cores(self) -> int:
        """The threads that schedules plan for; 0 when not stated."""
        return int(self.options.get("num-cores", 0))

    @property
    def opt_level(self) -> int:
        """LLVM's optimisation level, 0 to 3."""
        return int(self.options.get("opt-level", 2))

    def _text(self, name: str) -> str:
        return str(self.options.get(name, ""))

    # --- forms --------------------------------------------------------------------------------------------------------
    def to_attrs(self) -> Attrs:
        """The mapping that stands on a module, and that `Target` takes back."""
        host = {} if self.host is None else {"host": self.host.to_attrs()}
        return Attrs({"kind": self.kind, **self.options, **host})

    def export(self) -> dict[str, Any]:
        """The target as plain data, which `Target` takes back."""
        host = {} if self.host is None else {"host": self.host.export()}
        return {"kind": self.kind, **self.options, **host}

    def to_json(self) -> str:
        """The target as JSON, which `Target` takes back."""
        return json.dumps(self.export())

    def without(self, *names: str) -> Target:
        """The target without some options."""
        return Target({k: v for k, v in self.export().items() if k not in names})

    def __str__(self) -> str:
        return " ".join([self.kind, *(f"-{k}={shlex.quote(str(v))}" for k, v in self.options.items())])

    def __repr__(self) -> str:
        host = f", host={str(self.host)!r}" if self.host is not None else ""
        return f"Target({str(self)!r}{host})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and str(self) == str(other) and self.host == other.host

    def __hash__(self) -> int:
        return hash(str(self))

    # --- the target of a stretch of code ------------------------------------------------------------------------------
    @staticmethod
    def current() -> Target | None:
        """The innermost target entered by `with`."""
        return _current.get()

    def __enter__(self) -> Target:
        self._token = _current.set(self)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._token is not None:
            _current.reset(self._token)
            self._token = None

    # --- registries ---------------------------------------------------------------------------------------------------
    @staticmethod
    def list_registered() -> list[str]:
        """The names of all kinds."""
        return TARGETS.names()

    @staticmethod
    def list_registered_options(kind: str) -> dict[str, str]:
        """The options of a kind with the types of their values: `bool`, `int` or `str`."""
        return TARGETS.option_types(kind)


def as_target(spec: Any) -> Target:
    """`spec` as a Target: one already, a text, a mapping, or None for this machine."""
    return spec if isinstance(spec, Target) else Target(spec)


def read_targets(spec: Any) -> dict[str, Target]:
    """Targets by name: of one target in any form, of a mapping from names to targets, or of a list, whose entry marked
    `default` (or whose only one) is the default and whose others are named by their tag or text.

    RLX5027 when a list has several defaults.
    """
    if isinstance(spec, Mapping) and "kind" not in spec and spec and all(_is_target(v) for v in spec.values()):
        return {str(name): as_target(one) for name, one in spec.items()}
    if not isinstance(spec, Sequence) or isinstance(spec, str):
        return {DEFAULT: as_target(spec)}
    if not spec:
        fail("RLX5003", "the list of targets is empty")
    read = [as_target(one) for one in spec]
    marked = [t for t in read if t.options.get(DEFAULT)] or (read if len(read) == 1 else [])
    if len(marked) > 1:
        fail("RLX5027", f"{len(marked)} targets of the list are marked as the default: {', '.join(map(str, marked))}")
    return {DEFAULT if t in marked else str(t.options.get("tag", t)): t.without(DEFAULT) for t in read}


def _is_target(value: Any) -> bool:
    return isinstance(value, (Target, Mapping)) or (isinstance(value, str) and bool(value.strip()))


def register_tag(name: str, config: Mapping[str, Any], override: bool = False) -> None:
    """Let a text of this name stand for a target. RLX5025 when it is taken and `override` is not set."""
    if name in _TAGS and not override:
        fail("RLX5025", f"the target tag `{name}` exists already", help="pass `override=True` to replace it")
    _TAGS[name] = Target(config).export()
    note_addition(name)


def list_tags() -> dict[str, Target]:
    """The registered tags with their targets, by name."""
    return {name: Target(_TAGS[name]) for name in sorted(_TAGS)}


def _mapping(spec: Any) -> dict[str, Any]:
    """A target in any of its forms as a mapping with `-` in the names of options."""
    if isinstance(spec, Mapping):
        return {str(k).replace("_", "-"): _joined(v) for k, v in spec.items()}
    if spec is not None and not isinstance(spec, str):
        fail("RLX5003", f"a target is a text or a mapping, not {type(spec).__name__}")
    text = (spec or "llvm").strip()
    if not text.startswith("{"):
        return _parse(text)
    try:
        return _mapping(json.loads(text))
    except ValueError as error:
        fail("RLX5003", f"the target is no JSON: {str(error).lower()}")


def _joined(value: Any) -> Any:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _parse(text: str) -> dict[str, Any]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        fail("RLX5003", f"the target `{text}` cannot be read: {str(error).lower()}")
    kind = words.pop(0) if words and not words[0].startswith("-") else "llvm"
    given: dict[str, Any] = {**_TAGS[kind], "tag": kind} if kind in _TAGS else {"kind": kind}
    while words:
        name, equals, value = words.pop(0).partition("=")
        if not name.startswith("-"):
            fail("RLX5003", f"`{name}` in the target `{text}` is no option", help="options look like `-mcpu=znver4`")
        if not equals:
            value = words.pop(0) if words and not words[0].startswith("-") else "1"
        given[name.lstrip("-").replace("_", "-")] = value
    return given


def _warn(legacy: Mapping[str, Any]) -> None:
    options = ", ".join(f"`-{name}`" for name in legacy)
    warnings.warn(
        f"{options} in a target is deprecated: pass `executor=` and `runtime=` to `relaxlang.build`",
        DeprecationWarning,
        stacklevel=4,
    )
