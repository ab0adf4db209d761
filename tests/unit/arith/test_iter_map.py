"""Iteration maps, their inverses, and index maps, against enumeration."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from int_evaluate import evaluate, every

from relaxlang.arith import Analyzer
from relaxlang.arith.index_map import IndexMap
from relaxlang.arith.iter_map import detect_iter_map, is_bijective, iter_inverse, iter_map_simplify, subspace_divide
from relaxlang.arith.iter_sum import sum_expr
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.prim import INT32, IntImm, PrimExpr, SizeVar, Var, as_prim
from relaxlang.ir.tir import Range

P, Q, R = (Var(name) for name in "ijk")
N, M = SizeVar("n"), SizeVar("m")


def dom(extent: int | PrimExpr, low: int = 0) -> Range:
    return Range(IntImm(INT32, low), as_prim(extent, INT32))


def box(*extents: int) -> dict[Var, Range]:
    return {var: dom(extent) for var, extent in zip((P, Q, R), extents)}


@pytest.mark.parametrize(
    ("indices", "iters", "bijective", "surjective"),
    [
        ([P, Q], box(4, 8), True, True),
        ([P * 8 + Q], box(4, 8), True, True),
        ([Q * 4 + P], box(4, 8), True, True),
        ([P * 8 + Q], box(4, 6), False, False),  # gaps
        ([P * 4 + Q], box(4, 8), False, False),  # overlap
        ([P // 4, P % 4], box(16), True, True),
        ([P // 4], box(16), False, True),
        ([P // 4, P % 8], box(16), False, False),
        ([(P * 8 + Q) // 16, (P * 8 + Q) % 16], box(4, 8), True, True),
        ([(P * 8 + Q) // 12, (P * 8 + Q) % 12], box(6, 8), True, True),
        ([P + Q], box(4, 4), False, False),
        ([P + 1, Q], box(4, 4), True, True),
        ([P * 2, Q], box(4, 4), True, True),
        ([P // 3, P % 3], box(16), False, False),
        ([Q % 4, P, Q // 4], box(4, 8), True, True),
        ([P], box(4, 8), False, True),
        ([P, Q * R], box(4, 4, 4), False, False),
    ],
)
def test_detect(indices: list[PrimExpr], iters: dict[Var, Range], bijective: bool, surjective: bool) -> None:
    assert is_bijective(indices, iters) is bijective
    assert bool(detect_iter_map(indices, iters, level="surjective")) is surjective
    if bijective:
        _check_inverse(indices, iters)


def _check_inverse(indices: list[PrimExpr], iters: dict[Var, Range]) -> None:
    env = every(list(iters), [range(r.min.value, r.min.value + r.extent.value) for r in iters.values()])
    images = {Var(f"o{k}"): evaluate(index, env).value for k, index in enumerate(indices)}
    assert len({tuple(row) for row in zip(*images.values())}) == len(next(iter(env.values())))
    back = iter_inverse(detect_iter_map(indices, iters, level="bijective"), list(images))
    for var in iters:
        assert (evaluate(back[var], images).value == env[var]).all()
    for simple, image in zip(iter_map_simplify(indices, iters), images.values()):
        assert (evaluate(simple, env).value == image).all()


def test_random_maps_are_what_they_are_said_to_be() -> None:
    rng = Random(7)
    found = 0
    for _ in range(150):
        iters = {var: dom(rng.choice((1, 2, 3, 4, 6, 8)), rng.choice((0, 0, 2))) for var in (P, Q, R)}
        fused = P * rng.choice((8, 16, 24)) + Q * rng.choice((4, 8)) + R
        by = rng.choice((2, 4, 6, 8, 12))
        indices = rng.choice(([fused // by, fused % by], [fused], [P, Q * 8 + R], [R, fused // by % 2], [P * 6 + Q, R]))
        env = every(list(iters), [range(r.min.value, r.min.value + r.extent.value) for r in iters.values()])
        images = list(zip(*(evaluate(index, env).value for index in indices)))
        if is_bijective(indices, iters):
            found += 1
            assert len(set(images)) == len(images)
            _check_inverse(indices, iters)
    assert found > 10


def test_symbolic_extents() -> None:
    iters = {P: dom(N), Q: dom(M)}
    assert is_bijective([P * M + Q], iters)
    assert not is_bijective([P * N + Q], iters)
    back = iter_inverse(detect_iter_map([P * M + Q], iters, level="bijective"), [R])
    assert back[P] == R // M and back[Q] == R % M
    assert is_bijective([P // 4, P % 4], {P: dom(N * 4)})


def test_predicate_limits_a_fused_iterator() -> None:
    iters = box(8, 8)
    assert is_bijective([P * 8 + Q], iters)
    found = detect_iter_map([P * 8 + Q], iters, predicate=P * 8 + Q < 60)
    assert found and str(found.indices[0].args[0].extent) == str(IntImm(INT32, 60))


def test_reasons_are_given() -> None:
    assert detect_iter_map([P + Q], box(4, 4)).errors == ("an index leaves gaps between its iterators, or mixes them",)


def test_subspace_divide() -> None:
    iters = box(4, 8, 16)
    parts = subspace_divide([P * 8 + Q, R], iters, [Q, R])
    assert parts is not None
    (outer, inner, extent), (outer2, inner2, extent2) = parts
    assert (outer, inner, extent.value) == (P, Q, 8)
    assert (outer2.value, inner2, extent2.value) == (0, R, 16)
    assert subspace_divide([Q * 4 + P], iters, [Q]) is None


# --- padding ----------------------------------------------------------------------------------------------------------
def _check_padding(indices: list[PrimExpr], iters: dict[Var, Range]) -> bool:
    """A padded map's sums are its indices; its inverse and its padding say what each point of the image box is."""
    loose = detect_iter_map(indices, iters, level="no-check")
    env = every(list(iters), [range(r.min.value, r.min.value + r.extent.value) for r in iters.values()])
    images = [evaluate(index, env).value for index in indices]
    if loose:
        for total, image in zip(loose.indices, images):
            analyzer = Analyzer()
            for var, dom_ in iters.items():
                analyzer.bind(var, dom_)
            assert (evaluate(sum_expr(total, analyzer), env).value == image).all(), (indices, iters)
    found = detect_iter_map(indices, iters, level="bijective", padded=True)
    if not found:
        return False
    outputs = {Var(f"o{k}"): np.asarray(image) for k, image in enumerate(images)}
    back = iter_inverse(found, list(outputs))
    for var in iters:
        assert (evaluate(back[var], outputs).value == env[var]).all(), (indices, iters)
    known = set(zip(*(i.tolist() for i in images)))
    assert len(known) == len(images[0])
    boxes = []
    for total in found.indices:
        extent = 1
        for split in total.args:
            assert isinstance(split.extent, IntImm)
            extent *= split.extent.value
        assert isinstance(total.base, IntImm)
        boxes.append(range(total.base.value, total.base.value + extent))
    points = every(list(outputs), boxes)
    where = evaluate(found.padding, {v: evaluate(e, points).value for v, e in back.items()}).value
    wanted = [point not in known for point in zip(*(points[o].tolist() for o in outputs))]
    assert (np.broadcast_to(where, len(wanted)) == wanted).all(), (indices, iters)
    return True


