"""A case made once from the bundled incident, and a pilot that drives the screens over it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tracelens
from tracelens import resources
from tracelens.case import Case
from tracelens.check import Check
from tracelens.tui.app import Browser
from tracelens.tui.picture import screen_text, settled
from tracelens.tui.view import View

SCREENS = Path(__file__).parent / "screens"
"""Snapshots: what a screen shows, as text.  TRACELENS_SCREENS=write writes them again; read the diff."""


@dataclass
class Drive:
    """An app that runs without a terminal."""

    app: Browser
    pilot: Any

    async def press(self, *keys: str) -> None:
        """Press keys, and wait until what they ask is there."""
        for key in keys:
            await self.pilot.press(key)
            await settled(self.pilot, self.app)

    async def type(self, text: str) -> None:
        """Type into the line that is open."""
        await self.pilot.press(*[{" ": "space"}.get(mark, mark) for mark in text])

    async def resize(self, width: int, height: int) -> None:
        """Another size of the terminal."""
        await self.pilot.resize_terminal(width, height)
        await settled(self.pilot, self.app)

    @property
    def view(self) -> View:
        """The screen in front."""
        view = self.app.screen
        assert isinstance(view, View), view
        return view

    def text(self) -> str:
        """What is to be seen."""
        return screen_text(self.app)


@pytest.fixture(scope="session")
def demo_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.duckdb"
    assert tracelens.ingest([resources.demo_incident()], path).recognised
    return path


@pytest.fixture(scope="session")
def empty_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A case of a server log that holds a banner and nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    log = folder / "server.log"
    log.write_text("INFO 06-01 10:00:00 [api_server.py:1289] vLLM API server version 0.9.1\n")
    path = folder / "empty.duckdb"
    tracelens.ingest([log], path)
    return path


@pytest.fixture(scope="session")
def two_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs; the name of the second tries to act."""
    path = tmp_path_factory.mktemp("two") / "two.duckdb"
    client = resources.demo_incident() / "client.jsonl"
    tracelens.ingest([client], path, run="before")
    tracelens.ingest([client], path, run="r[b]un\x1b[31m")
    return path


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What screens write goes to a folder of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)


_CHECKS: dict[Path, Check] = {}
"""What the rules say of a case, once for all tests: each of them would compute it again."""


@pytest.fixture
def driven() -> Callable[..., None]:
    """Run a test's steps on an app: ``driven(path, steps, first=("request", ""), size=(80, 24))``."""

    def run(
        path: Path,
        steps: Callable[[Drive], Awaitable[None]],
        *,
        size: tuple[int, int] = (120, 40),
        **options: Any,
    ) -> None:
        async def main() -> None:
            with tracelens.open(path) as case:
                async with driving(case, size, **options) as drive:
                    await steps(drive)

        asyncio.run(main())

    return run


@asynccontextmanager
async def driving(
    case: Case, size: tuple[int, int], *, checks_itself: bool = False, **options: Any
) -> AsyncIterator[Drive]:
    app = Browser(case, **options)
    if not checks_itself:
        app.checked = _CHECKS.setdefault(case.path, _CHECKS.get(case.path) or case.check())
    async with app.run_test(size=size) as pilot:
        drive = Drive(app, pilot)
        await settled(pilot, app)
        yield drive


@pytest.fixture
def same_as_kept() -> Callable[[str, str], None]:
    """A screen's text against the one that was read and kept."""

    def check(name: str, text: str) -> None:
        path = SCREENS / f"{name}.txt"
        if os.environ.get("TRACELENS_SCREENS") == "write":
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check
