"""Short texts that several screens say alike."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tracelens.units import duration


def span_text(row: Mapping[str, Any] | None) -> str:
    """First and last stamp of a run: ``29 Nov 2026 12:46:54–12:48:16 UTC ±1.00 s``."""
    if not row or row["first_ts"] is None:
        return "no stamps in this run"
    first, last = row["first_ts"], row["last_ts"]
    end = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%d %b %H:%M:%S}"
    error = f" ±{duration(row['error_s'])}" if row["error_s"] else ""
    return f"{first:%d %b %Y %H:%M:%S}–{end} UTC{error}"


def clock(stamp: datetime | None, *, finely: bool = False) -> str:
    """Time of day of a stamp: ``12:46:54``, finely ``12:46:54.123``."""
    if stamp is None:
        return "–"
    return f"{stamp:%H:%M:%S.%f}"[:12] if finely else f"{stamp:%H:%M:%S}"
