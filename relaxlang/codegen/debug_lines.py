"""Lines of the TensorIR text in LLVM's debug information, so that LLVM IR and assembly can be shown beside it."""

from __future__ import annotations

from collections.abc import Mapping

from relaxlang.base.node import Node

_HEAD = """
!llvm.dbg.cu = !{!100}
!llvm.module.flags = !{!103, !104}
!100 = distinct !DICompileUnit(language: DW_LANG_C99, file: !101, isOptimized: true, emissionKind: LineTablesOnly)
!101 = !DIFile(filename: "program.rlx", directory: "")
!102 = !DISubroutineType(types: !{})
!103 = !{i32 2, !"Debug Info Version", i32 3}
!104 = !{i32 2, !"Dwarf Version", i32 4}
"""
_FIRST = 105


class DebugLines:
    """The metadata of one module. `lines` gives the line of a statement, by identity."""

    def __init__(self, lines: Mapping[int, int]) -> None:
        self.lines = lines
        self._metadata: list[str] = []
        self._known: dict[tuple[int, int], int] = {}

    def function(self, name: str) -> int:
        """The number of a new function's metadata; in the head of the function stands `!dbg !number`."""
        escaped = name.replace("\\", "\\5C").replace('"', "\\22")
        return self._add(
            f'distinct !DISubprogram(name: "{escaped}", scope: !101, file: !101, line: 1, type: !102, unit: !100, '
            "spFlags: DISPFlagDefinition | DISPFlagOptimized)"
        )

    def location(self, scope: int, place: Node) -> str:
        """What an instruction of a statement ends with; that of line 1 for one without a line."""
        key = (scope, self.lines.get(id(place), 1))
        if key not in self._known:
            self._known[key] = self._add(f"!DILocation(line: {key[1]}, column: 1, scope: !{scope})")
        return f", !dbg !{self._known[key]}"

    def _add(self, text: str) -> int:
        self._metadata.append(text)
        return _FIRST + len(self._metadata) - 1

    def text(self) -> str:
        """The metadata, which ends the module."""
        return _HEAD + "".join(f"!{_FIRST + k} = {text}\n" for k, text in enumerate(self._metadata))
