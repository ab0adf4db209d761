"""The cell magic, in an IPython shell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relaxlang.repl.jupyter import Magics


def test_a_cell_is_inputs_of_one_session(capsys: pytest.CaptureFixture[str]) -> None:
    magics = Magics()
    magics.cell("", "x = arange(4)\n\n@R.function\ndef twice(a: R.Tensor((n,), 'int64')):\n    return R.add(a, a)\n")
    magics.cell("", "y = twice(x)\ny\nnonsense\n:load nothing.rlx\n")
    shown = capsys.readouterr().out
    assert "[0 2 4 6]" in shown and "error[RLX" in shown and "nothing.rlx" not in shown
    np.testing.assert_array_equal(np.asarray(magics.get("y")), [0, 2, 4, 6])


def test_a_file_in_the_line_is_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.rlx").write_text('@R.function\ndef f(x: R.Tensor((2,), "float32")):\n    return x\n')
    Magics().cell(str(tmp_path / "m.rlx"), ":show")
    assert "def f(" in capsys.readouterr().out


@pytest.mark.extra("IPython")
def test_the_extension_loads() -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.run_line_magic("load_ext", "relaxlang")
    shell.run_cell_magic("rlx", "", "z = arange(3)\n")
    np.testing.assert_array_equal(np.asarray(shell.run_line_magic("rlx_get", "z")), [0, 1, 2])
