"""The formats that tracelens reads, and how a file finds its own."""

from __future__ import annotations

from typing import Final

from tracelens.errors import UnknownFormat, near
from tracelens.formats import client, gpu, metrics, server, traces
from tracelens.formats.base import Claim, Format, Head

FORMATS: Final[tuple[Format, ...]] = (
    *server.FORMATS,
    *metrics.FORMATS,
    *traces.FORMATS,
    *client.FORMATS,
    *gpu.FORMATS,
)
"""Every format.  Each sample in sample_logs/ is claimed by exactly one, so the order does not matter."""


def named(name: str) -> Format:
    """The format of that name; raises `UnknownFormat`."""
    for known in FORMATS:
        if known.name == name:
            return known
    raise UnknownFormat(
        f"no format is called {name!r}",
        hint=near(name, (one.name for one in FORMATS), "tracelens formats lists them"),
    )


def claims(head: Head) -> list[tuple[Format, Claim]]:
    """Every format that claims a file, with its claim: none for a foreign file, one for a known one."""
    found = ((known, known.sniff(head)) for known in FORMATS)
    return [(known, claim) for known, claim in found if claim is not None]
