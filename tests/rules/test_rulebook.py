"""The laws that every rule keeps, the cases beside it, and what is said of a rule that breaks one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tracelens import resources
from tracelens.errors import RuleError
from tracelens.laws import judge, judge_folder
from tracelens.rulebook import read_rule, read_rules, rule_files, rulebook
from tracelens.store import MemoryCase

TOYS = Path(__file__).parent / "data" / "toys"
RULES = [
    pytest.param(path, name, id=name)
    for folder in (resources.rules(), TOYS)
    for path, name in rule_files(folder)
]


@pytest.fixture(scope="module")
def memory() -> MemoryCase:
    return MemoryCase()


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A copy of a toy rule that keeps every law."""
    shutil.copytree(TOYS, tmp_path / "rules")
    return tmp_path / "rules" / "toy" / "waits.sql"


@pytest.mark.parametrize(("path", "name"), RULES)
def test_a_rule_keeps_the_laws_and_its_cases_hold(memory: MemoryCase, path: Path, name: str) -> None:
    verdict = judge(memory, path, name)
    assert "\n".join(verdict.faults) == ""
    assert verdict.case_count >= 1


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("toy-waiting", "Toy Waiting", "is no slug"),
        ("## Known limits\nA toy.\n", "", "the headings are"),
        ("## What to do\nRaise the seats.", "## What to do\n", "nothing stands under 'What to do'"),
        ('kind = "config"', 'kind = "hardware"', ""),
        ('kind = "hardware"', 'kind = "config"', ""),
        ('text = "Add cards."', 'text = "Add {measured_waiting_count}."', "a remedy has a placeholder"),
        ("SELECT\n    run_id", "SELECT 1; SELECT\n    run_id", "2 statements"),
        ("SELECT\n    run_id", "DELETE FROM source; SELECT\n    run_id", "the SQL is not one SELECT"),
        (
            "min_waiting_count = 5",
            "min_waiting_count = 5\nunused = 1",
            "parameter unused is declared and not used",
        ),
        ("min_waiting_count = 5", "", "parameter min_waiting_count is used and not declared"),
        ('needs = ["engine_sample"]', 'needs = ["gpu_sample"]', "needs gpu_sample and never reads it"),
        ('needs = ["engine_sample"]', 'needs = ["nothing"]', "needs nothing, which is no table or view"),
        ("    0.5 AS weight,\n", "", "the SELECT has no column weight"),
        ("0.5 AS weight", "0.5 AS weight, 1 AS stray", "column stray is none that an outcome has"),
        (
            "Up to {measured_waiting_count}",
            "Up to {measured_waiting}",
            "names {measured_waiting}, which is no column",
        ),
    ],
)
def test_a_rule_that_breaks_a_law_is_told_which(
    memory: MemoryCase, toy: Path, old: str, new: str, said: str
) -> None:
    edit(toy, old, new)
    faults = "\n".join(judge(memory, toy, "toy.waits").faults)
    assert said in faults
    assert bool(faults) == bool(said)


def test_remedies_in_the_wrong_order_are_a_fault(memory: MemoryCase, toy: Path) -> None:
    edit(toy, 'kind = "config"', 'kind = "hardware"')
    edit(toy, 'text = "Add cards."', 'text = "Turn a knob."')
    text = toy.read_text()
    toy.write_text(text[::-1].replace('"erawdrah" = dnik', '"gifnoc" = dnik', 1)[::-1])
    assert "remedies must be ordered" in "\n".join(judge(memory, toy, "toy.waits").faults)


def test_a_view_covers_the_tables_below_it(memory: MemoryCase, toy: Path) -> None:
    edit(toy, "FROM engine_sample", "FROM binding_limit")
    assert judge(memory, toy, "toy.waits").faults == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('outcome = "clear"', 'outcome = "fired"', "there, not expected: {outcome: clear"),
        ('outcome = "clear", measured_waiting_count = 2', 'outcome = "clear", measured = 2', "measured"),
        ("set = { min_waiting_count = 2 }", "set = { min = 2 }", "the rule has no parameter min"),
        ("given.engine_sample", "given.engine_samples", "there is no table or view engine_samples"),
        ("a short line is clear", "a long line fires", "two cases are called 'a long line fires'"),
        ('subject = "", outcome = "not_evaluated"', 'subject = ""', "no case expects not_evaluated"),
        ("[[case]]", "[[case", "waits.cases.toml"),
    ],
)
def test_a_case_that_does_not_hold_is_told(
    memory: MemoryCase, toy: Path, old: str, new: str, said: str
) -> None:
    edit(toy.with_name("waits.cases.toml"), old, new)
    assert said in "\n".join(judge(memory, toy, "toy.waits").faults)


def test_a_rule_without_cases_is_a_fault(toy: Path) -> None:
    toy.with_name("waits.cases.toml").unlink()
    verdicts = {verdict.name: verdict.faults for verdict in judge_folder(toy.parent.parent)}
    assert verdicts["toy.slow_client"] == ()
    assert "no cases" in verdicts["toy.waits"][0]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("/*\n", "", "no leading comment"),
        ("title = ", "title ", "the header is no TOML"),
        ('belief = "The GPU is too slow."\n', "", "the header lacks belief"),
        ("title = ", 'author = "me"\ntitle = ', "unknown keys author"),
        ('severity = "critical"', 'severity = "bad"', "severity is one of info, warning, critical"),
        ('needs = ["engine_sample"]', 'needs = "engine_sample"', "needs is no list"),
        ('needs = ["engine_sample"]', "needs = [1]", "needs is a list of texts"),
        (
            "min_waiting_count = 5",
            "min_waiting_count = [5]",
            "parameter min_waiting_count is no number or text",
        ),
        ('kind = "config"', 'kind = "luck"', "a remedy has a text and a kind"),
        ('moves = "queue"', 'cost = "much"', "a remedy has kind, moves, next_limit, text"),
    ],
)
def test_a_header_that_is_not_as_it_must_be_is_an_error_with_the_file(
    toy: Path, old: str, new: str, said: str
) -> None:
    edit(toy, old, new)
    with pytest.raises(RuleError, match=said) as caught:
        read_rule(toy, "toy.waits")
    assert str(toy) in str(caught.value)


def test_bytes_that_are_no_text_are_an_error_with_the_file(toy: Path) -> None:
    toy.write_bytes(b"/*\xff*/")
    with pytest.raises(RuleError, match=r"waits\.sql: cannot be read"):
        read_rule(toy, "toy.waits")


def test_the_path_is_the_name() -> None:
    assert [rule.name for rule in read_rules(TOYS)] == ["toy.slow_client", "toy.waits"]


def test_a_rule_of_the_same_name_takes_the_place(toy: Path) -> None:
    edit(toy, 'title = "Requests wait"', 'title = "Another"')
    titles = [rule.title for rule in rulebook(TOYS, toy.parent.parent) if rule.name == "toy.waits"]
    assert titles == ["Another"]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="no such folder"):
        rulebook(tmp_path / "nowhere")
