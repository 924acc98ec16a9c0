"""A GPU log that is longer than a chunk: its rows are still judged by the rows before them, in the order of its lines."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import tracelens
from tracelens.ingestion.chunks import CHUNK_BYTES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("_asks_facts_alone")

SECONDS, GPUS = 14_000, 8
START = datetime(2026, 11, 20, 3)
HEADS = (
    "#Date       Time        gpu     sm    mem    enc    dec    jpg    ofa    pwr  gtemp  mtemp   mclk   pclk     fb   bar1   ccpm  rxpci\n"
    "#YYYYMMDD   HH:MM:SS    Idx      %      %      %      %      %      %      W      C      C    MHz    MHz     MB     MB     MB   MB/s\n"
)
REST = "     20      0      0      0      0    431     44     51   2619   1755  71342      2      0"


def test_ticks_are_counted_through_a_log_of_several_chunks(tmp_path: Path) -> None:
    log = tmp_path / "dmon.log"
    with log.open("w") as stream:
        for second in range(SECONDS):
            if second % 30 == 0:
                stream.write(HEADS)
            at = f"{START + timedelta(seconds=second):%Y%m%d   %H:%M:%S}"
            stream.writelines(
                f" {at} {gpu:6d} {50 + gpu:6d} {REST} {second * 7919 % 9973:6d}\n" for gpu in range(GPUS)
            )
    assert log.stat().st_size > CHUNK_BYTES
    tracelens.ingest([log], tmp_path / "case.duckdb")
    with tracelens.open(tmp_path / "case.duckdb") as case:
        found = case.sql(
            "SELECT count(*), count(DISTINCT tick), max(tick), count(DISTINCT segment) FROM gpu_sample"
        )
        wrong = case.sql("SELECT count(*) FROM gpu_sample WHERE sm_ratio <> (50 + gpu_index) / 100.0")
    assert found.rows == [(SECONDS * GPUS, SECONDS, SECONDS - 1, 1)]
    assert wrong.rows == [(0,)]
