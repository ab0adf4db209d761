"""Index maps: functions from the indices of one layout to those of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.iter_map import IterMap, detect_iter_map, iter_inverse, iter_map_simplify
from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType
from relaxlang.base.node import Node, node
from relaxlang.ir.prim import IntImm, PrimExpr, PrimLike, Var, as_prim, const
from relaxlang.ir.tir import Range
from relaxlang.ir.visit import Rewriter, on, substitute


@node
class IndexMap(Node):
    """`initial_indices` (variables) to `final_indices` (expressions over them).

    `inverse_index_map`: its inverse, where someone knows it better than `inverse` can find out.
    """

    initial_indices: tuple[Var, ...]
    final_indices: tuple[PrimExpr, ...]
    inverse_index_map: IndexMap | None = None

    def map_indices(self, indices: Sequence[PrimLike], analyzer: Analyzer | None = None) -> tuple[PrimExpr, ...]:
        """The final indices at some initial ones."""
        self._check_count(len(indices))
        values = {var: as_prim(value, var.dtype) for var, value in zip(self.initial_indices, indices)}
        simplify = (analyzer or Analyzer()).simplify
        return tuple(simplify(substitute(index, values)) for index in self.final_indices)

    def map_ranges(self, ranges: Sequence[Range], analyzer: Analyzer | None = None) -> tuple[Range, ...]:
        """Ranges that hold the final indices for initial ones in `ranges`; the smallest ones for iteration maps."""
        from relaxlang.arith.intervals import int_set

        self._check_count(len(ranges))
        analyzer = analyzer or Analyzer()
        domain = dict(zip(self.initial_indices, ranges))
        result = []
        for index, simple in zip(self.final_indices, iter_map_simplify(self.final_indices, domain, analyzer=analyzer)):
            found = int_set(simple, domain, analyzer)
            if found.min is None or found.max is None:
                _no_map(f"the range of `{index!r}` is not bounded")
            result.append(Range(found.min, analyzer.simplify(found.max - found.min + 1)))
        return tuple(result)

    def map_shape(self, shape: Sequence[PrimLike], analyzer: Analyzer | None = None) -> tuple[PrimExpr, ...]:
        """The shape of a buffer in the new layout."""
        return tuple(r.min + r.extent for r in self.map_ranges(self._ranges(shape), analyzer))

    def inverse(self, shape: Sequence[PrimLike | Range], analyzer: Analyzer | None = None) -> IndexMap:
        """The map back, for initial indices within `shape`.

        A `DiagnosticError` (RLX1050) when two of them share an image or the images leave gaps.
        """
        if self.inverse_index_map is not None:
            return self.inverse_index_map
        ranges = self._ranges(shape)
        analyzer = analyzer or Analyzer()
        found = detect_iter_map(
            self.final_indices, dict(zip(self.initial_indices, ranges)), level="bijective", analyzer=analyzer
        )
        if not found:
            _no_map(found.errors[0])
        return self._inverted(found, analyzer)

    def non_surjective_inverse(
        self, shape: Sequence[PrimLike | Range], analyzer: Analyzer | None = None
    ) -> tuple[IndexMap, PrimExpr]:
        """The map back, and the condition on its arguments under which they are padding: images of no initial index.

        Where a divisor in the map does not divide an iterator, the iterator is padded. RLX1050 when that makes no
        bijection.
        """
        ranges = self._ranges(shape)
        analyzer = analyzer or Analyzer()
        domain = dict(zip(self.initial_indices, ranges))
        found = detect_iter_map(self.final_indices, domain, level="bijective", padded=True, analyzer=analyzer)
        if not found:
            _no_map(found.errors[0])
        inverse = self._inverted(found, analyzer)
        values = dict(zip(self.initial_indices, inverse.final_indices))
        return inverse, analyzer.simplify(substitute(found.padding, values))

    def compose(self, first: IndexMap, analyzer: Analyzer | None = None) -> IndexMap:
        """The map that does `first` and then this one."""
        return IndexMap(first.initial_indices, self.map_indices(first.final_indices, analyzer))

    def is_equivalent_to(self, other: IndexMap, analyzer: Analyzer | None = None) -> bool:
        """Whether both give provably equal final indices for all initial ones."""
        if len(self.initial_indices) != len(other.initial_indices) or len(self.final_indices) != len(
            other.final_indices
        ):
            return False
        analyzer = analyzer or Analyzer()
        theirs = other.map_indices(self.initial_indices, analyzer)
        return all(analyzer.can_prove_equal(a, b) for a, b in zip(self.final_indices, theirs))

    def with_dtype(self, of: DType) -> IndexMap:
        """The same map over indices of another integer type."""
        params = {var: Var(var.name, of) for var in self.initial_indices}
        retype = _Retype(params, of)
        back = None if self.inverse_index_map is None else self.inverse_index_map.with_dtype(of)
        return IndexMap(tuple(params.values()), tuple(retype(i) for i in self.final_indices), back)

    def _ranges(self, shape: Sequence[PrimLike | Range]) -> list[Range]:
        self._check_count(len(shape))
        return [
            extent if isinstance(extent, Range) else Range(as_prim(0, var.dtype), as_prim(extent, var.dtype))
            for var, extent in zip(self.initial_indices, shape)
        ]

    def _inverted(self, found: IterMap, analyzer: Analyzer) -> IndexMap:
        outputs = [Var(f"axis{k}", index.dtype) for k, index in enumerate(self.final_indices)]
        with analyzer.assuming():
            for output, total in zip(outputs, found.indices):
                extent = as_prim(1, output.dtype)
                for split in total.args:
                    extent = extent * split.extent
                if not isinstance(extent, IntImm) or extent.value > 1:
                    analyzer.bind(output, Range(total.base, analyzer.simplify(extent)))
            values = iter_inverse(found, outputs, analyzer)
        return IndexMap(tuple(outputs), tuple(values[var] for var in self.initial_indices))

    def _check_count(self, given: int) -> None:
        if given != len(self.initial_indices):
            fail("RLX1051", f"the index map takes {len(self.initial_indices)} indices, and {given} are given")


class _Retype(Rewriter):
    def __init__(self, params: Mapping[Var, Var], of: DType) -> None:
        self.params = params
        self.of = of

    @on(Var)
    def var(self, node: Var) -> Var:
        """An index in the new type."""
        return self.params.get(node, node)

    @on(IntImm)
    def constant(self, node: IntImm) -> PrimExpr:
        """A constant in the new type; conditions stay."""
        return node if node.dtype.is_bool else const(node.value, self.of)


def _no_map(reason: str) -> NoReturn:
    fail("RLX1050", "the index map has no inverse here", notes=[reason])
