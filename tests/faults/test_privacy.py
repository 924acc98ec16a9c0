"""Keys, tokens, prompts, answers and e-mail addresses planted into a sample of every format are nowhere in the case."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from fuzz import samples

import tracelens
from tracelens import formats
from tracelens.formats.base import Chunk
from tracelens.formats.privacy import scrubbed
from tracelens.ingestion.chunks import framed
from tracelens.store import Store

SAMPLE_LOGS = Path(__file__).parents[2] / "sample_logs"
KEY = "sk-planted0123456789abcdef"
SPOKEN = (
    "Authorization: Bearer planted-token-1234 user planted.person@planted.example.com api_key='planted-key-9' "
    f"hf_token=planted_hf_12345 {KEY} GET /v1/models?token=planted77&x=1 prompt: 'planted words of a prompt'"
)
GARBAGE = (
    f'{{"prompt": "planted prompt", "headers": {{"Authorization": "Bearer planted-a1b2c3"}}, "x": "{KEY}"',
    'data: {"choices": [{"delta": {"content": "planted answer that is cut',
    f"(APIServer pid=1) INFO 11-29 12:00:00 [api_server.py:1] args: Namespace(api_key=['planted-key-1'], hf_token='planted-hf', key={KEY})",
    "INFO 11-29 12:00:00 [api_server.py:1] vLLM non-default args: {'model': 'm', 'api_key': 'planted-key-2', 'hf_token': 'planted-3'}",
    'INFO:     10.0.0.1:1 - "GET /v1/models?api_key=planted-key-4 HTTP/1.1" 200 OK',
    "ERROR 11-29 12:00:00 [serving.py:1] Error for planted.person@example.com: cookie: planted-cookie",
    "ERROR 11-29 12:00:00 [serving.py:1] curl -H 'X-Api-Key: planted-key-5' https://me:planted-pw@host/v1",
    SPOKEN,
)
MORE = {
    "prompt": "planted prompt of a client",
    "messages": [{"role": "user", "content": "planted message"}],
    "generated_text": "planted answer",
    "authorization": "Bearer planted-token-77",
    "api_key": "planted-key-6",
    "note": f"planted.person@example.com {KEY}",
    "request_headers": {"Authorization": "Bearer planted-8"},
    "url": "http://host/v1?key=planted-key-7",
}


def planted(data: bytes) -> bytes:
    """A sample with secrets in it: more keys in each JSON object, or more words in some lines."""
    lines = data.decode("utf-8", "replace").splitlines()
    try:
        whole = json.loads(data)
    except ValueError:
        return "\n".join(_line(number, line) for number, line in enumerate(lines)).encode()
    return json.dumps(_more(whole)).encode()


def _line(number: int, line: str) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return f"{line} {SPOKEN}" if number % 3 == 2 else line
    return json.dumps(_more(value)) if isinstance(value, dict) else line


def _more(value: Any, depth: int = 0) -> Any:
    if isinstance(value, list):
        return [_more(one, depth) for one in value]
    if not isinstance(value, dict) or depth > 4:
        return value
    inner = {key: _attribute(key, _more(one, depth + 1)) for key, one in value.items()}
    return inner | {key: one for key, one in MORE.items() if key not in inner}


def _attribute(key: str, value: Any) -> Any:
    """OTLP attributes and tags are lists of keys and values: one more of each kind."""
    if key in ("attributes", "tags") and isinstance(value, list):
        return [
            *value,
            {"key": "gen_ai.prompt", "value": {"stringValue": "planted prompt"}},
            {"key": "http.request.header.authorization", "value": {"stringValue": "Bearer planted-9"}},
            {"key": "enduser.id", "value": {"stringValue": "planted.person@example.com"}},
        ]
    return value


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    for kind in formats.FORMATS:
        paths = sorted(path for path in (SAMPLE_LOGS / kind.name).iterdir() if path.suffix != ".md")
        data = min((path.read_bytes() for path in paths), key=lambda data: abs(len(data) - 7_000))
        if kind.binary:
            continue
        (folder / f"{kind.name}.more").write_bytes(planted(data))
        (folder / f"{kind.name}.garbage").write_bytes(
            data.rstrip(b"\n") + b"\n" + "\n".join(GARBAGE).encode() + b"\n"
        )
    tracelens.ingest([folder], folder / "case.duckdb")
    return folder / "case.duckdb"


def dumped(case: Path) -> list[tuple[str, str]]:
    """Every row of every table as text, with the table's name."""
    with Store(case) as store:
        names = store.run("SELECT table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY ALL").rows
        return [
            (name, text)
            for (name,) in names
            for (text,) in store.run(f"SELECT CAST(t AS VARCHAR) FROM (SELECT * FROM {name}) AS t").rows
        ]


