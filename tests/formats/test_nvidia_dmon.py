"""`nvidia-smi dmon`: what the samples and a few small texts must give, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.gpu import dmon_rows
from tracelens.formats.gpu.dmon_layout import Layout
from tracelens.formats.gpu.nvidia_dmon import FORMAT

FOLDER = Path(__file__).parents[2] / "sample_logs" / "nvidia_dmon"


def frame(text: str) -> pl.DataFrame:
    lines = text.removesuffix("\n").split("\n")
    return pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )


def claim(text: str) -> Claim:
    found = FORMAT.sniff(Head(tuple(text.split("\n")), complete=True))
    assert found is not None
    return found


def parsed(text: str) -> Parsed:
    return FORMAT.parse(Chunk(frame(text), claim(text)))


def sample(name: str) -> str:
    return (FOLDER / name).read_bytes().decode()


def rows(result: Parsed) -> list[dict[str, object]]:
    return result.tables["gpu_sample"].to_dicts()


@pytest.mark.parametrize(
    ("name", "clock", "variant"),
    [
        ("dmon_DT_pucvmet_2gpu.log", Clock.LOCAL, "dmon -o DT, pucvmet"),
        ("dmon_T_p_gpm.log", Clock.DAYLESS, "dmon -o T, p, gpm"),
        ("dmon_default_r590.log", Clock.NONE, "dmon, no time, puc"),
        ("dmon_D_only.log", Clock.NONE, "dmon -o D, puc"),
        ("dmon_epoch_prefix.log", Clock.UTC, "dmon, ut, epoch prefix"),
        ("dmon_ts_prefix.log", Clock.YEARLESS, "dmon, puc, ts prefix"),
        ("dmon_hms_tab_prefix.log", Clock.DAYLESS, "dmon -o T, puc, clock prefix"),
        ("dmon_csv.csv", Clock.NONE, "dmon, no time, puc, csv"),
        ("dmon_DT_mutc_order.log", Clock.LOCAL, "dmon -o DT, mutc"),
        ("dmon_T_pumct_header_change.log", Clock.DAYLESS, "dmon -o T, pumct, 2 headings"),
    ],
)
def test_claim_tells_the_clock_and_the_groups(name: str, clock: Clock, variant: str) -> None:
    own = claim(sample(name))
    assert (own.clock, own.variant) == (clock, variant)


def test_a_block_without_time_has_no_stamps() -> None:
    found = rows(parsed(sample("dmon_T_pumct_header_change.log")))
    assert [row["sample_ts"] is None for row in found] == [False, False, True, True]
    assert [row["memory_used_bytes"] for row in found] == [14102 * 1048576, 14102 * 1048576, None, None]


def test_a_day_without_a_time_is_kept_beside_the_sample() -> None:
    found = rows(parsed(sample("dmon_D_only.log")))
    assert {row["sample_ts"] for row in found} == {None}
    assert json.loads(str(found[0]["other"])) == {"Date": 20260519, "jpg": 0, "ofa": 0}


def test_errors_between_rows_are_events_after_the_last_row() -> None:
    events = parsed(sample("dmon_gpu_lost.log")).tables["log_event"]
    assert events["line_no"].to_list() == [6, 7, 9]
    assert [when.second for when in events["event_ts"]] == [17, 17, 18]
    assert set(events["kind"]) == {"gpu"}
    assert set(events["level"]) == {"ERROR"}


def test_shell_lines_are_passed_over_and_a_warning_is_an_event() -> None:
    result = parsed(sample("dmon_interleaved_shell.log"))
    assert result.issues.height == 0
    assert result.understood == 13
    assert result.tables["log_event"].select("line_no", "level").rows() == [(6, "WARNING")]


def test_every_unit_is_turned_into_the_tables() -> None:
    row = rows(parsed(sample("dmon_DT_pucvmet_2gpu.log")))[0]
    assert row["memory_used_bytes"] == 75_612_815_360  # 72110 MiB
    assert row["pcie_rx_bps"] == 412_000_000.0
    assert (row["sm_ratio"], row["mem_ratio"], row["power_violation_ratio"]) == (1.0, 0.41, 0.38)
    assert row["thermal_violation"] is False
    assert row["error_s"] == 1.0


WRONG = "# timestamp,gpu_idx,sm_util%,mem_util%,enc%,dec%,fb_mb"


def test_rows_under_a_false_heading_are_read_where_a_layout_fits() -> None:
    assert claim(sample("dmon_epoch_wrong_header.csv")).variant == (
        "dmon, epoch prefix, heading of 6 names does not fit: um of R535 and later guessed from 10 cells"
    )
    found = rows(parsed(sample("dmon_epoch_wrong_header.csv")))
    assert [row["memory_used_bytes"] for row in found] == [15877 * 1048576] * 2


@pytest.mark.parametrize(
    "row",
    [
        "    0     88     31      0      0      0      0  15877      9",  # one cell less than in any layout
        "    0    688     31      0      0      0      0  15877      9      0 ",  # 688 % is no utilization
    ],
)
def test_rows_under_a_false_heading_that_fit_no_layout_are_issues(row: str) -> None:
    result = parsed(f"{WRONG}\n1767312000.104233871,{row}\n1767312001.104233871,{row}\n")
    assert rows(result) == []
    assert result.issues["reason"].to_list() == ["cells differ from heading"] * 2


PUC_C = "0, 287, 63, -, 100, 88, 0, 0, 0, 0, 10501, 2640"
PUC_B = "0 71 47 - 6 1 0 0 7000 1350"
PUC_A = "0, 11, 22, 41, 12, 0, 0, 5005, 1607"


@pytest.mark.parametrize(
    ("row", "variant", "clock", "power"),
    [
        (PUC_C, "dmon, no time, puc of R535 and later guessed from 12 cells", Clock.NONE, 287),
        (PUC_B, "dmon, no time, puc of R390 to R52x guessed from 10 cells", Clock.NONE, 71),
        (PUC_A, "dmon, no time, puc of R367 to R384 guessed from 9 cells", Clock.NONE, 11),
        (f" 10:00:01   {PUC_B}", "dmon -o T, puc of R390 to R52x guessed from 11 cells", Clock.DAYLESS, 71),
        (f"20260606, 10:00:01, {PUC_C}", "dmon -o DT, puc of R535 and later guessed from 14 cells", Clock.LOCAL, 287),
        (f"1767312000 {PUC_C}", "dmon, epoch prefix, puc of R535 and later guessed from 12 cells", Clock.UTC, 287),
    ],
)  # fmt: skip
def test_rows_without_a_heading_are_those_of_the_default_groups(
    row: str, variant: str, clock: Clock, power: int
) -> None:
    text = f"{row}\n" * 3
    own = claim(text)
    assert (own.variant, own.clock) == (variant, clock)
    found = rows(parsed(text))
    assert [each["power_w"] for each in found] == [power] * 3
    assert all((each["sample_ts"] is None) == (clock is Clock.NONE) for each in found)


@pytest.mark.parametrize(
    "rows_of",
    [
        [PUC_C],  # one row tells too little
        [PUC_C.replace("100, 88", "100, 188")] * 2,  # no percentage
        [PUC_C.replace("2640", "26")] * 2,  # the clock of no GPU; here both clocks are
        [f"{PUC_C}, 1"] * 2,  # thirteen cells
    ],
)
def test_what_does_not_fit_the_default_groups_is_not_claimed(rows_of: list[str]) -> None:
    text = "\n".join(rows_of).replace("10501", "10") + "\n"
    assert FORMAT.sniff(Head(tuple(text.split("\n")), complete=True)) is None


def test_a_row_that_contradicts_the_guess_later_is_an_issue() -> None:
    own = claim(f"{PUC_C}\n{PUC_C}\n")
    wrong = PUC_C.replace("100, 88", "100, 188")
    result = FORMAT.parse(Chunk(frame(f"{PUC_C}\n{wrong}\n"), own))
    assert result.issues.select("line_no", "reason").rows() == [
        (2, "value out of range in the guessed layout")
    ]


def test_the_period_is_known_where_the_command_is_in_the_file() -> None:
    assert claim(sample("dmon_period_in_command.log")).variant == "dmon, no time, -d 5, pu"


def test_mig_instances_are_kept_apart_from_their_device() -> None:
    found = rows(parsed(sample("dmon_gpm_mig_rows.log")))
    assert [row["gpu_index"] for row in found] == [0, None, None, 0, None, None]
    assert [row["dram_active_ratio"] for row in found[:3]] == [None, 0.72, 0.0]
    assert json.loads(str(found[1]["other"])) == {"mig": 1, "entity": "GPU 0 mig 1"}
    side_by_side = rows(parsed(sample("dmon_gpm_mig_columns.log")))[0]
    assert json.loads(str(side_by_side["other"])) == {"gract#1": 97, "dram#1": 72, "gract#2": 3, "dram#2": 0}
    assert "dram_active_ratio" not in side_by_side
    assert side_by_side["power_w"] == 512.0


def test_a_heading_behind_a_cut_row_holds_from_there_on() -> None:
    result = parsed(sample("dmon_T_appended_runs.log"))
    assert [row["power_w"] for row in rows(result)] == [402.0, 410.0, 96.0, 188.0, 301.0, 305.0]
    assert result.issues.select("line_no", "reason").rows() == [(5, "row cut, a heading behind it")]


HEADING = "#Time         gpu     sm    mem \n#HH:MM:SS     Idx      %      % \n"


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (" 10:00:02       0     97     1", "row cut in its last cell"),
        (" 10:00:02       0     9", "cells differ from heading"),
        (" 10:00:02       0     97", "cells differ from heading"),
        (" 10:0", "cells differ from heading"),
        (" 10:77:02       0     97     12 ", "stamp cannot be read"),
        (" 10:00:02       x     97     12 ", "no GPU index"),
        ("Segmentation fault", "not a line of dmon"),
    ],
)
def test_a_row_that_cannot_be_trusted_is_an_issue(tail: str, reason: str) -> None:
    result = parsed(HEADING + " 10:00:01       0     97     12 \n" * 3 + tail)
    assert result.tables["gpu_sample"].height == 3
    assert result.issues.rows() == [(6, reason, tail)]


def test_a_left_aligned_table_is_not_taken_for_cut() -> None:
    text = "#Time      gpu  mclk  pclk\n10:00:01   0    2619  345\n10:00:02   0    2619  1980\n"
    assert [row["sm_clock_mhz"] for row in rows(parsed(text))] == [345.0, 1980.0]


def test_rows_above_any_heading_are_issues() -> None:
    result = FORMAT.parse(Chunk(frame("    0    612     58\n"), Claim("", Clock.NONE)))
    assert result.issues["reason"].to_list() == ["no heading above"]


def test_nan_and_sentinels_are_no_values() -> None:
    text = "# gpu    pwr     sm \n    0    nan    inf \n    0 9223372036854775794     12 \n"
    found = rows(parsed(text))
    assert [(row["power_w"], row["sm_ratio"]) for row in found] == [(None, None), (None, 0.12)]


def test_broken_headings_cost_no_pass_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    read = dmon_rows.rows_under

    def counted(group: pl.DataFrame, under: tuple[Layout, bool], claim: Claim) -> pl.DataFrame:
        passes.append(group.height)
        return read(group, under, claim)

    monkeypatch.setattr(dmon_rows, "rows_under", counted)
    whole = "# gpu    pwr  gtemp     sm    mem \n    0    100     50     90     40 \n"
    # Two hundred headings that a kill cut, each at another length of blanks, over a row that has more cells than they have names.
    broken = "".join(f"# gpu{' ' * wide}pwr\n    0    100     50     90     40 \n" for wide in range(1, 201))
    found = parsed(whole + broken + whole)
    assert passes == [2]
    assert [row["power_w"] for row in rows(found)] == [100.0, 100.0]
    assert found.issues["reason"].to_list() == ["cells differ from heading"] * 200


def test_a_line_of_thousands_of_names_is_no_heading() -> None:
    found = parsed(
        "# gpu    pwr  gtemp \n    0    100     50 \n# gpu" + " sm" * 5000 + "\n    0    101     51 \n"
    )
    assert [row["power_w"] for row in rows(found)] == [100.0, 101.0]
