"""What every file of the exposition format has in common: its lines sorted into values, times of scrapes and what is around them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed, issues_of
from tracelens.formats.metrics.scrape_times import PREFIXES, Stamp, prefix_of, time_of, times_in
from tracelens.formats.metrics.series import SAMPLE, values

if TYPE_CHECKING:
    from collections.abc import Sequence

_TYPE: Final = re.compile(
    r"^#[ \t]*TYPE[ \t]+[A-Za-z_:][\w:.]*[ \t]+"
    r"(?:counter|gauge|histogram|summary|untyped|unknown|info|stateset|gaugehistogram)$"
)
META: Final = r"^#[ \t]*(?:HELP|TYPE|UNIT|EOF)(?:[ \t]|$)"
KNOWN: Final = re.compile(
    r"^(?:vllm[:_]|sglang[:_]|tgi_|DCGM_FI_|http_request|process_|python_|lmcache[:_]|ray_vllm_|node_|container_)"
)
"""Beginnings of names that need no ``# TYPE`` line to be believed."""

_NOISE: Final = (
    r"^(?:HTTP/\d|(?i:content-|server:|date:|vary:|connection:|transfer-encoding:|access-control-|x-[\w-]+:)"
    r"|\s*% Total|\s+Dload|\s*\d+\s+[\d.]+[kMG]?\s+\d+\s.*:|[=*~-]{3,}|\$ |# ?$)"
)
"""Headers of an answer, curl's own progress, rulers, a shell's prompt: they say nothing of the server."""

_FAILED: Final = r"^curl: \(\d+\)|^(?:wget|Invoke-WebRequest)\b.*(?i:fail|refused|error|unable)"
_TIME_NAME: Final = r"^(?:scraped?_?(?:ts|at|time)?|time(?:stamp)?|ts|date|now|epoch)$"
_EPOCHS: Final = (1.42e9, 2.53e9)
_MIN_SHARE: Final = 0.5

CUT: Final = "cut off by the end of the file"
FAILED: Final = "the scrape failed: the server was not reached"
FOREIGN: Final = "not a line of a metrics scrape"

_SAMPLE: Final = re.compile(SAMPLE)
_META: Final = re.compile(META)
_NOISE_LINE: Final = re.compile(_NOISE)


@dataclass(frozen=True, slots=True)
class Look:
    """What the head of a file shows: how many lines are what, and the stamps in and before them."""

    samples: tuple[str, ...]
    """Values, without what stands before them."""
    meta_count: int
    type_count: int
    line_count: int
    """Lines that say something of a server, or of something else: not blanks, comments, times and headers of answers."""
    stamps: tuple[Stamp, ...]
    prefix: str | None

    @property
    def is_exposition(self) -> bool:
        """Whether most lines are metrics, and something says that they are: a type, or a name that is known."""
        told = self.type_count > 0 or any(KNOWN.match(sample) for sample in self.samples)
        share = (len(self.samples) + self.meta_count) / max(self.line_count, 1)
        return bool(self.samples) and told and share >= _MIN_SHARE

    def timing(self) -> tuple[str, Clock, float | None]:
        """Where times come from (line, prefix, own, none), on which clock, and their resolution."""
        if self.prefix is not None:
            error_s = self.stamps[0].error_s if self.stamps else None
            return "prefix", PREFIXES[self.prefix][1], error_s
        if self.stamps:
            (clock, _) = Counter(stamp.clock for stamp in self.stamps).most_common(1)[0]
            return "line", clock, next(stamp.error_s for stamp in self.stamps if stamp.clock is clock)
        timed = sum(
            1
            for sample in self.samples
            if (found := _SAMPLE.match(sample)) is not None and found["time"] is not None
        )
        return ("own", Clock.UTC, 0.001) if timed * 2 > len(self.samples) else ("none", Clock.NONE, None)


def look(lines: Sequence[str]) -> Look:
    """Sort the lines of a head."""
    samples: list[str] = []
    stamps: list[Stamp] = []
    prefixes: Counter[str] = Counter()
    meta_count = type_count = foreign_count = 0
    for line in filter(None, map(str.strip, lines)):
        kind, text = (None, line) if is_metric(line) else prefix_of(line)
        if kind is not None and is_metric(text):
            prefixes[kind] += 1
            stamps += filter(None, [time_of(line[: len(line) - len(text)])])
        if _META.match(text):
            meta_count += 1
            type_count += _TYPE.match(text) is not None
        elif is_value(text):
            samples.append(text)
        elif (stamp := time_of(line)) is not None:
            stamps.append(stamp)
        else:
            foreign_count += not (line.startswith("#") or _NOISE_LINE.match(line))
    line_count = meta_count + len(samples) + foreign_count
    common = prefixes.most_common(1)
    prefix = common[0][0] if common and common[0][1] * 2 > line_count else None
    return Look(tuple(samples), meta_count, type_count, line_count, tuple(stamps), prefix)


