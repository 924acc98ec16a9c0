"""``sources``: which questions the files answer, and the script that records what they do not."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from tracelens import next_time
from tracelens.cli import cli
from tracelens.next_time import Argument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from click.testing import Result

SHELLCHECK = Path(sys.executable).parent / "shellcheck"

FIRST_RELEASE = {
    "--enable-log-requests": (10, 1),
    "--otlp-traces-endpoint": (5, 1),
    "--enable-per-request-metrics": (25, 0),
    "--enable-prompt-tokens-details": (6, 4),
    "--enable-logging-iteration-details": (14, 0),
}
"""Which release of vLLM (0.x.y) brought an argument, from its release notes and engine arguments."""


def script_of(case: Path) -> str:
    result = CliRunner().invoke(cli, ["sources", "--next-time", "-c", str(case)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def log_of(version: str) -> str:
    return (
        f"INFO 11-29 12:00:00 [api_server.py:1] vLLM API server version {version}\n"
        "INFO 11-29 12:00:10 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s, "
        "Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%\n"
    )


@pytest.fixture(params=["0.9.1", "0.11.0", "0.14.1", "0.32.0"])
def versioned(
    request: pytest.FixtureRequest, tmp_path: Path, ingested: Callable[..., Any]
) -> tuple[str, Path]:
    """A version of vLLM and a case of its log."""
    log = tmp_path / "server.log"
    log.write_text(log_of(request.param))
    ingested(tmp_path / "c.duckdb", log)
    return request.param, tmp_path / "c.duckdb"


def test_the_list_ends_with_every_stage_and_side(run: Callable[..., Result]) -> None:
    shown = run("sources", "--format", "table").stdout
    answered = shown[shown.index("What these files answer") :]
    for subject in ("client_wait", "queue", "prefill", "decode", "client TTFT", "queue length", "GPU busy"):
        assert re.search(rf"^[●◐○·]  {subject}", answered, re.MULTILINE), subject
    assert re.search(r"^●  queue .*observed in (\d+) of \1 requests", answered, re.MULTILINE)


def test_what_is_closed_says_what_would_open_it(log_case: Path, run: Callable[..., Result]) -> None:
    rows = json.loads(run("query", "coverage", "-c", str(log_case), "--format", "json").stdout)
    closed = [row for row in rows if row["state"] == "closed"]
    assert {"client TTFT", "GPU busy", "engine steps"} <= {row["subject"] for row in closed}
    assert all(row["switch_on"] for row in closed)


def test_a_script_is_valid_bash_and_clean_for_shellcheck(
    versioned: tuple[str, Path], case: Path, log_case: Path, tmp_path: Path
) -> None:
    for number, one in enumerate((versioned[1], case, log_case)):
        path = tmp_path / f"record{number}.sh"
        path.write_text(script_of(one))
        assert subprocess.run(["bash", "-n", path], capture_output=True, check=False).returncode == 0
        checker = shutil.which("shellcheck") or str(SHELLCHECK)
        found = subprocess.run([checker, path], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout


def test_a_script_names_only_arguments_that_its_version_knows(versioned: tuple[str, Path]) -> None:
    version, case = versioned
    release = tuple(int(part) for part in version.split(".")[1:])
    script = script_of(case)
    assert f"for vLLM {version}" in script
    named = set(re.findall(r"^  (--[a-z-]+)", script, re.MULTILINE))
    assert named <= set(FIRST_RELEASE)
    assert all(FIRST_RELEASE[argument] <= release for argument in named)
    # Between 0.8 and 0.10.1 the V1 engine had no spans, though the argument was there.
    assert ("--otlp-traces-endpoint" in named) == (release >= (10, 2))
    assert ("--enable-log-requests" in named) == (release >= (10, 1))


def test_nothing_missing_is_no_script() -> None:
    assert (
        next_time.script(
            [{"subject": "queue", "state": "observed", "server_subject": "server times"}], [], None
        )
        == ""
    )


def test_a_part_stands_in_the_script_only_where_it_records_something_missing() -> None:
    rows = [
        {"subject": "GPU power", "state": "closed", "server_subject": None},
        {"subject": "client TTFT", "state": "observed", "server_subject": None},
    ]
    script = next_time.script(rows, [Argument("lifecycle", "--enable-log-requests", "note")], "0.32.0")
    assert "nvidia-smi dmon" in script
    assert "send_one" not in script
    assert "--enable-log-requests" not in script


CHUNKS = (
    {"id": "chatcmpl-1", "choices": [{"delta": {"role": "assistant", "content": ""}}]},
    {"id": "chatcmpl-1", "choices": [{"delta": {"content": "Hello"}}]},
    {"id": "chatcmpl-1", "choices": [{"delta": {"content": " there"}, "finish_reason": "stop"}]},
    {"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
)


class _Server(http.server.BaseHTTPRequestHandler):
    seen: dict[str, str]

    def do_POST(self) -> None:
        type(self).seen = {name.lower(): text for name, text in self.headers.items()}
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for chunk in CHUNKS:
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), _Server) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()


def test_the_script_s_client_writes_what_ingest_reads(
    server: str, log_case: Path, tmp_path: Path, ingested: Callable[..., Any]
) -> None:
    path = tmp_path / "record.sh"
    path.write_text(script_of(log_case))
    sent = subprocess.run(
        ["bash", str(path), "client", "m", "say hello"],
        env={**os.environ, "BASE_URL": server, "FOLDER": str(tmp_path / "out"), "no_proxy": "*"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert sent.returncode == 0, sent.stderr
    ingested(tmp_path / "c.duckdb", tmp_path / "out" / "client.jsonl")
    found = CliRunner().invoke(
        cli, ["sql", "SELECT * FROM client_request", "-c", str(tmp_path / "c.duckdb"), "--format", "json"]
    )
    row = json.loads(found.stdout)[0]
    assert row["client_id"] == _Server.seen["x-request-id"]
    assert (row["streamed"], row["status"], row["http_status"]) == (True, "ok", 200)
    assert (row["input_tokens"], row["output_tokens"], row["chunk_count"]) == (7, 2, 2)
    assert 0 < row["client_ttft_s"] < row["client_e2e_s"]
