"""The kernel's log, and the last words of a host in a server's log: expected rows are counted by hand in the samples."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tracelens import formats
from tracelens.formats.base import Chunk, Clock, Head, Parsed
from tracelens.ingestion import ingest
from tracelens.ingestion.chunks import lines_frame
from tracelens.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "kernel_log"
FORMAT = formats.named("kernel_log")
STATS = (
    "(APIServer pid=7) INFO 11-25 03:12:10 [loggers.py:116] Engine 000: Avg prompt throughput: 120.0 tokens/s, "
    "Avg generation throughput: 900.1 tokens/s, Running: 12 reqs, Waiting: 0 reqs, GPU KV cache usage: 12.1%, Prefix cache hit rate: 10.0%"
)


def parsed(text: str) -> Parsed:
    claim = FORMAT.sniff(Head(tuple(text.splitlines()), complete=True))
    assert claim is not None
    return FORMAT.parse(Chunk(lines_frame(text.encode(), 1), claim))


def events(text: str) -> list[tuple[int, str, str]]:
    return [
        row[:3] for row in parsed(text).tables["log_event"].select("line_no", "kind", "process").iter_rows()
    ]


def in_case(path: Path, folder: Path) -> list[tuple[Any, ...]]:
    case = folder / "case.duckdb"
    ingest([str(path)], case)
    with Store(case) as store:
        assert store.run("SELECT count(*) FROM ingest_issue").rows == [(0,)]
        return list(store.run("SELECT line_no, kind, process FROM log_event ORDER BY line_no").rows)


@pytest.mark.parametrize(
    ("name", "clock", "found"),
    [
        ("journalctl_k.log", Clock.YEARLESS, [(6, "gpu"), (7, "gpu"), (10, "gpu"), (11, "gpu"), (12, "dead"), (13, "error"), (14, "warning")]),
        ("dmesg.txt", Clock.RELATIVE, [(4, "gpu"), (7, "gpu"), (8, "gpu"), (9, "warning")]),
        ("dmesg_T.txt", Clock.LOCAL, [(1, "error"), (6, "error"), (7, "dead")]),
        ("short_iso.log", Clock.UTC, [(2, "gpu"), (3, "gpu")]),
        ("journal_xid.txt", Clock.YEARLESS, [(6, "gpu"), (7, "gpu"), (10, "error"), (11, "dead")]),
        ("dmesg_ctime.txt", Clock.LOCAL, [(2, "gpu"), (3, "gpu")]),
        ("bare_nvrm.txt", Clock.NONE, [(3, "gpu"), (4, "gpu")]),
    ],
)  # fmt: skip
def test_every_event_of_the_samples_is_found(
    name: str, clock: Clock, found: Sequence[tuple[int, str]]
) -> None:
    text = (SAMPLES / name).read_text()
    claim = FORMAT.sniff(Head(tuple(text.splitlines()), complete=True))
    assert claim is not None
    assert claim.clock is clock
    assert [row[:2] for row in events(text)] == found
    assert parsed(text).issues.height == 0


def test_stamps_with_a_zone_are_instants() -> None:
    rows = parsed((SAMPLES / "short_iso.log").read_text()).tables["log_event"]
    assert rows["event_ts"].to_list()[0] == datetime(2026, 2, 14, 8, 11, 2, 250)
    assert rows["error_s"].to_list()[0] == pytest.approx(1e-6)


def test_a_record_over_several_lines_has_the_stamp_of_its_first() -> None:
    rows = parsed((SAMPLES / "journalctl_k.log").read_text()).tables["log_event"]
    below = rows.filter(rows["line_no"] == 10)
    assert below["event_ts"].to_list() == [datetime(2000, 2, 14, 9, 11, 3)]
    assert below["error_s"].to_list() == [None]


@pytest.mark.parametrize(
    "line",
    [
        "<3>[  843.308145] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "kern  :err   : [Tue Nov 25 03:12:44 2025] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "2025-11-25T03:12:44,123456+00:00 NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "Tue 2025-11-25 03:12:44 UTC gpu-7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "Tue 2025-11-25 03:12:44 CET gpu-7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "Nov 25 03:12:44.123456 gpu-7 kernel: [843.308145] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
    ],
)
def test_each_way_to_print_it_is_read(line: str) -> None:
    rows = parsed(line + "\n").tables["log_event"]
    assert rows["message"].to_list() == ["NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."]
    assert rows["process"].to_list() == ["kernel"]


@pytest.mark.parametrize(
    "lines",
    [
        ("Nov 01 10:02:11 gpu-1 kernel: NVRM: x", "Nov 01 10:02:12 gpu-1 vllm[9]: INFO 11-01 10:02:12 [x.py:1] hello"),
        ("a report that says NVRM: once", "and goes on", "for some lines"),
        (),
    ],
)  # fmt: skip
def test_a_servers_journal_and_prose_are_not_claimed(lines: tuple[str, ...]) -> None:
    assert FORMAT.sniff(Head(lines, complete=True)) is None


@pytest.mark.parametrize(
    "line",
    [
        "[    0.304768] Speculative Return Stack Overflow: WARNING: See https://kernel.org/doc/html/latest/admin-guide/hw-vuln/srso.html",
        "[  843.308145] INFO: task python3:812 blocked for more than 122 seconds.",
    ],
)  # fmt: skip
def test_the_kernels_own_levels_do_not_make_it_a_servers_log(line: str) -> None:
    assert parsed(f"[    0.000000] Linux version 6.18.44\n{line}\n").issues.height == 0


def test_lines_without_the_stamp_of_the_others_are_kept_as_not_understood() -> None:
    text = "[    1.000001] one\n[    2.000001] two\nwhat is this\n\n[    3.000001] three\n"
    assert parsed(text).issues["line_no"].to_list() == [3]


def test_cut_anywhere_it_says_the_same(tmp_path: Path) -> None:
    text = (SAMPLES / "journalctl_k.log").read_text()
    whole = in_case(SAMPLES / "journalctl_k.log", tmp_path)
    lines = text.splitlines(keepends=True)
    claim = FORMAT.sniff(Head(tuple(text.splitlines()), complete=True))
    assert claim is not None
    for at in range(1, len(lines)):
        halves = [
            FORMAT.parse(Chunk(lines_frame("".join(part).encode(), first), claim))
            for part, first in ((lines[:at], 1), (lines[at:], at + 1))
        ]
        assert [n for half in halves for n in half.tables["log_event"]["line_no"]] == [
            row[0] for row in whole
        ]


def test_each_of_two_errors_of_one_second_is_an_event(tmp_path: Path) -> None:
    assert [row[0] for row in in_case(SAMPLES / "short_iso.log", tmp_path)] == [2, 3]


@pytest.mark.parametrize(
    ("line", "kind", "writer"),
    [
        ("Killed", "dead", "shell"),
        ("bash: line 1:  2871 Killed                  vllm serve Qwen/Qwen3-8B", "dead", "shell"),
        ("[1]+  Killed                  nohup vllm serve Qwen/Qwen3-8B > server.log 2>&1", "dead", "shell"),
        ("zsh: segmentation fault (core dumped)  vllm serve Qwen/Qwen3-8B", "dead", "shell"),
        ("Bus error (core dumped)", "dead", "shell"),
        ("Terminated", "stop", "shell"),
        ("!!!!!!! Segfault encountered !!!!!!!", "dead", "shell"),
        ("Fatal Python error: Segmentation fault", "dead", "shell"),
        ("terminate called after throwing an instance of 'c10::Error'", "dead", "shell"),
        ("*** SIGSEGV received at time=1730000000 on cpu 12 ***", "dead", "shell"),
        ("free(): invalid pointer", "dead", "shell"),
        ("command terminated with exit code 137", "dead", "shell"),
        ("srun: error: node1: task 0: Out Of Memory", "dead", "Slurm"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have been OOM Killed.", "dead", "Slurm"),
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "gpu", "kernel"),
        ("vllm.service: Main process exited, code=killed, status=9/KILL", "dead", "systemd"),
        ("vllm.service: Main process exited, code=killed, status=15/TERM", "error", "systemd"),
        ("vllm.service: A process of this unit has been killed by the OOM killer.", "dead", "systemd"),
        ("backup.service: A process of this unit has been killed by the OOM killer.", "error", "systemd"),
        ("vllm.service: Failed with result 'oom-kill'.", "dead", "systemd"),
        ("backup.service: Failed with result 'exit-code'.", "error", "systemd"),
        ("vllm-server-1 exited with code 137", "dead", "shell"),
    ],
)  # fmt: skip
def test_the_last_words_beside_a_server_are_events(tmp_path: Path, line: str, kind: str, writer: str) -> None:
    (tmp_path / "server.log").write_text(f"{STATS}\n{line}\n")
    assert in_case(tmp_path / "server.log", tmp_path) == [(2, kind, writer)]


@pytest.mark.parametrize("line", ["Aborted by the user", "Killed the last job", "Stopped in time to see"])
def test_sentences_that_only_begin_so_are_none(line: str, tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(f"{STATS}\n{line}\n")
    case = tmp_path / "case.duckdb"
    ingest([str(tmp_path / "server.log")], case)
    with Store(case) as store:
        assert store.run("SELECT count(*) FROM log_event").rows == [(0,)]
        assert store.run("SELECT line_no FROM ingest_issue").rows == [(2,)]


def test_the_journal_of_a_unit_tells_how_it_ended(tmp_path: Path) -> None:
    lines = [
        f"Nov 25 03:12:10 gpu-7 vllm[7]: {STATS}",
        "Nov 25 03:12:15 gpu-7 kernel: Memory cgroup out of memory: Killed process 7 (VLLM::EngineCor) total-vm:1kB",
        "Nov 25 03:12:16 gpu-7 systemd[1]: vllm.service: Main process exited, code=killed, status=9/KILL",
        "Nov 25 03:12:16 gpu-7 systemd[1]: vllm.service: Consumed 1h 2min CPU time.",
        "Nov 25 03:12:17 gpu-7 systemd[1]: Started vllm.service - vLLM.",
    ]
    (tmp_path / "unit.log").write_text("\n".join(lines) + "\n")
    assert in_case(tmp_path / "unit.log", tmp_path) == [(2, "dead", "kernel"), (3, "dead", "systemd")]