def is_value(text: str) -> bool:
    """Whether a line is the value of a series (and not an epoch number with a word before it)."""
    found = _SAMPLE.match(text)
    if found is None or (found["name"] is None and found["labels"] is None):
        return False
    return found["labels"] is not None or re.match(_TIME_NAME, found["name"]) is None


def is_metric(text: str) -> bool:
    """Whether a line belongs to the exposition format."""
    return _META.match(text) is not None or is_value(text)


def look_at(head: Head) -> Look:
    """Sort a file's first lines, and those sampled from its middle and end."""
    return look((*head.lines, *head.sampled))


def claim_of(seen: Look, variant: str) -> Claim:
    """Claim a file for what its head shows."""
    timing, clock, error_s = seen.timing()
    said = {"line": "time lines", "prefix": "a stamp before each line", "own": "own times"}.get(
        timing, "no time"
    )
    settings = {"timing": timing, "prefix": seen.prefix, "error_s": error_s}
    return Claim(f"{variant}, {said}", clock, settings)


def parse(chunk: Chunk) -> Parsed:
    """Read a chunk of scrapes into `metric_sample`."""
    lines = _sorted_out(chunk)
    timed = _timed(lines, chunk.claim)
    samples = timed.filter(pl.col("kind") == "sample")
    error_s = pl.lit(chunk.claim.settings.get("error_s"), pl.Float64)
    rows = samples.select(
        "line_no",
        "sample_ts",
        error_s=error_s,
        name="name",
        labels="labels",
        measured="measured",
        timing=pl.lit(chunk.claim.settings["timing"]),
    )
    bad = timed.filter(pl.col("kind").is_in([CUT, FAILED, FOREIGN]))
    issues = issues_of(bad, pl.col("kind"))
    stamps = timed.select("line_no", "stamp").drop_nulls("stamp")
    return Parsed({"metric_sample": rows}, issues, chunk.lines.height - issues.height, stamps)


def _sorted_out(chunk: Chunk) -> pl.DataFrame:
    """``line_no, text, before, name, labels, measured, time, kind``: what each line is."""
    lines = _without_prefix(chunk)
    text = pl.col("text")
    is_comment = text.str.starts_with("#")
    read = values(lines.filter(~is_comment & (text != ""))).drop("text", "before")
    lines = lines.join(read, on="line_no", how="left", maintain_order="left")
    is_time = (
        (pl.col("labels") == "{}")
        & pl.col("measured").is_between(*_EPOCHS)
        & pl.col("name").str.contains(_TIME_NAME)
    )
    cut = pl.lit(chunk.is_open) & (pl.col("line_no") == pl.col("line_no").max())
    kind = (
        pl.when(text == "")
        .then(pl.lit("blank"))
        .when(text.str.contains(META))
        .then(pl.lit("meta"))
        .when(pl.col("is_sample").fill_null(value=False) & ~is_time)
        .then(pl.when(cut).then(pl.lit(CUT)).otherwise(pl.lit("sample")))
        .otherwise(pl.lit("other"))
    )
    return lines.with_columns(kind=kind)


def _without_prefix(chunk: Chunk) -> pl.DataFrame:
    """Take the stamp before each line off, into ``before``."""
    text = pl.col("text").fill_null("").str.strip_chars()
    kind = chunk.claim.settings.get("prefix")
    if kind is None:
        return chunk.lines.with_columns(text=text, before=pl.lit(None, pl.String))
    pattern = PREFIXES[kind][0]
    return chunk.lines.with_columns(
        text=text.str.replace(pattern, "").str.strip_chars(), before=text.str.extract(pattern, 1)
    )


def _timed(lines: pl.DataFrame, claim: Claim) -> pl.DataFrame:
    """Add ``stamp`` (what the line states) and ``sample_ts`` (what is in force), and say what the other lines are."""
    other = pl.col("kind") == "other"
    spoken = lines.select(pl.when(other).then("text").otherwise("before").alias("spoken"))["spoken"]
    lines = lines.with_columns(spoken=times_in(spoken, claim.clock))
    own = claim.settings["timing"] == "own"
    stamp = pl.when(pl.col("kind") == "sample").then("time") if own else pl.col("spoken")
    text = pl.col("text")
    kind = (
        pl.when(~other)
        .then("kind")
        .when(pl.col("spoken").is_not_null() | text.str.starts_with("#") | text.str.contains(_NOISE))
        .then(pl.lit("noise"))
        .when(text.str.contains(_FAILED))
        .then(pl.lit(FAILED))
        .otherwise(pl.lit(FOREIGN))
    )
    return lines.with_columns(stamp=stamp, kind=kind).with_columns(sample_ts=pl.col("stamp").forward_fill())
