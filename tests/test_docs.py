"""The pages of docs/ say what the program says."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_generated_pages_are_fresh() -> None:
    ran = subprocess.run(
        [sys.executable, "docs/write_docs.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
