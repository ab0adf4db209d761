"""Shared loops: by values, with and without symbolic sizes."""

import numpy as np
import pytest
from checking import array, assert_same, module

import relaxlang
from relaxlang import transform as tr
from relaxlang.interp import Interpreter
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import Block, For, PrimFunc
from relaxlang.ir.visit import free_vars, walk


def merged(call: str, shapes: str, *inputs: object) -> PrimFunc:
    """The one kernel of a call, with shared loops; interpreted and compiled it gives what it gave before."""
    mod = module(
        f"@R.function\ndef main({shapes}):\n    with R.dataflow():\n"
        f"        r = {call}\n        R.output(r)\n    return r"
    )
    fused = tr.DeadCodeElimination()(tr.FuseTIR()(tr.FuseOps()(tr.LegalizeOps()(mod))))
    made = tr.MergeLoops()(fused)
    want = Interpreter(mod).run("main", *inputs)
    for vectorize in (False, True):
        assert_same(Interpreter(made, verify=True, vectorize=vectorize).run("main", *inputs), want)
    run = relaxlang.VirtualMachine(relaxlang.build(made, pipeline="minimum"), relaxlang.cpu())["main"]
    assert_same(run(*inputs), want)
    relaxlang.assert_structural_equal(relaxlang.parse(made.script()), made)
    kernels: list[PrimFunc] = [f for _, f in made.prim_funcs()]
    assert len(kernels) == 1
    return kernels[0]


def outer_loops(func: PrimFunc) -> int:
    """How many loop nests stand beside each other in the body."""
    root = next(n for n in walk(func.body) if isinstance(n, Block))
    parts = getattr(root.body, "seq", (root.body,))
    return sum(isinstance(p, For) for p in parts)


@pytest.mark.parametrize(
    ("call", "shapes", "inputs", "nests"),
    [
        ("R.nn.softmax(x)", 'x: R.Tensor((n, 5), "float32")', (array(3, 5),), 1),
        ("R.nn.softmax(x)", 'x: R.Tensor((n, m), "float32")', (array(3, 5),), 1),
        ("R.nn.softmax(x, axis=0)", 'x: R.Tensor((4, m), "float32")', (array(4, 5),), 1),
        ("R.nn.softmax(x)", 'x: R.Tensor((2, 3, n, m), "float32")', (array(2, 3, 2, 5),), 1),
        ("R.nn.softmax(x)", 'x: R.Tensor((n, m), "float32")', (array(0, 5),), 1),
        (
            "R.nn.layer_norm(x, g, g, axes=[-1])",
            'x: R.Tensor((n, 6), "float32"), g: R.Tensor((6,), "float32")',
            (array(3, 6), array(6)),
            1,
        ),
        (
            "R.nn.relu(R.add(R.matmul(x, w), b))",
            'x: R.Tensor((n, 6), "float32"), w: R.Tensor((6, 5), "float32"), b: R.Tensor((5,), "float32")',
            (array(3, 6), array(6, 5), array(5)),
            1,
        ),
        (
            "R.nn.relu(R.nn.conv2d(x, w, padding=(1, 1)))",
            'x: R.Tensor((n, 2, 5, 5), "float32"), w: R.Tensor((3, 2, 3, 3), "float32")',
            (array(2, 2, 5, 5), array(3, 2, 3, 3)),
            1,
        ),
        # What comes after a sum over the first axis needs all of it.
        ("R.exp(R.mean(x, axis=[0]))", 'x: R.Tensor((n, 6), "float32")', (array(3, 6),), 2),
    ],
)  # fmt: skip
def test_values_and_nests(call: str, shapes: str, inputs: tuple[np.ndarray, ...], nests: int) -> None:
    kernel = merged(call, shapes, *inputs)
    if nests == 1 and "axis=0" not in call:
        assert outer_loops(kernel) == 1


def test_buffers_shrink_to_a_row() -> None:
    kernel = merged("R.nn.softmax(x)", 'x: R.Tensor((n, 5), "float32")', array(3, 5))
    root = next(n for n in walk(kernel.body) if isinstance(n, Block))
    assert root.alloc_buffers and not any(free_vars(b.shape) for b in root.alloc_buffers)


def test_neighbours_of_an_element_keep_stages_apart() -> None:
    text = """
        @T.prim_func
        def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
            C = T.alloc_buffer((8, 4), "float32")
            for i, j in T.grid(8, 4):
                with T.block("c"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj] * T.float32(2)
            for i, j in T.grid(8, 4):
                with T.block("b"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = C[7 - vi, vj] + C[vi, vj]
        """
    before: IRModule = module(text)
    assert tr.MergeLoops()(before) is before
