"""Writes an invented vLLM V1 server log of any size: ``make_server_log.py MEGABYTES FILE [--seed N]``.

The lines have the forms of vLLM 0.32 with ``--enable-log-requests``, in the proportions of a busy server: per request a
Received, an Added and an access line, now and then an abort or a failure; a stats line every ten seconds; probes of
/health and /metrics; a few warnings; tracebacks.  Arrivals come in waves, so the queue fills and empties.  The same seed
gives the same bytes.  For measuring only: no time or number in it was ever observed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
from collections import Counter
from collections.abc import Iterator
from math import sin
from pathlib import Path
from typing import Final

START: Final = datetime.datetime(2026, 11, 20, 3, 0, 0)
SEATS: Final = 256
SERVER: Final = "(APIServer pid=1042)"
ENGINE: Final = "(EngineCore pid=1189)"
BLOCK_SECONDS: Final = 10
"""Seconds of log between two stats lines."""

PARAMS: Final = (
    "SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, repetition_penalty=1.0, temperature={temperature}, "
    "top_p=0.95, top_k=-1, min_p=0.0, seed=None, stop=[], stop_token_ids=[], bad_words=[], include_stop_str_in_output=False, "
    "ignore_eos=False, max_tokens={max_tokens}, min_tokens=0, logprobs=None, prompt_logprobs=None, skip_special_tokens=True, "
    "spaces_between_special_tokens=True, structured_outputs=None, extra_args=None)"
)
OPENING: Final = (
    "{server} INFO {stamp} [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0",
    "{server} INFO {stamp} [api_utils.py:286] non-default args: {{'model_tag': 'some/model-8b', 'max_model_len': 16384, "
    "'max_num_seqs': 256, 'enable_log_requests': True}}",
    "{engine} INFO {stamp} [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='some/model-8b', "
    "dtype=torch.bfloat16, max_seq_len=16384, tensor_parallel_size=1, pipeline_parallel_size=1, enable_prefix_caching=True",
    "{engine} INFO {stamp} [kv_cache_utils.py:2327] GPU KV cache size: 262,144 tokens",
    "{engine} INFO {stamp} [core.py:402] init engine (profile, create kv cache, warmup model) took 31.89 s",
    "{server} INFO {stamp} [entry.py:140] Starting vLLM server on http://0.0.0.0:8000",
    "INFO:     Started server process [1042]",
    "INFO:     Application startup complete.",
)
TRACEBACK: Final = (
    "ERROR:    Exception in ASGI application",
    "Traceback (most recent call last):",
    '  File "/opt/vllm/lib/python3.12/site-packages/uvicorn/protocols/http/httptools_impl.py", line 422, in run_asgi',
    "    result = await app(  # type: ignore[func-returns-value]",
    "             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    '  File "/opt/vllm/lib/python3.12/site-packages/starlette/middleware/errors.py", line 164, in __call__',
    "    await self.app(scope, receive, _send)",
    "TimeoutError: chat template took too long",
)
WARNINGS: Final = (
    "[hf.py:985] Chat template render timed out; executor pool replaced (1 worker(s)).",
    "[system_utils.py:255] Found ulimit of 20000 and failed to automatically increase with error current limit exceeds maximum.",
)


class ServerLog:
    """Lines of the log, with a count of each kind as they are made."""

    def __init__(self, seed: int) -> None:
        self.written: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._waiting = 0.0
        self._stamp = ""

    def lines(self) -> Iterator[str]:
        """The log without end, in the order of time."""
        self._stamp = f"{START:%m-%d %H:%M:%S}"
        for line in OPENING:
            yield line.format(server=SERVER, engine=ENGINE, stamp=self._stamp)
        begin = 0
        while True:
            rate = max(1.0, 60 + 50 * sin(begin / 300) + self._random.gauss(0, 5))
            yield from self._ten_seconds(begin, rate)
            yield self._stats(rate)
            begin += BLOCK_SECONDS

    def _ten_seconds(self, begin: int, rate: float) -> Iterator[str]:
        draw, elapsed, probed = self._random, 0.0, 0.0
        while (elapsed := elapsed + draw.expovariate(rate)) < BLOCK_SECONDS:
            self._stamp = f"{START + datetime.timedelta(seconds=begin + elapsed):%m-%d %H:%M:%S}"
            if elapsed >= probed:
                probed = elapsed + 5
                yield self._access("GET", "/health", "200 OK", f"10.0.0.1:{draw.randrange(20000, 60000)}")
                yield self._access("GET", "/metrics", "200 OK", f"10.0.0.2:{draw.randrange(20000, 60000)}")
            yield from self._request()
            if draw.random() < 0.0002:
                self.written["warnings"] += 1
                yield f"{SERVER} WARNING {self._stamp} {draw.choice(WARNINGS)}"

    def _request(self) -> Iterator[str]:
        draw, head = self._random, f"{SERVER} INFO {self._stamp}"
        request_id = f"chatcmpl-{draw.getrandbits(128):032x}"
        peer = f"10.0.{draw.randrange(256)}.{draw.randrange(1, 255)}:{draw.randrange(20000, 60000)}"
        luck = draw.random()
        if luck < 0.002:
            yield self._access("POST", "/v1/chat/completions", "400 Bad Request", peer)
            return
        if luck < 0.0022:
            self.written["tracebacks"] += 1
            yield self._access("POST", "/v1/chat/completions", "500 Internal Server Error", peer)
            yield from TRACEBACK
            return
        self.written["requests"] += 1
        params = PARAMS.format(
            temperature=draw.choice((0.0, 0.2, 0.7, 1.0)), max_tokens=draw.choice((64, 256, 512, 1024, 4096))
        )
        yield f"{head} [request_logger.py:65] Received request {request_id}: params: {params}, lora_request: None."
        yield self._access("POST", "/v1/chat/completions", "200 OK", peer)
        internal = f"{request_id}-{draw.getrandbits(32):08x}"
        yield f"{head} [async_llm.py:446] Added request {internal}."
        if luck > 0.99:
            self.written["aborts"] += 1
            yield f"{head} [async_llm.py:922] Aborted request(s) {internal}."

    def _access(self, method: str, path: str, status: str, peer: str) -> str:
        self.written["access_lines"] += 1
        return f'{SERVER} INFO:     {peer} - "{method} {path} HTTP/1.1" {status}'

    def _stats(self, rate: float) -> str:
        self.written["stats_lines"] += 1
        self._waiting = max(0.0, self._waiting + (rate - 70) * 4)
        running = SEATS if self._waiting else round(SEATS * rate / 110)
        usage = min(99.9, running / SEATS * 80 + self._random.uniform(0, 15))
        return (
            f"{SERVER} INFO {self._stamp} [loggers.py:335] Engine 000: Avg prompt throughput: {rate * 310:.1f} tokens/s, "
            f"Avg generation throughput: {running * 21.5:.1f} tokens/s, Running: {running} reqs, "
            f"Waiting: {round(self._waiting)} reqs, GPU KV cache usage: {usage:.1f}%, "
            f"Prefix cache hit rate: {self._random.uniform(38, 44):.1f}%"
        )


def write_server_log(path: Path, size_bytes: int, seed: int) -> Counter[str]:
    """Write lines until the file has the size; returns how many of each kind are in it."""
    log, written = ServerLog(seed), 0
    lines = log.lines()
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        while written < size_bytes:
            line = next(lines)
            written += len(line.encode()) + 1
            stream.write(line + "\n")
            log.written["lines"] += 1
    return log.written


def main() -> None:
    """Write the log and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("megabytes", type=float)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    print(json.dumps(write_server_log(asked.file, int(asked.megabytes * 1e6), asked.seed)))


if __name__ == "__main__":
    main()
