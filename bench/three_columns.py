"""What ``tracelens check`` says of recorded incidents with all files, without the spans, and with the server log alone.

    python bench/three_columns.py FOLDER LABELS.json [--write FILE]

FOLDER holds a folder per recording; LABELS maps its name to ``wanted`` (causes that must be found), ``maybe`` (causes that may)
and ``forbidden`` ones.  For each recording and choice of files: what fired above info, in order, and what is missed or wrong.  With
fewer files a miss is no error where one of the cause's rules says that it cannot decide it: rules of one cause look for it in
different files, and what one of them could see does not clear what another could not.  A wrong cause always is an error.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tracelens

COLUMNS: Final[dict[str, Callable[[Path], bool]]] = {
    "all files": lambda _: True,
    "no spans": lambda path: "spans" not in path.name,
    "server log alone": lambda path: path.name.startswith("server.log"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What fired above info, in order, and how that stands to the labels; `silent` are missed causes that nobody decides."""

    fired: Sequence[str]
    missed: Sequence[str]
    silent: Sequence[str]
    wrong: Sequence[str]
    extra: Sequence[str]
    is_first: bool

    @property
    def cell(self) -> str:
        """The verdict in a table's cell."""
        marks = [f"**{cause}**" if cause in self.wrong else cause for cause in self.fired]
        notes = [
            *(f"missed {cause}" for cause in self.missed if cause not in self.silent),
            *(f"not evaluated: {cause}" for cause in self.silent),
        ]
        return ", ".join(marks or ["nothing"]) + (f" ({'; '.join(notes)})" if notes else "")


def judge(folder: Path, chosen: Callable[[Path], bool], label: dict[str, list[str]]) -> Verdict:
    """Ingest the chosen files of a recording, check, compare."""
    files = [str(path) for path in sorted(folder.iterdir()) if path.is_file() and chosen(path)]
    with tempfile.TemporaryDirectory() as scratch:
        case = Path(scratch) / "case.duckdb"
        tracelens.ingest(files, case=case)
        with tracelens.open(case) as opened:
            outcomes = opened.check().outcomes
    fired = list(
        dict.fromkeys(one.cause for one in outcomes if one.outcome == "fired" and one.severity != "info")
    )
    wanted, forbidden = label["wanted"], label["forbidden"]
    missed = [cause for cause in wanted if cause not in fired]
    open_ = {one.cause for one in outcomes if one.outcome == "not_evaluated"}
    decided = {one.cause for one in outcomes if one.outcome in ("clear", "failed")} - open_
    return Verdict(
        fired,
        missed,
        [cause for cause in missed if cause not in decided],
        [cause for cause in fired if cause in forbidden],
        [cause for cause in fired if cause not in forbidden and cause not in wanted],
        not wanted or fired[:1] == wanted[:1] or bool(fired and fired[0] in wanted),
    )


def main() -> None:
    """Judge every recording that has a label, print the table and its sums."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--write", type=Path)
    asked: Any = parser.parse_args()
    labels = json.loads(asked.labels.read_text())
    sums: dict[str, Counter[str]] = {column: Counter() for column in COLUMNS}
    rows = []
    for name, label in sorted(labels.items()):
        cells = []
        for column, chosen in COLUMNS.items():
            said = judge(asked.folder / name, chosen, label)
            cells.append(said.cell)
            sums[column].update(
                wanted=len(label["wanted"]), found=len(label["wanted"]) - len(said.missed),
                not_evaluated=len(said.silent), missed=len(said.missed) - len(said.silent), wrong=len(said.wrong),
                extra=len(said.extra), first=said.is_first,
            )  # fmt: skip
        rows.append([name, ", ".join(label["wanted"]) or "nothing", *cells])
        print(*rows[-1], sep=" | ", flush=True)
    keys = ("wanted", "found", "not_evaluated", "missed", "wrong", "extra", "first")
    totals = [[key.replace("_", " "), "", *(str(sums[column][key]) for column in COLUMNS)] for key in keys]
    heads = ["recording", "truth", *COLUMNS]
    lines = ["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows, *totals]]
    text = "\n".join(lines) + "\n"
    print(text)
    if asked.write:
        asked.write.write_text(text)


if __name__ == "__main__":
    main()
