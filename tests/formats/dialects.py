"""Records of a vLLM log with hand-known facts, and the ways in which logs are wrapped, for the tests of dialects."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from tracelens.formats.base import Chunk, Claim, Head, Parsed
from tracelens.formats.server import vllm_log

Fact = tuple[Any, ...]

NUMBERS = (
    "prompt_tps", "generation_tps", "running_count", "waiting_count", "kv_cache_usage_ratio", "prefix_cache_hit_ratio",
    "preemption_count", "engine_index",
)  # fmt: skip


@dataclass(frozen=True)
class Known:
    """A record: its message, and the facts that it holds.  Access lines have no header."""

    message: str
    facts: list[Fact] = field(default_factory=list)
    level: str = "INFO"
    process: str = "APIServer pid=7"
    origin: str = "async_llm.py:42"
    is_access: bool = False

    def plain(self, second: int = 0, *, prefix: bool = True, bracket: bool = True) -> str:
        """The line as vLLM writes it."""
        head = f"({self.process}) " if prefix else ""
        if self.is_access:
            return f"{head}INFO:     {self.message}"
        origin = f"[{self.origin}]" if bracket else f"{self.origin}]"
        return f"{head}{self.level} 11-29 12:{second // 60:02d}:{second % 60:02d} {origin} {self.message}"


def event(kind: str, logged_id: str, **values: Any) -> Fact:
    return ("event", kind, logged_id, tuple(sorted(values.items())))


def sample(*numbers: float | None) -> Fact:
    return ("sample", *numbers)


def access(method: str, path: str, status: int) -> Fact:
    return ("access", method, path, status)


def setting(key: str, value: str) -> Fact:
    return ("setting", key, value)


PARAMS = (
    "SamplingParams(n={n}, presence_penalty=0.0, temperature=0.7, stop=[], max_tokens={cap}, min_tokens=0)"
)
QUOTED = (
    "INFO 11-29 12:00:00 [a.py:1] Added request evil. Engine 000: Avg prompt throughput: 9.9 tokens/s, Avg generation "
    "throughput: 9.9 tokens/s, Running: 99 reqs, Waiting: 99 reqs, GPU KV cache usage: 99.9%, Prefix cache hit rate: 99.9%"
)
TRICKS = (
    QUOTED,
    r"\nINFO 11-29 12:00:00 [a.py:1] Finished request evil.\n",
    r"2025-10-21T12:34:56.789012345Z stdout F (EngineCore pid=9) INFO 11-29 12:00:00 [a.py:1] Aborted request(s) evil.",
    '{"log":"INFO 11-29 12:00:00 [a.py:1] Added request evil.", "stream":"stdout"} {"message": "Added request evil.", "level": "INFO"}',
    'INFO:     6.6.6.6:66 - "POST /evil HTTP/1.1" 500 Internal Server Error',
    ", params: SamplingParams(n=66, max_tokens=66), prompt_token_ids: [6, 6], lora_request: None.",
    "vllm-1  | INFO 11-29 12:00:00 [a.py:1] Added request evil.",
    "12%|#2   | 1/9 [00:01<00:09, 1.1it/s]INFO 11-29 12:00:00 [a.py:1] EngineCore encountered a fatal error.",
    "non-default args: {\\'max_num_seqs\\': 666}",
)  # fmt: skip


def quoted(text: str) -> str:
    """The text inside Python's repr, which has no line ends; some tricks are written with their escapes already."""
    return text if "\\" in text else repr("'" + text)[2:-1]


def _prompts() -> list[Known]:
    """Prompts, answers and bodies that quote log lines."""
    known = []
    for number, trick in enumerate(TRICKS):
        params = PARAMS.format(n=1, cap=100 + number)
        prompt = trick.replace("'", "\\'") if "\\'" not in trick else trick
        known.append(
            Known(
                f"Received request cmpl-t{number}: prompt: 'say {prompt} now', params: {params}, prompt_token_ids: [5, 6, 7], "
                "lora_request: None, prompt_adapter_request: None.",
                [
                    event(
                        "received",
                        f"cmpl-t{number}",
                        max_tokens=100 + number,
                        sequence_count=1,
                        input_tokens=3,
                    )
                ],
                origin="logger.py:39",
            )
        )
        known.append(
            Known(
                f"Generated response cmpl-t{number}: output: 'said {prompt}', output_token_ids: [1, 2], finish_reason: stop",
                [event("finished", f"cmpl-t{number}", finish_reason="stop", output_tokens=2)],
                origin="logger.py:71",
            )
        )
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": trick}], "stream": True})
        known.append(Known(f"Request t{number} JSON body: {body}", origin="request_logger.py:84"))
    return known


