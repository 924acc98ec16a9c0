"""Tables and views as others rely on them: names, grains, comments, and a type for every suffix."""

from __future__ import annotations

import pytest

from tracelens.store import MemoryCase

# As documented for other programs.  Adding is fine; renaming or taking one away is a breaking change.
RELIED_ON = {
    "source": "source_id run_id path format variant sha256 size_bytes line_count record_count skipped_count first_ts last_ts time_basis",
    "ingest_issue": "source_id line_no reason excerpt",
    "request_event": "request_id event event_ts error_s",
    "server_request": "request_id arrival_ts queue_s prefill_s decode_s ttft_s e2e_s input_tokens cached_input_tokens output_tokens finish_reason preemption_count",
    "client_request": "client_id request_id client_planned_ts client_sent_ts client_headers_ts client_first_byte_ts client_first_chunk_ts client_last_chunk_ts client_ttft_s client_reported_ttft_s client_ttft_kind client_e2e_s client_tpot_s streamed status http_status error input_tokens output_tokens output_tokens_basis chunk_count",
    "engine_sample": "sample_ts error_s engine_index prompt_tps generation_tps running_count waiting_count deferred_count swapped_count preemption_count kv_cache_usage_ratio prefix_cache_hit_ratio",
    "engine_step": "step_ts elapsed_s context_requests context_tokens generation_requests",
    "gpu_sample": "sample_ts host gpu_index sm_ratio mem_ratio power_w power_limit_w temp_c mem_temp_c sm_clock_mhz mem_clock_mhz memory_used_bytes pcie_rx_bps pcie_tx_bps sm_active_ratio tensor_active_ratio dram_active_ratio",
    "metric_sample": "sample_ts name labels measured",
    "server_setting": "key value basis",
    "log_event": "event_ts level kind process message",
    "access_line": "method path status client_addr",
    "request": "run_id request_id arrival_ts ttft_s client_ttft_s queue_s prefill_s decode_s tpot_s e2e_s client_e2e_s input_tokens cached_input_tokens output_tokens streamed status http_status",
    "request_stage": "run_id request_id stage stage_index start_ts duration_s error_s provenance basis",
    "stage_summary": "stage p50_s p90_s p99_s share_of_ttft_ratio observed_count",
    "clock_offset": "low_s high_s drift basis pair_count",
    "time_window": "window_ts running_count waiting_count arrival_count completion_count prompt_tps generation_tps sm_ratio dram_active_ratio",
    "prompt_length_curve": "slope_s_per_1k_tokens intercept_s r2 sample_count",
}
ENUMS = {
    "provenance": ["observed", "derived", "within", "unknown"],
    "request_status": ["ok", "error", "aborted", "rejected", "unknown"],
    "event_kind": [
        "received",
        "added",
        "scheduled",
        "preempted",
        "first_token",
        "finished",
        "aborted",
        "failed",
    ],
}
SUFFIX_TYPES = {
    "_ts": "TIMESTAMP",
    "_s": "DOUBLE",
    "_ratio": "DOUBLE",
    "_tokens": "BIGINT",
    "_count": "BIGINT",
    "_bytes": "BIGINT",
    "_tps": "DOUBLE",
    "_rps": "DOUBLE",
    "_bps": "DOUBLE",
    "_id": "VARCHAR",
}
# Columns whose type is not their suffix's, with the reason.
EXCEPTIONS = {
    ("source_id", "INTEGER"): "a number that the case gives itself; the one id that no source wrote",
    ("from_source_id", "INTEGER"): "a source_id",
    ("to_source_id", "INTEGER"): "a source_id",
    ("server_source_id", "INTEGER"): "a source_id",
    ("client_source_id", "INTEGER"): "a source_id",
    ("chunk_offset_s", "FLOAT[]"): "a list per request; single precision keeps a long stream small",
    ("engine_count", "INTEGER"): "engines that one stats line adds up: as small as engine_index beside it",
    ("mean_waiting_count", "DOUBLE"): "a mean of counts",
    ("slope_s_per_1k_tokens", "DOUBLE"): "seconds per thousand tokens",
}
# Tables without rows of a source: what the case says of itself.
NO_FACTS = {
    "case_property",
    "source",
    "server_semantics",
    "server_switch",
    "coverage_question",
    "client_match",
    "metric_name",
    "metric_spelling",
}


