"""Formats of GPU tools beside nvidia-smi's lines and dcgmi, and home-made logs of GPUs and hosts.

The values in gpu_tools_expected.json were written by hand for the samples; those in the tests were read off the samples.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens import formats
from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed
from tracelens.formats.gpu.nvidia_smi_xml import MAX_DOCUMENT_CHARS
from tracelens.ingestion import ingest
from tracelens.ingestion.chunks import lines_frame
from tracelens.store import Store

if TYPE_CHECKING:
    import polars as pl

SAMPLES = Path(__file__).parents[2] / "sample_logs"
NAMES = (
    "nvidia_pmon", "nvidia_smi_xml", "nvidia_smi_q", "gpustat", "nvitop", "amd_smi", "rocm_smi", "npu_smi", "xpu_smi", "dcgm_long",
    "sampled_table", "vmstat",
)  # fmt: skip
FORMATS = {name: formats.named(name) for name in NAMES}
FILES = [path for name in NAMES for path in sorted((SAMPLES / name).iterdir()) if path.name != "README.md"]
EXPECTED = json.loads((Path(__file__).parent / "gpu_tools_expected.json").read_text())
MIB = 1048576

PLACES = {
    "sm_pct": ("sm_ratio", 100), "mem_pct": ("mem_ratio", 100), "fb_mb": ("memory_used_bytes", 1 / MIB),
    "fb_total_mb": ("memory_total_bytes", 1 / MIB), "pcie_rx_mbs": ("pcie_rx_bps", 1e-6), "pcie_tx_mbs": ("pcie_tx_bps", 1e-6),
    "gpu": ("gpu_index", 1), "proc_sm_pct": ("sm_ratio", 100), "proc_mem_pct": ("mem_ratio", 100), "proc_type": ("kind", 1),
    "power_instant_w": ("power_w", 1),
}  # fmt: skip
KEPT = {
    "fan_pct": "fan_pct", "phase": "phase", "throttle_status": "throttle_status", "pstate": "pstate",
    "hotspot_c": "Temperature (Sensor junction) (C)", "fb_pct": "Memory(%)", "mem_bw_pct": "Memory BW(%)",
}  # fmt: skip


def claim(form: Format, text: str) -> Claim | None:
    return form.sniff(Head(tuple(line.rstrip("\r") for line in text.split("\n")), complete=True))


def parsed(form: Format, text: str) -> Parsed:
    own = claim(form, text)
    assert own is not None
    return form.parse(Chunk(lines_frame(text.encode(), 1), own, is_open=not text.endswith("\n")))


def sample(name: str) -> tuple[Format, str]:
    path = next(path for path in FILES if path.name == name)
    return FORMATS[path.parent.name], path.read_bytes().decode()


def rows(name: str, table: str = "gpu_sample") -> list[dict[str, Any]]:
    return parsed(*sample(name)).tables[table].to_dicts()


def value(row: dict[str, Any], key: str, file: str) -> object:
    """A value of the expected ones out of a row, in their unit."""
    if key in KEPT:
        return json.loads(row.get("other") or "{}").get(KEPT[key])
    if key in ("ts", "ts_local"):
        found = row["sample_ts"]
        if found is None or key == "ts":
            return found and found.replace(tzinfo=dt.UTC).timestamp()
        text = found.isoformat(timespec="auto" if found.microsecond % 1000 else "milliseconds")
        return text[10:] if found.year == 2000 else text.removesuffix(".000")
    column, factor = PLACES.get(key, (key, 1))
    if file == "amd_smi_monitor.txt" and key.startswith("fb_"):
        factor = 1e-6  # its cells say GB
    found = row.get(column)
    return found if found is None or isinstance(found, str) else found * factor


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda each: each["file"])
def test_samples_have_the_expected_rows(expected: dict[str, Any]) -> None:
    table = "gpu_process_sample" if expected["format"] == "nvidia_pmon" else "gpu_sample"
    found = rows(expected["file"], table)
    assert len(found) == expected["rows"]
    assert sorted({row["gpu_index"] for row in found}) == expected["gpus"]
    for key, right in expected["first"].items():
        if key not in ("tick", "field"):  # ticks are counted when a case is loaded; a field is its column
            got = value(found[0], key, expected["file"])
            assert got == (pytest.approx(right) if isinstance(right, int | float) else right), key


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_line_of_a_sample_is_understood_or_said_to_be_cut(path: Path) -> None:
    result = parsed(FORMATS[path.parent.name], path.read_bytes().decode())
    reasons = set(result.issues["reason"].to_list())
    assert reasons <= {
        "cells differ from heading", "row cut in its last cell", "document cut", "line cut", "sample cut, or not JSON",
    }  # fmt: skip
    if "cut" not in path.name and path.read_bytes().endswith(b"\n"):
        assert not reasons


# Cuts and junk ----------------------------------------------------------------------------------------------------------


def joined(parts: list[Parsed]) -> dict[str, object]:
    """The sum of several chunks' results; columns without a value left out."""

    def plain(frames: list[pl.DataFrame]) -> list[dict[str, object]]:
        found = [row for part in frames for row in part.to_dicts()]
        return [
            {key: each for key, each in row.items() if each is not None and key != "event_ts"}
            for row in found
        ]

    names = sorted({name for part in parts for name in part.tables})
    return {
        "understood": sum(part.understood for part in parts),
        "issues": plain([part.issues for part in parts]),
        "stamps": plain([part.stamps for part in parts]),
        **{name: plain([part.tables[name] for part in parts if name in part.tables]) for name in names},
    }


