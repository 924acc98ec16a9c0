"""Every measurement of the benchmark, and the page they make: ``make bench``.

    python bench/run.py [--only SECTION ...] [--write docs/performance.md] [--full]

Each section is measured by a function of its own and kept in bench/out/, so one can be measured again alone; the page is put
together from what is kept, a table of all targets first, and reasons.md, written by hand, last.  ``--full`` goes to ten
gigabytes of log and ten million requests: an hour, 30 GB of disk and 20 GiB of memory.  The largest files are kept in bench/out/
and used again: remove them when what makes them has changed.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import reading
import scale
import starting
from contest import OUT, Figure, Section, machine, table, versions

HERE: Final = Path(__file__).parent
FULL_MB: Final = (100, 1000, 10_000)
FULL_REQUESTS: Final = (*scale.SIZES, 10_000_000)


def sections(asked: argparse.Namespace) -> Mapping[str, Callable[[], Section]]:
    """The parts of the page, in their order there."""
    return {
        "server_log": partial(reading.server_log, asked.size_mb),
        "dialects": partial(reading.dialects, asked.size_mb / 4),
        "client_streams": reading.client_streams,
        "dmon": reading.dmon,
        "growth": partial(reading.growth, FULL_MB if asked.full else reading.SIZES_MB),
        "cores": reading.cores,
        "commands": starting.commands,
        "scale": partial(scale.section, FULL_REQUESTS if asked.full else scale.SIZES),
        "screens": starting.screens,
    }


def page(found: Sequence[Section]) -> str:
    """The page of all sections."""
    commit = subprocess.run(
        ("git", "rev-parse", "--short", "HEAD"), cwd=HERE, capture_output=True, text=True, check=False
    )
    lines = [
        "# Performance", "",
        f"Measured by `make bench` on {machine()}, commit {commit.stdout.strip() or 'unknown'}; {versions()}.", "",
        "## Targets", "",
        *table(("what", "measured", "target", "reached"), [_target(one) for part in found for one in part.figures]),
    ]  # fmt: skip
    parts = [
        "\n".join(lines),
        *(part.text for part in found),
        (HERE / "reasons.md").read_text(encoding="utf-8").strip(),
    ]
    return "\n\n".join(parts) + "\n"


def _target(one: Figure) -> tuple[str, str, str, str]:
    def said(value: float) -> str:
        return f"{value:.0%}" if one.unit == "%" else f"{value:,.3g} {one.unit}".strip()

    return (
        one.what,
        said(one.value),
        f"{'at least' if one.at_least else 'at most'} {said(one.target)}",
        _reached(one),
    )


def _reached(one: Figure) -> str:
    return "yes" if one.is_met else "**no**"


def main() -> None:
    """Measure what was asked for, print the page of everything that is kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size-mb", type=float, default=200, help="size of the server log (default: 200)")
    parser.add_argument("--only", nargs="+", default=None, metavar="SECTION", help="measure only these again")
    parser.add_argument("--full", action="store_true", help="to ten gigabytes and ten million requests")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page to this file too")
    asked: Any = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    known = sections(asked)
    for name in asked.only or known:
        print(f"measuring {name} ...", flush=True)
        known[name]().keep(OUT / f"{name}.section.json")
    kept = [OUT / f"{name}.section.json" for name in known]
    text = page([Section.kept(path) for path in kept if path.exists()])
    print(text)
    if asked.write:
        asked.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
