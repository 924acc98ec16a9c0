"""Reading a sample as ingest does, for the tests of load generators' files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from tracelens import formats
from tracelens.formats.base import Chunk, Claim, Format, Parsed
from tracelens.ingestion.chunks import framed, head_of
from tracelens.opening import Input

TESTS = Path(__file__).parent
SAMPLES = TESTS.parents[1] / "sample_logs"
EXPECTED: list[dict[str, Any]] = json.loads((TESTS / "client_expected.json").read_text())
TRUTH: dict[str, Any] = json.loads((TESTS / "client_truth.json").read_text())


def memory(data: bytes) -> Input:
    return Input("memory", len(data), lambda: io.BytesIO(data))


def claims_of(data: bytes) -> list[tuple[Format, Claim]]:
    return formats.claims(head_of(memory(data))[0])


def parse(data: bytes | str, name: str, keep_text: bool = False, claim: Claim | None = None) -> Parsed:
    raw = data.encode() if isinstance(data, str) else data
    kind = formats.named(name)
    found = claim or kind.sniff(head_of(memory(raw))[0])
    assert found is not None, "not claimed"
    lines, binary = framed(raw, 1, binary=kind.binary)
    parsed = kind.parse(Chunk(lines, found, keep_text=keep_text, raw=binary))
    assert parsed.understood + parsed.issues.height == lines.height
    return parsed


def sample(name: str, file: str) -> bytes:
    return (SAMPLES / name / file).read_bytes()


def requests(parsed: Parsed) -> list[dict[str, Any]]:
    return parsed.tables["client_request"].to_dicts()


def figures(parsed: Parsed) -> dict[tuple[str, str | None], float | None]:
    """Numbers by name and statistic; the first one where several parts have it."""
    found: dict[tuple[str, str | None], float | None] = {}
    for row in parsed.tables["client_summary"].to_dicts():
        found.setdefault((row["name"], row["statistic"]), row["measured"])
    return found
