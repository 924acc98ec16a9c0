"""How quick the screens are on a case of many requests: ``python bench/screens.py CASE`` prints seconds as JSON.

The first screen, then the table of requests, keys in it, and a request with all its parts; a key is answered when every query
that it asked for is.  The first screen is done when all its parts but the rules are; those are told apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import tracelens
from tracelens.tui.app import Browser
from tracelens.tui.picture import settled
from tracelens.tui.screens.requests import Requests

if TYPE_CHECKING:
    from textual.pilot import Pilot

_ROUNDS: Final = 5
KEYS: Final = ("down", "down", "pagedown", "pagedown", "end", "up", "home", "pagedown", "end", "pageup")


async def measure(path: Path) -> dict[str, float]:
    """Open the first screen, then the requests, press keys, and open a request; seconds of wall time."""
    with tracelens.open(path) as case:
        begun = time.monotonic()
        app = Browser(case)
        async with app.run_test(size=(160, 45)) as pilot:
            frame = time.monotonic() - begun
            await _answered(app, left=1)
            first = time.monotonic() - begun
            await settled(pilot, app)
            found = {
                "first_frame_s": frame,
                "first_screen_s": first,
                "with_rules_s": time.monotonic() - begun,
            }
            found["requests_s"] = await _pressed(pilot, app, "r")
            assert isinstance(app.screen, Requests)
            keys = [await _pressed(pilot, app, key) for key in KEYS]
            request = [await _pressed(pilot, app, key) for key in ("enter", "escape", "w")]
            return found | {
                "key_median_s": statistics.median(keys),
                "key_longest_s": max(keys),
                "request_s": statistics.median(request),
            }


async def _pressed(pilot: Pilot[None], app: Browser, key: str) -> float:
    """Wall seconds from a key until everything is answered and painted.

    Not with `Pilot.press`: before it returns it waits twice until the process has been idle for 20 ms.
    """
    begun = time.monotonic()
    app.simulate_key(key)
    for _ in range(_ROUNDS):  # a key moves the cursor; painting that asks for rows; the rows are painted
        await pilot.pause(0)
        await _answered(app)
    return time.monotonic() - begun


async def _answered(app: Browser, left: int = 0) -> None:
    while app.pending > left:
        await asyncio.sleep(0.001)


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", type=Path)
    found = asyncio.run(measure(parser.parse_args().case))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps(found | {"peak_bytes": peak}))


if __name__ == "__main__":
    main()
