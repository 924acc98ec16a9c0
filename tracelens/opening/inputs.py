"""What ingest is given: streams of bytes, and what was named and cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True, slots=True)
class Input:
    """One stream of bytes to ingest.

    `label` names it for people (``bundle.tar.gz!logs/server.log`` inside an archive); `size_bytes` is its size on
    the disk or in the archive, None for a pipe; `path` is the plain file behind it, where there is one;
    `modified_ts` is the file's date, epoch seconds.  `open()` gives decompressed bytes.
    """

    label: str
    size_bytes: int | None
    open: Callable[[], IO[bytes]]
    path: Path | None = None
    modified_ts: float | None = None
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that was named and cannot be read, and why."""

    label: str
    reason: str
