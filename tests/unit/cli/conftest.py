"""`relaxc` in this process: `run("x.rlx", "--check")` gives exit code, stdout and stderr."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from relaxlang.cli.main import main


class Done(NamedTuple):
    """What a run of relaxc gave."""

    code: int
    out: str
    err: str


PROGRAMS = {
    "mlp.rlx": """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Tensor((n, 3), "float32"):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            R.output(z)
        return z
""",
    "kernel.rlx": """
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer((n, 4), "float32"), s: T.float32, y: T.Buffer((n, 4), "float32")):
        for i, j in T.grid(n, 4):
            with T.block("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * s
""",
    "kinds.rlx": """
@R.function
def main(x: R.Tensor((n,), "bfloat16"), s: R.Shape([n, m]), p: R.Prim("int64"),
         t: R.Tuple(R.Tensor((m, n * 2), "int8"), R.Tensor((), "bool"))):
    return (x, (t, s, p))
""",
    "wrong.rlx": """
@R.function
def main(x: R.Tensor((2, 4), "float32"), w: R.Tensor((5, 3), "float32")):
    y = R.matmul(x, w)
    return R.add(x, undefined)
""",
    "template.rlx": """
@I.ir_module
class Module:
    N = I.param(int)

    @R.function
    def main(x: R.Tensor((N,), "float32")):
        return x
""",
    "assert.rlx": """
@R.function(pure=False)
def main(x: R.Tensor((), "bool")):
    _ = R.assert_op(x, format="it is false")
    return x
""",
}


@pytest.fixture
def run(tmp_path, monkeypatch, capfd) -> Callable[..., Done]:
    """Runs relaxc in a directory with the programs above."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text.lstrip())

    def call(*words: str) -> Done:
        capfd.readouterr()
        code = main(list(words))
        out, err = capfd.readouterr()
        return Done(code, out, err)

    return call
