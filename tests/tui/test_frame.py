"""The frame: where one is, the way back, what keys do everywhere, and what happens when something breaks."""

from __future__ import annotations

from tracelens.errors import QueryError
from tracelens.named import spelled


def test_the_first_screen_answers_in_a_sentence(driven, demo_path) -> None:
    async def steps(drive) -> None:
        text = drive.text()
        assert "p99 TTFT of 11.7 s is 97 % queue" in text
        assert "First: Raise --max-num-seqs" in text

    driven(demo_path, steps, size=(80, 24), checks_itself=True)


def test_the_way_stands_in_the_first_line_and_esc_goes_back_along_it(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("s")
        assert "▸ run default ▸ SQL  " in drive.text().splitlines()[0]
        await drive.press("escape")
        assert "run default ▸ Overview" in drive.text().splitlines()[0]
        await drive.press("escape")
        assert drive.view.NAME == "overview"

    driven(demo_path, steps)


def test_s_opens_the_query_of_the_focused_part_and_it_runs(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("s")
        assert "-- tracelens query" in drive.text()
        assert "error" not in drive.text()

    driven(demo_path, steps)


def test_a_query_spelled_out_runs_by_itself(demo_path) -> None:
    import tracelens

    with tracelens.open(demo_path) as case:
        bound = case.query("slowest", by="e2e", top=3)
        assert case.sql(spelled("slowest", {"by": "e2e", "top": 3})).rows == bound.rows


def test_a_hostile_parameter_stays_a_text_in_the_spelled_query(demo_path) -> None:
    import tracelens

    hostile = "x'; DROP TABLE source; --\n*/ \x1b[31m"
    with tracelens.open(demo_path) as case:
        text = spelled("request_find", {"id": hostile})
        assert case.sql(text).rows == []
        assert "\x1b" not in text.splitlines()[0]


def test_a_query_that_fails_shows_its_error_in_place(driven, demo_path, monkeypatch) -> None:
    from tracelens.case import Case

    asked = Case.query

    def broken(self, name, **given):
        if name == "latency_map":
            raise QueryError("no such thing \x1b[31m[bold]", hint="try another")
        return asked(self, name, **given)

    monkeypatch.setattr(Case, "query", broken)

    async def steps(drive) -> None:
        text = drive.text()
        assert "error: no such thing \\x1b[31m[bold]" in text
        assert "hint: try another" in text
        assert "TTFT    5.45 s" in text
        assert "reading" not in text

    driven(demo_path, steps)


def test_an_empty_case_says_what_is_missing(driven, empty_path) -> None:
    async def steps(drive) -> None:
        text = drive.text()
        assert "no stats line in this run" in text or "no time to draw" in text
        assert "reading" not in text
        assert "error" not in text

    driven(empty_path, steps, size=(100, 40))


def test_help_lists_the_keys(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("question_mark")
        text = drive.text()
        assert "export" in text
        assert "queue" in text
        await drive.press("escape")
        assert drive.view.NAME == "overview"

    driven(demo_path, steps, size=(100, 50))


def test_every_size_keeps_the_first_and_the_last_line(driven, demo_path) -> None:
    async def steps(drive) -> None:
        for size in ((80, 24), (200, 60), (40, 12)):
            await drive.resize(*size)
            lines = drive.text().splitlines()
            assert "Overview" in lines[0]
            assert "? help" in lines[-1]
            assert len(lines) == size[1]

    driven(demo_path, steps)


def test_copy_goes_to_the_terminal_and_into_a_file(driven, demo_path, tmp_path) -> None:
    async def steps(drive) -> None:
        await drive.press("y")
        assert "p99 TTFT" in drive.app.clipboard
        assert (
            tmp_path / "state" / "tracelens" / "copied.txt"
        ).read_text().strip() == drive.app.clipboard.strip()

    driven(demo_path, steps)


def test_export_writes_the_file_that_the_ending_names(driven, demo_path, tmp_path) -> None:
    async def steps(drive) -> None:
        await drive.press("tab")
        for name in ("rows.csv", "rows.json", "rows.parquet", "picture.svg"):
            await export(drive, name)
            await drive.app.workers.wait_for_complete()
            assert (tmp_path / name).stat().st_size > 50

    driven(demo_path, steps)


async def export(drive, name: str) -> None:
    await drive.press("e")
    drive.app.screen.query_one("Input").value = name
    await drive.press("enter")


def test_a_file_that_is_there_is_written_over_only_when_asked_twice(driven, demo_path, tmp_path) -> None:
    there = tmp_path / "rows.csv"
    there.write_text("mine")

    async def steps(drive) -> None:
        await export(drive, "rows.csv")
        assert "is there already" in drive.text()
        assert there.read_text() == "mine"
        await drive.press("enter")
        await drive.app.workers.wait_for_complete()
        assert there.read_text() != "mine"

    driven(demo_path, steps)


def test_an_ending_that_is_no_format_is_refused_and_the_line_stays(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("e")
        drive.app.screen.query_one("Input").value = "rows.exe"
        await drive.press("enter")
        assert "no kind of file" in drive.text()
        await drive.press("escape")

    driven(demo_path, steps)


def test_a_mark_and_its_note_are_kept_beside_the_case(driven, demo_path) -> None:
    from tracelens.marks import Mark, read_marks, write_marks

    async def steps(drive) -> None:
        await drive.press("m")
        assert "★" in drive.text()
        await drive.press("a")
        drive.app.screen.query_one("Input").value = "seen with [Ana]"
        await drive.press("enter")
        await drive.press("m")
        assert drive.app.marks.on("finding", "queue.seats_exhausted").note == "seen with [Ana]"
        await drive.press("down", "m", "m", "m")

    try:
        driven(demo_path, steps)
        first, second = read_marks(demo_path)
        assert first == Mark("finding", "default", "queue.seats_exhausted", "seen with [Ana]")
        assert second.name == "queue.share_of_ttft"
    finally:
        write_marks(demo_path, ())


def test_the_other_theme_is_drawn_at_once(driven, demo_path) -> None:
    async def steps(drive) -> None:
        assert drive.app.current_theme.dark
        await drive.press("T")
        assert not drive.app.current_theme.dark
        assert "p99 TTFT" in drive.text()

    driven(demo_path, steps)


def test_esc_stops_what_is_being_read(driven, demo_path) -> None:
    endless = "SELECT count(*) FROM range(1000000) AS a(x), range(1000000) AS b(y) WHERE hash(x, y) = 3"

    async def steps(drive) -> None:
        drive.app.open("sql", endless)
        await drive.pilot.pause(0.2)
        await drive.press("escape")
        assert "stopped" in drive.text()
        assert drive.view.NAME == "sql"

    driven(demo_path, steps)


def test_another_run_is_looked_at_from_the_first_screen_on(driven, two_path) -> None:
    async def steps(drive) -> None:
        assert "run before (1 of 2)" in drive.text().splitlines()[0]
        await drive.press("r", "x", "down", "enter")
        assert drive.view.NAME == "overview"
        assert "run r[b]un\\x1b[31m (2 of 2)" in drive.text().splitlines()[0]
        await drive.press("w")
        assert "1 of 96 by TTFT" in drive.text()
        assert drive.app.run_id == "r[b]un\x1b[31m"

    driven(two_path, steps)


def test_the_palette_opens_a_screen(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("ctrl+p")
        await drive.type("sources")
        await drive.pilot.pause(0.5)
        await drive.press("enter", "enter")
        await drive.pilot.pause(0.3)
        assert drive.view.NAME == "sources"

    driven(demo_path, steps)


def test_every_number_opens_its_screen_and_esc_leaves_it(driven, demo_path) -> None:
    from tracelens.tui.registry import SCREENS

    async def steps(drive) -> None:
        for one in SCREENS[1:]:
            await drive.press(one.number)
            assert one.name == drive.view.NAME
            assert "error:" not in drive.text()
            assert "reading" not in drive.text()
            await drive.press("escape")
            assert drive.view.NAME == "overview"

    driven(demo_path, steps, size=(140, 45))


def test_on_a_small_terminal_the_keys_reach_all_of_the_first_screen(driven, demo_path, two_path) -> None:
    async def with_findings(drive) -> None:
        await drive.press("down")
        assert "▸ ● critical    Most of the time to first token" in drive.text()
        assert "the data " in drive.text()
        await drive.press("end", "end")
        assert "to know it next time, record:" in drive.text()
        await drive.press("home", "home")
        assert "p99 TTFT of 11.7 s is 97 % queue" in drive.text()

    async def without(drive) -> None:
        await drive.press("pagedown", "pagedown", "pagedown")
        assert "to know it next time, record:" in drive.text()

    driven(demo_path, with_findings, size=(80, 24))
    driven(two_path, without, size=(80, 24))


def test_a_click_opens_the_row_that_is_under_it(driven, demo_path) -> None:
    async def steps(drive) -> None:
        place = next(place for place, line in enumerate(drive.text().splitlines()) if "▲ warning" in line)
        await drive.pilot.click(offset=(20, place))
        assert drive.view.findings.cursor == 2

    driven(demo_path, steps, size=(160, 45))
