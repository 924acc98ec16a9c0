"""What top, pidstat, mpstat and sar say of a host and its processes; values read off the samples by eye."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tracelens import formats
from tracelens.formats.base import Chunk, Clock, Head, Parsed
from tracelens.formats.gpu.process_names import process_name
from tracelens.ingestion import ingest
from tracelens.ingestion.chunks import lines_frame
from tracelens.store import Store

if TYPE_CHECKING:
    from tracelens.formats.base import Claim

SAMPLES = Path(__file__).parents[2] / "sample_logs"


def claim(name: str, text: str) -> Claim | None:
    return formats.named(name).sniff(Head(tuple(text.split("\n")), complete=True))


def parsed(name: str, text: str) -> Parsed:
    own = claim(name, text)
    assert own is not None
    return formats.named(name).parse(
        Chunk(lines_frame(text.encode(), 1), own, is_open=not text.endswith("\n"))
    )


def sample(name: str, file: str) -> str:
    return (SAMPLES / name / file).read_text()


def rows(found: Parsed, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return found.tables[table].select(columns).rows()


def at(second: int) -> dt.datetime:
    return dt.datetime(2000, 1, 1, 7, 18, second)


def test_top_gives_a_sample_of_the_host_per_tick_and_one_of_each_process() -> None:
    found = parsed("top_batch", sample("top_batch", "top_vllm.txt"))
    assert found.issues["line_no"].to_list() == []
    # The CPU line of the first tick is the mean since boot.  24105.6 MiB in all, 1991.8 used, 22113.7 available.
    mib = 1048576
    assert rows(
        found, "host_sample", "line_no", "sample_ts", "cpu_ratio", "load_1m", "memory_used_bytes", "memory_available_bytes", "memory_total_bytes"
    ) == [
        (1, at(35), None, 7.57, round(1991.8 * mib), round(22113.7 * mib), round(24105.6 * mib)),
        (18, at(36), 1.0, 7.57, round(1991.8 * mib), round(22113.7 * mib), round(24105.6 * mib)),
        (35, at(37), 1.0, 7.84, round(2444.1 * mib), round(21661.5 * mib), round(24105.6 * mib)),
    ]  # fmt: skip
    engine = found.tables["host_process_sample"].filter(pl.col("process") == "VLLM::EngineCor")
    assert engine.select("line_no", "pid", "cpu_s", "cpu_cores", "memory_used_bytes").rows()[:2] == [
        (9, 12243, 5.4, 0.684, 996264 * 1024),
        (26, 12243, 5.81, 0.41, round(1.1 * 1024**3)),
    ]


def test_a_tick_of_top_is_never_cut_in_its_head() -> None:
    form, text = formats.named("top_batch"), sample("top_batch", "top_vllm.txt")
    own = claim("top_batch", text)
    assert own is not None
    lines = text.split("\n")
    allowed = [
        number for number in range(1, 9) if form.may_cut("\n".join([*lines[:number], ""]).encode(), own)
    ]
    assert allowed == [6, 7, 8]


def test_an_old_top_counts_memory_in_k() -> None:
    text = """top - 23:59:59 up 3 days,  1:02,  2 users,  load average: 0.10, 0.05, 0.01
Tasks: 100 total
Cpu(s):  1.0%us,  0.5%sy,  0.0%ni, 98.0%id,  0.5%wa,  0.0%hi,  0.0%si,  0.0%st
Mem:  16265324k total, 10000000k used,  6265324k free,   100000k buffers
Swap:        0k total,        0k used,        0k free,  5000000k cached

  PID USER      PR  NI  VIRT  RES  SHR S %CPU %MEM    TIME+  COMMAND
 4242 me        20   0 35.1g 4.1g 1.2g R 99.7 17.2  12:34.56 python3 -m vllm.entrypoints.openai.api_server --api-key sk-secret
