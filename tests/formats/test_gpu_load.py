"""What only the rows around a row tell: ticks, runs of the tool, midnight and clock changes, in a loaded case.

Ticks, spans and blocks of the samples are those of gpu_expected.json; the rest is counted by hand.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.ingestion import IngestOptions, TimeOptions, ingest
from tracelens.ingestion import parts as ingest_parts
from tracelens.store import CaseWriter, Placement, Store

SAMPLES = Path(__file__).parents[2] / "sample_logs"
EXPECTED = {
    each["file"]: each for each in json.loads((Path(__file__).parent / "gpu_expected.json").read_text())
}
COUNTED = [
    name
    for name, each in EXPECTED.items()
    if {"last_tick", "ticks", "blocks", "span_s"} & set(each.get("then") or {})
]
ALSO = (
    "dmon_T_appended_runs.log", "query_appended_cut.csv", "dmon_T_puct_repeat_header.log", "dcgmi_dmon_v4.log", "dmon_gpm_mig_rows.log",
    "dcgmi_dmon_mig.log", "query_no_index_4gpu.csv", "query_uuid_no_index.csv", "dmon_gpu_lost.log", "table_r550_two_snapshots.txt",
    "dmon_DT_spring.log", "dmon_DT_dst.log",
)  # fmt: skip
DAY = dt.date(2026, 5, 1)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Rows of all samples that the load has something to count in, by file; one case for all, since making one takes long."""
    paths = [SAMPLES / EXPECTED[name]["format"] / name for name in COUNTED]
    paths += [next(SAMPLES.glob(f"*/{name}")) for name in ALSO if name not in COUNTED]
    case = tmp_path_factory.mktemp("gpu") / "case.duckdb"
    ingest(
        [str(path) for path in paths],
        case,
        IngestOptions(time=TimeOptions(date=DAY)),
    )
    with Store(case) as store:
        rows = store.run(
            "SELECT * FROM gpu_sample INNER JOIN source USING (run_id, source_id) ORDER BY path, line_no"
        ).dicts()
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(Path(row["path"]).name, []).append(row)
    return found


@pytest.mark.parametrize("name", COUNTED)
def test_samples_have_the_expected_ticks_runs_and_spans(
    name: str, counted: dict[str, list[dict[str, Any]]]
) -> None:
    rows, then = counted[name], EXPECTED[name]["then"]
    ticks = [row["tick"] for row in rows]
    assert ticks[0] == 0
    if "last_tick" in then:
        assert ticks[-1] == then["last_tick"]
    if "ticks" in then:
        assert len(set(ticks)) == then["ticks"]
    if "blocks" in then:
        assert len({row["segment"] for row in rows}) == then["blocks"]
    if "span_s" in then:
        assert (rows[-1]["sample_ts"] - rows[0]["sample_ts"]).total_seconds() == then["span_s"]


def column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def test_runs_appended_to_a_file_are_told_apart(counted: dict[str, list[dict[str, Any]]]) -> None:
    rows = counted["dmon_T_appended_runs.log"]
    assert column(rows, "segment") == [0, 0, 1, 1, 2, 2]
    assert column(rows, "tick") == [0, 1, 2, 3, 4, 5]
    assert [row["sample_ts"].day for row in rows] == [1, 1, 2, 2, 2, 2]
    assert "runs over 1 day end" in rows[0]["time_basis"]
    assert column(counted["query_appended_cut.csv"], "segment") == [0, 1, 1]


def test_a_repeated_heading_begins_no_run(counted: dict[str, list[dict[str, Any]]]) -> None:
    assert column(counted["dmon_T_puct_repeat_header.log"], "segment") == [0, 0, 0, 0]
    assert column(counted["dcgmi_dmon_v4.log"], "segment") == [0] * 6


def test_mig_instances_belong_to_the_tick_of_their_device(counted: dict[str, list[dict[str, Any]]]) -> None:
    assert column(counted["dmon_gpm_mig_rows.log"], "tick") == [0, 0, 0, 1, 1, 1]
    assert column(counted["dcgmi_dmon_mig.log"], "tick") == [0, 0, 0, 0]
    assert column(counted["dcgmi_dmon_mig.log"], "gpu_index") == [0, None, None, None]


