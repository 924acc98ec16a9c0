"""Reports on a machine; expected values are read off the samples by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracelens import formats
from tracelens.formats.base import Chunk, Head
from tracelens.ingestion.chunks import lines_frame

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "env_report"
FORMAT = formats.named("env_report")
REPORT = (SAMPLES / "collect_env.txt").read_text()
MATRIX = (SAMPLES / "topo_m.txt").read_text()


def settings(text: str) -> list[tuple[int, str, str]]:
    claim = FORMAT.sniff(Head(tuple(text.splitlines()), complete=True))
    assert claim is not None
    parsed = FORMAT.parse(Chunk(lines_frame(text.encode(), 1), claim))
    assert parsed.issues.height == 0
    frame = parsed.tables.get("server_setting")
    return [] if frame is None else list(frame.select("line_no", "key", "value").iter_rows())


def test_a_report_gives_version_cores_link_and_threads() -> None:
    assert settings(REPORT) == [
        (30, "host_cpu_count", "128"),
        (40, "vllm_version", "0.8.5.post1"),
        (45, "gpu_link", "NV12"),
        (60, "omp_num_threads", "8"),
    ]


def test_of_a_matrix_the_best_link_counts() -> None:
    assert settings(MATRIX) == [(2, "gpu_link", "PHB")]


def test_links_to_network_cards_are_no_links_between_gpus() -> None:
    heading = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\n"
    assert settings(
        f"{heading}GPU0\t X \tSYS\tPIX\t0-31\nGPU1\tSYS\t X \tPIX\t0-31\nNIC0\tPIX\tPIX\t X \n"
    ) == [(2, "gpu_link", "SYS")]


def test_a_matrix_whose_tabs_were_lost_is_read_too() -> None:
    assert settings(MATRIX.expandtabs(8)) == [(2, "gpu_link", "PHB")]


def test_a_single_gpu_has_no_link() -> None:
    assert settings("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-31\t0\n") == []


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_cut_report_says_less_and_nothing_else(cut: int) -> None:
    lines = REPORT.splitlines(keepends=True)[:cut]
    if FORMAT.sniff(Head(tuple(REPORT.splitlines()[:cut]), complete=True)) is not None:
        assert {row[1:] for row in settings("".join(lines))} <= {row[1:] for row in settings(REPORT)}


def test_nothing_secret_is_kept() -> None:
    assert not any("hf_0" in value for _, _, value in settings(REPORT))


def test_above_a_servers_log_it_is_that_log() -> None:
    lines = [*REPORT.splitlines(), *["INFO 07-21 10:20:00 async_llm.py:1] Added request 1."] * 8]
    assert FORMAT.sniff(Head(tuple(lines), complete=True)) is None


@pytest.mark.parametrize(
    ("line", "value"),
    [
        # noonghunna/club-3090#602 and #1095
        ("  - **PCIe:** x4 lanes negotiated (GPU max x16, Gen up to 4) | bus 00000000:01:00.0", "x4 of x16"),
        ("\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (downgraded)", "x8 of more"),
    ],
)
def test_a_link_with_fewer_lanes_than_the_gpu_has_is_told(line: str, value: str) -> None:
    assert settings(f"\n{line}\n") == [(2, "pcie_link", value)]


@pytest.mark.parametrize(
    "line",
    [
        "  - **PCIe:** x16 lanes negotiated (GPU max x16, Gen up to 4)",
        "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16",
    ],
)
def test_a_link_with_all_its_lanes_is_not_told(line: str) -> None:
    assert settings(line) == []
