"""A file cut at any byte, as a kill leaves it: what is left of the last row is no number, or the number that stood there."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from tracelens.formats.base import Chunk, Format, Head, Parsed
from tracelens.formats.gpu import dcgmi_dmon, nvidia_dmon, nvidia_query, nvidia_smi_table
from tracelens.ingestion.chunks import lines_frame

SAMPLES = Path(__file__).parents[2] / "sample_logs"
FORMATS = {
    each.name: each for each in (m.FORMAT for m in (nvidia_dmon, nvidia_query, dcgmi_dmon, nvidia_smi_table))
}
FILES = [path for name in FORMATS for path in sorted((SAMPLES / name).iterdir()) if path.name != "README.md"]


def read(form: Format, data: bytes) -> Parsed | None:
    """Sniff and parse a whole file, as ingest does."""
    lines = lines_frame(data, 1)
    claim = form.sniff(Head(tuple(data.decode("utf-8", "replace").split("\n")), complete=True))
    is_open = not data.endswith((b"\n", b"\r"))
    return form.parse(Chunk(lines, claim, is_open=is_open)) if claim else None


def numbers(result: Parsed | None) -> dict[int, dict[str, object]]:
    """What each row says, by line."""
    rows = result.tables["gpu_sample"].to_dicts() if result else []
    return {
        row["line_no"]: {name: cell for name, cell in row.items() if cell is not None and name != "segment"}
        for row in rows
    }


def cuts(data: bytes, last_line: int, *, every: bool = False) -> list[bytes]:
    """The file up to places of a line: every one, or the last few and some before that change from file to file."""
    lines = data.split(b"\n")
    before = sum(len(line) + 1 for line in lines[: last_line - 1])
    length = len(lines[last_line - 1])
    some = {
        *range(max(0, length - 6), length + 1),
        *random.Random(length).sample(range(length + 1), min(length, 8)),
    }
    return [data[: before + at] for at in (range(length + 1) if every else sorted(some))]


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_row_cut_at_any_byte_never_gives_another_number(path: Path) -> None:
    form, data = FORMATS[path.parent.name], path.read_bytes()
    whole = read(form, data)
    known = numbers(whole)
    rows = [*known, *(whole.issues["line_no"].to_list() if whole else [])]
    for line in {max(known, default=0), max(rows, default=0)} - {0}:
        for cut in cuts(data, line + (path.parent.name == "nvidia_smi_table"), every=True):
            for line_no, row in numbers(read(form, cut)).items():
                changed = {
                    name: cell for name, cell in row.items() if known.get(line_no, {}).get(name) != cell
                }
                assert changed in ({}, _unnamed(changed)), (cut[-60:], line_no)


def _unnamed(changed: dict[str, object]) -> dict[str, object]:
    """A shorter file may leave columns without a heading unnamed: their cells stay as they are, under their places."""
    return {name: cell for name, cell in changed.items() if name == "other" and "column_" in str(cell)}


TOLD_BY_TWO_ROWS = ("dmon_csv_noheader.csv", "dmon_epoch_wrong_header.csv")
"""Samples of two rows that have no heading of their own: the second is the one that tells."""


@pytest.mark.parametrize(
    "path", [each for each in FILES if each.name not in TOLD_BY_TWO_ROWS], ids=lambda path: path.name
)
def test_a_whole_last_row_without_line_end_is_kept_or_said(path: Path) -> None:
    form, data = FORMATS[path.parent.name], path.read_bytes()
    whole, bare = read(form, data), read(form, data.rstrip(b"\r\n"))
    assert whole is not None
    assert bare is not None
    lost = set(numbers(whole)) - set(numbers(bare))
    assert lost <= set(bare.issues["line_no"])
    assert len(lost) <= 1


def test_a_layout_is_guessed_from_whole_rows_alone() -> None:
    for name in TOLD_BY_TWO_ROWS:
        data = (SAMPLES / "nvidia_dmon" / name).read_bytes()
        assert len(numbers(read(nvidia_dmon.FORMAT, data))) == 2
        assert numbers(read(nvidia_dmon.FORMAT, data.rstrip(b"\n"))) == {}


PADDED = "# gpu     sm    mem \n# Idx      %      % \n    0     97     12 \n    1    100      3"
UNPADDED = "# gpu    sm   mem\n# Idx     %     %\n    0    97    12\n    1   100     3"
LEFT = "# gpu sm mem\n0 97 12\n1 100 3"
UNITS = "index, power.draw [W], utilization.gpu [%]\n0, 97.10 W, 12 %\n1, 99.00 W, 3 %"
NO_UNITS = "index, power.draw, utilization.gpu\n0, 97.10, 12\n1, 99.00, 3"
CLOSED = "index, utilization.gpu, power.draw\n0, 12, 97.10\n1, 3, [N/A]"
DCGM = "#Entity    SMACT    DRAMA\nID\nGPU 0      0.544    0.701\nGPU 1      0.544    0.70"


@pytest.mark.parametrize(
    ("form", "text", "kept"),
    [
        (nvidia_dmon.FORMAT, PADDED, [0]),
        (nvidia_dmon.FORMAT, PADDED + " ", [0, 1]),
        (nvidia_dmon.FORMAT, UNPADDED, [0, 1]),
        (nvidia_dmon.FORMAT, LEFT, [0]),
        (nvidia_dmon.FORMAT, LEFT + "\r", [0, 1]),
        (nvidia_query.FORMAT, UNITS, [0, 1]),
        (nvidia_query.FORMAT, NO_UNITS, [0]),
        (nvidia_query.FORMAT, NO_UNITS + "\n", [0, 1]),
        (nvidia_query.FORMAT, CLOSED, [0, 1]),
        (dcgmi_dmon.FORMAT, DCGM, [0]),
        (dcgmi_dmon.FORMAT, DCGM + "1 ", [0, 1]),
    ],
)
def test_the_last_cell_counts_where_it_is_proven_whole(form: Format, text: str, kept: list[int]) -> None:
    result = read(form, text.encode())
    assert result is not None
    assert result.tables["gpu_sample"]["gpu_index"].to_list() == kept
    assert set(result.issues["reason"]) <= {"row cut in its last cell"}


def test_only_the_last_line_of_the_last_chunk_can_be_open() -> None:
    lines = lines_frame(NO_UNITS.encode(), 1)
    claim = nvidia_query.FORMAT.sniff(Head(tuple(lines["text"]), complete=True))
    assert claim is not None
    first = nvidia_query.FORMAT.parse(Chunk(lines.head(2), claim))
    last = nvidia_query.FORMAT.parse(
        Chunk(
            lines.slice(2),
            claim,
            nvidia_query.FORMAT.context("\n".join(lines["text"][:2]), None),
            is_open=True,
        )
    )
    assert pl.concat([first.issues, last.issues])["line_no"].to_list() == [3]


PAIRS = [
    ("nvidia_dmon", "dmon_DT_pucvmet_2gpu.log", "dmon_DT_mutc_order.log"),
    ("nvidia_dmon", "dmon_default_r590.log", "dmon_gpm.log"),
    ("nvidia_dmon", "dmon_csv.csv", "dmon_csv_nounit_DT.csv"),
    ("nvidia_query", "query_units.csv", "query_mixed_na.csv"),
    ("nvidia_query", "query_nounits_own_header.csv", "query_units.csv"),
    ("dcgmi_dmon", "dcgmi_dmon_v4.log", "dcgmi_dmon_mig.log"),
]


@pytest.mark.parametrize(("name", "first", "second"), PAIRS)
def test_a_run_appended_behind_a_cut_row_is_read_as_its_own(name: str, first: str, second: str) -> None:
    form, folder = FORMATS[name], SAMPLES / name
    data, more = (folder / first).read_bytes(), (folder / second).read_bytes()
    before, alone = numbers(read(form, data)), numbers(read(form, more))
    last = max(before)
    for cut in cuts(data, last):
        found = numbers(read(form, cut + more))
        start = cut.count(b"\n")
        for line, row in found.items():
            known = before[line] if line <= start else alone[line - start]
            measures = row.keys() - {"line_no", "sample_ts", "error_s", "other"}
            assert {key: row[key] for key in measures} == {key: known[key] for key in measures}, (
                cut[-50:],
                line,
            )
        # The cut row is lost, and with it at most the first line of the next run, which stands behind it.
        assert len(found) >= len(alone) + len(before) - 2, cut[-50:]
