"""Writes an invented vLLM server log of any size: ``make_server_log.py MEGABYTES FILE [--dialect D] [--seed N]``.

The lines have the forms of vLLM 0.32 with ``--enable-log-requests`` (or of 0.6, dialect ``v0``), in the proportions of a busy
server: per request a Received, an Added and an access line, now and then an abort or a failure; a stats line every ten
seconds; probes of /health and /metrics; a few warnings; tracebacks.  What happens and when comes from serving.py.  The same
seed gives the same bytes.  For measuring only: no time or number in it was ever observed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from serving import Moment, Request, State, moments

START: Final = datetime.datetime(2026, 11, 20, 3, 0, 0)
STATS_S: Final = 10
POST: Final = ("POST", "/v1/chat/completions")
PROBE_S: Final = 5

PARAMS: Final = (
    "SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, repetition_penalty=1.0, temperature={temperature}, "
    "top_p=0.95, top_k=-1, min_p=0.0, seed=None, stop=[], stop_token_ids=[], bad_words=[], include_stop_str_in_output=False, "
    "ignore_eos=False, max_tokens={max_tokens}, min_tokens=0, logprobs=None, prompt_logprobs=None, skip_special_tokens=True, "
    "spaces_between_special_tokens=True, structured_outputs=None, extra_args=None)"
)
OPENING: Final = (
    "(APIServer pid=1042) INFO {stamp} [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0",
    "(APIServer pid=1042) INFO {stamp} [api_utils.py:286] non-default args: {{'model_tag': 'some/model-8b', 'max_model_len': 16384, "
    "'max_num_seqs': 256, 'enable_log_requests': True}}",
    "(EngineCore pid=1189) INFO {stamp} [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='some/model-8b', "
    "dtype=torch.bfloat16, max_seq_len=16384, tensor_parallel_size=1, pipeline_parallel_size=1, enable_prefix_caching=True",
    "(EngineCore pid=1189) INFO {stamp} [kv_cache_utils.py:2327] GPU KV cache size: 458,752 tokens",
    "(EngineCore pid=1189) INFO {stamp} [core.py:402] init engine (profile, create kv cache, warmup model) took 31.89 s",
    "(APIServer pid=1042) INFO {stamp} [entry.py:140] Starting vLLM server on http://0.0.0.0:8000",
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
OPENING_V0: Final = (
    "INFO {stamp} api_server.py:528] vLLM API server version 0.6.3.post1",
    "INFO {stamp} llm_engine.py:237] Initializing an LLM engine (v0.6.3.post1) with config: model='some/model-8b', "
    "dtype=torch.bfloat16, max_seq_len=16384, tensor_parallel_size=1, pipeline_parallel_size=1, enable_prefix_caching=True",
    "INFO {stamp} gpu_executor.py:122] # GPU blocks: 28672, # CPU blocks: 1638",
    "INFO:     Started server process [1042]",
    "INFO:     Application startup complete.",
)
PARAMS_V0: Final = PARAMS.replace("extra_args=None", "guided_decoding=None").replace(
    "structured_outputs=None, ", ""
)
WORDS: Final = (
    "the",
    "queue",
    "holds",
    "what",
    "no",
    "seat",
    "can",
    "take",
    "and",
    "every",
    "token",
    "waits",
)


class ServerLog:
    """Lines of vLLM 0.32 for the moments of a server, with a count of each kind as they are made."""

    api, engine = "(APIServer pid=1042) ", "(EngineCore pid=1189) "
    opening: Iterable[str] = OPENING

    def __init__(self, seed: int) -> None:
        self.written: Counter[str] = Counter()
        self.at_s = 0.0
        self._random = random.Random(seed)
        self._before = State(0, 0, 0.0, 0, 0, 0, 0.0)

    @property
    def stamp(self) -> str:
        """The logger's stamp of now."""
        return f"{START + datetime.timedelta(seconds=self.at_s):%m-%d %H:%M:%S}"

    def begin(self) -> Iterator[str]:
        """The lines of a start."""
        for line in self.opening:
            yield line.format(stamp=self.stamp)

    def lines(self, moment: Moment) -> Iterator[str]:
        """The lines that a moment leaves in the log."""
        self.at_s = moment.at_s
        if moment.state is not None:
            yield from self._tick(moment.state)
        elif moment.request is not None and moment.kind == "arrived":
            yield from self._arrival(moment.request)
            if self._random.random() < 0.0002:
                self.written["warnings"] += 1
                yield f"{self.api}WARNING {self.stamp} {self._random.choice(WARNINGS)}"
        elif moment.request is not None and moment.kind == "ended" and moment.request.outcome == "aborted":
            self.written["aborts"] += 1
            yield self._aborted(moment.request)

    def _tick(self, state: State) -> Iterator[str]:
        if self.at_s % PROBE_S == 0:
            yield self._access("GET", "/health", "200 OK", f"10.0.0.1:{self._random.randrange(20000, 60000)}")
            yield self._access(
                "GET", "/metrics", "200 OK", f"10.0.0.2:{self._random.randrange(20000, 60000)}"
            )
        if self.at_s and self.at_s % STATS_S == 0:
            self.written["stats_lines"] += 1
            yield from self._stats(state, self._before)
            self._before = state

    def _arrival(self, request: Request) -> Iterator[str]:
        if request.outcome == "refused":
            yield self._access(*POST, "400 Bad Request", request.peer)
        elif request.outcome == "failed":
            self.written["tracebacks"] += 1
            yield self._access(*POST, "500 Internal Server Error", request.peer)
            yield from TRACEBACK
        else:
            self.written["requests"] += 1
            yield from self._received(request)

    def _received(self, request: Request) -> Iterator[str]:
        head = f"{self.api}INFO {self.stamp}"
        params = PARAMS.format(temperature=request.temperature, max_tokens=request.max_tokens)
        yield f"{head} [request_logger.py:65] Received request {request.request_id}: params: {params}, lora_request: None."
        yield self._access(*POST, "200 OK", request.peer)
        yield f"{head} [async_llm.py:446] Added request {request.request_id}-{request.internal_suffix}."

    def _aborted(self, request: Request) -> str:
        internal = f"{request.request_id}-{request.internal_suffix}"
        return f"{self.api}INFO {self.stamp} [async_llm.py:922] Aborted request(s) {internal}."

    def _access(self, method: str, path: str, status: str, peer: str) -> str:
        self.written["access_lines"] += 1
        return f'{self.api}INFO:     {peer} - "{method} {path} HTTP/1.1" {status}'

    def _stats(self, now: State, before: State) -> Iterator[str]:
        yield (
            f"{self.api}INFO {self.stamp} [loggers.py:335] Engine 000: {_throughput(now, before)}, Running: {now.running} reqs, "
            f"Waiting: {now.waiting} reqs, GPU KV cache usage: {now.kv_ratio:.1%}, "
            f"Prefix cache hit rate: {self._random.uniform(38, 44):.1f}%"
        )


