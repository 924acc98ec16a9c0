"""Ids, log lines, labels and notes that were made to act do not act in any form of a report."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from markdown_it import MarkdownIt

sys.path.insert(0, str(Path(__file__).parent))

from report_pages import Page, parsed, written

import tracelens
from tracelens import resources
from tracelens.cli.comparison import as_markdown
from tracelens.compare import Comparison, Side, compare
from tracelens.ingestion import IngestOptions, ingest
from tracelens.marks import Mark, write_marks
from tracelens.report import comparison_page

if TYPE_CHECKING:
    from collections.abc import Iterator

INCIDENT = Path(__file__).parent.parent / "cli" / "data" / "incident"
PAYLOADS = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "</title></style><img src=x onerror=alert(3)>",
    "\"><svg onload='alert(4)'>",
    "javascript:alert(5)",
    "[x](javascript:alert(6))",
    "![x](http://evil.example/x.png)",
    "{{7*7}}{% raw %}",
    "<!--",
    "]]>&lt;b&gt;",
    "```\n# heading\n<iframe src=http://evil.example>",
    "@someone #1 https://evil.example/a",
    "| a | b |\n|---|---|",
    "\u202egpj.exe\u2066\x1b[31m\x9b2J\x00",
)
ALL = " ".join(PAYLOADS)
TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "section", "article", "p", "h1", "h2", "h3", "b", "a", "ol", "ul",
    "li", "dl", "dt", "dd", "br", "code", "table", "thead", "tbody", "tr", "th", "td", "div", "span", "details", "summary", "script",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "id", "class", "style", "title", "value", "data-sort", "data-run", "href", "type",
}  # fmt: skip
LABEL = "r " + "".join(PAYLOADS[:8])


def client_lines(scale: float) -> Iterator[str]:
    """The incident's client log with ids, labels and errors that act, every time longer by `scale`."""
    for number, line in enumerate((INCIDENT / "client.jsonl").read_text().splitlines() * 2):
        row = json.loads(line)
        payload = PAYLOADS[number % len(PAYLOADS)]
        row.update(
            request_id=f"{number} {payload}",
            response_id=f"chatcmpl-{number} {payload}",
            trace_id=None,
            label=ALL,
        )
        for key in ("first_content_at", "finished_at"):
            row[key] = row["sent_at"] + scale * (row[key] - row["sent_at"])
        if number % 5 == 0:
            row.update(status=500, error=ALL)
        yield json.dumps(row)


def server_lines() -> Iterator[str]:
    """The incident's server log with a model, an error and an argument that act."""
    stamp = "(APIServer pid=29049) ERROR 11-29 12:47:08 [serving.py:1] "
    text = (INCIDENT / "server.log").read_text()
    yield text.replace("tiny-llama", "tiny-<script>alert(7)</script>{{7*7}}").rstrip("\n")
    for payload in PAYLOADS:
        yield stamp + payload.replace("\n", " ")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    case = folder / "<img src=x onerror=alert(8)>.duckdb"
    sources = folder / "<script>alert(9)<"
    sources.mkdir()
    (sources / "server <b>{{7*7}}.log").write_text("\n".join(server_lines()) + "\n")
    for name, scale in (("a", 1.0), ("b", 0.5)):
        (sources / f"{name} onload=alert(10).jsonl").write_text("\n".join(client_lines(scale)) + "\n")
    ingest(
        [str(sources / "a onload=alert(10).jsonl"), str(sources / "server <b>{{7*7}}.log")],
        case,
        IngestOptions(LABEL),
    )
    ingest([str(sources / "b onload=alert(10).jsonl")], case, IngestOptions("b"))
    write_marks(
        case, [Mark("request", LABEL, f"chatcmpl-0 {PAYLOADS[0]}", ALL), Mark("finding", "b", ALL, ALL)]
    )
    return case


@pytest.fixture(scope="module")
def compared(hostile: Path) -> Comparison:
    with tracelens.open(hostile) as case:
        return compare(Side(case, LABEL, LABEL), Side(case, "b", "b"))


