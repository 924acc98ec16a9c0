"""Rows on their way out: all formats say the same, and none of them acts."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

ODD = (
    "SELECT 1::BIGINT AS whole, 0.1 + 0.2::DOUBLE AS fraction, 'a,\"b\"' AS quoted, NULL::VARCHAR AS missing, true AS yes, "
    "TIMESTAMP '2026-11-29 12:46:54.651777' AS stamp, TIMESTAMP '2026-11-29 12:46:54' AS even, [1, 2] AS list, 2::HUGEINT ** 70 AS big"
)


def settled(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Rows without the last digits of floats: the order in which threads add them up is not fixed."""
    return [
        {key: float(f"{value:.12g}") if isinstance(value, float) else value for key, value in row.items()}
        for row in rows
    ]


def as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


@pytest.mark.parametrize(
    "args",
    [
        ("sql", ODD),
        ("slowest",),
        ("sources",),
        ("query", "requests"),
        ("query", "stages"),
        ("query", "timeline"),
        ("formats", "list"),
        ("schema", "request"),
    ],
)
def test_csv_json_and_jsonl_agree_cell_for_cell(run, args: tuple[str, ...]) -> None:
    rows = list(csv.DictReader(io.StringIO(run(*args, "--format", "csv").stdout)))
    objects = json.loads(run(*args, "--format", "json").stdout)
    lines = [json.loads(line) for line in run(*args, "--format", "jsonl").stdout.splitlines()]
    assert objects
    assert settled(objects) == settled(lines)
    assert [list(one) for one in objects] == [list(one) for one in rows]
    for one, row in zip(objects, rows, strict=True):
        for key, value in one.items():
            if isinstance(value, float):
                assert float(row[key]) == pytest.approx(value, rel=1e-12)
            else:
                assert row[key] == as_text(value)


def test_instants_are_iso_text_with_microseconds_and_floats_have_all_digits(run) -> None:
    (row,) = json.loads(run("sql", ODD, "--format", "json").stdout)
    assert row["stamp"] == "2026-11-29T12:46:54.651777"
    assert row["even"] == "2026-11-29T12:46:54.000000"
    assert row["missing"] is None
    assert row["whole"] == 1


def test_a_pipe_gets_csv(run) -> None:
    assert run("sql", "SELECT 1 AS a, NULL AS b").stdout == "a,b\n1,\n"


def test_a_second_column_of_the_same_name_is_not_lost_in_json(run) -> None:
    assert json.loads(run("sql", "SELECT 1 AS a, 2 AS a", "--format", "json").stdout) == [{"a": 1, "a_1": 2}]


def test_no_rows_are_an_empty_array_and_a_header(run) -> None:
    assert json.loads(run("sql", "SELECT 1 AS a WHERE false", "--format", "json").stdout) == []
    assert run("sql", "SELECT 1 AS a WHERE false", "--format", "csv").stdout == "a\n"


def test_markdown_escapes_what_would_be_a_cell_or_markup(run) -> None:
    query = (
        "SELECT 'a|b' AS x, '<script>' AS y, 'one`two' AS z, chr(27) || '[2J' AS w, E'l1\\nl2' AS v, 7 AS n"
    )
    head, rule, row = run("sql", query, "--format", "md").stdout.splitlines()
    assert head == "| x | y | z | w | v | n |"
    assert rule == "| --- | --- | --- | --- | --- | ---: |"
    assert row == "| `a\\|b` | `<script>` | ``one`two`` | `\\x1b[2J` | `l1\\nl2` | 7 |"


def test_a_table_aligns_numbers_to_the_right_and_shortens_text(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    lines = run(
        "sql", "SELECT 5 AS n, repeat('x', 60) AS t UNION ALL SELECT 1234, 'y'", "--format", "table"
    ).stdout.splitlines()
    assert lines[2].startswith("   5  xxx")
    assert lines[2].endswith("…")
    assert lines[3] == "1234  y"
    assert max(len(line) for line in lines) == 30


def test_columns_that_do_not_fit_are_named_on_stderr(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    result = run(
        "sql", "SELECT 1111111111 AS first_one, 2222222222 AS second_one, 3 AS third_one", "--format", "table"
    )
    assert "third_one" not in result.stdout
    assert "third_one" in result.stderr


def test_rows_can_go_into_a_file_whose_name_says_the_format(run, tmp_path: Path) -> None:
    run("sql", "SELECT 1 AS a", "-o", tmp_path / "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text()) == [{"a": 1}]
    run("query", "stages", "-o", tmp_path / "rows.parquet")
    import polars as pl

    assert pl.read_parquet(tmp_path / "rows.parquet").height == 11


def test_parquet_without_a_file_and_a_file_that_cannot_be_written_are_usage_errors(
    run, tmp_path: Path
) -> None:
    assert run("sql", "SELECT 1", "--format", "parquet").exit_code == 2
    assert run("sql", "SELECT 1", "-o", tmp_path / "none" / "x.csv").exit_code == 2
    assert run("sql", "SELECT 1", "-o", tmp_path / "none" / "x.parquet").exit_code == 2
