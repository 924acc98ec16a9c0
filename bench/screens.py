"""How quick the screens are on a case of many requests: the first screen, then one key after the other.

Run: python bench/screens.py --requests 1000000, or --case FILE for a case that is there (its memory is then that of the screens
alone).  The rules are measured by bench/check_rules.py: the first screen is done when all its other parts are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import tracelens
from tracelens.tui.app import Browser
from tracelens.tui.picture import settled
from tracelens.tui.screens.requests import Requests

if TYPE_CHECKING:
    from textual.pilot import Pilot

BEGIN_S = 1_760_000_000.0
PER_SECOND = 40.0
KEYS = ("down", "down", "pagedown", "pagedown", "end", "up", "home", "pagedown", "end", "pageup")


def rows(number: int) -> Iterator[str]:
    """Lines of a client's file: TTFT by the length of the prompt, with a slow tail."""
    chance = random.Random(7)
    for place in range(number):
        sent = BEGIN_S + place / PER_SECOND
        tokens = chance.randint(50, 4000)
        first = sent + 0.03 + tokens * 2e-4 + (chance.expovariate(0.5) if chance.random() < 0.02 else 0.0)
        out = chance.randint(10, 400)
        yield json.dumps({
            "request_id": f"cmpl-{place:012x}", "sent_at": sent, "first_content_at": first, "finished_at": first + out * 0.02,
            "status": 200, "stream": True, "prompt_tokens": tokens, "completion_tokens": out, "finish_reason": "stop",
        })  # fmt: skip


def make_case(folder: Path, number: int) -> Path:
    """A case of so many requests."""
    log = folder / "client.jsonl"
    with log.open("w") as stream:
        for line in rows(number):
            stream.write(line + "\n")
    case = folder / "case.duckdb"
    begun = time.monotonic()
    assert tracelens.ingest([log], case).recognised
    print(f"ingest of {number:,} requests: {time.monotonic() - begun:.1f} s")
    return case


async def measure(path: Path) -> None:
    """Open the first screen, then the requests, press keys, and open a request."""
    with tracelens.open(path) as case:
        begun = time.monotonic()
        app = Browser(case)
        async with app.run_test(size=(160, 45)) as pilot:
            print(f"first frame: {time.monotonic() - begun:.2f} s")
            await _answered(app, left=1)
            print(f"first screen, its queries answered: {time.monotonic() - begun:.2f} s")
            await settled(pilot, app)
            print(f"the same with the rules: {time.monotonic() - begun:.2f} s")
            _told("table of requests", [await _pressed(pilot, app, "r")])
            assert isinstance(app.screen, Requests)
            _told("a key in it", [await _pressed(pilot, app, key) for key in KEYS])
            _told(
                "a request, all its parts",
                [await _pressed(pilot, app, key) for key in ("enter", "escape", "w")],
            )


async def _pressed(pilot: Pilot[None], app: Browser, key: str) -> tuple[float, float]:
    """Wall and CPU seconds from a key until everything is answered."""
    begun, cpu = time.monotonic(), time.process_time()
    await pilot.press(key)
    await _answered(app)
    return time.monotonic() - begun, time.process_time() - cpu


async def _answered(app: Browser, left: int = 0) -> None:
    while app.pending > left:
        await asyncio.sleep(0.001)


def _told(what: str, taken: list[tuple[float, float]]) -> None:
    wall, cpu = ([one[at] * 1000 for one in taken] for at in (0, 1))
    print(
        f"{what}: median {statistics.median(wall):.0f} ms, longest {max(wall):.0f} ms, CPU {statistics.median(cpu):.0f} ms"
    )


def main() -> None:
    """Make a case, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--case", type=Path)
    asked = parser.parse_args()
    if asked.case:
        asyncio.run(measure(asked.case))
    else:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(make_case(Path(folder), asked.requests)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory{'' if asked.case else ', ingest included'}: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
