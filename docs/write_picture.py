"""Make docs/picture.svg, the picture of the README: the bundled incident as a terminal shows it."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
COLUMNS = 118


def _tracelens(*arguments: str) -> str:
    environment = {"COLUMNS": str(COLUMNS), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tracelens", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=ROOT,
    )
    return done.stdout


def main() -> None:
    """Ingest the bundled incident and draw the slowest requests and one of them."""
    with tempfile.TemporaryDirectory() as folder:
        case = str(Path(folder) / "incident.duckdb")
        _tracelens("ingest", "sample_logs/incidents/seats_exhausted", "-c", case)
        worst = _tracelens("query", "slowest", "top=1", "-c", case, "--format", "json")
        request_id = worst.split('"request_id":"')[1].split('"')[0]
        shown = _tracelens("show", request_id, "-c", case, "--format", "table").split("\n")
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ tracelens show {request_id}\n" + "\n".join(shown[:46])))
    console.save_svg(str(ROOT / "docs" / "picture.svg"), title="tracelens show")


if __name__ == "__main__":
    main()
