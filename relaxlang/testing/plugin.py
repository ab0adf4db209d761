"""The pytest plugin: collects `.rlx` and `.session` tests, and gives the option `--bless` and the fixture `golden`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.base.files import write_atomically
from relaxlang.testing.kinds import Check, Mismatch, checks_of, diff
from relaxlang.testing.sessions import check_session, is_session


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--bless`."""
    group = parser.getgroup("relaxlang")
    group.addoption("--bless", action="store_true", help="rewrite golden files to what came out instead of failing")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    """Collect the `.rlx` files that stand in a directory `rlx/<kind>`, and the `.session` files below `repl`."""
    checks = {"session": check_session} if is_session(file_path) else checks_of(file_path)
    return RlxFile.from_parent(parent, path=file_path, checks=checks) if checks else None


class RlxFile(pytest.File):
    """A test file; an item for each of its kind's checks."""

    def __init__(self, *, checks: Mapping[str, Check], **rest: Any) -> None:
        super().__init__(**rest)
        self.checks = checks

    def collect(self) -> Iterator[pytest.Item]:
        """The items of this file."""
        for name, check in self.checks.items():
            yield RlxItem.from_parent(self, name=name, check=check)


class RlxItem(pytest.Item):
    """One check of one file."""

    def __init__(self, *, check: Check, **rest: Any) -> None:
        super().__init__(**rest)
        self.check = check

    def runtest(self) -> None:
        """Run the check; it raises when the file does not hold."""
        self.check(self.path, bool(self.config.getoption("--bless")))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text of a mismatch or diagnostic as it is; a traceback for anything else."""
        if isinstance(excinfo.value, Mismatch | RelaxlangError):
            return f"{self.path}\n{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The heading of a failure."""
        return self.path, 0, f"{self.path.name} [{self.name}]"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A function `golden(name, text)`: fails unless the file `name`, relative to the test's file, holds just `text`.

    With `--bless` it writes the file, and its directory, instead.
    """
    bless = bool(request.config.getoption("--bless"))

    def compare(name: str, text: str) -> None:
        path = request.path.parent / name
        expected = path.read_bytes().decode() if path.exists() else None
        if text == expected:
            return
        if bless:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text)
        elif expected is None:
            pytest.fail(f"{path} does not exist; `--bless` makes it", pytrace=False)
        else:
            pytest.fail(f"{path} differs; `--bless` accepts this:\n{diff(expected, text)}", pytrace=False)

    return compare