class ServerLogV0(ServerLog):
    """Lines of vLLM 0.6, whose Received lines hold the prompt."""

    api = ""
    opening = OPENING_V0

    def _received(self, request: Request) -> Iterator[str]:
        params = PARAMS_V0.format(temperature=request.temperature, max_tokens=request.max_tokens)
        draw = self._random
        prompt = " ".join(draw.choices(WORDS, k=request.prompt_tokens // 8))
        yield (
            f"INFO {self.stamp} logger.py:36] Received request {request.request_id}: prompt: '<|im_start|>user\\n{prompt}"
            f"<|im_end|>\\n', params: {params}, prompt_token_ids: None, lora_request: None, prompt_adapter_request: None."
        )
        yield f"INFO {self.stamp} engine.py:290] Added request {request.request_id}."
        yield self._access(*POST, "200 OK", request.peer)

    def _aborted(self, request: Request) -> str:
        return f"INFO {self.stamp} engine.py:308] Aborted request {request.request_id}."

    def _stats(self, now: State, before: State) -> Iterator[str]:
        yield (
            f"INFO {self.stamp} metrics.py:349] {_throughput(now, before)}, Running: {now.running} reqs, Swapped: 0 reqs, "
            f"Pending: {now.waiting} reqs, GPU KV cache usage: {now.kv_ratio:.1%}, CPU KV cache usage: 0.0%."
        )


def _throughput(now: State, before: State) -> str:
    prompt, output = now.prompt_tokens - before.prompt_tokens, now.output_tokens - before.output_tokens
    return (
        f"Avg prompt throughput: {prompt / STATS_S:.1f} tokens/s, "
        f"Avg generation throughput: {output / STATS_S:.1f} tokens/s"
    )


def _plain(line: str, at: str) -> str:
    return line


def _docker(line: str, at: str) -> str:
    return f"{at} {line}"


def _kubernetes(line: str, at: str) -> str:
    return f"{at} stderr F {line}"


def _docker_json(line: str, at: str) -> str:
    return json.dumps({"log": line + "\n", "stream": "stderr", "time": at})


Dialect = tuple[type[ServerLog], Callable[[str, str], str]]
DIALECTS: Final[Mapping[str, Dialect]] = {
    "v1": (ServerLog, _plain),
    "v0": (ServerLogV0, _plain),
    "docker": (ServerLog, _docker),
    "kubernetes": (ServerLog, _kubernetes),
    "docker-json": (ServerLog, _docker_json),
}
"""Who writes the lines, and what the collector puts around each."""


def log_lines(log: ServerLog, dialect: str, happening: Iterable[Moment]) -> Iterator[str]:
    """The log's lines with line ends, from the start on."""
    wrapped = DIALECTS[dialect][1]
    for moment in _with_start(happening):
        for line in log.begin() if moment is None else log.lines(moment):
            log.written["lines"] += 1
            at = START + datetime.timedelta(seconds=log.at_s)
            yield wrapped(line, f"{at.isoformat(timespec='microseconds')}000Z") + "\n"


def _with_start(happening: Iterable[Moment]) -> Iterator[Moment | None]:
    yield None
    yield from happening


def write_server_log(path: Path, size_bytes: int, seed: int, dialect: str = "v1") -> Counter[str]:
    """Write lines until the file has the size; returns how many of each kind are in it."""
    log, written = DIALECTS[dialect][0](seed), 0
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for line in log_lines(log, dialect, moments(seed)):
            written += len(line.encode())
            stream.write(line)
            if written >= size_bytes:
                break
    return log.written


def main() -> None:
    """Write the log and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("megabytes", type=float)
    parser.add_argument("file", type=Path)
    parser.add_argument("--dialect", choices=DIALECTS, default="v1")
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    print(json.dumps(write_server_log(asked.file, int(asked.megabytes * 1e6), asked.seed, asked.dialect)))


if __name__ == "__main__":
    main()
