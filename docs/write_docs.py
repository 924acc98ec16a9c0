"""Writes the pages of docs/ that are made from the program; with ``--check``, only says which of them are stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import click
import rule_pages

from tracelens.cli import cli
from tracelens.formats import FORMATS
from tracelens.formats.client import client_keys
from tracelens.formats.server.event_forms import EVENT_FORMS
from tracelens.formats.server.vllm_lines import LINE_FORMS
from tracelens.formats.server.wrapper_forms import WRAPPERS
from tracelens.named import NamedQuery, named_queries, named_query
from tracelens.store import Store, blank_case

DOCS: Final = Path(__file__).parent
HELP_COLUMNS: Final = 100
"""Width of the help texts, whatever the terminal's."""

SCHEMA_INTRO: Final = """\
# Tables and views of a case

Names carry their unit: `_ts` an instant in UTC, `_s` seconds, `_ratio` 0 to 1, `_bytes`, `_bps` bytes per second,
`_tps` and `_rps` tokens and requests per second, `_id` as the source wrote it. NULL is "not known" and never 0. Tables hold
what a source said; views hold what follows from it. What changed between releases: [schema_changes.md](schema_changes.md).
"""

QUERIES_INTRO: Final = """\
# Named queries

`tracelens query NAME key=value...` and `case.query("NAME", key=value)` run them; `--format csv`, `json`, `jsonl` and `md` print
the rows for others to read. An empty text means "not given"; `run` keeps to one run of the case.
"""

FORMATS_INTRO: Final = """\
# Formats

A file is recognised by its content, never by its name; `--format NAME` forces a format. The side says which clock wrote the
stamps: `--tz`, `--gpu-tz` and `--client-tz` go by it.
"""

VLLM_INTRO: Final = """\
## Lines of a vLLM log

A message is known by how it begins. Any other line with vLLM's header is read too: warnings, errors and tracebacks become
`log_event`, HTTP access lines `access_line`, the printed configuration `server_setting`.
"""

WRAPPERS_INTRO: Final = """\
What container runtimes, journals, terminals and people put in front of a line is taken off first, up to three of these:
"""

EVENTS_INTRO: Final = """\
These words in a message make it an event of the server's life, of this kind:
"""

KEYS_INTRO: Final = f"""\
## Keys of a client's own log

One JSON object per request and line. Keys are compared in snake_case (`ttftMs` is `ttft_ms`); times may end in a unit (`_s`, `_ms`,
`_us`, `_ns`, or a longer word for it). Of several keys for one thing the first counts. Keys of the objects
{", ".join(f"`{name}`" for name in client_keys.NESTED)} count as keys of the line. To write such a log on purpose, follow
[client_stream.schema.json](../schemas/inputs/client_stream.schema.json).
"""

COMMANDS_INTRO: Final = """\
# Commands

stdout is data, stderr everything else. Exit codes: 0 fine; 1 a finding at or above `--fail-on`, or an ingest in which some
file was not recognised (the others are in); 2 usage or unreadable input; 3 a query or a rule failed, or nothing could be
ingested; 130 interrupted.
"""


def main() -> int:
    """Write or compare the pages; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is stale")
    check = parser.parse_args().check
    stale = [path for path, text in pages() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    stale += rule_pages.left_over()
    if check:
        for path in stale:
            print(f"docs/{path.relative_to(DOCS)} is stale: make docs", file=sys.stderr)
        return int(bool(stale))
    for path in rule_pages.left_over():
        path.unlink()
    for path, text in pages():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


def pages() -> Iterator[tuple[Path, str]]:
    """Path and text of every generated page."""
    for name, write in PAGES.items():
        note = f"<!-- Made by `make docs` from {SOURCES[name]}; edit there. -->"
        yield DOCS / name, f"{note}\n\n" + "\n".join(write()).rstrip("\n") + "\n"
    yield from rule_pages.pages()


# Markdown


def text(words: Any) -> str:
    """Words as the text of a Markdown cell: nothing in them acts as markup."""
    line = " ".join(str(words if words is not None else "").split())
    for mark, instead in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("*", "\\*"), ("`", "\\`")):
        line = line.replace(mark, instead)
    return line


def code(words: Any) -> str:
    """Words as code in a Markdown cell."""
    line = str(words).replace("|", "\\|").replace("\n", " ")
    if not line:
        return ""
    return f"`` {line} ``" if "`" in line else f"`{line}`"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a Markdown table, its cells already text or code, and a blank line."""
    yield f"| {' | '.join(heads)} |"
    yield f"| {' | '.join('---' for _ in heads)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def codes(words: Iterable[str]) -> str:
    """Several words as code, with commas between."""
    return ", ".join(code(word) for word in words)


# schema.md


