"""The kernels that are measured: products, convolutions, and what is bound by memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from peers import Array, Workload

_random = np.random.default_rng(0)


def _normal(*shape: int) -> Array:
    made: Array = _random.standard_normal(shape).astype(np.float32)
    return made


def matmul(m: int, n: int, k: int, *, constant: bool = False, transposed: bool = False) -> Workload:
    """(m, k) times (k, n), or times the transpose of (n, k)."""
    suffix = ("_const" if constant else "") + ("_transposed" if transposed else "")
    arrays = {"a": _normal(m, k), "b": _normal(n, k) if transposed else _normal(k, n)}
    body = ["t = R.permute_dims(b)", "c = R.matmul(a, t)"] if transposed else ["c = R.matmul(a, b)"]
    nodes: list[Any] = [("MatMul", ["a", "b"], "c", {})]
    if transposed:
        nodes = [("Gemm", ["a", "b"], "c", {"transB": 1})]
    return Workload(
        f"matmul_{m}x{k}x{n}{suffix}", arrays, body,
        lambda np, a, b: np.matmul(a, b.T if transposed else b), lambda torch, a, b: a @ (b.T if transposed else b),
        nodes, frozenset({"b"} if constant else ()), 2 * m * n * k,
    )  # fmt: skip


def batched(b: int, m: int, k: int, n: int) -> Workload:
    """b products of (m, k) and (k, n)."""
    return Workload(
        f"matmul_{b}x{m}x{k}x{n}", {"a": _normal(b, m, k), "b": _normal(b, k, n)}, ["c = R.matmul(a, b)"],
        lambda np, a, b: np.matmul(a, b), lambda torch, a, b: a @ b, [("MatMul", ["a", "b"], "c", {})],
        flops=2 * b * m * n * k,
    )  # fmt: skip


def dense(m: int, n: int, k: int) -> Workload:
    """A product with bias and activation, weights constant."""
    return Workload(
        f"dense_gelu_{m}x{k}x{n}", {"a": _normal(m, k), "b": _normal(k, n) * np.float32(0.05), "d": _normal(n)},
        ["c = R.nn.gelu(R.add(R.matmul(a, b), d))"],
        torch_form=lambda torch, a, b, d: torch.nn.functional.gelu(torch.addmm(d, a, b)),
        nodes=[("MatMul", ["a", "b"], "p", {}), ("Add", ["p", "d"], "q", {}), ("Gelu", ["q"], "c", {})],
        constants=frozenset({"b", "d"}), flops=2 * m * n * k,
    )  # fmt: skip


def convolution(size: int, ci: int, co: int, window: int, stride: int, groups: int = 1) -> Workload:
    """A convolution of a square image with constant weights, padded to keep its size (divided by the stride)."""
    pad, out = window // 2, -(-size // stride)
    suffix = "_depthwise" if groups == ci and ci > 1 else ""
    return Workload(
        f"conv{window}x{window}s{stride}_{size}_{ci}_{co}{suffix}",
        {"x": _normal(1, ci, size, size), "w": _normal(co, ci // groups, window, window) * np.float32(0.1)},
        [f"c = R.nn.conv2d(x, w, strides={stride}, padding={pad}, groups={groups})"],
        torch_form=lambda torch, x, w: torch.nn.functional.conv2d(x, w, stride=stride, padding=pad, groups=groups),
        nodes=[("Conv", ["x", "w"], "c", {"strides": [stride] * 2, "pads": [pad] * 4, "group": groups})],
        constants=frozenset({"w"}), flops=2 * out * out * co * (ci // groups) * window * window,
    )  # fmt: skip


def _bound_by_memory() -> Iterator[Workload]:
    x = _normal(512, 1024)
    yield Workload(
        "softmax_512x1024", {"x": x}, ["c = R.nn.softmax(x)"], lambda np, x: _softmax(np, x),
        lambda torch, x: torch.softmax(x, -1), [("Softmax", ["x"], "c", {"axis": -1})], bytes=8 * x.size,
    )  # fmt: skip
    x = _normal(512, 768)
    yield Workload(
        "layer_norm_512x768", {"x": x, "g": _normal(768), "b": _normal(768)},
        ["c = R.nn.layer_norm(x, g, b, axes=[-1])"],
        torch_form=lambda torch, x, g, b: torch.nn.functional.layer_norm(x, (768,), g, b),
        nodes=[("LayerNormalization", ["x", "g", "b"], "c", {"axis": -1})], bytes=8 * x.size,
    )  # fmt: skip
    x = _normal(512, 3072)
    yield Workload(
        "gelu_bias_residual", {"x": x, "b": _normal(3072), "r": _normal(512, 3072)},
        ["c = R.add(R.nn.gelu(R.add(x, b)), r)"],
        torch_form=lambda torch, x, b, r: torch.nn.functional.gelu(x + b) + r,
        nodes=[("Add", ["x", "b"], "p", {}), ("Gelu", ["p"], "q", {}), ("Add", ["q", "r"], "c", {})], bytes=12 * x.size,
    )  # fmt: skip
    x = _normal(4096, 4096)
    for axis, name in ((1, "row_sums"), (0, "column_sums")):
        yield Workload(
            f"{name}_4096", {"x": x, "axes": np.array([axis])}, [f"c = R.sum(x, axis={axis})"],
            lambda np, x, _, axis=axis: x.sum(axis=axis), lambda torch, x, _, axis=axis: x.sum(axis),
            [("ReduceSum", ["x", "axes"], "c", {"keepdims": 0})], frozenset({"axes"}), bytes=4 * x.size,
        )  # fmt: skip
    yield Workload(
        "transpose_4096", {"x": x}, ["c = R.permute_dims(x)"], lambda np, x: np.ascontiguousarray(x.T) if np.__name__
        == "numpy" else x.T + 0, lambda torch, x: x.T.contiguous(), [("Transpose", ["x"], "c", {})], bytes=8 * x.size,
    )  # fmt: skip
    yield Workload(
        "add_16M", {"x": x, "y": _normal(4096, 4096)}, ["c = R.add(x, y)"], lambda np, x, y: x + y,
        lambda torch, x, y: x + y, [("Add", ["x", "y"], "c", {})], bytes=12 * x.size,
    )  # fmt: skip
    x = _normal(1, 64, 112, 112)
    yield Workload(
        "max_pool_3x3s2_112_64", {"x": x},
        ["c = R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1])"],
        torch_form=lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 2, 1),
        nodes=[("MaxPool", ["x"], "c", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4})],
        bytes=5 * x.size,
    )  # fmt: skip


def _softmax(np: Any, x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(tokens: int, heads: int = 12, width: int = 64) -> Workload:
    """Attention of several heads over the tokens of one sequence."""
    arrays = {n: _normal(1, tokens, heads, width) for n in "qkv"}
    order = {"perm": [0, 2, 1, 3]}
    nodes: list[Any] = [("Transpose", [n], f"{n}h", order) for n in "qv"]
    nodes += [("Transpose", ["k"], "kh", {"perm": [0, 2, 3, 1]}), ("MatMul", ["qh", "kh"], "s", {})]
    nodes += [("Mul", ["s", "scale"], "t", {}), ("Softmax", ["t"], "p", {"axis": -1})]
    nodes += [("MatMul", ["p", "vh"], "o", {}), ("Transpose", ["o"], "c", order)]
    return Workload(
        f"attention_{tokens}", {**arrays, "scale": np.array([width**-0.5], np.float32)},
        ["c = R.nn.attention(q, k, v)"],
        torch_form=lambda torch, q, k, v, _: torch.nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        ).transpose(1, 2),
        nodes=nodes, constants=frozenset({"scale"}), flops=4 * tokens * tokens * heads * width,
        fixed=frozenset({heads, width}),
    )  # fmt: skip


RESNET18 = (
    (224, 3, 64, 7, 2), (56, 64, 64, 3, 1), (56, 64, 128, 3, 2), (28, 128, 128, 3, 1), (28, 128, 256, 3, 2),
    (14, 256, 256, 3, 1), (14, 256, 512, 3, 2), (7, 512, 512, 3, 1), (56, 64, 128, 1, 2), (28, 128, 256, 1, 2),
    (14, 256, 512, 1, 2),
)  # fmt: skip
"""Side of the image, channels in and out, window, stride."""
WORKLOADS: tuple[Workload, ...] = (
    *(matmul(n, n, n) for n in (128, 256, 512, 1024, 2048, 127, 129, 255)),
    matmul(1000, 777, 333),
    batched(12, 128, 64, 128),
    *(matmul(m, 3072, 768, constant=c) for m in (1, 8, 32) for c in (False, True)),
    matmul(128, 768, 768, constant=True, transposed=True),
    dense(128, 3072, 768),
    *(convolution(*shape) for shape in RESNET18),
    convolution(56, 144, 144, 3, 1, groups=144),
    *_bound_by_memory(),
    attention(128),
    attention(2048),
)