STATS = [
    Known("Engine 000: Avg prompt throughput: 8211.6 tokens/s, Avg generation throughput: 2044.3 tokens/s, Running: 120 reqs, "
          "Waiting: 31 reqs, Preemptions: 6, GPU KV cache usage: 98.7%, Prefix cache hit rate: 21.0%, External prefix cache hit "
          "rate: 7.5%, MM cache hit rate: 0.0%",
          [sample(8211.6, 2044.3, 120, 31, 0.987, 0.21, 6, 0)], origin="loggers.py:248"),
    Known("Engine 003: Avg prompt throughput: 12.1 tokens/s, Avg generation throughput: 511.9 tokens/s, Running: 18 reqs, Waiting: "
          "2 reqs, GPU KV cache usage: 52.0%, Prefix cache hit rate: 67.1%",
          [sample(12.1, 511.9, 18, 2, 0.52, 0.671, None, 3)], origin="loggers.py:127"),
    Known("Avg prompt throughput: 3120.7 tokens/s, Avg generation throughput: 410.2 tokens/s, Running: 44 reqs, Swapped: 0 reqs, "
          "Pending: 12 reqs, GPU KV cache usage: 96.8%, CPU KV cache usage: 0.0%.",
          [sample(3120.7, 410.2, 44, 12, 0.968, None, None, 0)], origin="metrics.py:349"),
    Known("2 Engines Aggregated: Avg prompt throughput: 16010.0 tokens/s, Avg generation throughput: 4010.9 tokens/s, Running: 233 "
          "reqs, Waiting: 31 reqs, GPU KV cache usage: 81.2%, Prefix cache hit rate: 20.1%",
          [sample(16010.0, 4010.9, 233, 31, 0.812, 0.201, None, None)], origin="loggers.py:248"),
    Known("Avg prompt tput: 1204.4 toks/s, Avg generation tput: 640.0 toks/s, Reqs Running: 18, Waiting: 4, Deferred: 3 reqs, "
          "Preemptions: 1, GPU KV cache used: 44.0%, Prefix cache hit rate: 18.2%, External prefix cache hit rate: 3.1%",
          [sample(1204.4, 640.0, 18, 4, 0.44, 0.182, 1, 0)], process="RustFrontend pid=41", origin="log_stats.rs:268"),
]  # fmt: skip

REQUESTS = [
    Known("Added request chatcmpl-9f3ad1c2b4e5f607-1c9be07a.", [event("added", "chatcmpl-9f3ad1c2b4e5f607-1c9be07a")]),
    Known("Added request 0_cmpl-job-55-0-77aa01fe.", [event("added", "0_cmpl-job-55-0-77aa01fe")]),
    Known("Finished request cmpl-4f1d-0.", [event("finished", "cmpl-4f1d-0")], origin="async_llm_engine.py:120"),
    Known("Aborted request cmpl-92ab-0.", [event("aborted", "cmpl-92ab-0")], origin="async_llm_engine.py:154"),
    Known("Aborted request(s) a1,b2-1c9be07a.", [event("aborted", "a1"), event("aborted", "b2-1c9be07a")]),
    Known("Request chatcmpl-7 aborted.", [event("aborted", "chatcmpl-7")]),
    Known("Request chatcmpl-8 failed (engine dead).", [event("failed", "chatcmpl-8")]),
    Known(f"Received request chatcmpl-new: params: {PARAMS.format(n=2, cap=256)}, lora_request: None.",
          [event("received", "chatcmpl-new", max_tokens=256, sequence_count=2)], origin="request_logger.py:62"),
    Known("Generated response chatcmpl-d (streaming delta): output: 'Hi', output_token_ids: [13048], finish_reason: None",
          [event("first_token", "chatcmpl-d")], origin="logger.py:71"),
    Known('chat_completions{request_id=chatcmpl-r engine_request_id=chatcmpl-r-0badcafe}: chat completion finished stream=true '
          'model=acme/x prompt_tokens=211 output_tokens=96 finish_reason="stop"',
          [event("finished", "chatcmpl-r", finish_reason="stop", input_tokens=211, output_tokens=96)],
          process="RustFrontend pid=41", origin="chat_completions.rs:457"),
    Known("Sequence group cmpl-s-0 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can "
          "affect the end-to-end performance. total_num_cumulative_preemption=51",
          [event("preempted", "cmpl-s-0")], level="WARNING", origin="scheduler.py:1077"),
]  # fmt: skip

ACCESSES = [
    Known('10.20.0.40:38222 - "POST /v1/chat/completions HTTP/1.1" 200 OK', [access("POST", "/v1/chat/completions", 200)], is_access=True),
    Known('10.20.0.41:1 - "GET /health HTTP/1.1" 503 Service Unavailable', [access("GET", "/health", 503)], is_access=True),
    Known('127.0.0.1:9 - "GET /metrics?x=1 HTTP/1.1" 200 OK', [access("GET", "/metrics", 200)], is_access=True),
]  # fmt: skip

