"""`nvidia-smi --query-gpu`: what the samples and a few small texts must give, counted by hand."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import polars as pl
import pytest

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.gpu.nvidia_query import FORMAT

FOLDER = Path(__file__).parents[2] / "sample_logs" / "nvidia_query"


def frame(text: str) -> pl.DataFrame:
    lines = text.removesuffix("\n").split("\n")
    return pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )


def claim(text: str) -> Claim:
    found = FORMAT.sniff(Head(tuple(text.split("\n")), complete=True))
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
    assert own.clock is Clock.NONE
    assert own.variant == "query-gpu without heading, 5 columns guessed from units, no time"
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


def test_bare_numbers_are_named_where_their_values_tell() -> None:
    own = claim(sample("query_headerless.csv"))
    told = "timestamp memory.total memory.used utilization.gpu power.draw"
    assert own.variant == f"query-gpu without heading, {told} guessed from values"
    assert own.clock is Clock.LOCAL
    row = rows(parsed(sample("query_headerless.csv")))[0]
    assert (row["memory_total_bytes"], row["memory_used_bytes"]) == (32607 * 1048576, 27330 * 1048576)
    assert (row["sm_ratio"], row["power_w"], row["other"]) == (0.97, 399.71, None)


def test_bare_numbers_that_could_be_several_things_keep_their_places() -> None:
    own = claim(sample("query_bare_unsure.csv"))
    assert own.variant == "query-gpu without heading, timestamp guessed from values, 5 columns without a name"
    row = rows(parsed(sample("query_bare_unsure.csv")))[0]
    assert json.loads(str(row["other"])) == {
        "column_2": 70110, "column_3": 61, "column_4": 40, "column_5": 1980, "column_6": 700.0,
    }  # fmt: skip
    assert {"power_w", "sm_ratio", "memory_used_bytes", "temp_c"} & set(row) == set()


STAMPS = [f"2026/05/01 10:00:0{at}.100" for at in range(4)]


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (["81559 81559 81559 81559"], []),  # one size alone may be the total or what is in use all the time
        (["81559 81559 81559 81559", "0 4 70110 70110"], ["memory.total", "memory.used"]),
        (["81559 81559 81559 81559", "4 4 4 4"], []),  # in use, free, or anything else that is small
        (["81559 81559 81559 81559", "70110 70110 70110 70111", "11449 11449 11449 30000"], ["memory.total"]),
        (["0 0 0 0"], []),  # an index, or nothing to do
        (["0 0 97 98"], ["utilization.gpu"]),
        (["1 4 4 4"], []),  # a generation of PCIe
        (["0 1 0 1"], ["index"]),
        (["61 62 63 64"], []),  # a temperature, or a utilization
        (["97 61 99 100"], ["utilization.gpu"]),
        (["97 61 99 100", "96 97 98 99"], []),
        (["250.10 251.00 250.90 252.00", "700.00 700.00 700.00 700.00"], ["power.draw", "power.limit"]),
        (["250.10 250.10 250.10 250.10"], []),
        (["250.10 251.00 250.90 252.00", "250.00 250.00 251.00 251.00"], []),
        (["1980 1965 1980 1950"], []),
    ],
)
def test_ranges_name_a_bare_column_only_where_nothing_else_can_be_meant(
    columns: list[str], names: list[str]
) -> None:
    text = "".join(
        f"{', '.join(row)}\n" for row in zip(STAMPS, *(each.split() for each in columns), strict=True)
    )
    told = claim(text).variant.split(" guessed")[0].removeprefix("query-gpu without heading, ").split()
    assert sorted(told) == sorted(["timestamp", *names])


def test_epoch_utilization_power_and_memory_is_a_form_of_its_own() -> None:
    own = claim(sample("query_epoch_bare.csv"))
    assert own.clock is Clock.UTC
    assert "utilization.gpu power.draw memory.used memory.total guessed from values" in own.variant
    row = rows(parsed(sample("query_epoch_bare.csv")))[0]
    assert (row["sm_ratio"], row["power_w"], row["gpu_index"]) == (0.96, 35.21, 0)
    assert (row["memory_used_bytes"], row["memory_total_bytes"]) == (20110 * 1048576, 122502 * 1048576)
    assert row["sample_ts"] == dt.datetime(2026, 1, 1)


def test_a_stamp_before_each_line_is_taken_where_it_says_more_than_the_tools_own() -> None:
    row = rows(parsed(sample("query_container_log.log")))[0]
    assert row["sample_ts"] == dt.datetime(2026, 5, 1, 10, 34, 56, 801220)
    assert json.loads(str(row["other"])) == {"timestamp": "2026/05/01 12:34:56.789"}
    assert claim(sample("query_container_log.log")).variant == "query-gpu, 5 columns, units, zoned prefix"


@pytest.mark.parametrize(
    ("prefix", "clock"),
    [
        ("1767225600 ", Clock.UTC),
        ("[2026-05-01T12:34:56+02:00] ", Clock.UTC),
        ("Mar 08 11:20:34 ", Clock.YEARLESS),
        ("07:44:10.018\t", Clock.DAYLESS),
        ("2026-05-01 12:34:56,100 ", Clock.LOCAL),
    ],
)
def test_any_stamp_before_the_lines_of_a_file_without_one_is_read(prefix: str, clock: Clock) -> None:
    lines = "index, power.draw [W], utilization.gpu [%]\n0, 97.10 W, 12 %\n1, 99.00 W, 3 %\n".splitlines()
    for text in (
        "".join(f"{prefix}{line}\n" for line in lines),
        "\n".join([lines[0], *(prefix + line for line in lines[1:])]),
    ):
        assert claim(text + "\n").clock is clock
        found = rows(parsed(text + "\n"))
        assert [row["power_w"] for row in found] == [97.1, 99.0]
        assert all(row["sample_ts"] is not None for row in found)


def test_a_script_may_name_its_own_stamp_in_the_heading() -> None:
    found = rows(parsed(sample("query_epoch_named.csv")))
    assert [row["gpu_index"] for row in found] == [0, 1, 0, 1]
    assert [row["sm_ratio"] for row in found] == [0.45, 0.99, 0.46, 0.98]
    assert found[0]["sample_ts"] == dt.datetime(2026, 1, 1, 0, 0, 0, 250000)
    assert found[0]["error_s"] == pytest.approx(0.001)


@pytest.mark.parametrize("name", ["query_no_index_4gpu.csv", "query_uuid_no_index.csv"])
def test_gpus_that_have_no_index_are_not_all_the_first(name: str) -> None:
    assert "GPUs without an index, numbered in their order" in claim(sample(name)).variant
    assert {row["gpu_index"] for row in rows(parsed(sample(name)))} == {None}


def test_a_heading_behind_a_cut_row_holds_from_there_on() -> None:
    result = parsed(sample("query_appended_cut.csv"))
    assert [(row["power_w"], row["sm_ratio"]) for row in rows(result)] == [
        (688.2, 1.0),
        (120.1, 0.07),
        (121.44, 0.09),
    ]
    assert result.issues.select("line_no", "reason").rows() == [(3, "row cut, a heading behind it")]


def test_the_period_is_known_where_the_command_is_in_the_file() -> None:
    command = "$ nvidia-smi --query-gpu=index,power.draw --format=csv --loop=5\n"
    own = claim(command + "index, power.draw [W]\n0, 97.10 W\n0, 99.00 W\n")
    assert own.variant == "query-gpu, 2 columns, units, no time, --loop 5"


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


def test_a_year_that_no_calendar_has_is_no_stamp() -> None:
    text = HEADING + GOOD + "0000/05/02 00:00:02.015, 0, 690.87 W, 100 %\n"
    assert parsed(text).issues.select("line_no", "reason").rows() == [(3, "stamp cannot be read")]
    assert FORMAT.sniff(Head(("0000/01/01 00:00:00.0,",))) is None
