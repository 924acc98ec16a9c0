"""What one request of a load generator's file gives, and the tables of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracelens.formats.client.client_tables import (
    MEASURED_SCHEMA,
    STREAM_SCHEMA,
    TEXT_SCHEMA,
    frame,
    present,
    requests_frame,
)
from tracelens.formats.json_lines import decode, text_or_json
from tracelens.formats.prompt_blocks import fingerprints

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tracelens.formats.base import Chunk


@dataclass(frozen=True, slots=True)
class Seen:
    """One request: its row, its chunks, what the server said of itself in the answer, and its texts by kind."""

    request: Mapping[str, Any]
    stream: Mapping[str, Any] | None = None
    measured: Mapping[str, Any] | None = None
    texts: Sequence[tuple[str, str | None]] = ()

    def text_rows(self) -> list[Mapping[str, Any]]:
        """Rows of `request_text`."""
        request = self.request
        name = request.get("response_id") or request.get("client_id")
        return [
            {"line_no": request["line_no"], "request_id": name, "kind": kind, "content": content}
            for kind, content in self.texts
            if content
        ]


def tables_of(seen: Sequence[Seen], chunk: Chunk) -> dict[str, pl.DataFrame]:
    """Tables of all requests; texts only when asked for."""
    texts = [row for each in seen for row in each.text_rows()] if chunk.keep_text or chunk.prompt_key else []
    tables = {
        "client_request": requests_frame([each.request for each in seen]),
        "client_stream": frame(present(each.stream for each in seen), STREAM_SCHEMA),
        "server_request": frame(present(each.measured for each in seen), MEASURED_SCHEMA),
    }
    if chunk.prompt_key:
        prompts = [row for row in texts if row["kind"] == "prompt"]
        asked = ((row["line_no"], row["request_id"], prompt_in(row["content"])) for row in prompts)
        tables["prompt_block"] = fingerprints(asked, chunk.prompt_key)
    if chunk.keep_text:
        tables["request_text"] = frame(texts, TEXT_SCHEMA)
    return tables


def prompt_in(content: str) -> str | None:
    """A prompt, or that of a request's JSON: what stands around it would make all prompts begin alike."""
    if not content.startswith("{"):
        return content
    try:
        asked = decode(content)
    except ValueError:
        return None
    body = asked.get("body") if isinstance(asked.get("body"), dict) else asked
    return text_or_json(body.get("messages") or body.get("prompt"))