def test_nothing_that_was_planted_is_in_any_table(case: Path) -> None:
    rows = dumped(case)
    assert len(rows) > 4000
    texts = [(name, text.replace(str(case.parent), "")) for name, text in rows]
    assert [(name, text[:1500]) for name, text in texts if "planted" in text.lower()][:5] == []


def test_nothing_that_was_planted_is_in_the_raw_file(case: Path) -> None:
    raw = case.read_bytes().replace(str(case.parent).encode(), b"")
    for word in (
        b"planted-",
        b"planted_",
        b"planted.person",
        b"planted prompt",
        b"planted answer",
        KEY.encode(),
    ):
        assert word not in raw


def test_most_of_the_planted_files_were_read(case: Path) -> None:
    with Store(case) as store:
        (found,) = store.run("SELECT count(DISTINCT format) FROM source").rows
        assert found[0] >= len(formats.FORMATS) - 8
        assert store.run("SELECT count(*) FROM ingest_issue WHERE contains(excerpt, '***')").rows[0][0] > 20


def test_with_keep_text_words_stay_and_secrets_do_not(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "INFO 11-29 12:00:00 [logger.py:1] Received request a-1: prompt: 'planted words', params: SamplingParams(n=1), "
        "prompt_token_ids: [1, 2], lora_request: None, prompt_adapter_request: None.\n"
        f"ERROR 11-29 12:00:01 [serving.py:1] for planted.person@example.com with {KEY}\n"
    )
    tracelens.ingest([log], tmp_path / "kept.duckdb", keep_text=True)
    text = "\n".join(row for _, row in dumped(tmp_path / "kept.duckdb"))
    assert "planted words" in text
    assert "planted.person@example.com" in text
    assert KEY not in text
    tracelens.ingest([log], tmp_path / "bare.duckdb")
    text = "\n".join(row for _, row in dumped(tmp_path / "bare.duckdb"))
    assert "planted" not in text


INSIDE = (
    "sk-planted0123456789abcdef", "hf_plantedABCDEFGHIJKLMNOP", "AKIAPLANTED012345678", "ghp_plantedABCDEFGHIJKLMNOPQRSTUVWX12",
    "Bearer planted-token-1234", "Authorization: Basic cGxhbnRlZA-planted==", "https://me:planted-pw@host/v1", "planted.person@example.com",
    "python -m vllm --api-key planted-key-1 --port 8000", "/v1/models?key=planted-key-7&n=1",
    "HF_TOKEN=planted_hf_123 AWS_SECRET_ACCESS_KEY=planted/aws+123", "password=planted-pass-1",
)  # fmt: skip
"""What may stand behind the words of any text that a format keeps: a model's name, a process, a path, a setting, an id."""


