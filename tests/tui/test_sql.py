"""The SQL screen: run, complete, remember, export."""

from __future__ import annotations

import csv


async def write(drive, text: str) -> None:
    drive.view.editor.text = text
    drive.view.editor.move_cursor(drive.view.editor.document.end)
    await drive.pilot.pause()


def test_a_query_runs_and_its_rows_are_there(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await write(drive, "SELECT count(*) AS n FROM request")
        await drive.press("f5")
        assert "▸ 96" in drive.text()
        await write(drive, "SELECT nothing FROM nowhere")
        await drive.press("f5")
        assert "error:" in drive.text()
        assert "nowhere" in drive.text()
        lines = drive.text().splitlines()
        place = next(place for place, line in enumerate(lines) if line.startswith(" LINE 1:"))
        assert lines[place + 1].index("^") == lines[place].index("nowhere")
        await drive.press("escape")
        assert drive.view.NAME == "overview"

    driven(demo_path, steps, first=("sql", ""))


def test_names_of_the_schema_are_completed(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await write(drive, "SELECT * FROM prompt_length_cu")
        await drive.press("f2")
        assert drive.view.editor.text == "SELECT * FROM prompt_length_curve"
        await write(drive, "SELECT kv_cache FROM engine_sample")
        drive.view.editor.move_cursor((0, 15))
        await drive.press("f2", "enter")
        assert drive.view.editor.text == "SELECT kv_cache_usage_ratio FROM engine_sample"

    driven(demo_path, steps, first=("sql", ""))


def test_what_was_run_is_remembered_in_the_next_session(driven, demo_path) -> None:
    async def first(drive) -> None:
        await write(drive, "SELECT 41 + 1 AS answer")
        await drive.press("f5")

    async def second(drive) -> None:
        await drive.press("ctrl+up")
        assert drive.view.editor.text == "SELECT 41 + 1 AS answer"

    driven(demo_path, first, first=("sql", ""))
    driven(demo_path, second, first=("sql", ""))


def test_all_rows_are_exported_and_not_only_those_in_the_table(driven, demo_path, tmp_path) -> None:
    async def steps(drive) -> None:
        await write(drive, "SELECT x FROM range(20000) AS t(x)")
        await drive.press("f5", "tab")
        assert "10,000 rows and more" in drive.text()
        await drive.press("e")
        drive.app.screen.query_one("Input").value = "all.csv"
        await drive.press("enter")
        await drive.app.workers.wait_for_complete()

    driven(demo_path, steps, first=("sql", ""))
    with (tmp_path / "all.csv").open() as stream:
        assert len(list(csv.reader(stream))) == 20001


def test_letters_are_text_while_one_writes(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await write(drive, "")
        await drive.type("qrs")
        assert drive.view.editor.text == "qrs"
        await drive.press("f5")
        assert drive.view.NAME == "sql"

    driven(demo_path, steps, first=("sql", ""))


def test_a_row_with_a_request_opens_it(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await write(drive, "SELECT ttft_s, request_id FROM request ORDER BY queue_s DESC NULLS LAST")
        await drive.press("f5", "tab", "enter")
        assert drive.view.NAME == "request"
        assert "11.66 s in the queue" in drive.text()

    driven(demo_path, steps, first=("sql", ""))


def test_the_case_cannot_be_changed_from_here(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await write(drive, "DELETE FROM source")
        await drive.press("f5")
        assert "error:" in drive.text()

    driven(demo_path, steps, first=("sql", ""))
