"""One request in many files: server, client, gateways and captures go in together, and none is counted twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tracelens
from tracelens.ingestion import State, ingest

SAMPLES = Path(__file__).parents[2] / "sample_logs"
Rows = Callable[[Path, str], list[dict[str, Any]]]


def span(request_id: str, start_ns: int) -> str:
    told = {
        "gen_ai.latency.time_to_first_token": 0.8,
        "gen_ai.latency.e2e": 2.0,
        "gen_ai.latency.time_in_queue": 0.5,
    }
    attributes = [{"key": key, "value": {"doubleValue": value}} for key, value in told.items()]
    attributes.append({"key": "gen_ai.request.id", "value": {"stringValue": request_id}})
    one = {"name": "llm_request", "startTimeUnixNano": str(start_ns), "attributes": attributes}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]})


def access(request_id: str, end_s: float, status: int = 200) -> str:
    return json.dumps(
        {
            "msec": end_s,
            "request_id": request_id,
            "http_x_request_id": "",
            "method": "POST",
            "uri": "/v1/chat/completions",
            "status": status,
            "request_time": 2.05,
            "upstream_header_time": "0.01",
            "upstream_response_time": "2.04",
        }
    )


def client(request_id: str, sent_s: float) -> str:
    return json.dumps(
        {"client_id": request_id, "sent_at": sent_s, "ttft_s": 0.9, "e2e_s": 2.1, "stream": True}
    )


def written(folder: Path, **files: list[str]) -> list[str]:
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return [str(folder / name) for name in files]


def test_client_gateway_and_server_of_one_request_are_one(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    start = 1_795_956_659
    names = [f"{n:032x}" for n in range(3)]
    report = ingest(
        written(
            tmp_path,
            spans=[span(f"chatcmpl-{name}", (start + n) * 10**9) for n, name in enumerate(names)],
            nginx=[access(name, start + n + 2.06) for n, name in enumerate([*names, "f" * 32])],
            client=[client(name, start + n - 0.02) for n, name in enumerate(names[:2])],
        ),
        case,
    )
    assert [file.state for file in report.files] == [State.READ] * 3
    found = rows_of(
        case,
        "SELECT request_id, client_ttft_s, client_e2e_s, queue_s, http_status FROM request ORDER BY request_id",
    )
    assert [(row["client_ttft_s"], row["client_e2e_s"], row["queue_s"]) for row in found] == [
        (0.9, 2.1, 0.5),
        (0.9, 2.1, 0.5),
        # The client's file lacks the third: there the gateway is what is left.  The last one reached no server.
        (None, 2.05, 0.5),
        (None, 2.05, None),
    ]
    told = rows_of(case, "SELECT count(*) AS n FROM client_request WHERE is_secondary")
    assert told == [{"n": 2}]
    with tracelens.open(str(case)) as opened:
        lines = opened.query("request_evidence", request=f"chatcmpl-{names[0]}").dicts()
    assert [(Path(line["path"]).name, line["what"]) for line in lines] == [
        ("client", "client"),
        ("spans", "span"),
        ("nginx", "http gateway"),
    ]


def test_a_second_ingest_settles_anew_who_tells_a_request(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    start = 1_795_956_659
    ingest(written(tmp_path, nginx=[access("a" * 32, start + 2.06)]), case)
    assert rows_of(case, "SELECT count(*) AS n FROM request WHERE client_ttft_s IS NULL") == [{"n": 1}]
    ingest(written(tmp_path, client=[client("a" * 32, start)]), case)
    assert rows_of(case, "SELECT client_ttft_s FROM request") == [{"client_ttft_s": 0.9}]


def test_every_sample_of_this_kind_goes_in_whole(case: Path, rows_of: Rows) -> None:
    names = (
        "span_documents", "dynamo_trace", "sglang_requests", "access_json", "access_text", "litellm", "sse_capture",
        "curl_trace", "curl_responses", "curl_timings", "load_tools",
    )  # fmt: skip
    files = [str(max((SAMPLES / name).glob("[a-z0-9]*.*"))) for name in names]
    report = ingest(files, case)
    assert {file.state for file in report.files} == {State.READ}
    assert sum(file.skipped for file in report.files) == 0
    assert rows_of(case, "SELECT count(*) - count(DISTINCT request_id) AS twice FROM request") == [
        {"twice": 0}
    ]
