"""``tracelens show``: one request, from every side that the case has."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import click

from tracelens.cli.options import format_option, on_case, run_option
from tracelens.cli.output import say, write
from tracelens.cli.page import page
from tracelens.cli.reading import check_run, reading
from tracelens.errors import UsageError
from tracelens.text.grid import terminal_width
from tracelens.text.rows import plain

if TYPE_CHECKING:
    from pathlib import Path

    from tracelens.case import Case

LISTED: Final = 5
"""Requests that an ambiguous id lists."""
_PAGE_WIDTH: Final = 110
_AT_ONCE: Final = 2
_ASKED: Final = (
    "request_evidence", "request_apart", "request_stages", "request_facts", "gpu_around", "request_company",
    "request_neighbours", "engine_around", "engine_range", "request_chunk_gaps", "sources",
)  # fmt: skip
"""The queries of a request, those that take longest first."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What is known of one request; each part is a named query."""

    request: dict[str, Any]
    stages: Rows
    engine: dict[str, Any]
    engine_samples: Rows
    gpus: Rows
    gpu_source_count: int
    company: dict[str, Any]
    neighbours: Rows
    gaps: Rows
    apart: Rows
    evidence: Rows


@click.command()
@click.argument("request_id")
@run_option
@format_option
@on_case
def show(case_path: Path, request_id: str, run: str, format_name: str | None) -> None:
    """Show one request: its stages, how each was known, what the engine and the GPUs did meanwhile, what set it apart, its lines.

    REQUEST_ID may be the server's or the client's id, with or without the 8 hex digits that vLLM adds, a trace id, or a
    part of any of them that is found once.  --format json gives everything in one object; csv, jsonl and md give the stages.

    \b
    Examples:
      tracelens show chatcmpl-3f2a9c
      tracelens show 3f2a9c --run before             a part of an id will do
      tracelens show 3f2a9c --format json > request.json
    """
    with reading(case_path) as case:
        check_run(case, run)
        found_run, found_id = resolve(case, request_id, run)
        if format_name in (None, "table"):
            width = min(terminal_width() or _PAGE_WIDTH, _PAGE_WIDTH + 50)
            for line in page(parts_of(case, found_run, found_id), width):
                say(line)
        elif format_name == "json":
            _write_object(parts_of(case, found_run, found_id))
        else:
            write(case.query("request_stages", request=found_id, run=found_run), format_name)


def resolve(case: Case, text: str, run: str) -> tuple[str, str]:
    """Run and id of the one request that a text means; raises `UsageError` for none and for several."""
    found = case.query("request_find", id=text, run=run).dicts() if text else []
    if not found:
        raise UsageError(
            f"no request is called {text!r}",
            hint="tracelens query requests lists them, tracelens slowest the worst",
        )
    if len(found) > 1:
        raise UsageError(
            f"{text!r} may mean {found[0]['match_count']:,} requests: {_listed(found)}", hint=_which(found)
        )
    return found[0]["run_id"], found[0]["request_id"]


def _listed(found: Rows) -> str:
    runs = {row["run_id"] for row in found}
    names = [
        row["request_id"] + (f" (run {row['run_id']})" if len(runs) > 1 else "") for row in found[:LISTED]
    ]
    return ", ".join(names) + (", …" if found[0]["match_count"] > LISTED else "")


def _which(found: Rows) -> str:
    same = len({row["request_id"] for row in found}) == 1
    return "choose one with --run" if same else "give more of the id"


def parts_of(case: Case, run: str, request_id: str) -> Parts:
    """Every part of one request, two asked at a time: most of the time of each is its planning, on one core."""
    from concurrent.futures import ThreadPoolExecutor

    def ask(name: str) -> Rows:
        given: dict[str, Any] = {"run": run} if name == "sources" else {"run": run, "request": request_id}
        return case.query(name, **given).dicts()

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        rows = dict(zip(_ASKED, pool.map(ask, _ASKED), strict=True))
    return Parts(
        request=rows["request_facts"][0],
        stages=rows["request_stages"],
        engine=_first(rows["engine_range"]),
        engine_samples=rows["engine_around"],
        gpus=rows["gpu_around"],
        gpu_source_count=sum(row["side"] == "gpu" for row in rows["sources"]),
        company=_first(rows["request_company"]),
        neighbours=rows["request_neighbours"],
        gaps=rows["request_chunk_gaps"],
        apart=rows["request_apart"],
        evidence=rows["request_evidence"],
    )


def _first(rows: Rows) -> dict[str, Any]:
    return rows[0] if rows else {}


def _write_object(parts: Parts) -> None:
    import orjson

    whole = {part.name: plain(getattr(parts, part.name)) for part in fields(parts)}
    sys.stdout.write(orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode() + "\n")