@pytest.fixture(scope="module")
def memory() -> MemoryCase:
    return MemoryCase()


@pytest.fixture(scope="module")
def relations(memory: MemoryCase) -> dict[str, tuple[str, str | None]]:
    """Table or view -> kind and comment."""
    found = memory.run(
        "SELECT table_name, 'table', comment FROM duckdb_tables() "
        "UNION ALL SELECT view_name, 'view', comment FROM duckdb_views() WHERE NOT internal"
    )
    return {name: (kind, comment) for name, kind, comment in found.rows}


@pytest.fixture(scope="module")
def columns(memory: MemoryCase) -> list[tuple[str, str, str, str | None]]:
    """Relation, column, type and comment of everything public."""
    return memory.run(
        "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() "
        "WHERE NOT internal AND NOT starts_with(table_name, '_') ORDER BY table_name, column_index"
    ).rows


@pytest.mark.parametrize("name", RELIED_ON)
def test_what_others_rely_on_is_there(memory: MemoryCase, name: str) -> None:
    missing = set(RELIED_ON[name].split()) - set(memory.columns(name))
    assert not missing


@pytest.mark.parametrize("name", ENUMS)
def test_a_type_has_the_words_that_others_rely_on(memory: MemoryCase, name: str) -> None:
    assert memory.run(f"SELECT enum_range(NULL::{name})").rows == [(ENUMS[name],)]


def test_stages_have_the_documented_names_and_order(memory: MemoryCase) -> None:
    with memory.trial():
        memory.insert(
            "server_request",
            {"run_id": "default", "source_id": 1, "line_no": 1, "request_id": "r1", "measured_by": "span"},
        )
        found = memory.run("SELECT stage FROM request_stage ORDER BY stage_index").rows
    stages = "client_wait network_in tokenize step_wait queue kv_alloc prefill sample stream_out decode unaccounted"
    assert [row[0] for row in found] == stages.split()


def test_every_public_table_and_view_says_its_grain_first(
    relations: dict[str, tuple[str, str | None]],
) -> None:
    wrong = {
        name: comment
        for name, (_, comment) in relations.items()
        if not (comment or "").startswith("One row per ")
    }
    assert not wrong


def test_every_public_column_has_a_comment(columns: list[tuple[str, str, str, str | None]]) -> None:
    assert not [f"{name}.{column}" for name, column, _, comment in columns if not comment]


def test_a_column_s_suffix_says_its_type(columns: list[tuple[str, str, str, str | None]]) -> None:
    wrong = [
        f"{name}.{column} {kind}"
        for name, column, kind, _ in columns
        for suffix, expected in SUFFIX_TYPES.items()
        if column.endswith(suffix) and kind != expected and (column, kind) not in EXCEPTIONS
    ]
    assert not wrong


def test_no_exception_is_left_over(columns: list[tuple[str, str, str, str | None]]) -> None:
    assert set(EXCEPTIONS) <= {(column, kind) for _, column, kind, _ in columns}


def test_client_values_are_named_so(columns: list[tuple[str, str, str, str | None]]) -> None:
    stamps = [column for name, column, kind, _ in columns if name == "client_request" and kind == "TIMESTAMP"]
    assert stamps
    assert all(column.startswith("client_") for column in stamps)


def test_every_fact_names_its_run_source_and_line(
    memory: MemoryCase, relations: dict[str, tuple[str, str | None]]
) -> None:
    for name, (kind, _) in relations.items():
        if kind == "table" and name not in NO_FACTS:
            found = memory.columns(name)
            assert list(found)[:3] == ["run_id", "source_id", "line_no"], name
            assert [found[key].type for key in ("run_id", "source_id", "line_no")] == [
                "VARCHAR",
                "INTEGER",
                "BIGINT",
            ]
            assert all(found[key].required for key in ("run_id", "source_id", "line_no")), name


def test_helpers_of_views_are_private(relations: dict[str, tuple[str, str | None]]) -> None:
    assert {name for name in relations if name.startswith("_")} >= {"_server_meaning", "_request_timing"}
    assert not {name for name in RELIED_ON if name.startswith("_")}


def test_macros_are_private(memory: MemoryCase) -> None:
    macros = memory.run("SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal").rows
    assert macros
    assert all(name.startswith("_") for (name,) in macros)