SETTINGS = [
    Known("vLLM API server version 0.14.1", [setting("vllm_version", "0.14.1")], origin="api_server.py:1272"),
    Known("non-default args: {'model_tag': 'acme/x', 'max_num_seqs': 384, 'enable_log_requests': True}",
          [setting("model_tag", "acme/x"), setting("max_num_seqs", "384"), setting("enable_log_requests", "True")],
          origin="utils.py:263"),
    Known("Chunked prefill is enabled with max_num_batched_tokens=8192.",
          [setting("max_num_batched_tokens", "8192"), setting("enable_chunked_prefill", "True")], origin="scheduler.py:239"),
    Known("Using max model len 65536", [setting("max_model_len", "65536")], origin="model.py:1510"),
    Known("# GPU blocks: 53128, # CPU blocks: 4096",
          [setting("kv_cache_device", "GPU"), setting("gpu_blocks", "53128"), setting("cpu_blocks", "4096")],
          origin="gpu_executor.py:45"),
]  # fmt: skip

OTHERS = [
    Known("Iteration(15769): 2 context requests, 4096 context tokens, 118 generation requests, 118 generation tokens, iteration "
          "elapsed time: 212.08 ms", [("step", 15769, 2, 4096, 118, 0.21208)], process="EngineCore_DP0 pid=88", origin="core.py:344"),
    Known("Engine 000: MFU: 312.4 TF/s/GPU 1904.7 GB/s/GPU", origin="perf.py:1215"),
    Known("Starting vLLM API server on http://0.0.0.0:8000", origin="api_server.py:1090"),
    Known("The following fields were present in the request but ignored: {'strict'}", level="WARNING", origin="protocol.py:112"),
    Known("No available shared memory broadcast block found in 60 seconds.", process="EngineCore_DP0 pid=88", origin="shm_broadcast.py:501"),
    Known("EngineCore encountered a fatal error.", level="ERROR", process="EngineCore pid=77", origin="core.py:710"),
]  # fmt: skip

POOL = [*STATS, *REQUESTS, *ACCESSES, *SETTINGS, *OTHERS, *_prompts()]


def facts(tables: dict[str, pl.DataFrame] | Any) -> list[Fact]:
    """What a parse says, in the shape of `Known.facts`, in a fixed order."""
    found: list[Fact] = []
    for row in _rows(tables, "request_event"):
        names = ("finish_reason", "input_tokens", "output_tokens", "max_tokens", "sequence_count")
        found.append(
            event(
                row["event"],
                row["logged_id"],
                **{name: row[name] for name in names if row.get(name) is not None},
            )
        )
    found += [sample(*(row[name] for name in NUMBERS)) for row in _rows(tables, "engine_sample")]
    found += [access(row["method"], row["path"], row["status"]) for row in _rows(tables, "access_line")]
    found += [
        setting(row["key"], row["value"])
        for row in _rows(tables, "server_setting")
        if row["basis"] == "stated"
    ]
    found += [
        (
            "step",
            row["step_index"],
            row["context_requests"],
            row["context_tokens"],
            row["generation_requests"],
            row["elapsed_s"],
        )
        for row in _rows(tables, "engine_step")
    ]
    return ordered(found)


def ordered(found: list[Fact]) -> list[Fact]:
    """Sorted, so that only what is said counts."""
    return sorted(found, key=repr)


def _rows(tables: Any, name: str) -> list[dict[str, Any]]:
    return tables[name].to_dicts() if name in tables else []


def expected(known: list[Known]) -> list[Fact]:
    return ordered([fact for one in known for fact in one.facts])


def frame_of(lines: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )


def claim_of(lines: list[str]) -> Claim:
    claim = vllm_log.sniff(Head(tuple(line.rstrip("\r") for line in lines), complete=True))
    assert claim is not None, lines[:3]
    return claim


def parsed(lines: list[str]) -> Parsed:
    """Lines (without line ends) read as one chunk, as ingest would."""
    result = vllm_log.parse(Chunk(frame_of(lines), claim_of(lines)))
    assert result.understood + result.issues.height == len(lines)
    assert result.issues["line_no"].is_unique().all()
    return result


def instant(second: int) -> datetime:
    """The wrappers' time of a record."""
    return datetime(2025, 11, 29, 20, 0, 0, 123456) + timedelta(seconds=second)


def utc(second: int, digits: str = "000") -> str:
    return instant(second).strftime("%Y-%m-%dT%H:%M:%S.%f") + digits


