"""How long short commands take, and how quick the screens are on a big case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from contest import OUT, PYTHON, TRACELENS, Contender, Figure, Section, ingest, run, table, take_turns

HERE: Final = Path(__file__).parent
TIMES: Final = 10
SCREEN_REQUESTS: Final = 1_000_000


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
    case = OUT / f"screens-{SCREEN_REQUESTS}.duckdb"
    command = (PYTHON, HERE / "screens.py", "--requests", str(SCREEN_REQUESTS), "--case", case, "--json")
    found = json.loads(run(command, OUT).output.splitlines()[-1])
    first, key = found["first_screen_s"], found["key_median_s"]
    text = (
        f"## The screens, {SCREEN_REQUESTS:,} requests\n\n"
        f"First screen with all its parts {first:.2f} s after the imports; the table of requests {found['requests_s']:.2f} s; a key in it "
        f"{key * 1000:.0f} ms (median), {found['key_longest_s'] * 1000:.0f} ms (longest); {found['peak_bytes'] / 2**20:,.0f} MiB at most."
    )
    return Section(
        text,
        [
            Figure("first screen, a million requests", first, 1, "s"),
            Figure("a key answered, median", key, 0.1, "s"),
            Figure("memory of the screens", found["peak_bytes"] / 1e6, 600, "MB"),
        ],
    )
