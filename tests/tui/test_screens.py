"""What the screens look like: text that was read, and kept.

``TRACELENS_SCREENS=write pytest tests/tui/test_screens.py`` writes them again; read the diff.
"""

from __future__ import annotations

import pytest

from tracelens.tui.registry import SCREENS

KEPT = [
    ("overview", (80, 24)),
    ("overview", (160, 45)),
    ("requests", (80, 24)),
    ("request", (80, 24)),
    ("request", (160, 60)),
    ("findings", (80, 24)),
    ("timeline", (120, 44)),
    ("curve", (80, 24)),
    ("compare", (80, 24)),
    ("sql", (80, 24)),
    ("sources", (120, 60)),
]


NUMBERS = {one.name: one.number for one in SCREENS}


@pytest.mark.parametrize("size", sorted({size for _, size in KEPT}))
def test_a_screen_looks_as_it_was_read(driven, demo_path, same_as_kept, size) -> None:
    async def steps(drive) -> None:
        for name in (name for name, of in KEPT if of == size):
            await drive.press(NUMBERS[name])
            same_as_kept(f"{name}_{size[0]}x{size[1]}", drive.text())
            await drive.press(*["escape"] * (name != "overview"))

    driven(demo_path, steps, size=size)


def test_a_screen_of_an_empty_case_looks_as_it_was_read(driven, empty_path, same_as_kept) -> None:
    async def steps(drive) -> None:
        same_as_kept("empty_overview_80x24", drive.text())
        await drive.press("3")
        same_as_kept("empty_request_80x24", drive.text())

    driven(empty_path, steps, size=(80, 24))
