"""How long short commands take, and how quick the screens are on a big case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import scale
from contest import OUT, PYTHON, TRACELENS, Contender, Figure, Section, ingest, run, table, take_turns

HERE: Final = Path(__file__).parent
TIMES: Final = 10
SCREEN_REQUESTS: Final = 1_000_000
SHOWN: Final = {
    "first_frame_s": "first frame",
    "first_screen_s": "first screen, all parts but the rules",
    "with_rules_s": "first screen with the rules",
    "requests_s": "table of requests",
    "key_median_s": "a key in it, median",
    "key_longest_s": "a key in it, longest",
    "request_s": "a request with all its parts",
}


def commands() -> Section:
    """Short commands on the case of the server log; the first one is what any Python program pays."""
    case = OUT / "server.duckdb"
    if not case.exists():
        take_turns([ingest("the case", [OUT / "server.log"], case)], 1)
    asked = [
        Contender("python -c pass", [PYTHON, "-c", "pass"]),
        Contender("tracelens --help", [*TRACELENS, "--help"]),
        Contender('tracelens sql "SELECT 1"', [*TRACELENS, "sql", "SELECT 1", "-c", case]),
    ]
    take_turns(asked, TIMES)
    _, helped, selected = asked
    text = [
        "## Starting a command", "", f"Medians of {TIMES} runs.", "",
        *table(("command", "time"), [(one.name, f"{one.seconds * 1000:.0f} ms") for one in asked]),
    ]  # fmt: skip
    return Section(
        "\n".join(text),
        [
            Figure("tracelens --help", helped.seconds, 0.2, "s"),
            Figure('tracelens sql "SELECT 1"', selected.seconds, 0.5, "s"),
        ],
    )


def screens() -> Section:
    """The terminal UI on a case of a million requests, in a process of its own (screens.py)."""
    case = scale.made(SCREEN_REQUESTS)
    found = json.loads(run((PYTHON, HERE / "screens.py", case), OUT).output.splitlines()[-1])
    text = [
        f"## The screens, {SCREEN_REQUESTS:,} requests", "",
        "Seconds of one run until every query that a key asked for is answered.", "",
        *table(
            ("", "seconds"),
            [(words, f"{found[name]:.2f}") for name, words in SHOWN.items()],
        ), "",
        f"Peak memory {found['peak_bytes'] / 2**20:,.0f} MiB.",
    ]  # fmt: skip
    return Section(
        "\n".join(text),
        [
            Figure("first screen, a million requests", found["first_screen_s"], 1, "s"),
            Figure("a key answered, median", found["key_median_s"], 0.1, "s"),
            Figure("memory of the screens", found["peak_bytes"] / 1e6, 600, "MB"),
        ],
    )
