"""All cases of the tables."""

from __future__ import annotations

from tests.unit.stdlib import table, table_edges, table_index, table_limits, table_nn
from tests.unit.stdlib.table import Case
from tests.unit.stdlib.variants import derive

PARTS = (table, table_nn, table_index, table_edges, table_limits)  # whose import enters their cases
derive()
CASES: list[Case] = table.CASES
