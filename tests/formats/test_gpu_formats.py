"""What holds for every GPU format: expected values, who claims what, any cut, any text.

The values in gpu_expected.json were written by hand for the samples.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.base import Chunk, Claim, Format, Head, Parsed
from tracelens.formats.gpu import dcgmi_dmon, nvidia_dmon, nvidia_query, nvidia_smi_table

SAMPLES = Path(__file__).parents[2] / "sample_logs"
FORMATS = {
    each.name: each for each in (m.FORMAT for m in (nvidia_dmon, nvidia_query, dcgmi_dmon, nvidia_smi_table))
}
EXPECTED = json.loads((Path(__file__).parent / "gpu_expected.json").read_text())
ALL_SAMPLES = [
    path for name in FORMATS for path in sorted((SAMPLES / name).iterdir()) if path.name != "README.md"
]
CUTTABLE = [path for path in ALL_SAMPLES if not FORMATS[path.parent.name].whole]

FACTORS = {
    "sm_pct": ("sm_ratio", 100), "mem_pct": ("mem_ratio", 100), "enc_pct": ("enc_ratio", 100), "dec_pct": ("dec_ratio", 100),
    "fb_mb": ("memory_used_bytes", 1 / 1048576), "fb_total_mb": ("memory_total_bytes", 1 / 1048576),
    "pcie_rx_mbs": ("pcie_rx_bps", 1e-6), "pcie_tx_mbs": ("pcie_tx_bps", 1e-6),
    "power_violation_pct": ("power_violation_ratio", 100), "gpu": ("gpu_index", 1),
    "ecc_sbe": ("ecc_single_bit_count", 1), "ecc_dbe": ("ecc_double_bit_count", 1),
    **{f"{name}_active": (f"{name}_active_ratio", 1) for name in ("gr", "sm", "tensor", "dram")},
    "sm_occupancy": ("sm_occupancy_ratio", 1),
}  # fmt: skip
OTHERS = {
    "jpg_pct": "jpg", "ofa_pct": "ofa", "bar1_mb": "bar1", "ccpm_mb": "ccpm", "pcie_replay": "pci", "pstate": "pstate",
    "power_instant_w": "power.draw.instant", "fan_pct": "fan.speed",
    "sw_power_cap_us": "clocks_event_reasons_counters.sw_power_cap",
}  # fmt: skip


def frame(text: str, first: int = 1) -> pl.DataFrame:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    numbers = range(first, first + len(lines))
    return pl.DataFrame({"line_no": numbers, "text": lines}, schema={"line_no": pl.Int64, "text": pl.String})


def claim(form: Format, text: str) -> Claim | None:
    return form.sniff(Head(tuple(text.split("\n")), complete=True))


def parsed(form: Format, text: str) -> Parsed:
    own = claim(form, text)
    assert own is not None
    return form.parse(Chunk(frame(text), own))


def rows(result: Parsed) -> list[dict[str, object]]:
    return result.tables["gpu_sample"].to_dicts()


def value(row: dict[str, object], key: str) -> object:
    """A value of expected.json out of a row, in the file's unit."""
    other = json.loads(row.get("other") or "{}")
    if key in OTHERS:
        return other.get(OTHERS[key])
    if key in ("fp32_active", "fp16_active"):
        return other[key.removesuffix("_active")] / 100 if other else None
    if key == "entity":
        return other.get("entity", f"GPU {row['gpu_index']}")
    if key == "sw_power_cap":
        return other["clocks_event_reasons.sw_power_cap"] == "Active"
    if key == "clock_reasons":
        return int(str(row[key]), 16)
    column, factor = FACTORS.get(key, (key, 1))
    found = row.get(column)
    return found if found is None or isinstance(found, str | bool) else found * factor


def stamp(row: dict[str, object], key: str) -> object:
    """The stamp as gpu_expected.json writes it: epoch, full, without a year (--) or without a day (T)."""
    found = row["sample_ts"]
    if found is None:
        return None
    assert isinstance(found, dt.datetime)
    if key == "ts":
        return found.replace(tzinfo=dt.UTC).timestamp()
    text = found.isoformat(timespec="milliseconds" if found.microsecond else "seconds")
    if found.year == 2000:
        return text[10:] if found.month == 1 else "-" + text[4:]
    return text


def checked_keys(name: str, first: dict[str, object]) -> dict[str, object]:
    # A date alone is no stamp; ticks are counted when a case is loaded.
    return {
        key: wanted
        for key, wanted in first.items()
        if key != "tick" and not (name == "dmon_D_only.log" and key == "ts_local")
    }


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda each: each["file"])
def test_samples_have_the_expected_rows(expected: dict) -> None:
    form = FORMATS[expected["format"]]
    result = parsed(form, (SAMPLES / form.name / expected["file"]).read_bytes().decode())
    found = rows(result)
    assert len(found) == expected["rows"]
    assert sorted({row["gpu_index"] for row in found} - {None}) == expected["gpus"]
    for at, wanted in (
        (0, expected["first"] or {}),
        (expected.get("then", {}).get("row", 0), expected.get("then", {}).get("row_values", {})),
    ):
        for key, right in checked_keys(expected["file"], wanted).items():
            if key in ("ts", "ts_local"):
                assert stamp(found[at], key) == (pytest.approx(right, abs=1e-6) if key == "ts" else right)
            else:
                assert value(found[at], key) == (
                    right if right is None or isinstance(right, str) else pytest.approx(right)
                ), key
    assert result.issues.height == expected.get("then", {}).get("truncated", 0)
    assert result.tables["log_event"].height == expected.get("then", {}).get(
        "events", result.tables["log_event"].height
    )


