"""Golden records: what each sample gives, in short, so that a change of a reader shows where it changes results.

They say what is, not what is right: that is what the tests with hand counts are for.  After a change that is meant,
record them anew and read the difference:

    TRACELENS_GOLDEN=write pytest tests/formats/test_golden.py
"""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tracelens import formats
from tracelens.formats.base import Chunk
from tracelens.ingestion.chunks import Reading, framed, head_of
from tracelens.opening import Input, expand

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden"
SAMPLES = sorted(
    path
    for known in formats.FORMATS
    for path in (TESTS.parent / "sample_logs" / known.name).iterdir()
    if path.is_file() and path.name != "README.md"
)
SHOWN_ROWS = 3
SHOWN_CHARS = 120


def golden_of(sample: Path) -> Path:
    return GOLDEN / sample.parent.name / f"{sample.name}.json"


def short(value: Any) -> Any:
    text = value if isinstance(value, str | int | float | bool) else str(value)
    return text[:SHOWN_CHARS] + "..." if isinstance(text, str) and len(text) > SHOWN_CHARS else text


def row_of(row: dict[str, Any]) -> dict[str, Any]:
    """A row by column, those that are NULL left out."""
    return {name: short(value) for name, value in sorted(row.items()) if value is not None}


def record_of(sample: Path) -> str:
    (source,) = expand([str(sample)])
    assert isinstance(source, Input), source
    ((kind, claim),) = formats.claims(head_of(source)[0])
    lines, raw = framed(Reading(source).whole(), 1, binary=kind.binary)
    result = kind.parse(Chunk(lines, claim, raw=raw))
    reasons = result.issues["reason"].to_list()
    record = {
        "variant": claim.variant,
        "clock": claim.clock.value,
        "lines": lines.height,
        "understood": result.understood,
        "issues": {reason: reasons.count(reason) for reason in sorted(set(reasons))},
        "tables": {
            name: {"rows": frame.height, "first": [row_of(row) for row in frame.sort("line_no", maintain_order=True).head(SHOWN_ROWS).to_dicts()]}
            for name, frame in sorted(result.tables.items())
        },
    }  # fmt: skip
    return _one_row_a_line(record)


def _one_row_a_line(record: dict[str, Any]) -> str:
    """JSON that a difference of two can be read in: one row of a table on each line."""
    tables = record.pop("tables")
    begin = json.dumps(record, indent=1, ensure_ascii=False).removesuffix("\n}")
    parts = []
    for name, table in tables.items():
        rows = ",\n   ".join(json.dumps(row, ensure_ascii=False) for row in table["first"])
        parts.append(f'  "{name}": {{"rows": {table["rows"]}, "first": [\n   {rows}]}}')
    return begin + ',\n "tables": {\n' + ",\n".join(parts) + "\n }\n}\n"


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_sample_gives_what_was_recorded(sample: Path) -> None:
    now, path = record_of(sample), golden_of(sample)
    json.loads(now)
    if os.environ.get("TRACELENS_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(now, encoding="utf-8", newline="\n")
        return
    assert path.exists(), "no golden record yet: TRACELENS_GOLDEN=write pytest tests/formats/test_golden.py"
    recorded = path.read_text(encoding="utf-8")
    changes = difflib.unified_diff(
        recorded.splitlines(), now.splitlines(), "recorded", "now", n=0, lineterm=""
    )
    if recorded != now:
        pytest.fail(
            f"{sample.name} is read in another way than recorded:\n" + "\n".join(changes), pytrace=False
        )


def test_no_golden_record_has_lost_its_sample() -> None:
    kept = {golden_of(sample) for sample in SAMPLES}
    assert [path for path in GOLDEN.rglob("*.json") if path not in kept] == []
