"""The requests of one run of ``vllm bench serve``; what its fields mean stands in `vllm_bench`."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.client.client_outcomes import REASON_PHRASES, Ending, error_text
from tracelens.formats.json_lines import count, number, seconds, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PER_REQUEST: Final = (
    "input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "generated_texts", "errors",
)  # fmt: skip
"""The arrays with one entry per request, as the file calls them."""

_REQUEST_SCHEMA: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    "position": pl.Int64,
    **dict.fromkeys(("client_planned_s", "client_sent_s", "client_wait_s", "client_ttft_s"), pl.Float64),
    **dict.fromkeys(("client_reported_ttft_s", "client_e2e_s", "client_tpot_s"), pl.Float64),
    **dict.fromkeys(("client_ttft_kind", "status", "error", "output_tokens_basis", "model"), pl.String),
    "streamed": pl.Boolean,
    "http_status": pl.Int32,
    **dict.fromkeys(("input_tokens", "output_tokens", "chunk_count"), pl.Int64),
}
_NOT_STREAMED: Final = ("embed", "pooling", "rerank", "score", "classify")
_SHORTENED_RATIO: Final = 0.2
_ROWS_FOR_MEDIAN: Final = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """One request: its entry in each array, None where there is none."""

    index: int
    ttft_s: float | None
    gaps_s: tuple[float, ...]
    latency_s: float | None
    sent_s: float | None
    wait_s: float | None
    input_tokens: int | None
    output_tokens: int | None
    error: str | None

    @property
    def failed(self) -> bool:
        """Whether the tool counted it as failed: it has an error, or a latency of exactly 0."""
        return self.error is not None or self.latency_s == 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """One result object: its rows and what they have in common."""

    rows: tuple[Row, ...]
    texts: Sequence[Any]
    first_line_no: int
    model: str | None
    streamed: bool
    typical_gap_s: float | None
    """Median gap between messages after the first two; None where no first message can be the role-only one."""
    shortened: bool
    basis: str
    positional: bool = True
    """Whether row i was sent with an id that ends in i."""

    @property
    def row_count(self) -> int:
        """Requests of the run."""
        return len(self.rows)

    @classmethod
    def of(cls, document: Mapping[str, Any], rows_before: int) -> Run:
        """Make a run from its result object; `rows_before` rows of the file belong to earlier runs."""
        rows, texts = _rows(document)
        endpoint = f"{document.get('endpoint_type')} {document.get('backend')}"
        is_served = "endpoint_type" in document
        return cls(
            rows=rows,
            texts=texts,
            first_line_no=rows_before + 1,
            model=text_of(document.get("model_id")),
            streamed=not any(word in endpoint for word in _NOT_STREAMED),
            typical_gap_s=_typical_gap_s(rows)
            if "chat" in endpoint and (is_served or _role_counts(rows))
            else None,
            shortened=_is_shortened(rows, document.get("mean_tpot_ms")),
            basis="usage" if is_served else "client",
        )

    @classmethod
    def of_sglang(cls, document: Mapping[str, Any], rows_before: int) -> Run:
        """Make a run of ``sglang.bench_serving``: messages with content alone count, lengths are those asked for.

        Without a stream the tool writes its latency as TTFT too, so both means are the same to the last digit.
        """
        rows, texts = _rows(document)
        ttft_ms, whole_ms = (number(document.get(f"mean_{name}_ms")) for name in ("ttft", "e2e_latency"))
        return cls(
            rows=rows,
            texts=texts,
            first_line_no=rows_before + 1,
            model=text_of(document.get("model_id")),
            streamed=ttft_ms is None or ttft_ms != whole_ms,
            typical_gap_s=None,
            shortened=_is_shortened(rows, document.get("mean_tpot_ms")),
            basis="requested",
            positional=False,
        )

    def requests(self) -> pl.DataFrame:
        """Rows of `client_request`."""
        rows = [self._request(row) for row in self.rows]
        columns = {name: [row.get(name) for row in rows] for name in _REQUEST_SCHEMA}
        return pl.DataFrame(columns, schema=_REQUEST_SCHEMA)

    def _request(self, row: Row) -> dict[str, Any]:
        content, whole = self.content_s(row), self._whole_s(row)
        last = None if row.ttft_s is None or self.shortened else row.ttft_s + sum(row.gaps_s)
        return {
            "line_no": self.first_line_no + row.index,
            "position": row.index if self.positional else None,
            "client_planned_s": None if row.sent_s is None or row.wait_s is None else row.sent_s - row.wait_s,
            "client_sent_s": row.sent_s,
            "client_wait_s": row.wait_s,
            "client_ttft_s": content,
            "client_reported_ttft_s": row.ttft_s,
            "client_ttft_kind": None if row.ttft_s is None else self._kind(row),
            "client_e2e_s": whole,
            "client_tpot_s": self._tpot_s(content, last, row.output_tokens),
            "streamed": self.streamed if row.ttft_s is not None or not row.failed else None,
            "input_tokens": row.input_tokens,
            "output_tokens": row.output_tokens,
            "output_tokens_basis": None if row.output_tokens is None else self.basis,
            "model": self.model,
            "chunk_count": self._chunk_count(row),
        } | _ending(row)

    def content_s(self, row: Row) -> float | None:
        """Send to first content: one gap after the role-only message where that comes first."""
        if not self.streamed or row.ttft_s is None:
            return None
        if not self.has_role(row):
            return row.ttft_s
        return row.ttft_s + row.gaps_s[0] if row.gaps_s else None

    def has_role(self, row: Row) -> bool:
        """Whether the row's first message is the role-only one.

        A keep-alive comment makes the tool lose that message.  Then the row has no more messages than tokens, and its
        first gap is like any other: the gap from the role is far shorter, or with chunked prefill far longer.
        """
        if self.typical_gap_s is None:
            return False
        if not row.gaps_s:
            return row.failed
        if row.output_tokens is not None and len(row.gaps_s) >= row.output_tokens:
            return True
        return not self.typical_gap_s / 2 <= row.gaps_s[0] <= self.typical_gap_s * 2

    def kinds(self, row: Row) -> str:
        """Letters of the row's messages.  The last one ends the answer and may be empty: it is counted as content."""
        role_count = int(self.has_role(row))
        return "r" * role_count + "c" * (len(row.gaps_s) + 1 - role_count)

    def _kind(self, row: Row) -> str:
        if not self.streamed:
            return "whole_response"
        return "role" if self.has_role(row) else "content"

    def _whole_s(self, row: Row) -> float | None:
        if row.failed:
            return None
        if row.latency_s is not None:
            return row.latency_s
        return None if row.ttft_s is None or self.shortened else row.ttft_s + sum(row.gaps_s)

    def _tpot_s(self, first: float | None, last: float | None, output_tokens: int | None) -> float | None:
        if self.basis == "requested" or output_tokens is None or output_tokens < 2:  # noqa: PLR2004
            return None
        if first is None or last is None:
            return None
        return (last - first) / (output_tokens - 1)

    def _chunk_count(self, row: Row) -> int | None:
        if row.ttft_s is None or self.shortened or not self.streamed:
            return None
        return self.kinds(row).count("c")