@pytest.mark.parametrize(
    "path", [path for path in FILES if not FORMATS[path.parent.name].whole], ids=lambda path: path.name
)
def test_any_cut_into_two_chunks_gives_the_same_sum(path: Path) -> None:
    form, data = FORMATS[path.parent.name], path.read_bytes()
    own = claim(form, data.decode())
    assert own is not None
    is_open = not data.endswith(b"\n")
    whole = joined([form.parse(Chunk(lines_frame(data, 1), own, is_open=is_open))])
    lines = data.split(b"\n")
    for at in range(1, len(lines) - 1):
        head, tail = b"\n".join(lines[:at]) + b"\n", b"\n".join(lines[at:])
        parts = [
            form.parse(Chunk(lines_frame(head, 1), own)),
            form.parse(
                Chunk(lines_frame(tail, at + 1), own, form.context(head.decode(), None), is_open=is_open)
            ),
        ]
        assert joined(parts) == whole, at


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_cut_in_its_last_bytes_never_gives_another_number(path: Path) -> None:
    form, text = FORMATS[path.parent.name], path.read_bytes().decode().rstrip("\n")

    def cells(text: str) -> dict[tuple[object, ...], dict[str, object]]:
        own = claim(form, text)
        lines, is_open = lines_frame(text.encode(), 1), not text.endswith("\n")
        result = form.parse(Chunk(lines, own, is_open=is_open)) if own else None
        return {
            (table, row["line_no"], row.get("gpu_index"), row.get("position"), row.get("pid")): row
            for table, frame in (result.tables.items() if result else ())
            for row in frame.to_dicts()
            if table != "log_event"
        }

    whole = {**cells(text), **cells(text + "\n")}
    for cut in (*range(1, 8), 13, 29, 60):
        for key, row in cells(text[:-cut]).items():
            known = whole.get(key, {})
            changed = {name for name, cell in row.items() if cell is not None and known.get(name) != cell}
            assert changed <= {"segment"}, (cut, key)


CORPUS = sorted(
    {line for path in FILES for line in path.read_bytes().decode().split("\n") if len(line) < 400}
)
CLAIMS = [
    (form, own)
    for path in FILES
    if (own := claim(form := FORMATS[path.parent.name], path.read_bytes().decode()))
]


@st.composite
def junk(draw: st.DrawFn) -> str:
    line = st.sampled_from(CORPUS)
    lines = st.one_of(
        line,
        line,
        st.tuples(line, st.integers(0, 200)).map(lambda pair: pair[0][: pair[1]]),
        st.text(max_size=30).map(lambda text: text.replace("\n", " ").replace("\r", " ")),
    )
    return "\n".join(draw(st.lists(lines, max_size=10)))