@pytest.fixture(scope="module")
def pages(hostile: Path, compared: Comparison) -> dict[str, str]:
    """The report, the redacted one, and the comparison of its runs."""
    return {
        "report": written(hostile, ".html", "ttft=1s"),
        "redacted": written(hostile, ".html", "ttft=1s", True),
        "comparison": comparison_page(compared),
    }


@pytest.fixture(params=["report", "redacted", "comparison"])
def text(request: pytest.FixtureRequest, pages: dict[str, str]) -> str:
    return pages[request.param]


@pytest.fixture
def page(text: str) -> Page:
    return parsed(text)


def test_only_known_elements_and_attributes_are_in_the_page(page: Page) -> None:
    assert {tag for tag, _ in page.elements} <= TAGS
    assert {name for _, found in page.elements for name in found} <= ATTRIBUTES


def test_the_only_scripts_are_ours_and_the_policy_names_them(page: Page) -> None:
    kinds = [found.get("type") for tag, found in page.elements if tag == "script"]
    assert kinds == ["application/json", None, None]
    json.loads(page.raw["script"][0])
    assets = [
        Path(resources.__file__).parent / "report" / "assets" / name
        for name in ("uPlot.iife.min.js", "report.js")
    ]
    assert page.raw["script"][1:] == [path.read_text(encoding="utf-8") for path in assets]
    (policy,) = [found["content"] or "" for tag, found in page.elements if "http-equiv" in found]
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in page.raw["script"][1:]
    ]
    assert f"script-src {' '.join(hashes)};" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_nothing_is_loaded_from_elsewhere(page: Page) -> None:
    for _, found in page.elements:
        assert found.get("href", "#unknown") == "#unknown"
        assert not re.search(r"url\(|expression|@import", found.get("style") or "")
    for style in page.raw["style"]:
        assert not re.search(r"url\(|@import|https?:", style)


def test_widths_are_the_only_styles(page: Page) -> None:
    for _, found in page.elements:
        assert re.fullmatch(r"width:-?\d+\.\d{3}%", found.get("style") or "width:0.000%")


def test_no_control_or_bidi_character_is_left(text: str) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)


def test_templates_are_not_evaluated(pages: dict[str, str]) -> None:
    shown = "".join(parsed(pages["report"]).texts)
    assert "tiny-<script>alert(7)</script>{{7*7}}" in shown
    assert "tiny-<script>alert(7)</script>49" not in shown


def test_payloads_are_shown_as_text(pages: dict[str, str]) -> None:
    shown = "".join(parsed(pages["report"]).texts)
    for payload in PAYLOADS[:10]:
        assert payload in shown


@pytest.mark.parametrize("redact", [False, True])
def test_markdown_holds_no_html_no_image_and_no_link(hostile: Path, redact: bool) -> None:
    text = written(hostile, ".md", "ttft=1s", redact)
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    kinds = {inner.type for token in tokens for inner in (token, *(token.children or ()))}
    assert not kinds & {"html_block", "html_inline", "image", "link_open"}
    headings = [
        tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"
    ]
    assert not [heading for heading in headings if heading == "heading"]
    plain = "".join(
        inner.content for token in tokens for inner in token.children or () if inner.type == "text"
    )
    assert not re.search(r"https?://|@someone", plain)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_the_compared_markdown_holds_none_either(compared: Comparison) -> None:
    text = "\n".join(as_markdown(compared))
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    kinds = {inner.type for token in tokens for inner in (token, *(token.children or ()))}
    assert not kinds & {"html_block", "html_inline", "image", "link_open"}


def test_json_keeps_texts_as_they_are_and_its_schema(hostile: Path) -> None:
    found = json.loads(written(hostile, ".json", "ttft=1s"))
    schema = json.loads((resources.schemas() / "report.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, schema, jsonschema.Draft202012Validator)
    ids = {row["request_id"] for run in found["runs"] for row in run["slowest"]}
    assert any(payload in one for one in ids for payload in PAYLOADS)
    assert [run["run"] for run in found["runs"]] == sorted(["b", LABEL])
