"""`--emit=html`: what the page says, and that it works in a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from relaxlang.cli.html.graph import graph_of, lay_out
from relaxlang.cli.html.stages import side_by_side
from relaxlang.cli.main import main
from relaxlang.driver import parse

PROGRAM = """\
@R.function
def main(x: R.Tensor((16, 8), "float32"), w: R.Tensor((8, 8), "float32")):
    with R.dataflow():
        a = R.matmul(x, w)
        b = R.nn.relu(a)
        c = R.matmul(b, w)
        d = R.add(c, a)
        R.output(d)
    return d
"""
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --virtual-time-budget=4000 --dump-dom"
).split()
# What a person does: unfold a pass, show the passes without effect, choose a box, choose a line of a kernel, zoom.
CLICKS = """<script>
const said = {};
const click = (e) => e.dispatchEvent(new MouseEvent("click", { bubbles: true }));
said.tabs = all("nav button").map((b) => b.dataset.tab);
const row = all("tr.pass").find((r) => r.textContent.includes("fuse-ops"));
said.folded = document.getElementById(row.dataset.diff).hidden;
click(row);
said.unfolded = !document.getElementById(row.dataset.diff).hidden;
click(document.getElementById("noops"));
said.noops = getComputedStyle(document.querySelector(".noop")).display;
click(all("nav button")[1]);
said.graph = !document.getElementById("graph").hidden && document.getElementById("passes").hidden;
const box = all(".box").find((b) => b.textContent.includes("matmul"));
click(box);
said.line = document.querySelector("#graph .lit").textContent;
said.edges = all("path.lit-edge").length;
const svg = document.querySelector("svg.graph"), before = svg.getAttribute("viewBox");
svg.dispatchEvent(new WheelEvent("wheel", { deltaY: -100, bubbles: true, cancelable: true }));
said.zoomed = svg.getAttribute("viewBox") !== before;
const kernel = document.querySelector(".kernel");
kernel.open = true;
const chosen = all(".column", kernel)[2].querySelector('pre[data-line]:not([data-line="0"])');
click(chosen);
said.columns = all(".column", kernel).map((c) => all(".lit", c).length > 0);
document.title = JSON.stringify(said);
</script></body>"""


class Balance(HTMLParser):
    """Whether every tag is closed by its own."""

    VOID = ("meta", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("html")
    (folder / "m.rlx").write_text(PROGRAM)
    path = folder / "m.html"
    assert main([str(folder / "m.rlx"), "-o", str(path)]) == 0
    return path.read_text()


def test_the_page_is_one_well_formed_file(page: str) -> None:
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    assert not re.search(r"""(src|href)=["']|@import|url\(""", page)


def test_what_the_page_says(page: str) -> None:
    assert 'data-tab="profile"' not in page  # nothing ran
    text = unescape(re.sub(r"<[^>]*>", "", page))
    for words in (
        "legalize-ops",
        "schedule-cpu",
        "changes nothing",
        "16×8",
        "bytes in",
        "TensorIR",
        "define i32",
        "ret",
    ):
        assert words in text, words


def test_a_page_of_a_run_shows_its_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.rlx").write_text(PROGRAM)
    path = tmp_path / "m.html"
    assert main([str(tmp_path / "m.rlx"), "--emit=html=" + str(path), "--run", "--random=0"]) == 0
    assert capsys.readouterr().out.startswith("float32[16,8]")
    parser = Balance()
    parser.feed(path.read_text())
    assert parser.open == []
    tab = re.search(r'<section id="profile".*?</section>', path.read_text(), re.DOTALL)
    assert tab is not None and 'data-tab="profile"' in path.read_text()
    text = unescape(re.sub(r"<[^>]*>", " ", tab[0]))
    assert all(words in text for words in ("fused_matmul_add", "GFLOP/s", "m.rlx:5 (b)", "kernels: ", "peak: "))


def test_a_comparison_shows_what_changed_and_little_around() -> None:
    old = [f"line {k}" for k in range(100)]
    new = [*old[:50], "other", *old[51:]]
    added, removed, table = side_by_side("\n".join(old), "\n".join(new))
    assert (added, removed) == (1, 1)
    shown = " ".join(unescape(re.sub(r"<[^>]*>", " ", table)).split())
    assert "line 50" in shown and "other" in shown and "line 47" in shown and "line 40" not in shown


def test_a_layout_puts_values_below_what_they_are_made_of() -> None:
    func = parse(PROGRAM)["main"]
    nodes = graph_of(func, {})  # type: ignore[arg-type]
    layers = lay_out(nodes)
    assert [n.title for n in nodes] == ["parameter", "parameter", "matmul", "nn.relu", "matmul", "add", "result"]
    for node in nodes:
        assert all(source.layer < node.layer for source in node.inputs)
    for layer in layers:
        ends = [(n.x, n.x + n.width) for n in sorted(layer, key=lambda n: n.x)]
        assert all(a[1] < b[0] for a, b in pairwise(ends))


def test_a_symbolic_size_without_a_value_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.rlx").write_text(PROGRAM.replace("(16, 8)", "(n, 8)"))
    assert main([str(tmp_path / "m.rlx"), "-o", str(tmp_path / "a.html")]) == 0
    assert main([str(tmp_path / "m.rlx"), "--dim", "n=4", "-o", str(tmp_path / "b.html")]) == 0
    assert "bytes in" not in (tmp_path / "a.html").read_text()
    assert "bytes in" in (tmp_path / "b.html").read_text()


def test_clicks_in_a_browser(page: str, tmp_path: Path) -> None:
    if BROWSER is None:
        if os.environ.get("RELAXLANG_ALL_PLATFORMS"):
            pytest.fail("`chromium` is not installed")
        pytest.skip("`chromium` is not installed")
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", CLICKS))
    command = [BROWSER, *CHROMIUM, f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None, done.stderr
    said = json.loads(unescape(title[1]))
    assert said["tabs"] == ["passes", "graph", "memory", "kernels", "program"]
    assert said["folded"] and said["unfolded"] and said["graph"] and said["zoomed"]
    assert said["noops"] == "table-row" and said["edges"] >= 3 and all(said["columns"])
    assert "call_tir" in said["line"]
