"""Totals of Locust: the tables that it prints, and the files of ``--csv``.

    Type     Name                    # reqs      # fails |    Avg     Min     Max    Med |   req/s  failures/s
    POST     /v1/chat/completions        46     3(6.52%) |    124       2     182    120 |    6.92        0.45

Milliseconds.  A response time is that of the whole answer; with ``stream=True`` it ends at the headers, long before the first token.
A script that measures TTFT fires events of its own: they are rows with their own word under ``Type``, and count in ``Aggregated``.
Tables that are printed on the way hold the totals so far.  Read in Locust 2.47; the columns of 1.x are the same.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from typing import Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.tool_summaries import Figure, statistic_of, summary_frame
from tracelens.formats.json_lines import number, refusals

OTHER_OUTPUT: Final = "other output than Locust's tables"
NO_HEADING: Final = "percentiles without their heading"
CUT: Final = "row cut off by the file's end"

_STATS: Final = re.compile(r"^(?:Type\s+)?\s*Name\s+# reqs\s+# fails\s")
_QUANTILES: Final = re.compile(r"^(?:Type\s+)?\s*Name(?:\s+[\d.]+%)+\s+# reqs\s*$")
_ROW: Final = re.compile(
    r"^\s*(?P<what>\S.*?)\s+(\d+)\s+(\d+)\([\d.]+%\)\s*\|?\s+(\d+)\s+(\d+)\s+(\d+)\s*\|?\s+(\d+)\s*\|?\s+(\d+\.\d+)\s+(\d+\.\d+)\s*$"
)
_COLUMNS: Final = ("Request Count", "Failure Count", "Average Response Time", "Min Response Time", "Max Response Time", "Median Response Time",
                   "Requests/s", "Failures/s")  # fmt: skip
"""Of the printed table, in the words of the file of ``--csv``."""
_ERROR: Final = re.compile(r"^(\d+)\s+(?:([A-Z]+ \S+): )?(\w+)\((?:['\"](\d{3}) )?")
_CHATTER: Final = re.compile(
    r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] \S+/[A-Z]+/\S+: |^\s*-{3,}[-|]*\s*$|^Response time percentiles|^\s*Percentage of the requests"
    r"|^Error report|^ ?# occurrences\s+Error\s*$|^ ?# Fails\s|^KeyboardInterrupt"
)
_CSV: Final = ("Type,Name,Request Count,", "Timestamp,User Count,Type,Name,", "Method,Name,Error,Occurrences")
_ALL: Final = "Aggregated"
_TIME: Final = re.compile(r"^(Total )?(Average|Median|Min|Max) Response Time$")
_STATISTICS: Final = {"Average": "mean", "Median": "p50", "Min": "min", "Max": "max"}


def sniff(head: Head) -> Claim | None:
    """Claim a file with the heading of a table, or one that begins with that of a file of ``--csv``."""
    first = head.first.lstrip("\ufeff").replace('"', "").rstrip("\r")
    if first.startswith(_CSV):
        return Claim("csv", Clock.NONE, {"names": tuple(first.split(","))})
    lines = (*head.lines, *head.sampled)
    return Claim("printed tables", Clock.NONE) if any(map(_STATS.match, lines)) else None


def context(text: str, previous: str | None) -> str | None:
    """Find the last heading of percentiles in a chunk: a script may choose its own."""
    if "# reqs" not in text:
        return previous
    return next((line for line in reversed(text.split("\n")) if _QUANTILES.match(line)), previous)


def parse(chunk: Chunk) -> Parsed:
    """Read every number with its name and statistic; the subject is the type and name of the row."""
    names = chunk.claim.settings.get("names")
    read = _csv_reader(names) if names else _text_reader(chunk.context)
    lines = chunk.lines
    figures: list[tuple[int, Figure]] = []
    refused: dict[int, str] = {}
    last = lines["line_no"][-1] if chunk.is_open and lines.height else -1
    for line_no, text in zip(lines["line_no"].to_list(), lines["text"].fill_null("").to_list(), strict=True):
        found = read(text.rstrip("\r")) if text.strip() else []
        if isinstance(found, str):
            refused[line_no] = found
        elif found and line_no == last:
            refused[line_no] = CUT
        else:
            figures += [(line_no, each) for each in found]
    issues = refusals(lines, refused)
    tables = {"client_summary": summary_frame("locust", figures)}
    return Parsed(tables, issues, lines.height - issues.height, no_stamps())


def _text_reader(heading: str | None) -> Callable[[str], list[Figure] | str]:
    """Return a reader of lines that remembers the last heading of percentiles."""
    in_force = heading

    def read(text: str) -> list[Figure] | str:
        nonlocal in_force
        if _QUANTILES.match(text):
            in_force = text
            return []
        if _STATS.match(text) or _CHATTER.match(text):
            return []
        row = _ROW.match(text)
        if row is not None:
            return list(_figures(row["what"], dict(zip(_COLUMNS, row.groups()[1:], strict=True))))
        error = _ERROR.match(text)
        return [_error(*error.groups())] if error else _quantiles(text, in_force)

    return read


def _quantiles(text: str, heading: str | None) -> list[Figure] | str:
    names = re.findall(r"[\d.]+%", heading or "")
    row = re.match(rf"^\s*(\S.*?)((?:\s+(?:\d+|N/A)){{{len(names)}}})\s+\d+\s*$", text)
    if row is None:
        return OTHER_OUTPUT
    return list(_figures(row[1], dict(zip(names, row[2].split(), strict=True)))) if names else NO_HEADING


def _error(count: str, where: str | None, kind: str, status: str | None) -> Figure:
    """How often an error came; of its text only its class and status are kept, since scripts put answers in it."""
    said = " ".join(word for word in (kind, status) if word)
    return Figure("Error report", float(count), "count", None, f"{where}: {said}" if where else said)


def _csv_reader(names: tuple[str, ...]) -> Callable[[str], list[Figure] | str]:
    def read(text: str) -> list[Figure] | str:
        try:
            cells = next(csv.reader([text.lstrip("\ufeff")]), [])
        except csv.Error:
            return OTHER_OUTPUT
        if len(cells) != len(names):
            return OTHER_OUTPUT
        if tuple(cells) == names:
            return []
        row = dict(zip(names, cells, strict=True))
        what = f"{row.pop('Type', row.pop('Method', ''))} {row.pop('Name', '')}"
        if "Error" not in row:
            return list(_figures(what, row))
        error = _ERROR.match(f"{row.get('Occurrences')} {what}: {row['Error']}")
        return [_error(*error.groups())] if error else OTHER_OUTPUT

    return read


def _figures(what: str, cells: dict[str, str]) -> Iterator[Figure]:
    subject = " ".join(what.split())
    is_empty = number(cells.get("Request Count", cells.get("Total Request Count"))) == 0
    is_idle = number(cells.get("Requests/s")) == 0
    for name, cell in cells.items():
        amount, time = number(cell), _TIME.match(name)
        statistic = _STATISTICS[time[2]] if time else statistic_of(name)
        # N/A and 0 are written where nothing was measured: of all requests so far, or (percentiles) of the last seconds'.
        if amount is None or (statistic and is_empty) or (statistic and not time and is_idle):
            continue
        told = name if statistic is None else f"{(time and time[1]) or ''}Response Time"
        yield Figure(
            told, float(amount), statistic, "ms" if statistic else None, None if subject == _ALL else subject
        )


FORMAT: Final = Format(
    name="locust",
    title="tables that Locust prints, and its files of --csv",
    side=Side.CLIENT,
    fills=("client_summary",),
    sniff=sniff,
    parse=parse,
    context=context,
    versions="Locust 1.0 to 2.47",
    complete="Real output of 2.47. Response times are of whole answers, or of the headers of streams; no TTFT but what a script fires itself.",
    record="locust --headless --csv out ... 2>&1 | tee locust.txt",
    sample="v2.47.0_printed.txt",
)
