"""What the tests of the report share: commands, and a page taken apart as a browser takes it apart."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import orjson
from click.testing import CliRunner

import tracelens
from tracelens.cli import cli
from tracelens.report import gather, markdown, page, redacted
from tracelens.slo import parse

VOID = {"meta", "br", "img", "input", "link", "hr"}


def told(*args: str | Path) -> str:
    """What a command prints; it must end well."""
    result = CliRunner().invoke(cli, [str(arg) for arg in args])
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result.stdout


@cache
def document(case: Path, slo: str = "") -> dict[str, Any]:
    """What ``tracelens report`` puts into its file."""
    with tracelens.open(case) as opened:
        return gather(opened, opened.check(), parse(slo) if slo else None)


@cache
def written(case: Path, kind: str, slo: str = "", redact: bool = False) -> str:
    """The text of a report, by the ending of its file."""
    found = document(case, slo)
    found = redacted(found) if redact else found
    if kind == ".json":
        return orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n"
    return page(found) if kind == ".html" else markdown(found)


@cache
def asked(case: Path, name: str, **params: Any) -> list[dict[str, Any]]:
    """Rows of ``tracelens query NAME --format json``."""
    pairs = [f"{key}={value}" for key, value in params.items()]
    return json.loads(told("query", name, *pairs, "-c", case, "--format", "json"))


@dataclass
class Cell:
    text: str
    attributes: dict[str, str | None]


@dataclass
class Page(HTMLParser):
    """Elements with their attributes, tables as cells, and the text of each script and style."""

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    tables: list[list[list[Cell]]] = field(default_factory=list)
    raw: dict[str, list[str]] = field(default_factory=lambda: {"script": [], "style": []})
    texts: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append(Cell("", dict(attrs)))
        elif tag in self.raw:
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.raw:
            self.raw[self.open[-1]][-1] += data
            return
        self.texts.append(data)
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1].text += data

    def table(self, *heads: str) -> list[list[Cell]]:
        """The rows below the first heading that begins with these words."""
        return next(
            rows[1:] for rows in self.tables if [cell.text for cell in rows[0]][: len(heads)] == [*heads]
        )


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    assert not page.open, page.open
    return page