def _rows(document: Mapping[str, Any]) -> tuple[tuple[Row, ...], Sequence[Any]]:
    """Rows of the parallel arrays, and the answers; what an array lacks is None."""
    arrays = {name: document[name] for name in PER_REQUEST if isinstance(document.get(name), list)}
    row_count = max(map(len, arrays.values()), default=0)
    padded = {name: values + [None] * (row_count - len(values)) for name, values in arrays.items()}
    empty = [None] * row_count
    rows = tuple(
        _row(at, {name: padded.get(name, empty)[at] for name in PER_REQUEST}) for at in range(row_count)
    )
    return rows, padded.get("generated_texts", empty)


def _row(index: int, entry: Mapping[str, Any]) -> Row:
    return Row(
        index=index,
        ttft_s=seconds(entry["ttfts"]) or None,
        gaps_s=_gaps_s(entry["itls"]),
        latency_s=seconds(entry["latencies"]),
        sent_s=seconds(entry["start_times"]),
        wait_s=seconds(entry["queue_times"]),
        input_tokens=count(entry["input_lens"]),
        output_tokens=count(entry["output_lens"]) or None,
        error=error_text(entry["errors"]),
    )


def _gaps_s(gaps: Any) -> tuple[float, ...]:
    """Gaps in seconds, all or none."""
    if not isinstance(gaps, list) or not gaps:
        return ()
    if set(map(type, gaps)) == {float} and min(gaps) >= 0:
        return tuple(gaps)
    known = [seconds(gap) for gap in gaps]
    return tuple(gap for gap in known if gap is not None) if None not in known else ()


