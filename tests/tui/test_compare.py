"""Stages, engines and GPUs beside each other."""

from __future__ import annotations

import pytest

import tracelens
from tracelens.units import duration, percent


def test_stages_engines_and_gpus_are_those_of_the_queries(driven, demo_path) -> None:
    with tracelens.open(demo_path) as case:
        queue = next(row for row in case.query("stages").dicts() if row["stage"] == "queue")
        gpu = case.query("gpu_compare").dicts()[0]

    async def steps(drive) -> None:
        text = drive.text()
        line = next(line for line in text.splitlines() if "Q queue" in line)
        assert duration(queue["p99_s"]) in line
        assert "QQQQQQQQQ" in line
        assert "engine 0" in text
        assert percent(gpu["busy_util_p50_ratio"]) in next(
            line for line in text.splitlines() if "GPU 0" in line
        )

    driven(demo_path, steps, first=("compare", ""), size=(140, 45))


def test_an_empty_case_says_what_would_fill_it(driven, empty_path) -> None:
    async def steps(drive) -> None:
        text = drive.text()
        assert "none is known of any request" in text
        assert "no stats line" in text
        assert "no GPU log" in text

    driven(empty_path, steps, first=("compare", ""), size=(80, 24))


def test_engine_shares_add_up(demo_path) -> None:
    with tracelens.open(demo_path) as case:
        rows = case.query("engine_summary").dicts()
    assert sum(row["generation_share_ratio"] for row in rows) == pytest.approx(1)
