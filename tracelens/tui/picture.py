"""A screen without a terminal: as SVG or as text, for documents and tests."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from tracelens.errors import unwritable
from tracelens.tui.svg import svg_of

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from tracelens.tui.app import Browser

_PATIENCE_S: Final = 120.0


def take_picture(app: Browser, size: tuple[int, int], target: Path) -> None:
    """Open the app at a size, wait until all its parts are there, and write what it shows (``.svg`` or ``.txt``)."""
    text = asyncio.run(_shown(app, size, as_text=target.suffix == ".txt"))
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(target, error) from error


async def _shown(app: Browser, size: tuple[int, int], *, as_text: bool) -> str:
    async with app.run_test(size=size) as pilot:
        await settled(pilot, app)
        return screen_text(app) if as_text else svg_of(app)


async def settled(pilot: Pilot[None], app: Browser) -> None:
    """Wait until no question is open and everything is drawn."""
    end = time.monotonic() + _PATIENCE_S
    await pilot.pause()
    while (app.pending or not app.span) and app.is_running and time.monotonic() < end:
        await pilot.pause(0.01)
    await pilot.pause()
    await pilot.pause()


def screen_text(app: Browser) -> str:
    """What the screen in front shows, as lines of text."""
    strips = app.screen._compositor.render_strips(app.size)
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"
