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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl


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


def tables_of(seen: Sequence[Seen], keep_text: bool) -> dict[str, pl.DataFrame]:
    """Tables of all requests; texts only when asked for."""
    tables = {
        "client_request": requests_frame([each.request for each in seen]),
        "client_stream": frame(present(each.stream for each in seen), STREAM_SCHEMA),
        "server_request": frame(present(each.measured for each in seen), MEASURED_SCHEMA),
    }
    if keep_text:
        tables["request_text"] = frame([row for each in seen for row in each.text_rows()], TEXT_SCHEMA)
    return tables
