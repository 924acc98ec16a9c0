"""`dcgmi dmon`: what the samples and a few small texts must give, counted by hand."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import polars as pl
import pytest

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.gpu.dcgmi_dmon import FORMAT

FOLDER = Path(__file__).parents[2] / "sample_logs" / "dcgmi_dmon"


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


def test_an_absent_cell_is_null_and_the_cells_behind_it_keep_their_names() -> None:
    row = rows(parsed(sample("dcgmi_dmon_mig.log")))[2]
    assert (row["sm_active_ratio"], row["dram_active_ratio"], row["tensor_active_ratio"]) == (
        0.921,
        None,
        0.110,
    )
    assert (row["gpu_index"], json.loads(str(row["other"]))) == (None, {"entity": "GPU-CI 7"})


def test_repeated_headings_units_and_the_last_sentence_are_understood() -> None:
    result = parsed(sample("dcgmi_dmon_v4.log"))
    assert (result.issues.height, result.understood) == (0, 13)
    assert [row["pcie_tx_bps"] for row in rows(result)] == [
        None,
        None,
        153820113.0,
        1204.0,
        150012877.0,
        1188.0,
    ]


def test_an_error_instead_of_rows_is_an_event() -> None:
    event = parsed(sample("dcgmi_dmon_v2_error.log")).tables["log_event"].to_dicts()
    assert [(each["line_no"], each["kind"], each["level"]) for each in event] == [(3, "gpu", "ERROR")]


def test_an_epoch_before_each_line_is_its_stamp_and_a_cut_row_is_an_issue() -> None:
    own = claim(sample("dcgmi_dmon_epoch.log"))
    assert own.clock is Clock.UTC
    result = parsed(sample("dcgmi_dmon_epoch.log"))
    assert [row["sample_ts"] for row in rows(result)] == [
        dt.datetime(2026, 1, 1, 0, 0, second) for second in (1, 2)
    ]
    assert rows(result)[0]["memory_used_bytes"] == 70110 * 1048576
    assert result.issues.select("line_no", "reason").rows() == [(5, "cells differ from heading")]


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        ("GPU 0           0.998        0.", "row cut in its last cell"),
        ("GPU 0           0.9", "cells differ from heading"),
        ("GPU", "not a line of dcgmi dmon"),
    ],
)
def test_a_row_that_cannot_be_trusted_is_an_issue(tail: str, reason: str) -> None:
    text = "#Entity         SMACT        DRAMA        \nID                                        \n"
    result = parsed(text + "GPU 0           0.998        0.871        \n" + tail)
    assert result.tables["gpu_sample"].height == 1
    assert result.issues.rows() == [(4, reason, tail)]


def test_rows_narrower_than_the_heading_are_read_by_their_count() -> None:
    text = "#Entity   SMACT        POWER        GPUTL\nID                     W\nGPU 1     N/A        155.000        31\n"
    row = rows(parsed(text))[0]
    assert (row["gpu_index"], row["sm_active_ratio"], row["power_w"], row["sm_ratio"]) == (
        1,
        None,
        155.0,
        0.31,
    )


def test_a_link_is_no_gpu() -> None:
    row = rows(
        parsed("#Entity         NVLTX        NVLRX        \nGPU 0 LINK 3    120          80           \n")
    )[0]
    assert (row["gpu_index"], row["nvlink_tx_bps"], row["nvlink_rx_bps"]) == (None, 120.0, 80.0)