def _ending(row: Row) -> dict[str, Any]:
    """How it ended.  Of HTTP errors the tool keeps the reason phrase only."""
    http_status = REASON_PHRASES.get(row.error or "")
    arrived = row.ttft_s is not None or bool(row.latency_s)
    word = "error" if row.failed else "ok" if arrived else None
    ending = Ending(http_status=http_status, word=word, error=row.error)
    return {"status": ending.status(), "http_status": http_status, "error": row.error}


def _typical_gap_s(rows: Sequence[Row]) -> float:
    later = [gap for row in rows[:_ROWS_FOR_MEDIAN] for gap in row.gaps_s[1:]]
    return statistics.median(later) if later else 0.0


def _role_counts(rows: Sequence[Row]) -> bool:
    """Whether most rows have a message more than tokens (0.7 and 0.8; before, only messages with text counted)."""
    told = [
        len(row.gaps_s) >= row.output_tokens
        for row in rows
        if row.output_tokens is not None and row.ttft_s is not None
    ]
    return sum(told) * 2 > len(told)


def _is_shortened(rows: Sequence[Row], mean_tpot_ms: Any) -> bool:
    """Whether the gaps are too few for the mean TPOT that the file states (over its rows without error)."""
    stated = seconds(mean_tpot_ms, 0.001)
    sums = [
        sum(row.gaps_s) / (row.output_tokens - 1)
        for row in rows
        if row.ttft_s is not None
        and row.error is None
        and row.output_tokens is not None
        and row.output_tokens > 1
    ]
    return bool(stated and sums) and abs(sum(sums) / len(sums) - (stated or 0)) > _SHORTENED_RATIO * (
        stated or 0
    )


def streams_of(run: Run) -> pl.DataFrame:
    """Rows of `client_stream`: the first message and the gaps, added up."""
    shown = () if run.shortened or not run.streamed else run.rows
    kept = [row for row in shown if row.ttft_s is not None and row.gaps_s]
    frame = pl.DataFrame(
        {
            "line_no": [run.first_line_no + row.index for row in kept],
            "gaps": [[row.ttft_s, *row.gaps_s] for row in kept],
            "chunk_kind": [run.kinds(row) for row in kept],
        },
        schema={"line_no": pl.Int64, "gaps": pl.List(pl.Float64), "chunk_kind": pl.String},
    )
    offsets = pl.col("gaps").list.eval(pl.element().cum_sum().cast(pl.Float32))
    return frame.select("line_no", offsets.alias("chunk_offset_s"), "chunk_kind")


def texts_of(run: Run) -> pl.DataFrame:
    """Rows of `request_text`: the answers."""
    said = [(at, text) for at, text in enumerate(run.texts) if isinstance(text, str) and text]
    columns = {
        "line_no": [run.first_line_no + at for at, _ in said],
        "kind": ["output"] * len(said),
        "content": [text for _, text in said],
    }
    return pl.DataFrame(columns, schema={"line_no": pl.Int64, "kind": pl.String, "content": pl.String})
