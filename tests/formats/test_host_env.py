"""`host_env`: what the samples and a few small texts must give, counted by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.gpu.host_env import FORMAT

FOLDER = Path(__file__).parents[2] / "sample_logs" / "host_env"


def frame(text: str) -> pl.DataFrame:
    lines = text.removesuffix("\n").split("\n")
    return pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )


def parsed(text: str) -> Parsed:
    return FORMAT.parse(Chunk(frame(text), Claim("pairs", Clock.NONE)))


def settings(text: str) -> dict[str, str | None]:
    table = parsed(text).tables.get("server_setting")
    return {} if table is None else dict(zip(table["key"], table["value"], strict=True))


def claims(text: str) -> bool:
    return FORMAT.sniff(Head(tuple(frame(text)["text"]), complete=True)) is not None


def test_the_quota_of_a_pod_is_in_cores() -> None:
    text = (FOLDER / "pod_4_of_128.txt").read_text()
    assert settings(text) == {"omp_num_threads": None, "host_cpu_count": "128", "cpu_quota_cores": "4"}
    assert (parsed(text).understood, parsed(text).issues.height) == (5, 0)


def test_no_limit_is_no_quota_and_counters_are_kept() -> None:
    assert settings((FOLDER / "cgroup_stat.txt").read_text()) == {
        "host_cpu_count": "64", "omp_num_threads": "8", "cpu_quota_cores": None,
        "cgroup_period_count": "91200", "cgroup_throttled_count": "60310",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cpu.max=150000 100000", {"cpu_quota_cores": "1.5"}),
        ("/sys/fs/cgroup/cpu.max: 200000 100000", {"cpu_quota_cores": "2"}),
        ("export OMP_NUM_THREADS=4", {"omp_num_threads": "4"}),
        ("CPU(s):                 32", {"host_cpu_count": "32"}),
        ("cpu.cfs_quota_us=-1", {"cpu_cfs_quota_us": None}),
        ("HF_TOKEN=hf_secret", {}),
    ],
)
def test_forms_of_a_line(line: str, found: dict[str, str | None]) -> None:
    assert settings(line) == found


@pytest.mark.parametrize("line", ["cpu.max=400000 0", "nproc=many", "nproc=-4", "cpu.max=4"])
def test_a_value_that_cannot_be_read_is_an_issue(line: str) -> None:
    result = parsed(line)
    assert (settings(line), result.understood, result.issues["reason"].to_list()) == (
        {},
        0,
        ["value not readable"],
    )


def test_a_line_that_is_no_pair_is_an_issue() -> None:
    result = parsed("nproc=4\nsome words here\n\n# note")
    assert (result.understood, result.issues["line_no"].to_list()) == (3, [2])


def test_what_is_claimed() -> None:
    assert claims("nproc=4")
    assert claims("PATH=/bin\nOMP_NUM_THREADS=4")
    assert not claims("PATH=/bin\nHOME=/root")
    assert not claims("#!/bin/sh\nset -e\nexport OMP_NUM_THREADS=4\nvllm serve model\nwait\n")
    assert not claims('{"OMP_NUM_THREADS": 4}')


PRINTED = """$ cat /sys/fs/cgroup/cpu.max
400000 100000
$ cat /sys/fs/cgroup/cpu.stat
usage_usec 1834482211
nr_periods 4567
nr_throttled 3115
throttled_usec 512345678
"""
"""Numbers of ollama/ollama#17916: a container of four cores."""


def test_what_cat_prints_is_read_with_its_commands_or_without() -> None:
    bare = "\n".join(line for line in PRINTED.splitlines() if not line.startswith("$"))
    expected = {
        "cpu_quota_cores": "4", "cgroup_period_count": "4567", "cgroup_throttled_count": "3115",
    }  # fmt: skip
    assert [(claims(text), settings(text)) for text in (PRINTED, bare)] == [(True, expected)] * 2
    assert parsed(PRINTED).issues.height == 0


def test_two_numbers_alone_are_no_quota_that_is_claimed() -> None:
    assert not claims("400000 100000\n200000 100000\n")
