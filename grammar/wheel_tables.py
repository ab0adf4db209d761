"""What a wheel has besides the files of the repository: the parser's tables, so that no start need make them."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ParserTables(BuildHookInterface[Any]):
    """Makes the tables with the package that is about to be built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the files beside the grammar, unless the wheel only points to a checkout, which keeps its own."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from relaxlang.syntax.tables import shipped_tables

        self.folder = TemporaryDirectory()
        for name, content in shipped_tables().items():
            file = Path(self.folder.name) / name
            file.write_bytes(content)
            build_data["force_include"][str(file)] = f"relaxlang/grammar/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel now."""
        if version != "editable":
            self.folder.cleanup()
