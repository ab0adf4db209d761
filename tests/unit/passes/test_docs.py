"""The `Before:` and `After:` programs in the docstrings of passes are executed."""

import inspect
import textwrap
from pathlib import Path

import pytest

import relaxlang
from relaxlang.passes import PASSES, load_pass

# What the text of the docstring says that the pass is given.
OPTIONS = {
    "apply-rewrites": {"file": str(Path(__file__).parent / "double_is_add.rlx")},
    "convert-layout": {"desired_layouts": (("nn.conv2d", "NHWC", "OHWI"),)},
    "fuse-ops-by-pattern": {"back_end": "blas"},
    "bind-symbolic-vars": {"binding_map": (("n", 16),)},
}


def programs(name: str) -> tuple[str, str]:
    """The two programs of a pass's docstring."""
    doc = inspect.cleandoc(load_pass(name).__doc__ or "")
    before, _, after = doc.partition("Before:\n")[2].partition("\nAfter:\n")
    blocks = []
    for text in (before, after):
        lines = []
        for line in text.splitlines():
            if line.strip() and not line.startswith("    "):
                break
            lines.append(line)
        blocks.append(textwrap.dedent("\n".join(lines)).strip() + "\n")
    return blocks[0], blocks[1]


@pytest.mark.parametrize("name", [n for n in PASSES if "Before:" in (load_pass(n).__doc__ or "")])
def test_docstring(name: str) -> None:
    before, after = programs(name)
    made = load_pass(name)(**OPTIONS.get(name, {}))(relaxlang.parse(before))
    relaxlang.assert_structural_equal(made, relaxlang.parse(after))


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_is_documented(name: str) -> None:
    assert "Before:" in (load_pass(name).__doc__ or "") or name in {"bind-params"}, f"{name} shows no example"
