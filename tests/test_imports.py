"""Starting is cheap: what costs half a second to import is imported by the command that needs it."""

import json
import subprocess
import sys

import pytest

HEAVY = ("polars", "duckdb", "textual", "orjson")
LOADED = f"import json, sys; print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
COMMAND = "import contextlib, io, sys\nfrom tracelens.__main__ import main\n"


def loaded_after(code: str) -> list[str]:
    """The heavy modules that a fresh interpreter has loaded after running some code."""
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\n{LOADED}"], capture_output=True, text=True, check=True
    )
    names: list[str] = json.loads(ran.stdout.splitlines()[-1])
    return names


def after_command(*arguments: str) -> list[str]:
    """The same, after a command of the command line."""
    run = f"sys.argv[:] = {['tracelens', *arguments]!r}\nwith contextlib.suppress(SystemExit):\n    main()"
    return loaded_after(COMMAND + run)


def test_the_library_loads_nothing_heavy() -> None:
    assert loaded_after("import tracelens") == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["check", "--help"],
        ["rules", "--help"],
        ["ingest", "--help"],
        ["show", "--help"],
        ["browse", "--help"],
        ["sql", "--help"],
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert after_command(*arguments) == []


def test_a_query_loads_duckdb_and_no_parser() -> None:
    """The measure itself works: a command that opens a case does load DuckDB, and Polars stays out."""
    assert after_command("sql", "SELECT 1", "-c", "nowhere.duckdb") == ["duckdb"]
