"""Running rules: three values, ranking, what fails alone, what the evidence says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tracelens.check import Check, Outcome, run_rules
from tracelens.collect import in_short, switch_of, to_collect
from tracelens.errors import UsageError
from tracelens.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracelens.rulebook import Rule

STATS = [
    {"line_no": 3, "waiting_count": 9, "running_count": 4},
    {"line_no": 4, "waiting_count": 0, "running_count": 4},
]


def by_rule(check: Check) -> dict[str, Outcome]:
    return {outcome.rule: outcome for outcome in check.outcomes}


def with_sql(rule: Rule, old: str, new: str) -> Rule:
    assert old in rule.sql
    return replace(rule, name="toy.other", sql=rule.sql.replace(old, new))


def test_a_rule_fires_with_what_it_measured_and_where(store: Callable[..., Store], toys: list[Rule]) -> None:
    check = run_rules(store(engine_sample=STATS), toys)
    found = by_rule(check)["toy.waits"]
    assert (found.outcome, found.severity, found.confidence, found.run) == (
        "fired",
        "critical",
        "high",
        "default",
    )
    assert found.message == "Up to 9 requests waited, 50 % of the samples, at least 5 asked for."
    assert found.measured == {"waiting_count": 9, "share_ratio": 0.5}
    assert found.threshold == {"waiting_count": 5}
    assert [(line.source, line.line) for line in found.evidence] == [("source 1", 3), ("source 1", 4)]
    assert "waiting 9" in found.evidence[0].text
    assert check.verdict == "Up to 9 requests waited; raise --max-num-seqs."


def test_a_run_without_what_a_rule_needs_is_not_evaluated_and_says_what_to_collect(
    store: Callable[..., Store], toys: list[Rule]
) -> None:
    found = by_rule(run_rules(store(engine_sample=STATS), toys))["toy.slow_client"]
    assert found.outcome == "not_evaluated"
    assert found.missing == ("a client file with the stamps of every chunk",)
    assert "client_request" in found.message
    assert found.remedies == ()


def test_three_values_stand_apart_for_each_subject(store: Callable[..., Store], toys: list[Rule]) -> None:
    clients = [
        {"client_id": "a", "client_ttft_s": 9.0},
        {"client_id": "b", "client_ttft_s": 1.0},
        {"client_id": "c"},
    ]
    check = run_rules(store(client_request=clients), toys)
    said = {one.subject: one.outcome for one in check.outcomes if one.rule == "toy.slow_client"}
    assert said == {"a": "fired", "b": "clear", "c": "not_evaluated"}


def test_a_run_of_which_a_rule_says_nothing_is_not_evaluated(
    store: Callable[..., Store], toys: list[Rule]
) -> None:
    silent = with_sql(toys[1], "GROUP BY run_id", "GROUP BY run_id HAVING false")
    (found,) = run_rules(store(engine_sample=STATS), [silent]).outcomes
    assert found.outcome == "not_evaluated"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("max(waiting_count) AS", "max(no_such_column) AS", "no_such_column"),
        ("'high' AS confidence", "'sure' AS confidence", "confidence 'sure' is none of low, medium, high"),
        ("THEN 'fired'", "THEN 'yes'", "outcome 'yes' is none of"),
        ("0.5 AS weight,", "", "its SELECT has no column weight"),
        ("FROM engine_sample", "FROM no_such_table", "no_such_table"),
    ],
)
def test_a_rule_that_breaks_is_failed_and_stops_no_other(
    store: Callable[..., Store], toys: list[Rule], old: str, new: str, said: str
) -> None:
    check = run_rules(store(engine_sample=STATS), [with_sql(toys[1], old, new), *toys])
    assert by_rule(check)["toy.other"].outcome == "failed"
    assert said in by_rule(check)["toy.other"].message
    assert by_rule(check)["toy.waits"].outcome == "fired"
    assert [one.rule for one in check.failed()] == ["toy.other"]


def test_a_need_that_is_no_table_fails_that_rule_alone(store: Callable[..., Store], toys: list[Rule]) -> None:
    check = run_rules(
        store(engine_sample=STATS), [replace(toys[1], name="toy.other", needs=("no_such_table",)), *toys]
    )
    assert by_rule(check)["toy.other"].outcome == "failed"
    assert by_rule(check)["toy.waits"].outcome == "fired"


def test_outcomes_are_ranked_by_severity_then_by_the_time_they_explain(
    store: Callable[..., Store], toys: list[Rule]
) -> None:
    light = replace(with_sql(toys[1], "0.5 AS weight", "0.1 AS weight"), name="toy.light")
    warning = replace(
        with_sql(toys[1], "0.5 AS weight", "0.9 AS weight"), name="toy.warning", severity="warning"
    )
    check = run_rules(store(engine_sample=STATS), [warning, light, *toys])
    assert [one.rule for one in check.outcomes] == [
        "toy.waits",
        "toy.light",
        "toy.warning",
        "toy.slow_client",
    ]


def test_the_select_may_give_the_severity_and_what_is_missing(
    store: Callable[..., Store], toys: list[Rule]
) -> None:
    told = with_sql(
        toys[1],
        "0.5 AS weight",
        "0.5 AS weight, 'info' AS severity, ['spans (--otlp-traces-endpoint)'] AS missing",
    )
    (found,) = run_rules(store(engine_sample=STATS), [told]).outcomes
    assert found.severity == "info"
    assert found.missing == ("spans (--otlp-traces-endpoint)",)


def test_a_threshold_that_is_set_decides_and_is_told(store: Callable[..., Store], toys: list[Rule]) -> None:
    check = run_rules(store(engine_sample=STATS), toys, {"toy.waits.min_waiting_count": "10"})
    assert by_rule(check)["toy.waits"].outcome == "clear"
    assert by_rule(check)["toy.waits"].threshold == {"waiting_count": 10}
    assert check.given == {"toy.waits.min_waiting_count": 10}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("toy.waits.min", 1, "no rule has a parameter"),
        ("min_waiting_count", 1, "no rule has a parameter"),
        ("toy.waits.min_waiting_count", "many", "is no whole number"),
    ],
)
def test_a_threshold_that_makes_no_sense_is_an_error(
    store: Callable[..., Store], toys: list[Rule], key: str, value: object, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        run_rules(store(engine_sample=STATS), toys, {key: value})


def test_each_run_has_its_own_outcomes_and_one_run_can_be_asked_for(
    store: Callable[..., Store], toys: list[Rule]
) -> None:
    both = store(
        engine_sample=[
            {"run_id": "before", "source_id": 1, "waiting_count": 9},
            {"run_id": "after", "source_id": 2, "waiting_count": 0},
        ]
    )
    check = run_rules(both, toys)
    waits = {one.run: one.outcome for one in check.outcomes if one.rule == "toy.waits"}
    assert waits == {"before": "fired", "after": "clear"}
    assert "Run before: Up to 9 requests waited" in check.verdict
    assert "Run after: Nothing stands out" in check.verdict
    after = run_rules(both, toys, run="after")
    assert {one.run for one in after.outcomes} == {"after"}
    assert after.plan.steps == ()
    with pytest.raises(UsageError, match="no run 'never'"):
        run_rules(both, toys, run="never")


def test_a_value_is_never_read_as_a_placeholder(store: Callable[..., Store], toys: list[Rule]) -> None:
    clients = [{"client_id": "{measured_ttft_s}", "client_ttft_s": 9.0}]
    (found,) = run_rules(store(client_request=clients), toys).fired()
    assert found.message == "Client {measured_ttft_s} waited 9.00 s."


def test_an_empty_case_says_that_it_holds_not_enough(store: Callable[..., Store], toys: list[Rule]) -> None:
    check = run_rules(store(source=[{"source_id": 1}]), toys)
    assert check.verdict == "These files do not hold enough to say what happened."
    assert {one.outcome for one in check.outcomes} == {"not_evaluated"}


def test_the_same_case_gives_the_same_check(store: Callable[..., Store], toys: list[Rule]) -> None:
    one = store(
        engine_sample=STATS, client_request=[{"client_id": str(n), "client_ttft_s": 9.0} for n in range(20)]
    )
    assert len({repr(run_rules(one, toys)) for _ in range(3)}) == 1


def test_reaches_compares_severities(store: Callable[..., Store], toys: list[Rule]) -> None:
    quiet = run_rules(store(client_request=[{"client_id": "a", "client_ttft_s": 9.0}]), toys)
    assert quiet.reaches("info")
    assert not quiet.reaches("warning")


# What to collect --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "switch"),
    [
        (
            "engine stats lines (do not run with --disable-log-stats)",
            "stats lines (run without --disable-log-stats)",
        ),
        ("spans (--otlp-traces-endpoint)", "--otlp-traces-endpoint URL"),
        ("GPU samples: nvidia-smi dmon -s pucvmet -o DT", "nvidia-smi dmon -s pucvmet -o DT"),
        ("the moon", ""),
    ],
)
def test_words_are_grouped_by_the_switch_that_they_mean(words: str, switch: str) -> None:
    assert switch_of(words).startswith(switch)
    assert bool(switch_of(words)) == bool(switch)


def test_what_most_rules_wait_for_comes_first_and_own_words_only_where_nothing_else_is_said(
    store: Callable[..., Store], toys: list[Rule]
) -> None:
    rules = [
        replace(toys[1], name="toy.a", missing=("stats lines", "the moon")),
        replace(toys[1], name="toy.b", missing=("stats lines",)),
        replace(toys[1], name="toy.c", missing=("the moon",)),
    ]
    gaps = to_collect(run_rules(store(client_request=[{"client_id": "a"}]), rules).outcomes)
    assert [(gap.collect.split(" (")[0], gap.rules) for gap in gaps] == [
        ("stats lines", ("toy.a", "toy.b")),
        ("the moon", ("toy.c",)),
    ]


def test_what_was_recorded_is_not_asked_for_again(store: Callable[..., Store], toys: list[Rule]) -> None:
    rule = replace(toys[0], missing=("stats lines", "a streaming client"))
    (found,) = run_rules(store(engine_sample=STATS), [rule]).outcomes
    assert found.missing == ("a streaming client",)


def test_more_than_a_few_special_wishes_are_one(store: Callable[..., Store], toys: list[Rule]) -> None:
    rules = [replace(toys[1], name=f"toy.{n}", missing=(f"moon {n}",)) for n in range(4)]
    gaps = to_collect(run_rules(store(client_request=[{"client_id": "a"}]), [toys[1], *rules]).outcomes)
    assert [gap.collect for gap in in_short(gaps[:-1])] == [gap.collect for gap in gaps[:-1]]
    assert [(gap.is_switch, gap.rules) for gap in in_short(gaps)] == [
        (True, ("toy.waits",)),
        (False, ("toy.0", "toy.1", "toy.2", "toy.3")),
    ]
