"""Five servers of which only scrapes are left, and what is to be said of each: told apart, nothing cleared without its data."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tracelens
from tracelens.ingestion import IngestOptions, ingest

sys.path.insert(0, str(Path(__file__).parent))

import scrape_only

SERVERS = {
    "seats": scrape_only.SEATS,
    "kv full": scrape_only.KV_FULL,
    "no hits": scrape_only.NO_HITS,
    "host bound": scrape_only.HOST_BOUND,
    "seats, few metrics": scrape_only.SEATS_BARE,
}
CAUSES = {
    "seats": {"max-num-seqs-too-small", "queue-dominated-ttft"},
    "kv full": {"kv-cache-pressure", "queue-dominated-ttft"},
    "no hits": {"prefix-cache-no-hits"},
    "host bound": {"host-overhead-bound"},
    "seats, few metrics": {"max-num-seqs-too-small", "queue-dominated-ttft"},
}
FIRST = {
    "seats": "max-num-seqs-too-small",
    "kv full": "kv-cache-pressure",
    "no hits": "prefix-cache-no-hits",
    "host bound": "host-overhead-bound",
    "seats, few metrics": "max-num-seqs-too-small",
}


@dataclass(frozen=True)
class Told:
    """What a check says of one server."""

    outcomes: list[Any]
    steps: list[Any]


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    """All five are runs of one case, checked at once."""
    folder = tmp_path_factory.mktemp("scrapes")
    case = folder / "case.duckdb"
    for name, server in SERVERS.items():
        path = folder / f"{name}.prom"
        path.write_text(server.text(), encoding="utf-8")
        ingest([str(path)], case, IngestOptions(run=name))
    with tracelens.open(str(case)) as opened:
        check = opened.check()
    return {
        name: Told(
            [one for one in check.outcomes if one.run == name],
            [step for step in check.plan.steps if step.run == name],
        )
        for name in SERVERS
    }


def outcomes(told: Told, outcome: str) -> dict[str, Any]:
    return {one.rule: one for one in told.outcomes if one.outcome == outcome}


@pytest.mark.parametrize("name", SERVERS)
def test_the_cause_is_named_and_no_other(checks: dict[str, Told], name: str) -> None:
    fired = [one for one in checks[name].outcomes if one.outcome == "fired" and one.severity != "info"]
    assert {one.cause for one in fired} == CAUSES[name]
    assert fired[0].cause == FIRST[name]
    assert outcomes(checks[name], "failed") == {}


def test_what_waits_is_said_with_its_numbers(checks: dict[str, Told]) -> None:
    seats = outcomes(checks["seats"], "fired")
    assert (
        seats["queue.seats_exhausted"].measured["seat_count"],
        seats["queue.seats_exhausted"].measured["kv_ratio"],
    ) == (64, 0.41)
    assert "mean TTFT is 9.0 s" in seats["queue.waiting_line"].message
    assert "a seat" in seats["queue.waiting_line"].message
    assert (
        outcomes(checks["kv full"], "fired")["cache.kv_pressure"].measured["preemption_count"] == 6 * 15 * 11
    )
    assert outcomes(checks["no hits"], "fired")["cache.no_hits"].measured["query_tps"] == 20000
    assert outcomes(checks["host bound"], "fired")["host.slow_steps"].measured["gap_s"] == 0.075


@pytest.mark.parametrize(
    "rule", ["cache.kv_pressure", "cache.no_hits", "cache.prefix_structural", "cache.prefix_prompts_differ"]
)
def test_what_was_not_scraped_is_not_cleared(checks: dict[str, Told], rule: str) -> None:
    assert rule in outcomes(checks["seats, few metrics"], "not_evaluated")


def test_seats_that_no_source_names_are_not_cleared_where_requests_wait(checks: dict[str, Told]) -> None:
    assert "queue.seats_exhausted" in outcomes(checks["kv full"], "not_evaluated")


@pytest.mark.parametrize("name", SERVERS)
def test_nothing_that_scrapes_cannot_show_is_cleared(checks: dict[str, Told], name: str) -> None:
    unseen = re.compile(
        r"^(gpu|client|network|frontend)\.|host\.(cpu_starved|idle_ramp|jit_warmup|overhead)$"
    )
    cleared = {rule for rule in outcomes(checks[name], "clear") if unseen.match(rule)}
    assert cleared <= {"client.concurrency_cap"}  # told by running and waiting alone


@pytest.mark.parametrize("name", SERVERS)
def test_no_two_steps_of_the_plan_pull_against_each_other(checks: dict[str, Told], name: str) -> None:
    steps = [step.text for step in checks[name].steps]
    assert steps
    raised = [text for text in steps if re.search(r"(?i)\b(raise|higher|double)\b[^.;:]*max-num-seqs", text)]
    lowered = [text for text in steps if re.search(r"(?i)\blower --max-num-seqs", text)]
    assert not (raised and lowered)
    assert checks[name].steps[0].kind == "config"
    assert not any("enable-prefix-caching" in text for text in steps)
