"""The timeline: zoom, pan, and a window that filters requests and findings."""

from __future__ import annotations

import tracelens


def test_the_cursor_begins_where_something_bound_the_engine(driven, demo_path) -> None:
    async def steps(drive) -> None:
        text = drive.text()
        assert "bound by seats" in text
        assert "waiting 26" in text
        assert "━━━" in text

    driven(demo_path, steps, first=("timeline", ""))


def test_zooming_in_halves_the_span_and_0_shows_all_of_it_again(driven, demo_path) -> None:
    async def steps(drive) -> None:
        rows = drive.view.scene.rows
        whole = rows[-1]["to_ts"] - rows[0]["from_ts"]
        await drive.press("plus")
        rows = drive.view.scene.rows
        assert rows[-1]["to_ts"] - rows[0]["from_ts"] == whole / 2
        await drive.press("right_square_bracket", "0")
        rows = drive.view.scene.rows
        assert rows[-1]["to_ts"] - rows[0]["from_ts"] == whole

    driven(demo_path, steps, first=("timeline", ""))


def test_a_window_filters_the_requests(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("space", "ctrl+right", "ctrl+right", "space")
        start, end = drive.app.window
        assert "window " in drive.text()
        await drive.press("enter")
        assert drive.view.NAME == "requests"
        wanted = f"SELECT count(*) FROM request WHERE arrival_ts >= '{start}' AND arrival_ts < '{end}'"
        assert drive.view.rows.count == drive.app.case.sql(wanted).rows[0][0] > 0
        await drive.press("escape", "backspace")
        assert drive.app.window is None

    driven(demo_path, steps, first=("timeline", ""))


def test_a_window_hides_findings_that_do_not_touch_it(driven, demo_path) -> None:
    async def steps(drive) -> None:
        assert "queue.seats_exhausted" in drive.text()
        drive.view.scene.place = len(drive.view.scene.rows) - 3
        await drive.press("space", "right", "space")
        assert "no finding touches this window" in drive.text()

    driven(demo_path, steps, first=("timeline", ""), size=(120, 50))


def test_another_lane_is_drawn_as_a_curve(driven, demo_path) -> None:
    async def steps(drive) -> None:
        before = drive.view.scene.lane.label
        await drive.press("down")
        assert drive.view.scene.lane.label != before
        assert f"▸ {drive.view.scene.lane.label}" in drive.text()

    driven(demo_path, steps, first=("timeline", ""), size=(120, 50))


def test_the_lanes_hold_what_the_query_says(demo_path) -> None:
    with tracelens.open(demo_path) as case:
        lanes = case.query("lanes", pieces=40).dicts()
        stats = case.sql("SELECT max(waiting_count), max(running_count) FROM engine_sample").rows[0]
        arrivals = case.sql("SELECT count(arrival_ts) FROM request").rows[0][0]
    assert {(row["waiting_highest_count"], row["running_highest_count"]) for row in lanes} == {stats}
    assert max(row["waiting_count"] or 0 for row in lanes) == stats[0]
    assert max(row["running_count"] or 0 for row in lanes) == stats[1]
    assert sum(row["arrival_count"] or 0 for row in lanes) == arrivals
    assert {row["bound_by"] for row in lanes} == {None, "none", "seats"}


def test_an_empty_case_has_no_time_and_says_so(driven, empty_path) -> None:
    async def steps(drive) -> None:
        assert "there is no time to draw" in drive.text()
        await drive.press("plus", "space", "enter", "right")
        assert drive.view.NAME == "timeline"

    driven(empty_path, steps, first=("timeline", ""), size=(80, 24))


def test_a_window_that_is_out_of_view_shades_nothing(driven, demo_path) -> None:
    from tracelens.tui.ink import DARK_INK
    from tracelens.tui.screens.timeline_parts import lane_lines

    async def steps(drive) -> None:
        await drive.press("space", "space")
        assert shaded(drive)
        await drive.press(*["plus"] * 3, *["right_square_bracket"] * 4)
        assert not shaded(drive)

    def shaded(drive) -> bool:
        lines = lane_lines(drive.view.scene, 120, DARK_INK)
        return any(span.style == DARK_INK.faint_cursor for line in lines for span in line.spans)

    driven(demo_path, steps, first=("timeline", ""))
