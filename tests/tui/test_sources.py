"""Sources: what was read, what was not, and which questions stay open."""

from __future__ import annotations


def test_files_clocks_and_what_was_not_understood(driven, demo_path) -> None:
    async def steps(drive) -> None:
        text = drive.text()
        for words in (
            "client.jsonl",
            "otlp_spans",
            "the server's is ahead of",
            "every line of every source was understood",
            "before going live",
        ):
            assert words in text, words

    driven(demo_path, steps, first=("sources", ""), size=(150, 80))


def test_the_number_opens_it_and_tab_goes_down_the_page(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("9")
        assert drive.view.NAME == "sources"
        await drive.press("g", "pagedown", "pagedown")
        assert "the server's is ahead of" not in drive.text()
        await drive.press("escape")
        assert drive.view.NAME == "overview"

    driven(demo_path, steps, size=(80, 24))


def test_s_opens_the_query_of_the_files(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("s")
        assert "-- tracelens query sources" in drive.text()

    driven(demo_path, steps, first=("sources", ""))


def test_what_an_empty_case_lacks_is_told(driven, empty_path) -> None:
    async def steps(drive) -> None:
        text = drive.text()
        assert "server.log" in text
        assert "record: run without --disable-log-requests" in text

    driven(empty_path, steps, first=("sources", ""), size=(140, 80))