@settings(max_examples=30, deadline=None)
@given(text=junk(), pair=st.sampled_from(CLAIMS), is_open=st.booleans())
def test_any_lines_can_be_parsed_and_each_goes_to_one_side(
    text: str, pair: tuple[Format, Claim], is_open: bool
) -> None:
    form, own = pair
    lines = lines_frame((text + "\n").encode(), 1)
    result = form.parse(Chunk(lines, own, is_open=is_open))
    assert result.understood + result.issues.height == lines.height
    assert result.issues["line_no"].is_unique().all()
    assert set(result.tables) <= set(form.fills)
    for each in FORMATS.values():
        claim(each, text)
        each.context(text, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"ts": 1767225600, "request_id": "a", "gpu_util": 3, "power_w": 4}\n',
        '{"time": 1767225600, "message": "gpu is fine", "power": true}\n',
        "time,level,message\n2026-05-01 12:34:56,INFO,gpu util is 3\n",
        "ts,temp_c,cpu_percent_of_process\n1767225600,41,3\n",
        "timestamp,ttft_ms,tokens\n1767225600,41,3\n",
        "name,power_w,util_pct,temp_c\na,1,2,3\n",
        '<?xml version="1.0"?>\n<log>\n</log>\n',
        '{"gpus": [1, 2], "query": 3}\n',
    ],
)
def test_other_kinds_of_files_are_not_claimed(text: str) -> None:
    assert [name for name, form in FORMATS.items() if claim(form, text)] == []


# pmon -------------------------------------------------------------------------------------------------------------------


def test_pmon_names_each_process_and_says_where_none_runs() -> None:
    found = rows("pmon_DT_m.log", "gpu_process_sample")
    assert [(row["gpu_index"], row["pid"], row["command"]) for row in found] == [
        (0, 48211, "VLLM::EngineCor"), (1, None, None), (0, 48211, "VLLM::EngineCor"), (0, 51002, "python train.py"), (1, None, None),
    ]  # fmt: skip
    assert found[3]["memory_used_bytes"] == 1204 * MIB
    assert found[3]["sample_ts"] == dt.datetime(2026, 5, 1, 12, 34, 57)


def test_an_error_sentence_among_pmon_rows_is_an_event() -> None:
    (event,) = rows("pmon_DT_m.log", "log_event")
    assert event["line_no"] == 9
    assert "has failed" in event["message"]


# nvidia-smi -q ----------------------------------------------------------------------------------------------------------


def test_xml_documents_in_one_file_give_all_whole_gpus() -> None:
    found = rows("q_v13_loop_cut.xml")
    assert [(row["line_no"], row["gpu_index"], row["sm_ratio"]) for row in found] == [
        (8, 0, 0.97), (34, 1, 0.0), (47, 0, 0.98),
    ]  # fmt: skip
    first = found[0]
    assert (first["power_w"], first["power_limit_w"]) == (697.9, 700.0)
    assert first["clock_reasons"] == "sw_power_cap, hw_slowdown"
    (process,) = rows("q_v13_loop_cut.xml", "gpu_process_sample")
    assert (process["pid"], process["command"], process["memory_used_bytes"]) == (
        48211,
        "VLLM::EngineCore",
        72090 * MIB,
    )


def test_selected_gpus_go_by_their_minor_numbers() -> None:
    form, text = sample("nvidia_smi_q_v12.xml")
    text = text.replace("<attached_gpus>1<", "<attached_gpus>8<").replace(
        "<minor_number>0<", "<minor_number>5<"
    )
    assert parsed(form, text).tables["gpu_sample"]["gpu_index"].to_list() == [5]


LOL = '<!DOCTYPE nvidia_smi_log [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>\n'


def test_entities_are_never_expanded() -> None:
    form, text = sample("nvidia_smi_q_v12.xml")
    bomb = LOL + text[text.index("<nvidia_smi_log>") :].replace("NVIDIA A100 80GB PCIe", "&b;")
    result = parsed(form, bomb)
    assert result.tables["gpu_sample"].height == 0
    assert set(result.issues["reason"]) == {"not XML", "not a line of nvidia-smi -q"}


