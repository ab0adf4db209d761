"""Random TensorIR programs compute the same compiled as interpreted."""

from __future__ import annotations

import random
from textwrap import indent

import ml_dtypes
import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen import build_kernels, load_kernels
from relaxlang.interp import Interpreter

DTYPES = ("int32", "int64", "int8", "uint8", "float32", "float64", "float16", "bfloat16", "bool")
TOLERANCE = {"float32": 1e-4, "float64": 1e-12, "float16": 2e-2, "bfloat16": 1e-1}
Buffers = dict[str, tuple[str, tuple[int, ...]]]
Loops = list[tuple[str, int]]


class Program:
    """A random PrimFunc: `buffers` (of which `outputs` are written) and the text of its body."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0
        shapes = [(self.pick([1, 3, 5, 8]),) * self.pick([1, 2]) for _ in range(5)]
        self.inputs: Buffers = {f"A{k}": (self.pick(DTYPES), s) for k, s in enumerate(shapes[:2])}
        self.outputs: Buffers = {f"O{k}": (self.pick(DTYPES), s) for k, s in enumerate(shapes[2:4])}
        self.outputs["P"] = ("int32", shapes[4])
        self.buffers: Buffers = {**self.inputs, **self.outputs}
        body = "".join(self.statement(3, []) for _ in range(3))
        params = ", ".join(f'{name}: T.Buffer({shape}, "{of}")' for name, (of, shape) in self.buffers.items())
        self.text = f"@I.ir_module\nclass Module:\n    @T.prim_func\n    def f({params}):\n" + indent(body, " " * 8)

    def pick(self, options):
        return self.random.choice(options)

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    # --- expressions --------------------------------------------------------------------------------------------------
    def literal(self, of: str) -> str:
        if of == "bool":
            return self.pick(["T.bool(True)", "T.bool(False)"])
        if "float" in of:
            return f"T.{of}({self.pick([0.0, 1.5, -2.25, 3.0])})"
        return f"T.{of}({self.random.randint(0 if of[0] == 'u' else -5, 7)})"

    def index(self, extent: int, loops: Loops) -> str:
        fitting = [var for var, count in loops if count <= extent]
        if fitting and self.random.random() < 0.8:
            return self.pick(fitting)
        if loops and self.random.random() < 0.6:
            return f"({self.pick(loops)[0]} * {self.random.randint(1, 3)} + {self.random.randint(0, 3)}) % {extent}"
        return str(self.random.randint(0, extent - 1))

    def element(self, name: str, loops: Loops) -> str:
        return f"{name}[{', '.join(self.index(extent, loops) for extent in self.buffers[name][1])}]"

    def leaf(self, of: str, loops: Loops, source: Buffers) -> str:
        found = [self.element(name, loops) for name, (kind, _) in source.items() if kind == of]
        return self.pick([self.literal(of), *found * 3, *([v for v, _ in loops] * 2 if of == "int32" else [])])

    def expr(self, of: str, depth: int, loops: Loops, source: Buffers) -> str:
        if depth == 0 or self.random.random() < 0.2:
            return self.leaf(of, loops, source)

        def sub(kind: str = of) -> str:
            return self.expr(kind, depth - 1, loops, source)

        if of == "bool":
            kind = self.pick(["int32", "float32", "int8", "uint8", "float64"])
            comparison = f"({sub(kind)} {self.pick(['<', '<=', '>', '>=', '==', '!='])} {sub(kind)})"
            return self.pick([comparison, comparison, f"T.And({sub()}, {sub()})", f"T.Or({sub()}, T.Not({sub()}))"])
        common = ["({0} + {1})", "({0} - {1})", "({0} * {1})", "T.min({0}, {1})", "T.max({0}, {1})"]
        common += [f"T.Select({sub('bool')}, {{0}}, {{1}})", f"T.if_then_else({sub('bool')}, {{0}}, {{1}})"]
        whole = ["({0} // {1})", "({0} % {1})", "T.truncdiv({0}, {1})", "T.truncmod({0}, {1})", "({0} & {1})"]
        whole += ["({0} ^ {1})", f"T.shift_left({{0}}, T.max({{1}}, T.{of}(0)))", f"T.shift_right({{0}}, T.{of}(3))"]
        sources = [kind for kind in DTYPES if kind != of and ("float" not in kind or "float" in of)]
        special = ["T.abs({0})", "T.floor({0})", "T.sqrt(T.abs({0}))"] if "float" in of else whole
        form = self.pick([*common, *special, f'T.Cast("{of}", {sub(self.pick(sources))})'])
        return form.format(sub(), sub())

    # --- statements ---------------------------------------------------------------------------------------------------
    def statement(self, depth: int, loops: Loops) -> str:
        kinds = (self.loop, self.loop, self.store, self.store, self.condition, self.reduction, self.wait)
        return (self.pick(kinds) if depth else self.store)(depth - 1, loops)

    def loop(self, depth: int, loops: Loops) -> str:
        var, count = self.name(), self.pick([1, 2, 3, 4, 8])
        kind = self.pick(["serial", "serial", "vectorized", "unroll", "parallel"])
        body = "".join(self.statement(depth, [*loops, (var, count)]) for _ in range(self.pick([1, 2])))
        return f"for {var} in T.{kind}({count}):\n" + indent(body, "    ")

    def store(self, depth: int, loops: Loops) -> str:
        name = self.pick(list(self.outputs))
        return f"{self.element(name, loops)} = {self.expr(self.outputs[name][0], 3, loops, self.buffers)}\n"

    def condition(self, depth: int, loops: Loops) -> str:
        text = f"if {self.expr('bool', 2, loops, self.buffers)}:\n" + indent(self.statement(depth, loops), "    ")
        return text + self.pick(["", "else:\n" + indent(self.statement(depth, loops), "    ")])

    def wait(self, depth: int, loops: Loops) -> str:
        place = self.element("P", loops)
        return f"while {place} < {self.random.randint(-3, 9)}:\n    {place} = {place} + {self.random.randint(1, 4)}\n"

    def reduction(self, depth: int, loops: Loops) -> str:
        """A block with an init, in loops of its own in any order."""
        name = self.pick([n for n, (of, _) in self.outputs.items() if of != "bool"])
        of, shape = self.outputs[name]
        axes = [(self.name(), self.name(), extent, "spatial") for extent in shape]
        axes.append((self.name(), self.name(), self.pick([1, 2, 5]), "reduce"))
        inside = [(axis, extent) for axis, _, extent, _ in axes]
        place = f"{name}[{', '.join(axis for axis, _ in inside[:-1])}]"
        value = self.expr(of, 2, inside, self.inputs)
        lines = [f"{axis} = T.axis.{kind}({extent}, {var})" for axis, var, extent, kind in axes]
        lines += self.pick([[], [f"T.where({axes[-1][1]} < {max(1, axes[-1][2] - 1)})"]])
        lines += ["with T.init():", f"    {place} = {self.literal(of)}"]
        lines.append(f"{place} = " + self.pick([f"{place} + {value}", f"T.max({place}, {value})"]))
        text = f'with T.block("{self.name()}"):\n' + indent("\n".join(lines), "    ") + "\n"
        for _, var, extent, _ in self.random.sample(axes, len(axes)):
            text = f"for {var} in range({extent}):\n" + indent(text, "    ")
        return text

    def arguments(self) -> list[np.ndarray]:
        """Small numbers of each buffer's type."""
        made = []
        for of, shape in self.buffers.values():
            values = np.array([self.random.randint(0 if of[0] in "ub" else -9, 12) for _ in range(int(np.prod(shape)))])
            values = values / 4 if "float" in of else values % 2 if of == "bool" else values
            made.append(values.reshape(shape).astype(getattr(ml_dtypes, of, of)))
        return made


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(40))
def test_random_kernel(seed: int) -> None:
    program = Program(seed)
    mod = relaxlang.parse(program.text, f"random-{seed}.rlx")
    wanted = program.arguments()
    made = [a.copy() for a in wanted]
    try:
        kernel = load_kernels(build_kernels(dict(mod.prim_funcs())))["f"]
    except DiagnosticError as fault:
        # A random parallel loop may update one place in every iteration, which must not compile.
        assert {d.code for d in fault.diagnostics} == {"RLX5011"}
        return
    Interpreter(mod, vectorize=False).run("f", *wanted)
    kernel(*made)
    for (name, (of, _)), mine, theirs in zip(program.buffers.items(), made, wanted):
        close = {"rtol": TOLERANCE.get(of, 0), "atol": TOLERANCE.get(of, 0), "equal_nan": True}
        assert np.allclose(mine.astype("f8"), theirs.astype("f8"), **close), f"{name} in\n{program.text}"
