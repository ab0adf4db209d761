"""Integer arithmetic of shapes and indices: bounds, residues, simplification, proofs, iteration maps.

In: expressions of `ir.prim`. Out: simpler expressions, and answers that hold for every value of their variables.
Nothing here overflows where the program did not: see `classify` for which expressions may wrap around.

Reading order: `linear`, `canonical`, `bounds`, `modular`, `division`, `compare`, `rule` and `rewrite_rules/`,
`simplify`, `solve`, `prove`, `analyzer`; then, on top of it, `iter_sum`, `padding`, `iter_map`, `index_map`,
`intervals`, `deduce`.
"""

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.facts import Bound, Residue

__all__ = ["Analyzer", "Bound", "Residue"]
