"""The table of a bare nvidia-smi: what the samples must give, read off by eye."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import polars as pl
import pytest

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.gpu.nvidia_smi_table import FORMAT

FOLDER = Path(__file__).parents[2] / "sample_logs" / "nvidia_smi_table"


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


def test_one_snapshot_gives_one_row_per_gpu() -> None:
    first, second = rows(parsed(sample("table_r470.txt")))
    assert {name: cell for name, cell in first.items() if cell is not None} == {
        "line_no": 9,
        "sample_ts": dt.datetime(2021, 11, 3, 17, 20, 5),
        "error_s": 1.0,
        "gpu_index": 0,
        "gpu_name": "Tesla V100-PCIE...",
        "temp_c": 44.0,
        "power_w": 61.0,
        "power_limit_w": 250.0,
        "memory_used_bytes": 15021 * 1048576,
        "memory_total_bytes": 16160 * 1048576,
        "sm_ratio": 1.0,
        "other": '{"pstate":"P0","pci.bus_id":"00000000:3B:00.0"}',
    }
    assert [second[name] for name in ("temp_c", "power_w", "sm_ratio")] == [None, None, None]
    assert (second["power_limit_w"], second["memory_used_bytes"]) == (250.0, 0)


def test_each_snapshot_has_its_own_stamp() -> None:
    result = parsed(sample("table_r550_two_snapshots.txt"))
    assert [row["power_w"] for row in rows(result)] == [512.0, 498.0, 131.0, 128.0]
    days = [dt.datetime(2024, 6, 3, 9, 59, 58), dt.datetime(2024, 6, 3, 10, 0, 3)]
    assert [row["sample_ts"] for row in rows(result)] == [days[0], days[0], days[1], days[1]]
    assert result.stamps["stamp"].to_list() == days
    assert result.issues.height == 0


def test_a_table_without_a_date_has_no_time_and_a_cut_gpu_is_an_issue() -> None:
    assert claim(sample("table_windows_cut.txt")).clock is Clock.NONE
    result = parsed(sample("table_windows_cut.txt"))
    (row,) = rows(result)
    assert (row["gpu_name"], row["sample_ts"], row["sm_ratio"]) == ("NVIDIA GeForce RTX 4090", None, 0.71)
    assert json.loads(str(row["other"]))["pci.bus_id"] == "00000000:01:00.0"
    assert result.issues.select("line_no", "reason").rows() == [(12, "GPU without its second line")]


@pytest.mark.parametrize("name", ["table_r470.txt", "table_r550_two_snapshots.txt", "table_windows_cut.txt"])
def test_every_line_is_on_one_side(name: str) -> None:
    result = parsed(sample(name))
    assert result.understood + result.issues.height == frame(sample(name)).height
