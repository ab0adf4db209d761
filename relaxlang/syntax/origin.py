"""Modules that come from a text or a model file, which need not be read again.

What was built before, without errors and warnings, is known (the store `TEXTS`): then nobody has to read it to find out
whether it is right, and its module is made when somebody looks at it. Whoever builds it may not need to.
"""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaxlang.base.config import config
from relaxlang.base.diagnostics import Diagnostic, WarningSink, fail
from relaxlang.base.fingerprint import fingerprint, has_additions
from relaxlang.base.source import Source
from relaxlang.base.store import TEXTS, key_of
from relaxlang.ir.module import IRModule
from relaxlang.syntax.inputs import Inputs

Elaborate = Callable[[WarningSink | None, Inputs], IRModule]
"""Reads what a module comes from: hands over its warnings, notes what else it read."""


class Origin:
    """Where a module comes from: a text or a model, with what it was read with. `seconds` is the CPU time that reading
    took, 0 when it was not necessary.

    `names_content`: what is taken from side files is named by its content, as in texts; else their stamps tell of it.
    """

    def __init__(self, name: str, key: str, elaborate: Elaborate, names_content: bool) -> None:
        self.name = name
        self.seconds = 0.0
        self._names_content = names_content
        self._key = key
        self._elaborate = elaborate
        self._inputs: Inputs | None = None
        self._state: list[object] = []
        self._faultless = False

    def module(self, warnings: WarningSink | None = None) -> IRModule:
        """The module: read now, or when somebody looks at it if it was built before."""
        return IRModule.unread(self) if self.is_known() else self.read(warnings)

    def read(self, warnings: WarningSink | None = None) -> IRModule:
        """The module, read now."""
        found: list[Diagnostic] = []

        def warn(diagnostic: Diagnostic) -> None:
            found.append(diagnostic)
            if warnings is not None:
                warnings(diagnostic)

        inputs, start = Inputs(), time.process_time()
        module = self._elaborate(warn, inputs)
        self.seconds = time.process_time() - start
        if self._inputs is not None and not self._are_the_same(inputs, self._inputs):
            included = f"files that `{self.name}` includes"
            code, what = ("RLX0150", included) if self._names_content else ("RLX8001", f"`{self.name}` or its weights")
            fail(code, f"{what} have changed since it was loaded", help="load it again")
        self._inputs, self._faultless = inputs, not found
        self._state = _state(module)
        module.origin = self
        return module

    @property
    def large(self) -> int:
        """The bytes of the arrays that the module has in a file as yet; 0 for one that was not read."""
        return 0 if self._inputs is None else self._inputs.large

    def is_known(self) -> bool:
        """Whether the text was built before, and nothing that it is made of has changed since."""
        stored = TEXTS.read(self._key)
        if stored is None:
            return False
        try:
            inputs = Inputs.from_json(stored)
        except (ValueError, TypeError):
            return False
        if not inputs.are_unchanged():
            return False
        self._inputs, self._faultless = inputs, True
        return True

    def keep(self) -> None:
        """Make the text known, unless it cannot be told whether what it is made of has changed meanwhile."""
        inputs = self._inputs
        if inputs is not None and self._faultless and inputs.settled and inputs.are_unchanged():
            TEXTS.write(self._key, inputs.to_json())

    def digest(self, mod: IRModule) -> str | None:
        """A digest of all that the module was read from; None when it is not (any more) what the text says, and when
        reading it again would give warnings."""
        if self._inputs is None or not self._faultless or (mod.is_read and not self._made(mod)):
            return None
        stamps = () if self._names_content else [repr(side_file) for side_file in self._inputs.side_files]
        return key_of(self._key, *(digest for _, _, digest in self._inputs.files), *stamps)

    def _are_the_same(self, inputs: Inputs, known: Inputs) -> bool:
        """Whether two readings were made of the same."""
        return inputs.files == known.files and (self._names_content or inputs.side_files == known.side_files)

    def _made(self, mod: IRModule) -> bool:
        """Whether a module is the one that was read, part by part."""
        state = _state(mod)
        return len(state) == len(self._state) and all(map(operator.is_, state, self._state))


def origin_of(
    source: Source,
    elaborate: Elaborate,
    values: Mapping[str, Any],
    check: bool,
    roots: Sequence[str],
    part: tuple[int, int] | None,
) -> Origin | None:
    """The origin of the module that a text states; None when nothing may be remembered of it."""
    if not all(map(is_plain, values.values())):
        return None
    try:
        folders = [os.path.realpath(folder) for folder in (os.path.dirname(source.name), *roots)]
    except ValueError:  # a name that no folder can have
        return None
    said = repr((sorted(values.items()), check, folders, part))
    return _origin(source.name, (source.name, said, source.text), elaborate, names_content=True)


def origin_of_file(name: str, parts: Sequence[str], elaborate: Elaborate) -> Origin | None:
    """The origin of a module that is determined by these parts and by the side files that reading it notes; None when
    nothing may be remembered."""
    return _origin(name, parts, elaborate, names_content=False)


def _origin(name: str, parts: Sequence[str], elaborate: Elaborate, names_content: bool) -> Origin | None:
    if config.cache_dir is None or config.check or has_additions():
        return None
    return Origin(name, key_of(fingerprint(), *parts), elaborate, names_content)


def is_plain(value: object) -> bool:
    """Whether the `repr` of a value says all of it."""
    if isinstance(value, (tuple, list)):
        return all(map(is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def _state(mod: IRModule) -> list[object]:
    """What a module consists of, to be compared by identity."""
    mappings: tuple[Mapping[str, object], ...] = (mod.functions, mod.global_infos, mod.operators, mod.python, mod.rules)
    return [mod.attrs, mod.name, *(part for mapping in mappings for item in mapping.items() for part in item)]
