"""Findings: what the rules say, in full, with the lines behind it and the SELECT that said it."""

from __future__ import annotations

import tracelens

FIRST = "queue.seats_exhausted"


def test_a_finding_opens_from_the_overview_and_esc_comes_back(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("down", "enter")
        assert drive.view.NAME == "findings"
        assert drive.view.rows.row["outcome"].rule == "queue.share_of_ttft"
        assert "Most of the time to first token is waiting in the queue" in drive.text()
        await drive.press("escape")
        assert drive.view.NAME == "overview"

    driven(demo_path, steps)


def test_every_rule_of_the_check_is_listed_in_its_order(driven, demo_path) -> None:
    with tracelens.open(demo_path) as case:
        wanted = [one.rule for one in case.check().outcomes]

    async def steps(drive) -> None:
        assert [row["outcome"].rule for row in drive.view.rows.all_rows()] == wanted
        text = drive.text()
        for words in (
            "people assume",
            "the data says",
            "threshold 50 %",
            "lines behind it",
            "server.log:206",
            "Not advised",
        ):
            assert words in text

    driven(demo_path, steps, size=(160, 60), first=("findings", ""))


def test_what_was_not_decided_says_what_to_record(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("f")
        await drive.press("down", "down", "enter")
        assert "Findings (not decided)" in drive.text().splitlines()[0]
        assert {row["outcome"].outcome for row in drive.view.rows.all_rows()} == {"not_evaluated"}
        assert "record" in drive.text()

    driven(demo_path, steps, first=("findings", ""))


def test_a_kind_that_no_rule_is_of_says_so(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("f", "end", "enter")
        assert "no rule of this run: failed" in drive.text()

    driven(demo_path, steps, first=("findings", ""))


def test_s_opens_the_rule_itself_and_it_runs(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("s")
        assert drive.view.NAME == "sql"
        assert "fired" in drive.text()
        assert "error" not in drive.text()

    driven(demo_path, steps, first=("findings", FIRST), size=(200, 60))


def test_the_lines_are_copied_with_the_finding(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("y")
        assert "people assume" in drive.app.clipboard
        assert "server.log:206" in drive.app.clipboard
        await drive.press("l", "y")
        assert "server.log:206" in drive.app.clipboard
        assert "people assume" not in drive.app.clipboard

    driven(demo_path, steps, first=("findings", FIRST))


def test_an_empty_case_lists_what_could_not_be_decided(driven, empty_path) -> None:
    async def steps(drive) -> None:
        assert "not decided" in drive.text()
        assert "reading" not in drive.text()

    driven(empty_path, steps, first=("findings", ""), size=(80, 24))