def test_gpus_without_an_index_are_numbered_as_they_come(counted: dict[str, list[dict[str, Any]]]) -> None:
    rows = counted["query_no_index_4gpu.csv"]
    assert column(rows, "gpu_index") == [0, 1, 2, 3] * 3
    assert column(rows, "tick") == [0] * 4 + [1] * 4 + [2] * 4
    assert [round(row["sm_ratio"] * 100) for row in rows] == [90, 91, 92, 93] * 3
    assert column(counted["query_uuid_no_index.csv"], "gpu_index") == [0, 1, 0, 1]
    assert column(counted["query_uuid_no_index.csv"], "tick") == [0, 0, 1, 1]


def test_the_lost_gpu_takes_no_tick_with_it(counted: dict[str, list[dict[str, Any]]]) -> None:
    assert column(counted["dmon_gpu_lost.log"], "tick") == [0, 0, 1, 2]


def test_snapshots_of_the_table_are_ticks(counted: dict[str, list[dict[str, Any]]]) -> None:
    assert column(counted["table_r550_two_snapshots.txt"], "tick") == [0, 0, 1, 1]


def test_the_spring_change_is_said_and_begins_no_run(counted: dict[str, list[dict[str, Any]]]) -> None:
    rows = counted["dmon_DT_spring.log"]
    assert column(rows, "segment") == [0, 0, 0, 0]
    assert "before line 5 an hour is missing, a clock change or a pause" in rows[0]["time_basis"]


def test_the_autumn_change_is_said(counted: dict[str, list[dict[str, Any]]]) -> None:
    rows = counted["dmon_DT_dst.log"]
    assert column(rows, "segment") == [0, 0, 0, 0]
    assert "line 5 goes back an hour as when summer time ends" in rows[0]["time_basis"]


def dmon(*rows: tuple[str, int]) -> str:
    """A log of ``-s u -o DT`` with (``YYYYMMDD HH:MM:SS``, index) for each row."""
    heading = "#Date       Time        gpu     sm    mem \n#YYYYMMDD   HH:MM:SS    Idx      %      % \n"
    return heading + "".join(
        f" {stamp.replace(' ', '   ')} {index:6d}     97     12 \n" for stamp, index in rows
    )


def loaded(
    folder: Path, text: str | bytes, tz: str | None = None, name: str = "gpu.log"
) -> list[dict[str, Any]]:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (1_777_777_777, 1_777_777_777))
    case = folder / "case.duckdb"
    case.unlink(missing_ok=True)
    ingest([str(path)], case, IngestOptions(time=TimeOptions(gpu_tz=tz)))
    with Store(case) as store:
        return store.run("SELECT * FROM gpu_sample ORDER BY line_no").dicts()


def seconds(rows: list[dict[str, Any]]) -> list[float]:
    return [(row["sample_ts"] - rows[0]["sample_ts"]).total_seconds() for row in rows]


def test_an_hour_that_comes_twice_is_in_order_in_its_zone(tmp_path: Path) -> None:
    hours = ["01:59:59", "02:00:00", "02:30:00", "02:59:59", "02:00:00", "02:30:00", "02:59:59", "03:00:00"]
    rows = loaded(tmp_path, dmon(*((f"20261025 {hour}", 0) for hour in hours)), tz="Europe/Berlin")
    assert [row["sample_ts"].isoformat()[11:] for row in rows] == [
        "23:59:59", "00:00:00", "00:30:00", "00:59:59", "01:00:00", "01:30:00", "01:59:59", "02:00:00",
    ]  # fmt: skip


def test_ticks_go_on_where_stamps_go_back(tmp_path: Path) -> None:
    rows = loaded(
        tmp_path,
        dmon(
            ("20260501 10:00:00", 0), ("20260501 10:00:00", 1), ("20260501 10:00:01", 0), ("20260501 10:00:01", 1),
            ("20260501 08:00:07", 0), ("20260501 08:00:07", 1), ("20260501 08:00:08", 0), ("20260501 08:00:08", 1),
        ),
    )  # fmt: skip
    assert column(rows, "tick") == [0, 0, 1, 1, 2, 2, 3, 3]
    assert column(rows, "segment") == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_jump_back_of_no_hour_begins_a_run(tmp_path: Path) -> None:
    rows = loaded(
        tmp_path, dmon(("20260501 10:00:00", 0), ("20260501 10:00:01", 0), ("20260501 09:30:00", 0))
    )
    assert column(rows, "segment") == [0, 0, 1]
    assert seconds(rows) == [0, 1, -1800]