"""
    found = parsed("top_batch", text)
    assert rows(found, "host_sample", "memory_total_bytes", "memory_used_bytes") == [
        (16265324 * 1024, 10000000 * 1024)
    ]
    assert rows(found, "host_process_sample", "process", "cpu_s", "cpu_cores") == [
        ("vllm.entrypoints.openai.api_server", 12 * 60 + 34.56, 0.997)
    ]
    # Ticks after the first say what the CPUs did: 98.0 idle and 0.5 waiting leave 1.5.
    assert rows(parsed("top_batch", text * 2), "host_sample", "cpu_ratio") == [(None,), (0.015,)]


def test_a_row_of_top_that_is_cut_or_foreign_is_an_issue() -> None:
    text = sample("top_batch", "top_vllm.txt").rstrip("\n")
    assert parsed("top_batch", text[:-4]).issues["reason"].to_list() == ["row cut in its last cell"]
    assert parsed("top_batch", text + "\nhello\n").issues["reason"].to_list() == ["not a line of top"]


def test_pidstat_counts_cores_of_each_process() -> None:
    found = parsed("sysstat", sample("sysstat", "pidstat_vllm.txt"))
    assert not found.issues.height
    assert len(found.tables["host_process_sample"]) == 14  # eight and six rows; averages are none
    engine = found.tables["host_process_sample"].filter(pl.col("process") == "vllm")
    assert engine.select("line_no", "sample_ts", "pid", "cpu_cores", "host").rows() == [
        (10, at(40), 11896, 0.9519, "gpu-node-1"),
        (18, at(41), 11896, 0.9901, "gpu-node-1"),
    ]
    commented = parsed("sysstat", sample("sysstat", "pidstat_h.txt"))
    assert len(commented.tables["host_process_sample"]) == 13
    assert not commented.issues.height


def test_tables_of_sysstat_that_nobody_asks_are_issues() -> None:
    found = parsed("sysstat", sample("sysstat", "pidstat_urd.txt"))
    assert set(found.issues["line_no"]) == {22, 23, 24}
    used = found.tables["host_process_sample"].filter(pl.col("memory_used_bytes").is_not_null())
    assert used.height == 6


def test_mpstat_and_sar_give_the_share_of_all_cpus_and_the_load() -> None:
    found = parsed("sysstat", sample("sysstat", "mpstat_all.txt"))
    assert rows(found, "host_sample", "line_no", "sample_ts", "cpu_ratio") == [
        (4, at(42), 1.0),
        (9, at(43), 1.0),
    ]
    assert not found.issues.height
    quarter = sample("sysstat", "sar_u.txt").replace("0.00      0.00\n07:18:45", "5.00     70.00\n07:18:45")
    assert rows(parsed("sysstat", quarter), "host_sample", "cpu_ratio") == [(0.3,), (1.0,)]
    load = parsed("sysstat", sample("sysstat", "sar_q.txt"))
    assert rows(load, "host_sample", "line_no", "load_1m") == [(4, 7.87), (5, 7.87)]


def test_one_full_core_of_many_is_kept_beside_the_mean_of_all() -> None:
    text = sample("sysstat", "mpstat_all.txt")
    # In the first tick CPU 0 is idle half of the time: 50.00 for the 0.00 at the end of its row.
    lines = text.split("\n")
    lines[4] = lines[4][: -len("0.00")] + "50.00"
    found = parsed("sysstat", "\n".join(lines))
    told = [json.loads(other) for (other,) in rows(found, "host_sample", "other")]
    assert told == [
        {"cpu_count": 2, "full_cpu_count": 1, "busiest_cpu_ratio": 1.0},
        {"cpu_count": 2, "full_cpu_count": 2, "busiest_cpu_ratio": 1.0},
    ]
    alone = "\n".join(line for line in lines if " all " not in line)
    assert parsed("sysstat", alone).tables["host_sample"].height == 0


def test_rows_of_single_cpus_stay_with_those_of_all() -> None:
    form, text = formats.named("sysstat"), sample("sysstat", "mpstat_all.txt")
    own = claim("sysstat", text)
    assert own is not None
    lines = text.split("\n")
    allowed = [at for at in range(1, 12) if form.may_cut("\n".join([*lines[:at], ""]).encode(), own)]
    assert allowed == [1, 2, 3, 7, 8]
    all_only = claim("sysstat", sample("sysstat", "sar_u.txt"))
    assert all_only is not None
    assert form.may_cut(b"07:18:44     all     0.00\n", all_only)


@pytest.mark.parametrize(
    ("told", "day"),
    [
        ("11/30/26", dt.date(2026, 11, 30)),
        ("30/11/26", dt.date(2026, 11, 30)),
        ("2026-11-09", dt.date(2026, 11, 9)),
        ("11/11/2026", dt.date(2026, 11, 11)),
        ("11/09/2026", None),
        ("00/00/2026", None),
    ],
)
def test_the_day_of_a_banner_is_used_where_there_is_no_doubt(told: str, day: dt.date | None) -> None:
    own = claim("sysstat", sample("sysstat", "sar_u.txt").replace("11/30/26", told))
    assert own is not None
    assert (own.day, own.clock) == (day, Clock.DAYLESS)


def test_a_clock_of_twelve_hours_is_read_and_the_banner_says_the_day(tmp_path: Path) -> None:
    noon = (
        sample("sysstat", "sar_12h.txt")
        .replace("11/09/2026", "11/30/2026")
        .replace("07:18:44 PM", "12:00:01 AM")
    )
    found = parsed("sysstat", noon)
    assert rows(found, "host_sample", "sample_ts") == [
        (dt.datetime(2000, 1, 1, 0, 0, 1),), (dt.datetime(2000, 1, 1, 19, 18, 45),)
    ]  # fmt: skip
    (tmp_path / "sar.txt").write_text(noon)
    (report,) = ingest([str(tmp_path / "sar.txt")], tmp_path / "case.duckdb").files
    assert report.time_basis.startswith("date 2026-11-30 from its heading")
    with Store(tmp_path / "case.duckdb") as store:
        (first, _) = store.run("SELECT sample_ts FROM host_sample ORDER BY line_no").rows
    assert first == (dt.datetime(2026, 11, 30, 0, 0, 1),)


NOON = dt.datetime(2025, 11, 25, 3, 12, 40)
GIB = 1024**3


@pytest.mark.parametrize("file", ["loop_with_date.txt", "json_stamped.jsonl"])
def test_docker_counts_cores_and_memory_of_each_container(file: str) -> None:
    found = parsed("docker_stats", sample("docker_stats", file))
    assert found.issues.height == 0
    assert rows(found, "host_process_sample", "sample_ts", "process", "cpu_cores", "memory_used_bytes") == [
        (NOON, "container vllm-0", 4.1228, round(24.31 * GIB)),
        (NOON, "container grafana", 0.0031, round(171.2 * 1024**2)),
        (NOON + dt.timedelta(seconds=3), "container vllm-0", 3.9802, round(24.33 * GIB)),
    ]


def test_a_docker_of_2016_names_containers_by_their_id_and_counts_in_thousands() -> None:
    found = parsed("docker_stats", sample("docker_stats", "one_shot_2016.txt"))
    assert rows(found, "host_process_sample", "process", "cpu_cores", "memory_used_bytes", "sample_ts")[0] == (
        "container c15aa41ef22d", 0.0002, 16_380_000, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("written", "clock"),
    [
        ("Tue Nov 25 03:12:40 UTC 2025", Clock.UTC), ("Tue Nov 25 03:12:40 CET 2025", Clock.LOCAL),
        ("Tue 25 Nov 2025 03:12:40 AM GMT", Clock.UTC), ("2025-11-25T03:12:40Z", Clock.UTC),
        ("2025-11-25 03:12:40", Clock.LOCAL), ("1764040360", Clock.UTC),
    ],
)  # fmt: skip
def test_a_line_with_a_time_above_a_table_is_its_time(written: str, clock: Clock) -> None:
    text = sample("docker_stats", "loop_with_date.txt").split("\n", 5)
    found = parsed("docker_stats", "\n".join([written, *text[1:4]]) + "\n")
    own = claim("docker_stats", "\n".join([written, *text[1:4]]) + "\n")
    assert own is not None
    assert own.clock is clock
    assert {row[0] for row in rows(found, "host_process_sample", "sample_ts")} == {NOON}


def test_a_streaming_docker_draws_over_its_table() -> None:
    lines = sample("docker_stats", "one_shot_2016.txt").split("\n")
    drawn = "\x1b[2J\x1b[H" + "\x1b[K\n".join(lines)
    assert parsed("docker_stats", drawn).tables["host_process_sample"].height == 3


def test_a_row_of_docker_that_is_cut_or_foreign_is_an_issue() -> None:
    text = sample("docker_stats", "one_shot_2016.txt")
    assert parsed("docker_stats", text[:-2]).issues["reason"].to_list() == ["row cut in its last cell"]
    assert parsed("docker_stats", text + "hello\n").issues["reason"].to_list() == [
        "cells differ from heading"
    ]
    stamped = sample("docker_stats", "json_stamped.jsonl")
    assert parsed("docker_stats", stamped + "hello\n").issues["line_no"].to_list() == [4]


def test_a_container_is_never_taken_for_the_process_that_serves_http(tmp_path: Path) -> None:
    """A container called vllm holds the engine and its workers too: four cores in it are no full front end."""
    (tmp_path / "stats.txt").write_text(
        sample("docker_stats", "loop_with_date.txt").replace("vllm-0", "vllm  ")
    )
    ingest([str(tmp_path / "stats.txt")], tmp_path / "case.duckdb")
    with Store(tmp_path / "case.duckdb") as store:
        assert store.run("SELECT process FROM host_process_sample WHERE cpu_cores > 4").rows == [
            ("container vllm",)
        ]
        assert store.run("SELECT * FROM _front_end_cpu").rows == []


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("VLLM::EngineCore_0", "VLLM::EngineCore_0"),
        ("/usr/bin/python3 /opt/venv/bin/vllm serve model --api-key sk-secret", "vllm"),
        (
            "python3.11 -u -m vllm.entrypoints.openai.api_server --port 8000",
            "vllm.entrypoints.openai.api_server",
        ),
        ("python", "python"),
        ("kworker/1:1H-kblockd", "kworker/1:1H-kblockd"),
        ("/usr/sbin/sshd -D", "sshd"),
    ],
)
def test_a_process_is_called_by_its_program_and_nothing_behind_it(command: str, name: str) -> None:
    frame = pl.DataFrame({"command": [command]})
    assert frame.select(process_name(pl.col("command"))).item() == name
