"""The cell magic `%%rlx` for notebooks: lines of `relax-repl`, in a session that lasts as long as the kernel.

    %load_ext relaxlang

    %%rlx
    x = rand(4, 4)
    R.matmul(x, x)

`%%rlx` shares arrays with Python: names of the session are read with `%rlx_get x`, which gives a numpy array.
"""

from __future__ import annotations

from typing import Any

from relaxlang.repl.session import Session
from relaxlang.repl.transcript import chunks, said


class Magics:
    """The magics over one session."""

    def __init__(self) -> None:
        self.session = Session()

    def cell(self, line: str, cell: str) -> None:
        """Run the inputs of a cell; the first one that fails ends it. A file in the line is loaded before."""
        if line.strip():
            cell = f":load {line.strip()}\n{cell}"
        for text in chunks(part + "\n" for part in cell.split("\n")):
            result = self.session.execute(text)
            shown = said(result)
            if shown:
                print(shown)
            if not result.ok:
                return

    def get(self, line: str) -> Any:
        """The value of a name of the session; KeyError when there is none."""
        return self.session.state.names[line.strip()]


def load(ipython: Any) -> None:
    """Register the magics; what `%load_ext relaxlang` calls."""
    magics = Magics()
    ipython.register_magic_function(magics.cell, "cell", "rlx")
    ipython.register_magic_function(magics.get, "line", "rlx_get")
