"""What ``k6 run`` prints at its end: metrics, and thresholds that held or were crossed.

    http_req_duration..............: avg=144.56ms min=104.11ms med=110.47ms max=1.14s    p(90)=203.54ms p(95)=215.95ms
      { expected_response:true }...: avg=144.56ms min=104.11ms med=110.47ms max=1.14s    p(90)=203.54ms p(95)=215.95ms
    http_reqs......................: 180    4.36938/s

A row with tags is a part of the metric above it.  ``http_req_duration`` is the whole answer, since k6 reads a body to its end, and
``http_req_waiting`` ends at the headers: neither is a TTFT, unless a script has a metric of its own.  Names of checks are the
script's and are passed over.  Read in the manual of k6 0.48 and 1.0, in all of its summary modes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.tool_summaries import Figure, statistic_of, summary_frame
from tracelens.formats.json_lines import refusals

OTHER_OUTPUT: Final = "other output than the summary"
NO_METRIC: Final = "a row without the metric that it is a part of"
CUT: Final = "row cut off by the file's end"

_METRIC: Final = re.compile(r"^\s*(?:(?P<mark>[✓✗]) )?\s*(?P<name>[A-Za-z_]\w*)\.{2,}: *(?P<said>\S.*?)\s*$")
_PART: Final = re.compile(
    r"^\s*(?:(?P<mark>[✓✗]) )?\s*\{ ?(?P<tags>[^{}]{1,200}?) ?\}\.{2,}: *(?P<said>\S.*?)\s*$"
)
_SECTION: Final = re.compile(r"^\s*█ (?P<title>\S.*?)\s*$")
_TOTAL: Final = re.compile(r"^(?:TOTAL RESULTS|THRESHOLDS)$")
_BARE_NAME: Final = re.compile(r"^\s{2,}(?P<name>[A-Za-z_]\w*)(?: *\{(?P<tags>[^{}]{1,200})\})?\s*$")
_THRESHOLD: Final = re.compile(r"^\s+(?P<mark>[✓✗]) '(?P<rule>[^']{1,100})' \S+=\S+\s*$")
_CHATTER: Final = re.compile(
    r"^\s*[✓✗] |^\s*↳ |^[\s/\\|_‾()]*(?:Grafana)?[\s/\\|_‾()]*(?:\.io)?$|^\s*(?:execution|script|output|web dashboard|scenarios): "
    r"|^\s*\* \S+: |^running .*VUs|^\s*[\w-]+ +(?:[✓✗] )?\[[ =>-]*\d*%?[ =>-]*\] |^(?:INFO|WARN|ERRO|DEBU)\[\d+\] |^time=\"[^\"]+\" level=\w+ "
)
"""Checks, the banner, how the test goes, and log lines."""
_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?) ?([^\d\s.]\S*)?$")
_TIMES: Final = re.compile(r"(\d+(?:\.\d+)?)(h|m|s|ms|µs|μs|us|ns)(?![a-z])")
_PER_UNIT: Final = {"h": 3600.0, "m": 60.0, "s": 1.0}
_MARKS: Final = {"✓": "held", "✗": "crossed"}


@dataclass(frozen=True, slots=True)
class _Place:
    """The section and the metric that a line stands below."""

    section: str = ""
    metric: str = ""

    def below(self, text: str) -> _Place:
        """The place of what follows a line."""
        section = _SECTION.match(text)
        if section is not None:
            return _Place("" if _TOTAL.match(section["title"]) else section["title"])
        named = _METRIC.match(text) or _BARE_NAME.match(text)
        return _Place(self.section, named["name"]) if named else self


def sniff(head: Head) -> Claim | None:
    """Claim a file with the totals of requests or iterations among rows of metrics."""
    names = {found["name"] for line in (*head.lines, *head.sampled) if (found := _METRIC.match(line))}
    if {"iterations", "iteration_duration", "http_reqs", "checks_total"} & names and len(names) > 1:
        return Claim("k6, end of test", Clock.NONE)
    return None


def context(text: str, previous: str | None) -> str | None:
    """Find the section and the metric that the lines of a chunk leave in force."""
    place = _Place(*(previous or "\t").split("\t"))
    for line in text.split("\n"):
        if "█" in line or "..:" in line or _BARE_NAME.match(line):
            place = place.below(line)
    return f"{place.section}\t{place.metric}"


def parse(chunk: Chunk) -> Parsed:
    """Read every number with its name and statistic; the subject is the section, and the tags of a part."""
    figures: list[tuple[int, Figure]] = []
    refused: dict[int, str] = {}
    lines = chunk.lines
    place = _Place(*(chunk.context or "\t").split("\t"))
    last = lines["line_no"][-1] if chunk.is_open and lines.height else -1
    for line_no, text in zip(lines["line_no"].to_list(), lines["text"].fill_null("").to_list(), strict=True):
        place = place.below(text)
        found = _line(text, place)
        if isinstance(found, str) or (found and line_no == last):
            refused[line_no] = found if isinstance(found, str) else CUT
        else:
            figures += [(line_no, each) for each in found]
    issues = refusals(lines, refused)
    tables = {"client_summary": summary_frame("k6", figures)}
    return Parsed(tables, issues, lines.height - issues.height, no_stamps())


def _line(text: str, place: _Place) -> list[Figure] | str:
    """What a line states; why not, where it is none of k6's."""
    row, part = _METRIC.match(text), _PART.match(text)
    found = row or part
    if found is not None:
        if not place.metric:
            return NO_METRIC
        subject = ", ".join(each for each in (place.section, part["tags"] if part else "") if each) or None
        return list(_figures(place.metric, found["said"], subject)) + _judged(
            place.metric, "thresholds", found["mark"]
        )
    threshold = _THRESHOLD.match(text)
    if threshold is not None and place.metric:
        return _judged(place.metric, threshold["rule"], threshold["mark"])
    is_known = not text.strip() or _SECTION.match(text) or _BARE_NAME.match(text) or _CHATTER.match(text)
    return [] if is_known else OTHER_OUTPUT


