"""One request: its cause in a sentence, its stages, who ran beside it, and what happens where little is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tracelens
from tracelens import resources

WORST = "chatcmpl-b_queue_dominated-1bea85931a95"
HOSTILE = "evil\x1b[31m[bold red]\u202e\r\nid"


def test_one_key_from_the_start_to_the_cause_of_the_worst_request(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("w")
        text = drive.text()
        assert "It waited 11.66 s in the queue, 97 % of its TTFT" in text
        assert "All 2 seats (--max-num-seqs) were taken" in text
        assert WORST in text.splitlines()[0]

    driven(demo_path, steps, size=(80, 24))


def test_the_stages_are_those_of_the_query(driven, demo_path) -> None:
    from tracelens.units import duration

    with tracelens.open(demo_path) as case:
        stages = case.query("request_stages", request=WORST).dicts()

    async def steps(drive) -> None:
        drive.app.open("request", WORST)
        await drive.press("home")
        lines = drive.text().splitlines()
        for row in stages:
            line = next(line for line in lines if line[2:].startswith(f" {row['stage']} "))
            assert (duration(row["duration_s"]) if row["duration_s"] is not None else "┊┊") in line
            assert row["provenance"] in line

    driven(demo_path, steps, size=(140, 60))


def test_ttft_is_there_also_where_its_answer_comes_after_the_stages(driven, demo_path) -> None:
    """Questions run beside one another; a machine under load answers them in any order."""
    with tracelens.open(demo_path) as case:
        late = case.query("request_facts", request=WORST)

    async def steps(drive) -> None:
        drive.app.open("request", WORST)
        await drive.press("home")
        view = drive.view
        view._scene.facts = {}
        view._draw_stages()
        await drive.press("home")
        assert "TTFT          12.00 s" not in drive.text()
        view._show_facts(late)
        await drive.press("home")
        assert "TTFT          12.00 s" in drive.text()

    driven(demo_path, steps, size=(140, 60))


def test_next_and_previous_go_along_the_ranks(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("w", "n")
        assert "2 of 96 by TTFT" in drive.text()
        await drive.press("n", "p", "p")
        assert drive.view.request_id == WORST
        await drive.press("p")
        assert drive.view.request_id == WORST

    driven(demo_path, steps)


def test_a_batch_mate_opens_and_esc_comes_back(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("w", "b", "enter")
        assert drive.view.request_id != WORST
        await drive.press("escape")
        assert drive.view.request_id == WORST

    driven(demo_path, steps)


def test_lines_and_gaps_are_gone_to(driven, demo_path) -> None:
    async def steps(drive) -> None:
        await drive.press("w", "l")
        assert "server.log:180" in drive.text()
        await drive.press("y")
        assert "received" in drive.app.clipboard
        await drive.press("g")
        assert "stream: 40 chunks" in drive.text()

    driven(demo_path, steps, size=(100, 30))


def test_a_log_line_opens_among_those_around_it_in_its_file(driven, demo_path) -> None:
    around = (resources.demo_incident() / "server.log").read_text().splitlines()[177:182]

    async def steps(drive) -> None:
        await drive.press("w", "l", "enter")
        text = " ".join(drive.text().replace("│", " ").split())
        assert "from the file, the same as when it was read" in text
        for line in around:
            assert " ".join(line.split())[:90] in text
        await drive.press("y")
        assert "▸     180 " in drive.app.clipboard
        await drive.press("escape")
        assert drive.view.request_id == WORST

    driven(demo_path, steps, size=(160, 45))


def test_an_id_that_nobody_has_is_told(driven, demo_path) -> None:
    async def steps(drive) -> None:
        drive.app.open("request", "nobody\x1b[31m")
        await drive.press("home")
        assert "no request of run default is called 'nobody" in drive.text()
        assert "\x1b" not in drive.text()
        assert "reading" not in drive.text()

    driven(demo_path, steps)


def test_an_empty_case_has_no_worst_request_and_says_so(driven, empty_path) -> None:
    async def steps(drive) -> None:
        await drive.press("w")
        assert "there is no request in this run" in drive.text()
        assert "reading" not in drive.text()

    driven(empty_path, steps)


@pytest.fixture(scope="module")
def hostile_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A client's file whose ids and errors try to act on the terminal, and as markup."""
    folder = tmp_path_factory.mktemp("hostile")
    lines = (resources.demo_incident() / "client.jsonl").read_text().splitlines()[:3]
    rows = [json.loads(line) for line in lines]
    for place, row in enumerate(rows):
        row.update(request_id=f"{HOSTILE}{place}", response_id=None, trace_id=None)
        row.update(label="[@click=app.quit]quit[/]", error="[link=file:///etc]x[/link]\x1b]0;owned\x07")
    (folder / "client.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "hostile.duckdb"
    assert tracelens.ingest([folder / "client.jsonl"], path).recognised
    return path


def test_hostile_ids_are_shown_and_do_nothing(driven, hostile_path) -> None:
    async def steps(drive) -> None:
        for keys in (["r"], ["enter"], ["l"]):
            await drive.press(*keys)
            text = drive.text()
            assert "\x1b" not in text
            assert "\u202e" not in text
            assert "error:" not in text
        assert "evil\\x1b[31m[bold red]\\u202e" in drive.text()
        await drive.press("y")
        assert "\x1b" not in drive.app.clipboard
        await drive.press("enter")
        assert "from the file" in drive.text()
        assert "\x1b" not in drive.text()

    driven(hostile_path, steps, size=(200, 60))
