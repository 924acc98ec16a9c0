"""Moves each threshold of each rule by a fifth, down and up, and lists the verdicts that change.

    python bench/thresholds.py CASES [--by 0.2] [--write FILE]

CASES is a folder of cases (``*.duckdb``).  A rule that rests on its reasons changes few verdicts; one that was fitted to a few
incidents changes many.  Counted is a finding that comes or goes, by rule and case; whole numbers move by one at least.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tracelens import check as checking
from tracelens.rulebook import Rule, rulebook
from tracelens.store import Store

HEADS: Final = ("threshold", "from", "to", "case", "before", "after")


@dataclass(frozen=True, slots=True)
class Change:
    """A verdict that a moved threshold changed."""

    threshold: str
    value: float
    moved: float
    case: str
    before: str
    after: str

    @property
    def cells(self) -> tuple[str, ...]:
        """As a row of the table."""
        return (self.threshold, f"{self.value:g}", f"{self.moved:g}", self.case, self.before, self.after)


def moved(value: float, by: float) -> Iterator[float]:
    """A threshold a part lower and higher.  Of a ratio above a half its distance to 1 moves; a whole number moves by one at least."""
    for way in (-by, by):
        new = value * (1 + way)
        if isinstance(value, float) and 0.5 < value < 1:
            new = 1 - (1 - value) * (1 - way)
        if isinstance(value, int):
            new = max(
                0, value + min(-1, round(value * way)) if way < 0 else value + max(1, round(value * way))
            )
        yield new


def _said(scene: Any, rule: Rule, params: Mapping[str, Any]) -> str:
    """What a rule says of a case: fired, with its severity where that is info; else whether it is decided."""
    outcomes = checking._outcomes(scene, rule, params)
    fired = sorted(
        {"info" if one.severity == "info" else "fired" for one in outcomes if one.outcome == "fired"}
    )
    return fired[0] if fired else next((one.outcome for one in outcomes), "")


def changes(path: Path, rules: list[Rule], by: float) -> Iterator[Change]:
    """The verdicts on one case that change."""
    with Store(path) as store, store.sitting() as sitting:
        scene = checking._scene(sitting, "")
        for rule in rules:
            before = _said(scene, rule, rule.params)
            for name, value in rule.params.items():
                for new in moved(value, by):
                    after = _said(scene, rule, {**rule.params, name: new})
                    if after != before and "fired" in (before, after):
                        yield Change(f"{rule.name}.{name}", value, new, path.stem, before, after)


def main() -> None:
    """Move all, print the table and its sums."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--by", type=float, default=0.2)
    parser.add_argument("--write", type=Path)
    asked: Any = parser.parse_args()
    rules = [rule for rule in rulebook() if rule.params]
    paths = sorted(asked.cases.glob("*.duckdb"))
    rows = [HEADS, ("---",) * len(HEADS)]
    found: list[Change] = []
    for path in paths:
        here = sorted(changes(path, rules, asked.by), key=lambda one: one.cells)
        print(path.stem, *(" | ".join(one.cells) for one in here), sep="\n  ", flush=True)
        found += here
    rows += [change.cells for change in sorted(found, key=lambda one: one.cells)]
    tried = 2 * len(paths) * sum(len(rule.params) for rule in rules)
    told = f"{len(found)} of {tried} verdicts change, in {len({one.threshold for one in found})} thresholds."
    text = "\n".join(["| " + " | ".join(row) + " |" for row in rows] + ["", told]) + "\n"
    print(text)
    if asked.write:
        asked.write.write_text(text)


if __name__ == "__main__":
    main()
