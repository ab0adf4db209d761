"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Tabs; the address says which one is open.
function open(name) {
  all("main > section").forEach((s) => { s.hidden = s.id !== name; });
  all("nav button").forEach((b) => b.setAttribute("aria-selected", b.dataset.tab === name));
  history.replaceState(null, "", "#" + name);
}
all("nav button").forEach((b) => b.addEventListener("click", () => open(b.dataset.tab)));
const wanted = location.hash.slice(1);
open(all("main > section").some((s) => s.id === wanted) ? wanted : "passes");

// Passes unfold to what they changed.
function toggle(row) {
  const diff = document.getElementById(row.dataset.diff);
  diff.hidden = !diff.hidden;
  row.classList.toggle("open", !diff.hidden);
}
all("tr.pass").forEach((row) => {
  row.addEventListener("click", () => toggle(row));
  row.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); toggle(row); } });
});
const noops = document.getElementById("noops");
if (noops) noops.addEventListener("click", () => {
  const shown = document.querySelector(".passes").classList.toggle("show-noops");
  noops.textContent = noops.textContent.replace(shown ? "show" : "hide", shown ? "hide" : "show");
});

// Lines that belong together light up together.
function light(root, line) {
  all(".lit", root).forEach((p) => p.classList.remove("lit"));
  const lines = all(`pre[data-line="${line}"]`, root);
  lines.forEach((p) => p.classList.add("lit"));
  return lines;
}
all(".kernel").forEach((kernel) => kernel.addEventListener("click", (e) => {
  const chosen = e.target.closest("pre[data-line]");
  if (!chosen || chosen.dataset.line === "0") return;
  light(kernel, chosen.dataset.line);
  all(".column", kernel).forEach((column) => {
    const first = column.querySelector(".lit");
    if (first && !column.contains(chosen)) column.scrollTop = first.offsetTop - column.offsetTop - 80;
  });
}));

// Graphs zoom, move, and link to the text.
all("svg.graph").forEach((svg) => {
  const full = [0, 0, +svg.dataset.width, +svg.dataset.height];
  let box = [...full];
  const show = () => svg.setAttribute("viewBox", box.join(" "));
  const zoom = (factor, x = 0.5, y = 0.5) => {
    const w = Math.min(full[2] * 2, Math.max(60, box[2] * factor)), h = w * box[3] / box[2];
    box = [box[0] + (box[2] - w) * x, box[1] + (box[3] - h) * y, w, h];
    show();
  };
  svg.addEventListener("wheel", (e) => {
    e.preventDefault();
    const r = svg.getBoundingClientRect();
    zoom(e.deltaY > 0 ? 1.15 : 1 / 1.15, (e.clientX - r.left) / r.width, (e.clientY - r.top) / r.height);
  }, { passive: false });
  let from = null;
  svg.addEventListener("pointerdown", (e) => { from = [e.clientX, e.clientY, ...box]; });
  window.addEventListener("pointerup", () => { from = null; });
  svg.addEventListener("pointermove", (e) => {
    if (!from) return;
    const r = svg.getBoundingClientRect(), scale = Math.max(box[2] / r.width, box[3] / r.height);
    box[0] = from[2] - (e.clientX - from[0]) * scale;
    box[1] = from[3] - (e.clientY - from[1]) * scale;
    show();
  });
  document.addEventListener("keydown", (e) => {
    if (document.getElementById("graph").hidden || e.ctrlKey || e.metaKey) return;
    if (e.key === "+" || e.key === "-") zoom(e.key === "+" ? 1 / 1.25 : 1.25);
    if (e.key === "0") { box = [...full]; show(); }
  });
  const choose = (g) => {
    all(".chosen", svg).forEach((b) => b.classList.remove("chosen"));
    g.classList.add("chosen");
    all("path", svg).forEach((p) => p.classList.toggle("lit-edge", p.dataset.from === g.dataset.key || p.dataset.to === g.dataset.key));
    const [line] = light(document.querySelector("#graph .text"), g.dataset.line);
    if (line) line.scrollIntoView({ block: "center" });
  };
  all(".box", svg).forEach((g) => {
    g.addEventListener("click", () => choose(g));
    g.addEventListener("keydown", (e) => { if (e.key === "Enter") choose(g); });
  });
});