def _judged(metric: str, rule: str, mark: str | None) -> list[Figure]:
    return [Figure(f"{metric} {rule}", None, stated=_MARKS[mark])] if mark else []


def _figures(name: str, said: str, subject: str | None) -> Iterator[Figure]:
    """Numbers of a row: ``avg=1.2s p(95)=2s``, or ``180    4.36938/s``, or ``2.00%  9 out of 450``."""
    for word, value in re.findall(r"(\S+?)=(\S+)", said):
        statistic = statistic_of("median" if word == "med" else word.replace("p(", "p").rstrip(")"))
        if statistic:
            yield from _amount(name, value, statistic, subject)
    plain = re.split(
        r" {2,}| (?=[\d.]+ ?\S*/s$)| (?=\d+ out of )| (?=[✓✗] )", re.split(r"\s*\bmin=", said)[0]
    )
    if "=" in plain[0]:
        return
    yield from _amount(name, plain[0], None, subject)
    for more in filter(None, map(str.strip, plain[1:])):
        hits = re.match(r"(?:(\d+) out of \d+|✓ (\d+))$", more)
        if hits:
            yield Figure(name, float(hits[1] or hits[2]), "count", None, subject)
        elif more.endswith("/s"):
            yield from _amount(name, more, None, subject)


def _amount(name: str, text: str, statistic: str | None, subject: str | None) -> Iterator[Figure]:
    times = _TIMES.findall(text)
    if times and "".join(f"{number}{unit}" for number, unit in times) == text:
        if len(times) > 1:
            seconds = sum(float(number) * _PER_UNIT.get(unit, 0.0) for number, unit in times)
            yield Figure(name, seconds, statistic, "s", subject)
            return
        number, unit = times[0]
        scale = _PER_UNIT.get(unit)
        unit = "s" if scale else unit.replace("µ", "u").replace("μ", "u")
        yield Figure(name, float(number) * (scale or 1.0), statistic, unit, subject)
        return
    found = _AMOUNT.match(text)
    if found is not None:
        yield Figure(name, float(found[1]), statistic, found[2], subject)


FORMAT: Final = Format(
    name="k6_summary",
    title="summary that k6 prints at the end of a test",
    side=Side.CLIENT,
    fills=("client_summary",),
    sniff=sniff,
    parse=parse,
    context=context,
    versions="k6 0.30 to 1.3",
    complete="Made-up numbers in the forms of the manual. Times are of whole answers or of headers; no TTFT but a script's own metric.",
    record="k6 run script.js 2>&1 | tee k6.txt",
    sample="v1_compact.txt",
)