class Injection:
    """Puts secrets behind the texts that stand in a file already, at places drawn by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.secrets = itertools.cycle(INSIDE)

    def file(self, data: bytes) -> bytes:
        text = data.decode("utf-8", "replace")
        try:
            return json.dumps(self._leaf(json.loads(text))).encode()
        except ValueError:
            return "".join(f"{self._line(line)}\n" for line in text.splitlines()).encode()

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._leaf(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._leaf(one) for one in value]
        is_word = isinstance(value, str) and re.search("[A-Za-z]{2}", value)
        return f"{value} {next(self.secrets)}" if is_word and self.chance.random() < 0.4 else value

    def _line(self, line: str) -> str:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict | list):
            return json.dumps(self._leaf(value))
        places = [
            *(found.end(2) for found in re.finditer(r"""(['"])([^'"]{2,})\1""", line)),
            *(found.end() for found in re.finditer(r"[A-Za-z_./-]{4,}(?=[,|\s]|$)", line)),
        ]
        # A line of the engine's figures has no word of anybody else's in it.
        if not places or self.chance.random() < 0.4 or "throughput" in line:
            return line
        at = self.chance.choice(places)
        return f"{line[:at]} {next(self.secrets)}{line[at:]}"


def texts_of(frame: pl.DataFrame) -> list[str]:
    """Every cell that is or holds text."""
    kept = [name for name, kind in frame.schema.items() if kind == pl.String or kind.is_nested()]
    return [str(cell) for name in kept for cell in frame[name].to_list()]


def test_secrets_behind_any_text_of_any_format_are_masked() -> None:
    injection, holding = Injection(7), set()
    for kind, claim, data in samples():
        if kind.binary or kind.name in holding:
            continue
        lines, _ = framed(injection.file(data), 1, binary=False)
        found = kind.parse(Chunk(lines, claim, prompt_key=1))
        tables = {**found.tables, "ingest_issue": found.issues}
        if any("planted" in text.lower() for frame in tables.values() for text in texts_of(frame)):
            holding.add(kind.name)
        for name, frame in scrubbed(tables, keep_text=False, prompt_key=1).items():
            assert [(kind.name, name, text) for text in texts_of(frame) if "planted" in text.lower()] == []
    assert len(holding) > 40  # the net was needed: so many formats keep text of others


def test_what_a_format_calls_its_dialect_holds_no_secret(tmp_path: Path) -> None:
    spans = (SAMPLE_LOGS / "otlp_spans").glob("*.jsonl")
    text = next(iter(sorted(spans))).read_text()
    assert '"vllm.' in text
    (tmp_path / "spans.jsonl").write_text(re.sub(r'"(vllm\.[^"]*otel)"', rf'"\1 {KEY}"', text))
    (one,) = tracelens.ingest([tmp_path / "spans.jsonl"], tmp_path / "case.duckdb").files
    assert one.variant.endswith("sk-***")
    assert KEY.encode() not in (tmp_path / "case.duckdb").read_bytes()


def scrub(column: str, *texts: str) -> list[str]:
    frame = scrubbed({"t": pl.DataFrame({column: texts})}, keep_text=False, prompt_key=7)["t"]
    return frame[column].to_list()


@pytest.mark.parametrize(
    "text",
    [
        "Avg prompt throughput: 512.3 tokens/s, Avg generation throughput: 17.0 tokens/s, Running: 4 reqs",
        "max_tokens=5, prompt_tokens: 17, skip_tokenizer_init=False, token_count=12345678, tokenizer='org/model'",
        "Namespace(api_key=None, hf_token=None)",
        "KeyError: 'messages'",
        "task-0123456789abcdef risk_0123456789abcdef chatcmpl-0123456789abcdef0123456789abcdef",
        "gpu0@1.5GHz, 80@100",
        "http://host:8000/v1/chat/completions",
        "This model's maximum context length is 4096 tokens",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert scrub("message", text) == [text]


def test_an_id_that_holds_an_address_becomes_a_number_and_stays_one_of_its_own() -> None:
    first, again, other, plain = scrub("client_id", "a@x.org-1", "a@x.org-1", "b@x.org-1", "c-1")
    assert first == again != other
    assert first.startswith("private-")
    assert plain == "c-1"


def test_a_setting_says_that_a_key_is_set_and_not_which() -> None:
    frame = pl.DataFrame(
        {"key": ["api_key", "hf_token", "model", "tokenizer"], "value": ["abc", "None", "m", "t"]}
    )
    assert scrubbed({"t": frame}, keep_text=True)["t"]["value"].to_list() == ["***", "None", "m", "t"]
