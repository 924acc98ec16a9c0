"""Cells read by their place in aligned rows are those that splitting each row gives."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.gpu.aligned import aligned_cells

CELL = st.one_of(
    st.integers(0, 99_999).map(str),
    st.sampled_from(["-", "N/A", "007", "4.5", "1e3", "+5", "20261120", "0x1f"]),
)
TABLE = st.integers(1, 4).flatmap(
    lambda count: st.lists(st.lists(CELL, min_size=count, max_size=count), min_size=1, max_size=8)
)


def _aligned(table: list[list[str]], width: int = 10) -> pl.Series:
    return pl.Series(["".join(cell.rjust(width) for cell in row) for row in table])


def _names(count: int) -> list[str]:
    return [f"cell_{at}" for at in range(count)]


@settings(max_examples=30)
@given(TABLE)
def test_cells_are_those_of_splitting_and_numbers_only_where_all_are_plain(table: list[list[str]]) -> None:
    found = aligned_cells(_aligned(table), _names(len(table[0])))
    assert found is not None
    for name, cells in zip(found.columns, zip(*table, strict=True), strict=True):
        plain = all(cell.isdecimal() and str(int(cell)) == cell for cell in cells)
        assert found[name].dtype == (pl.Int64 if plain else pl.String)
        assert [str(each) for each in found[name]] == list(cells)


def test_rows_that_are_no_table_are_left_to_others() -> None:
    for rows in (
        ["  1  2", " 1  2"],  # of two lengths
        ["  1  2", "  3   "],  # a cell is missing
        ["  1  2", "  3 45", " 1 2 6"],  # cells overlap
        ["  1,  2", "  3,  4"],  # commas between
        ["# 1  2", "# 3  4"],  # a comment's sign
        ["  1  é", "  3  4"],  # characters and bytes differ
        ["  1\t2", "  3\t4"],
        ["  1\n2", "  3 4"],
        [""],
        [],
    ):
        assert aligned_cells(pl.Series(rows, dtype=pl.String), _names(2)) is None, rows
