"""What the screens look like: text that was read, and kept.

``TRACELENS_SCREENS=write pytest tests/tui/test_screens.py`` writes them again; read the diff.
"""

from __future__ import annotations

import pytest

KEPT = [
    ("overview", "", (80, 24)),
    ("overview", "", (160, 45)),
    ("requests", "", (80, 24)),
    ("request", "", (80, 24)),
    ("request", "", (160, 60)),
    ("findings", "", (80, 24)),
    ("timeline", "", (120, 44)),
    ("curve", "", (80, 24)),
    ("compare", "", (80, 24)),
    ("sql", "", (80, 24)),
    ("sources", "", (120, 60)),
]


@pytest.mark.parametrize(("name", "given", "size"), KEPT)
def test_a_screen_looks_as_it_was_read(driven, demo_path, same_as_kept, name, given, size) -> None:
    async def steps(drive) -> None:
        same_as_kept(f"{name}_{size[0]}x{size[1]}", drive.text())

    driven(demo_path, steps, size=size, first=(name, given))


@pytest.mark.parametrize("name", ["overview", "request"])
def test_a_screen_of_an_empty_case_looks_as_it_was_read(driven, empty_path, same_as_kept, name) -> None:
    async def steps(drive) -> None:
        same_as_kept(f"empty_{name}_80x24", drive.text())

    driven(empty_path, steps, size=(80, 24), first=(name, ""))
