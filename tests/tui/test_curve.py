"""TTFT over prompt length: the line of the query, and the requests far from it."""

from __future__ import annotations

import tracelens
from tracelens.units import duration


def test_the_line_is_that_of_the_query_and_says_when_it_explains_little(driven, demo_path) -> None:
    with tracelens.open(demo_path) as case:
        line = case.query("prompt_length_curve").dicts()[0]

    async def steps(drive) -> None:
        text = drive.text()
        assert f"{duration(line['slope_s_per_1k_tokens'])} for each 1,000 prompt" in text
        assert "The line explains little" in text
        assert "TTFT in s over prompt tokens" in text

    driven(demo_path, steps, first=("curve", ""), size=(140, 45))


def test_v_shows_tpot_where_there_is_room_for_one(driven, demo_path) -> None:
    async def steps(drive) -> None:
        assert "TPOT in ms" not in drive.text()
        await drive.press("v")
        assert "TPOT in ms over prompt tokens" in drive.text()
        await drive.resize(150, 45)
        assert "TTFT in s over" in drive.text()
        assert "TPOT in ms over" in drive.text()

    driven(demo_path, steps, first=("curve", ""), size=(80, 24))


def test_points_are_measured_against_the_line(demo_path) -> None:
    with tracelens.open(demo_path) as case:
        line = case.query("prompt_length_curve").dicts()[0]
        points = case.query("curve_points").dicts()
        few = case.query("curve_points", top=10).dicts()
    assert len(points) == 96 == few[0]["point_count"]
    assert len(few) == 10
    for row in points:
        said = line["intercept_s"] + line["slope_s_per_1k_tokens"] * row["input_tokens"] / 1000
        assert abs(row["above_s"] - (row["ttft_s"] - said)) < 1e-9


def test_a_case_without_prompt_tokens_says_what_records_them(driven, empty_path) -> None:
    async def steps(drive) -> None:
        assert "No request has both a TTFT and the tokens of its prompt" in drive.text()

    driven(empty_path, steps, first=("curve", ""), size=(80, 24))
