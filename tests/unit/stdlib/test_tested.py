"""The page of what is tested of each operator is what the tables give."""

from tests.unit.stdlib.tested import WHY, passes, table, texts


def test_page_and_data_are_up_to_date() -> None:
    for path, text in texts().items():
        assert path.read_text("utf-8") == text, f"run `python -m tests.unit.stdlib.tested` to write {path.name}"


def test_operators_with_values_pass_every_column() -> None:
    rows = table()
    assert [name for name, row in rows.items() if row and not passes(row)] == []
    assert {name.split(".")[0] for name, row in rows.items() if not row} == set(WHY)
