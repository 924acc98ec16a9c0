"""What was around one request: the engine, the GPUs, the other requests, its stream, and the lines behind it all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracelens import units
from tracelens.text.grid import Column, grid
from tracelens.text.rows import instant
from tracelens.text.terminal import clean, hanging, shorten
from tracelens.units import UNKNOWN, count, duration, number, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracelens.cli.show import Parts

    Row = Mapping[str, Any]

SAMPLES_SHOWN: Final = 6
_DOING: Final = {
    "waiting_count": "waited",
    "prefill_count": "were in prefill",
    "decode_count": "in decode",
    "unknown_state_count": "did what is not known",
}
_STALL_S: Final = 1.0
_LONGEST_SAYING: Final = 200


def engine(parts: Parts, width: int) -> Iterator[str]:
    """The engine's own stats while the request was there."""
    if not parts.engine_samples:
        text = "no stats line from 10 s before it to 10 s after it (vLLM writes none while it is idle)"
        yield from hanging("engine", text, width)
        return
    yield from hanging("engine", _spread(parts.engine), width)
    heads = [
        Column("  at", fixed=True),
        Column("", fixed=True),
        Column("engine", right=True),
        Column("running", right=True),
        Column("waiting", right=True),
        Column("KV cache", right=True),
        Column("prompt tok/s", right=True),
        Column("gen. tok/s", right=True),
        Column("line", middle=True),
    ]
    shown = _middle(parts.engine_samples)
    yield from grid(heads, [_sample(row) for row in shown], width)
    hidden = len(parts.engine_samples) - len(shown)
    if hidden:
        yield f"  {plural(hidden, 'more line')}: tracelens query engine_around"


def _spread(spread: Row) -> str:
    return (
        f"{plural(spread['sample_count'], 'stats line')} from 10 s before to 10 s after: running {_span(spread, 'running', 'count', count)}, "
        f"waiting {_span(spread, 'waiting', 'count', count)}, KV cache {_span(spread, 'kv_cache_usage', 'ratio', percent)}, "
        f"prompt {_span(spread, 'prompt', 'tps', number)} tok/s, generation {_span(spread, 'generation', 'tps', number)} tok/s"
    )


def _middle(samples: Sequence[Row]) -> list[Row]:
    """The lines to show: those during the request first, then its surroundings, in the order of time."""
    nearest = sorted(range(len(samples)), key=lambda place: (samples[place]["phase"] != "during", place))
    return [samples[place] for place in sorted(nearest[:SAMPLES_SHOWN])]


def _sample(row: Row) -> list[str]:
    return [
        f"  {instant(row['sample_ts'])[11:19]}",
        row["phase"],
        number(row["engine_index"]),
        count(row["running_count"]),
        count(row["waiting_count"]),
        percent(row["kv_cache_usage_ratio"]),
        number(row["prompt_tps"]),
        number(row["generation_tps"]),
        _place(row),
    ]


def _span(spread: Row, name: str, unit: str, shown: Any) -> str:
    low, high = spread[f"{name}_low_{unit}"], spread[f"{name}_high_{unit}"]
    return shown(high) if low == high else f"{shown(low)} to {shown(high)}"


def _place(row: Row) -> str:
    """The line as ``server.log:297``, with as much of the path as an archive's member needs."""
    return f"{clean(Path(row['path']).name)}:{row['line_no']}"


def gpus(parts: Parts, width: int) -> Iterator[str]:
    """Each GPU while the request was there."""
    if not parts.gpus:
        yield "GPU      " + (
            "no GPU sample while it was there" if parts.gpu_source_count else "no GPU log in this case"
        )
        return
    heads = [
        Column("GPU", fixed=True),
        Column("samples", right=True),
        Column("sm mean", right=True),
        Column("sm max", right=True),
        Column("dram mean", right=True),
        Column("dram max", right=True),
        Column("power mean", right=True),
        Column("power max", right=True),
        Column("limit", right=True),
        Column("memory used", right=True),
        Column("name"),
    ]
    yield from grid(heads, [_gpu(row) for row in parts.gpus], width)


