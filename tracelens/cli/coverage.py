"""Which questions the files of a case answer, and the script that would answer the others next time."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from tracelens.errors import UsageError
from tracelens.text.grid import Column, grid
from tracelens.text.terminal import clean
from tracelens.units import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tracelens.case import Case

    Row = Mapping[str, Any]

_MARKS: Final = {"observed": "●", "derived": "◐", "within": "·", "closed": "○"}
_LEGEND: Final = "● observed  ◐ derived: by subtraction, a second clock or an assumption  · inside another stage  ○ closed: nobody recorded it"
_HEADS: Final = (
    Column("", fixed=True),
    Column("", fixed=True),
    Column("question", fixed=True),
    Column("shown by, or what opens it", wraps=True),
)
_SIDES: Final = {
    "stage": "stages of a request",
    "client": "client",
    "server": "server",
    "engine": "engine",
    "gpu": "GPU",
}


def screen(case: Case, run: str, inside: Callable[[str], str], width: int | None) -> Iterator[str]:
    """One table per run: each question, its state, and what shows it or would."""
    rows = case.query("coverage", run=run).dicts()
    runs = {row["run_id"] for row in rows}
    for run_id, asked in groupby(rows, key=lambda row: row["run_id"]):
        yield ""
        yield f"What these files answer{f' in run {clean(run_id)}' if len(runs) > 1 else ''}:"
        yield from grid(_HEADS, list(_cells(asked, inside)), width)
    yield ""
    yield _LEGEND
    if any(row["state"] == "closed" for row in rows):
        yield "Next: tracelens sources --next-time > record.sh   (a script that records what is missing)"


def _cells(asked: Iterator[Row], inside: Callable[[str], str]) -> Iterator[list[str]]:
    for row in asked:
        yield [_MARKS[row["state"]], row["subject"], row["question"], clean(_answer(row, inside))]


def _answer(row: Row, inside: Callable[[str], str]) -> str:
    if row["state"] == "closed":
        return "; ".join(words for words in (row["why"], row["switch_on"]) if words)
    if row["state"] == "within":
        return str(row["why"] or row["switch_on"])
    if row["side"] != "stage":
        return f"{', '.join(inside(path) for path in row['opened_by'])}{_part(row)}"
    known = row["observed_count"] if row["state"] == "observed" else row["derived_count"]
    others = f"; {row['switch_on']}" if row["state"] == "derived" else ""
    return f"{row['state']} in {count(known)} of {count(row['of_count'])} requests{others}"


def _part(row: Row) -> str:
    """How much of its rows say it, where not all do."""
    if row["observed_count"] == row["of_count"]:
        return ""
    return f" ({count(row['observed_count'])} of {count(row['of_count'])} rows)"


def next_time(case: Case, run: str) -> str:
    """The script for one run; raises `UsageError` where the case has several and none is named."""
    from tracelens import next_time as script
    from tracelens.next_time import Argument

    rows = case.query("coverage", run=run).dicts()
    runs = sorted({row["run_id"] for row in rows})
    if len(runs) > 1:
        raise UsageError("a script is for one run", hint=f"--run {' or '.join(runs)}")
    known = case.query("server_switches", run=run).dicts()
    arguments = [Argument(row["subject"], row["argument"], row["note"]) for row in known]
    version = next((row["vllm_version"] for row in rows), None)
    return script.script(rows, arguments, version) or "# nothing is missing that could be recorded\n"
