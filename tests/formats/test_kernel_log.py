"""Kernel logs: what the driver and the kernel say of GPUs and of killed processes, by hand count of the samples."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tracelens.formats.base import Chunk, Claim, Clock, Head
from tracelens.formats.gpu.kernel_log import FORMAT

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "kernel_log"
KINDS = {
    "journal_xid.txt": {6: "gpu", 7: "gpu", 9: "warning", 10: "warning", 11: "dead"},
    "dmesg_boot.txt": {4: "gpu"},
    "dmesg_ctime.txt": {2: "gpu", 3: "gpu"},
    "bare_nvrm.txt": {3: "gpu", 4: "gpu"},
}


def frame(lines: list[str], first: int = 1) -> pl.DataFrame:
    return pl.DataFrame(
        {"line_no": range(first, first + len(lines)), "text": lines},
        schema={"line_no": pl.Int64, "text": pl.String},
    )


def claim_of(lines: list[str]) -> Claim | None:
    return FORMAT.sniff(Head(tuple(lines), complete=True))


@pytest.mark.parametrize("name", KINDS)
def test_the_kinds_of_events_are_those_counted_by_hand(name: str) -> None:
    lines = (SAMPLES / name).read_text().splitlines()
    claim = claim_of(lines)
    assert claim is not None
    parsed = FORMAT.parse(Chunk(frame(lines), claim))
    events = parsed.tables["log_event"]
    assert dict(zip(events["line_no"], events["kind"], strict=True)) == KINDS[name]
    assert (parsed.issues.height, parsed.understood) == (0, len(lines))


def test_a_cut_anywhere_gives_the_same_events() -> None:
    lines = (SAMPLES / "journal_xid.txt").read_text().splitlines()
    claim = claim_of(lines)
    assert claim is not None
    whole = FORMAT.parse(Chunk(frame(lines), claim)).tables["log_event"]
    for at in range(1, len(lines)):
        parts = [
            FORMAT.parse(Chunk(frame(lines[:at]), claim)),
            FORMAT.parse(Chunk(frame(lines[at:], at + 1), claim)),
        ]
        assert pl.concat([part.tables["log_event"] for part in parts]).equals(whole)


@pytest.mark.parametrize(
    ("line", "clock", "stamp"),
    [
        ("[Sat Nov  1 10:02:11 2025] NVRM: Xid (PCI:0000:81:00): 31, x", Clock.LOCAL, "2025-11-01 10:02:11"),
        ("2025-11-01T10:02:11+02:00 gpu-1 kernel: NVRM: Xid (PCI:0000:81:00): 31, x", Clock.UTC, "2025-11-01 08:02:11"),
        ("Nov 01 10:02:11 gpu-1 kernel: NVRM: Xid (PCI:0000:81:00): 31, x", Clock.YEARLESS, "2000-11-01 10:02:11"),
        ("[ 1843.308145] NVRM: Xid (PCI:0000:81:00): 31, x", Clock.NONE, "None"),
        ("kern  :err   : [Sat Nov  1 10:02:11 2025] NVRM: Xid (PCI:0000:81:00): 31, x", Clock.LOCAL, "2025-11-01 10:02:11"),
    ],
)  # fmt: skip
def test_each_form_has_its_clock(line: str, clock: Clock, stamp: str) -> None:
    claim = claim_of([line])
    assert claim is not None
    assert claim.clock is clock
    event = FORMAT.parse(Chunk(frame([line]), claim)).tables["log_event"].row(0, named=True)
    assert str(event["event_ts"]) == stamp
    assert event["message"] == "NVRM: Xid (PCI:0000:81:00): 31, x"


def test_lines_of_something_else_are_issues_and_an_empty_chunk_is_nothing() -> None:
    claim = claim_of(["NVRM: GPU at PCI:0000:06:00"])
    assert claim is not None
    parsed = FORMAT.parse(Chunk(frame(["what is this", "", "NVRM: Xi"]), claim))
    assert (parsed.issues["line_no"].to_list(), parsed.understood) == ([1], 2)
    assert FORMAT.parse(Chunk(frame([]), claim)).understood == 0


@pytest.mark.parametrize(
    "lines",
    [
        ["Nov 01 10:02:11 gpu-1 kernel: NVRM: x", "Nov 01 10:02:12 gpu-1 vllm[9]: INFO 11-01 10:02:12 [x.py:1] hello"],
        ["Nov 01 10:02:11 gpu-1 systemd[1]: Started a service"],
        ["a report that says NVRM: once", "and goes on", "for some lines"],
        [],
    ],
)  # fmt: skip
def test_a_servers_journal_and_prose_are_not_claimed(lines: list[str]) -> None:
    assert claim_of(lines) is None
