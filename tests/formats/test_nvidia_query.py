"""`nvidia-smi --query-gpu`: what the samples and a few small texts must give, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.nvidia_query import FORMAT

FOLDER = Path(__file__).parents[2] / "sample_logs" / "nvidia_query"


def frame(text: str) -> pl.DataFrame:
    lines = text.removesuffix("\n").split("\n")
    return pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )


def claim(text: str) -> Claim:
    found = FORMAT.sniff(Head(tuple(frame(text)["text"]), complete=True))
    assert found is not None
    return found


def parsed(text: str) -> Parsed:
    return FORMAT.parse(Chunk(frame(text), claim(text)))


def sample(name: str) -> str:
    return (FOLDER / name).read_bytes().decode()


def rows(result: Parsed) -> list[dict[str, object]]:
    return result.tables["gpu_sample"].to_dicts()


def test_every_way_to_say_no_value_is_null() -> None:
    third = rows(parsed(sample("query_mixed_na.csv")))[2]
    assert [third[name] for name in ("power_w", "mem_temp_c", "sm_ratio")] == [None, None, None]
    assert (third["power_limit_w"], third["mem_ratio"], third["memory_used_bytes"]) == (350.0, 0.0, 0)


def test_active_reasons_are_joined_where_there_is_no_mask() -> None:
    found = rows(parsed(sample("query_reasons.csv")))
    assert [row["clock_reasons"] for row in found] == [
        "sw_power_cap",
        "sw_power_cap, hw_thermal_slowdown",
        "none",
        None,
    ]
    assert json.loads(str(found[1]["other"]))["fan.speed"] == 74


def test_a_mask_is_kept_as_it_stands() -> None:
    assert rows(parsed(sample("query_mixed_na.csv")))[0]["clock_reasons"] == "0x0000000000000004"


def test_units_alone_name_the_cells_of_a_file_without_heading() -> None:
    own = claim(sample("query_noheader_units.csv"))
    assert (own.clock, own.variant) == (Clock.NONE, "query-gpu without heading, 5 columns guessed from units")
    found = rows(parsed(sample("query_noheader_units.csv")))
    assert [row["gpu_index"] for row in found] == [0, 1, 0, 1]
    assert [row["sm_ratio"] for row in found] == [0.77, 0.43, 0.79, 0.46]
    assert (found[0]["power_w"], found[0]["power_limit_w"]) == (187.31, 280.0)
    assert found[0]["memory_used_bytes"] == 21910 * 1048576


def test_of_two_sizes_without_heading_the_larger_is_the_total() -> None:
    row = rows(parsed("2026/05/01 10:00:00.100, 81559 MiB, 70110 MiB, 61, 99 %, 40 %\n"))[0]
    assert (row["memory_total_bytes"], row["memory_used_bytes"]) == (81559 * 1048576, 70110 * 1048576)
    assert (row["sm_ratio"], row["gpu_index"]) == (0.99, 0)
    assert json.loads(str(row["other"])) == {"column_4": 61, "column_6": 40}
    assert "temp_c" not in row
    assert "mem_ratio" not in row


def test_rows_without_heading_and_units_are_issues_not_guesses() -> None:
    result = parsed(sample("query_headerless.csv"))
    assert rows(result) == []
    assert result.issues["reason"].to_list() == ["no heading above: columns have no names"] * 2


def test_a_transcript_changes_its_heading_and_keeps_errors_as_events() -> None:
    result = parsed(sample("query_transcript.csv"))
    found = rows(result)
    assert [row["gpu_index"] for row in found] == [0, 1, 0]
    assert (found[2]["sm_clock_mhz"], found[2]["temp_c"], found[2]["power_w"]) == (1410.0, 64.0, 287.4)
    assert result.tables["log_event"]["line_no"].to_list() == [5]
    assert (result.issues.height, result.understood) == (0, 10)


HEADING = "timestamp, index, power.draw [W], utilization.gpu [%]\n"
GOOD = "2026/05/02 00:00:00.013, 0, 688.20 W, 100 %\n"


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        ("2026/05/02 00:00:02.015, 0, 690.87 W, 10", "row cut in its last cell"),
        ("2026/05/02 00:00:02.015, 0, 69", "cells differ from heading"),
        ("2026/13/02 00:00:02.015, 0, 690.87 W, 100 %", "stamp cannot be read"),
        ("2026/05/02 00:00:02.015, GPU, 690.87 W, 100 %", "no GPU index"),
    ],
)
def test_a_row_that_cannot_be_trusted_is_an_issue(tail: str, reason: str) -> None:
    result = parsed(HEADING + GOOD * 2 + tail)
    assert result.tables["gpu_sample"].height == 2
    assert result.issues.rows() == [(4, reason, tail)]


def test_a_cell_in_another_unit_is_null() -> None:
    assert (
        rows(parsed(HEADING + GOOD + "2026/05/02 00:00:02.015, 0, 690.87 kW, 100 %\n"))[1]["power_w"] is None
    )


def test_draw_is_preferred_to_its_average_and_the_rest_is_kept() -> None:
    row = rows(
        parsed("power.draw.average [W], power.draw [W], utilization.gpu [%]\n250.10 W, 251.30 W, 7 %\n")
    )[0]
    assert row["power_w"] == 251.3
    assert json.loads(str(row["other"])) == {"power.draw.average": 250.10}


def test_a_sentence_with_as_many_commas_is_no_row() -> None:
    result = parsed("index, power.draw [W]\n0, 20.00 W\n0, 21.00 W\n1, well that went wrong\n")
    assert result.issues["reason"].to_list() == ["row cut in its last cell"]
