"""Paths of sources as people read them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence


def common_folder(paths: Sequence[str]) -> tuple[str, Callable[[str], str]]:
    """The folder that all paths have in common, and what shortens a path to the part inside it."""
    folders = [os.path.dirname(path) for path in paths]  # noqa: PTH120 - an archive's member is no path of this machine
    same = (
        os.path.commonpath(folders)
        if all(folders) and len({name[:1] == "/" for name in folders}) == 1
        else ""
    )
    return same, lambda path: path.removeprefix(same).lstrip("/") if same else path
