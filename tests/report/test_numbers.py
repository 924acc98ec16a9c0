"""Every number of a report is one that ``tracelens query`` prints, in HTML, Markdown and JSON alike."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from report_pages import Page, asked, parsed, told, written
from report_pages import document as document_of

from tracelens import resources, units
from tracelens.report import page as page_of

QUANTILES = ("p50_s", "p90_s", "p95_s", "p99_s", "max_s")
SCHEMA = json.loads((resources.schemas() / "report.schema.json").read_text(encoding="utf-8"))


def near(value: Any) -> Any:
    """The same value with the digits that a document keeps."""
    if isinstance(value, dict):
        return {key: near(one) for key, one in value.items()}
    if isinstance(value, list):
        return [near(one) for one in value]
    return pytest.approx(value, rel=1e-10, abs=1.1e-11, nan_ok=True) if isinstance(value, float) else value


@pytest.fixture(scope="module")
def page(demo: Path) -> Page:
    return parsed(written(demo, ".html", "ttft=1s"))


@pytest.fixture(scope="module")
def document(demo: Path) -> dict[str, Any]:
    return json.loads(written(demo, ".json", "ttft=1s"))


@pytest.fixture(scope="module")
def markdown(demo: Path) -> list[list[str]]:
    lines = written(demo, ".md", "ttft=1s").splitlines()
    return [[cell.strip(" `") for cell in line.strip("|").split(" | ")] for line in lines if line[:1] == "|"]


def test_percentiles_are_those_of_the_query(page: Page, markdown: list[list[str]], demo: Path) -> None:
    rows = asked(demo, "latency_percentiles")
    shown = {cells[0].text: cells[1:] for cells in page.table("measure", "p50")}
    for row in rows:
        cells = shown[row["measure"]]
        assert [float(cell.attributes["data-sort"]) for cell in cells[:5]] == near(
            [row[key] for key in QUANTILES]
        )
        texts = [units.duration(row[key]) for key in QUANTILES]
        known = f"{units.count(row['known_count'])} of {units.count(row['request_count'])}"
        assert [cell.text for cell in cells] == [*texts, known]
        assert [row["measure"], *texts, known] in markdown


def test_the_worst_requests_are_those_of_the_query(page: Page, markdown: list[list[str]], demo: Path) -> None:
    rows = asked(demo, "slowest", top=10)
    cells = page.table("request", "TTFT")
    assert [row[0].text for row in cells] == [row["request_id"] for row in rows]
    assert [float(row[1].attributes["data-sort"]) for row in cells] == near(
        [row["measure_s"] for row in rows]
    )
    for row in rows:
        stages = f"{row['largest_stage']} {units.percent(row['largest_stage_ratio'])}"
        (line,) = [cells for cells in markdown if cells[0] == row["request_id"]]
        assert line[1] == units.duration(row["measure_s"])
        assert line[3:6] == [stages, units.count(row["input_tokens"]), units.count(row["output_tokens"])]


def test_bars_are_as_long_as_their_stages(page: Page, demo: Path) -> None:
    rows = [row for row in asked(demo, "latency_map") if row["mean_s"] and row["mean_s"] > 0]
    longest = max(row["slice_mean_s"] for row in rows)
    bars = [
        found
        for tag, found in page.elements
        if tag == "span" and (found.get("class") or "").startswith("stage ")
    ]
    for bar, row in zip(bars, rows, strict=False):
        assert bar["class"] == f"stage {row['stage']} {row['provenance']}"
        assert bar["style"] == f"width:{100 * row['mean_s'] / longest:.3f}%"


def test_the_stages_of_the_worst_add_up_to_their_ttft(document: dict[str, Any]) -> None:
    (run,) = document["runs"]
    for place, row in enumerate(run["slowest"], start=1):
        parts = [one["duration_s"] for one in run["worst_stages"] if one["place"] == place
                 and one["stage"] not in ("client_wait", "decode") and one["duration_s"] is not None]  # fmt: skip
        assert sum(parts) == pytest.approx(row["measure_s"], abs=1e-5)


def test_every_row_of_the_document_is_the_query_that_it_names(document: dict[str, Any], demo: Path) -> None:
    (run,) = document["runs"]
    known = {row["query"] for row in json.loads(told("query", "--list", "--format", "json"))}
    for key, query in document["queries"].items():
        params = {name: value for name, value in query.items() if name != "name"}
        if query["name"] in known:
            assert run[key] == near(asked(demo, query["name"], run="default", **params)), key
    assert run["span"] == near(asked(demo, "run_span")[0])


def said(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome; of one that did not fire without its evidence, whose lines of equal rank have no order."""
    return outcome if outcome["outcome"] == "fired" else {**outcome, "evidence": []}