def schema() -> Iterator[str]:
    """Tables and views with their grain and columns, as ``tracelens schema`` has them."""
    with blank_case() as case:
        relations = asked(case, "schema_tables")
        columns = {
            name: list(rows) for name, rows in groupby(asked(case, "schema_columns"), key=lambda row: row[0])
        }
    yield SCHEMA_INTRO
    for kind, members in groupby(relations, key=lambda row: row[1]):
        yield f"## {kind.capitalize()}s"
        yield ""
        for name, _, comment in members:
            yield from relation(name, comment, columns[name])


def relation(name: str, comment: str, columns: Sequence[Sequence[Any]]) -> Iterator[str]:
    """One table or view."""
    yield f"### {name}"
    yield ""
    yield text(comment)
    yield ""
    yield from table(
        ("column", "type", "meaning"),
        ((code(column), text(kind), text(meaning)) for _, column, kind, meaning in columns),
    )


def asked(case: Store, name: str) -> list[tuple[Any, ...]]:
    """Rows of a named query."""
    query = named_query(name)
    return case.run(query.sql, query.bind({})).rows


# queries.md


def queries() -> Iterator[str]:
    """The named queries with their parameters and columns."""
    yield QUERIES_INTRO
    with blank_case() as case:
        for query in named_queries().values():
            yield from named(case, query)


def named(case: Store, query: NamedQuery) -> Iterator[str]:
    """One named query."""
    yield f"## {query.name}"
    yield ""
    yield text(query.help)
    yield ""
    if query.params:
        yield "Parameters: " + ", ".join(
            code(f"{name}={literal(given)}") for name, given in query.params.items()
        )
        yield ""
    yield "Columns: " + codes(case.run(query.sql, query.bind({})).columns)
    yield ""


def literal(given: Any) -> str:
    """A default as it would be typed."""
    return str(given).lower() if isinstance(given, bool) else str(given)


# formats.md


def formats() -> Iterator[str]:
    """The formats, the forms of a vLLM log's lines, the keys of a client's log."""
    yield FORMATS_INTRO
    yield from table(
        ("format", "what it is", "side", "made from", "tables it fills", "how complete", "how to record it"),
        (
            (
                code(one.name),
                text(one.title),
                one.side.value,
                text(one.versions),
                codes(one.fills),
                text(one.complete),
                code(one.record),
            )
            for one in FORMATS
        ),
    )
    yield from vllm_forms()
    yield from keys()


def vllm_forms() -> Iterator[str]:
    """Forms of line of a vLLM log."""
    yield VLLM_INTRO
    yield from table(
        ("fact", "begins", "versions", "source", "sample"),
        (
            (
                code(form.kind),
                code(form.begins or form.starts),
                text(form.versions),
                text(form.source),
                code(form.sample),
            )
            for form in LINE_FORMS
        ),
    )
    yield WRAPPERS_INTRO
    yield from table(
        ("wrapper", "written by", "sample"),
        ((code(form.name), text(form.writer), code(form.sample)) for form in WRAPPERS),
    )
    yield EVENTS_INTRO
    yield from table(
        ("kind", "words", "versions"),
        ((code(form.kind), code(form.contains), text(form.versions)) for form in EVENT_FORMS),
    )


def keys() -> Iterator[str]:
    """Keys of home-made client logs."""
    yield KEYS_INTRO
    for title, things in CLIENT_KEYS:
        yield f"### {title}"
        yield ""
        yield from table(("thing", "keys"), ((code(thing), codes(names)) for thing, names in things.items()))


CLIENT_KEYS: Final[tuple[tuple[str, Mapping[str, tuple[str, ...]]], ...]] = (
    ("Instants: epoch in any unit, ISO 8601, or seconds of the file's own clock", client_keys.INSTANTS),
    ("Durations, from the send; seconds where no unit stands in the key", client_keys.SPANS),
    ("Lists, one entry per chunk of the stream", client_keys.LISTS),
    ("Everything else", client_keys.FACTS),
)


# cli.md


def commands() -> Iterator[str]:
    """The help of every command."""
    yield COMMANDS_INTRO
    context = click.Context(cli, info_name="tracelens", terminal_width=HELP_COLUMNS, **cli.context_settings)
    yield from helps(cli, context)


def helps(command: click.Command, context: click.Context) -> Iterator[str]:
    """Help of a command and of those under it."""
    yield f"## {context.command_path}"
    yield ""
    yield "```text"
    yield command.get_help(context)
    yield "```"
    yield ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.commands[name]
            yield from helps(
                below, click.Context(below, info_name=name, parent=context, terminal_width=HELP_COLUMNS)
            )


PAGES: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "schema.md": schema,
    "queries.md": queries,
    "formats.md": formats,
    "cli.md": commands,
}
SOURCES: Final = {
    "schema.md": "the comments in schemas/",
    "queries.md": "tracelens/queries/",
    "formats.md": "tracelens/formats/",
    "cli.md": "the help of the commands",
}

if __name__ == "__main__":
    sys.exit(main())
