"""The report of one stage in YAML, as inference-perf writes it for llm-d: nested keys, numbers, a unit beside them.

No YAML library: the report has plain keys and plain values only, each on a line of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.client.tool_summaries import Figure, figure, statistic_of
from tracelens.formats.json_lines import number, refusals

if TYPE_CHECKING:
    import polars as pl

_LINE: Final = re.compile(r"( *)([\w.-]+):(?: +(.*?))?\s*")
_STATED: Final = ("run.time.start", "run.time.end")
NOT_A_LINE: Final = "not a line of the report"


def report_of(lines: pl.DataFrame) -> tuple[list[tuple[int, Figure]], pl.DataFrame]:
    """Numbers of the report with their lines, and an issue per line in another form."""
    entries: list[tuple[int, tuple[str, ...], str]] = []
    refused: dict[int, str] = {}
    path: list[tuple[int, str]] = []
    for line_no, text in zip(lines["line_no"].to_list(), lines["text"].fill_null("").to_list(), strict=True):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(text)
        if found is None:
            refused[line_no] = NOT_A_LINE
            continue
        depth = len(found[1])
        path = [*(step for step in path if step[0] < depth), (depth, found[2])]
        if found[3]:
            entries.append((line_no, tuple(key for _, key in path), found[3].strip("'\"")))
    return _figures(entries), refusals(lines, refused)


def _figures(entries: list[tuple[int, tuple[str, ...], str]]) -> list[tuple[int, Figure]]:
    units = {keys[:-1]: value for _, keys, value in entries if keys[-1] == "units"}
    uid = next((value for _, keys, value in entries if keys == ("run", "uid")), None)
    found: list[tuple[int, Figure]] = []
    for line_no, keys, value in entries:
        amount: Any = number(value)
        if keys[0] == "version" or (amount is None and ".".join(keys) not in _STATED):
            continue
        statistic = statistic_of(keys[-1]) if len(keys) > 1 else None
        name = ".".join(keys[:-1] if statistic else keys)
        found.append((line_no, figure(name, value, statistic, units.get(keys[:-1]), uid)))
    return found