def test_findings_are_those_of_the_check(page: Page, document: dict[str, Any], demo: Path) -> None:
    check = json.loads(told("check", "-c", demo, "--format", "json"))
    for key in ("verdict", "outcomes", "plan", "not_advised", "collect"):
        if key == "outcomes":
            assert [said(one) for one in document[key]] == near([said(one) for one in check[key]])
        else:
            assert document[key] == near(check[key])
    assert [run["run"] for run in document["runs"]] == check["runs"]
    assert check["verdict"] in page.texts
    for one in check["outcomes"]:
        if one["outcome"] == "fired":
            assert one["message"] in page.texts


def test_goodput_is_that_of_the_query(document: dict[str, Any], demo: Path) -> None:
    (row,) = asked(demo, "goodput", ttft_s=1.0)
    assert {**document["runs"][0]["goodput"][0], "violations": None} == near({**row, "violations": None})
    share = units.percent(row["goodput_ratio"])
    assert f"goodput {share}" in parsed(written(demo, ".html", "ttft=1s")).texts
    assert f"goodput (TTFT ≤ 1.00 s) {share}" in written(demo, ".md", "ttft=1s")


def test_bookmarks_and_notes_are_in_the_report(page: Page, document: dict[str, Any], demo: Path) -> None:
    worst = asked(demo, "slowest")[0]["request_id"]
    assert any(f"{worst}: the first of the burst" in text for text in page.texts)
    assert [mark["kind"] for mark in document["marks"]] == ["request", "finding"]


@pytest.mark.parametrize("redact", [False, True])
def test_the_document_keeps_its_schema(demo: Path, two_runs: Path, redact: bool) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for case, slo, count in ((demo, "ttft=1s", 1), (two_runs, "", 2)):
        found = json.loads(written(case, ".json", slo, redact))
        jsonschema.validate(found, SCHEMA, jsonschema.Draft202012Validator)
        assert len(found["runs"]) == count


def test_the_schema_refuses_what_is_no_report(document: dict[str, Any]) -> None:
    run = document["runs"][0]
    for broken in (
        {**document, "verdict": None},
        {**document, "more": 1},
        {**document, "runs": []},
        {**document, "runs": [{**run, "percentiles": [{**run["percentiles"][0], "p50_s": "fast"}]}]},
        {**document, "runs": [{**run, "span": {**run["span"], "first_ts": "yesterday"}}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, SCHEMA, jsonschema.Draft202012Validator)


def test_two_runs_each_have_their_part(two_runs: Path) -> None:
    page = parsed(written(two_runs, ".html"))
    texts = [text.strip() for text in page.texts]
    assert "Run before" in texts
    assert "Run after" in texts
    assert sum((found.get("class") or "") == "plot timeline" for _, found in page.elements) == 2


def test_the_command_writes_the_same_bytes_each_time(demo: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    told("report", "-o", target, "-c", demo, "--slo", "ttft=1s", "--redact")
    assert target.read_text(encoding="utf-8") == written(demo, ".json", "ttft=1s", True)
    assert page_of(document_of(demo, "ttft=1s")) == written(demo, ".html", "ttft=1s")


def test_a_report_of_another_ending_is_refused(demo: Path, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from tracelens.cli import cli

    result = CliRunner().invoke(cli, ["report", "-o", str(tmp_path / "x.pdf"), "-c", str(demo)])
    assert result.exit_code == 2
    assert ".html, .md, .json" in result.stderr
