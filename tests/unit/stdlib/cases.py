"""All cases of the tables."""

from __future__ import annotations

from tests.unit.stdlib import table, table_index, table_nn
from tests.unit.stdlib.table import Case

PARTS = (table, table_nn, table_index)  # whose import enters their cases
CASES: list[Case] = table.CASES
