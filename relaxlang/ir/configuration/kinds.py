"""Kinds with options: the registries of targets, executors and runtimes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from relaxlang.base.diagnostics import fail
from relaxlang.base.fingerprint import note_addition
from relaxlang.base.record import record
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir.attrs import Attrs

Value = bool | int | str
_TRUTH = {"1": True, "true": True, "0": False, "false": False}
_NAMES: dict[type, str] = {bool: "bool", int: "int", str: "str"}


@record
class Option:
    """An option of a kind: its name, the type of its value, the value it has when nobody says (None: it is left out),
    a line about it, and for a text the words it may be (empty: any)."""

    name: str
    type: type[bool] | type[int] | type[str]
    default: Value | None
    help: str
    words: tuple[str, ...] = ()

    @property
    def takes(self) -> str:
        """What the value is, in words."""
        if self.words:
            return " or ".join(f"`{word}`" for word in self.words)
        return {bool: "a truth value", int: "a whole number", str: "text"}[self.type]

    def accepts(self, value: Any) -> Value | None:
        """The option's value that a Python value or, for a command line, a text stands for; None when it is none."""
        if self.type is bool:
            text = str(value).lower()
            return _TRUTH.get(text) if isinstance(value, (bool, int, str)) else None
        if self.type is int:
            if isinstance(value, bool) or not isinstance(value, (int, str)) or not str(value).isdecimal():
                return None
            return int(value)
        if not isinstance(value, str) or (self.words and value not in self.words):
            return None
        return value


@record
class Kind:
    """A kind of target, executor or runtime: its name, a line about it, its options, other names for it."""

    name: str
    help: str
    options: tuple[Option, ...] = ()
    aliases: tuple[str, ...] = ()

    def option(self, name: str) -> Option | None:
        """The option of that name."""
        return next((o for o in self.options if o.name == name), None)


@record
class Codes:
    """The diagnostics of a registry: unknown kind, unknown option, wrong value of an option."""

    kind: str
    option: str
    value: str


class Kinds:
    """A registry of kinds. `what` they are (`executor`) stands in messages."""

    def __init__(self, what: str, codes: Codes, kinds: Iterable[Kind]) -> None:
        self.what = what
        self.codes = codes
        self._kinds: dict[str, Kind] = {}
        for kind in kinds:
            self._add(kind, override=False)

    def register(self, kind: Kind, override: bool = False) -> None:
        """Make a kind known under its name and aliases. RLX5025 when one is taken and `override` is not set."""
        self._add(kind, override)
        note_addition(kind.name)

    def _add(self, kind: Kind, override: bool) -> None:
        for name in (kind.name, *kind.aliases):
            if not override and self._find(name) is not None:
                fail("RLX5025", f"{self.what} `{name}` exists already", help="pass `override=True` to replace it")
        self._kinds[kind.name] = kind

    def kinds(self) -> list[Kind]:
        """All kinds, in the order in which they were registered."""
        return list(self._kinds.values())

    def names(self) -> list[str]:
        """The names of all kinds, sorted."""
        return sorted(self._kinds)

    def _find(self, name: str) -> Kind | None:
        return self._kinds.get(name) or next((k for k in self._kinds.values() if name in k.aliases), None)

    def find(self, name: object) -> Kind:
        """The kind of that name or alias; the registry's diagnostic for an unknown kind when there is none."""
        found = self._find(name) if isinstance(name, str) else None
        if found is None:
            near = name and did_you_mean(
                str(name), [*self._kinds, *(a for k in self._kinds.values() for a in k.aliases)]
            )
            listed = f"{self.what} kinds are {', '.join(f'`{k}`' for k in self._kinds)}"
            fail(
                self.codes.kind,
                f"no {self.what} kind is named" if name is None else f"unknown {self.what} kind `{name}`",
                help=f"did you mean `{near}`? {listed}" if near else listed,
            )
        return found

    def option_types(self, name: str) -> dict[str, str]:
        """The options of a kind with the types of their values: `bool`, `int` or `str`."""
        return {o.name: _NAMES[o.type] for o in self.find(name).options}

    def read(self, kind: Kind, given: Mapping[str, Any]) -> dict[str, Value]:
        """The options of a kind, those given and the defaults, in the kind's order.

        Names may be written with `_` for `-`. The registry's diagnostics for an option that the kind does not have and
        for a value of the wrong type.
        """
        known = {o.name: o for o in kind.options}
        values: dict[str, Value] = {o.name: o.default for o in kind.options if o.default is not None}
        for written, value in given.items():
            name = str(written).replace("_", "-")
            if name not in known:
                self._unknown_option(kind, name)
            read = known[name].accepts(value)
            if read is None:
                fail(
                    self.codes.value,
                    f"the {self.what} option `{name}` takes {known[name].takes}, not {_shown(value)}",
                    help=f"{name}: {known[name].help}",
                )
            values[name] = read
        return {name: values[name] for name in known if name in values}

    def _unknown_option(self, kind: Kind, name: str) -> None:
        near = did_you_mean(name, [o.name for o in kind.options])
        listed = ", ".join(f"`{o.name}` ({_NAMES[o.type]})" for o in kind.options) or "none"
        hint = f"did you mean `{near}`? " if near else ""
        fail(
            self.codes.option,
            f"the {self.what} `{kind.name}` has no option `{name}`",
            help=f"{hint}its options: {listed}",
        )


def _shown(value: Any) -> str:
    return f"`{value}`" if isinstance(value, (bool, int, float, str)) else f"`{type(value).__name__}`"


class Configured:
    """A kind of a registry with values of all its options: `kind`, `options`. Immutable."""

    __slots__ = ("kind", "options")
    REGISTRY: ClassVar[Kinds]

    def __init__(self, spec: Any, options: Mapping[str, Any] | None = None) -> None:
        kinds = self.REGISTRY
        if options is not None and not isinstance(options, Mapping):
            fail(kinds.codes.value, f"options are a mapping by name, not `{type(options).__name__}`")
        if isinstance(spec, Configured):
            spec = spec.to_attrs()
        given = dict(options or {})
        if isinstance(spec, Mapping):
            given = {**{k: v for k, v in spec.items() if k != "kind"}, **given}
            spec = spec.get("kind")
        elif not isinstance(spec, str):
            fail(kinds.codes.value, f"the {kinds.what} is a name or a mapping with `kind`, not `{type(spec).__name__}`")
        kind = kinds.find(spec)
        self.kind: str = kind.name
        self.options: dict[str, Value] = kinds.read(kind, given)

    @classmethod
    def list_registered(cls) -> list[str]:
        """The names of all kinds."""
        return cls.REGISTRY.names()

    @classmethod
    def list_registered_options(cls, kind: str) -> dict[str, str]:
        """The options of a kind with the types of their values: `bool`, `int` or `str`."""
        return cls.REGISTRY.option_types(kind)

    def __getitem__(self, name: str) -> Value:
        """The value of an option; KeyError when the kind has none of that name."""
        return self.options[name]

    def flag(self, name: str) -> bool:
        """Whether the kind has the option and it is on."""
        return self.options.get(name) is True

    def to_attrs(self) -> Attrs:
        """The mapping that stands on a module."""
        return Attrs({"kind": self.kind, **self.options})

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_attrs() == other.to_attrs()

    def __hash__(self) -> int:
        return hash((self.kind, *self.options.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.to_attrs())!r})"
