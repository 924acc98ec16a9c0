"""The table of requests: its order, its filters, its jumps, and the way into one of them and back."""

from __future__ import annotations

import tracelens

WORST = "chatcmpl-b_queue_dominated-1bea85931a95"


async def choose(drive, *downs: str) -> None:
    await drive.press(*downs, "enter")


def test_the_worst_request_stands_first_and_opens_with_enter(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("r")
        assert "96 requests · by TTFT, largest first" in drive.text()
        assert drive.view.rows.row["request_id"] == WORST
        await drive.press("enter")
        assert drive.view.NAME == "request"
        assert f"Requests ▸ {WORST}" in drive.text().splitlines()[0]
        await drive.press("escape")
        assert drive.view.NAME == "requests"
        await drive.press("escape")
        assert drive.view.NAME == "overview"

    driven(demo_path, steps)


def test_the_order_is_that_of_the_query(driven, demo_path) -> None:
    with tracelens.open(demo_path) as case:
        wanted = case.sql("SELECT request_id FROM request ORDER BY queue_s ASC, request_id").rows

    async def steps(drive) -> None:
        await drive.press("2", "o")
        drive.app.screen.dismiss("queue_s")
        await drive.pilot.pause()
        await drive.press("o")
        drive.app.screen.dismiss("queue_s")
        await drive.press("home")
        assert "by queue, smallest first" in drive.text()
        seen = [drive.view.rows._row(place)["request_id"] for place in range(96)]
        assert seen == [row[0] for row in wanted]

    driven(demo_path, steps)


def test_a_preset_filters_and_says_so_in_the_way(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("r", "f")
        await choose(drive, "down")
        assert "Requests (slowest 1 %)" in drive.text().splitlines()[0]
        assert drive.view.rows.count == 1
        await drive.press("f")
        drive.app.screen.dismiss("status = 'aborted'")
        await drive.press("tab")
        assert "no request of this run: aborted" in drive.text()

    driven(demo_path, steps)


def test_an_expression_filters_and_a_wrong_one_is_told_in_place(driven, demo_path) -> None:
    with tracelens.open(demo_path) as case:
        wanted = case.sql("SELECT count(*) FROM request WHERE queue_s > 5 AND input_tokens < 200").rows[0][0]

    async def steps(drive) -> None:
        drive.app.open("requests", "queue_s > 5 AND input_tokens < 200")
        await drive.press("tab")
        assert drive.view.rows.count == wanted
        await drive.press("f", "home", "enter")
        drive.app.screen.query_one("Input").value = "queue_seconds > 5"
        await drive.press("enter")
        assert "error" in drive.text()
        assert "queue_seconds" in drive.text()
        assert "reading" not in drive.text().splitlines()[2]

    driven(demo_path, steps)


def test_a_percentile_is_gone_to(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("r", "percent_sign")
        drive.app.screen.query_one("Input").value = "p50"
        await drive.press("enter")
        assert drive.view.rows.cursor == 48
        await drive.press("percent_sign")
        drive.app.screen.query_one("Input").value = "fast"
        await drive.press("enter")
        assert "is no percentile" in drive.text()

    driven(demo_path, steps)


def test_a_part_of_an_id_is_found_from_any_screen(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("slash")
        await drive.type("1bea85931a95")
        await drive.press("enter")
        assert drive.view.NAME == "request"
        assert drive.view.request_id == WORST

    driven(demo_path, steps)


def test_several_that_match_are_offered_and_none_is_said(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("slash")
        await drive.type("queue_dominated-1")
        await drive.press("enter")
        assert "requests match by their part" in drive.text()
        await drive.press("enter")
        assert drive.view.NAME == "request"
        await drive.press("slash")
        await drive.type("nobody")
        await drive.press("enter")
        assert drive.view.NAME == "request"

    driven(demo_path, steps)


def test_keys_move_by_rows_pages_and_to_the_ends(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("r", "end")
        assert drive.view.rows.cursor == 95
        assert "▸" in drive.text().splitlines()[-2]
        await drive.press("home", "down", "down")
        assert drive.view.rows.cursor == 2
        await drive.press("pagedown")
        assert drive.view.rows.cursor > 10
        await drive.press("right", "right", "right")
        assert "queue" in drive.text().splitlines()[2]
        assert "rank" not in drive.text().splitlines()[2]

    driven(demo_path, steps, size=(80, 24))


def test_a_resize_keeps_the_row_under_the_cursor_in_view(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("r", "end")
        for size in ((80, 24), (200, 60)):
            await drive.resize(*size)
            assert sum("▸ chatcmpl" in line for line in drive.text().splitlines()) == 1

    driven(demo_path, steps, size=(120, 50))


def test_what_s_opens_gives_the_rows_of_the_table(driven, demo_path) -> None:
    async def steps(drive) -> None:
        drive.app.open("requests", "queue_s > 5")
        await drive.press("tab", "s")
        text = drive.app.screen.query_one("TextArea").text
        rows = drive.app.case.sql(text).dicts()
        assert len(rows) == 50
        assert rows[0]["request_id"] == WORST

    driven(demo_path, steps)


def test_an_empty_case_says_where_requests_come_from(driven, empty_path) -> None:
    async def steps(drive) -> None:
        await drive.press("r")
        assert "no request in this run" in drive.text()
        assert "--otlp-traces-endpoint" in drive.text()

    driven(empty_path, steps)