@pytest.mark.parametrize(
    ("indices", "iters"),
    [
        ([P // 5, P % 5], {P: dom(13)}),  # on the right
        ([(P + 80) // 32, (P + 80) % 32], {P: dom(176)}),  # on the left
        ([(P + 3) // 8, (P + 3) % 8], {P: dom(20)}),  # on both sides
        ([(P - 3) // 8, (P - 3) % 8], {P: dom(20)}),  # from a negative first value
        ([P // 5, P % 5], {P: dom(13, 4)}),
        ([P // 12, P // 4 % 3, P % 4], {P: dom(17)}),  # several divisors
        ([(P * 5 + Q) // 4, (P * 5 + Q) % 4], box(3, 5)),  # of a fused iterator
        ([P // 4, Q // 3, P % 4, Q % 3], box(7, 8)),
        ([(P // 4) // 3, (P // 4) % 3, P % 4], {P: dom(16)}),  # of a quotient
    ],
)
def test_padding(indices: list[PrimExpr], iters: dict[Var, Range]) -> None:
    assert not detect_iter_map(indices, iters)
    assert _check_padding(indices, iters)


def test_random_padding() -> None:
    rng = Random(11)
    found = 0
    for _ in range(250):
        iters = {var: dom(rng.randint(1, 14), rng.choice((0, 0, 0, 2, -3))) for var in (P, Q)}
        offset, by, other = rng.choice((0, 0, 1, 3, 5, -2)), rng.randint(2, 6), rng.randint(2, 4)
        fused = rng.random() < 0.4
        value = (P * iters[Q].extent.value + Q if fused else P) + offset
        tail = [] if fused else rng.choice(([], [Q]))
        indices = [*rng.choice((
            [value // by, value % by],
            [value // (by * other), value // by % other, value % by],
            [value // by // other, value // by % other, value % by],
            [value // by], [value % by, value // by],
        )), *tail]  # fmt: skip
        found += _check_padding(indices, iters)
    assert found > 100


def test_padding_of_symbolic_extents_and_refusals() -> None:
    found = detect_iter_map([P // 8, P % 8], {P: dom(N)}, level="no-check")
    assert found and str(found.padding) == "n <= i"
    assert not detect_iter_map([P // 5, P % 5], {P: dom(13)})  # not without being asked
    assert detect_iter_map([(P + 1) // 4, P // 4], {P: dom(13)}, level="no-check").errors == (
        "an iterator is divided from several offsets",
    )


# --- index maps -------------------------------------------------------------------------------------------------------
def test_map_and_inverse() -> None:
    tiled = IndexMap((P, Q), (P // 4, Q // 8, P % 4, Q % 8))
    assert [e.value for e in tiled.map_indices([9, 17])] == [2, 2, 1, 1]
    assert [e.value for e in tiled.map_shape([16, 64])] == [4, 8, 4, 8]
    back = tiled.inverse([16, 64])
    env = every([P, Q], [range(16), range(64)])
    images = {v: evaluate(e, env).value for v, e in zip(back.initial_indices, tiled.final_indices)}
    assert all((evaluate(e, images).value == env[v]).all() for v, e in zip((P, Q), back.final_indices))
    assert back.compose(tiled, _within(P, 16, Q, 64)).is_equivalent_to(IndexMap((P, Q), (P, Q)), _within(P, 16, Q, 64))


def _within(*pairs: Var | int) -> Analyzer:
    analyzer = Analyzer()
    for var, extent in zip(pairs[::2], pairs[1::2]):
        analyzer.bind(var, dom(extent))
    return analyzer


def test_padding_inverse() -> None:
    tiled = IndexMap((P,), (P // 4, P % 4))
    back, padding = tiled.non_surjective_inverse([14])
    a, b = back.initial_indices
    env = every([a, b], [range(4), range(4)])
    values = evaluate(back.final_indices[0], env).value
    assert (values == env[a] * 4 + env[b]).all()
    assert (evaluate(padding, env).value == (values >= 14)).all()
    _, none = tiled.non_surjective_inverse([16])
    assert isinstance(none, IntImm) and not none.value


def test_symbolic_padding() -> None:
    back, padding = IndexMap((P,), (P // 8, P % 8)).non_surjective_inverse([N])
    a, b = back.initial_indices
    env = every([N, a, b], [range(1, 20), range(3), range(8)])
    assert (evaluate(padding, env).value == (env[a] * 8 + env[b] >= env[N])).all()


def test_no_inverse_is_a_diagnostic() -> None:
    with pytest.raises(DiagnosticError) as caught:
        IndexMap((P, Q), (P + Q,)).inverse([4, 4])
    assert caught.value.diagnostics[0].code == "RLX1050"
    with pytest.raises(DiagnosticError) as caught:
        IndexMap((P, Q), (P,)).map_indices([1])
    assert caught.value.diagnostics[0].code == "RLX1051"


def test_random_layouts_invert() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        p, q = (int(x) for x in rng.choice([2, 4, 8], 2))
        made = IndexMap((P, Q), tuple(rng.permutation(np.array([P // p, P % p, Q // q, Q % q], object))))
        back = made.inverse([16, 32])
        env = every([P, Q], [range(16), range(32)])
        images = {v: evaluate(e, env).value for v, e in zip(back.initial_indices, made.final_indices)}
        assert all((evaluate(e, images).value == env[v]).all() for v, e in zip((P, Q), back.final_indices))
