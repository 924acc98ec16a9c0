"""``compare`` and ``--slo``, on runs whose times are made here and so known."""

from __future__ import annotations

import json
import random
import statistics
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

import tracelens.check
import tracelens.compare
from tracelens.cli import cli
from tracelens.errors import UsageError
from tracelens.slo import Slo, parse
from tracelens.units import duration, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tracelens.check import Check
    from tracelens.compare import Comparison, Side
    from tracelens.rulebook import Rule
    from tracelens.store import Store

COUNT = 60


def ttfts(scale: float, seed: int = 1) -> list[float]:
    chosen = random.Random(seed)
    return [round(scale * (1 + chosen.random()), 4) for _ in range(COUNT)]


def write_run(path: Path, times: Sequence[float], *, input_tokens: int = 100, tpot_s: float = 0.01) -> Path:
    """A client log of streamed requests, one a second, eleven tokens each."""
    lines = [
        {
            "request_id": f"r{number}", "sent_at": 1_800_000_000 + number, "ttft_s": ttft, "stream": True, "status": 200,
            "e2e_s": round(ttft + 10 * tpot_s, 6), "input_tokens": input_tokens, "output_tokens": 11,
        }
        for number, ttft in enumerate(times)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, ingested: Callable[..., Any]) -> Path:
    """A case with the runs slow, fast (half the time), same (other draws of slow) and long (other prompts)."""
    folder = tmp_path_factory.mktemp("runs")
    case = folder / "runs.duckdb"
    for name, times, tokens in (
        ("slow", ttfts(2.0), 100),
        ("fast", ttfts(1.0, seed=2), 100),
        ("same", ttfts(2.0, seed=3), 100),
        ("long", ttfts(2.0, seed=4), 900),
        ("few", ttfts(2.0)[:3], 100),
    ):
        ingested(case, write_run(folder / f"{name}.jsonl", times, input_tokens=tokens), run=name)
    return case


