"""Cases to harm, and the command in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tracelens

sys.path.insert(0, str(Path(__file__).parent))

from harm import LOGS, environment


@pytest.fixture(scope="session")
def logs() -> Path:
    return LOGS


@pytest.fixture(scope="session")
def first_case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A case that holds one source already."""
    path = tmp_path_factory.mktemp("first") / "case.duckdb"
    tracelens.ingest([LOGS / "client.jsonl"], path)
    return path


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command in a process of its own."""

    def call(*args: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tracelens", *(str(arg) for arg in args)],
            check=False,
            **{"capture_output": True, "text": True, "timeout": 60, "cwd": tmp_path}
            | options
            | {"env": environment(**options.get("env", {}))},
        )

    return call