def test_a_huge_document_is_refused() -> None:
    form, text = sample("nvidia_smi_q_v12.xml")
    huge = text.replace("</gpu>", "<x/>" * (MAX_DOCUMENT_CHARS // 4) + "</gpu>")
    result = parsed(form, huge)
    assert result.tables["gpu_sample"].height == 0
    assert set(result.issues["reason"]) == {"document too large"}


def test_deeply_nested_tags_do_no_harm() -> None:
    form, text = sample("nvidia_smi_q_v12.xml")
    deep = text.replace("<uuid>", "").replace("</gpu>", "<a>" * 20_000 + "</a>" * 20_000 + "</gpu>")
    assert parsed(form, deep).tables["gpu_sample"].height == 1


XML_LINK = """<pci_gpu_link_info><link_widths><max_link_width>16x</max_link_width>
<current_link_width>1x</current_link_width></link_widths></pci_gpu_link_info>"""
TEXT_LINK = """        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 1x
"""


def test_the_lanes_of_a_gpu_s_link_are_kept() -> None:
    form, text = sample("nvidia_smi_q_v12.xml")
    of_xml = parsed(form, text.replace("<pci>", f"<pci>{XML_LINK}"))
    form, text = sample("q_r535_loop.txt")
    of_text = parsed(form, text.replace("    PCI\n", "    PCI\n" + TEXT_LINK, 1))
    for found in (of_xml, of_text):
        other = json.loads(found.tables["gpu_sample"]["other"][0])
        assert (other["pcie.link.width.current"], other["pcie.link.width.max"]) == ("1x", "16x")
    assert (other["pcie.link.gen.current"], other["pcie.link.gen.max"]) == (1, 4)


def test_text_and_xml_say_the_same_of_a_gpu() -> None:
    text, xml = rows("q_r535_loop.txt")[0], rows("nvidia_smi_q_v12.xml")[0]
    shared = ("sample_ts", "gpu_index", "gpu_name", "sm_ratio", "mem_ratio", "power_w", "power_limit_w", "temp_c", "mem_temp_c",
              "memory_used_bytes", "memory_total_bytes", "sm_clock_mhz", "sm_clock_max_mhz", "mem_clock_mhz", "pcie_rx_bps",
              "pcie_tx_bps")  # fmt: skip
    assert {name: text[name] for name in shared} == {name: xml[name] for name in shared}


def test_a_loop_of_text_snapshots_gives_each_gpu_with_its_own_stamp() -> None:
    found = rows("q_r535_loop.txt")
    assert [(row["gpu_index"], row["sample_ts"].second, row["sm_ratio"]) for row in found] == [
        (0, 7, 0.98), (1, 7, 0.0), (0, 12, 0.41),
    ]  # fmt: skip
    assert found[0]["clock_reasons"] == "sw_power_cap"
    assert found[2]["mem_ratio"] is None  # the line that has it was cut
    (process,) = rows("q_r535_loop.txt", "gpu_process_sample")
    assert (process["line_no"], process["pid"], process["memory_used_bytes"]) == (52, 48211, 64290 * MIB)


# gpustat and others -----------------------------------------------------------------------------------------------------


def test_gpustat_samples_one_after_the_other_are_all_read_and_a_cut_one_is_said() -> None:
    found = rows("loop_cut.json")
    assert [(row["gpu_index"], row["sm_ratio"], row["power_w"]) for row in found] == [
        (0, 0.98, 400.0), (1, None, None), (0, 0.97, 400.0), (1, 0.03, 401.0),
    ]  # fmt: skip
    (process,) = rows("loop_cut.json", "gpu_process_sample")
    assert (process["pid"], process["command"], process["memory_used_bytes"]) == (
        48211,
        "python3",
        72100 * MIB,
    )
    assert "user" not in json.dumps([str(row) for row in found])


def test_gpustat_table_is_read_with_and_without_power() -> None:
    found = rows("table_1.1.txt")
    assert [row["power_w"] for row in found] == [None, None, 431.0, 68.0]
    assert [row["sm_ratio"] for row in found] == [0.98, 0.0, 0.97, None]
    assert {row["host"] for row in found} == {"node-a"}
    assert found[2]["sample_ts"] == dt.datetime(2026, 5, 1, 12, 35, 1)


def test_amd_monitor_without_time_keeps_cells_without_a_value_null() -> None:
    found = rows("monitor_no_time.txt")
    assert [(row["gpu_index"], row["power_w"], row["mem_temp_c"]) for row in found] == [
        (0, 612.0, 54.0), (1, None, None), (0, 615.0, 54.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("heading", "cells", "used", "total"),
    [
        ("VRAM_USAGE", "0.3/192.0 GB", 300_000_000, 192_000_000_000),
        ("VRAM_USED  VRAM_TOTAL", "283 MB    196592 MB", 283 * MIB, 196592 * MIB),
        ("VRAM_USED  VRAM_TOTAL", "N/A    N/A", None, None),
    ],
)
def test_amd_monitor_says_memory_in_several_ways(
    heading: str, cells: str, used: int | None, total: int | None
) -> None:
    text = f"GPU  POWER  GPU_T  GFX%  {heading}\n  0  612 W  66 °C  97 %  {cells}\n"
    (row,) = parsed(FORMATS["amd_smi"], text).tables["gpu_sample"].to_dicts()
    assert (row["memory_used_bytes"], row["memory_total_bytes"]) == (used, total)
    assert (row["power_w"], row["sm_ratio"]) == (612.0, 0.97)


def test_a_second_chip_of_an_npu_is_no_gpu_of_its_own_index() -> None:
    form, text = sample("npu_smi_watch.txt")
    text += text.split("\n")[1].replace("0           0  ", "0           1  ", 1) + "\n"
    last = parsed(form, text).tables["gpu_sample"].to_dicts()[-1]
    assert last["gpu_index"] is None
    assert json.loads(last["other"])["entity"] == "NPU 0 chip 1"


def test_nvitop_gpus_of_one_row_may_have_different_columns() -> None:
    text = (
        '"a/cuda:0 (gpu:3)/power_usage (W)/mean","a/cuda:1 (gpu:5)/memory_used (MiB)/mean","a/timestamp"\n'
        "402.7,72110,1767225605.118\n"
    )
    found = parsed(FORMATS["nvitop"], text).tables["gpu_sample"].to_dicts()
    assert [(row["gpu_index"], row["power_w"], row["memory_used_bytes"]) for row in found] == [
        (3, 402.7, None), (5, None, 72110 * MIB),
    ]  # fmt: skip


def test_dcgm_instant_power_is_power_only_where_no_average_is_given() -> None:
    form, text = sample("dcgm_long.csv")
    both = text + "0,1767225600223999,power_usage,470.00\n"
    found = parsed(form, both).tables["gpu_sample"]
    assert found["power_w"].drop_nulls().to_list() == [470.0]
    assert '{"field":"power_usage_instant","value":471.20}' in found["other"].to_list()


# Home-made logs ---------------------------------------------------------------------------------------------------------


def test_aiperfs_telemetry_has_memory_in_decimal_gb() -> None:
    found = rows("aiperf_0.13_gpu_telemetry.jsonl")
    assert {
        (row["gpu_index"], row["power_w"], row["sm_ratio"], row["memory_used_bytes"]) for row in found
    } == {(0, 312.5, 0.57, 64_208_502_784)}
    assert found[0]["host"] == "mockhost"
    form, text = sample("aiperf_0.13_gpu_telemetry.jsonl")
    older = parsed(form, text.replace('"nvidia_', '"gpu_')).tables["gpu_sample"].to_dicts()
    assert older[0]["memory_used_bytes"] == 64_208_502_784


def test_a_row_of_several_gpus_gives_one_sample_for_each_and_one_of_the_host() -> None:
    found = rows("wide_2gpu.tsv")
    assert [(row["line_no"], row["gpu_index"], row["sm_ratio"], row["power_w"]) for row in found] == [
        (2, 0, 0.12, 140.5), (2, 1, 0.0, 61.0), (3, 0, 0.97, 402.0), (3, 1, 0.96, 398.5), (4, 0, 0.98, None), (4, 1, 0.97, 399.0),
    ]  # fmt: skip
    host = rows("wide_2gpu.tsv", "host_sample")
    assert [(row["cpu_ratio"], row["memory_used_bytes"]) for row in host] == [
        (0.235, 88_200_000_000), (0.41, 88_400_000_000), (None, 88_400_000_000),
    ]  # fmt: skip


def test_a_list_of_gpus_on_a_line_gives_one_sample_for_each() -> None:
    found = rows("gpus_in_list.jsonl")
    assert [(row["gpu_index"], row["sm_ratio"], row["power_w"]) for row in found] == [
        (0, 0.97, 402.113), (1, 0.03, 61.022), (0, 0.98, 405.9), (1, None, 61.5),
    ]  # fmt: skip
    assert {row["memory_used_bytes"] for row in found} == {75612815360, 4194304}
    host = rows("gpus_in_list.jsonl", "host_sample")
    assert [(row["cpu_ratio"], row["memory_used_bytes"]) for row in host] == [
        (0.375, 94489280512), (0.41, 94489280512),
    ]  # fmt: skip


def test_a_unit_that_values_do_not_tell_leaves_the_column_null_and_the_cell_kept() -> None:
    found = rows("units_unsure.csv")
    places = ("sm_ratio", "power_w", "memory_used_bytes")
    assert [[row.get(name) for name in places] for row in found] == [[None] * 3] * 3
    assert json.loads(found[1]["other"]) == {"elapsed_s": 1.0, "util": 1, "power": 3, "mem_used": 18}
    assert found[1]["temp_c"] == 41.0


@pytest.mark.parametrize(
    ("heading", "cells", "column", "right"),
    [
        ("power", "402113", "power_w", 402.113),
        ("power", "402.1", "power_w", 402.1),
        ("util", "0.97", "sm_ratio", 0.97),
        ("util", "97", "sm_ratio", 0.97),
        ("GPU Utilization [%]", "97", "sm_ratio", 0.97),
        ("gpu_mem_used", "75612815360", "memory_used_bytes", 75612815360),
        ("gpu_mem_used", "72110", "memory_used_bytes", 75612815360),
        ("mem_used_gb", "75.5", "memory_used_bytes", 75_500_000_000),
        ("mem_used_gib", "2", "memory_used_bytes", 2 << 30),
        ("mem_used_mb", "72110", "memory_used_bytes", 75612815360),
        ("clocks_sm", "1980", "sm_clock_mhz", 1980.0),
        ("vramUsedMiB", "72110", "memory_used_bytes", 75612815360),
        ("smClockMHz", "1980", "sm_clock_mhz", 1980.0),
        ("pcie_rx_mb_s", "12.5", "pcie_rx_bps", 12_500_000.0),
        ("dram_active", "0.83", "dram_active_ratio", 0.83),
    ],
)
def test_names_and_values_tell_the_unit(heading: str, cells: str, column: str, right: float) -> None:
    text = f"ts,gpu_id,gpu_temp,sm_clock_max,{heading}\n1767225600.25,0,41,2000,{cells}\n"
    (row,) = parsed(FORMATS["sampled_table"], text).tables["gpu_sample"].to_dicts()
    assert row[column] == pytest.approx(right)
    assert row["sample_ts"] == dt.datetime(2026, 1, 1, 0, 0, 0, 250000)


@pytest.mark.parametrize(
    ("stamp", "clock"),
    [
        ("1767225600", Clock.UTC), ("1767225600000", Clock.UTC), ("1767225600000000", Clock.UTC), ("1767225600000000000", Clock.UTC),
        ("2026-01-01T00:00:00Z", Clock.UTC), ("2026-01-01 01:00:00+01:00", Clock.UTC), ("2026-01-01 00:00:00", Clock.LOCAL),
        ("2026/01/01 00:00:00.000", Clock.LOCAL),
    ],
)  # fmt: skip
def test_stamps_of_any_kind_are_the_same_instant(stamp: str, clock: Clock) -> None:
    text = f"timestamp,gpu,util_pct,power_w\n{stamp},0,3,40\n"
    own = claim(FORMATS["sampled_table"], text)
    assert own is not None
    assert own.clock is clock
    (row,) = parsed(FORMATS["sampled_table"], text).tables["gpu_sample"].to_dicts()
    assert row["sample_ts"] == dt.datetime(2026, 1, 1)


def test_a_day_in_a_column_of_its_own_is_part_of_the_stamp() -> None:
    text = "# my log\nDate,Time,GPU,Util,Power,Temp\n2026-05-01,12:00:00,0,97,400,61\n2026-05-01,12:00:01,0,98,400,61\n"
    own = claim(FORMATS["sampled_table"], text)
    assert own is not None
    assert own.clock is Clock.LOCAL
    result = parsed(FORMATS["sampled_table"], text)
    assert result.issues.height == 0
    assert result.tables["gpu_sample"]["sample_ts"].to_list()[1] == dt.datetime(2026, 5, 1, 12, 0, 1)
    assert result.tables["gpu_sample"]["other"].to_list() == [None, None]


def test_a_temperature_alone_is_not_taken_for_a_gpus() -> None:
    text = "time,temp_c,cpu_percent,load1\n1767225600,41,3.5,0.5\n"
    result = parsed(FORMATS["sampled_table"], text)
    assert result.tables["gpu_sample"].height == 0
    (host,) = result.tables["host_sample"].to_dicts()
    assert (host["cpu_ratio"], host["load_1m"], json.loads(host["other"])) == (0.035, 0.5, {"temp_c": 41})


def test_prompts_and_keys_in_a_home_made_log_are_not_kept() -> None:
    line = '{"ts": 1767225600, "index": 0, "gpu_util_pct": 3, "power_w": 40, "system_prompt": "secret", "api_key": "x", "phase": "p"}\n'
    (row,) = parsed(FORMATS["sampled_table"], line).tables["gpu_sample"].to_dicts()
    assert json.loads(row["other"]) == {"phase": "p"}


def test_a_line_without_a_measure_or_a_stamp_is_an_issue() -> None:
    text = '{"ts": 1767225600, "index": 0, "gpu_util_pct": 3, "power_w": 40}\n' * 5
    result = parsed(FORMATS["sampled_table"], text + '{"event": "done"}\n{"ts": null, "power_w": 3}\n[1]\n')
    assert result.issues["reason"].to_list() == [
        "no measure in it",
        "stamp cannot be read",
        "not a JSON object",
    ]


def test_vmstat_leaves_out_the_mean_since_boot() -> None:
    found = rows("vmstat_t.txt", "host_sample")
    assert [(row["line_no"], row["cpu_ratio"], row["disk_read_bps"], row["disk_write_bps"]) for row in found] == [
        (4, 0.72, 0.0, 2048 * 1024.0), (5, 1.0, 512 * 1024.0, 0.0), (8, 0.01, 0.0, 0.0),
    ]  # fmt: skip
    assert found[0]["sample_ts"] == dt.datetime(2026, 5, 1, 12, 34, 57)
    assert json.loads(found[0]["other"])["r"] == 9


def test_gpus_of_one_row_are_one_tick(tmp_path: Path) -> None:
    paths = [str(SAMPLES / "sampled_table" / name) for name in ("wide_2gpu.tsv", "gpus_in_list.jsonl")]
    ingest(paths, tmp_path / "case.duckdb")
    with Store(tmp_path / "case.duckdb") as store:
        found = store.run(
            "SELECT path LIKE '%tsv' AS is_wide, line_no, gpu_index, tick FROM gpu_sample JOIN source USING (source_id) ORDER BY ALL"
        ).rows
    assert found == [
        (False, 1, 0, 0), (False, 1, 1, 0), (False, 2, 0, 1), (False, 2, 1, 1),
        (True, 2, 0, 0), (True, 2, 1, 0), (True, 3, 0, 1), (True, 3, 1, 1), (True, 4, 0, 2), (True, 4, 1, 2),
    ]  # fmt: skip


def test_cpu_shares_come_from_the_counters_of_the_host(tmp_path: Path) -> None:
    path = SAMPLES / "sampled_table" / "host_recorded.jsonl"
    ingest([str(path)], tmp_path / "case.duckdb")
    said = [json.loads(line) for line in path.read_text().splitlines()]
    names = "cpu_jiffies_user_nice_sys_idle_iowait_irq_softirq_steal"
    with Store(tmp_path / "case.duckdb") as store:
        hosts = store.run("SELECT * FROM host_sample ORDER BY line_no").dicts()
        processes = store.run("SELECT * FROM host_process_sample ORDER BY line_no, position").dicts()
    assert hosts[0]["cpu_ratio"] is None
    for before, now, row in zip(said, said[1:], hosts[1:], strict=False):
        step = [b - a for a, b in zip(before[names], now[names], strict=True)]
        assert row["cpu_ratio"] == pytest.approx(1 - (step[3] + step[4]) / sum(step))
    assert [row["load_1m"] for row in hosts] == [each["load1"] for each in said]
    first, last = said[0], said[-1]
    for at, (name, seconds) in enumerate(last["process_cpu_s"]):
        mine = [row for row in processes if row["position"] == at]
        assert {row["process"] for row in mine} == {name}
        used = sum(
            row["cpu_cores"] * (b["ts"] - a["ts"])
            for row, a, b in zip(mine[1:], said, said[1:], strict=False)
        )
        assert used == pytest.approx(seconds - first["process_cpu_s"][at][1], abs=1e-6)
