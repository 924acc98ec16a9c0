"""How quick the screens are on a case of many requests: the first screen, then one key after the other.

Run: python bench/screens.py --requests 1000000
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

import tracelens
from tracelens.tui.app import Browser
from tracelens.tui.picture import settled
from tracelens.tui.screens.requests import Requests

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
    """Open the first screen, then the requests, and press keys."""
    with tracelens.open(path) as case:
        begun = time.monotonic()
        app = Browser(case)
        async with app.run_test(size=(160, 45)) as pilot:
            print(f"first frame: {time.monotonic() - begun:.2f} s")
            await settled(pilot, app)
            print(f"first screen with all its parts: {time.monotonic() - begun:.2f} s")
            begun = time.monotonic()
            await pilot.press("r")
            await settled(pilot, app)
            print(f"table of requests: {time.monotonic() - begun:.2f} s")
            assert isinstance(app.screen, Requests)
            taken = []
            for key in KEYS:
                begun = time.monotonic()
                await pilot.press(key)
                while app.pending:
                    await asyncio.sleep(0.001)
                taken.append(time.monotonic() - begun)
            print(
                f"a key: median {statistics.median(taken) * 1000:.0f} ms, longest {max(taken) * 1000:.0f} ms"
            )


def main() -> None:
    """Make a case, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    number = parser.parse_args().requests
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(make_case(Path(folder), number)))
    print(
        f"peak memory, ingest included: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
    )


if __name__ == "__main__":
    main()