@pytest.mark.parametrize("path", ALL_SAMPLES, ids=lambda path: path.name)
def test_each_sample_is_claimed_by_its_own_format_only(path: Path) -> None:
    text = path.read_bytes().decode()
    assert [name for name, form in FORMATS.items() if claim(form, text)] == [path.parent.name]


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize(
    "text",
    [
        "INFO 05-01 10:00:00 [loggers.py:116] Engine 000: Avg prompt throughput: 1.0 tokens/s, GPU KV cache usage: 3.0%\n",
        '{"index": 0, "power_draw_w": 24.31, "utc": "2026-08-16T06:02:10Z"}\n',
        "ts,phase,index,temp_c,power_w,util_pct\n1767225600123,warmup,0,41,112.4,14\n",
        "timestamp,gpu,gfx_activity,umc_activity\n1767225600,0,97,34\n",
        "# gpu         pid   type     sm    mem    enc    dec    command \n# Idx           #    C/G      %      %      %      %    name \n    0      48211     C     97     61      -      -    python \n",
        "0, 36, 41, -, 0, 3, 0, 0, 0, 0, 810, 210\n",
        'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 98\n',
        f"0, {'9' * 5000}, 41, -, 0, 3, 0, 0, 0, 0, 810, 210\n" * 3,
        "# gpu memory\n\nThe gpu has memory, and the notes below are long.\nMore notes.\n",
        "",
    ],
)  # fmt: skip
def test_other_kinds_of_files_are_not_claimed(name: str, text: str) -> None:
    assert claim(FORMATS[name], text) is None


def joined(parts: list[Parsed]) -> dict[str, object]:
    """The sum of several chunks' results, in a form that can be compared; columns without a value left out."""

    def plain(frames: list[pl.DataFrame]) -> list[dict[str, object]]:
        found = [row for part in frames for row in part.to_dicts()]
        return [
            {key: each for key, each in row.items() if each is not None and key != "event_ts"}
            for row in found
        ]

    return {
        "understood": sum(part.understood for part in parts),
        "issues": plain([part.issues for part in parts]),
        "stamps": plain([part.stamps for part in parts]),
        **{name: plain([part.tables[name] for part in parts]) for name in ("gpu_sample", "log_event")},
    }  # fmt: skip


@pytest.mark.parametrize("path", CUTTABLE, ids=lambda path: path.name)
def test_any_cut_into_two_chunks_gives_the_same_sum(path: Path) -> None:
    form, text = FORMATS[path.parent.name], path.read_bytes().decode()
    own = claim(form, text)
    assert own is not None
    whole = joined([form.parse(Chunk(frame(text), own))])
    lines = text.split("\n")[: frame(text).height]
    for at in range(1, len(lines)):
        head, tail = "\n".join(lines[:at]) + "\n", "\n".join(lines[at:])
        parts = [
            form.parse(Chunk(frame(head), own)),
            form.parse(Chunk(frame(tail, at + 1), own, form.context(head, None))),
        ]
        assert joined(parts) == whole, at


def corpus() -> st.SearchStrategy[str]:
    known = sorted({line for path in ALL_SAMPLES for line in path.read_bytes().decode().split("\n")})
    bits = st.sampled_from(known).flatmap(lambda line: st.integers(0, len(line)).map(lambda at: line[:at]))
    garbage = st.binary(max_size=40).map(lambda raw: raw.decode("utf-8", "replace").replace("\n", " "))
    lines = st.one_of(
        st.sampled_from(known), bits, st.text(max_size=30).map(lambda text: text.replace("\n", " ")), garbage
    )
    return st.lists(lines, max_size=12).map("\n".join)


CLAIMS = [
    (form, own)
    for path in ALL_SAMPLES
    if (own := claim(form := FORMATS[path.parent.name], path.read_bytes().decode()))
]


@settings(max_examples=30, deadline=None)
@given(text=corpus(), pair=st.sampled_from(CLAIMS), cut=st.integers(0, 12), is_open=st.booleans())
def test_parse_takes_any_lines_and_gives_each_to_one_side(
    text: str, pair: tuple[Format, Claim], cut: int, is_open: bool
) -> None:
    form, own = pair
    lines = frame(text + "\n")
    whole = form.parse(Chunk(lines, own, is_open=is_open))
    assert whole.understood + whole.issues.height == lines.height
    assert whole.issues["line_no"].n_unique() == whole.issues.height
    parts = [lines.head(cut), lines.slice(cut)]
    if form.whole or not all(part.height for part in parts):
        return
    carried = form.context("\n".join(parts[0]["text"]) + "\n", None)
    last = form.parse(Chunk(parts[1], own, carried, is_open=is_open))
    assert joined([form.parse(Chunk(parts[0], own)), last]) == joined([whole])


@settings(max_examples=30, deadline=None)
@given(text=corpus())
def test_sniff_and_context_take_any_text(text: str) -> None:
    for form in FORMATS.values():
        claim(form, text)
        form.context(text, None)
