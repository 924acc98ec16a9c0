"""The page of one request, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracelens import units
from tracelens.cli.surroundings import apart, company, engine, evidence, gaps, gpus
from tracelens.text.bars import BAR_STAGES, FILL, Piece, drawn
from tracelens.text.grid import Column, grid
from tracelens.text.rows import instant
from tracelens.text.terminal import clean
from tracelens.units import STAGE_LETTERS, count, duration, percent, percentile, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracelens.cli.show import Parts

    Row = Mapping[str, Any]

_MUCH_LONGER: Final = 1.5
_WORTH_A_MARK_S: Final = 0.001


def page(parts: Parts, width: int) -> Iterator[str]:
    """All sections, a rule between them; no line of text is cut where it carries a number."""
    sections = (
        head(parts),
        stages(parts, width),
        bar(parts.stages, width - 8),
        engine(parts, width),
        gpus(parts, width),
        company(parts, width),
        gaps(parts, width),
        apart(parts, width),
        evidence(parts.evidence, width),
    )
    for place, section in enumerate(sections):
        if place:
            yield "─" * width
        yield from section


def head(parts: Parts) -> Iterator[str]:
    """Id, outcome, sizes, time, how the sources were joined, and the stage that took most."""
    facts = parts.request
    yield f"{clean(facts['request_id'])}   run {clean(facts['run_id'])}"
    yield "  " + " · ".join(clean(text) for text in _outcome(facts))
    yield "  " + " · ".join(clean(text) for text in _times(facts))
    for line in _joined(facts):
        yield "  " + clean(line)
    yield "  " + _largest(parts.stages)


def _largest(rows: Sequence[Row]) -> str:
    """The stage with the largest part of TTFT, in a sentence."""
    shared = [row for row in rows if row["share_of_ttft_ratio"] is not None]
    if not shared:
        return "No first token was seen by anyone: where its time went is not known."
    largest = max(shared, key=lambda row: row["share_of_ttft_ratio"])
    return (
        f"Most of its TTFT is {largest['stage']} ({STAGE_LETTERS[largest['stage']]}): {duration(largest['duration_s'])}, "
        f"{percent(largest['share_of_ttft_ratio'])}; the run's median is {duration(largest['median_s'])}."
    )


def _outcome(facts: Row) -> Iterator[str]:
    yield f"status {facts['status']}" + (f" ({facts['finish_reason']})" if facts["finish_reason"] else "")
    if facts["http_status"] is not None:
        yield f"HTTP {facts['http_status']}"
    cached = (
        f" ({count(facts['cached_input_tokens'])} of them cached)"
        if facts["cached_input_tokens"] is not None
        else ""
    )
    yield f"{count(facts['input_tokens'])} tokens in{cached}, {count(facts['output_tokens'])} out"
    if facts["streamed"] is not None:
        yield "streamed" if facts["streamed"] else "not streamed: the client saw no first token"
    if facts["preemption_count"]:
        yield plural(facts["preemption_count"], "preemption")
    if facts["label"]:
        yield f"label {facts['label']}"


def _times(facts: Row) -> Iterator[str]:
    yield f"arrived {instant(facts['arrival_ts'])} UTC ({facts['arrival_basis'] or 'no stamp'})"
    if facts["tpot_s"] is not None:
        yield f"TPOT {duration(facts['tpot_s'])}"
    if facts["ttft_percentile_ratio"] is not None:
        yield f"TTFT is {percentile(facts['ttft_percentile_ratio'])} of {plural(facts['run_request_count'], 'request')}"


def _joined(facts: Row) -> Iterator[str]:
    if facts["client_path"] and facts["join_basis"]:
        yield f"client {facts['client_id'] or 'row'} joined with the server by {facts['join_basis']}"
    elif facts["client_path"]:
        yield "seen by the client only: nothing on the server's side was joined with it"
    else:
        yield "no client file has it: times are the server's"


def stages(parts: Parts, width: int) -> Iterator[str]:
    """The stage table, with TTFT and end-to-end as lines of it."""
    facts = parts.request
    rows: list[list[str]] = []
    for stage in parts.stages:
        if stage["stage"] == "decode":
            rows.append(
                _total(
                    "─ TTFT", facts["whole_ttft_s"], facts["run_ttft_p50_s"], facts["ttft_percentile_ratio"]
                )
            )
        rows.append(_stage(stage))
    rows.append(_total("─ E2E", facts["whole_e2e_s"], facts["run_e2e_p50_s"], facts["e2e_percentile_ratio"]))
    heads = [
        Column("stage", fixed=True),
        Column("time", right=True),
        Column("± error", right=True),
        Column("of TTFT", right=True),
        Column("run median", right=True),
        Column("", fixed=True),
        Column("rank", right=True),
        Column("how known", fixed=True),
        Column("basis", wraps=True),
    ]
    yield from grid(heads, rows, width)


def _stage(row: Row) -> list[str]:
    known = row["duration_s"] is not None
    times = row["times_median"]
    longer = (
        f"▲ ×{times:.1f}"
        if known and row["duration_s"] >= _WORTH_A_MARK_S and times is not None and times >= _MUCH_LONGER
        else ""
    )
    return [
        f"{STAGE_LETTERS[row['stage']]} {row['stage']}",
        duration(row["duration_s"]) if known else "┊┊",
        units.error(row["error_s"]),
        percent(row["share_of_ttft_ratio"]) if known and row["share_of_ttft_ratio"] is not None else "",
        duration(row["median_s"]),
        longer,
        percentile(row["percentile_ratio"]) if known else "",
        f"{FILL[row['provenance']]:<2} {row['provenance']}",
        clean(row["basis"]),
    ]


def _total(title: str, seconds: float | None, median: float | None, ratio: float | None) -> list[str]:
    return [
        title,
        duration(seconds),
        "",
        "",
        duration(median),
        "",
        percentile(ratio) if ratio is not None else "",
        "",
        "",
    ]


def bar(rows: Sequence[Row], width: int) -> Iterator[str]:
    """The request from left to right: solid is observed, shaded derived, an empty frame has no known length."""
    by_name = {row["stage"]: row for row in rows}
    pieces = [
        Piece(STAGE_LETTERS[stage], by_name[stage]["duration_s"], by_name[stage]["provenance"])
        for stage in (*BAR_STAGES[:5], "kv_alloc", "prefill", "sample", *BAR_STAGES[6:])
        if stage in by_name
    ]
    unknown = sum(piece.seconds is None for piece in pieces)
    fills, names = drawn(pieces, max(width - 4 * unknown - len(pieces) - 2, 10))
    yield f"  this  {fills}"
    yield f"        {names}"
    yield "        █ observed  ▒ derived  ┊ ┊ length not known (inside another stage, or unknown)"
