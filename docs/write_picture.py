"""Make the pictures of the README: two screens of the terminal UI on the bundled incident."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SIZE = "118x36"


def _tracelens(*arguments: str, folder: str) -> str:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tracelens", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=folder,
    )
    return done.stdout


def main() -> None:
    """Ingest the bundled incident and draw its overview and its worst request."""
    docs = ROOT / "docs"
    with tempfile.TemporaryDirectory() as folder:
        _tracelens("ingest", str(ROOT / "sample_logs/incidents/seats_exhausted"), folder=folder)
        (worst,) = json.loads(_tracelens("query", "slowest", "top=1", "--format", "json", folder=folder))
        shot = ("browse", "--size", SIZE, "--screenshot")
        _tracelens(*shot, str(docs / "overview.svg"), folder=folder)
        request = ("--screen", "request", "--id", worst["request_id"])
        _tracelens(*shot, str(docs / "request.svg"), *request, folder=folder)


if __name__ == "__main__":
    main()
