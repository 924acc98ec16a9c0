"""Cells read by their place in aligned rows are those that splitting each row gives."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.base import Chunk, Claim, Head
from tracelens.formats.gpu.aligned import aligned_cells
from tracelens.formats.gpu.dmon_rows import FEWEST_ALIGNED
from tracelens.formats.gpu.nvidia_dmon import parse, sniff

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


@settings(max_examples=30, deadline=None)
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


HEADING = "#Date       Time        gpu    pwr  mtemp     sm     fb  rxpci   bar1"
ROWS = 3 * FEWEST_ALIGNED


def _row(at: int) -> str:
    cells = [at % 8, 100 + at % 700, "-", at % 101, 70_000 + at % 9, at * 7 % 12_345, 2]
    return f" 20261120   03:{at // 480 % 60:02}:{at // 8 % 60:02}" + "".join(f"{cell:>7}" for cell in cells)


def _samples(lines: list[str], first_line_no: int, claim: Claim) -> pl.DataFrame:
    frame = pl.DataFrame({"text": lines}).with_row_index("line_no", first_line_no)
    chunk = Chunk(frame.select(pl.col("line_no").cast(pl.Int64), "text"), claim, HEADING)
    parsed = parse(chunk)
    assert (parsed.understood, parsed.issues.height) == (len(lines), 0)
    return parsed.tables["gpu_sample"]


def test_many_rows_of_dmon_give_what_few_give() -> None:
    lines = [_row(at) for at in range(ROWS)]
    lines[5] += " "  # of another length
    claim = sniff(Head((HEADING, *lines[:20])))
    assert claim is not None
    many = _samples(lines, 1, claim)
    step = FEWEST_ALIGNED // 2
    few = [_samples(lines[at : at + step], at + 1, claim) for at in range(0, ROWS, step)]
    assert many.equals(pl.concat(few))
    assert many["power_w"].to_list() == [100 + at % 700 for at in range(ROWS)]
    assert many["pcie_rx_bps"].to_list() == pytest.approx([at * 7 % 12_345 * 1e6 for at in range(ROWS)])
    assert many["sm_ratio"].to_list() == [at % 101 / 100 for at in range(ROWS)]
    assert many["mem_temp_c"].null_count() == ROWS
    assert set(many["other"]) == {'{"bar1":2}'}