def _gpu(row: Row) -> list[str]:
    name = f"{clean(row['host'])}/{row['gpu_index']}" if row["host"] else number(row["gpu_index"])
    return [
        name,
        count(row["sample_count"]),
        percent(row["sm_mean_ratio"]),
        percent(row["sm_max_ratio"]),
        percent(row["dram_active_mean_ratio"]),
        percent(row["dram_active_max_ratio"]),
        _watts(row["power_mean_w"]),
        _watts(row["power_max_w"]),
        _watts(row["power_limit_w"]),
        units.size(row["memory_used_max_bytes"]),
        clean(row["gpu_name"] or UNKNOWN),
    ]


def _watts(watts: float | None) -> str:
    return UNKNOWN if watts is None else f"{watts:.0f} W"


def company(parts: Parts, width: int) -> Iterator[str]:
    """Who else was there."""
    counts = parts.company
    if counts.get("overlapping_count") is None:
        yield "company  not known: its own beginning or end is not known"
        return
    yield from hanging("company", "; ".join(_company(counts)), width)
    if parts.neighbours:
        heads = [
            Column("  longest together", middle=True),
            Column("shared", right=True),
            Column("when it arrived", fixed=True),
            Column("TTFT", right=True),
            Column("queue", right=True),
            Column("tokens in", right=True),
            Column("out", right=True),
            Column("status", fixed=True),
        ]
        yield from grid(heads, [_neighbour(row) for row in parts.neighbours], width)


def _company(counts: Row) -> Iterator[str]:
    yield f"{plural(counts['overlapping_count'], 'other request')} at the same time ({counts['clock']}'s clock)"
    doing = [
        f"{count(counts[key])} {words}"
        for key, words in _DOING.items()
        if counts[key] is not None and (counts[key] or key != "unknown_state_count")
    ]
    yield f"when it arrived {', '.join(doing)}"
    if counts["served_meanwhile_count"] is not None:
        yield f"{count(counts['served_meanwhile_count'])} got their first token while it waited for its own"
    if counts["unplaced_count"]:
        yield f"{plural(counts['unplaced_count'], 'request')} of the run cannot be placed: no beginning or no end is known"


def _neighbour(row: Row) -> list[str]:
    return [
        f"  {clean(row['request_id'])}",
        duration(row["shared_s"]),
        row["was_doing"],
        duration(row["ttft_s"]),
        duration(row["queue_s"]),
        count(row["input_tokens"]),
        count(row["output_tokens"]),
        row["status"],
    ]


def gaps(parts: Parts, width: int) -> Iterator[str]:
    """The longest silence within the stream."""
    if not parts.gaps:
        yield "stream   no arrival times of chunks in this case"
        return
    longest = parts.gaps[0]
    text = (
        f"longest gap between content chunks {duration(longest['gap_s'])}, before chunk {longest['chunk_number']}, "
        f"{duration(longest['after_sent_s'])} after it was sent ({instant(longest['from_ts'])[11:23]}); "
        f"median of {plural(longest['gap_count'], 'gap')} {duration(longest['median_gap_s'])}"
    )
    yield from hanging("stream", text + ("  ← a stall" if longest["gap_s"] >= _STALL_S else ""), width)


def apart(parts: Parts, width: int) -> Iterator[str]:
    """What sets it apart from the others of its run, by each measure that is known of it."""
    sentences = list(dict.fromkeys(row["sentence"] for row in parts.apart))
    if not sentences:
        yield "apart    neither a first token nor an end is known of it"
    for place, sentence in enumerate(sentences):
        yield from hanging("" if place else "apart", clean(sentence), width)


def evidence(rows: Sequence[Row], width: int) -> Iterator[str]:
    """The lines of the sources that all this was taken from."""
    heads = [
        Column("line", middle=True),
        Column("UTC", fixed=True),
        Column("± error", right=True),
        Column("what", fixed=True),
        Column("says", wraps=True),
    ]
    yield from grid(heads, [_line(row) for row in rows], width)


def _line(row: Row) -> list[str]:
    stamp = instant(row["line_ts"])[5:23].replace("T", " ") if row["line_ts"] else UNKNOWN
    error = f"+ {duration(row['error_s'])}" if row["error_s"] else ""
    return [_place(row), stamp, error, clean(row["what"]), shorten(clean(row["says"] or ""), _LONGEST_SAYING)]
