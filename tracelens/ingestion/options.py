"""What an ingest was told, and how a case remembers it per source."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from tracelens.ingestion.placing import TimeOptions


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """What the options of ``tracelens ingest`` say."""

    run: str = "default"
    format: str | None = None
    time: TimeOptions = field(default_factory=TimeOptions)
    keep_text: bool = False
    prompt_key: int = 0
    """What keys the fingerprints of prompts; 0: the case's own, or a new one."""

    def kept(self, folder: str) -> str:
        """The options as `source.options` keeps them; those not given are left out."""
        said: dict[str, Any] = {
            "format": self.format,
            "tz": self.time.tz,
            "gpu_tz": self.time.gpu_tz,
            "client_tz": self.time.client_tz,
            "date": self.time.date.isoformat() if self.time.date else None,
            "keep_text": self.keep_text,
            "folder": folder,
        }
        return json.dumps({key: value for key, value in said.items() if value})


def remembered(run: str, text: str) -> tuple[IngestOptions, str]:
    """The options that `IngestOptions.kept` wrote, and the folder of relative paths."""
    said = json.loads(text)
    day = said.get("date")
    times = TimeOptions(
        said.get("tz"), said.get("gpu_tz"), said.get("client_tz"), date.fromisoformat(day) if day else None
    )
    options = IngestOptions(run, said.get("format"), times, bool(said.get("keep_text")))
    return options, str(said.get("folder", ""))