def test_a_gap_between_rows_begins_a_tick_where_the_index_does_not_tell(tmp_path: Path) -> None:
    rows = loaded(
        tmp_path,
        dmon(
            *((f"20260501 10:00:0{at}", 0) for at in range(5)),
            ("20260501 10:00:04", 1),
            ("20260501 10:00:08", 2),
        ),
    )
    assert column(rows, "tick") == [0, 1, 2, 3, 4, 4, 5]


def test_epochs_that_go_back_an_hour_are_no_clock_change(tmp_path: Path) -> None:
    heading = "# gpu     sm    mem \n"
    text = "".join(
        f"{at} {line}"
        for at, line in [
            (1767225600, heading),
            *((1767225600 + s, "    0     97     12 \n") for s in (0, 1, -3598)),
        ]
    )
    assert column(loaded(tmp_path, text), "segment") == [0, 0, 1]


TWICE = ["01:59:58", "01:59:59", "02:00:00", "02:00:01", "02:30:00", "02:59:59", "02:00:00", "02:00:01"]
TEXT = (
    dmon(*((f"20261025 {hour}", gpu) for hour in TWICE for gpu in (0, 1)))
    + "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\n"
    + dmon(("20261025 02:00:02", 0), ("20261026 08:00:00", 0)).replace("mem", "dec")
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    rows = loaded(tmp_path_factory.mktemp("whole"), TEXT)
    assert column(rows, "segment") == [0] * 16 + [1, 2]
    assert column(rows, "tick") == [tick for tick in range(8) for _ in range(2)] + [8, 9]
    assert seconds(rows)[::2] == [0, 1, 2, 3, 1802, 3601, 3602, 3603, 3604]
    return rows


@pytest.mark.parametrize("form", ["crlf", "gzip", "chunks of 1", "chunks of 90", "chunks of 200"])
def test_line_ends_compression_and_chunks_change_nothing(
    form: str, whole: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, name = TEXT.encode(), "gpu.log"
    if form == "crlf":
        data = data.replace(b"\n", b"\r\n")
    elif form == "gzip":
        data, name = gzip.compress(data), "gpu.log.gz"
    else:
        monkeypatch.setattr(ingest_parts, "CHUNK_BYTES", int(form.rsplit(maxsplit=1)[-1]))
    assert loaded(tmp_path, data, name=name) == whole


@pytest.mark.parametrize("size", [1, 40, 90, 1 << 20])
def test_midnight_is_found_wherever_a_log_of_times_of_day_is_cut(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_parts, "CHUNK_BYTES", size)
    data = (SAMPLES / "nvidia_dmon" / "dmon_T_midnight.log").read_bytes()
    assert seconds(loaded(tmp_path, data)) == [0, 1, 2, 3]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 7]), min_size=1, max_size=7, unique=True).map(sorted),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 9),
)
def test_ticks_without_time_are_the_stretches_of_rising_indices(ticks: list[list[int]], size: int) -> None:
    """Ticks are written as their GPUs come; two merge only where nothing tells them apart: no index comes again."""
    indices = [index for tick in ticks for index in tick]
    expected, at = [], -1
    for place, index in enumerate(indices):
        at += place == 0 or index <= indices[place - 1]
        expected.append(at)
    assert _counted(indices, size) == expected


@pytest.fixture(scope="module", autouse=True)
def writer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with CaseWriter(tmp_path_factory.mktemp("writer") / "case.duckdb") as open_writer:
        _WRITER.append(open_writer)
        yield open_writer
        _WRITER.clear()


_WRITER: list[CaseWriter] = []


def _counted(indices: list[int], size: int) -> list[int]:
    """Ticks that the load counts, from parts of `size` rows each."""
    import tempfile

    import polars as pl

    frame = pl.DataFrame(
        {"line_no": range(1, len(indices) + 1), "gpu_index": indices}, schema={"line_no": pl.Int64, "gpu_index": pl.Int32}
    ).with_columns(
        sample_ts=pl.lit(None, pl.Datetime("us")), error_s=pl.lit(None, pl.Float64), gpu_uuid=pl.lit(None, pl.String),
        segment=pl.lit(7, pl.Int32), other=pl.lit(None, pl.String),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for at in range(0, frame.height, size):
            parts.append(Path(folder) / f"{at:06d}.parquet")
            frame.slice(at, size).write_parquet(parts[-1])
        (writer,) = _WRITER
        writer.drop_source(1)
        assert writer.load("gpu_sample", parts, ("default", 1), Placement()) == frame.height
        return [
            tick
            for (tick,) in writer.rows("SELECT tick FROM gpu_sample WHERE source_id = 1 ORDER BY line_no")
        ]
