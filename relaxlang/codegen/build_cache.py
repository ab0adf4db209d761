"""Whole programs on disk: a text that was built once, by any process, is not built again.

An entry of the store `BUILDS` is named by everything that determines the program: what the module was read from (see
`syntax.origin`), what `build` was asked for, relaxlang and what it stands on, and this machine. It holds the
executable; large constants stand beside it and are mapped. What has no such name is built each time: modules that were
made or changed in Python, passes and instruments of the caller's own, functions that another compiler made.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from relaxlang.base.config import config, usable_processors
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.fingerprint import has_additions
from relaxlang.base.store import BUILDS, Stamp, key_of, this_boot
from relaxlang.codegen.cache import llvm
from relaxlang.ir.configuration.executor import Executor
from relaxlang.ir.configuration.host import this_machine
from relaxlang.ir.configuration.runtime import Runtime
from relaxlang.ir.configuration.target import LEGACY, Target
from relaxlang.ir.module import IRModule
from relaxlang.passes.base import PassContext
from relaxlang.runtime.draft import Draft
from relaxlang.runtime.exec_file import as_value, from_value
from relaxlang.runtime.exec_values import Outside, ValueReader, encode_value
from relaxlang.runtime.executable import Executable
from relaxlang.runtime.memory import lasting_memory
from relaxlang.runtime.module import RuntimeModule, VMExecutorFactory, link, runtime_module
from relaxlang.syntax.origin import Origin

WORTHWHILE = 0.15
"""Seconds of reading and building from which on a program is kept."""
OUTSIDE = 1 << 12
"""Bytes of a constant from which on it is mapped."""
MANY = 32 << 20
"""Bytes of constants that take longer to make room for than to start a thread."""
WRITTEN = 60
"""Seconds after which an operating system has written to the disk what it keeps in memory of a file."""
PIPELINES = frozenset({"default", "minimum", "O0", "O1", "O2", "O3"})
"""Pipelines that depend on nothing but the module and the target."""


_Kept: TypeAlias = tuple[bytes, str, Stamp, str]
"""What is kept of an executable: the payload, the name and the stamp of the file with its large constants, and the boot
of the machine for which alone that file is good, because it may not be on the disk yet."""


class Build:
    """A build that the cache may know: made before the work begins, for which it measures the time."""

    def __init__(self, key: str, origin: Origin) -> None:
        self._key = key
        self._origin = origin
        self._start = time.process_time()

    @contextmanager
    def memory(self) -> Iterator[None]:
        """Within it constants are made where they will be kept. Where there will be many, a thread makes room for them
        meanwhile."""
        room = self._origin.large
        if room >= MANY and min(config.num_threads, usable_processors()) > 1 and self._draft is not None:
            self._draft.prepare(room)
        with lasting_memory(self._take):
            yield

    def _take(self, nbytes: int) -> np.ndarray[Any, Any] | None:
        return self._draft.take(nbytes) if nbytes >= OUTSIDE and self._draft is not None else None

    @cached_property
    def _draft(self) -> Draft | None:
        return Draft.begin(BUILDS)

    def find(self) -> RuntimeModule | None:
        """The program, linked into this process; None when it has to be built."""
        stored = BUILDS.read(self._key)
        if stored is None:
            return None
        try:
            exec_mode, is_linked, name, stamp, boot, payload = ValueReader(memoryview(stored)).read_all()
            if boot not in ("", this_boot()):
                return None  # the data may never have got to the disk, which no stamp would tell
            data = BUILDS.map_data(self._key, name, Stamp(*stamp)) if name else memoryview(b"")
            if data is None:
                return None
            executable = from_value(ValueReader(memoryview(payload), data).read_all())
            made = runtime_module(executable, link(executable))
        except (DiagnosticError, TypeError, ValueError, AttributeError, IndexError):
            return None  # of another format, or what it needs of this process is not there: building tells
        if boot and time.time() - Stamp(*stamp).modified * 1e-9 > WRITTEN and BUILDS.sync_data(self._key, name):
            BUILDS.write(self._key, encode_value((exec_mode, is_linked, name, stamp, "", payload)))
        if self._origin.seconds:  # its files were touched, and are the same all the same
            self._origin.keep()
        made.exec_mode = exec_mode
        if is_linked:
            made.linked = True
        return made

    def keep(self, built: RuntimeModule) -> None:
        """Put a program into the cache, if it is of a kind that can be and took long enough."""
        executable = built.executable
        here = bool(built.kernels) or not executable.objects
        if built.imports or not here or not _has_functions(built):
            return
        if time.process_time() - self._start + self._origin.seconds < WORTHWHILE:
            return
        self._write(executable, built.exec_mode, built.linked)
        self._origin.keep()

    def _write(self, executable: Executable, exec_mode: str, is_linked: bool) -> None:
        value = as_value(executable)
        kept = self._publish(value) or self._copy(value)
        if kept is not None:
            payload, name, stamp, boot = kept
            content = encode_value((exec_mode, is_linked, name, tuple(stamp), boot, payload))
            BUILDS.write(self._key, content, stamp.size)

    def _publish(self, value: tuple[Any, ...]) -> _Kept | None:
        """An executable with its large constants where they were made. None when it has none, where there can be no
        draft, and when there is no room for those that are elsewhere."""
        draft, boot = self._draft, this_boot()
        if draft is None or not boot:
            return None
        outside = _InDraft(draft)
        try:
            payload = encode_value(value, outside)
        except MemoryError:
            return None
        published = draft.publish(BUILDS, self._key) if draft.size else None
        return None if published is None else (payload, *published, boot)

    def _copy(self, value: tuple[Any, ...]) -> _Kept | None:
        """An executable with copies of its large constants, if it has any. None when they cannot be written."""
        outside = Outside(OUTSIDE)
        payload = encode_value(value, outside)
        if not outside.size:
            return payload, "", Stamp(0, 0, 0, 0, 0), ""
        written = BUILDS.write_data(self._key, outside.pieces(), outside.size)
        return None if written is None else (payload, *written, "")


class _InDraft(Outside):
    """Large tensors in a draft: those that lie there, and copies of the others. MemoryError when there is no room."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(OUTSIDE)
        self._draft = draft
        self._copies: dict[int, tuple[int, np.ndarray[Any, Any], object]] = {}

    def place(self, tensor: np.ndarray[Any, Any]) -> int:
        there = self._draft.offset(tensor)
        if there is not None:
            return there
        known = self._copies.get(id(tensor))
        if known is None:
            piece = self._draft.take(tensor.nbytes)
            if piece is None:
                raise MemoryError
            made = np.ndarray(tensor.shape, tensor.dtype, piece)
            np.copyto(made, tensor)
            at = self._draft.offset(made)
            assert at is not None
            known = self._copies[id(tensor)] = (at, made, tensor)
        return known[0]