@pytest.fixture(autouse=True, scope="module")
def each_computed_once() -> Iterator[None]:
    """A comparison, or a check, of the same runs is computed once for all tests: they differ in what they ask of it."""
    compare, run_rules = tracelens.compare.compare, tracelens.check.run_rules
    known: dict[Any, Any] = {}

    def compare_once(before: Side, after: Side, slo: Slo | None = None) -> Comparison:
        sides = [(side.case.path, side.case.path.stat().st_mtime_ns, side.run) for side in (before, after)]
        key = (*sides, slo)
        if key not in known:
            known[key] = compare(before, after, slo)
        return replace(known[key], before=before.label, after=after.label)

    def check_once(store: Store, rules: Iterable[Rule], given: Any = None, **options: Any) -> Check:
        key = (store.path, store.path.stat().st_mtime_ns, str(given), str(options))
        if key not in known:
            known[key] = run_rules(store, rules, given, **options)
        return known[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tracelens.compare.compare", compare_once)
        patched.setattr("tracelens.case.run_rules", check_once)
        yield


def compared(case: Path, *args: str) -> Result:
    return CliRunner().invoke(cli, ["compare", *args, "-c", str(case)])


def as_json(case: Path, *args: str) -> dict[str, Any]:
    result = compared(case, *args, "--format", "json")
    return json.loads(result.stdout)


def change(found: dict[str, Any], measure: str, statistic: str) -> dict[str, Any]:
    return next(one for one in found["changes"] if (one["measure"], one["statistic"]) == (measure, statistic))


def test_a_faster_run_is_better_with_an_interval_like_that_of_resampling(runs: Path) -> None:
    found = as_json(runs, "slow", "fast")
    p50 = change(found, "ttft", "p50")
    before, after = ttfts(2.0), ttfts(1.0, seed=2)
    assert p50["before_s"] == pytest.approx(statistics.median(before))
    assert p50["after_s"] == pytest.approx(statistics.median(after))
    chosen = random.Random(5)
    resampled = sorted(
        statistics.median(chosen.choices(after, k=COUNT)) / statistics.median(chosen.choices(before, k=COUNT))
        - 1
        for _ in range(2000)
    )
    assert p50["low_ratio"] == pytest.approx(resampled[50], abs=0.03)
    assert p50["high_ratio"] == pytest.approx(resampled[1949], abs=0.03)
    assert p50["sure"]
    assert found["verdict"].startswith("Better: ")


def test_two_draws_of_one_load_are_no_sure_change(runs: Path) -> None:
    found = as_json(runs, "slow", "same")
    assert not change(found, "ttft", "p50")["sure"]
    assert "No sure change of p50 TTFT" in found["verdict"]


def test_runs_of_other_prompts_are_refused_with_what_differs(runs: Path) -> None:
    result = compared(runs, "slow", "long")
    assert result.exit_code == 4
    assert "cannot be compared" in result.stdout
    found = as_json(runs, "slow", "long")
    assert not found["comparable"]
    assert not found["changes"]
    assert {one["fact"] for one in found["differences"] if one["blocks"]} == {
        "input tokens, median",
        "input tokens, 90 %",
    }


def test_three_requests_say_nothing(runs: Path) -> None:
    result = compared(runs, "slow", "few")
    assert result.exit_code == 4
    assert "too few requests after" in result.stdout


def test_a_regression_fails_where_it_is_larger_than_allowed(runs: Path) -> None:
    assert compared(runs, "fast", "slow", "--fail-on-regression", "10").exit_code == 1
    assert compared(runs, "fast", "slow", "--fail-on-regression", "500").exit_code == 0
    assert compared(runs, "slow", "fast", "--fail-on-regression", "10").exit_code == 0
    assert compared(runs, "slow", "same", "--fail-on-regression", "0").exit_code == 0
    assert compared(runs, "slow", "long", "--fail-on-regression", "10").exit_code == 4


def test_a_run_of_another_case_is_named_by_file(
    runs: Path, tmp_path: Path, ingested: Callable[..., Any]
) -> None:
    other = tmp_path / "other.duckdb"
    ingested(other, write_run(tmp_path / "x.jsonl", ttfts(1.0, seed=2)), run="x")
    here = change(as_json(runs, "slow", "fast"), "ttft", "p50")
    there = change(as_json(runs, "slow", f"{other}::"), "ttft", "p50")
    assert there["after_s"] == here["after_s"]
    assert compared(runs, f"{runs}::slow", f"{other}::x").exit_code == 0
    assert compared(runs, "slow", f"{runs}::").exit_code == 2
    assert compared(runs, "slow", "nobody").exit_code == 2


def test_goodput_counts_what_kept_the_slo(runs: Path) -> None:
    found = as_json(runs, "slow", "fast", "--slo", "ttft=2500ms")
    good = [sum(ttft <= 2.5 for ttft in times) for times in (ttfts(2.0), ttfts(1.0, seed=2))]
    assert [side["good_count"] for side in found["goodput"]] == good
    assert [side["goodput_ratio"] for side in found["goodput"]] == pytest.approx(
        [one / COUNT for one in good]
    )


def test_markdown_is_a_page_whose_labels_are_inert(tmp_path: Path, ingested: Callable[..., Any]) -> None:
    case = tmp_path / "c.duckdb"
    ingested(case, write_run(tmp_path / "a.jsonl", ttfts(1.0)), run="a|<b>@x")
    result = compared(case, "a|<b>@x", "a|<b>@x", "--format", "md")
    assert result.exit_code == 0
    assert "`a\\|<b>@x`" in result.stdout


def test_the_ending_of_the_file_says_what_is_written(runs: Path, tmp_path: Path) -> None:
    page, text, whole = (tmp_path / f"fix{kind}" for kind in (".html", ".md", ".json"))
    for target in (page, text, whole):
        result = compared(runs, "slow", "fast", "--slo", "ttft=2500ms", "-o", str(target))
        assert result.exit_code == 0
        assert not result.stdout
    found = as_json(runs, "slow", "fast", "--slo", "ttft=2500ms")
    assert json.loads(whole.read_text()) == found
    assert text.read_text() == compared(runs, "slow", "fast", "--slo", "ttft=2500ms", "--format", "md").stdout
    html = page.read_text()
    assert f'<h1 id="verdict">{found["verdict"]}</h1>' in html
    for statistic in ("p50", "p90", "p99"):
        one = change(found, "ttft", statistic)
        assert f">{duration(one['before_s'])}</td>" in html
        assert f">{duration(one['after_s'])}</td>" in html
    assert percent(found["goodput"][1]["goodput_ratio"]) in html


def test_a_page_of_runs_that_cannot_be_compared_lists_why(runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "refused.html"
    assert compared(runs, "slow", "long", "-o", str(target)).exit_code == 4
    html = target.read_text()
    assert "cannot be compared" in html
    assert "✗ input tokens, median" in html
    assert "What changed" not in html
    assert compared(runs, "slow", "fast", "-o", str(tmp_path / "x.pdf")).exit_code == 2


def test_a_warm_cache_is_in_the_verdict(tmp_path: Path, ingested: Callable[..., Any]) -> None:
    case = tmp_path / "warm.duckdb"
    for name, scale, cached in (("cold", 2.0, 0), ("warm", 0.5, 90)):
        path = write_run(tmp_path / f"{name}.jsonl", ttfts(scale))
        lines = [{**json.loads(line), "cached_tokens": cached} for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        ingested(case, path, run=name)
    verdict = as_json(case, "cold", "warm")["verdict"]
    assert "input tokens from the prefix cache 0 % → 90 %" in verdict
    assert "do not do the same work" in verdict


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ttft=1s", Slo(1.0)),
        ("ttft=800ms, tpot=50ms,e2e=2m", Slo(0.8, 0.05, 120.0)),
        ("e2e=30", Slo(e2e_s=30.0)),
        ("", Slo()),
    ],
)
def test_an_slo_is_read(text: str, expected: Slo) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["ttft", "ttft=", "ttft=fast", "ttft=0s", "ttft=-1s", "p99=1s", "ttft=1h"])
def test_what_is_no_slo_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


def test_the_slo_of_the_configuration_is_used(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tracelens.toml").write_text('[slo]\nttft = "2500ms"\n')
    assert as_json(runs, "slow", "fast")["slo"]["ttft_s"] == 2.5
    Path("tracelens.toml").write_text("[sla]\nttft = 1\n")
    result = compared(runs, "slow", "fast")
    assert result.exit_code == 2
    assert "did you mean [slo]?" in result.stderr


def test_check_says_which_stage_broke_the_slo(runs: Path) -> None:
    asked = ["check", "--slo", "ttft=2500ms", "--run", "slow", "-c", str(runs)]
    bad = sum(ttft > 2.5 for ttft in ttfts(2.0))
    text = CliRunner().invoke(cli, asked).stdout
    assert f"({COUNT - bad} of {COUNT} requests)" in text
    assert f"TTFT broken by {bad}; where most of their time went: unaccounted 100 %" in text
    found = json.loads(CliRunner().invoke(cli, [*asked, "--format", "json"]).stdout)
    assert found["slo"]["goodput"][0]["good_count"] == COUNT - bad
    assert (
        f"goodput {round(100 * (COUNT - bad) / COUNT)} %"
        in CliRunner().invoke(cli, [*asked, "--format", "md"]).stdout
    )