def millis(at: datetime) -> int:
    return (at - datetime(1970, 1, 1)) // timedelta(milliseconds=1)


CSV_STARTS = {
    "csv of instants": lambda at: f"{at.isoformat(timespec='milliseconds')}Z",
    "csv of epochs": millis,
    "csv of wall clocks": lambda at: (at + timedelta(hours=8)).strftime("%Y-%m-%d %H:%M:%S"),
}


def wrapped(name: str, line: str, second: int, stream: str = "stdout") -> str:
    """One line in a wrapper."""
    at = instant(second)
    made = {
        "cri": f"{utc(second)}Z {stream} F ",
        "timestamps": f"{utc(second)}Z ",
        "timestamps with a zone": f"{(at + timedelta(hours=2)).strftime('%Y-%m-%dT%H:%M:%S.%f')}+02:00 ",
        "cloud logging": f"{('INFO', 'ERROR')[second % 2]} {utc(second)}Z [resource.labels.containerName: vllm] ",
        "loki": f'{utc(second)}Z {{app="vllm", pod="vllm-0"}} ',
        "event": f"EVENTS\t3846{second}\t{millis(at)}\tvllm/0\t{millis(at) + 211}\t",
        "model server": f"{utc(second, '')}Z [INFO ] W-9000-vllm-stdout MODEL_LOG - ",
        "log stream": f"{utc(second, '')}+00:00 vllm/0/4021 ",
        "wall clock": f"{(at + timedelta(hours=8)).strftime('%Y-%m-%d %H:%M:%S')},123 ",
        "journald iso": f"{utc(second, '')}+0000 gpu-node-3 vllm[4021]: ",
        "journald full": f"Sat {at.strftime('%Y-%m-%d %H:%M:%S')} UTC gpu-node-3 vllm[4021]: ",
        "journald unix": f"{(at - datetime(1970, 1, 1)).total_seconds():.6f} gpu-node-3 vllm[4021]: ",
        "syslog 5424": f"<14>1 {utc(second, '')}Z gpu-node-3 vllm 4021 - - ",
        "syslog": f"{at.strftime('%b %d %H:%M:%S')} gpu-node-3 vllm[4021]: ",
        "ts": f"{at.strftime('%b %d %H:%M:%S')} ",
        "compose": "vllm_gb10-1  | ",
        "kubectl prefix": "[pod/vllm-0-abc/server] ",
        "stern": "vllm-0-abc server ",
        "outer time": f"[{(at + timedelta(hours=8)).strftime('%Y-%m-%d %H:%M:%S')}] ",
        "rank": "[1,0]<stdout>:",
        "bullet": "- ",
        "numbered": f"{second + 1:6d}\t",
    }
    if name in made:
        return made[name] + line
    if name in CSV_STARTS:
        return f'{CSV_STARTS[name](at)},gpu-1,"{line.replace(chr(34), chr(34) * 2)}",vllm'
    return json.dumps(_object(name, line, second, stream), ensure_ascii=second % 2 == 0)


def _object(name: str, line: str, second: int, stream: str) -> dict[str, Any]:
    if name == "docker json":
        return {"log": line + "\n", "stream": stream, "time": utc(second) + "Z"}
    if name == "fluent bit":
        return {
            "date": round((instant(second) - datetime(1970, 1, 1)).total_seconds(), 6),
            "log": line,
            "stream": stream,
            "logtag": "F",
        }
    if name == "journald json":
        micros = (instant(second) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        return {
            "__REALTIME_TIMESTAMP": str(micros),
            "_PID": "4021",
            "SYSLOG_IDENTIFIER": "vllm",
            "MESSAGE": line,
        }
    collected = {"@timestamp": utc(second, "") + "Z", "level": "info", "message": line}
    return collected if name == "collector" else {"_index": "logs", "_id": f"{second}", "_source": collected}


LINE_WRAPPERS = (
    "cri", "timestamps", "timestamps with a zone", "cloud logging", "csv of instants", "csv of epochs", "csv of wall clocks", "loki", "event",
    "model server", "log stream", "wall clock", "journald iso", "journald full", "journald unix", "syslog 5424", "syslog", "ts",
    "compose", "kubectl prefix", "stern", "outer time", "rank", "bullet", "numbered",
)  # fmt: skip
JSON_WRAPPERS = ("docker json", "fluent bit", "journald json", "collector", "elasticsearch")
NESTED = (
    ("compose", "timestamps"), ("kubectl prefix", "timestamps"), ("stern", "timestamps"), ("bullet", "timestamps"),
    ("bullet", "compose"), ("numbered", "cri"), ("syslog", "compose"), ("outer time", "bullet"), ("journald iso", "rank"),
    ("compose", "docker json"), ("timestamps", "journald json"),
)  # fmt: skip