def _has_functions(built: RuntimeModule) -> bool:
    """Whether a program is of a kind that the cache keeps: not kernels alone, nor one of a back end of its own."""
    if type(built) is VMExecutorFactory:
        return True
    from relaxlang.runtime.graph_module import GraphExecutorFactory  # here, because most programs have no graphs

    return type(built) is GraphExecutorFactory


def build_of(
    mod: IRModule, arguments: tuple[Any, ...], pipeline: object, context: PassContext, by: str = "build"
) -> Build | None:
    """The build of a module with the arguments of `build` (target, host, executor, runtime, parameters, name); None
    when the cache cannot know it. `by` is who puts the passes in sequence: two who do it in their own ways may make
    programs that differ."""
    origin = mod.origin
    if not isinstance(origin, Origin) or BUILDS.folder is None or has_additions():
        return None
    if context.has_own_code or not isinstance(pipeline, str) or pipeline not in PIPELINES:
        return None
    text = origin.digest(mod)
    if text is None:
        return None
    settings = (context.target, context.opt_level, sorted(context.disabled), context.config)
    try:
        said = _said((*arguments, Target.current(), *settings))
        targets = _said(arguments[:2]).replace("_", "-")
    except TypeError:
        return None
    if any(option in targets for option in LEGACY):
        return None  # which is warned of at every build
    return Build(key_of(text, by, pipeline, said, *this_machine(), llvm(), sys.byteorder), origin)


def _said(value: object) -> str:
    """A text of everything that an argument says. TypeError for what has none."""
    if isinstance(value, (Target, Executor, Runtime)):
        return f"{type(value).__name__}{_said((value.to_attrs(), getattr(value, 'legacy', None)))}"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_said(k)}:{_said(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return "(" + ",".join(map(_said, value)) + ")"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcV" and value.dtype.names is None:
        digest = hashlib.sha256(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data).hexdigest()
        return f"array {value.dtype!r} {value.shape} {digest}"
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    raise TypeError(f"a `{type(value).__name__}` does not tell all that it is")
